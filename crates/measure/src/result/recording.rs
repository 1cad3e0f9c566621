//! A recording executor: passes batches to another executor, and records batches and results.
//!
//! All inputs that a study takes from its executor pass through here: readings, errors, the time,
//! facts about the surroundings. If a study's decisions follow from these and from its seed, it
//! makes the same decisions over [`replaying`](super::replaying). Results of other sources, such as
//! `marker`'s loops and `evaluate`'s experiments on several CPUs, are recorded through
//! [`answers`](super::answers).

use super::container::{BatchEvent, ContainerWriter, EvidenceRecorder, ExecutorState, StudyEvent};
use super::counter_check::CounterCheck;
use cyclescope_code::asm::to_hex;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::fact::Fact;
use cyclescope_events::{EventCode, EventRefusal};
use cyclescope_exec::{
    Batch, Capabilities, CounterProgress, Executor, FaultReport, LockState, PlacedArea, PrivilegeRing, Sample,
    TimingOrigin,
};
use serde::{Deserialize, Serialize};
use std::io;
use std::rc::Rc;
use std::time::Duration;

/// Facts about an executor before its first batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ExecutorFacts {
    /// Its name in records.
    pub(super) name: String,
    /// Privilege level of the code that it ran.
    pub(super) ring: PrivilegeRing,
    /// Origin of its durations.
    pub(super) timing: TimingOrigin,
    /// Bytes of its code arena.
    pub(super) arena_len: usize,
    /// Its state before the first batch.
    pub(super) before: ExecutorState,
    /// The counter of core cycles beside the ruler, where it is readable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) counter: Option<CounterCheck>,
}

impl ExecutorFacts {
    /// Finds out the facts of an executor.
    ///
    /// # Errors
    ///
    /// If it fails to count.
    pub(super) fn from_executor(executor: &mut dyn Executor) -> Result<ExecutorFacts, RunError> {
        let counter = CounterCheck::run(executor)?;
        Ok(ExecutorFacts {
            name: executor.name().to_string(),
            ring: executor.capabilities().ring,
            timing: executor.capabilities().timing,
            arena_len: executor.arena_len(),
            before: read_state(executor),
            counter,
        })
    }
}

/// Memory that an executor read for a study.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MemoryReading {
    /// The address.
    pub(super) address: u64,
    /// The bytes in hexadecimal, if they are readable.
    pub(super) bytes: Option<String>,
}

impl MemoryReading {
    fn to_value(&self) -> serde_json::Value {
        serde_json::json!(self)
    }
}

fn read_state(executor: &dyn Executor) -> ExecutorState {
    ExecutorState {
        progress: executor.counter_progress(),
        changed: executor.restored_state().into_iter().map(str::to_string).collect(),
        exclusive: executor.had_exclusive_cpu(),
    }
}

/// Records the calls of another executor.
pub(super) struct RecordingExecutor {
    evidence: Rc<EvidenceRecorder>,
    executor: Box<dyn Executor>,
}

impl RecordingExecutor {
    /// Records into evidence.
    pub(super) fn new(executor: Box<dyn Executor>, evidence: Rc<EvidenceRecorder>) -> RecordingExecutor {
        RecordingExecutor { evidence, executor }
    }
}

/// Adds a batch with all its readings, or with those taken before an error.
fn record_batch(
    writer: &mut ContainerWriter,
    batch: &Batch,
    samples: &[Sample],
    error: Option<&RunError>,
    after: ExecutorState,
) -> io::Result<()> {
    let event = BatchEvent { batch: writer.add_batch(batch)?, after, error: error.cloned() };
    writer.add_event(&StudyEvent::Batch(Box::new(event)), samples)
}

impl Executor for RecordingExecutor {
    fn capabilities(&self) -> &Capabilities {
        self.executor.capabilities()
    }

    fn machine(&self) -> &Machine {
        self.executor.machine()
    }

    fn placed_areas(&self) -> Vec<PlacedArea> {
        self.executor.placed_areas()
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
        let after = read_state(self.executor.as_ref());
        self.evidence.write_with(|writer| record_batch(writer, batch, &samples, result.as_ref().err(), after));
        result
    }

    fn renew_process(&mut self) {
        self.executor.renew_process();
    }

    fn read_memory(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        let read = self.executor.read_memory(address, bytes);
        let of = MemoryReading { address, bytes: read.as_deref().map(to_hex) }.to_value();
        self.evidence.write_with(|writer| writer.add_event(&StudyEvent::Kept { of }, &[]));
        read
    }

    fn begin_subject(&mut self) {
        self.executor.begin_subject();
    }

    fn count_fitting(&self, events: &[EventCode]) -> Result<usize, EventRefusal> {
        self.executor.count_fitting(events)
    }

    fn last_fault(&self) -> Option<&FaultReport> {
        self.executor.last_fault()
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.executor.lock_state()
    }

    fn had_exclusive_cpu(&self) -> Fact<bool> {
        self.executor.had_exclusive_cpu()
    }

    fn counter_progress(&self) -> Option<CounterProgress> {
        self.executor.counter_progress()
    }

    fn restored_state(&self) -> Vec<&'static str> {
        self.executor.restored_state()
    }

    fn pause(&mut self, time: Duration) {
        self.executor.pause(time);
    }

    fn now(&self) -> Duration {
        let now = self.executor.now();
        // 2^64 nanoseconds are 584 years.
        let ns = now.as_nanos() as u64;
        self.evidence.write_with(|writer| writer.add_event(&StudyEvent::Time { ns }, &[]));
        Duration::from_nanos(ns)
    }
}
