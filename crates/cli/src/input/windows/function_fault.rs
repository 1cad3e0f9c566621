//! Faults in libraries: their place.

use crate::input::library_loader;
use crate::output::Failure;
use cyclescope::error::RunError;
use cyclescope::executor::FaultReport;

/// Adds the place in a library to a fault outside all programs.
pub fn locate_fault(error: RunError, report: Option<&FaultReport>) -> RunError {
    let (RunError::Fault { signal, address, instruction: None, cause }, Some(report)) = (&error, report) else {
        return error;
    };
    match library_loader::describe_place(report.rip) {
        Some(place) => RunError::Fault { signal, address: *address, instruction: Some(place), cause: *cause },
        None => error,
    }
}

/// The failure for a function that ended its process on purpose: Windows calls no function of a signal.
pub fn explain_end(_report: &FaultReport) -> Option<Failure> {
    None
}
