//! Work that two CPUs may have to share a core for, as data.

use super::program::{ProgramFamily, asm};
use cyclescope_code::program::memory::ProgramMemory;

/// A test of what two CPUs share.
#[derive(Debug)]
pub(crate) struct SharingSpec {
    /// Kinds of work, each bound by something of a core; the first by what no two cores share.
    pub rows: &'static [SharedWork],
    /// What the other CPU runs beside a control: nothing that the work could share.
    pub idle_load: &'static str,
    /// What the other CPU does beside the work, in words.
    pub load_description: &'static str,
    /// The memory of the other CPU's code, where it has some in common with the work.
    pub load_memory: Option<fn() -> ProgramMemory>,
    /// Names of the kinds of work that no two CPUs of one core do as fast as each alone. The first of all kinds shows that two CPUs are of one core.
    pub sibling_proofs: &'static [&'static str],
    /// Share of the larger ratio by which two programs may differ that agree.
    pub tolerance_share: f64,
    /// Names of the tests of structures that the two threads of a core may have to share: those that a filler takes come first.
    pub structures: &'static [&'static str],
    /// What the number of such a structure counts.
    pub structure_definition: &'static str,
    /// What the other CPU runs to fill them all.
    pub filling_load: &'static str,
}

/// Work that is bound by something of a core.
#[derive(Debug)]
pub(crate) struct SharedWork {
    /// The rest of its key.
    pub name: &'static str,
    /// Unlike programs of it.
    pub programs: [ProgramFamily; 2],
    /// What the other CPU runs beside it.
    pub background_load: &'static str,
}

impl SharedWork {
    /// Work as text, of which the other CPU runs the first one.
    pub(crate) const fn asm(name: &'static str, one: &'static str, other: &'static str) -> SharedWork {
        SharedWork {
            name,
            programs: [asm(one).label("one program").family, asm(other).label("another").family],
            background_load: one,
        }
    }
}
