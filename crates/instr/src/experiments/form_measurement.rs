//! Measures one form once: a first look at all programs, then layouts of those that matter.
//!
//! [`FormMeasurement::run`] is in [`constant_screening`](super::constant_screening): it measures
//! the form here, and then its other constants.

use super::experiment::{ChainVariation, ExperimentMeaning, FormExperiment};
use super::form_plan::FormPlan;
use super::program_reading::{ProgramReading, layout_cost};
use super::survey_effort::SurveyEffort;
use super::timing::{LoopedProgram, ProgramTimer, ProgramTiming, TimingSize};
use crate::bodies::throughput_body::ThroughputRecipe;
use crate::forms::instruction_setting;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_exec::Executor;
use cyclescope_measure::sibling::SiblingPolicy;

/// Warm-up rounds.
pub(super) const WARM_UP: u32 = 1;
/// Base number of iterations in the first look.
const SCOUT_LOOPS: u64 = 2;
/// Clock resolution, in raw units, per further iteration.
const SCOUT_STEP: f64 = 8.0;
const SCOUT_ROUNDS: u32 = 2;
pub(super) const LOOPS_LEAST: u64 = 3;
pub(super) const LOOPS_MOST: u64 = 400;
/// From this many core cycles on, an instance is slow. Short bodies and one throughput program
/// suffice.
pub(super) const SLOW_CYCLES: f64 = 400.0;
/// Upper limit of slow instances per body.
const FEW_COPIES: usize = 8;
/// From this many core cycles on (about 100 µs), a body has one instance, so that batches end in
/// time.
const LONG_CYCLES: f64 = 300_000.0;
/// Attempts of a first look without a reading: wide units can be half asleep for a millisecond.
const FIRST_LOOK_TRIES: usize = 20;
/// Calls are too short if the cost allows more than this many times their iterations.
const SHORT_FACTOR: u64 = 2;
/// Layouts of throughput programs in the first of several passes: of those that search for
/// scheduling modes, and of others. Then those of the best programs in later passes. The rounds of a
/// layout are trials of their own.
const SEARCH_LAYOUTS: usize = 2;
const RATE_LAYOUTS: usize = 3;
const BEST_LAYOUTS: usize = 4;
/// Slower instructions than this, in core cycles, have no search: they leave ports idle.
const SEARCHED_BELOW: f64 = 8.0;
/// A rate is no simple fraction if it is further than this share from those with a denominator up to
/// the number below.
const UNEVEN_SHARE: f64 = 0.01;
const SIMPLE_DENOMINATOR: u32 = 6;
/// Steered programs must be faster than others by this share to be measured again.
const STEERED_SHARE: f64 = 0.01;
/// Retries of programs with too few layouts that were undisturbed and linear.
const LAYOUT_RETRY_POLICY: SiblingPolicy = SiblingPolicy { retries: 2, ..SiblingPolicy::USUAL };

/// The measurement of one form.
pub(crate) struct FormMeasurement<'a> {
    pub(crate) timer: &'a ProgramTimer<'a>,
    pub(crate) effort: SurveyEffort,
    pub(crate) plan: &'a FormPlan,
    /// Readings of earlier passes, by experiment.
    pub(crate) earlier: &'a [Vec<ProgramReading>],
}

/// Programs, each with the index of its experiment in the plan.
type ChosenPrograms = Vec<(usize, LoopedProgram)>;

impl FormMeasurement<'_> {
    /// Measures the layouts of all programs that matter, with the plan's own constant.
    pub(super) fn measure_programs(
        &self,
        executor: &mut dyn Executor,
        random: &mut Random,
    ) -> Result<Vec<ProgramReading>, RunError> {
        let mut readings = vec![ProgramReading::default(); self.plan.experiments.len()];
        let mut open = self.take_first_look(executor, &mut readings, random)?;
        let mut retries = LAYOUT_RETRY_POLICY.start_retries();
        loop {
            self.measure_missing_layouts(executor, &mut open, &mut readings, random)?;
            // Programs get further layouts if every round was disturbed or a layout was not linear.
            let lacks = |index: usize| {
                !self.plan.experiments[index].meaning.is_extra() && self.count_missing(index, &readings[index]) > 0
            };
            open.retain(|(index, _)| lacks(*index));
            if open.is_empty() || !retries.use_retry() {
                break;
            }
        }
        Ok(readings)
    }

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

    /// Adds a layout to the reading of an experiment.
    fn add_layout(&self, index: usize, timing: &ProgramTiming, reading: &mut ProgramReading) {
        match self.plan.experiments[index].meaning.is_throughput() {
            true => reading.add_rate_layout(timing),
            false => reading.add_layout(timing),
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
                let costs: Vec<f64> = layouts.iter().map(|timing| layout_cost(timing)).collect();
                let longer = self.choose_loops(timed, least_finite(&costs));
                if longer > SHORT_FACTOR * timed.loops {
                    timed.loops = longer;
                    continue;
                }
                layouts.into_iter().for_each(|timing| self.add_layout(*index, timing, &mut readings[*index]));
            }
        }
        Ok(())
    }

    /// Iterations of a program's shortest call, given its cost per instance.
    fn choose_loops(&self, timed: &LoopedProgram, cost: f64) -> u64 {
        let wanted = self.effort.cycles / 4.0 / (cost * timed.copies as f64);
        (wanted as u64).clamp(1, LOOPS_MOST)
    }

    /// Number of layouts that an experiment lacks. A search tries many throughput programs in few
    /// layouts.
    fn count_missing(&self, index: usize, reading: &ProgramReading) -> usize {
        let wanted = match &self.plan.experiments[index].meaning {
            ExperimentMeaning::Throughput { variant: None, .. } if self.searches_rates() => {
                match self.needs_search(index) {
                    true => SEARCH_LAYOUTS,
                    false => RATE_LAYOUTS,
                }
            }
            ExperimentMeaning::Throughput { variant: None, .. } if !self.earlier.is_empty() => BEST_LAYOUTS,
            _ => self.effort.layouts,
        };
        wanted.min(self.effort.layouts).saturating_sub(reading.cycles.len())
    }

    fn needs_search(&self, index: usize) -> bool {
        self.plan.experiments[index].meaning.recipe().is_some_and(ThroughputRecipe::needs_search)
    }

    /// A first look at all programs: chooses iterations, and drops throughput programs that are
    /// slower.
    fn take_first_look(
        &self,
        executor: &mut dyn Executor,
        readings: &mut [ProgramReading],
        random: &mut Random,
    ) -> Result<ChosenPrograms, RunError> {
        let surroundings = self.plan.surroundings;
        let one = TimingSize { layouts: 1, warm_up: WARM_UP, rounds: SCOUT_ROUNDS };
        let experiments = || self.plan.experiments.iter().enumerate();
        // Starts with few instances: a slow instruction would take too long in a long body.
        let Some(first) = self.plan.experiments.first() else { return Ok(Vec::new()) };
        let long = instruction_setting::find_setting(self.plan.anatomy.code()).long;
        let few = [self.prepare_program(first, if long { 1 } else { FEW_COPIES })];
        let mut cost = f64::NAN;
        for _ in 0..FIRST_LOOK_TRIES {
            cost = layout_cost(&self.timer.time_programs(executor, &few, one, surroundings, random)?[0][0]);
            if cost.is_finite() {
                break;
            }
        }
        if cost.is_nan() {
            return Ok(Vec::new());
        }
        let slow = cost >= SLOW_CYCLES;
        let most = match cost {
            _ if long || cost >= LONG_CYCLES => 1,
            _ if slow => FEW_COPIES,
            _ => usize::MAX,
        };
        // A single pass has too few layouts to meet a rare mode.
        let single = self.effort.passes < 2;
        let led = |experiment: &FormExperiment| experiment.meaning.recipe().is_some_and(|recipe| recipe.lead > 0);
        let needed = |index: usize, experiment: &FormExperiment| {
            (!slow || index == 0 || !is_spare(experiment)) && (!single || !led(experiment))
        };
        let mut chosen: ChosenPrograms = experiments()
            .filter(|(index, experiment)| needed(*index, experiment))
            .map(|(index, experiment)| (index, self.prepare_program(experiment, most)))
            .collect();
        let programs: Vec<LoopedProgram> = chosen.iter().map(|(_, timed)| timed.clone()).collect();
        for _ in 0..FIRST_LOOK_TRIES {
            let looked = self.timer.time_programs(executor, &programs, one, surroundings, random)?;
            for ((index, timed), timing) in chosen.iter_mut().zip(&looked[0]) {
                let cost = layout_cost(timing);
                let known = &mut readings[*index].first_look;
                *known = known.or(Some(cost).filter(|cost| *cost > 0.0));
                let loops = self.choose_loops(timed, known.unwrap_or(f64::INFINITY));
                timed.loops = if slow { loops } else { loops.max(LOOPS_LEAST) };
            }
            if chosen.iter().all(|(index, _)| readings[*index].first_look.is_some()) {
                break;
            }
        }
        let left = self.find_slower(readings);
        let idle = |index: usize| readings[index].first_look.is_none_or(|cycles| cycles >= SEARCHED_BELOW);
        chosen.retain(|(index, _)| !left.contains(index) && (!self.needs_search(*index) || !idle(*index)));
        Ok(chosen)
    }

    /// Whether this pass measures all throughput programs. The first of several passes does, because
    /// one layout can't show which is best. The second does too if the best rate so far is no simple
    /// fraction: then units may be unequally busy in all modes met so far.
    fn searches_rates(&self) -> bool {
        let experiments = self.plan.experiments.iter().enumerate();
        let rates =
            experiments.filter(|(_, one)| matches!(one.meaning, ExperimentMeaning::Throughput { variant: None, .. }));
        let best = || rates.filter_map(|(index, _)| self.earlier_cost(index)).fold(f64::INFINITY, f64::min);
        self.effort.passes > 1 && (self.earlier.is_empty() || self.earlier.len() == 1 && is_uneven(best()))
    }

    /// The throughput programs that need no further layouts: all but the best known by now.
    fn find_slower(&self, readings: &[ProgramReading]) -> Vec<usize> {
        if self.searches_rates() {
            return Vec::new();
        }
        let rated = |experiment: &FormExperiment| {
            matches!(experiment.meaning, ExperimentMeaning::Throughput { variant: None, .. })
        };
        let mut rates: Vec<(usize, f64)> = self
            .plan
            .experiments
            .iter()
            .zip(readings)
            .enumerate()
            .filter(|(_, (experiment, _))| rated(experiment))
            .map(|(index, (_, reading))| {
                let looked = reading.first_look.unwrap_or(f64::INFINITY);
                let cost = self.earlier_cost(index).unwrap_or(looked);
                (index, if self.needs_search(index) { cost * (1.0 + STEERED_SHARE) } else { cost })
            })
            .collect();
        rates.sort_by(|a, b| a.1.total_cmp(&b.1));
        rates.into_iter().skip(self.effort.recipes).map(|(index, _)| index).collect()
    }

    /// An experiment's lowest cost in earlier passes. A single layout does not prove a rate, but it
    /// is reason enough to measure the program again.
    fn earlier_cost(&self, index: usize) -> Option<f64> {
        let readings = self.earlier.iter().filter_map(|pass| pass.get(index));
        readings.flat_map(|reading| reading.cycles.iter().copied()).min_by(f64::total_cmp)
    }

    /// Variations of a chain that earlier passes measured.
    pub(super) fn earlier_variations(&self, index: usize) -> Vec<ChainVariation> {
        let readings = self.earlier.iter().filter_map(|pass| pass.get(index));
        readings.flat_map(|reading| reading.again.iter().map(|(variation, _)| *variation)).collect()
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

    /// Measures the throughput of code that comes from the decoders. The first reading records it.
    pub(super) fn measure_decoders(
        &self,
        executor: &mut dyn Executor,
        readings: &mut [ProgramReading],
        random: &mut Random,
    ) -> Result<(), RunError> {
        let Some(experiment) = self.plan.decoder_experiment() else { return Ok(()) };
        let timed = [LoopedProgram { loops: 1, ..self.prepare_program(&experiment, usize::MAX) }];
        let timings = self.time_layouts(executor, &timed, self.effort.layouts, random)?;
        let mut decoded = ProgramReading::default();
        timings.iter().for_each(|layout| decoded.add_rate_layout(&layout[0]));
        readings[0].decoded = decoded.cycles;
        Ok(())
    }
}

/// Whether a rate is far from all simple fractions of a cycle.
fn is_uneven(cycles: f64) -> bool {
    let is_far = |denominator: u32| {
        let steps = f64::from(denominator);
        ((cycles * steps).round() / steps - cycles).abs() > UNEVEN_SHARE * cycles
    };
    cycles < SEARCHED_BELOW && (1..=SIMPLE_DENOMINATOR).all(is_far)
}

/// The least finite figure. Infinite without any.
fn least_finite(figures: &[f64]) -> f64 {
    figures.iter().copied().filter(|figure| figure.is_finite()).fold(f64::INFINITY, f64::min)
}

/// Whether a slow form can do without an experiment.
fn is_spare(experiment: &FormExperiment) -> bool {
    let meaning = &experiment.meaning;
    matches!(meaning, ExperimentMeaning::Throughput { .. } | ExperimentMeaning::SameDestination { .. })
        || meaning.is_extra()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forms::form_anatomy::FormAnatomy;
    use crate::selection::{FormCriteria, list_forms};
    use cyclescope_code::clock::Clock;
    use cyclescope_core::machine::Machine;

    #[test]
    fn rates_between_simple_fractions_are_searched_longer() {
        assert!([0.25, 0.502, 0.667, 0.6, 1.0, 3.0, 20.3].into_iter().all(|cycles| !is_uneven(cycles)));
        assert!([0.577, 0.593, 0.852, 1.71].into_iter().all(is_uneven));
    }

    #[test]
    fn the_first_pass_measures_all_programs_and_later_passes_the_best() {
        let criteria = FormCriteria { filters: vec!["Imul_r64_rm64 r64, r64".to_string()], ..FormCriteria::default() };
        let wanted = criteria.select(list_forms()).unwrap().remove(0);
        let plan = FormPlan::new(FormAnatomy::from_form(wanted.form).unwrap(), &Machine::detect().features, &wanted);
        let is_rate = |one: &FormExperiment| matches!(one.meaning, ExperimentMeaning::Throughput { variant: None, .. });
        let rates: Vec<usize> =
            plan.experiments.iter().enumerate().filter(|(_, one)| is_rate(one)).map(|(at, _)| at).collect();
        let timer = ProgramTimer::new(Clock::find_named("rdtscp-lfence").unwrap(), 1.0, 3.0);
        // The programs that look best at first are not the best.
        let reading = |cost: fn(usize) -> f64, looked: fn(usize) -> f64| {
            let mut readings = vec![ProgramReading::default(); plan.experiments.len()];
            for (place, index) in rates.iter().enumerate() {
                readings[*index].cycles = vec![cost(place); 6];
                readings[*index].first_look = Some(looked(place));
            }
            readings
        };
        let readings = reading(|place| 2.0 - 0.1 * place as f64, |place| 1.0 + 0.1 * place as f64);
        let left = |passes: u32, earlier: &[Vec<ProgramReading>]| {
            let effort = SurveyEffort { passes, recipes: 2, ..SurveyEffort::FULL };
            FormMeasurement { timer: &timer, effort, plan: &plan, earlier }.find_slower(&readings)
        };
        let kept =
            |left: Vec<usize>| -> Vec<usize> { rates.iter().copied().filter(|index| !left.contains(index)).collect() };
        assert_eq!(kept(left(2, &[])), rates);
        assert_eq!(kept(left(2, std::slice::from_ref(&readings))), rates[rates.len() - 2..]);
        assert_eq!(kept(left(1, &[])), rates[..2], "a single pass relies on the first look");
    }
}
