//! Trains the branch predictors before a layout of a function is measured.
//!
//! A fixed input has fixed branches, and predictors learn them over up to a million calls. A loop
//! of 200 iterations took 525 core cycles instead of 622 once its exit was predicted, and an
//! insertion sort 1 560 instead of 1 975. Predictors forget when much other code runs, such as the
//! start of a program (Zen 5). So the cost after a thousand calls differs from the cost after a
//! million. A function in its own loop, the usual way to time it, has the latter.

use super::acquisition::Acquisition;
use super::cost_judgement::CostJudgement;
use super::estimate::{CostEstimate, call};
use super::measurement_session::{CYCLES_PER_NS, MeasurementSession};
use super::schedule::Schedule;
use cyclescope_core::error::RunError;
use cyclescope_core::statistics::mean;
use cyclescope_exec::ProgramCall;
use std::time::Duration;

/// Trained layouts of the trial, and further initial ones if training changes a cost.
pub(super) const TRIAL_LAYOUTS: usize = 3;
pub(super) const TRAINED_LAYOUTS: usize = 6;
/// Most budgets for the training of a layout, in the trial and after it. After 0.4 budgets half of
/// the layouts of a radix sort had learnt, after 1.6 nearly all (Zen 5).
pub(super) const TRIAL_SHARE: f64 = 0.8;
pub(super) const TRAINED_SHARE: f64 = 1.6;
/// Further budgets for the trial, and for all trained layouts.
pub(super) const TRIAL_BUDGETS: u32 = 3;
pub(super) const TRAINED_BUDGETS: u32 = 6;
/// A trial makes this many times the calls of an untrained layout. With fewer it would show
/// nothing.
pub(super) const MORE_CALLS: f64 = 8.0;
/// Most training steps of a layout, and rounds per step. The shortest round of a step is free of
/// interrupts.
const TRAINING_STEPS: u64 = 16;
const ROUNDS_PER_STEP: u32 = 32;
/// A step within this share of the fastest one has learnt all it can. The core clock's frequency
/// cancels.
const LEARNT_WITHIN: f64 = 0.04;
/// Smallest saving of training, as a share of the largest cost or in core cycles. Addresses alone
/// change a call by a cycle.
const SAVING_SHARE: f64 = 0.01;
const SAVING_CYCLES: f64 = 0.5;
/// A layout of the trial has learnt something if it costs less than every untrained layout, by this
/// share of the largest cost and by this many core cycles. Other layouts may learn it too.
const LOWEST_SHARE: f64 = 0.02;
const LOWEST_CYCLES: f64 = 1.0;
/// An untrained layout may have learnt something early if it costs less than the mean, by this
/// share of the largest cost and by this many core cycles. Training may teach it to the others.
const EARLY_SHARE: f64 = 0.05;
const EARLY_CYCLES: f64 = 2.0;

impl MeasurementSession<'_> {
    /// Approximate calls of every function of the question in this time.
    pub(super) fn calls_in(&self, seconds: f64) -> u64 {
        let cycles: f64 = self.parts.iter().map(|part| part.guess.max(1.0)).sum();
        (CYCLES_PER_NS * 1e9 * seconds / cycles) as u64
    }

    /// Calls each function of a layout in a loop, at the place and in the worker in which the
    /// layout is measured. Stops after this number of calls, or once it is as fast as in the
    /// training of an earlier layout.
    pub(super) fn train_predictors(
        &mut self,
        schedule: &Schedule,
        calls: u64,
        acquisition: &Acquisition,
    ) -> Result<(), RunError> {
        let in_round = (calls / (TRAINING_STEPS * u64::from(ROUNDS_PER_STEP))).max(1);
        let ruler = ProgramCall { place: call::IMUL_LONG, loop_count: acquisition.ruler_loops };
        let call_of_part = |part| ProgramCall { place: call::RULERS + part, loop_count: in_round };
        let columns: Vec<ProgramCall> = std::iter::once(ruler).chain((0..self.parts.len()).map(call_of_part)).collect();
        let more = 10 * Duration::from_secs_f64(self.seconds_of(calls));
        let step = schedule.with_calls(columns, ROUNDS_PER_STEP, more);
        let mut fastest = self.fastest;
        for _ in 0..TRAINING_STEPS {
            let samples = &step.measure(self.executor)?[0];
            let shortest = |column: usize| samples.column(column).fold(f64::INFINITY, f64::min);
            let spent: f64 = (1..=self.parts.len()).map(shortest).sum();
            // Time of a call in iterations of the ruler.
            let spent = spent / in_round as f64 * acquisition.ruler_loops as f64 / shortest(0);
            fastest = fastest.min(spent);
            // The trial may not have reached the fastest time yet.
            if self.training_tried && spent <= self.fastest * (1.0 + LEARNT_WITHIN) {
                break;
            }
        }
        self.fastest = fastest;
        Ok(())
    }

    /// Approximate time of this number of calls of every function.
    pub(super) fn seconds_of(&self, calls: u64) -> f64 {
        let cycles: f64 = self.parts.iter().map(|part| part.guess.max(1.0)).sum();
        calls as f64 * cycles / (CYCLES_PER_NS * 1e9)
    }
}

/// Costs of all layouts, not only those of the chosen mode.
fn layout_costs(estimate: &CostEstimate) -> Vec<f64> {
    estimate.layouts.iter().map(|layout| layout.cost).collect()
}

fn lowest_cost(estimate: &CostEstimate) -> f64 {
    layout_costs(estimate).into_iter().fold(f64::INFINITY, f64::min)
}

/// Whether training lowered a cost.
pub(super) fn training_saves(before: &CostEstimate, after: &CostEstimate, size: f64) -> bool {
    mean(&layout_costs(before)) - mean(&layout_costs(after)) > SAVING_CYCLES.max(SAVING_SHARE * size)
}

/// Whether the layouts of a trial show that training may lower a cost.
pub(super) fn training_may_save(before: &CostEstimate, trial: &CostEstimate, size: f64) -> bool {
    training_saves(before, trial, size)
        || lowest_cost(before) - lowest_cost(trial) > LOWEST_CYCLES.max(LOWEST_SHARE * size)
}

/// Whether predictors learnt something in a few layouts before the trial, but in none of the trial.
pub(super) fn learnt_early(before: &CostEstimate, _: &CostEstimate, size: f64) -> bool {
    mean(&layout_costs(before)) - lowest_cost(before) > EARLY_CYCLES.max(EARLY_SHARE * size)
}

/// Whether the untrained measurement agrees with the trained one and is more certain. Variation
/// between addresses calls for many layouts, not for training.
fn is_more_certain(untrained: &CostEstimate, trained: &CostEstimate) -> bool {
    let (one, other) = (&untrained.cost, &trained.cost);
    trained.modes.is_empty() && one.contains(other.value) && one.half_width() < other.half_width()
}

/// Whether every cost is more certain without training.
pub(super) fn all_more_certain(untrained: &[CostJudgement], trained: &[CostJudgement]) -> bool {
    let mut pairs = untrained.iter().zip(trained).map(|(one, other)| (&one.estimate, &other.estimate));
    pairs.all(|pair| matches!(pair, (Some(without), Some(with)) if is_more_certain(without, with)))
}
