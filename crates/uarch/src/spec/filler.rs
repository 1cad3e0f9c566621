//! Instructions that occupy a structure of the window, as data.

use super::chain::FirstChain;
use iced_x86::CpuidFeature;

/// A structure that instructions in flight occupy.
#[derive(Debug)]
pub(crate) struct OverlapSpec {
    /// Entries that are occupied beside the fillers at the last overlap: by the last link of the chain before them and by
    /// the first link of the one behind them.
    pub chain_entries: usize,
    /// Numbers of no-operations before all with which it is tried. A core that takes and retires instructions in groups holds
    /// most where a group begins with the last link.
    pub lead_nops: &'static [usize],
    /// The chain before the fillers, and another one that shows the same. A chain that takes entries itself gives them back link
    /// by link, and the knee is less sharp. Of several such pairs the first one is taken whose chain overlaps with the one behind
    /// it where few fillers are between them, and the last one where none does.
    pub first_chains: &'static [[FirstChain; 2]],
    /// The fillers. A size needs two that agree.
    pub fillers: &'static [FillerSpec],
    /// The largest number of fillers that is tried.
    pub max_fillers: usize,
}

impl OverlapSpec {
    /// A test of fillers between these chains, of which neither takes an entry.
    pub(crate) const fn new(
        first_chains: &'static [[FirstChain; 2]],
        fillers: &'static [FillerSpec],
        max_fillers: usize,
    ) -> OverlapSpec {
        OverlapSpec { chain_entries: 0, lead_nops: &[0], first_chains, fillers, max_fillers }
    }
}

/// Instructions that occupy the entries of a structure, one each.
#[derive(Debug)]
pub(crate) struct FillerSpec {
    /// Its name.
    pub name: &'static str,
    /// The instructions, in turn. They may use RBX, RCX, RDX and R8 to R13, the areas, xmm2 to xmm15, and what no chain uses.
    pub code: &'static [&'static str],
    /// What runs once before them.
    pub prologue: &'static [&'static str],
    /// The features that they need beside those of every x86-64.
    pub required_features: &'static [CpuidFeature],
    /// Names of the tests of other structures of which each takes an entry too.
    pub also_occupies: &'static [&'static str],
    /// The same of those of which it takes one on some cores only: others have a structure of its own for it.
    pub may_occupy: &'static [&'static str],
    /// Whether some cores pack several of them into one entry.
    pub may_pack: bool,
}

impl FillerSpec {
    /// A filler without further needs.
    pub(crate) const fn new(
        name: &'static str,
        code: &'static [&'static str],
        takes: &'static [&'static str],
    ) -> FillerSpec {
        FillerSpec {
            name,
            code,
            prologue: &[],
            required_features: &[],
            also_occupies: takes,
            may_occupy: &[],
            may_pack: false,
        }
    }

    /// The same filler behind this, which runs once.
    pub(crate) const fn behind(self, prologue: &'static [&'static str]) -> FillerSpec {
        FillerSpec { prologue, ..self }
    }

    /// The same filler for CPUs with these features.
    pub(crate) const fn requiring(self, required_features: &'static [CpuidFeature]) -> FillerSpec {
        FillerSpec { required_features, ..self }
    }

    /// The same filler, which takes entries of these structures on some cores.
    pub(crate) const fn may_occupy(self, may_occupy: &'static [&'static str]) -> FillerSpec {
        FillerSpec { may_occupy, ..self }
    }

    /// The same filler, of which some cores pack several into one entry.
    pub(crate) const fn may_pack(self) -> FillerSpec {
        FillerSpec { may_pack: true, ..self }
    }

    /// The structures of which each takes an entry too, on some cores at least.
    pub(crate) fn occupied_structures(&self) -> impl Iterator<Item = &'static str> {
        self.also_occupies.iter().chain(self.may_occupy).copied()
    }
}
