//! Measures one form once: a first look at its programs, then layouts of those that matter.
//!
//! [`FormMeasurement::run`] is in [`constant_screening`](super::constant_screening): it measures
//! the form here, and then its other constants.

use super::experiment::{BOUND_SHARE, ChainVariation, ExperimentMeaning, FormExperiment};
use super::filler_curves::FillerCurves;
use super::form_plan::FormPlan;
use super::modes::{find_lowest_mode, is_one_mode, is_proved, mode_width};
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
/// Layouts and rounds of the first look.
const LOOK_SIZE: TimingSize = TimingSize { layouts: 1, warm_up: WARM_UP, rounds: 2 };
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
/// Calls of alternating chains are longer by this factor. Cores learn which store a load reads: on Zen
/// 5, turns of `movaps m128, xmm` take 30.65 core cycles in calls of 8 000 cycles, 31.0 in longer ones.
const ALTERNATING_FACTOR: f64 = 1.25;
/// Calls are too short if the cost allows more than this many times their iterations.
const SHORT_FACTOR: u64 = 2;
/// Layouts of throughput programs while rates are searched: of those that search for scheduling modes,
/// in the first pass, and of others. Then those of the best programs in later passes. The rounds of a
/// layout are trials of their own.
const SEARCH_LAYOUTS: usize = 3;
const RATE_LAYOUTS: usize = 3;
const BEST_LAYOUTS: usize = 4;
/// Layouts of other programs in later passes, if all layouts so far agree.
const CONFIRMING_LAYOUTS: usize = 3;
/// Slower instructions than this, in core cycles, have no search: they leave ports idle.
const SEARCHED_BELOW: f64 = 8.0;
/// A rate is no simple fraction if it is further than this share from those with a denominator up to
/// the number below it.
const UNEVEN_SHARE: f64 = 0.01;
const SIMPLE_DENOMINATOR: u32 = 6;
/// Largest numerator of a simple fraction with a denominator above two: a unit of several works on
/// few operations of an instruction.
const SIMPLE_NUMERATOR: f64 = 6.0;
/// Nothing is left to find by steering if this share of the layouts of ordinary code has the best
/// rate.
const SETTLED_SHARE: f64 = 0.6;
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
    /// The scale for dispatch slots.
    pub(crate) filler_curves: &'a FillerCurves,
}

#[cfg(test)]
impl<'a> FormMeasurement<'a> {
    /// The measurement in a survey that counts no slots.
    fn without_slots(
        timer: &'a ProgramTimer,
        effort: SurveyEffort,
        plan: &'a FormPlan,
        earlier: &'a [Vec<ProgramReading>],
    ) -> FormMeasurement<'a> {
        FormMeasurement { timer, effort, plan, earlier, filler_curves: &super::filler_curves::NO_FILLER_CURVES }
    }
}

/// Limits of a program's body.
#[derive(Debug, Clone, Copy)]
struct BodySize {
    /// Upper limit of instances.
    most: usize,
    /// Whether an instance is slow.
    slow: bool,
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
        let Some(size) = self.find_body_size(executor, random)? else { return Ok(readings) };
        let experiments = 0..self.plan.experiments.len();
        let (searching, others): (Vec<usize>, Vec<usize>) =
            experiments.filter(|index| self.is_needed(*index, size)).partition(|index| self.is_postponed(*index));
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

    /// Iterations of the shortest call of an experiment's program, given its cost per instance.
    fn choose_loops(&self, index: usize, timed: &LoopedProgram, cost: f64) -> u64 {
        let longer = if self.plan.experiments[index].meaning.is_alternating() { ALTERNATING_FACTOR } else { 1.0 };
        let wanted = longer * self.effort.cycles / 4.0 / (cost * timed.copies as f64);
        (wanted as u64).clamp(1, LOOPS_MOST)
    }

    /// Number of layouts that an experiment lacks. A search tries many throughput programs in few
    /// layouts.
    fn count_missing(&self, index: usize, reading: &ProgramReading) -> usize {
        let wanted = match &self.plan.experiments[index].meaning {
            ExperimentMeaning::Throughput { variant: None, .. } if self.searches_rates() => {
                match (self.needs_search(index), self.earlier.is_empty()) {
                    (true, true) => SEARCH_LAYOUTS,
                    // The search of the first pass has found no simple fraction.
                    (true, false) => self.effort.layouts,
                    (false, _) => RATE_LAYOUTS,
                }
            }
            ExperimentMeaning::Throughput { variant: None, .. } if !self.earlier.is_empty() => BEST_LAYOUTS,
            _ if self.confirms_earlier(index, reading) => CONFIRMING_LAYOUTS,
            _ => self.effort.layouts,
        };
        wanted.min(self.effort.layouts).saturating_sub(reading.cycles.len())
    }

    /// Whether this reading agrees with all layouts of earlier passes, which agree among themselves.
    fn confirms_earlier(&self, index: usize, reading: &ProgramReading) -> bool {
        let earlier = || self.earlier.iter().filter_map(|pass| pass.get(index)).flat_map(|reading| &reading.cycles);
        earlier().count() >= self.effort.layouts && is_one_mode(earlier().chain(&reading.cycles).copied())
    }

    fn needs_search(&self, index: usize) -> bool {
        self.plan.experiments[index].meaning.recipe().is_some_and(ThroughputRecipe::needs_search)
    }

    /// How many instances a body may have: a slow instruction would take too long in a long one.
    /// `None` without any figure. Earlier passes know the cost of an instance; otherwise a body with
    /// few of them is timed.
    fn find_body_size(&self, executor: &mut dyn Executor, random: &mut Random) -> Result<Option<BodySize>, RunError> {
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

    /// Whether an experiment can give a figure of this form. A single pass has too few layouts to meet
    /// a rare mode.
    fn is_needed(&self, index: usize, size: BodySize) -> bool {
        let experiment = &self.plan.experiments[index];
        let led = experiment.meaning.recipe().is_some_and(|recipe| recipe.lead > 0);
        (!size.slow || index == 0 || !is_spare(experiment)) && (self.effort.passes > 1 || !led)
    }

    /// A first look at these experiments: chooses iterations, and drops throughput programs that are
    /// slower. Programs that earlier passes timed keep the figure of their first look.
    fn take_first_look(
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

    /// Whether an experiment waits for the others: the search for another scheduling mode is long, and
    /// most rates need none. Later passes repeat the programs that earlier ones found best.
    fn is_postponed(&self, index: usize) -> bool {
        self.needs_search(index) && (self.earlier.is_empty() || self.earlier_look(index).is_none())
    }

    /// Whether steered programs may have a better rate than the others. They have none if units work
    /// all the time: then the best rate is a simple fraction, and most layouts of ordinary code have
    /// it.
    fn may_steer(&self, readings: &[ProgramReading]) -> bool {
        let is_rate = |index: &usize| {
            matches!(self.plan.experiments[*index].meaning, ExperimentMeaning::Throughput { variant: None, .. })
        };
        let rates: Vec<usize> = (0..readings.len()).filter(is_rate).collect();
        let passes = || self.earlier.iter().map(Vec::as_slice).chain([readings]);
        let layouts = |index: &usize| -> Vec<f64> {
            passes().filter_map(|pass| pass.get(*index)).flat_map(|reading| reading.cycles.iter().copied()).collect()
        };
        let proved = rates.iter().map(layouts).filter(|cycles| is_proved(cycles));
        let best = proved.filter_map(|cycles| find_lowest_mode(&cycles)).map(|mode| mode.value);
        let best = best.fold(f64::INFINITY, f64::min);
        if best.is_infinite() {
            return true;
        }
        let is_ordinary =
            |index: &&usize| self.plan.experiments[**index].meaning.recipe().is_some_and(|recipe| !recipe.is_steered());
        let layouts: Vec<f64> = rates.iter().filter(is_ordinary).flat_map(layouts).collect();
        let fast = layouts.iter().filter(|cycles| **cycles <= best + mode_width(best)).count();
        is_uneven(best) || (fast as f64) < SETTLED_SHARE * layouts.len() as f64
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

    /// The first figure of an experiment in an earlier pass.
    fn earlier_look(&self, index: usize) -> Option<f64> {
        self.earlier.iter().find_map(|pass| pass.get(index)?.first_look)
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
        let rthroughput = self.plan.least_rthroughput(readings);
        let mut decoded = ProgramReading::default();
        // If the decoders keep up in the first half, that is the answer.
        let half = self.effort.layouts.div_ceil(2);
        for layouts in [half, self.effort.layouts - half] {
            let timings = self.time_layouts(executor, &timed, layouts, random)?;
            timings.iter().for_each(|layout| decoded.add_rate_layout(&layout[0]));
            if keeps_up(&decoded.cycles, rthroughput) {
                break;
            }
        }
        readings[0].decoded = decoded.cycles;
        Ok(())
    }
}

/// Whether the lowest proved rate of decoded code is no slower than the best program.
pub(super) fn keeps_up(decoded: &[f64], rthroughput: f64) -> bool {
    is_proved(decoded)
        && find_lowest_mode(decoded).is_some_and(|decoded| decoded.value <= rthroughput * (1.0 + BOUND_SHARE))
}

/// Whether a rate is far from all simple fractions of a cycle.
fn is_uneven(cycles: f64) -> bool {
    let is_far = |denominator: u32| {
        let steps = f64::from(denominator);
        let numerator = (cycles * steps).round();
        let is_simple = denominator <= 2 || numerator <= SIMPLE_NUMERATOR;
        !is_simple || (numerator / steps - cycles).abs() > UNEVEN_SHARE * cycles
    };
    cycles < SEARCHED_BELOW && (1..=SIMPLE_DENOMINATOR).all(is_far)
}

/// The least of these figures that a program may have. Infinite without any: a disturbed short call
/// makes a difference negative.
fn find_least_possible(figures: impl Iterator<Item = f64>) -> f64 {
    figures.filter(|figure| *figure > 0.0 && figure.is_finite()).fold(f64::INFINITY, f64::min)
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
    use cyclescope_code::asm::CodeMode;
    use cyclescope_code::clock::Clock;
    use cyclescope_core::machine::Machine;

    #[test]
    fn rates_between_simple_fractions_are_searched_longer() {
        assert!([0.25, 0.502, 0.667, 0.6, 1.0, 3.0, 20.3].into_iter().all(|cycles| !is_uneven(cycles)));
        assert!([3.5, 2.5, 1.333].into_iter().all(|cycles| !is_uneven(cycles)));
        assert!([0.577, 0.593, 0.852, 1.71].into_iter().all(is_uneven));
        assert!([1.166, 2.2, 2.167].into_iter().all(is_uneven), "only small numbers make a simple fraction");
    }

    fn plan_imul() -> FormPlan {
        let criteria = FormCriteria { filters: vec!["Imul_r64_rm64 r64, r64".to_string()], ..FormCriteria::default() };
        let wanted = criteria.select(list_forms(CodeMode::default())).unwrap().remove(0);
        FormPlan::new(FormAnatomy::from_form(wanted.form).unwrap(), &Machine::detect().features, &wanted)
    }

    fn new_timer() -> ProgramTimer<'static> {
        ProgramTimer::new(Clock::find_named("rdtscp-lfence").unwrap(), 2.0, 3.0, CodeMode::Bits64)
    }

    /// Readings with this cost in six layouts of each program, if it gives one.
    fn read(plan: &FormPlan, cost: impl Fn(&FormExperiment) -> Option<f64>) -> Vec<ProgramReading> {
        let reading = |one: &FormExperiment| ProgramReading {
            cycles: cost(one).map_or(Vec::new(), |cost| vec![cost; 6]),
            ..ProgramReading::default()
        };
        plan.experiments.iter().map(reading).collect()
    }

    fn is_steered(one: &FormExperiment) -> bool {
        one.meaning.recipe().is_some_and(ThroughputRecipe::is_steered)
    }

    #[test]
    fn rates_are_steered_unless_most_ordinary_code_has_a_simple_one() {
        let (plan, timer) = (plan_imul(), new_timer());
        let steers = |passes: u32, readings: &[ProgramReading]| {
            let effort = SurveyEffort { passes, ..SurveyEffort::FULL };
            FormMeasurement::without_slots(&timer, effort, &plan, &[]).may_steer(readings)
        };
        let rate = |cycles: f64| read(&plan, |one| one.meaning.recipe().map(|_| cycles));
        assert!(!steers(2, &rate(0.501)) && !steers(1, &rate(1.0)));
        assert!(steers(2, &rate(0.58)), "no simple fraction");
        let rare = read(&plan, |one| Some(if one.body_copies == 96 { 0.5 } else { 0.58 }));
        assert!(steers(2, &rare), "most ordinary code is slower");
        let nops = read(&plan, |one| Some(if is_steered(one) { 0.58 } else { 0.5 }));
        assert!(!steers(2, &nops), "NOPs take slots");
        assert!(steers(2, &read(&plan, |_| None)), "nothing is known");
    }

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

    #[test]
    fn calls_of_alternating_chains_are_longer() {
        let criteria = FormCriteria { filters: vec!["Mov_rm64_r64 m64, r64".to_string()], ..FormCriteria::default() };
        let wanted = criteria.select(list_forms(CodeMode::default())).unwrap().remove(0);
        let features = Machine::detect().features;
        let plan = FormPlan::new(FormAnatomy::from_form(wanted.form).unwrap(), &features, &wanted);
        let timer = new_timer();
        let form = FormMeasurement::without_slots(&timer, SurveyEffort::FULL, &plan, &[]);
        let timed = LoopedProgram { copies: 10, ..form.prepare_program(&plan.experiments[0], usize::MAX) };
        let is_alternating = |index: &usize| plan.experiments[*index].meaning.is_alternating();
        let (alternating, others): (Vec<usize>, Vec<usize>) = (0..plan.experiments.len()).partition(is_alternating);
        let loops = |index: usize| form.choose_loops(index, &timed, 10.0) as f64;
        assert!((loops(alternating[0]) / loops(others[0]) - ALTERNATING_FACTOR).abs() < 0.1);
    }

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

    #[test]
    fn few_layouts_confirm_an_earlier_pass_whose_layouts_agree() {
        let (plan, timer) = (plan_imul(), new_timer());
        let chain = |one: &FormExperiment| matches!(one.meaning, ExperimentMeaning::Latency { .. });
        let index = plan.experiments.iter().position(chain).unwrap();
        let missing = |earlier: &[f64], now: &[f64]| {
            let mut readings = read(&plan, |_| None);
            readings[index].cycles = earlier.to_vec();
            let earlier = [readings];
            let form = FormMeasurement::without_slots(&timer, SurveyEffort::FULL, &plan, &earlier);
            form.count_missing(index, &ProgramReading { cycles: now.to_vec(), ..ProgramReading::default() })
        };
        assert_eq!(missing(&[3.0; 6], &[]), CONFIRMING_LAYOUTS);
        assert_eq!(missing(&[3.0; 6], &[3.01; CONFIRMING_LAYOUTS]), 0);
        assert_eq!(missing(&[3.0; 6], &[4.0; CONFIRMING_LAYOUTS]), 6 - CONFIRMING_LAYOUTS);
        assert_eq!(missing(&[3.0, 3.0, 3.0, 3.0, 3.0, 3.2], &[]), 6);
        assert_eq!(missing(&[3.0; 2], &[]), 6, "too few layouts");
    }

    #[test]
    fn decoders_that_keep_up_are_an_answer() {
        let (plan, timer) = (plan_imul(), new_timer());
        let readings = read(&plan, |_| Some(0.5));
        let asks = |decoded: &[f64]| {
            let mut earlier = readings.clone();
            earlier[0].decoded = decoded.to_vec();
            let effort = SurveyEffort::FULL;
            FormMeasurement::without_slots(&timer, effort, &plan, &[earlier]).may_decoders_limit(&readings)
        };
        assert!(!asks(&[0.51, 0.505, 0.7]));
        assert!(asks(&[0.6; 6]) && asks(&[0.5, 0.7, 0.9]) && asks(&[]));
    }

    #[test]
    fn the_first_pass_measures_all_programs_and_later_passes_the_best() {
        let plan = plan_imul();
        let is_rate = |one: &FormExperiment| matches!(one.meaning, ExperimentMeaning::Throughput { variant: None, .. });
        let rates: Vec<usize> =
            plan.experiments.iter().enumerate().filter(|(_, one)| is_rate(one)).map(|(at, _)| at).collect();
        let timer = ProgramTimer::new(Clock::find_named("rdtscp-lfence").unwrap(), 1.0, 3.0, CodeMode::Bits64);
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
            FormMeasurement::without_slots(&timer, effort, &plan, earlier).find_slower(&readings)
        };
        let kept =
            |left: Vec<usize>| -> Vec<usize> { rates.iter().copied().filter(|index| !left.contains(index)).collect() };
        assert_eq!(kept(left(2, &[])), rates);
        assert_eq!(kept(left(2, std::slice::from_ref(&readings))), rates[rates.len() - 2..]);
        assert_eq!(kept(left(1, &[])), rates[..2], "a single pass relies on the first look");
    }
}
