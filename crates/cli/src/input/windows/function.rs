//! Functions of libraries: not yet on Windows.

use crate::input::call_parameters::CallParameters;
use crate::input::function_symbol::{CallbackSymbol, FunctionSymbol};
use crate::output::Failure;
use cyclescope::error::Unavailable;
use cyclescope::record::SerializedBy;
use cyclescope::study::run::RunSubject;
use std::convert::Infallible;
use std::path::Path;

/// A function in a loaded library: none.
pub struct LibraryFunction(Infallible);

/// The functions of a call.
#[expect(dead_code, reason = "the target names them on all systems")]
pub struct CallSymbols<'a> {
    /// The function.
    pub function: &'a FunctionSymbol,
    /// The one that runs before each call.
    pub setup: Option<&'a FunctionSymbol>,
    /// Those whose addresses are arguments.
    pub callbacks: &'a [CallbackSymbol],
}

impl LibraryFunction {
    /// Loads a library and finds the function.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn load(_library: &Path, source: &Path, _symbols: &CallSymbols) -> Result<LibraryFunction, Failure> {
        Err(Failure::from(Unavailable {
            what: format!("functions of {}", source.display()),
            why: "this program calls no library's functions on Windows yet".to_string(),
            remedy: "measure it on Linux, or give the function's instructions as text or --hex".to_string(),
        }))
    }

    /// Builds calls of the function.
    pub fn build_subject(&self, _with: &CallParameters, _variant: usize, _by: Option<SerializedBy>) -> RunSubject {
        match self.0 {}
    }
}
