//! Which programs of a form matter, and how many layouts of each.

use super::FormMeasurement;
use crate::experiments::experiment::{ExperimentMeaning, FormExperiment};
use crate::experiments::modes::{find_lowest_mode, is_one_mode, is_proved, mode_width};
use crate::experiments::program_reading::ProgramReading;

/// Layouts of throughput programs while rates are searched: of those that search for scheduling modes,
/// in the first pass, and of others. Then those of the best programs in later passes. The rounds of a
/// layout are trials of their own.
const SEARCH_LAYOUTS: usize = 3;
const RATE_LAYOUTS: usize = 3;
const BEST_LAYOUTS: usize = 4;
/// Layouts of other programs in later passes, if all layouts so far agree.
pub(super) const CONFIRMING_LAYOUTS: usize = 3;
/// Slower instructions than this, in core cycles, have no search: they leave ports idle.
pub(super) const SEARCHED_BELOW: f64 = 8.0;
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

impl FormMeasurement<'_> {
    /// Whether an experiment can give a figure of this form. A single pass has too few layouts to meet
    /// a rare mode.
    pub(super) fn is_needed(&self, index: usize, is_slow: bool) -> bool {
        let experiment = &self.plan.experiments[index];
        let led = experiment.meaning.recipe().is_some_and(|recipe| recipe.lead > 0);
        (!is_slow || index == 0 || !is_spare(experiment)) && (self.effort.passes > 1 || !led)
    }

    /// Whether an experiment waits for the others: the search for another scheduling mode is long, and
    /// most rates need none. Later passes repeat the programs that earlier ones found best.
    pub(super) fn is_postponed(&self, index: usize) -> bool {
        self.needs_search(index) && (self.earlier.is_empty() || self.earlier_look(index).is_none())
    }

    /// Whether steered programs may have a better rate than the others. They have none if units work
    /// all the time: then the best rate is a simple fraction, and most layouts of ordinary code have
    /// it.
    pub(super) fn may_steer(&self, readings: &[ProgramReading]) -> bool {
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
    pub(super) fn find_slower(&self, readings: &[ProgramReading]) -> Vec<usize> {
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

    /// Number of layouts that an experiment lacks. A search tries many throughput programs in few
    /// layouts.
    pub(super) fn count_missing(&self, index: usize, reading: &ProgramReading) -> usize {
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

/// Whether a slow form can do without an experiment.
fn is_spare(experiment: &FormExperiment) -> bool {
    let meaning = &experiment.meaning;
    matches!(meaning, ExperimentMeaning::Throughput { .. } | ExperimentMeaning::SameDestination { .. })
        || meaning.is_extra()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::throughput_recipe::ThroughputRecipe;
    use crate::experiments::form_measurement::sample_form::{give_readings, new_timer, plan_imul};
    use crate::experiments::survey_effort::SurveyEffort;
    use crate::experiments::timing::ProgramTimer;
    use cyclescope_code::asm::CodeMode;
    use cyclescope_code::clock::Clock;

    #[test]
    fn rates_between_simple_fractions_are_searched_longer() {
        assert!([0.25, 0.502, 0.667, 0.6, 1.0, 3.0, 20.3].into_iter().all(|cycles| !is_uneven(cycles)));
        assert!([3.5, 2.5, 1.333].into_iter().all(|cycles| !is_uneven(cycles)));
        assert!([0.577, 0.593, 0.852, 1.71].into_iter().all(is_uneven));
        assert!([1.166, 2.2, 2.167].into_iter().all(is_uneven), "only small numbers make a simple fraction");
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
        let rate = |cycles: f64| give_readings(&plan, |one| one.meaning.recipe().map(|_| cycles));
        assert!(!steers(2, &rate(0.501)) && !steers(1, &rate(1.0)));
        assert!(steers(2, &rate(0.58)), "no simple fraction");
        let rare = give_readings(&plan, |one| Some(if one.body_copies == 96 { 0.5 } else { 0.58 }));
        assert!(steers(2, &rare), "most ordinary code is slower");
        let nops = give_readings(&plan, |one| Some(if is_steered(one) { 0.58 } else { 0.5 }));
        assert!(!steers(2, &nops), "NOPs take slots");
        assert!(steers(2, &give_readings(&plan, |_| None)), "nothing is known");
    }

    #[test]
    fn few_layouts_confirm_an_earlier_pass_whose_layouts_agree() {
        let (plan, timer) = (plan_imul(), new_timer());
        let chain = |one: &FormExperiment| matches!(one.meaning, ExperimentMeaning::Latency { .. });
        let index = plan.experiments.iter().position(chain).unwrap();
        let missing = |earlier: &[f64], now: &[f64]| {
            let mut readings = give_readings(&plan, |_| None);
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
