//! Tests of work that slows down if two CPUs share a core, as data.

use super::program::{ProgramFamily, asm};
use cyclescope_code::program::memory::ProgramMemory;

/// A test of what two CPUs share.
#[derive(Debug)]
pub(crate) struct SharingSpec {
    /// Kinds of work, each bound by a resource of a core. No two cores share the resource of the
    /// first.
    pub rows: &'static [SharedWork],
    /// Background load of the control: it uses nothing that the work may share.
    pub idle_load: &'static str,
    /// A description of the control's background load.
    pub load_description: &'static str,
    /// Memory of the background load, if it shares memory with the work.
    pub load_memory: Option<fn() -> ProgramMemory>,
    /// Kinds of work that always slow down on two siblings. The first of all kinds shows that two
    /// CPUs are siblings.
    pub sibling_proofs: &'static [&'static str],
    /// Share of the larger ratio by which two programs that agree may differ.
    pub tolerance_share: f64,
    /// Tests of structures that two siblings may share. Structures that a filler also occupies come
    /// first.
    pub structures: &'static [&'static str],
    /// What the number of a shared structure counts.
    pub structure_definition: &'static str,
    /// Background load that fills all these structures.
    pub filling_load: &'static str,
}

/// Work that is bound by one resource of a core.
#[derive(Debug)]
pub(crate) struct SharedWork {
    /// The record's key behind the test's name.
    pub name: &'static str,
    /// Two different programs of this work.
    pub programs: [ProgramFamily; 2],
    /// The background load for this work.
    pub background_load: BackgroundLoad,
}

/// Code that another CPU repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BackgroundLoad {
    /// Assembly.
    pub text: &'static str,
    /// How many copies of its code follow each other.
    pub copies: usize,
}

impl BackgroundLoad {
    /// One copy of a text.
    pub(crate) const fn new(text: &'static str) -> BackgroundLoad {
        BackgroundLoad { text, copies: 1 }
    }
}

impl SharedWork {
    /// Work of two texts. The first is the background load too.
    pub(crate) const fn asm(name: &'static str, one: &'static str, other: &'static str) -> SharedWork {
        SharedWork {
            name,
            programs: [asm(one).label("one program").family, asm(other).label("another").family],
            background_load: BackgroundLoad::new(one),
        }
    }
}
