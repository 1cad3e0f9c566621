//! What is asked of a measurement, and how narrow its interval has to be.

use crate::clock::Clock;
use crate::program::Cold;
use crate::statistics::Interval;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How narrow an interval has to be: its half width, absolute or relative, whichever is wider.
///
/// Long snippets can do better than a share that suits short ones: the share can be capped in cycles, down to a
/// ten-thousandth of the cost, which is as well as the core clock is followed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// Half width in core cycles a copy.
    pub cycles: f64,
    /// Half width as a share of the cost.
    pub share: f64,
    /// Core cycles above which the share does not count, if any.
    pub cap: Option<f64>,
}

/// The share of the cost below which no cap goes.
const CAP_LEAST: f64 = 0.0001;

impl Precision {
    /// Whether an interval is at least this narrow.
    pub fn met_by(self, interval: &Interval) -> bool {
        let cost = interval.value.abs();
        let share = match self.cap {
            Some(cap) => (self.share * cost).min(cap.max(CAP_LEAST * cost)),
            None => self.share * cost,
        };
        interval.half_width() <= self.cycles.max(share)
    }
}

/// What is asked of a measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// The timing method.
    #[serde(with = "crate::clock::by_name")]
    pub clock: &'static Clock,
    /// The step of its readings, in its raw units.
    pub step: f64,
    /// Latency of `imul r32, r32` in core cycles, where data for the micro-architecture tell it; else the whole
    /// number next to the ratio of the two rulers, whose disagreement would show in the estimate.
    pub imul_latency: Option<f64>,
    /// Units of the core that add integers, where data tell it.
    pub adders: Option<u32>,
    /// Whether the CPU has AVX.
    pub avx: bool,
    /// u, where it is fixed.
    pub unit: Option<usize>,
    /// Iterations of the loop around the copies; none without a loop.
    pub loop_count: Option<u64>,
    /// What is cold when a body begins. If anything is, one copy is measured against none.
    pub cold: Cold,
    /// Untimed rounds at the start of each layout, where they are fixed.
    pub warm_up: Option<u32>,
    /// Timed rounds in each layout.
    pub rounds: u32,
    /// Layouts of the first batch; more follow until the precision is reached.
    pub layouts: usize,
    /// Layouts at most.
    pub layouts_most: usize,
    /// The precision at which to stop.
    pub precision: Precision,
    /// The level of the intervals.
    pub confidence: f64,
    /// Time after which no further batch is begun.
    pub budget: Duration,
    /// Seeds everything that is random.
    pub seed: u64,
}
