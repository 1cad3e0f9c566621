//! Runs a trial's programs beside the ruler, for as long as they need and there is time.

use super::fault::{CONFIDENCE, Conditions};
use super::trial::{Trial, Weights};
use crate::error::RunError;
use crate::executor::Executor;
use crate::probe::{Probe, Reading, combination, unshared};
use crate::random::Random;
use crate::statistics::{Interval, quantile};
use std::time::{Duration, Instant};

/// Layouts that are aimed at, and fewer where rounds are slow: the interval is over layouts.
const LAYOUTS: usize = 48;
/// Layouts at least: with fewer the t-quantile at the level that is used grows quickly.
const LAYOUTS_LEAST: usize = 12;
/// Rounds of a layout at least, so that some remain where an interrupt hit.
const ROUNDS_LEAST: usize = 8;
/// Rounds of a layout at most, some half a millisecond: a sibling that comes and goes leaves whole layouts alone. Time
/// that is left goes to further layouts.
const ROUNDS_MOST: usize = 16;
/// Layouts and rounds of the pilot, which tells how long a round takes.
const PILOT: (usize, u32) = (2, 4);
/// A round of the ruler takes longer than this, in seconds, on any machine that is not simulated.
const SHORTEST: f64 = 1e-6;
/// How narrow an interval is wanted, in core cycles to each side: less than what counts as a contamination, so that
/// nothing and something are told apart. The instrument alone makes 0.66.
const WANTED: f64 = 0.9;
/// A layout that adds fewer numbers a cycle than this share of the best was beside a busy sibling for a while.
/// Layouts alone agree within half a percent (4.12 to 4.15 additions a cycle); with one that was not a pair of
/// readings took up to 59 cycles instead of 49 (Xeon, family 6, model 207).
const ALONE_SHARE: f64 = 0.97;
/// The same of what the core's adders allow, as in [`crate::doctor`].
const KNOWN_SHARE: f64 = 0.7;

/// What trials run on.
pub(super) struct Means<'a> {
    pub(super) executor: &'a mut dyn Executor,
    pub(super) random: &'a mut Random,
    /// The step of the readings in raw units.
    pub(super) step: f64,
    pub(super) imul_latency: f64,
    /// Additions a cycle that a layout must reach to count as alone: it grows with the best that was seen.
    least: f64,
}

/// What a trial found.
pub(super) struct Outcome {
    /// What each of the contrasts costs, in core cycles.
    pub(super) costs: Vec<Interval>,
    pub(super) conditions: Conditions,
}

impl<'a> Means<'a> {
    /// For readings of this step; `width` is what the sentinel reads on a core of its own, where that is known.
    pub(super) fn new(
        executor: &'a mut dyn Executor,
        random: &'a mut Random,
        (step, imul_latency): (f64, f64),
        width: Option<f64>,
    ) -> Means<'a> {
        let least = width.map_or(0.0, |width| KNOWN_SHARE * width);
        Means { executor, random, step, imul_latency, least }
    }

    /// Runs a trial until all intervals are narrow or the time is over. `None` where too many rounds were disturbed.
    ///
    /// It ends by the width of the intervals and not by what they say, for to stop where something seems to be seen
    /// would find it too often.
    pub(super) fn run(&mut self, trial: &Trial, time: Duration) -> Result<Option<Outcome>, RunError> {
        let probe = Probe::new(&trial.ruler, self.step).with(trial.programs.iter().cloned(), true);
        let begun = Instant::now();
        probe.run(self.executor, PILOT.0, PILOT.1, self.random)?;
        let round = (begun.elapsed().as_secs_f64() / (PILOT.0 as f64 * f64::from(PILOT.1))).max(SHORTEST);
        let left = || (time.saturating_sub(begun.elapsed()).as_secs_f64() / round) as usize;
        let layouts = (left() / ROUNDS_LEAST).clamp(LAYOUTS_LEAST, LAYOUTS);
        let mut readings = Vec::new();
        loop {
            let rounds = (left() / layouts).clamp(ROUNDS_LEAST, ROUNDS_MOST);
            let more = probe.run(self.executor, layouts, rounds as u32, self.random)?;
            readings.extend(more.iter().filter_map(|layout| layout.read()));
            let outcome = self.outcome(trial, &readings);
            let narrow = |outcome: &Outcome| {
                outcome.conditions.alone && outcome.costs.iter().all(|cost| cost.half_width() <= WANTED)
            };
            if outcome.as_ref().is_some_and(narrow) || left() < layouts * ROUNDS_LEAST {
                return Ok(outcome);
            }
        }
    }

    fn outcome(&mut self, trial: &Trial, readings: &[Reading]) -> Option<Outcome> {
        let mut widths: Vec<f64> = readings.iter().map(|reading| reading.width).collect();
        widths.sort_by(f64::total_cmp);
        // Not the very best, which may be wrong: an interrupt in the ruler makes it seem slow.
        let best = (!widths.is_empty()).then(|| quantile(&widths, 0.9))?;
        self.least = self.least.max(ALONE_SHARE * best);
        let (kept, shared) = unshared(readings.to_vec(), self.least);
        let weigh = |weights: &Weights| combination(&kept, self.imul_latency, weights, CONFIDENCE);
        let costs: Option<Vec<Interval>> = trial.costs.iter().map(weigh).collect();
        let value = |weights: &Weights| match weights.is_empty() {
            true => Some(0.0),
            false => weigh(weights).map(|interval| interval.value),
        };
        let (size, overlap) = (value(&trial.size)?, value(&trial.overlap)?.max(0.0));
        Some(Outcome { costs: costs?, conditions: Conditions { size, overlap, alone: !shared } })
    }
}
