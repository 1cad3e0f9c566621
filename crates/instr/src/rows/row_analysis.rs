//! Evaluates the readings of a form's experiments for its row.

use super::instr_row::{InstrRow, LatencyBound, ReciprocalThroughput};
use crate::experiments::experiment::ExperimentMeaning;
use crate::experiments::filler_curves::FillerCurves;
use crate::experiments::form_plan::FormPlan;
use crate::experiments::link_costs::LinkCosts;
use crate::experiments::modes::{ModeEstimate, estimate_largest_mode, estimate_lowest_mode};
use crate::experiments::program_reading::{ProgramReading, figures_by_pass};
use cyclescope_core::statistics::Interval;
use cyclescope_measure::result::caveat::{Caveat, CaveatKind};
use cyclescope_measure::result::record::Quantity;

/// Every executed instruction takes at least a cycle. The rest is allowed as error.
pub(super) const CYCLE_LEAST: f64 = 0.95;
/// Passes agree within this many core cycles, or within this share of the timed cost.
const PASS_CYCLES: f64 = 0.02;
pub(super) const PASS_SHARE: f64 = 0.01;
/// An interval that reaches further to either side than this share of its value is too wide for an
/// exact figure.
const WIDE_SHARE: f64 = 0.1;

/// A disagreement between passes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PassDisagreement {
    /// The caveat that lists their figures.
    pub caveat: Caveat,
    /// The least and the greatest figure, in core cycles.
    pub range: [f64; 2],
}

/// Describes the range of a figure if its interval is too wide.
fn describe_wide(cost: &Quantity) -> Option<String> {
    let Quantity { value: Some(value), low, high, .. } = *cost else { return None };
    let Some((low, high)) = low.zip(high) else {
        return Some(format!("{value:.3} core cycles in a single layout"));
    };
    ((high - low) / 2.0 > WIDE_SHARE * value.abs()).then(|| format!("{low:.3} to {high:.3} core cycles"))
}

/// The caveat for reciprocal throughputs with intervals that are too wide.
fn wide_throughput_caveat(throughput: &ReciprocalThroughput) -> Option<Caveat> {
    let own = [("reciprocal throughput".to_string(), Some(&throughput.cost))];
    let decoders = [("from the decoders".to_string(), throughput.decoders.as_ref())];
    let variants = throughput.variants.iter().map(|one| (one.variant.clone(), Some(&one.cost)));
    let costs = own.into_iter().chain(decoders).chain(variants);
    let said: Vec<String> =
        costs.filter_map(|(what, cost)| Some(format!("{what}: {}", describe_wide(cost?)?))).collect();
    let text = format!("{}, too wide for an exact figure", said.join("; "));
    (!said.is_empty()).then_some(Caveat { code: CaveatKind::IntervalNotReached, text })
}

/// Inputs of a form's row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowAnalysis<'a> {
    /// The experiments of the form.
    pub plan: &'a FormPlan,
    /// Costs of links in chains.
    pub link_costs: &'a LinkCosts,
    /// The scale for dispatch slots.
    pub filler_curves: &'a FillerCurves,
    /// Confidence level of the intervals.
    pub confidence: f64,
    /// Core cycles of a NOP: one over the width of the core.
    pub nop_cycles: f64,
}

#[cfg(test)]
impl<'a> RowAnalysis<'a> {
    /// The analysis of a survey at 95 % that counts no slots.
    pub(super) fn without_slots(plan: &'a FormPlan, link_costs: &'a LinkCosts, nop_cycles: f64) -> RowAnalysis<'a> {
        let filler_curves = &crate::experiments::filler_curves::NO_FILLER_CURVES;
        RowAnalysis { plan, link_costs, filler_curves, confidence: 0.95, nop_cycles }
    }
}

impl RowAnalysis<'_> {
    /// The caveat for experiments whose sibling was busy in all readings of all passes.
    pub(super) fn shared_core_caveat(&self, passes: &[Vec<ProgramReading>]) -> Option<Caveat> {
        let never = |index: &usize| {
            let readings = || passes.iter().filter_map(|pass| pass.get(*index));
            readings().all(|reading| reading.cycles.is_empty()) && readings().any(|reading| !reading.shared.is_empty())
        };
        let count = (0..self.plan.experiments.len()).filter(never).count();
        let text = format!("{count} of its programs always ran with a busy sibling");
        (count > 0).then_some(Caveat { code: CaveatKind::SiblingBusy, text })
    }

    pub(crate) fn estimate_experiment(
        &self,
        passes: &[Vec<ProgramReading>],
        experiment: usize,
    ) -> Option<ModeEstimate> {
        self.estimate_figures(experiment, &figures_by_pass(passes, experiment).concat())
    }

    /// Estimates a cost from layouts: the lowest mode of a reciprocal throughput, the
    /// largest mode of a chain.
    pub(super) fn estimate_figures(&self, experiment: usize, values: &[f64]) -> Option<ModeEstimate> {
        match self.plan.experiments[experiment].meaning.is_throughput() {
            true => estimate_lowest_mode(values, self.confidence),
            false => estimate_largest_mode(values, self.confidence),
        }
    }

    /// Detects passes that disagree beyond a tolerance and beyond chance. Chance is judged by the
    /// spread of the layouts within each pass, which is in the row's interval anyway. The timed cost
    /// was higher by `links`, whose error is part of the difference. Two agreeing passes of three
    /// suffice if the third was slower: disturbances cost time. A faster pass is never an accident.
    pub(super) fn find_disagreement(
        &self,
        mut costs: Vec<Interval>,
        links: f64,
        what: &str,
    ) -> Option<PassDisagreement> {
        let said: Vec<String> = costs.iter().map(|cost| format!("{:.3}", cost.value)).collect();
        costs.sort_by(|a, b| a.value.total_cmp(&b.value));
        let [least, second, ..] = costs[..] else { return None };
        let difference = second.value - least.value;
        let tolerance = PASS_CYCLES.max(PASS_SHARE * (second.value + links));
        // A single layout has an infinite interval, and shows nothing of chance.
        let chance = Some(least.half_width().hypot(second.half_width())).filter(|chance| chance.is_finite());
        if difference <= tolerance.max(chance.unwrap_or(0.0)) {
            return None;
        }
        let text = format!("{what}: {} core cycles in successive passes", said.join(", "));
        let caveat = Caveat { code: CaveatKind::NotRepeatable, text };
        Some(PassDisagreement { caveat, range: [least.value, costs[costs.len() - 1].value] })
    }

    /// Turns exact latencies with wide intervals into upper bounds, and adds caveats for wide
    /// reciprocal throughputs.
    pub(super) fn mark_wide(row: &mut InstrRow) {
        row.caveats.extend(row.throughput.as_ref().and_then(wide_throughput_caveat));
        for latency in row.latency.iter_mut().filter(|latency| latency.bound == LatencyBound::Exact) {
            let Quantity { value: Some(value), high, .. } = latency.cost else { continue };
            let Some(range) = describe_wide(&latency.cost) else { continue };
            let (from, to) = (&latency.from, &latency.to);
            let text = format!("{from} to {to}: {range}, too wide for an exact figure");
            row.caveats.push(Caveat { code: CaveatKind::IntervalNotReached, text });
            latency.make_upper_bound(high.unwrap_or(value));
        }
    }

    /// The sum of a chain's link costs.
    pub(super) fn sum_links(&self, meaning: &ExperimentMeaning) -> f64 {
        let ExperimentMeaning::Latency { links, .. } = meaning else { return 0.0 };
        self.link_costs.sum(links).map_or(0.0, |cost| cost.cycles)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::forms::form_anatomy::FormAnatomy;
    use crate::selection::{FormCriteria, list_forms};
    use cyclescope_code::asm::CodeMode;
    use cyclescope_core::machine::Machine;
    use cyclescope_core::unit::Unit;

    #[test]
    fn a_throughput_is_the_lowest_fair_mode_and_a_chain_the_largest_mode() {
        let values = [1.0, 0.5, 1.001, 0.999, 1.3];
        for estimate in [estimate_lowest_mode(&values, 0.95).unwrap(), estimate_largest_mode(&values, 0.95).unwrap()] {
            assert!((estimate.cost.value - 1.0).abs() < 0.002 && estimate.others.len() == 1);
        }
        let two = [0.5, 0.501, 0.499, 0.6, 0.601, 0.602, 0.6, 0.599];
        assert!((estimate_lowest_mode(&two, 0.95).unwrap().cost.value - 0.5).abs() < 0.002);
        assert!((estimate_largest_mode(&two, 0.95).unwrap().cost.value - 0.6).abs() < 0.002);
        assert!(estimate_lowest_mode(&[], 0.95).is_none());
        assert!(estimate_lowest_mode(&[2.0], 0.95).unwrap().cost.high.is_infinite());
    }

    pub(in super::super) fn plan(name: &str) -> FormPlan {
        let criteria = FormCriteria { filters: vec![name.to_string()], ..FormCriteria::default() };
        let target = criteria.select(list_forms(CodeMode::default())).unwrap().remove(0);
        FormPlan::new(FormAnatomy::from_form(target.form).unwrap(), &Machine::detect().features, &target)
    }

    #[test]
    fn rates_with_wide_intervals_get_a_caveat() {
        let quantity = |value: f64, reach: f64| {
            Quantity::new(Interval { value, low: value - reach, high: value + reach }, Unit::CoreCycles)
        };
        let rates = |own: Quantity, decoders: Option<Quantity>| ReciprocalThroughput {
            decoders,
            ..ReciprocalThroughput::new(own, "")
        };
        assert_eq!(wide_throughput_caveat(&rates(quantity(1.0, 0.09), Some(quantity(2.0, 0.1)))), None);
        let text = wide_throughput_caveat(&rates(quantity(1.0, 0.2), Some(quantity(2.0, f64::INFINITY)))).unwrap().text;
        assert!(text.contains("reciprocal throughput: 0.800 to 1.200"), "{text}");
        assert!(text.contains("from the decoders: 2.000 core cycles in a single layout"), "{text}");
    }

    #[test]
    fn passes_agree_if_the_two_fastest_do() {
        let plan = plan("Imul_r64_rm64 r64, r64");
        let link_costs = LinkCosts::default();
        let analysis = RowAnalysis::without_slots(&plan, &link_costs, 0.2);
        let disagree = |costs: &[f64], margin: f64| {
            let costs = costs.iter().map(|cost| Interval::with_margin(*cost, margin)).collect();
            analysis.find_disagreement(costs, 0.0, "x").is_some()
        };
        let caveat = |costs: &[f64]| disagree(costs, 0.001);
        assert!(!caveat(&[1.0]) && !caveat(&[1.0, 1.015]) && !caveat(&[1.0, 4.5, 1.01]));
        assert!(caveat(&[1.0, 4.5]) && caveat(&[1.0, 1.03, 1.06]));
        assert!(caveat(&[4.5, 1.0, 4.51]), "two slow passes do not outvote a fast one");
        // The layouts of each pass differ as much as the passes.
        assert!(!disagree(&[1.0, 1.05], 0.04) && disagree(&[1.0, 1.06], 0.04));
        assert!(disagree(&[1.0, 1.06], f64::INFINITY), "single layouts show no chance");
    }
}
