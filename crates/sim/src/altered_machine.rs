//! A simulated machine with a function in front: it sees each batch, and may change the batch or
//! its readings.

use crate::SimulatedExecutor;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::Machine;
use cyclescope_exec::{Batch, Capabilities, Executor, Sample};
use std::time::Duration;

/// Runs batches through a function.
pub struct AlteredMachine<F> {
    machine: SimulatedExecutor,
    stream: F,
}

impl<F> AlteredMachine<F>
where
    F: FnMut(&mut SimulatedExecutor, &Batch, &mut dyn FnMut(&[Sample])) -> Result<(), RunError>,
{
    /// The machine, and the function that gets its batches.
    pub fn new(machine: SimulatedExecutor, stream: F) -> AlteredMachine<F> {
        AlteredMachine { machine, stream }
    }
}

impl<F> Executor for AlteredMachine<F>
where
    F: FnMut(&mut SimulatedExecutor, &Batch, &mut dyn FnMut(&[Sample])) -> Result<(), RunError>,
{
    fn capabilities(&self) -> &Capabilities {
        self.machine.capabilities()
    }

    fn machine(&self) -> &Machine {
        self.machine.machine()
    }

    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        (self.stream)(&mut self.machine, batch, take)
    }

    fn now(&self) -> Duration {
        self.machine.now()
    }

    fn pause(&mut self, time: Duration) {
        self.machine.pause(time);
    }
}
