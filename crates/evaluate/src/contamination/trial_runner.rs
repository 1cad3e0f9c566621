//! Runs a trial's programs beside the ruler, for as long as they need and there is time.

use super::fault::{CONFIDENCE, TrialConditions};
use super::trial::ContaminationTrial;
use crate::TestedClock;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::Interval;
use cyclescope_exec::Executor;
use cyclescope_measure::contrast::Contrast;
use cyclescope_measure::rounds::{LayoutReading, RulerRounds, estimate_contrast, find_unshared_width, select_unshared};
use cyclescope_measure::ruler::UnsharedWidth;
use cyclescope_measure::sibling::KeptReplicates;
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
const PILOT_SIZE: (usize, u32) = (2, 4);
/// A round of the ruler takes longer than this, in seconds, on any machine that is not simulated.
const SHORTEST_ROUND: f64 = 1e-6;
/// How narrow an interval is wanted, in core cycles to each side: less than what counts as a contamination, so that
/// nothing and something are distinguished. The instrument alone makes 0.66.
const TARGET_HALF_WIDTH: f64 = 0.9;

/// What trials run on.
pub(super) struct TrialRunner<'a> {
    pub(super) executor: &'a mut dyn Executor,
    pub(super) random: &'a mut Random,
    /// The step of the readings in raw units.
    pub(super) step: f64,
    pub(super) imul_latency: f64,
    /// The width of a core of its own: it grows with the best that was seen.
    quiet: UnsharedWidth,
    /// What data say of it.
    width: Option<f64>,
}

/// What a trial found.
pub(super) struct TrialOutcome {
    /// What each of the contrasts costs, in core cycles.
    pub(super) costs: Vec<Interval>,
    pub(super) conditions: TrialConditions,
}

impl<'a> TrialRunner<'a> {
    /// For readings of this method.
    pub(super) fn new(executor: &'a mut dyn Executor, random: &'a mut Random, tested: &TestedClock) -> TrialRunner<'a> {
        let TestedClock { step, imul_latency, width, .. } = *tested;
        TrialRunner { executor, random, step, imul_latency, quiet: UnsharedWidth::default(), width }
    }

    /// Runs a trial until all intervals are narrow or the time is over. `None` where too many rounds were disturbed.
    ///
    /// It ends by the width of the intervals and not by what they say, for to stop where something seems to be seen
    /// would find it too often.
    pub(super) fn run_trial(
        &mut self,
        trial: &ContaminationTrial,
        time: Duration,
    ) -> Result<Option<TrialOutcome>, RunError> {
        let programs = RulerRounds::new(&trial.ruler, self.step).with_programs(trial.programs.iter().cloned(), true);
        let begun = self.executor.now();
        programs.run(self.executor, PILOT_SIZE.0, PILOT_SIZE.1, self.random)?;
        let mut spent = self.executor.now().saturating_sub(begun);
        let round = (spent.as_secs_f64() / (PILOT_SIZE.0 as f64 * f64::from(PILOT_SIZE.1))).max(SHORTEST_ROUND);
        let left = |spent| (time.saturating_sub(spent).as_secs_f64() / round) as usize;
        let layouts = (left(spent) / ROUNDS_LEAST).clamp(LAYOUTS_LEAST, LAYOUTS);
        let mut readings = Vec::new();
        loop {
            let rounds = (left(spent) / layouts).clamp(ROUNDS_LEAST, ROUNDS_MOST);
            let more = programs.run(self.executor, layouts, rounds as u32, self.random)?;
            readings.extend(more.iter().filter_map(|layout| layout.read()));
            let outcome = self.evaluate_readings(trial, &readings);
            let narrow = |outcome: &TrialOutcome| {
                outcome.conditions.alone && outcome.costs.iter().all(|cost| cost.half_width() <= TARGET_HALF_WIDTH)
            };
            spent = self.executor.now().saturating_sub(begun);
            if outcome.as_ref().is_some_and(narrow) || left(spent) < layouts * ROUNDS_LEAST {
                return Ok(outcome);
            }
        }
    }

    fn evaluate_readings(&mut self, trial: &ContaminationTrial, readings: &[LayoutReading]) -> Option<TrialOutcome> {
        self.quiet = find_unshared_width(readings, self.width).or_earlier(self.quiet);
        let KeptReplicates { used, shared, .. } = select_unshared(readings.to_vec(), self.quiet);
        let weigh = |contrast: &Contrast| estimate_contrast(&used, self.imul_latency, contrast, CONFIDENCE);
        let costs: Option<Vec<Interval>> = trial.costs.iter().map(weigh).collect();
        let known = |contrast: &Option<Contrast>| match contrast {
            Some(contrast) => weigh(contrast),
            None => Some(Interval::with_margin(0.0, 0.0)),
        };
        let (size, overlap) = (known(&trial.size)?.value, known(&trial.overlap)?.high.max(0.0));
        Some(TrialOutcome { costs: costs?, conditions: TrialConditions { size, overlap, alone: !shared } })
    }
}
