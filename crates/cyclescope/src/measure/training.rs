//! Trains the branch predictors before a layout of a function is measured.
//!
//! A fixed input has fixed branches, and predictors learn them over up to a million calls: a loop of 200 iterations, whose
//! exit was at last predicted, took 525 core cycles instead of 622, an insertion sort 1 560 instead of 1 975. They forget
//! where much other code ran in between, such as the start of a program (Zen 5). So the cost after a thousand calls and
//! that after a million are two figures. A function in a loop of its own, which is what most people time, has the latter.

use super::estimate::{Estimate, LayoutEstimate, call};
use super::schedule::{Pace, Schedule, Stage};
use super::session::{CYCLES_PER_NS, Session};
use crate::error::RunError;
use crate::executor::Call;
use crate::statistics::median;
use std::time::Duration;

/// Trained layouts that show whether training changes a cost, and further ones at first where it does.
pub(super) const TRIAL_LAYOUTS: usize = 3;
pub(super) const TRAINED_LAYOUTS: usize = 6;
/// The share of the budget for the training of a layout. With an eighth of it in four layouts, what predictors learn was not met
/// in a third of the measurements of a loop of 200 iterations (Zen 5).
pub(super) const TRAINED_SHARE: f64 = 0.4;
/// Further budgets for the trial, and for all trained layouts.
pub(super) const TRIAL_BUDGETS: u32 = 1;
pub(super) const TRAINED_BUDGETS: u32 = 3;
/// A trial makes this many times the calls that a layout without training makes, or it would show nothing.
pub(super) const MORE_CALLS: f64 = 8.0;
/// A smaller change of most layouts, as a share of the largest cost or in core cycles, is none, nor is a smaller saving of
/// one: calls differ by a cycle for their addresses alone.
const CHANGE: Threshold = Threshold { share: 0.005, cycles: 0.25 };
const SAVING: Threshold = Threshold { share: 0.02, cycles: 1.0 };
/// By so much a layout is below most others in which predictors have learnt before they were trained.
const EARLY: Threshold = Threshold { share: 0.05, cycles: 2.0 };

struct Threshold {
    share: f64,
    cycles: f64,
}

impl Threshold {
    fn of(&self, cost: f64) -> f64 {
        self.cycles.max(self.share * cost)
    }
}

impl Session<'_> {
    /// Calls of every function of the question in this time, about.
    pub(super) fn calls_in(&self, seconds: f64) -> u64 {
        let cycles: f64 = self.parts.iter().map(|part| part.guess.max(1.0)).sum();
        (CYCLES_PER_NS * 1e9 * seconds / cycles) as u64
    }

    /// Calls each function of a layout in a loop, from the place and in the worker in which the layout is measured.
    pub(super) fn train(&mut self, schedule: &Schedule, calls: u64) -> Result<(), RunError> {
        let layout = &schedule.batch().layouts[0];
        let order: Vec<usize> = (0..self.parts.len()).collect();
        let of = |part: &usize| Call { place: call::RULERS + part, loop_count: calls };
        let stage = Stage {
            code: layout.code.clone(),
            calls: order.iter().map(of).collect(),
            order,
            data: layout.data.clone(),
            seed: layout.seed,
        };
        let pace = Pace {
            warm_up: 0,
            deadline: schedule.batch().deadline + 10 * Duration::from_secs_f64(self.seconds_of(calls)),
            memory: self.memory.clone(),
            ..Pace::default()
        };
        Schedule::with(schedule.programs().to_vec(), pace, [stage]).run(self.executor)?;
        Ok(())
    }

    /// About the time that these calls of every function take.
    pub(super) fn seconds_of(&self, calls: u64) -> f64 {
        let cycles: f64 = self.parts.iter().map(|part| part.guess.max(1.0)).sum();
        calls as f64 * cycles / (CYCLES_PER_NS * 1e9)
    }
}

/// Whether training lowered the cost of some replicate, or changed that of most, or whether predictors of some had learnt
/// without it.
pub(super) fn changed(before: &Estimate, after: &Estimate, size: f64) -> bool {
    let mut untrained: Vec<f64> = before.layouts.iter().map(|layout| layout.cost).collect();
    let usual = median(&mut untrained);
    let mut savings: Vec<f64> = Vec::new();
    for trained in &after.layouts {
        let same = |layout: &&LayoutEstimate| layout.replicate == trained.replicate;
        savings.extend(before.layouts.iter().find(same).map(|layout| layout.cost - trained.cost));
    }
    untrained.iter().any(|cost| usual - cost > EARLY.of(size))
        || savings.iter().any(|saving| *saving > SAVING.of(size))
        || !savings.is_empty() && median(&mut savings).abs() > CHANGE.of(size)
}

/// Whether a measurement without training agrees with one after it and is more certain: what differs from address to
/// address takes many layouts, and not training.
pub(super) fn is_more_certain(untrained: &Estimate, trained: &Estimate) -> bool {
    let (one, other) = (&untrained.cost, &trained.cost);
    trained.modes.is_empty() && one.contains(other.value) && one.half_width() < other.half_width()
}
