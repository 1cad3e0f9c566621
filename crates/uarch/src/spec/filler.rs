//! Instructions that occupy a structure of the window, as data.

use super::chain::FirstChain;
use iced_x86::CpuidFeature;

/// A structure that instructions in flight occupy.
#[derive(Debug)]
pub(crate) struct OverlapSpec {
    /// Entries that the chains still occupy at the last overlap: of the last link before the
    /// fillers and the first link behind them.
    pub chain_entries: usize,
    /// Numbers of leading no-operations to try. A core that retires instructions in groups holds
    /// most if a group begins with the last link.
    pub lead_nops: &'static [usize],
    /// Pairs of first chains: the chain before the fillers, and another one to confirm it. A chain
    /// that takes entries itself frees them link by link, and the knee is less sharp. The study
    /// takes the first pair whose chain overlaps with the second chain across few fillers, or else
    /// the last pair.
    pub first_chains: &'static [[FirstChain; 2]],
    /// The fillers. A size needs two that agree.
    pub fillers: &'static [FillerSpec],
    /// The largest number of fillers to try.
    pub max_fillers: usize,
}

impl OverlapSpec {
    /// A test of fillers between chains that take no entries.
    pub(crate) const fn new(
        first_chains: &'static [[FirstChain; 2]],
        fillers: &'static [FillerSpec],
        max_fillers: usize,
    ) -> OverlapSpec {
        OverlapSpec { chain_entries: 0, lead_nops: &[0], first_chains, fillers, max_fillers }
    }
}

/// Instructions that occupy one entry of a structure each.
#[derive(Debug)]
pub(crate) struct FillerSpec {
    /// The name in results.
    pub name: &'static str,
    /// The instructions, in turn. They may use RBX, RCX, RDX, R8 to R13, XMM2 to XMM15, memory, and
    /// everything that no chain uses.
    pub code: &'static [&'static str],
    /// Untimed setup before them.
    pub prologue: &'static [&'static str],
    /// CPU features that they need beyond x86-64.
    pub required_features: &'static [CpuidFeature],
    /// Tests of other structures in which each filler takes an entry too.
    pub also_occupies: &'static [&'static str],
    /// Tests of structures in which each filler takes an entry on some cores. Other cores have a
    /// separate structure.
    pub may_occupy: &'static [&'static str],
    /// Whether some cores pack several fillers into one entry.
    pub may_pack: bool,
}

impl FillerSpec {
    /// A filler that also takes an entry in each of these structures.
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

    /// Sets the untimed setup.
    pub(crate) const fn behind(self, prologue: &'static [&'static str]) -> FillerSpec {
        FillerSpec { prologue, ..self }
    }

    /// Restricts it to CPUs with these features.
    pub(crate) const fn requiring(self, required_features: &'static [CpuidFeature]) -> FillerSpec {
        FillerSpec { required_features, ..self }
    }

    /// Adds structures in which it takes entries on some cores.
    pub(crate) const fn may_occupy(self, may_occupy: &'static [&'static str]) -> FillerSpec {
        FillerSpec { may_occupy, ..self }
    }

    /// Marks it as one that some cores pack into one entry.
    pub(crate) const fn may_pack(self) -> FillerSpec {
        FillerSpec { may_pack: true, ..self }
    }

    /// The structures in which a filler takes an entry too, at least on some cores.
    pub(crate) fn occupied_structures(&self) -> impl Iterator<Item = &'static str> {
        self.also_occupies.iter().chain(self.may_occupy).copied()
    }
}
