//! The copies of a bench: of each function one at each placement, in memory near the function.

use super::compiled_design::CompiledFunction;
use super::copy_region::{CopyMisfit, CopyRegion, copy_bytes};
use super::source::design::Enabling;
use cyclescope_core::error::RunError;
use std::collections::HashMap;

/// The bytes of a line of the cache.
const CACHE_LINE: usize = 64;

/// Which copy of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CopyVariant {
    /// Whether its bytes are those of the enabled marker, where enabling patches any.
    pub(super) enabled: bool,
    /// Whether a tracer is to attach to it.
    pub(super) traced: bool,
}

impl CopyVariant {
    /// The bytes as they were compiled.
    pub(super) const DORMANT: CopyVariant = CopyVariant { enabled: false, traced: false };
}

/// Copies of functions, each made once.
pub(super) struct FunctionCopies<'a> {
    offsets: &'a [usize],
    entries: HashMap<(u64, CopyVariant), Vec<u64>>,
    /// The last is for the functions that are copied now.
    regions: Vec<CopyRegion>,
    failed: Option<RunError>,
}

impl FunctionCopies<'_> {
    /// None yet. Each function gets a copy at each of these offsets from the start of a cache line.
    pub(super) fn new(offsets: &[usize]) -> FunctionCopies<'_> {
        FunctionCopies { offsets, entries: HashMap::new(), regions: Vec::new(), failed: None }
    }

    /// Makes room for the copies of functions of one origin, near them: of others that may be too far away.
    pub(super) fn reserve_region(&mut self, codes: &[CompiledFunction]) -> Result<(), RunError> {
        let Some(first) = codes.first() else { return Ok(()) };
        // Dormant, and enabled or with a tracer.
        let each = |code: &CompiledFunction| 2 * self.offsets.len() * (code.bytes.len() + 2 * CACHE_LINE);
        self.regions.push(CopyRegion::map_near(first.start, codes.iter().map(each).sum())?);
        Ok(())
    }

    /// The entries of a function's copies, one for each placement. Those that a tracer is to attach to are copies of
    /// their own.
    pub(super) fn copy_function(
        &mut self,
        code: &CompiledFunction,
        enabling: Enabling,
        variant: CopyVariant,
    ) -> Result<Vec<u64>, CopyMisfit> {
        let CopyVariant { enabled, traced } = variant;
        let key = (code.start, CopyVariant { enabled: enabled && !code.sites.is_empty(), traced });
        if let Some(entries) = self.entries.get(&key) {
            return Ok(entries.clone());
        }
        let region = self.regions.last_mut().expect("room is made before");
        let mut entries = Vec::new();
        for offset in self.offsets {
            // What lies at the offset is the loop's function, not one that lies before it.
            let at = region.next_address((offset + CACHE_LINE - code.entry % CACHE_LINE) % CACHE_LINE);
            if let Err(error) = region.write_copy(at, &copy_bytes(code, at, enabling, enabled)?) {
                self.failed = Some(error);
            }
            entries.push(at + code.entry as u64);
        }
        self.entries.insert(key, entries.clone());
        Ok(entries)
    }

    /// The memory that they are in; an error where one could not be made.
    pub(super) fn into_regions(self) -> Result<Vec<CopyRegion>, RunError> {
        self.failed.map_or(Ok(self.regions), Err)
    }
}
