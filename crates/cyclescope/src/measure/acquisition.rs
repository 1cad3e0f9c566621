//! What a measurement has read, and what it found.

use super::estimate::{Estimate, LayoutData, Shape};
use crate::executor::CounterProgress;
use std::time::Duration;

/// The samples of one unit and warm-up, and where they come from.
#[derive(Debug, Clone)]
pub struct Acquisition {
    /// u.
    pub unit: usize,
    /// Untimed rounds at the start of each layout.
    pub warm_up: u32,
    /// Iterations of the ruler's loops, about.
    pub ruler_loops: u64,
    /// How to read the rounds.
    pub shape: Shape,
    /// How many placements each layout's samples come from.
    pub runs_per_layout: usize,
    /// What each layout's calls took.
    pub layouts: Vec<LayoutData>,
    /// How far TSC, APERF and MPERF went meanwhile, where the executor reads them.
    pub progress: Option<CounterProgress>,
    /// Seconds that a round should take, with a margin.
    pub round_s: f64,
}

/// A finished measurement.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// The estimate; none where too few rounds were undisturbed.
    pub estimate: Option<Estimate>,
    /// Whether the cost was proportional to the number of copies.
    pub linear: bool,
    /// Whether the cost had stopped moving after the warm-up.
    pub settled: bool,
    /// The samples of the last unit and warm-up that were tried.
    pub acquisition: Acquisition,
    /// Time spent.
    pub elapsed: Duration,
}
