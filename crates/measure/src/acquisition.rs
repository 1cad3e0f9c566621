//! Samples of a measurement, and its result.

use super::contrast::Contrast;
use super::estimate::{CostEstimate, LayoutData, RoundShape, estimate_cost};
use cyclescope_core::error::RunError;
use cyclescope_exec::CounterProgress;
use std::rc::Rc;
use std::time::Duration;

/// The samples of one unit and warm-up, and where they come from.
#[derive(Debug, Clone)]
pub struct Acquisition {
    /// The unit u of each snippet: repeats (copies, or iterations) in its shortest body, about.
    pub units: Vec<usize>,
    /// Untimed rounds at the start of each layout.
    pub warm_up: u32,
    /// Iterations of the ruler's loops, approximate.
    pub ruler_loops: u64,
    /// Parameters of the rounds, to read their durations.
    pub shape: RoundShape,
    /// Timed rounds in each layout.
    pub rounds: u32,
    /// Placements that the samples of each layout come from.
    pub placements: usize,
    /// Durations of each layout's calls.
    pub layouts: Vec<LayoutData>,
    /// Increments of TSC, APERF and MPERF during the measurement; `None` where the executor does not read them.
    pub progress: Option<CounterProgress>,
    /// Upper estimate of a round's duration in seconds.
    pub round_s: f64,
    /// Calls of each function before the first round of a layout, at most; `None` without training.
    pub training: Option<u64>,
}

/// A finished measurement of one cost.
#[derive(Debug, Clone)]
pub struct CostMeasurement {
    /// The cost as a sum over the question's snippets.
    pub cost: Contrast,
    /// The estimate; `None` where too few rounds were undisturbed.
    pub estimate: Option<CostEstimate>,
    /// Whether the cost was proportional to the number of copies.
    pub linear: bool,
    /// Whether the cost had stopped changing after the warm-up.
    pub settled: bool,
    /// Samples of the last units and warm-up that were tried, shared by the costs of a question.
    pub acquisition: Rc<Acquisition>,
    /// The estimate without training, where predictors were trained because it changes the cost.
    pub untrained: Option<CostEstimate>,
    /// What ended the code when its predictors were trained, after which it was measured without training.
    pub untrainable: Option<RunError>,
    /// Time spent on the measurement.
    pub elapsed: Duration,
}

impl CostMeasurement {
    /// The estimate at another level of confidence.
    pub fn estimate_at(&self, confidence: f64) -> Option<CostEstimate> {
        self.estimate_of(&self.cost, confidence)
    }

    /// The estimate of another cost, from the same readings.
    pub fn estimate_of(&self, cost: &Contrast, confidence: f64) -> Option<CostEstimate> {
        estimate_cost(&self.acquisition.layouts, &self.acquisition.shape, cost, confidence)
    }
}
