//! Runs a trial's programs together with the ruler until the intervals are narrow or time is up.

use super::fault::{CONFIDENCE, TrialConditions};
use super::trial::ContaminationTrial;
use crate::TestedClock;
use cyclescope_code::asm::CodeMode;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::Interval;
use cyclescope_exec::Executor;
use cyclescope_measure::contrast::Contrast;
use cyclescope_measure::rounds::{LayoutReading, RulerRounds, estimate_contrast, find_unshared_width, select_unshared};
use cyclescope_measure::ruler::LeastWidth;
use cyclescope_measure::ruler::UnsharedWidth;
use cyclescope_measure::sibling::KeptReplicates;
use std::time::Duration;

/// Target number of layouts, fewer if rounds are slow. The interval is over layouts.
const LAYOUTS: usize = 48;
/// Fewest layouts. Below this the t-quantile at the confidence level grows quickly.
const LAYOUTS_LEAST: usize = 12;
/// Fewest rounds of a layout. Some remain after an interrupt.
const ROUNDS_LEAST: usize = 8;
/// Most rounds of a layout, about half a millisecond. An intermittent sibling then leaves whole
/// layouts undisturbed. Remaining time goes to further layouts.
const ROUNDS_MOST: usize = 16;
/// Layouts and rounds of the pilot, which measures the time of a round.
const PILOT_SIZE: (usize, u32) = (2, 4);
/// Shortest possible round of the ruler in seconds, on a machine that is not simulated.
const SHORTEST_ROUND: f64 = 1e-6;
/// Target half width of an interval in core cycles. It is below the tolerance, so that presence and
/// absence are distinguished. The instrument alone contributes 0.66.
const TARGET_HALF_WIDTH: f64 = 0.9;

/// The environment of a trial: executor, randomness and machine parameters.
pub(super) struct TrialRunner<'a> {
    pub(super) executor: &'a mut dyn Executor,
    pub(super) random: &'a mut Random,
    /// Step of the readings, in raw units.
    pub(super) step: f64,
    pub(super) imul_latency: f64,
    /// The mode of the programs.
    mode: CodeMode,
    /// Width of an unshared core. It grows with the best observation.
    quiet: UnsharedWidth,
    /// Its least by data of the design.
    width: Option<LeastWidth>,
}

/// The result of a trial.
pub(super) struct TrialOutcome {
    /// Cost by each contrast, in core cycles.
    pub(super) costs: Vec<Interval>,
    pub(super) conditions: TrialConditions,
}

impl<'a> TrialRunner<'a> {
    /// A runner for readings of this method.
    pub(super) fn new(executor: &'a mut dyn Executor, random: &'a mut Random, tested: &TestedClock) -> TrialRunner<'a> {
        let TestedClock { step, imul_latency, mode, width, .. } = *tested;
        TrialRunner { executor, random, step, imul_latency, mode, quiet: UnsharedWidth::default(), width }
    }

    /// Runs a trial until all intervals are narrow or time is up. `None` if too many rounds were
    /// disturbed.
    ///
    /// Only the width of the intervals ends it. Ending when an effect seems visible would report
    /// effects too often.
    pub(super) fn run_trial(
        &mut self,
        trial: &ContaminationTrial,
        time: Duration,
    ) -> Result<Option<TrialOutcome>, RunError> {
        let programs = RulerRounds::for_mode(&trial.ruler, self.step, self.mode);
        let programs = programs.with_programs(trial.programs.iter().cloned(), true);
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
        let estimate_or_zero = |contrast: &Option<Contrast>| match contrast {
            Some(contrast) => weigh(contrast),
            None => Some(Interval::with_margin(0.0, 0.0)),
        };
        let (size, overlap) = (estimate_or_zero(&trial.size)?.value, estimate_or_zero(&trial.overlap)?.high.max(0.0));
        Some(TrialOutcome { costs: costs?, conditions: TrialConditions { size, overlap, alone: !shared } })
    }
}
