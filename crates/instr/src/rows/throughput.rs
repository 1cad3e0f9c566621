//! The reciprocal throughput of a form, from its experiments.

use super::best_program::{BestProgram, find_best};
use super::instr_row::{InstrRow, RateMode, ReciprocalThroughput, ThroughputVariant};
use super::row_analysis::{CYCLE_LEAST, PassDisagreement, RowAnalysis};
use crate::bodies::operand_values;
use crate::bodies::throughput_recipe::ThroughputRecipe;
use crate::experiments::experiment::{BOUND_SHARE, ExperimentMeaning};
use crate::experiments::modes::{MODE_SHARE, ModeEstimate, estimate_lowest_mode, is_proved, list_modes, mode_width};
use crate::experiments::program_reading::{ProgramReading, figures_by_pass};
use crate::forms::gather;
use cyclescope_core::statistics::{Interval, median};
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::caveat::{Caveat, CaveatKind};
use cyclescope_measure::result::record::Quantity;

/// Denominators of named fractions.
const DENOMINATORS: std::ops::RangeInclusive<u32> = 1..=6;
/// Above this, only whole numbers are named.
const FRACTIONS_BELOW: f64 = 4.0;

impl RowAnalysis<'_> {
    pub(super) fn estimate_throughput(
        &self,
        passes: &[Vec<ProgramReading>],
        row: &mut InstrRow,
    ) -> Option<ReciprocalThroughput> {
        let is_rate = |index: &usize| {
            matches!(self.plan.experiments[*index].meaning, ExperimentMeaning::Throughput { variant: None, .. })
        };
        let places: Vec<usize> = (0..self.plan.experiments.len()).filter(is_rate).collect();
        let rates: Vec<f64> = places.iter().flat_map(|index| self.estimate_rates(passes, *index)).collect();
        let bodies = self.group_by_body(&places);
        let programs: Vec<_> = bodies.iter().map(|body| self.pool_figures(passes, body)).collect();
        let BestProgram { place, mut cost } = find_best(&programs, self.confidence)?;
        let least = |index: &usize| figures_by_pass(passes, *index).concat().into_iter().fold(f64::INFINITY, f64::min);
        let index = *bodies[place].iter().min_by(|a, b| least(a).total_cmp(&least(b)))?;
        let ExperimentMeaning::Throughput { recipe, burdened, .. } = &self.plan.experiments[index].meaning else {
            return None;
        };
        let estimate = |figures: &Vec<f64>| Some(self.estimate_figures(index, figures)?.cost);
        if !is_proved(&programs[place].concat()) {
            let costs = programs[place].iter().filter_map(estimate).collect();
            let disagreement = self.find_disagreement(costs, 0.0, "reciprocal throughput");
            if let Some(PassDisagreement { caveat, range }) = disagreement {
                row.caveats.push(caveat);
                cost = Interval { low: cost.low.min(range[0]), high: cost.high.max(range[1]), ..cost };
            }
        }
        let ordinary = self.collect_ordinary(passes, index);
        if *burdened {
            let text = "throughput: it includes instructions that each instance needs";
            row.caveats.push(Caveat { code: CaveatKind::UpperBound, text: text.to_string() });
        }
        let variants = self.estimate_variants(passes, cost.value);
        row.caveats.extend(bound_mask_cost(&variants, cost.value));
        if cost.value < CYCLE_LEAST * self.nop_cycles {
            row.tags.push("fused".to_string());
        }
        Some(ReciprocalThroughput {
            cost: Quantity::new(cost, Unit::CoreCycles),
            recipe: recipe.clone(),
            fraction: find_fraction(&cost),
            decoders: self.estimate_decoders(passes, cost.value),
            modes: list_other_modes(rates, cost.value),
            typical: (!ordinary.is_empty()).then(|| round_cycles(median(&mut ordinary.clone()))),
            typical_modes: list_modes(&ordinary).into_iter().map(RateMode::from_mode).collect(),
            variants,
        })
    }

    /// Groups throughput programs that differ only in the start of their loop: all layouts of a body
    /// can prove its rate.
    fn group_by_body(&self, places: &[usize]) -> Vec<Vec<usize>> {
        let body = |index: usize| {
            let recipe = self.plan.experiments[index].meaning.recipe()?;
            (recipe.lead > 0).then_some(ThroughputRecipe { lead: 0, ..*recipe })
        };
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for index in places {
            let same = |group: &&mut Vec<usize>| body(*index).is_some() && body(group[0]) == body(*index);
            match groups.iter_mut().find(same) {
                Some(group) => group.push(*index),
                None => groups.push(vec![*index]),
            }
        }
        groups
    }

    /// The figures of several experiments by pass.
    fn pool_figures(&self, passes: &[Vec<ProgramReading>], indices: &[usize]) -> Vec<Vec<f64>> {
        let figures: Vec<Vec<Vec<f64>>> = indices.iter().map(|index| figures_by_pass(passes, *index)).collect();
        let pooled = |pass| figures.iter().filter_map(|one| one.get(pass)).flatten().copied().collect();
        (0..passes.len()).map(pooled).collect()
    }

    /// Whether a single layout was faster than the row's rate. A further pass may prove it.
    pub(crate) fn has_unproved_rate(&self, passes: &[Vec<ProgramReading>], row: &InstrRow) -> bool {
        let Some(proved) = row.throughput.as_ref().and_then(|throughput| throughput.cost.value) else { return false };
        let is_rate = |index: &usize| {
            matches!(self.plan.experiments[*index].meaning, ExperimentMeaning::Throughput { variant: None, .. })
        };
        let rates = (0..self.plan.experiments.len()).filter(is_rate);
        let mut layouts = rates.flat_map(|index| figures_by_pass(passes, index).concat());
        layouts.any(|cycles| cycles + 2.0 * mode_width(cycles) < proved)
    }

    /// The rates of a program's modes, best first.
    fn estimate_rates(&self, passes: &[Vec<ProgramReading>], index: usize) -> Vec<f64> {
        let estimate = self.estimate_experiment(passes, index);
        estimate.map_or(Vec::new(), |found| std::iter::once(found.cost.value).chain(found.others).collect())
    }

    /// Rounds of the programs that are ordinary code: without steering, and with the dependencies broken
    /// in the same way as in the best program.
    fn collect_ordinary(&self, passes: &[Vec<ProgramReading>], best: usize) -> Vec<f64> {
        let breaking = |index: usize| match &self.plan.experiments[index].meaning {
            ExperimentMeaning::Throughput { program, variant: None, .. } => Some(program.map(|one| one.breaking)),
            _ => None,
        };
        let is_ordinary = |index: &usize| {
            let meaning = &self.plan.experiments[*index].meaning;
            let steered = meaning.recipe().is_some_and(ThroughputRecipe::is_steered);
            !steered && breaking(*index).is_some() && breaking(*index) == breaking(best)
        };
        let ordinary: Vec<usize> = (0..self.plan.experiments.len()).filter(is_ordinary).collect();
        let readings = passes.iter().flat_map(|pass| ordinary.iter().filter_map(|index| pass.get(*index)));
        readings.flat_map(|reading| reading.rounds.iter().copied()).collect()
    }

    /// The best program of each variant. Subnormal operands are reported only if they make a
    /// difference.
    fn estimate_variants(&self, passes: &[Vec<ProgramReading>], headline: f64) -> Vec<ThroughputVariant> {
        let mut best: Vec<ThroughputVariant> = Vec::new();
        for (index, experiment) in self.plan.experiments.iter().enumerate() {
            let ExperimentMeaning::Throughput { recipe, variant: Some(variant), .. } = &experiment.meaning else {
                continue;
            };
            let Some(ModeEstimate { cost, .. }) = self.estimate_experiment(passes, index) else { continue };
            if variant == operand_values::SUBNORMAL && !operand_values::costs_differ(headline, cost.value) {
                continue;
            }
            let cost = Quantity::new(cost, Unit::CoreCycles);
            let one = ThroughputVariant { variant: variant.clone(), immediate: None, cost, recipe: recipe.clone() };
            match best.iter_mut().find(|other| other.variant == *variant) {
                Some(known) if one.cost.value < known.cost.value => *known = one,
                Some(_) => {}
                None => best.push(one),
            }
        }
        best
    }

    /// The rate from the decoders, if it differs from the best.
    fn estimate_decoders(&self, passes: &[Vec<ProgramReading>], best: f64) -> Option<Quantity> {
        let readings = passes.iter().filter_map(|pass| pass.first());
        let values: Vec<f64> = readings.flat_map(|reading| reading.decoded.clone()).collect();
        let cost = estimate_lowest_mode(&values, self.confidence)?.cost;
        let differs = cost.value > best * (1.0 + BOUND_SHARE) && cost.low > best;
        differs.then(|| Quantity::new(cost, Unit::CoreCycles))
    }
}

/// The caveat for a rate of a gather that may include the setting of masks.
fn bound_mask_cost(variants: &[ThroughputVariant], headline: f64) -> Option<Caveat> {
    let cleared = variants.iter().find(|variant| variant.variant == gather::CLEARED_MASKS)?.cost.value?;
    let text =
        format!("throughput: setting each instance's mask costs at most {:.2} core cycles of it", headline - cleared);
    let matters = cleared < headline && operand_values::costs_differ(cleared, headline);
    matters.then_some(Caveat { code: CaveatKind::UpperBound, text })
}

/// Modes other than the best, rounded, without duplicates.
fn list_other_modes(rates: Vec<f64>, best: f64) -> Vec<f64> {
    let mut others: Vec<f64> = rates.into_iter().filter(|rate| *rate > best * (1.0 + 2.0 * MODE_SHARE)).collect();
    others.sort_by(f64::total_cmp);
    others.dedup_by(|b, a| *b - *a <= 2.0 * MODE_SHARE * *a);
    others.into_iter().map(round_cycles).collect()
}

fn round_cycles(cycles: f64) -> f64 {
    (cycles * 1000.0).round() / 1000.0
}

impl RateMode {
    fn from_mode((cycles, share): (f64, f64)) -> RateMode {
        RateMode { cycles: round_cycles(cycles), share: (share * 100.0).round() / 100.0 }
    }
}

/// The only simple fraction in an interval, if there is exactly one.
fn find_fraction(cost: &Interval) -> Option<String> {
    let mut found = None;
    for denominator in DENOMINATORS {
        let numerator = (cost.value * f64::from(denominator)).round();
        let value = numerator / f64::from(denominator);
        let reduced = (1..denominator).all(|smaller| {
            let other = value * f64::from(smaller);
            (other - other.round()).abs() > 1e-9
        });
        let odd = denominator > 1 && value > FRACTIONS_BELOW;
        if numerator < 1.0 || odd || !reduced || !cost.contains(value) {
            continue;
        }
        if found.is_some() {
            return None;
        }
        found = Some(if denominator == 1 { format!("{numerator}") } else { format!("{numerator}/{denominator}") });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::instr_table::tests::row;
    use super::super::row_analysis::tests::plan;
    use super::*;
    use crate::experiments::link_costs::LinkCosts;

    #[test]
    fn masks_that_cost_time_are_named() {
        let variant = |cycles: f64| ThroughputVariant {
            variant: gather::CLEARED_MASKS.to_string(),
            immediate: None,
            cost: Quantity::new(Interval::with_margin(cycles, 0.01), Unit::CoreCycles),
            recipe: String::new(),
        };
        let text = bound_mask_cost(&[variant(4.01)], 4.98).expect("a caveat").text;
        assert!(text.contains("at most 0.97 core cycles"), "{text}");
        assert!(bound_mask_cost(&[variant(2.99)], 3.0).is_none() && bound_mask_cost(&[], 3.0).is_none());
    }

    #[test]
    fn a_single_faster_layout_needs_a_further_pass() {
        let plan = plan("Imul_r64_rm64 r64, r64");
        let link_costs = LinkCosts::default();
        let analysis = RowAnalysis::without_slots(&plan, &link_costs, 0.2);
        let row = row("imul", "r64, r64", Vec::new(), 1.0);
        let needs = |cycles: &[f64]| {
            let mut readings = vec![ProgramReading::default(); plan.experiments.len()];
            readings[0].cycles = cycles.to_vec();
            analysis.has_unproved_rate(&[readings], &row)
        };
        assert!(needs(&[1.0, 0.75, 1.0]) && !needs(&[1.0, 0.98, 1.0]) && !needs(&[]));
    }

    #[test]
    fn layouts_of_one_body_prove_its_rate_wherever_its_loop_starts() {
        let plan = plan("Imul_r64_rm64 r64, r64");
        let link_costs = LinkCosts::default();
        let analysis = RowAnalysis::without_slots(&plan, &link_costs, 0.2);
        let lead = |index: usize| plan.experiments[index].meaning.recipe().map_or(0, |recipe| recipe.lead);
        let rate = |fast: &[usize]| {
            let mut readings = vec![ProgramReading::default(); plan.experiments.len()];
            for (index, reading) in readings.iter_mut().enumerate() {
                let rates =
                    matches!(plan.experiments[index].meaning, ExperimentMeaning::Throughput { variant: None, .. });
                reading.cycles = if rates { vec![1.0, 1.001, 1.0] } else { Vec::new() };
                if fast.contains(&lead(index)) {
                    reading.cycles[1] = 0.75 + 0.001 * index as f64;
                }
            }
            let mut row = row("imul", "r64, r64", Vec::new(), 1.0);
            let found = analysis.estimate_throughput(&[readings], &mut row).unwrap();
            (found.cost.value.unwrap(), found.recipe)
        };
        let (cycles, recipe) = rate(&[2, 5]);
        assert!(cycles < 0.8 && recipe.contains("2 lea"), "{cycles}, {recipe}");
        assert!(rate(&[2]).0 > 0.99, "one layout proves nothing");
    }

    #[test]
    fn a_fraction_is_named_only_if_it_is_unique() {
        let name = |value, margin| find_fraction(&Interval::with_margin(value, margin));
        assert_eq!(name(0.3335, 0.002).as_deref(), Some("1/3"));
        assert_eq!(name(1.0, 0.01).as_deref(), Some("1"));
        assert_eq!(name(0.22, 0.001), None);
        assert_eq!(name(0.3, 0.1), None);
    }
}
