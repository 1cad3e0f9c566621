//! The library's failures as exceptions, each with its remedy.

use cyclescope::error::Error as Failure;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

pyo3::create_exception!(
    cyclescope,
    Error,
    PyException,
    "Nothing was measured. `remedy` says what to do, if that is known."
);
pyo3::create_exception!(cyclescope, BadSnippet, Error, "The text is not assembly.");
pyo3::create_exception!(cyclescope, RunError, Error, "The measured code did not end normally, or the harness failed.");
pyo3::create_exception!(cyclescope, Unavailable, Error, "This machine lacks a requirement.");

/// Converts a failure to an exception.
pub(crate) fn exception(py: Python<'_>, failure: &Failure) -> PyErr {
    let (exception, remedy): (fn(String) -> PyErr, &str) = match failure {
        Failure::BadSnippet(bad) => (BadSnippet::new_err, bad.expected.as_deref().unwrap_or_default()),
        Failure::Run(error) => (RunError::new_err, error.remedy()),
        Failure::Unavailable(error) => (Unavailable::new_err, &error.remedy),
    };
    let message = failure.to_string();
    let has_new_remedy = !remedy.is_empty() && !message.contains(remedy);
    let error = exception(if has_new_remedy { format!("{message}; {remedy}") } else { message });
    match error.value(py).setattr("remedy", remedy) {
        Ok(()) => error,
        Err(other) => other,
    }
}
