//! The interface between the kernel module and a bench of markers.

use cyclescope_core::error::RunError;
use cyclescope_exec::kernel::markers::{self, KernelMarkerRounds, KernelMarkers, MarkerFunction, TimedMarkerRounds};
use cyclescope_exec::real_time;
use std::time::Duration;

/// The operations that the bench needs from the module.
pub trait MarkerDevice {
    /// See [`KernelMarkers::codes`].
    fn codes(&self) -> &[MarkerFunction];
    /// See [`KernelMarkers::switch_sites`].
    fn switch(&mut self, design: markers::DesignNumber, probe: Option<markers::KernelProbe>) -> Result<(), RunError>;
    /// See [`KernelMarkers::read_bytes`].
    fn bytes(&self, code: &MarkerFunction) -> Result<Vec<u8>, RunError>;
    /// See [`KernelMarkers::run_rounds`].
    fn run(&mut self, rounds: &KernelMarkerRounds) -> Result<TimedMarkerRounds, RunError>;
    /// Time since a fixed moment.
    fn now(&self) -> Duration;
}

impl MarkerDevice for KernelMarkers {
    fn codes(&self) -> &[MarkerFunction] {
        KernelMarkers::codes(self)
    }

    fn switch(&mut self, design: markers::DesignNumber, probe: Option<markers::KernelProbe>) -> Result<(), RunError> {
        KernelMarkers::switch_sites(self, design, probe)
    }

    fn bytes(&self, code: &MarkerFunction) -> Result<Vec<u8>, RunError> {
        KernelMarkers::read_bytes(self, code)
    }

    fn run(&mut self, rounds: &KernelMarkerRounds) -> Result<TimedMarkerRounds, RunError> {
        KernelMarkers::run_rounds(self, rounds)
    }

    fn now(&self) -> Duration {
        real_time()
    }
}
