//! A function as machine code.

use crate::compiled_design::{CompiledFunction, PatchSite};
use cyclescope_code::asm::CodeMode;

/// A function from a compiler or elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct FunctionCode<'a> {
    /// The mode of its code.
    pub mode: CodeMode,
    /// Address of its first byte.
    pub start: u64,
    /// Its bytes while the marker is dormant, including functions stored with it.
    pub bytes: &'a [u8],
    /// Offset of its entry point.
    pub entry: usize,
    /// The places that enabling patches, or where a tracer sets its breakpoint if known.
    pub sites: &'a [PatchSite],
}

impl<'a> From<&'a CompiledFunction> for FunctionCode<'a> {
    fn from(code: &'a CompiledFunction) -> FunctionCode<'a> {
        FunctionCode { mode: code.mode, start: code.start, bytes: code.bytes, entry: code.entry, sites: &code.sites }
    }
}
