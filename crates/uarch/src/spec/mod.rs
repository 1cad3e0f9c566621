//! Tests as data: the question, the programs, and what the number counts.

mod batches;
mod chain;
mod cost_map;
mod data_moves;
mod exchange;
mod fade;
mod filler;
mod levels;
mod loops;
mod mixture;
mod program;
mod queues;
mod random_visits;
mod rate;
mod rooms;
mod sharing;
mod sized_instructions;
mod step_loop;

pub(crate) use batches::*;
pub(crate) use chain::*;
pub(crate) use cost_map::*;
pub(crate) use cyclescope_core::unit::Unit;
pub(crate) use data_moves::*;
pub(crate) use exchange::*;
pub(crate) use fade::*;
pub(crate) use filler::*;
pub(crate) use iced_x86::CpuidFeature;
pub(crate) use levels::*;
pub(crate) use loops::*;
pub(crate) use mixture::*;
pub(crate) use program::*;
pub(crate) use queues::*;
pub(crate) use random_visits::*;
pub(crate) use rate::*;
pub(crate) use rooms::*;
use serde::{Deserialize, Serialize};
pub(crate) use sharing::*;
pub(crate) use sized_instructions::*;
pub(crate) use step_loop::*;

// Sources of several tests.
pub(crate) const FOG: &str = "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)";
pub(crate) const FOG_TEST_PROGRAMS: &str =
    "A. Fog, Test programs for measuring clock cycles and performance monitoring (2024)";
pub(crate) const GODBOLT: &str = "M. Godbolt, The BTB in contemporary Intel chips (2016)";
pub(crate) const SAAVEDRA: &str =
    "R. Saavedra and A. Smith, Measuring Cache and TLB Performance and Their Effect on Benchmark Runtimes (1995)";
pub(crate) const WONG: &str = "H. Wong, Measuring Reorder Buffer Capacity (2013)";

/// A test of one structure.
#[derive(Debug)]
pub(crate) struct TestSpec {
    /// The name, and the record's key.
    pub name: &'static str,
    /// The question in a few words, as `--list` shows it.
    pub about: &'static str,
    /// What the number counts.
    pub definition: &'static str,
    /// The source of the experiment.
    pub source: &'static str,
    /// The scripts of A. Fog's test programs that the test answers.
    pub answers: &'static [&'static str],
    /// The part of the core that it is about.
    pub part: TestedPart,
    /// The programs, and how results follow from their costs.
    pub experiment: Experiment,
}

/// Parts of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum TestedPart {
    /// Fetch, prediction and decoding.
    FrontEnd,
    /// Structures that hold instructions until they retire.
    #[default]
    Window,
    /// Renaming and execution.
    Execution,
    /// Caches and translation.
    Memory,
    /// Reports of CPUID and the kernel, and background load.
    Environment,
}

/// The kind of experiment.
#[derive(Debug)]
pub(crate) enum Experiment {
    /// The number of fillers at which two chains stop overlapping.
    Overlap(OverlapSpec),
    /// The counts at which the cost of a step rises, and its cost between them.
    Levels(LevelsSpec),
    /// What events cost.
    Contrast(ContrastSpec),
    /// What other tests' numbers and all readings show about the machine.
    Environment {
        /// The names of those tests.
        reads: &'static [&'static str],
    },
    /// How many of something the core does per cycle, or how many cycles one takes.
    Rates(RatesSpec),
    /// How much longer work takes while another CPU does the same.
    Sharing(SharingSpec),
    /// How long a line takes from one CPU to another.
    Exchanges(ExchangesSpec),
    /// How long a slow start behind a rest lasts.
    Fades(FadesSpec),
    /// How much more room code takes in a structure than other code.
    Rooms(RoomsSpec),
    /// What a program costs at each place.
    CostMap(CostMapSpec),
    /// Which instructions slow each other down.
    Mixture(MixtureSpec),
    /// How many events are in flight at once.
    Batches(BatchesSpec),
    /// Which classes of instructions wait in the same queue.
    Queues(QueuesSpec),
    /// How many items a structure holds that is visited at random.
    RandomVisits(RandomVisitsSpec),
}

impl TestSpec {
    /// The tests whose results this one needs.
    pub(crate) fn required_tests(&self) -> Vec<&'static str> {
        match &self.experiment {
            Experiment::Environment { reads } => reads.to_vec(),
            Experiment::Rates(rates) => {
                let bounds = rates.rows.iter().filter_map(|row| row.bounding_test);
                rates.required_entries.iter().map(|(test, _)| *test).chain(bounds).collect()
            }
            Experiment::Sharing(sharing) => sharing.structures.to_vec(),
            Experiment::Levels(levels) => levels.also_occupies.iter().map(|(test, _)| *test).collect(),
            Experiment::Batches(batches) => batches.also_occupies.iter().map(|(test, _)| *test).collect(),
            Experiment::Queues(queues) => queues.classes.iter().map(|class| class.size_test).collect(),
            _ => self.fillers().iter().flat_map(FillerSpec::occupied_structures).collect(),
        }
    }

    /// The fillers, if it has any.
    pub(crate) fn fillers(&self) -> &'static [FillerSpec] {
        match &self.experiment {
            Experiment::Overlap(window) => window.fillers,
            _ => &[],
        }
    }

    /// The rows, if it has any.
    pub(crate) fn rows(&self) -> &'static [TestRow] {
        match &self.experiment {
            Experiment::Rates(rates) => rates.rows,
            Experiment::Contrast(contrast) => contrast.rows,
            _ => &[],
        }
    }

    /// CPU features that some of its programs require or exclude.
    pub(crate) fn used_features(&self) -> impl Iterator<Item = CpuidFeature> {
        let rows = self.rows();
        let variants = rows.iter().flat_map(|row| row.variants);
        let asked = |variant: &'static ProgramVariant| {
            variant.required_features.iter().copied().chain(variant.excluded_feature)
        };
        let of_rows = rows.iter().flat_map(|row| row.required_features).copied().chain(variants.flat_map(asked));
        let courses = match &self.experiment {
            Experiment::CostMap(map) => map.rows,
            _ => &[],
        };
        let fades = match &self.experiment {
            Experiment::Fades(fades) => fades.rows,
            _ => &[],
        };
        let of_fades = fades.iter().flat_map(|row| row.required_features).copied();
        let of_courses = courses.iter().flat_map(|course| course.required_features).copied();
        self.fillers()
            .iter()
            .flat_map(|filler| filler.required_features)
            .copied()
            .chain(of_rows)
            .chain(of_courses)
            .chain(of_fades)
    }
}
