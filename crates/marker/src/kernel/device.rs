//! The module as a bench of markers sees it.

use cyclescope_core::error::RunError;
use cyclescope_exec::kernel::markers::{self, Code, Markers, Rounds, Timed};
use cyclescope_exec::real_time;
use std::time::Duration;

/// What the bench needs of the module.
pub trait Device {
    /// See [`Markers::codes`].
    fn codes(&self) -> &[Code];
    /// See [`Markers::switch`].
    fn switch(&mut self, design: markers::Design, probe: Option<markers::Probe>) -> Result<(), RunError>;
    /// See [`Markers::bytes`].
    fn bytes(&self, code: &Code) -> Result<Vec<u8>, RunError>;
    /// See [`Markers::run`].
    fn run(&mut self, rounds: &Rounds) -> Result<Timed, RunError>;
    /// The time since a fixed moment.
    fn now(&self) -> Duration;
}

impl Device for Markers {
    fn codes(&self) -> &[Code] {
        Markers::codes(self)
    }

    fn switch(&mut self, design: markers::Design, probe: Option<markers::Probe>) -> Result<(), RunError> {
        Markers::switch(self, design, probe)
    }

    fn bytes(&self, code: &Code) -> Result<Vec<u8>, RunError> {
        Markers::bytes(self, code)
    }

    fn run(&mut self, rounds: &Rounds) -> Result<Timed, RunError> {
        Markers::run(self, rounds)
    }

    fn now(&self) -> Duration {
        real_time()
    }
}
