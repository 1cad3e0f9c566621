//! Variants of a row by constants that change a form's cost.
//!
//! A wrong difference is worse than a missing one, because rates have several modes. A constant is
//! a variant under two conditions. Every pass shows the same difference, in at least two passes if
//! there are several. And the layouts with both constants are separate: few lie on the wrong side
//! of the middle between the medians. Allowed are 0 of 6 layouts each, 1 of 8, and 2 of 10 or more.
//! Chance alone passes this in less than one case of a thousand.
//!
//! Latencies compare the layouts of the chosen chain. A slower rate must be slower in all programs.
//! Limits: differences below a twentieth, through memory, or with fewer layouts are not reported.

use super::chain_variations::variation_figures;
use super::instr_row::{InstrRow, OperandLatency, ReciprocalThroughput, RowStatus, ThroughputVariant};
use super::row_analysis::RowAnalysis;
use crate::experiments::experiment::ExperimentMeaning;
use crate::experiments::form_plan::FormPlan;
use crate::experiments::program_reading::ProgramReading;
use crate::forms::encoded_constant::EncodedConstant;
use cyclescope_core::statistics::median;
use cyclescope_measure::result::record::Quantity;

/// Least difference of rates, as a share and in core cycles. Latencies use the same share.
const DIFFERENCE_SHARE: f64 = 0.05;
const RATE_CYCLES: f64 = 0.015;
const LATENCY_CYCLES: f64 = 0.2;
/// Allowed layouts on the wrong side, by the smaller number of layouts. Fewer layouts than listed
/// give no verdict. Two samples of one distribution pass in 0.03 % of cases, for any number
/// (simulated, 50 000 pairs each).
const ASTRAY_MOST: [(usize, usize); 3] = [(10, 2), (8, 1), (6, 0)];
/// Least number of passes that must show a difference, if there are that many.
const PASSES_LEAST: usize = 2;

/// The readings of one constant, by pass.
pub(crate) struct TriedConstant {
    pub(crate) constant: EncodedConstant,
    pub(crate) plan: FormPlan,
    pub(crate) passes: Vec<Vec<ProgramReading>>,
    /// Readings of the same passes with the general constant.
    general: Vec<Vec<ProgramReading>>,
}

impl TriedConstant {
    /// Whether a chain is quicker only because this constant takes the flags out of it. A shift by
    /// zero writes no flags, so their reader waits for an earlier instruction. If the chain is
    /// slower, the reader does wait for the shift.
    fn breaks_chain(&self, latency: &OperandLatency, difference: CostDifference) -> bool {
        let writes = self.plan.anatomy.sample.rflags_modified() != 0;
        latency.to == "flags" && !writes && difference == CostDifference::Less
    }
}

/// The constants of a plan that were measured fully in enough passes.
pub(crate) fn collect_tried(plan: &FormPlan, passes: &[Vec<ProgramReading>]) -> Vec<TriedConstant> {
    let collect = |(place, constant): (usize, &EncodedConstant)| {
        let readings_here = |pass: &Vec<ProgramReading>| {
            let other = pass.first()?.constants.as_ref()?.iter().find(|other| other.place == place)?;
            Some((other.readings.clone(), pass.clone()))
        };
        let (passes_here, general): (Vec<_>, Vec<_>) = passes.iter().filter_map(readings_here).unzip();
        let enough = passes_here.len() >= PASSES_LEAST.min(passes.len());
        let plan = if enough { plan.with_constant(*constant)? } else { return None };
        Some(TriedConstant { constant: *constant, plan, passes: passes_here, general })
    };
    plan.anatomy.constants.iter().enumerate().skip(1).filter_map(collect).collect()
}

/// The relation of two costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CostDifference {
    None,
    Less,
    More,
}

/// Compares two costs with a tolerance in core cycles and as a share.
fn compare_costs(general: &Quantity, other: &Quantity, cycles: f64) -> CostDifference {
    let (Some(general), Some(other)) = (general.value, other.value) else { return CostDifference::None };
    let least = cycles.max(DIFFERENCE_SHARE * general.min(other));
    match () {
        _ if general - other > least => CostDifference::Less,
        _ if other - general > least => CostDifference::More,
        _ => CostDifference::None,
    }
}

/// Whether the layouts of a fast and a slow constant are separate, except for a few.
fn are_apart(fast: &[f64], slow: &[f64]) -> bool {
    let least = fast.len().min(slow.len());
    let Some((_, most)) = ASTRAY_MOST.iter().find(|(layouts, _)| least >= *layouts) else { return false };
    let middle = (median(&mut fast.to_vec()) + median(&mut slow.to_vec())) / 2.0;
    let astray = fast.iter().filter(|cycles| **cycles >= middle).count()
        + slow.iter().filter(|cycles| **cycles <= middle).count();
    astray <= *most
}

/// The rows of the general constant and of another one, from the same passes.
struct ConstantRowPair {
    general: InstrRow,
    other: InstrRow,
}

impl RowAnalysis<'_> {
    /// Adds variants for constants with a different throughput or latency.
    pub(crate) fn add_constants(&self, passes: &[Vec<ProgramReading>], row: &mut InstrRow) {
        let is_tried = |pass: &Vec<ProgramReading>| pass.first().is_some_and(|first| first.constants.is_some());
        if !passes.is_empty() && passes.iter().all(is_tried) {
            row.tried = self.plan.anatomy.constants.iter().skip(1).map(EncodedConstant::to_string).collect();
        }
        for tried in collect_tried(self.plan, passes) {
            self.add_constant(&tried, row);
        }
    }

    fn add_constant(&self, tried: &TriedConstant, row: &mut InstrRow) {
        let other_analysis = RowAnalysis { plan: &tried.plan, ..*self };
        let pair = |general: &[Vec<ProgramReading>], other: &[Vec<ProgramReading>]| ConstantRowPair {
            general: self.analyze_headlines(row, general),
            other: other_analysis.analyze_headlines(row, other),
        };
        let single = std::slice::from_ref::<Vec<ProgramReading>>;
        let mut pairs = vec![pair(&tried.general, &tried.passes)];
        pairs.extend(
            tried.general.iter().zip(&tried.passes).map(|(general, other)| pair(single(general), single(other))),
        );
        let (variant, immediate) = (tried.constant.to_string(), tried.constant.format_immediate());
        let rate = |pair: &ConstantRowPair| match (&pair.general.throughput, &pair.other.throughput) {
            (Some(general), Some(other)) => compare_costs(&general.cost, &other.cost, RATE_CYCLES),
            _ => CostDifference::None,
        };
        let rates = find_common_difference(pairs.iter().map(rate))
            .filter(|difference| self.are_rates_apart(tried, *difference));
        let mut latencies = Vec::new();
        for latency in &pairs[0].other.latency {
            let cost = |row: &InstrRow| {
                row.latency.iter().find(|other| other.is_same_pair(latency)).map(|latency| latency.cost)
            };
            let differ = |pair: &ConstantRowPair| match (cost(&pair.general), cost(&pair.other)) {
                (Some(general), Some(other)) => compare_costs(&general, &other, LATENCY_CYCLES),
                _ => CostDifference::None,
            };
            let found =
                find_common_difference(pairs.iter().map(differ)).filter(|found| !tried.breaks_chain(latency, *found));
            if found
                .is_some_and(|difference| other_analysis.is_chain_apart(tried, latency, &pairs[0].other, difference))
            {
                let (variant, immediate) = (Some(variant.clone()), immediate.clone());
                latencies.push(OperandLatency { variant, immediate, ..latency.clone() });
            }
        }
        let shown = pairs.swap_remove(0).other;
        row.latency.extend(latencies);
        if let (Some(_), Some(ReciprocalThroughput { cost, recipe, .. }), Some(throughput)) =
            (rates, shown.throughput, &mut row.throughput)
        {
            throughput.variants.push(ThroughputVariant { variant, immediate, cost, recipe });
        }
    }

    /// Throughput and latencies from these passes, without tags, caveats and variants.
    pub(super) fn analyze_headlines(&self, key: &InstrRow, passes: &[Vec<ProgramReading>]) -> InstrRow {
        let (tags, caveats, latency) = (Vec::new(), Vec::new(), Vec::new());
        let mut row = InstrRow { status: RowStatus::Measured, throughput: None, tags, caveats, latency, ..key.clone() };
        let throughput = self.estimate_throughput(passes, &mut row);
        let rate = throughput.as_ref().and_then(|throughput| throughput.cost.value);
        row.throughput = throughput;
        self.add_latencies(passes, rate, &mut row);
        row.latency.retain(|latency| latency.variant.is_none());
        row.latency.retain(|latency| latency.from != "mem_data" && latency.to != "mem_data");
        row
    }

    /// Whether the best program of the faster constant is separate from all programs of the slower
    /// one.
    fn are_rates_apart(&self, tried: &TriedConstant, difference: CostDifference) -> bool {
        let general = throughput_figures(self.plan, &tried.general);
        let other = throughput_figures(&tried.plan, &tried.passes);
        let (fast, slow) = match difference {
            CostDifference::Less => (other, general),
            _ => (general, other),
        };
        let fast =
            fast.into_iter().min_by(|one, other| median(&mut one.clone()).total_cmp(&median(&mut other.clone())));
        fast.is_some_and(|fast| are_apart(&fast, &slow.concat()))
    }

    /// Whether the chain of this latency is separate from the same chain with the general constant.
    fn is_chain_apart(
        &self,
        tried: &TriedConstant,
        latency: &OperandLatency,
        row: &InstrRow,
        difference: CostDifference,
    ) -> bool {
        let Some((index, variation)) = self.find_chain(&tried.passes, latency, row) else { return false };
        // If only one constant has this variation, the planned chains are compared.
        let varied_figures = |passes| {
            variation.map(|variation| variation_figures(passes, index, variation)).filter(|cycles| !cycles.is_empty())
        };
        let (general, other) = match (varied_figures(&tried.general), varied_figures(&tried.passes)) {
            (Some(general), Some(other)) => (general, other),
            _ => (layout_figures(&tried.general, index), layout_figures(&tried.passes, index)),
        };
        match difference {
            CostDifference::Less => are_apart(&other, &general),
            _ => are_apart(&general, &other),
        }
    }
}

/// The figures of each throughput program's layouts.
fn throughput_figures(plan: &FormPlan, passes: &[Vec<ProgramReading>]) -> Vec<Vec<f64>> {
    let is_rate =
        |index: &usize| matches!(plan.experiments[*index].meaning, ExperimentMeaning::Throughput { variant: None, .. });
    let figures = (0..plan.experiments.len()).filter(is_rate).map(|index| layout_figures(passes, index));
    figures.filter(|cycles| !cycles.is_empty()).collect()
}

/// The figures of an experiment's layouts.
fn layout_figures(passes: &[Vec<ProgramReading>], index: usize) -> Vec<f64> {
    passes.iter().filter_map(|pass| pass.get(index)).flat_map(|reading| reading.cycles.clone()).collect()
}

/// The difference that all have in common, if any.
fn find_common_difference(mut differences: impl Iterator<Item = CostDifference>) -> Option<CostDifference> {
    let first = differences.next().filter(|first| *first != CostDifference::None)?;
    differences.all(|other| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::super::instr_table::tests::row;
    use super::*;
    use crate::experiments::link_costs::LinkCosts;
    use crate::experiments::program_reading::ConstantReadings;
    use crate::forms::target_form::TargetForm;
    use crate::selection::{FormCriteria, list_forms};
    use cyclescope_code::asm::CodeMode;
    use cyclescope_core::machine::Machine;

    fn find_target(name: &str) -> TargetForm {
        let criteria = FormCriteria { filters: vec![name.to_string()], ..FormCriteria::default() };
        criteria.select(list_forms(CodeMode::default())).unwrap().remove(0)
    }

    /// Readings with these rates and latencies. `stray` layouts of the first rate took half as
    /// long.
    fn readings(plan: &FormPlan, rate: f64, latency: f64, stray: usize) -> Vec<ProgramReading> {
        let mut first = true;
        let reading = |meaning: &ExperimentMeaning| {
            let usual = if meaning.is_throughput() { rate } else { latency };
            let stray = if std::mem::take(&mut first) { stray } else { 0 };
            let layout = |at: usize| if at < stray { usual / 2.0 } else { usual * (1.0 + 1e-4 * at as f64) };
            ProgramReading { cycles: (0..6).map(layout).collect(), ..ProgramReading::default() }
        };
        plan.experiments.iter().map(|experiment| &experiment.meaning).map(reading).collect()
    }

    /// Variants of a row with these rates and latencies by pass for the constant at index 1. The
    /// general constant has 0.5 and 3.
    fn variants(passes: &[(f64, f64)], stray: usize) -> (Vec<String>, Vec<String>) {
        variants_with(passes, stray, |_, _| {})
    }

    /// Like [`variants`], with changed readings for the constant at index 1.
    fn variants_with(
        passes: &[(f64, f64)],
        stray: usize,
        change: impl Fn(&FormPlan, &mut [ProgramReading]),
    ) -> (Vec<String>, Vec<String>) {
        let target = find_target("Shl_rm64_imm8 r64, imm8");
        let plan = FormPlan::new(target.anatomy().unwrap(), &Machine::detect().features, &target);
        let other = plan.with_constant(plan.anatomy.constants[1]).unwrap();
        let pass = |(rate, latency): &(f64, f64)| {
            let mut pass = readings(&plan, 0.5, 3.0, stray);
            let mut readings = readings(&other, *rate, *latency, 0);
            change(&other, &mut readings);
            pass[0].constants = Some(vec![ConstantReadings { place: 1, readings }]);
            pass
        };
        let passes: Vec<_> = passes.iter().map(pass).collect();
        let link_costs = LinkCosts::default();
        let mut row = row("shl", "r64, imm8", Vec::new(), 0.0);
        RowAnalysis::without_slots(&plan, &link_costs, 0.1).fill_row(&mut row, &passes);
        assert_eq!(row.tried[0], "immediate 0x0");
        let rates = row.throughput.unwrap().variants;
        assert!(rates.iter().all(|variant| variant.immediate.as_deref() == Some("0x0")));
        let latencies = row.latency.into_iter().filter_map(|latency| latency.variant);
        (rates.into_iter().map(|variant| variant.variant).collect(), latencies.collect())
    }

    #[test]
    fn a_constant_is_a_variant_if_every_pass_shows_the_same_difference() {
        let (rates, latencies) = variants(&[(0.25, 2.0), (0.25, 2.0)], 0);
        assert_eq!((rates, latencies), (vec!["immediate 0x0".to_string()], vec!["immediate 0x0".to_string()]));
        for same in [[(0.5, 3.0); 2], [(0.508, 3.1); 2], [(0.25, 2.0), (0.5, 3.0)], [(0.25, 2.0), (1.0, 4.0)]] {
            assert_eq!(variants(&same, 0), (Vec::new(), Vec::new()), "{same:?}");
        }
    }

    #[test]
    fn a_rate_that_the_general_constant_reaches_too_is_not_a_variant() {
        // Three of eighteen layouts are no mode of a program, but suggest that it could reach the
        // rate.
        assert_eq!(variants(&[(0.25, 3.0); 3], 1).0, Vec::<String>::new());
        assert_eq!(variants(&[(0.25, 3.0); 3], 0).0.len(), 1);
        assert_eq!(variants(&[(0.35, 3.0); 2], 0).0.len(), 1);
    }

    #[test]
    fn the_chosen_chain_of_a_latency_must_show_the_difference() {
        // Without link costs, chains with links have no figure.
        let figure = |meaning: &ExperimentMeaning, linkless: bool| {
            matches!(
                meaning,
                ExperimentMeaning::Latency { links, .. } if links.is_empty() == linkless
            )
        };
        for (linkless, count) in [(false, 1), (true, 0)] {
            let few = |plan: &FormPlan, readings: &mut [ProgramReading]| {
                let all = plan.experiments.iter().zip(readings);
                all.filter(|(experiment, _)| figure(&experiment.meaning, linkless))
                    .for_each(|(_, reading)| reading.cycles.truncate(2));
            };
            assert_eq!(variants_with(&[(0.25, 2.0); 2], 0, few).1.len(), count, "{linkless}");
        }
    }

    #[test]
    fn few_layouts_are_never_separate() {
        let layouts = |count: usize, cycles: f64| vec![cycles; count];
        let mixed = |count: usize, stray: usize| [layouts(count - stray, 2.0), layouts(stray, 4.0)].concat();
        for (count, most) in [(1, None), (2, None), (5, None), (6, Some(0)), (8, Some(1)), (10, Some(2)), (40, Some(2))]
        {
            for stray in 0..count / 2 {
                let separate = most.is_some_and(|most| stray <= most);
                assert_eq!(are_apart(&mixed(count, stray), &layouts(count, 3.0)), separate, "{stray} of {count}");
            }
        }
        assert!(!are_apart(&layouts(5, 2.0), &layouts(12, 3.0)) && !are_apart(&layouts(12, 2.0), &layouts(5, 3.0)));
    }

    #[test]
    fn every_constant_has_a_plan_like_the_general_constants() {
        let features = Machine::detect().features;
        let several = list_forms(CodeMode::default())
            .into_iter()
            .filter(|target| target.anatomy().is_some_and(|anatomy| anatomy.constants.len() > 1));
        for target in several.step_by(7) {
            let plan = FormPlan::new(target.anatomy().unwrap(), &features, &target);
            for constant in &plan.anatomy.constants {
                assert!(plan.with_constant(*constant).is_some(), "{:?} {constant}", target.form);
            }
        }
    }
}
