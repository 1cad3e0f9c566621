//! The copies of a bench: one of each function at each placement, in memory near the function.

use super::compiled_design::CompiledFunction;
use super::copy_region::{CopyMisfit, CopyRegion, copy_bytes};
use super::source::design::Enabling;
use cyclescope_core::error::RunError;
use std::collections::HashMap;

/// Bytes in a cache line.
const CACHE_LINE: usize = 64;

/// Variant of a function's copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CopyVariant {
    /// Whether it has the enabled marker's bytes, if enabling patches any.
    pub(super) enabled: bool,
    /// Whether a tracer will attach to it.
    pub(super) traced: bool,
}

impl CopyVariant {
    /// The bytes as compiled.
    pub(super) const DORMANT: CopyVariant = CopyVariant { enabled: false, traced: false };
}

/// Copies of functions, each made once.
pub(super) struct FunctionCopies<'a> {
    offsets: &'a [usize],
    entries: HashMap<(u64, CopyVariant), Vec<u64>>,
    /// The last region receives new copies.
    regions: Vec<CopyRegion>,
    failed: Option<RunError>,
}

impl FunctionCopies<'_> {
    /// Starts without copies. Each function gets a copy at each of these offsets from the start of
    /// a cache line.
    pub(super) fn new(offsets: &[usize]) -> FunctionCopies<'_> {
        FunctionCopies { offsets, entries: HashMap::new(), regions: Vec::new(), failed: None }
    }

    /// Reserves a region near functions of one origin. Regions of other origins may be too far
    /// away.
    pub(super) fn reserve_region(&mut self, codes: &[CompiledFunction]) -> Result<(), RunError> {
        let Some(first) = codes.first() else { return Ok(()) };
        // One dormant copy, and one that is enabled or traced.
        let each = |code: &CompiledFunction| 2 * self.offsets.len() * (code.bytes.len() + 2 * CACHE_LINE);
        self.regions.push(CopyRegion::map_near(first.start, codes.iter().map(each).sum())?);
        Ok(())
    }

    /// The entry points of a function's copies, one per placement. Traced copies are separate.
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
            // The offset applies to the loop's function, not to one stored before it.
            let at = region.next_address((offset + CACHE_LINE - code.entry % CACHE_LINE) % CACHE_LINE);
            if let Err(error) = region.write_copy(at, &copy_bytes(code, at, enabling, enabled)?) {
                self.failed = Some(error);
            }
            entries.push(at + code.entry as u64);
        }
        self.entries.insert(key, entries.clone());
        Ok(entries)
    }

    /// The memory of all copies, or the first error.
    pub(super) fn into_regions(self) -> Result<Vec<CopyRegion>, RunError> {
        self.failed.map_or(Ok(self.regions), Err)
    }
}
