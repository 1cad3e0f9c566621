//! Loads functions from libraries and builds snippets that call them; the cost of the call itself
//! is excluded.

use crate::input::call_addresses::{CallAddresses, CallSymbols};
use crate::input::call_parameters::{CallParameters, FunctionInstance};
use crate::input::empty_function::map_empty_functions;
use crate::input::library_loader;
use crate::output::Failure;
use cyclescope::asm::CodeMode;
use cyclescope::record::SerializedBy;
use cyclescope::study::run::RunSubject;
use std::path::Path;

/// A function in a loaded library, which all workers contain.
pub struct LibraryFunction {
    /// The function in each copy of the library, and the functions used with it.
    instances: Vec<FunctionInstance>,
    name: String,
    /// The file to name in messages.
    source: String,
}

impl LibraryFunction {
    /// Loads a library and finds the function, the one that runs before it, and those that are its
    /// arguments. `source` is the file to name in messages.
    pub fn load(
        library: &Path,
        source: &Path,
        symbols: &CallSymbols,
        mode: CodeMode,
    ) -> Result<LibraryFunction, Failure> {
        let addresses = library_loader::find_addresses(library, source, symbols, mode)?;
        let (name, source) = (symbols.function.display.clone(), source.display().to_string());
        let with_empty_function = |CallAddresses { function, setup, callbacks }| {
            Ok(FunctionInstance { function, setup, callbacks, empty: map_empty_functions(function, mode)? })
        };
        Ok(LibraryFunction {
            instances: addresses.into_iter().map(with_empty_function).collect::<Result<_, Failure>>()?,
            name,
            source,
        })
    }

    /// Builds calls that wait for `serialized` at each address of the function, and matching calls
    /// of a function that does nothing. `variant` is the function's number in the comparison.
    pub fn build_subject(&self, with: &CallParameters, variant: usize, serialized: Option<SerializedBy>) -> RunSubject {
        let name = with.distinguishing_text(variant).unwrap_or(&self.name);
        with.build_subject(variant, &self.instances, &format!("{name} of {}", self.source), serialized)
    }
}
