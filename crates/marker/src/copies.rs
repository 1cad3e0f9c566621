//! The copies of a bench: of each function one at each placement, in memory near the function.

use super::compiled::Code;
use super::instance::{Misfit, Region, bytes};
use super::source::design::Enabling;
use cyclescope_core::error::RunError;
use std::collections::HashMap;

/// The bytes of a line of the cache.
const LINE: usize = 64;

/// Which copy of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Variant {
    /// Whether its bytes are those of the enabled marker, where enabling patches any.
    pub(super) enabled: bool,
    /// Whether a tracer is to attach to it.
    pub(super) traced: bool,
}

impl Variant {
    /// The bytes as they were compiled.
    pub(super) const DORMANT: Variant = Variant { enabled: false, traced: false };
}

/// Copies of functions, each made once.
pub(super) struct Copies<'a> {
    offsets: &'a [usize],
    entries: HashMap<(u64, Variant), Vec<u64>>,
    /// The last is for the functions that are copied now.
    regions: Vec<Region>,
    failed: Option<RunError>,
}

impl Copies<'_> {
    /// None yet. Each function gets a copy at each of these offsets from the start of a cache line.
    pub(super) fn new(offsets: &[usize]) -> Copies<'_> {
        Copies { offsets, entries: HashMap::new(), regions: Vec::new(), failed: None }
    }

    /// Makes room for the copies of functions of one origin, near them: of others that may be too far away.
    pub(super) fn reserve(&mut self, codes: &[Code]) -> Result<(), RunError> {
        let Some(first) = codes.first() else { return Ok(()) };
        // Dormant, and enabled or with a tracer.
        let each = |code: &Code| 2 * self.offsets.len() * (code.bytes.len() + 2 * LINE);
        self.regions.push(Region::near(first.start, codes.iter().map(each).sum())?);
        Ok(())
    }

    /// The entries of a function's copies, one for each placement. Those that a tracer is to attach to are copies of
    /// their own.
    pub(super) fn of(
        &mut self,
        code: &Code,
        enabling: Enabling,
        variant: Variant,
    ) -> Result<Vec<u64>, Misfit> {
        let Variant { enabled, traced } = variant;
        let key = (code.start, Variant { enabled: enabled && !code.sites.is_empty(), traced });
        if let Some(entries) = self.entries.get(&key) {
            return Ok(entries.clone());
        }
        let region = self.regions.last_mut().expect("room is made before");
        let mut entries = Vec::new();
        for offset in self.offsets {
            // What lies at the offset is the loop's function, not one that lies before it.
            let at = region.next((offset + LINE - code.entry % LINE) % LINE);
            if let Err(error) = region.put(at, &bytes(code, at, enabling, enabled)?) {
                self.failed = Some(error);
            }
            entries.push(at + code.entry as u64);
        }
        self.entries.insert(key, entries.clone());
        Ok(entries)
    }

    /// The memory that they are in; an error where one could not be made.
    pub(super) fn close(self) -> Result<Vec<Region>, RunError> {
        self.failed.map_or(Ok(self.regions), Err)
    }
}
