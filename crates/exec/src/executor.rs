//! The interface of all executors.

use super::batch::{Batch, CounterProgress, PlacedArea, Sample};
use super::capabilities::Capabilities;
use super::fault::FaultReport;
use super::lock::LockState;
use super::protection::CodeProtection;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::fact::Fact;
use cyclescope_events::{EventCode, EventRefusal};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Time since a fixed moment of this process: [`Executor::now`] of executors that run code on this
/// computer.
pub fn real_time() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// Runs batches.
pub trait Executor {
    /// Capabilities of the executor.
    fn capabilities(&self) -> &Capabilities;

    /// The machine that its programs run on; simulated for a simulated executor. Facts about the
    /// processor and its TSC come from here, not from the computer that this process happens to run
    /// on.
    fn machine(&self) -> &Machine;

    /// Name in records.
    fn name(&self) -> &'static str {
        self.capabilities().executor
    }

    /// Bytes of the code arena.
    fn arena_len(&self) -> usize {
        self.capabilities().room.known().map_or(0, |room| room.arena)
    }

    /// Runs a batch and passes its samples to `take` by layout, then round, then call of the round,
    /// in pieces of whole layouts. Samples that were passed before an error are valid.
    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError>;

    /// Runs a batch and returns all of its samples.
    fn run(&mut self, batch: &Batch) -> Result<Vec<Sample>, RunError> {
        let mut samples = Vec::new();
        self.stream(batch, &mut |piece| samples.extend_from_slice(piece))?;
        Ok(samples)
    }

    /// Makes the next batch run in a new process, if the executor uses one. Its memory is new,
    /// behind the same addresses, and keeps nothing of earlier batches.
    fn renew_process(&mut self) {}

    /// Memory that programs find at an address outside their areas: the functions that they call,
    /// and the data of these. `None` if they find none there, or if the executor does not know.
    fn read_memory(&self, _address: u64, _bytes: usize) -> Option<Vec<u8>> {
        None
    }

    /// Announces that the next batches are of another subject, such as the next row of a list. What
    /// code of the last subject changed does not reach them. An executor that isolates each batch
    /// has nothing to do.
    fn begin_subject(&mut self) {}

    /// Memory areas of the last batch, in the order of its memory. Empty if the executor does not
    /// report them.
    fn placed_areas(&self) -> Vec<PlacedArea> {
        Vec::new()
    }

    /// How many of these events, from the first one, the executor counts at the same time. A batch has
    /// at most as many.
    ///
    /// # Errors
    ///
    /// If it does not count the first one.
    fn count_fitting(&self, _events: &[EventCode]) -> Result<usize, EventRefusal> {
        Err(EventRefusal::from_mode(self.name()))
    }

    /// Details of the fault that ended the last batch.
    fn last_fault(&self) -> Option<&FaultReport> {
        None
    }

    /// State of the CPU's lock when the last batch began; `None` if the executor uses no lock.
    fn lock_state(&self) -> Option<&LockState> {
        None
    }

    /// Whether no other run of this library used the CPU during the last batch.
    fn had_exclusive_cpu(&self) -> Fact<bool> {
        let unknown = || Fact::unknown("this executor does not lock its CPU");
        self.lock_state().map_or_else(unknown, LockState::is_exclusive)
    }

    /// Whether code runs in a process that shares neither memory nor libraries with this one. False
    /// if the system does not run the executable for that, so that a copy of this process is used.
    /// Unknown if the executor uses no process.
    fn has_own_process(&self) -> Fact<bool> {
        Fact::unknown("this executor uses no process")
    }

    /// The barriers around the code, with those that do not hold here. Empty if the executor does
    /// not report them.
    fn protections(&self) -> Vec<CodeProtection> {
        Vec::new()
    }

    /// Increments of TSC, APERF and MPERF over all batches; `None` if they are not read.
    fn counter_progress(&self) -> Option<CounterProgress> {
        None
    }

    /// The time since a fixed moment, by the clock that studies use to decide how long to measure.
    ///
    /// It is recorded as an answer of the executor, like its readings, so that a replay makes the
    /// same decisions. A simulated executor has simulated time: its results depend on its seed, not
    /// on other programs of this computer.
    fn now(&self) -> Duration;

    /// Waits without using the CPU.
    fn pause(&mut self, time: Duration);

    /// Parts of the processor's state that code of any batch changed and the executor restored.
    fn restored_state(&self) -> Vec<&'static str> {
        Vec::new()
    }
}
