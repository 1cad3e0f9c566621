//! What a survey measures with: something that runs loops with and without a marker side by side, and returns their
//! durations. It knows nothing of statistics.

use super::anatomy::MarkerAnatomy;
use super::source::design::SiteDesign;
use super::state::MarkerState;
use super::working_set::WorkingSet;
use cyclescope_core::error::RunError;
use cyclescope_exec::LockState;
use cyclescope_measure::ruler::LayoutSamples;
use std::time::Duration;

/// The calls of a round, in the order of their columns: those of the whole ruler, then the marker's.
pub mod call {
    pub(crate) use cyclescope_measure::ruler::column::{
        ADD_LONG, ADD_SHORT, IMUL_LONG, IMUL_SHORT, SENTINEL, WHOLE as RULERS,
    };

    /// The loop without the marker, fewer times around.
    pub(crate) const BASE_FEW: usize = RULERS;
    /// The same, more times.
    pub(crate) const BASE_MANY: usize = RULERS + 1;
    /// The loop with the marker, fewer times around.
    pub(crate) const SITE_FEW: usize = RULERS + 2;
    /// The same, more times.
    pub(crate) const SITE_MANY: usize = RULERS + 3;
    /// Calls in a round.
    pub const COUNT: usize = RULERS + 4;
}

/// A design in one state and one loop.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkerCase {
    /// Its design.
    pub design: &'static SiteDesign,
    /// Its state.
    pub state: MarkerState,
    /// The loop that it is in.
    pub context: String,
}

/// A visit to a case at one of its placements: a round of all calls that counts, after one that doesn't.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaseVisit {
    /// Which of its placements.
    pub placement: usize,
    /// How often the loops go around: fewer and more times.
    pub loops: [u64; 2],
    /// How often the ruler's loops go around.
    pub ruler_loops: u64,
}

/// Runs visits.
pub trait MarkerBench {
    /// What it can measure.
    fn cases(&self) -> &[MarkerCase];

    /// What a case's marker adds to its function.
    fn anatomy(&self, case: usize) -> Result<MarkerAnatomy, RunError>;

    /// How many bytes behind the start of a cache line a case's functions are taken to begin, to count the lines that
    /// they lie in.
    fn line_offset(&self, _case: usize) -> usize {
        0
    }

    /// The working set of a case's loop; none where it has no particular one.
    fn working_set(&self, _case: usize) -> Option<WorkingSet> {
        None
    }

    /// The compiler that made a case's functions.
    fn compiler_name(&self, case: usize) -> &str;

    /// How many bytes each placement's functions lie behind the start of a cache line.
    fn placement_offsets(&self) -> &[usize];

    /// The step of its readings.
    fn clock_step(&self) -> f64;

    /// How often the longer of a case's loops can go around in a visit; a survey keeps below it.
    fn most_loops(&self, _case: usize) -> u64 {
        u64::MAX
    }

    /// How the lock of the CPU was found by the executor of most cases; none where no executor runs them.
    fn lock_state(&self) -> Option<&LockState> {
        None
    }

    /// The time since a fixed moment, by which a survey's budget goes.
    fn now(&self) -> Result<Duration, RunError>;

    /// Runs visits to a case, and returns the durations of each: a column for each of [`call`].
    fn run_visits(&mut self, case: usize, visits: &[CaseVisit]) -> Result<Vec<LayoutSamples>, RunError>;

    /// How often the marker called its probe in this number of loops at one placement: the same bytes with another
    /// probe, which counts. None where it calls none.
    fn count_hits(&mut self, case: usize, placement: usize, loops: u64) -> Result<Option<u64>, RunError>;
}

/// Some of a bench's cases.
pub struct SelectedBench<B> {
    bench: B,
    cases: Vec<MarkerCase>,
    numbers: Vec<usize>,
}

impl<B: MarkerBench> SelectedBench<B> {
    /// Those that are wanted.
    pub fn new(bench: B, wanted: impl Fn(&MarkerCase) -> bool) -> SelectedBench<B> {
        let numbers: Vec<usize> = (0..bench.cases().len()).filter(|number| wanted(&bench.cases()[*number])).collect();
        let cases = numbers.iter().map(|number| bench.cases()[*number].clone()).collect();
        SelectedBench { bench, cases, numbers }
    }
}

impl<B: MarkerBench> MarkerBench for SelectedBench<B> {
    fn cases(&self) -> &[MarkerCase] {
        &self.cases
    }

    fn anatomy(&self, case: usize) -> Result<MarkerAnatomy, RunError> {
        self.bench.anatomy(self.numbers[case])
    }

    fn line_offset(&self, case: usize) -> usize {
        self.bench.line_offset(self.numbers[case])
    }

    fn working_set(&self, case: usize) -> Option<WorkingSet> {
        self.bench.working_set(self.numbers[case])
    }

    fn compiler_name(&self, case: usize) -> &str {
        self.bench.compiler_name(self.numbers[case])
    }

    fn placement_offsets(&self) -> &[usize] {
        self.bench.placement_offsets()
    }

    fn clock_step(&self) -> f64 {
        self.bench.clock_step()
    }

    fn most_loops(&self, case: usize) -> u64 {
        self.bench.most_loops(self.numbers[case])
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.bench.lock_state()
    }

    fn now(&self) -> Result<Duration, RunError> {
        self.bench.now()
    }

    fn run_visits(&mut self, case: usize, visits: &[CaseVisit]) -> Result<Vec<LayoutSamples>, RunError> {
        self.bench.run_visits(self.numbers[case], visits)
    }

    fn count_hits(&mut self, case: usize, placement: usize, loops: u64) -> Result<Option<u64>, RunError> {
        self.bench.count_hits(self.numbers[case], placement, loops)
    }
}
