//! Runs a trial's programs beside the ruler, for as long as they need and there is time.

use super::fault::{CONFIDENCE, Conditions};
use super::trial::Trial;
use crate::TestedClock;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::Interval;
use cyclescope_exec::Executor;
use cyclescope_measure::contrast::Contrast;
use cyclescope_measure::rounds::{LayoutReading, Rounds, combination, quiet, unshared};
use cyclescope_measure::ruler::Quiet;
use cyclescope_measure::sibling::Alone;
use std::time::Duration;

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
/// nothing and something are distinguished. The instrument alone makes 0.66.
const WANTED: f64 = 0.9;

/// What trials run on.
pub(super) struct Means<'a> {
    pub(super) executor: &'a mut dyn Executor,
    pub(super) random: &'a mut Random,
    /// The step of the readings in raw units.
    pub(super) step: f64,
    pub(super) imul_latency: f64,
    /// The width of a core of its own: it grows with the best that was seen.
    quiet: Quiet,
    /// What data say of it.
    width: Option<f64>,
}

/// What a trial found.
pub(super) struct Outcome {
    /// What each of the contrasts costs, in core cycles.
    pub(super) costs: Vec<Interval>,
    pub(super) conditions: Conditions,
}

impl<'a> Means<'a> {
    /// For readings of this method.
    pub(super) fn new(
        executor: &'a mut dyn Executor,
        random: &'a mut Random,
        tested: &TestedClock,
    ) -> Means<'a> {
        let TestedClock { step, imul_latency, width, .. } = *tested;
        Means { executor, random, step, imul_latency, quiet: Quiet::default(), width }
    }

    /// Runs a trial until all intervals are narrow or the time is over. `None` where too many rounds were disturbed.
    ///
    /// It ends by the width of the intervals and not by what they say, for to stop where something seems to be seen
    /// would find it too often.
    pub(super) fn run(&mut self, trial: &Trial, time: Duration) -> Result<Option<Outcome>, RunError> {
        let programs = Rounds::new(&trial.ruler, self.step).with(trial.programs.iter().cloned(), true);
        let begun = self.executor.now();
        programs.run(self.executor, PILOT.0, PILOT.1, self.random)?;
        let mut spent = self.executor.now().saturating_sub(begun);
        let round = (spent.as_secs_f64() / (PILOT.0 as f64 * f64::from(PILOT.1))).max(SHORTEST);
        let left = |spent| (time.saturating_sub(spent).as_secs_f64() / round) as usize;
        let layouts = (left(spent) / ROUNDS_LEAST).clamp(LAYOUTS_LEAST, LAYOUTS);
        let mut readings = Vec::new();
        loop {
            let rounds = (left(spent) / layouts).clamp(ROUNDS_LEAST, ROUNDS_MOST);
            let more = programs.run(self.executor, layouts, rounds as u32, self.random)?;
            readings.extend(more.iter().filter_map(|layout| layout.read()));
            let outcome = self.outcome(trial, &readings);
            let narrow = |outcome: &Outcome| {
                outcome.conditions.alone && outcome.costs.iter().all(|cost| cost.half_width() <= WANTED)
            };
            spent = self.executor.now().saturating_sub(begun);
            if outcome.as_ref().is_some_and(narrow) || left(spent) < layouts * ROUNDS_LEAST {
                return Ok(outcome);
            }
        }
    }

    fn outcome(&mut self, trial: &Trial, readings: &[LayoutReading]) -> Option<Outcome> {
        self.quiet = quiet(readings, self.width).or_earlier(self.quiet);
        let Alone { used, shared, .. } = unshared(readings.to_vec(), self.quiet);
        let weigh = |contrast: &Contrast| combination(&used, self.imul_latency, contrast, CONFIDENCE);
        let costs: Option<Vec<Interval>> = trial.costs.iter().map(weigh).collect();
        let known = |contrast: &Option<Contrast>| match contrast {
            Some(contrast) => weigh(contrast),
            None => Some(Interval::around(0.0, 0.0)),
        };
        let (size, overlap) = (known(&trial.size)?.value, known(&trial.overlap)?.high.max(0.0));
        Some(Outcome { costs: costs?, conditions: Conditions { size, overlap, alone: !shared } })
    }
}
