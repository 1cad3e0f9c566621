//! The functions that a call needs: their names, and their addresses in a loaded library.

use crate::input::function_symbol::{CallbackSymbol, FunctionSymbol};
use crate::output::Failure;

/// The functions of a call.
pub struct CallSymbols<'a> {
    /// The function.
    pub function: &'a FunctionSymbol,
    /// The one that runs before each call.
    pub setup: Option<&'a FunctionSymbol>,
    /// Those whose addresses are arguments.
    pub callbacks: &'a [CallbackSymbol],
}

/// Their addresses in a copy of the library.
pub struct CallAddresses {
    /// Address of the function.
    pub function: u64,
    /// Address of the one that runs before it.
    pub setup: Option<u64>,
    /// Addresses of its arguments.
    pub callbacks: Vec<u64>,
}

impl CallAddresses {
    /// The addresses of these functions.
    pub fn find(
        symbols: &CallSymbols,
        at: impl Fn(&FunctionSymbol) -> Result<u64, Failure>,
    ) -> Result<CallAddresses, Failure> {
        Ok(CallAddresses {
            function: at(symbols.function)?,
            setup: symbols.setup.map(&at).transpose()?,
            callbacks: symbols.callbacks.iter().map(|callback| at(&callback.symbol)).collect::<Result<_, _>>()?,
        })
    }

    /// The addresses in a library that begins at `start`, if these are relative to it.
    pub fn move_to(&self, start: u64) -> CallAddresses {
        CallAddresses {
            function: start + self.function,
            setup: self.setup.map(|address| start + address),
            callbacks: self.callbacks.iter().map(|address| start + address).collect(),
        }
    }
}
