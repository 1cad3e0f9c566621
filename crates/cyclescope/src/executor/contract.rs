//! What every executor does.

use super::batch::{Batch, CounterProgress, PlacedArea, Sample};
use super::capabilities::Capabilities;
use super::fault::FaultReport;
use super::lock::LockState;
use crate::error::RunError;
use crate::machine::Machine;
use crate::machine::fact::Fact;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Runs batches.
pub trait Executor {
    /// What it can do.
    fn capabilities(&self) -> &Capabilities;

    /// The machine that its programs run on: a simulated one for a simulated executor. Facts about the processor and
    /// its TSC come from here and not from the computer that this process happens to run on.
    fn machine(&self) -> &Machine;

    /// Its name in records.
    fn name(&self) -> &'static str {
        self.capabilities().executor
    }

    /// Bytes of the code arena.
    fn arena_len(&self) -> usize {
        self.capabilities().room.known().map_or(0, |room| room.arena)
    }

    /// Runs a batch and hands over its samples by layout, then round, then call of the round, in pieces of whole
    /// layouts. What was handed over before an error is good.
    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError>;

    /// Runs a batch and returns all of its samples.
    fn run(&mut self, batch: &Batch) -> Result<Vec<Sample>, RunError> {
        let mut samples = Vec::new();
        self.stream(batch, &mut |piece| samples.extend_from_slice(piece))?;
        Ok(samples)
    }

    /// The areas of the memory that the last batch had, in its order; none where the executor does not say.
    fn areas(&self) -> Vec<PlacedArea> {
        Vec::new()
    }

    /// More about the fault that the last batch ended with.
    fn last_fault(&self) -> Option<&FaultReport> {
        None
    }

    /// How the lock of the CPU was found when the last batch began; none where there is no such lock.
    fn lock_state(&self) -> Option<&LockState> {
        None
    }

    /// Whether the last batch had its CPU to itself, as far as other runs of this library go.
    fn exclusive(&self) -> Fact<bool> {
        let unknown = || Fact::unknown("this executor keeps no other run off its CPU");
        self.lock_state().map_or_else(unknown, LockState::exclusive)
    }

    /// How far TSC, APERF and MPERF went in all batches so far; none where nothing reads them.
    fn progress(&self) -> Option<CounterProgress> {
        None
    }

    /// The time since a fixed moment, by the clock that a study's decisions go by: how long to measure, when to stop. It
    /// is an answer of the executor like its readings, so that a replay of these takes the same decisions.
    fn now(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }

    /// Leaves the CPU alone for a while.
    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }

    /// What of the processor's state the code of all batches so far left changed, and the executor restored.
    fn changed(&self) -> Vec<&'static str> {
        Vec::new()
    }
}
