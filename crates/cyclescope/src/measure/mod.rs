//! The main path: a snippet, programs, samples, an estimate, until the interval is narrow enough.
//!
//! The unit u is grown until the cost is proportional to the number of copies, the warm-up until the cost has
//! stopped moving; then layouts are added until the interval that was asked for is reached or the budget is
//! spent.

pub mod contrast;
pub mod estimate;
mod layouts;
pub mod modes;
pub mod rounds;
pub mod schedule;
mod session;

use crate::clock::Clock;
use crate::error::RunError;
use crate::executor::{Batch, Executor, Progress, Sample};
use crate::measure::estimate::{Estimate, LayoutData, Shape};
use crate::program::Cold;
use crate::snippet::Snippet;
use crate::statistics::Interval;
use serde::{Deserialize, Serialize};
use session::Session;
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
#[derive(Debug, Clone)]
pub struct Plan {
    /// The timing method.
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
    /// Whether batches and raw readings are kept.
    pub keep_evidence: bool,
}

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
    /// What ran and what was read, where the plan asks to keep it.
    pub evidence: Vec<(Batch, Vec<Sample>)>,
    /// How far TSC, APERF and MPERF went meanwhile, where the executor reads them.
    pub progress: Option<Progress>,
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

/// Bytes of the arena that the ruler, the clock readings and the spaces between programs may take.
const ARENA_RESERVE: usize = 64 << 10;

/// How many copies of a snippet the shortest body can hold: three bodies of u, 2u and 4u stand in the arena.
pub fn most_copies(arena_len: usize, snippet: &Snippet) -> usize {
    let room = arena_len.saturating_sub(ARENA_RESERVE + 3 * snippet.init().len());
    room / (7 * snippet.code().len().max(1))
}

/// Measures a snippet.
pub fn measure(executor: &mut dyn Executor, snippet: &Snippet, plan: &Plan) -> Result<Measurement, RunError> {
    Session::new(executor, snippet, plan).run()
}

/// The latency of `imul` in core cycles: the plan's, or found by measuring a NOP.
pub fn imul_latency(executor: &mut dyn Executor, plan: &Plan) -> Result<f64, RunError> {
    match plan.imul_latency {
        Some(latency) => Ok(latency),
        None => {
            let nop = Snippet::new(vec![0x90], Vec::new(), "nop");
            Ok(measure(executor, &nop, plan)?.acquisition.shape.imul_latency)
        }
    }
}
