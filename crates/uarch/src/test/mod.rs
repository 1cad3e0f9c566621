//! A test of the core as data: what it asks, the programs, and what its number means.

pub(super) mod batches;
pub(super) mod chain;
pub(super) mod exchange;
mod filler;
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
use exchange::Exchanges;
pub(crate) use filler::{Filler, Window};
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
pub(crate) struct Test {
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
pub(crate) enum Part {
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
pub(crate) enum Look {
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

impl Test {
    /// The tests whose results it needs.
    pub(crate) fn needs(&self) -> Vec<&'static str> {
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
    pub(crate) fn fillers(&self) -> &'static [Filler] {
        match &self.look {
            Look::Overlap(window) => window.fillers,
            _ => &[],
        }
    }

    /// Its rows, where it has some.
    pub(crate) fn rows(&self) -> &'static [Row] {
        match &self.look {
            Look::Rates(rates) => rates.rows,
            Look::Contrast(contrast) => contrast.rows,
            _ => &[],
        }
    }

    /// The features that some of its programs need, and those with which some are left out.
    pub(crate) fn features(&self) -> impl Iterator<Item = CpuidFeature> {
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
