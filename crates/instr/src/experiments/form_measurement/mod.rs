//! Measures one form once: a first look at its programs, then layouts of those that matter.
//!
//! [`FormMeasurement::run`] is in [`constant_screening`](super::constant_screening): it measures
//! the form here, and then its other constants.
//!
//! A [first look](first_look) gives each program its instances and iterations. The
//! [choice of programs](program_choice) says which ones matter, and in how many layouts. The
//! [missing layouts](missing_layouts) are measured until none is left. Last, [`decoders`] measures
//! code that comes from the decoders.

mod decoders;
mod first_look;
mod missing_layouts;
mod program_choice;

use super::experiment::{ChainVariation, FormExperiment};
use super::filler_curves::FillerCurves;
use super::form_plan::FormPlan;
use super::program_reading::ProgramReading;
use super::survey_effort::SurveyEffort;
use super::timing::{LoopedProgram, ProgramTimer, ProgramTiming, TimingSize};
use crate::bodies::throughput_recipe::ThroughputRecipe;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_exec::Executor;

/// Warm-up rounds.
pub(super) const WARM_UP: u32 = 1;
/// Base number of iterations in the first look.
const SCOUT_LOOPS: u64 = 2;
/// Clock resolution, in raw units, per further iteration.
const SCOUT_STEP: f64 = 8.0;
pub(super) const LOOPS_LEAST: u64 = 3;
pub(super) const LOOPS_MOST: u64 = 400;
/// From this many core cycles on, an instance is slow. Short bodies and one throughput program
/// suffice.
pub(super) const SLOW_CYCLES: f64 = 400.0;
/// Calls of alternating chains are longer by this factor. Cores learn which store a load reads: on Zen
/// 5, turns of `movaps m128, xmm` take 30.65 core cycles in calls of 8 000 cycles, 31.0 in longer ones.
const ALTERNATING_FACTOR: f64 = 1.25;

/// The measurement of one form.
pub(crate) struct FormMeasurement<'a> {
    pub(crate) timer: &'a ProgramTimer<'a>,
    pub(crate) effort: SurveyEffort,
    pub(crate) plan: &'a FormPlan,
    /// Readings of earlier passes, by experiment.
    pub(crate) earlier: &'a [Vec<ProgramReading>],
    /// The scale for dispatch slots.
    pub(crate) filler_curves: &'a FillerCurves,
}

impl FormMeasurement<'_> {
    /// Runs each program once, with few instances.
    pub(crate) fn try_out(&self, executor: &mut dyn Executor, random: &mut Random) -> Result<(), RunError> {
        let programs: Vec<LoopedProgram> = self
            .plan
            .experiments
            .iter()
            .map(|one| LoopedProgram { loops: 1, ..self.prepare_program(one, 1) })
            .collect();
        let size = TimingSize { layouts: 1, warm_up: 0, rounds: 1 };
        self.timer.time_programs(executor, &programs, size, self.plan.surroundings, random).map(drop)
    }

    pub(super) fn time_layouts(
        &self,
        executor: &mut dyn Executor,
        programs: &[LoopedProgram],
        layouts: usize,
        random: &mut Random,
    ) -> Result<Vec<Vec<ProgramTiming>>, RunError> {
        let size = TimingSize { layouts, warm_up: WARM_UP, rounds: self.effort.rounds };
        self.timer.time_programs(executor, programs, size, self.plan.surroundings, random)
    }

    /// A program with at most `most` instances in its body.
    pub(super) fn prepare_program(&self, experiment: &FormExperiment, most: usize) -> LoopedProgram {
        let repeats = experiment.count_repeats(most);
        let FormExperiment { meaning, world, init, period, .. } = experiment;
        let lead = meaning.recipe().map_or(0, |recipe| recipe.lead);
        let program = self.timer.build_led_program(*world, init, period, repeats, lead);
        let loops = if most == 1 { 1 } else { SCOUT_LOOPS + (self.timer.step / SCOUT_STEP) as u64 };
        LoopedProgram { program, copies: repeats * experiment.copies, loops }
    }

    /// Iterations of the shortest call of an experiment's program, given its cost per instance.
    fn choose_loops(&self, index: usize, timed: &LoopedProgram, cost: f64) -> u64 {
        let longer = if self.plan.experiments[index].meaning.is_alternating() { ALTERNATING_FACTOR } else { 1.0 };
        let wanted = longer * self.effort.cycles / 4.0 / (cost * timed.copies as f64);
        (wanted as u64).clamp(1, LOOPS_MOST)
    }

    /// Adds a layout to the reading of an experiment.
    fn add_layout(&self, index: usize, timing: &ProgramTiming, reading: &mut ProgramReading) {
        match self.plan.experiments[index].meaning.is_throughput() {
            true => reading.add_rate_layout(timing),
            false => reading.add_layout(timing),
        }
    }

    fn needs_search(&self, index: usize) -> bool {
        self.plan.experiments[index].meaning.recipe().is_some_and(ThroughputRecipe::needs_search)
    }

    /// An experiment's lowest cost in earlier passes. A single layout does not prove a rate, but it
    /// is reason enough to measure the program again.
    fn earlier_cost(&self, index: usize) -> Option<f64> {
        let readings = self.earlier.iter().filter_map(|pass| pass.get(index));
        readings.flat_map(|reading| reading.cycles.iter().copied()).min_by(f64::total_cmp)
    }

    /// The first figure of an experiment in an earlier pass.
    fn earlier_look(&self, index: usize) -> Option<f64> {
        self.earlier.iter().find_map(|pass| pass.get(index)?.first_look)
    }

    /// Variations of a chain that earlier passes measured.
    pub(super) fn earlier_variations(&self, index: usize) -> Vec<ChainVariation> {
        let readings = self.earlier.iter().filter_map(|pass| pass.get(index));
        readings.flat_map(|reading| reading.again.iter().map(|(variation, _)| *variation)).collect()
    }
}

#[cfg(test)]
mod sample_form;

#[cfg(test)]
mod tests {
    use super::sample_form::{new_timer, plan_form};
    use super::*;

    #[test]
    fn calls_of_alternating_chains_are_longer() {
        let plan = plan_form("Mov_rm64_r64 m64, r64");
        let timer = new_timer();
        let form = FormMeasurement::without_slots(&timer, SurveyEffort::FULL, &plan, &[]);
        let timed = LoopedProgram { copies: 10, ..form.prepare_program(&plan.experiments[0], usize::MAX) };
        let is_alternating = |index: &usize| plan.experiments[*index].meaning.is_alternating();
        let (alternating, others): (Vec<usize>, Vec<usize>) = (0..plan.experiments.len()).partition(is_alternating);
        let loops = |index: usize| form.choose_loops(index, &timed, 10.0) as f64;
        assert!((loops(alternating[0]) / loops(others[0]) - ALTERNATING_FACTOR).abs() < 0.1);
    }
}
