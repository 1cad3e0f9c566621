//! Measures the layouts that the programs of a form lack.

use super::FormMeasurement;
use super::first_look::{BodySize, ChosenPrograms};
use crate::experiments::program_reading::{ProgramReading, layout_cost};
use crate::experiments::timing::{LoopedProgram, ProgramTiming};
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_exec::Executor;
use cyclescope_measure::sibling::SiblingPolicy;

/// Calls are too short if the cost allows more than this many times their iterations.
const SHORT_FACTOR: u64 = 2;
/// Retries of programs with too few layouts that were undisturbed and linear.
const LAYOUT_RETRY_POLICY: SiblingPolicy = SiblingPolicy { retries: 2, ..SiblingPolicy::USUAL };

impl FormMeasurement<'_> {
    /// Measures the layouts of all programs that matter, with the plan's own constant.
    pub(in super::super) fn measure_programs(
        &self,
        executor: &mut dyn Executor,
        random: &mut Random,
    ) -> Result<Vec<ProgramReading>, RunError> {
        let mut readings = vec![ProgramReading::default(); self.plan.experiments.len()];
        let Some(size) = self.find_body_size(executor, random)? else { return Ok(readings) };
        let experiments = 0..self.plan.experiments.len();
        let (searching, others): (Vec<usize>, Vec<usize>) =
            experiments.filter(|index| self.is_needed(*index, size.slow)).partition(|index| self.is_postponed(*index));
        self.measure_chosen(executor, &others, size, &mut readings, random)?;
        if !searching.is_empty() && self.may_steer(&readings) {
            self.measure_chosen(executor, &searching, size, &mut readings, random)?;
        }
        Ok(readings)
    }

    /// Measures the layouts of those of these experiments that matter.
    fn measure_chosen(
        &self,
        executor: &mut dyn Executor,
        chosen: &[usize],
        size: BodySize,
        readings: &mut [ProgramReading],
        random: &mut Random,
    ) -> Result<(), RunError> {
        let mut open = self.take_first_look(executor, chosen, size, readings, random)?;
        let mut retries = LAYOUT_RETRY_POLICY.start_retries();
        loop {
            self.measure_missing_layouts(executor, &mut open, readings, random)?;
            // Programs get further layouts if every round was disturbed or a layout was not linear.
            let lacks = |index: usize| {
                !self.plan.experiments[index].meaning.is_extra() && self.count_missing(index, &readings[index]) > 0
            };
            open.retain(|(index, _)| lacks(*index));
            if open.is_empty() || !retries.use_retry() {
                return Ok(());
            }
        }
    }

    /// Measures the layouts that these programs lack. If a program looked slow at first, because units
    /// were not awake for example, its calls are too short. They are lengthened, and its layouts are
    /// missing still.
    fn measure_missing_layouts(
        &self,
        executor: &mut dyn Executor,
        open: &mut ChosenPrograms,
        readings: &mut [ProgramReading],
        random: &mut Random,
    ) -> Result<(), RunError> {
        let missing: Vec<usize> = open.iter().map(|(index, _)| self.count_missing(*index, &readings[*index])).collect();
        let mut counts = missing.clone();
        counts.sort_unstable();
        counts.dedup();
        for layouts in counts {
            let group: Vec<usize> = (0..open.len()).filter(|at| missing[*at] == layouts).collect();
            let programs: Vec<LoopedProgram> = group.iter().map(|at| open[*at].1.clone()).collect();
            let timings = self.time_layouts(executor, &programs, layouts, random)?;
            for (place, at) in group.into_iter().enumerate() {
                let (index, timed) = &mut open[at];
                let layouts: Vec<&ProgramTiming> = timings.iter().map(|layout| &layout[place]).collect();
                let longer = self.choose_loops(*index, timed, self.find_least_cost(*index, &layouts));
                if longer > SHORT_FACTOR * timed.loops {
                    timed.loops = longer;
                    continue;
                }
                layouts.into_iter().for_each(|timing| self.add_layout(*index, timing, &mut readings[*index]));
            }
        }
        Ok(())
    }

    /// The least cost of an experiment's program in these layouts, as its reading would have it.
    fn find_least_cost(&self, index: usize, layouts: &[&ProgramTiming]) -> f64 {
        let mut reading = ProgramReading::default();
        layouts.iter().for_each(|timing| self.add_layout(index, timing, &mut reading));
        let figures = reading.cycles.iter().chain(&reading.shared).copied();
        let least = find_least_possible(figures);
        match least.is_finite() {
            true => least,
            false => find_least_possible(layouts.iter().map(|timing| layout_cost(timing))),
        }
    }
}

/// The least of these figures that a program may have. Infinite without any: a disturbed short call
/// makes a difference negative.
fn find_least_possible(figures: impl Iterator<Item = f64>) -> f64 {
    figures.filter(|figure| *figure > 0.0 && figure.is_finite()).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::experiment::FormExperiment;
    use crate::experiments::form_measurement::sample_form::{new_timer, plan_imul};
    use crate::experiments::survey_effort::SurveyEffort;

    #[test]
    fn a_disturbed_short_call_does_not_hide_that_calls_are_short() {
        let (plan, timer) = (plan_imul(), new_timer());
        let form = FormMeasurement::without_slots(&timer, SurveyEffort::FULL, &plan, &[]);
        let is_rate = |one: &FormExperiment| one.meaning.is_throughput();
        let index = plan.experiments.iter().position(is_rate).unwrap();
        let layout = |cycles: &[f64]| ProgramTiming {
            cycles: cycles.to_vec(),
            bend: cycles.iter().map(|cycles| cycles - 1.0).collect(),
            whole: vec![1.0; cycles.len()],
            floor: vec![0.8; cycles.len()],
            ..ProgramTiming::default()
        };
        let layouts = [layout(&[-70.0, 1.0, -65.0]), layout(&[1.0, 1.0, 60.0])];
        assert_eq!(form.find_least_cost(index, &layouts.iter().collect::<Vec<_>>()), 1.0);
    }
}
