//! A recording executor: it passes batches to another executor, and records batches and results.
//!
//! All inputs of a study from its executor pass through here: readings, errors, the time, facts about the surroundings.
//! A study whose decisions follow from these and from its seed makes the same decisions over
//! [`replaying`](super::replaying). Results of other sources, such as `marker`'s loops and `evaluate`'s experiments on
//! several CPUs, are recorded through [`answers`](super::answers).

use super::container::{After, BatchEvent, Event, Evidence, How, Writer};
use cyclescope_core::error::RunError;
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::fact::Fact;
use cyclescope_exec::{
    Batch, Capabilities, CounterProgress, Executor, FaultReport, LockState, PlacedArea, Ring, Sample, Timing,
};
use serde::{Deserialize, Serialize};
use std::io;
use std::rc::Rc;
use std::time::Duration;

/// Facts about an executor before its first batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ExecutorFacts {
    /// Name in records.
    pub(super) name: String,
    /// Privilege level that it ran code at.
    pub(super) ring: Ring,
    /// Origin of its durations.
    pub(super) timing: Timing,
    /// Bytes of its code arena.
    pub(super) arena_len: usize,
    /// Its state before the first batch.
    pub(super) before: After,
}

impl ExecutorFacts {
    /// The facts of an executor.
    pub(super) fn of(executor: &dyn Executor) -> ExecutorFacts {
        ExecutorFacts {
            name: executor.name().to_string(),
            ring: executor.capabilities().ring,
            timing: executor.capabilities().timing,
            arena_len: executor.arena_len(),
            before: after(executor),
        }
    }
}

fn after(executor: &dyn Executor) -> After {
    After {
        progress: executor.progress(),
        changed: executor.changed().into_iter().map(str::to_string).collect(),
        exclusive: executor.exclusive(),
    }
}

/// Records the calls of another executor.
pub(super) struct Recording {
    evidence: Rc<Evidence>,
    executor: Box<dyn Executor>,
}

impl Recording {
    /// Records into evidence.
    pub(super) fn new(executor: Box<dyn Executor>, evidence: Rc<Evidence>) -> Recording {
        Recording { evidence, executor }
    }
}

/// Adds a batch with its readings, or as many of them as there were before an error.
fn keep(
    writer: &mut Writer,
    batch: &Batch,
    samples: &[Sample],
    error: Option<&RunError>,
    after: After,
) -> io::Result<()> {
    let programs = batch.programs.iter().map(|program| writer.program(program)).collect::<io::Result<_>>()?;
    let first_layout = writer.layouts(&batch.layouts)?;
    let event = BatchEvent {
        programs,
        first_layout,
        layouts: batch.layouts.len(),
        how: How::of(batch),
        digest: super::container::digest(batch)?,
        after,
        error: error.cloned(),
    };
    writer.event(&Event::Batch(Box::new(event)), samples)
}

impl Executor for Recording {
    fn capabilities(&self) -> &Capabilities {
        self.executor.capabilities()
    }

    fn machine(&self) -> &Machine {
        self.executor.machine()
    }

    fn areas(&self) -> Vec<PlacedArea> {
        self.executor.areas()
    }

    fn arena_len(&self) -> usize {
        self.executor.arena_len()
    }

    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        let mut samples = Vec::new();
        let result = self.executor.stream(batch, &mut |piece| {
            samples.extend_from_slice(piece);
            take(piece);
        });
        let after = after(self.executor.as_ref());
        self.evidence.keep(|writer| keep(writer, batch, &samples, result.as_ref().err(), after));
        result
    }

    fn renew(&mut self) {
        self.executor.renew();
    }

    fn last_fault(&self) -> Option<&FaultReport> {
        self.executor.last_fault()
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.executor.lock_state()
    }

    fn exclusive(&self) -> Fact<bool> {
        self.executor.exclusive()
    }

    fn progress(&self) -> Option<CounterProgress> {
        self.executor.progress()
    }

    fn changed(&self) -> Vec<&'static str> {
        self.executor.changed()
    }

    fn pause(&mut self, time: Duration) {
        self.executor.pause(time);
    }

    fn now(&self) -> Duration {
        let now = self.executor.now();
        // 2^64 nanoseconds are 584 years.
        let ns = now.as_nanos() as u64;
        self.evidence.keep(|writer| writer.event(&Event::Time { ns }, &[]));
        Duration::from_nanos(ns)
    }
}
