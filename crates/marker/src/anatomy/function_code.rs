//! A function as machine code.

use crate::compiled_design::{CompiledFunction, PatchSite};

/// A function: the compiler's, or of any other origin.
#[derive(Debug, Clone, Copy)]
pub struct FunctionCode<'a> {
    /// The address of its first byte.
    pub start: u64,
    /// Its bytes while the marker is dormant, and those of functions that lie with it.
    pub bytes: &'a [u8],
    /// Where it is entered, from its start.
    pub entry: usize,
    /// The places that enabling patches, or where a tracer sets its breakpoint if that is known.
    pub sites: &'a [PatchSite],
}

impl<'a> From<&'a CompiledFunction> for FunctionCode<'a> {
    fn from(code: &'a CompiledFunction) -> FunctionCode<'a> {
        FunctionCode { start: code.start, bytes: code.bytes, entry: code.entry, sites: &code.sites }
    }
}
