//! Faults in libraries: none is loaded on Windows yet.

use crate::output::Failure;
use cyclescope::error::RunError;
use cyclescope::executor::FaultReport;

/// Adds the place in a library to a fault outside all programs.
pub fn locate_fault(error: RunError, _report: Option<&FaultReport>) -> RunError {
    error
}

/// The failure for a function that ended its process on purpose.
pub fn explain_end(_report: &FaultReport) -> Option<Failure> {
    None
}
