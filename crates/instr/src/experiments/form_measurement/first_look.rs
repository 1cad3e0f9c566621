//! The first look: how large a program's body may be, and how long its calls are.

use super::program_choice::SEARCHED_BELOW;
use super::{FormMeasurement, LOOPS_LEAST, SLOW_CYCLES, WARM_UP};
use crate::experiments::program_reading::{ProgramReading, layout_cost};
use crate::experiments::timing::{LoopedProgram, TimingSize};
use crate::forms::instruction_setting;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_exec::Executor;

/// Layouts and rounds of the first look.
const LOOK_SIZE: TimingSize = TimingSize { layouts: 1, warm_up: WARM_UP, rounds: 2 };
/// Upper limit of slow instances per body.
const FEW_COPIES: usize = 8;
/// From this many core cycles on (about 100 µs), a body has one instance, so that batches end in
/// time.
const LONG_CYCLES: f64 = 300_000.0;
/// Attempts of a first look without a reading: wide units can be half asleep for a millisecond.
const FIRST_LOOK_TRIES: usize = 20;

/// Limits of a program's body.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodySize {
    /// Upper limit of instances.
    most: usize,
    /// Whether an instance is slow.
    pub(super) slow: bool,
}

/// Programs, each with the index of its experiment in the plan.
pub(super) type ChosenPrograms = Vec<(usize, LoopedProgram)>;

impl FormMeasurement<'_> {
    /// How many instances a body may have: a slow instruction would take too long in a long one.
    /// `None` without any figure. Earlier passes know the cost of an instance; otherwise a body with
    /// few of them is timed.
    pub(super) fn find_body_size(
        &self,
        executor: &mut dyn Executor,
        random: &mut Random,
    ) -> Result<Option<BodySize>, RunError> {
        let Some(first) = self.plan.experiments.first() else { return Ok(None) };
        let long = instruction_setting::find_setting(self.plan.anatomy.code()).long;
        let mut cost = self.earlier_look(0).unwrap_or(f64::NAN);
        if cost.is_nan() {
            let few = [self.prepare_program(first, if long { 1 } else { FEW_COPIES })];
            for _ in 0..FIRST_LOOK_TRIES {
                let timings = self.timer.time_programs(executor, &few, LOOK_SIZE, self.plan.surroundings, random)?;
                cost = layout_cost(&timings[0][0]);
                if cost.is_finite() {
                    break;
                }
            }
        }
        if cost.is_nan() {
            return Ok(None);
        }
        let slow = cost >= SLOW_CYCLES;
        let most = match cost {
            _ if long || cost >= LONG_CYCLES => 1,
            _ if slow => FEW_COPIES,
            _ => usize::MAX,
        };
        Ok(Some(BodySize { most, slow }))
    }

    /// A first look at these experiments: chooses iterations, and drops throughput programs that are
    /// slower. Programs that earlier passes timed keep the figure of their first look.
    pub(super) fn take_first_look(
        &self,
        executor: &mut dyn Executor,
        chosen: &[usize],
        size: BodySize,
        readings: &mut [ProgramReading],
        random: &mut Random,
    ) -> Result<ChosenPrograms, RunError> {
        let prepare = |index: &usize| (*index, self.prepare_program(&self.plan.experiments[*index], size.most));
        let mut chosen: ChosenPrograms = chosen.iter().map(prepare).collect();
        for (index, timed) in &mut chosen {
            // A program that no pass timed may have been slow only in its look.
            readings[*index].first_look = self.earlier_look(*index).filter(|_| self.earlier_cost(*index).is_some());
            let known = self.earlier_cost(*index).or(readings[*index].first_look);
            timed.loops = known.map_or(timed.loops, |cost| self.choose_look_loops(*index, timed, cost, size));
        }
        for _ in 0..FIRST_LOOK_TRIES {
            let open: Vec<usize> =
                (0..chosen.len()).filter(|at| readings[chosen[*at].0].first_look.is_none()).collect();
            if open.is_empty() {
                break;
            }
            let programs: Vec<LoopedProgram> = open.iter().map(|at| chosen[*at].1.clone()).collect();
            let looked = self.timer.time_programs(executor, &programs, LOOK_SIZE, self.plan.surroundings, random)?;
            for (at, timing) in open.into_iter().zip(&looked[0]) {
                let (index, timed) = &mut chosen[at];
                let cost = Some(layout_cost(timing)).filter(|cost| *cost > 0.0);
                readings[*index].first_look = cost;
                timed.loops = self.choose_look_loops(*index, timed, cost.unwrap_or(f64::INFINITY), size);
            }
        }
        let left = self.find_slower(readings);
        let idle = |index: usize| readings[index].first_look.is_none_or(|cycles| cycles >= SEARCHED_BELOW);
        chosen.retain(|(index, _)| !left.contains(index) && (!self.needs_search(*index) || !idle(*index)));
        Ok(chosen)
    }

    /// Iterations of a program's shortest call after the first look.
    fn choose_look_loops(&self, index: usize, timed: &LoopedProgram, cost: f64, size: BodySize) -> u64 {
        let loops = self.choose_loops(index, timed, cost);
        if size.slow { loops } else { loops.max(LOOPS_LEAST) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::throughput_recipe::ThroughputRecipe;
    use crate::experiments::experiment::{ExperimentMeaning, FormExperiment};
    use crate::experiments::form_measurement::program_choice::CONFIRMING_LAYOUTS;
    use crate::experiments::form_measurement::sample_form::{new_timer, plan_imul};
    use crate::experiments::survey_effort::SurveyEffort;

    #[test]
    fn settled_rates_are_not_steered_and_later_passes_keep_the_first_look() {
        use cyclescope_sim::{CoreModel, Scenario, SimulatedCore};
        let (plan, timer) = (plan_imul(), new_timer());
        let scenario = Scenario { step: 2, ..Scenario::default() };
        let mut core = SimulatedCore::with_scenario(CoreModel::from_seed(1), scenario, 5);
        let mut measure = |earlier: &[Vec<ProgramReading>]| {
            let effort = SurveyEffort { constants: false, ..SurveyEffort::FULL };
            let form = FormMeasurement::without_slots(&timer, effort, &plan, earlier);
            form.run(&mut core, &mut Random::new(3)).expect("no fault is simulated")
        };
        let mut first = measure(&[]);
        let searching = |one: &FormExperiment| one.meaning.recipe().is_some_and(ThroughputRecipe::needs_search);
        let searched = plan.experiments.iter().zip(&first).filter(|(one, _)| searching(one));
        assert!(searched.clone().count() > 0);
        assert!(searched.into_iter().all(|(_, reading)| reading.first_look.is_none() && reading.cycles.is_empty()));
        // No first look would find exactly this cost.
        let looked = 1.234_567;
        first.iter_mut().filter_map(|reading| reading.first_look.as_mut()).for_each(|cycles| *cycles = looked);
        let second = measure(std::slice::from_ref(&first));
        let again = first.iter().zip(&second).filter(|(first, _)| first.first_look.is_some());
        assert!(again.clone().count() > 0 && again.into_iter().all(|(_, second)| second.first_look == Some(looked)));
        // Chains and decoders gave their answer in the first pass.
        let chain = |one: &FormExperiment| matches!(one.meaning, ExperimentMeaning::Latency { .. });
        let chains: Vec<usize> = (0..plan.experiments.len()).filter(|at| chain(&plan.experiments[*at])).collect();
        assert!(chains.iter().all(|at| first[*at].cycles.len() == 6 && second[*at].cycles.len() == CONFIRMING_LAYOUTS));
        assert!(chains.iter().any(|at| first[*at].regimes.is_some()));
        assert!(chains.iter().all(|at| second[*at].regimes.is_none()));
        assert!(!first[0].decoded.is_empty() && second[0].decoded.is_empty());
    }
}
