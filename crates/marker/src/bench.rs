//! The interface between a survey and the machine: a bench runs loops with and without a marker in
//! turn and returns their durations. It contains no statistics.

use super::anatomy::MarkerAnatomy;
use super::source::design::SiteDesign;
use super::state::MarkerState;
use super::working_set::WorkingSet;
use cyclescope_core::error::RunError;
use cyclescope_events::{EventCode, EventRefusal};
use cyclescope_exec::LockState;
use cyclescope_measure::ruler::LayoutSamples;
use std::time::Duration;

/// The calls of a round, in the order of their columns: the whole ruler, then the marker's loops.
pub mod call {
    pub(crate) use cyclescope_measure::ruler::column::{
        ADD_LONG, ADD_SHORT, IMUL_LONG, IMUL_SHORT, SENTINEL, WHOLE as RULERS,
    };

    /// The loop without the marker, with few iterations.
    pub(crate) const BASE_FEW: usize = RULERS;
    /// The loop without the marker, with many iterations.
    pub(crate) const BASE_MANY: usize = RULERS + 1;
    /// The loop with the marker, with few iterations.
    pub(crate) const SITE_FEW: usize = RULERS + 2;
    /// The loop with the marker, with many iterations.
    pub(crate) const SITE_MANY: usize = RULERS + 3;
    /// Number of calls in a round.
    pub const COUNT: usize = RULERS + 4;
}

/// A design in one state and one loop.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkerCase {
    /// The design.
    pub design: &'static SiteDesign,
    /// The state.
    pub state: MarkerState,
    /// Name of the loop.
    pub context: String,
}

/// A visit to a case at one of its placements: one untimed round of all calls, then a timed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaseVisit {
    /// Index of the placement.
    pub placement: usize,
    /// Iterations of the loops: few and many.
    pub loops: [u64; 2],
    /// Iterations of the ruler's loops.
    pub ruler_loops: u64,
}

/// Runs visits to markers.
pub trait MarkerBench {
    /// The cases that it can measure.
    fn cases(&self) -> &[MarkerCase];

    /// The code that a case's marker adds to its function.
    fn anatomy(&self, case: usize) -> Result<MarkerAnatomy, RunError>;

    /// Assumed distance in bytes from the start of a cache line to a case's functions, for counting
    /// cache lines.
    fn line_offset(&self, _case: usize) -> usize {
        0
    }

    /// Working set of a case's loop; `None` if it has no particular one.
    fn working_set(&self, _case: usize) -> Option<WorkingSet> {
        None
    }

    /// The compiler of a case's functions.
    fn compiler_name(&self, case: usize) -> &str;

    /// Distances in bytes from the start of a cache line to the functions, one per placement.
    fn placement_offsets(&self) -> &[usize];

    /// Step of its readings.
    fn clock_step(&self) -> f64;

    /// Most iterations of the longer loop of a case in a visit.
    fn most_loops(&self, _case: usize) -> u64 {
        u64::MAX
    }

    /// State of the CPU's lock, from the executor of most cases; `None` without an executor.
    fn lock_state(&self) -> Option<&LockState> {
        None
    }

    /// Time since a fixed moment. A survey's budget uses it.
    fn now(&self) -> Result<Duration, RunError>;

    /// Runs visits to a case. Returns the durations of each, with one column per entry of [`call`].
    fn run_visits(&mut self, case: usize, visits: &[CaseVisit]) -> Result<Vec<LayoutSamples>, RunError>;

    /// How many of these events, from the first one, count at the same time.
    ///
    /// # Errors
    ///
    /// If the first one does not count.
    fn count_fitting(&self, codes: &[EventCode]) -> Result<usize, EventRefusal>;

    /// Counts these events in visits to a case. Returns a count of each event for each visit, with one
    /// entry per entry of [`call`].
    fn count_visits(
        &mut self,
        case: usize,
        visits: &[CaseVisit],
        codes: &[EventCode],
    ) -> Result<Vec<Vec<Vec<f64>>>, RunError>;

    /// Number of probe calls by the marker in `loops` iterations at one placement. The same bytes
    /// run with a counting probe. `None` if the marker calls no probe.
    fn count_hits(&mut self, case: usize, placement: usize, loops: u64) -> Result<Option<u64>, RunError>;
}

/// A selection of a bench's cases.
pub struct SelectedBench<B> {
    bench: B,
    cases: Vec<MarkerCase>,
    numbers: Vec<usize>,
}

impl<B: MarkerBench> SelectedBench<B> {
    /// Selects the cases for which `wanted` is true.
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

    fn count_fitting(&self, codes: &[EventCode]) -> Result<usize, EventRefusal> {
        self.bench.count_fitting(codes)
    }

    fn count_visits(
        &mut self,
        case: usize,
        visits: &[CaseVisit],
        codes: &[EventCode],
    ) -> Result<Vec<Vec<Vec<f64>>>, RunError> {
        self.bench.count_visits(self.numbers[case], visits, codes)
    }

    fn count_hits(&mut self, case: usize, placement: usize, loops: u64) -> Result<Option<u64>, RunError> {
        self.bench.count_hits(self.numbers[case], placement, loops)
    }
}
