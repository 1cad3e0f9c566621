//! A test of the core as data: what it asks, the programs, and what its number means.

pub(super) mod batches;
pub(super) mod chain;
pub(super) mod exchange;
pub(super) mod lengths;
pub(super) mod map;
pub(super) mod mixture;
pub(super) mod moves;
pub(super) mod queues;
pub(super) mod rate;
pub(super) mod sharing;
pub(super) mod text;
pub(super) mod walk;

use batches::Batches;
use chain::Head;
use exchange::Exchanges;
use iced_x86::CpuidFeature;
use map::Map;
use mixture::Mixture;
use queues::Queues;
use rate::{Contrast, Rates, Row, Way};
use serde::Serialize;
use sharing::Sharing;
use walk::Walks;

/// A test of one structure.
#[derive(Debug)]
pub(in crate::study::uarch) struct Test {
    /// Its name, and the key of its record.
    pub name: &'static str,
    /// What it asks, in a few words.
    pub about: &'static str,
    /// What the number counts.
    pub definition: &'static str,
    /// Where the experiment was described.
    pub source: &'static str,
    /// The part of the core that it is about.
    pub part: Part,
    /// What is measured, and looked for.
    pub look: Look,
}

/// Parts of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::study::uarch) enum Part {
    /// What fetches, predicts and decodes.
    FrontEnd,
    /// What holds instructions until they retire.
    Window,
    /// Renaming, and what executes.
    Execution,
    /// Caches and translation.
    Memory,
    /// What is told of them, and what other work takes.
    Environment,
}

/// What a test looks for.
#[derive(Debug)]
pub(in crate::study::uarch) enum Look {
    /// The number of fillers at which two chains no longer overlap.
    Overlap(Window),
    /// The counts at which a step begins to take longer, and what it takes between them.
    Levels(Walks),
    /// What events cost.
    Contrast(Contrast),
    /// What the numbers of other tests, which these names are of, and all readings tell of the machine.
    Environment {
        /// The tests.
        reads: &'static [&'static str],
    },
    /// How many of something the core does in each cycle, or how many cycles one takes.
    Rates(Rates),
    /// How much longer work takes beside the same work on another CPU.
    Sharing(Sharing),
    /// How long a line takes from one CPU to another.
    Exchanges(Exchanges),
    /// What a program costs at each place.
    Map(Map),
    /// Which instructions slow each other down.
    Mixture(Mixture),
    /// How many events are on their way at once.
    Batches(Batches),
    /// Which classes of instructions wait in the same queue.
    Queues(Queues),
}

/// A structure that instructions in flight occupy.
#[derive(Debug)]
pub(in crate::study::uarch) struct Window {
    /// Entries that are occupied beside the fillers at the last overlap: by the last link of the chain before them and by
    /// the first link of the one behind them.
    pub beside: usize,
    /// Numbers of no-operations before all with which it is tried. A core that takes and retires instructions in groups holds
    /// most where a group begins with the last link.
    pub leads: &'static [usize],
    /// The chain before the fillers, and another one that shows the same. A chain that takes entries itself gives them back link
    /// by link, and the knee is less sharp. Of several such pairs the first one is taken whose chain overlaps with the one behind
    /// it where few fillers are between them, and the last one where none does.
    pub heads: &'static [[Head; 2]],
    /// The fillers. A size needs two that agree.
    pub fillers: &'static [Filler],
    /// The largest number of fillers that is tried.
    pub most: usize,
}

/// Instructions that occupy the entries of a structure, one each.
#[derive(Debug)]
pub(in crate::study::uarch) struct Filler {
    /// Its name.
    pub name: &'static str,
    /// The instructions, in turn. They may use RBX, RCX, RDX and R8 to R13, the areas, xmm2 to xmm15, and what no chain uses.
    pub code: &'static [&'static str],
    /// What runs once before them.
    pub before: &'static [&'static str],
    /// The features that they need beside those of every x86-64.
    pub needs: &'static [CpuidFeature],
    /// Names of the tests of other structures of which each takes an entry too.
    pub takes: &'static [&'static str],
    /// The same of those of which it takes one on some cores only: others have a structure of its own for it.
    pub shares: &'static [&'static str],
    /// Whether some cores pack several of them into one entry.
    pub packs: bool,
}

impl Filler {
    /// A filler without further needs.
    pub(in crate::study::uarch) const fn plain(
        name: &'static str,
        code: &'static [&'static str],
        takes: &'static [&'static str],
    ) -> Filler {
        Filler { name, code, before: &[], needs: &[], takes, shares: &[], packs: false }
    }

    /// The structures of which each takes an entry too, on some cores at least.
    pub(in crate::study::uarch) fn others(&self) -> impl Iterator<Item = &'static str> {
        self.takes.iter().chain(self.shares).copied()
    }
}

impl Test {
    /// The tests whose results it needs.
    pub(in crate::study::uarch) fn needs(&self) -> Vec<&'static str> {
        match &self.look {
            Look::Environment { reads } => reads.to_vec(),
            Look::Rates(rates) => {
                let bounds = rates.rows.iter().filter_map(|row| row.bound);
                rates.within.iter().map(|(test, _)| *test).chain(bounds).collect()
            }
            Look::Sharing(sharing) => sharing.structures.to_vec(),
            Look::Levels(walks) => walks.takes.iter().map(|(test, _)| *test).collect(),
            Look::Batches(batches) => batches.takes.iter().map(|(test, _)| *test).collect(),
            Look::Queues(queues) => queues.classes.iter().map(|class| class.test).collect(),
            _ => self.fillers().iter().flat_map(Filler::others).collect(),
        }
    }

    /// Its fillers, where it has some.
    pub(in crate::study::uarch) fn fillers(&self) -> &'static [Filler] {
        match &self.look {
            Look::Overlap(window) => window.fillers,
            _ => &[],
        }
    }

    /// Its rows, where it has some.
    pub(in crate::study::uarch) fn rows(&self) -> &'static [Row] {
        match &self.look {
            Look::Rates(rates) => rates.rows,
            Look::Contrast(contrast) => contrast.rows,
            _ => &[],
        }
    }

    /// The features that some of its programs need, and those with which some are left out.
    pub(in crate::study::uarch) fn features(&self) -> impl Iterator<Item = CpuidFeature> {
        let rows = self.rows();
        let ways = rows.iter().flat_map(|row| row.ways);
        let asked = |way: &'static Way| way.needs.iter().copied().chain(way.unless);
        let of_rows = rows.iter().flat_map(|row| row.needs).copied().chain(ways.flat_map(asked));
        let courses = match &self.look {
            Look::Map(map) => map.rows,
            _ => &[],
        };
        let of_courses = courses.iter().flat_map(|course| course.needs).copied();
        self.fillers().iter().flat_map(|filler| filler.needs).copied().chain(of_rows).chain(of_courses)
    }
}
