//! The reciprocal throughput of a form, from its experiments.

use super::best_program::{BestProgram, find_best};
use super::instr_row::{InstrRow, ReciprocalThroughput, ThroughputVariant};
use super::row_analysis::{CYCLE_LEAST, PassDisagreement, RowAnalysis};
use crate::bodies::operand_values;
use crate::experiments::experiment::{BOUND_SHARE, ExperimentMeaning};
use crate::experiments::modes::{MODE_SHARE, ModeEstimate, estimate_lowest_mode};
use crate::experiments::program_reading::ProgramReading;
use cyclescope_core::statistics::Interval;
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
        let programs: Vec<_> = places.iter().map(|index| self.figures_by_pass(passes, *index)).collect();
        let BestProgram { place, mut cost } = find_best(&programs, self.confidence)?;
        let index = places[place];
        let ExperimentMeaning::Throughput { recipe, burdened, .. } = &self.plan.experiments[index].meaning else {
            return None;
        };
        let estimate = |figures: &Vec<f64>| Some(self.estimate_figures(index, figures)?.cost.value);
        let costs = programs[place].iter().filter_map(estimate).collect();
        if let Some(PassDisagreement { caveat, range }) = self.find_disagreement(costs, 0.0, "reciprocal throughput") {
            row.caveats.push(caveat);
            cost = Interval { low: cost.low.min(range[0]), high: cost.high.max(range[1]), ..cost };
        }
        if *burdened {
            let text = "throughput: it includes instructions that each instance needs";
            row.caveats.push(Caveat { code: CaveatKind::UpperBound, text: text.to_string() });
        }
        if cost.value < CYCLE_LEAST * self.nop_cycles {
            row.tags.push("fused".to_string());
        }
        Some(ReciprocalThroughput {
            cost: Quantity::new(cost, Unit::CoreCycles),
            recipe: recipe.clone(),
            fraction: find_fraction(&cost),
            decoders: self.estimate_decoders(passes, cost.value),
            modes: list_other_modes(rates, cost.value),
            variants: self.estimate_variants(passes, cost.value),
        })
    }

    /// The rates of a program's modes, best first.
    fn estimate_rates(&self, passes: &[Vec<ProgramReading>], index: usize) -> Vec<f64> {
        let estimate = self.estimate_experiment(passes, index);
        estimate.map_or(Vec::new(), |found| std::iter::once(found.cost.value).chain(found.others).collect())
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

/// Modes other than the best, rounded, without duplicates.
fn list_other_modes(rates: Vec<f64>, best: f64) -> Vec<f64> {
    let mut others: Vec<f64> = rates.into_iter().filter(|rate| *rate > best * (1.0 + 2.0 * MODE_SHARE)).collect();
    others.sort_by(f64::total_cmp);
    others.dedup_by(|b, a| *b - *a <= 2.0 * MODE_SHARE * *a);
    others.into_iter().map(|rate| (rate * 1000.0).round() / 1000.0).collect()
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
    use super::*;

    #[test]
    fn a_fraction_is_named_only_if_it_is_unique() {
        let name = |value, margin| find_fraction(&Interval::with_margin(value, margin));
        assert_eq!(name(0.3335, 0.002).as_deref(), Some("1/3"));
        assert_eq!(name(1.0, 0.01).as_deref(), Some("1"));
        assert_eq!(name(0.22, 0.001), None);
        assert_eq!(name(0.3, 0.1), None);
    }
}
