//! Samples of a measurement, and its result.

use super::estimate::{CostEstimate, LayoutData, RoundShape, estimate_cost};
use super::question::CostFormula;
use super::steadiness::UnsteadyState;
use cyclescope_core::error::RunError;
use cyclescope_exec::CounterProgress;
use std::rc::Rc;
use std::time::Duration;

/// The samples of one unit and warm-up, and the parameters that produced them.
#[derive(Debug, Clone)]
pub struct Acquisition {
    /// The unit u of each snippet: approximate number of repeats (copies or iterations) in its
    /// shortest body.
    pub units: Vec<usize>,
    /// Untimed rounds at the start of each layout.
    pub warm_up: u32,
    /// Iterations of the ruler's loops, approximate.
    pub ruler_loops: u64,
    /// Whether the measurement chose the iterations of the loop around the copies.
    pub loop_is_chosen: bool,
    /// Parameters needed to interpret the durations of rounds.
    pub shape: RoundShape,
    /// Timed rounds in each layout.
    pub rounds: u32,
    /// Number of placements that each layout's samples come from.
    pub placements: usize,
    /// Durations of each layout's calls.
    pub layouts: Vec<LayoutData>,
    /// Increments of TSC, APERF and MPERF during the measurement; `None` if the executor does not
    /// read them.
    pub progress: Option<CounterProgress>,
    /// Upper bound on a round's duration in seconds.
    pub round_s: f64,
    /// Largest number of calls of each function before the first round of a layout; `None` without
    /// training.
    pub training: Option<u64>,
}

/// Core cycles of a loop's longest iteration below which its branch may hide the copies. Cores take
/// a branch every cycle or every second one, and two copies must be longer than that.
const HIDDEN_CYCLES: f64 = 4.0;

impl Acquisition {
    /// Rounds in which other programs ran during a call for long.
    pub fn interrupted_rounds(&self) -> usize {
        self.layouts.iter().map(|layout| layout.samples.interrupted_rounds()).sum()
    }

    /// Whether a loop's branch may hide its copies: an iteration takes as long as the branch,
    /// however little the copies need. The estimate is that of the cost, a share of a copy of the only
    /// snippet.
    pub fn may_hide_copies(&self, cost: &CostFormula, estimate: &CostEstimate) -> bool {
        let [unit] = self.units.as_slice() else { return false };
        let share: f64 = cost.weights().map(|(_, weight)| weight).sum();
        self.shape.loop_count > 1 && 4.0 * *unit as f64 * estimate.cost.value < HIDDEN_CYCLES * share
    }
}

/// A finished measurement of one cost.
#[derive(Debug, Clone)]
pub struct CostMeasurement {
    /// The measured cost.
    pub cost: CostFormula,
    /// The estimate; `None` if too few rounds were undisturbed.
    pub estimate: Option<CostEstimate>,
    /// Whether the cost was proportional to the number of copies.
    pub linear: bool,
    /// Whether the cost had stopped changing after the warm-up.
    pub settled: bool,
    /// Samples of the last units and warm-up tried. All costs of a question share them.
    pub acquisition: Rc<Acquisition>,
    /// The estimate without training, if training of the predictors changes the cost.
    pub untrained: Option<CostEstimate>,
    /// The error that ended the code during training. The cost was then measured without training.
    pub untrainable: Option<RunError>,
    /// States that the first copy of a snippet uses up, so that later copies do other work.
    pub unsteady: Vec<UnsteadyState>,
    /// What of a function's calls was not compared, and why.
    pub unchecked: Option<String>,
    /// Time spent on the measurement.
    pub elapsed: Duration,
}

impl CostMeasurement {
    /// Whether the cost is of other work than the snippet's first copy does.
    pub fn is_refused_as_unsteady(&self) -> bool {
        self.unsteady.iter().any(|state| state.is_refused)
    }

    /// Estimates the cost at another confidence level.
    pub fn estimate_at(&self, confidence: f64) -> Option<CostEstimate> {
        self.estimate_of(&self.cost, confidence)
    }

    /// Estimates another cost from the same readings.
    pub fn estimate_of(&self, cost: &CostFormula, confidence: f64) -> Option<CostEstimate> {
        estimate_cost(&self.acquisition.layouts, &self.acquisition.shape, cost, confidence)
    }
}
