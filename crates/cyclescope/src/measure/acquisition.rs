//! Samples of a measurement, and its result.

use super::estimate::{Estimate, LayoutData, Shape};
use crate::executor::CounterProgress;
use std::time::Duration;

/// The samples of one unit and warm-up, and where they come from.
#[derive(Debug, Clone)]
pub struct Acquisition {
    /// The unit u: copies in the shortest body, about.
    pub unit: usize,
    /// Untimed rounds at the start of each layout.
    pub warm_up: u32,
    /// Iterations of the ruler's loops, approximate.
    pub ruler_loops: u64,
    /// Parameters of the rounds, to read their durations.
    pub shape: Shape,
    /// Placements that the samples of each layout come from.
    pub runs_per_layout: usize,
    /// Durations of each layout's calls.
    pub layouts: Vec<LayoutData>,
    /// Increments of TSC, APERF and MPERF during the measurement; `None` where the executor does not read them.
    pub progress: Option<CounterProgress>,
    /// Upper estimate of a round's duration in seconds.
    pub round_s: f64,
}

/// A finished measurement.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// The estimate; `None` where too few rounds were undisturbed.
    pub estimate: Option<Estimate>,
    /// Whether the cost was proportional to the number of copies.
    pub linear: bool,
    /// Whether the cost had stopped changing after the warm-up.
    pub settled: bool,
    /// Samples of the last unit and warm-up that were tried.
    pub acquisition: Acquisition,
    /// Time spent on the measurement.
    pub elapsed: Duration,
}
