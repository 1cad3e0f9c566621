//! A function as machine code.

use crate::compiled::{Code, Site};

/// A function: the compiler's, or of any other origin.
#[derive(Debug, Clone, Copy)]
pub struct Function<'a> {
    /// The address of its first byte.
    pub start: u64,
    /// Its bytes while the marker is dormant, and those of functions that lie with it.
    pub bytes: &'a [u8],
    /// Where it is entered, from its start.
    pub entry: usize,
    /// The places that enabling patches, or where a tracer sets its breakpoint if that is known.
    pub sites: &'a [Site],
}

impl<'a> From<&'a Code> for Function<'a> {
    fn from(code: &'a Code) -> Function<'a> {
        Function { start: code.start, bytes: code.bytes, entry: code.entry, sites: &code.sites }
    }
}
