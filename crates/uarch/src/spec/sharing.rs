//! Work that is slower if two CPUs share a core, as data.

use super::program::{ProgramFamily, asm};
use cyclescope_code::program::memory::ProgramMemory;

/// A test of what two CPUs share.
#[derive(Debug)]
pub(crate) struct SharingSpec {
    /// Kinds of work, each bound by a resource of a core. No two cores share the first one's.
    pub rows: &'static [SharedWork],
    /// Background load of the control: it uses nothing that the work could share.
    pub idle_load: &'static str,
    /// The background load in words.
    pub load_description: &'static str,
    /// Memory of the background load, if it shares memory with the work.
    pub load_memory: Option<fn() -> ProgramMemory>,
    /// Kinds of work that two siblings never do as fast as each alone. The first of all kinds shows
    /// that two CPUs are siblings.
    pub sibling_proofs: &'static [&'static str],
    /// Share of the larger ratio by which two programs that agree may differ.
    pub tolerance_share: f64,
    /// Tests of structures that two siblings may share. Those that a filler occupies come first.
    pub structures: &'static [&'static str],
    /// What the number of a shared structure counts.
    pub structure_definition: &'static str,
    /// Background load that fills all of them.
    pub filling_load: &'static str,
}

/// Work that is bound by one resource of a core.
#[derive(Debug)]
pub(crate) struct SharedWork {
    /// The key of its record, behind the test's name.
    pub name: &'static str,
    /// Unlike programs of it.
    pub programs: [ProgramFamily; 2],
    /// The background load.
    pub background_load: &'static str,
}

impl SharedWork {
    /// Work of two texts. The first one is the background load too.
    pub(crate) const fn asm(name: &'static str, one: &'static str, other: &'static str) -> SharedWork {
        SharedWork {
            name,
            programs: [asm(one).label("one program").family, asm(other).label("another").family],
            background_load: one,
        }
    }
}
