//! The latencies of a form, from its chains.

use super::chain_variations::{SAME_CYCLES, is_below, variation_figures};
use super::instr_row::{InstrRow, LatencyBound, LatencyRegimes, OperandLatency};
use super::memory_links::latency_cycles;
use super::renamed_memory::{self, ChainStanding};
use super::row_analysis::{CYCLE_LEAST, PASS_SHARE, PassDisagreement, RowAnalysis};
use crate::experiments::experiment::{BOUND_SHARE, ChainVariation, ExperimentMeaning};
use crate::experiments::program_reading::ProgramReading;
use cyclescope_code::asm::Listing;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::caveat::{Caveat, CaveatKind};
use cyclescope_measure::result::record::Quantity;

/// The variant of a latency whose instances wait for two operands.
const SECOND_WAIT: &str = "two operands awaited";
/// With a false dependency, one destination costs at least this multiple of several.
const FALSE_DEPENDENCY_SHARE: f64 = 1.2;

impl RowAnalysis<'_> {
    /// The latency between each pair of ends, whether its links are certain, and the index of its
    /// experiment.
    fn choose_latencies(
        &self,
        passes: &[Vec<ProgramReading>],
        rthroughput: Option<f64>,
        row: &mut InstrRow,
    ) -> Vec<(OperandLatency, bool, usize)> {
        let mut found: Vec<(OperandLatency, bool, usize)> = Vec::new();
        let standings = self.judge_standings(passes);
        for (index, experiment) in self.plan.experiments.iter().enumerate() {
            let Some((mut latency, certain, raw)) = self.estimate_latency(passes, index, &experiment.meaning) else {
                continue;
            };
            if standings.get(&index) == Some(&ChainStanding::Worse) {
                continue;
            }
            self.judge_latency(&mut latency, raw, rthroughput, row);
            if standings.get(&index) == Some(&ChainStanding::Unsure) {
                self.bound_by_trip(&experiment.meaning, &mut latency);
            }
            // Of equal chains the first counts, because the minimum of several would be too low.
            let better = |known: &(OperandLatency, bool, usize)| match (certain, known.1) {
                (true, false) => true,
                (false, true) => false,
                _ => is_below(&latency, &known.0),
            };
            match found.iter_mut().find(|(other, ..)| other.is_same_pair(&latency)) {
                Some(known) if better(known) => *known = (latency, certain, index),
                Some(_) => {}
                None => found.push((latency, certain, index)),
            }
        }
        // An instance that does not wait for an implied operand shows no cost of it.
        found.retain(|(latency, _, index)| {
            let broken = latency.bound == LatencyBound::Upper && latency_cycles(latency) < CYCLE_LEAST;
            !(broken && latency.from != latency.to && self.plan.is_implied(*index))
        });
        found
    }

    /// The experiment of a latency, and the variation of its chain if not the planned one.
    pub(super) fn find_chain(
        &self,
        passes: &[Vec<ProgramReading>],
        latency: &OperandLatency,
        row: &InstrRow,
    ) -> Option<(usize, Option<ChainVariation>)> {
        let rthroughput = row.throughput.as_ref().and_then(|throughput| throughput.cost.value);
        let found = self.choose_latencies(passes, rthroughput, &mut row.clone());
        let (.., index) = found.into_iter().find(|(other, ..)| other.is_same_pair(latency))?;
        let variation = self.find_quickest(passes, index, &self.plan.experiments[index].meaning)?.0;
        Some((index, variation))
    }

    pub(super) fn add_latencies(&self, passes: &[Vec<ProgramReading>], rthroughput: Option<f64>, row: &mut InstrRow) {
        let mut found = self.choose_latencies(passes, rthroughput, row);
        // Passes are compared only for the chosen chains.
        for (latency, _, index) in found.iter_mut().filter(|_| passes.len() > 1) {
            let what = format!("{} to {}", latency.from, latency.to);
            let meaning = &self.plan.experiments[*index].meaning;
            // Uses the variation that counts over all passes: which is quickest in one pass is
            // chance.
            let Some((counts, _)) = self.find_quickest(passes, *index, meaning) else { continue };
            // Without a dependency, a chain shows the rate of its instances and no latency.
            if latency.bound == LatencyBound::Upper && latency_cycles(latency) < CYCLE_LEAST {
                continue;
            }
            let cost = |pass| {
                let variations = self.estimate_variations(std::slice::from_ref(pass), *index, meaning);
                let (_, (latency, ..)) = variations.into_iter().find(|(variation, _)| *variation == counts)?;
                let Quantity { value: Some(value), low, high, .. } = latency.cost else { return None };
                let [low, high] = [low.unwrap_or(f64::NEG_INFINITY), high.unwrap_or(f64::INFINITY)];
                Some(Interval { value, low, high })
            };
            let costs = passes.iter().filter_map(cost).collect();
            let links = self.sum_links(meaning);
            if let Some(PassDisagreement { caveat, range }) = self.find_disagreement(costs, links, &what) {
                row.caveats.push(caveat);
                latency.widen_to(range);
            }
        }
        let awaited: Vec<OperandLatency> =
            found.iter().filter_map(|(latency, _, index)| self.find_second_wait(passes, *index, latency)).collect();
        row.latency.extend(found.into_iter().map(|(mut latency, _, index)| {
            // If a variation was quicker, the two latencies of the planned chain don't apply.
            let same = |regimes: &LatencyRegimes| {
                let saturated = regimes.saturated.value.unwrap_or(f64::NAN);
                (saturated - latency_cycles(&latency)).abs() <= SAME_CYCLES
            };
            latency.regimes = self.find_regimes(passes, index).filter(same);
            latency
        }));
        row.latency.extend(awaited);
        renamed_memory::add_fallbacks(row);
        // Equal registers break a dependency only if different registers have one.
        let waits = |one: &OperandLatency| {
            one.variant.is_none() && one.from.starts_with("op") && latency_cycles(one) >= CYCLE_LEAST
        };
        if !row.latency.iter().any(waits) {
            row.tags.retain(|tag| tag != "dependency_breaking");
        }
        sort_headlines(&mut row.latency);
    }

    /// The latency by the planned chain, as a variant, if the chain that counts has cleared the
    /// other operands.
    fn find_second_wait(
        &self,
        passes: &[Vec<ProgramReading>],
        index: usize,
        latency: &OperandLatency,
    ) -> Option<OperandLatency> {
        if variation_figures(passes, index, ChainVariation::Cleared).is_empty() {
            return None;
        }
        let meaning = &self.plan.experiments[index].meaning;
        let (counts, _) = self.find_quickest(passes, index, meaning)?;
        let mut all = self.estimate_variations(passes, index, meaning).into_iter();
        let (_, (planned, ..)) = all.find(|(variation, _)| variation.is_none())?;
        let cleared = counts == Some(ChainVariation::Cleared) && latency.variant.is_none();
        cleared.then(|| OperandLatency { variant: Some(SECOND_WAIT.to_string()), ..planned })
    }

    /// Makes a latency an upper bound if its chain has no dependency or is limited by throughput.
    pub(crate) fn judge_latency(
        &self,
        latency: &mut OperandLatency,
        raw: f64,
        rthroughput: Option<f64>,
        row: &mut InstrRow,
    ) {
        let cost = latency.cost.value.unwrap_or(f64::NAN);
        let mut tag = |tag: &str| {
            if !row.tags.iter().any(|known| known == tag) {
                row.tags.push(tag.to_string());
            }
        };
        if latency.bound == LatencyBound::Exact && (cost < CYCLE_LEAST || cost.is_nan()) {
            latency.bound = LatencyBound::Upper;
            let same = latency.variant.as_deref() == Some("same register");
            match (same, rthroughput) {
                (true, Some(rthroughput)) if raw < CYCLE_LEAST * rthroughput => tag("zero_idiom"),
                (true, _) => tag("dependency_breaking"),
                (false, _) if !latency.chain.contains(" less ") && latency.from != latency.to => tag("eliminated"),
                _ => {}
            }
            return;
        }
        let bound_by_throughput = rthroughput.is_some_and(|rthroughput| raw <= rthroughput * (1.0 + BOUND_SHARE));
        if bound_by_throughput && (latency.bound == LatencyBound::Sum || cost > 1.0 + BOUND_SHARE) {
            latency.bound = LatencyBound::Upper;
        }
    }

    pub(super) fn add_false_dependency(
        &self,
        passes: &[Vec<ProgramReading>],
        rthroughput: Option<f64>,
        row: &mut InstrRow,
    ) {
        for (index, experiment) in self.plan.experiments.iter().enumerate() {
            let ExperimentMeaning::SameDestination { to } = &experiment.meaning else { continue };
            let (Some(estimate), Some(rthroughput)) = (self.estimate_experiment(passes, index), rthroughput) else {
                continue;
            };
            // A chain takes whole cycles. A lower cost has another cause.
            let cost = estimate.cost.value;
            let whole = cost >= 1.0 - PASS_SHARE && (cost - cost.round()).abs() <= SAME_CYCLES;
            if !whole || cost < FALSE_DEPENDENCY_SHARE * rthroughput {
                continue;
            }
            // A partial write keeps the rest of the register.
            let (tag, variant) = match self.plan.anatomy.writes_part(to) {
                // Without other inputs, the kept part is all that an instance waits for.
                true if row.latency.iter().all(|latency| latency.variant.is_some()) => ("partial_write", None),
                true => ("partial_write", Some("partial write")),
                false => ("false_dependency", Some("false dependency")),
            };
            row.tags.push(tag.to_string());
            row.latency.push(OperandLatency {
                from: to.clone(),
                to: to.clone(),
                cost: Quantity::new(estimate.cost, Unit::CoreCycles),
                bound: LatencyBound::Exact,
                variant: variant.map(str::to_string),
                immediate: None,
                chain: Listing::from_code(&experiment.period, experiment.world.mode).text().replace('\n', "; "),
                regimes: None,
            });
        }
    }

    /// Turns exact latencies between two whole numbers into upper bounds: a result is ready at the
    /// end of a cycle, so these are means of several latencies, or contain waits for units.
    pub(super) fn mark_fractions(row: &mut InstrRow) {
        let is_exact = |latency: &&mut OperandLatency| latency.bound == LatencyBound::Exact;
        for latency in row.latency.iter_mut().filter(is_exact) {
            let Quantity { value: Some(value), .. } = latency.cost else { continue };
            let is_whole = (value - value.round()).abs() <= SAME_CYCLES.max(PASS_SHARE * value.abs());
            if is_whole || latency.regimes.is_some() {
                continue;
            }
            let text =
                format!("{} to {}: {value:.3} core cycles is between two whole numbers", latency.from, latency.to);
            row.caveats.push(Caveat { code: CaveatKind::UpperBound, text });
            latency.make_upper_bound(value);
        }
    }
}

/// Sorts latencies: headlines before variants.
fn sort_headlines(latencies: &mut [OperandLatency]) {
    latencies.sort_by(|a, b| (a.variant.is_some(), &a.from, &a.to).cmp(&(b.variant.is_some(), &b.from, &b.to)));
}

#[cfg(test)]
mod tests {
    use super::super::row_analysis::tests::plan;
    use super::*;
    use crate::bodies::links;
    use crate::experiments::experiment::FormExperiment;
    use crate::experiments::form_plan::FormPlan;
    use crate::experiments::link_costs::LinkCosts;
    /// Readings of `imul r64, r64`: the first chain takes `cycles`, its variations `again`.
    fn read(plan: &FormPlan, cycles: f64, again: &[(ChainVariation, f64)]) -> (Vec<ProgramReading>, usize) {
        let mut readings = vec![ProgramReading::default(); plan.experiments.len()];
        let chain = |experiment: &FormExperiment| matches!(experiment.meaning, ExperimentMeaning::Latency { .. });
        let index = plan.experiments.iter().position(chain).unwrap();
        readings[index].cycles = vec![cycles; 3];
        readings[index].again = again.iter().map(|(variation, cycles)| (*variation, vec![*cycles; 3])).collect();
        (readings, index)
    }

    #[test]
    fn short_chains_with_links_show_whether_the_rate_hides_a_lower_latency() {
        let plan = plan("Imul_r64_rm64 r64, r64");
        let link_costs = LinkCosts::from_ones(&[links::FROM_32]);
        let analysis = RowAnalysis::without_slots(&plan, &link_costs, 0.2);
        let variation = ChainVariation::Longer(2);
        let bound = |short: f64| {
            // The long chain with links is slower for another reason.
            let (mut readings, index) = read(&plan, 2.01, &[(ChainVariation::Longer(8), 14.0)]);
            let meaning = &plan.experiments[index].meaning;
            let Some(FormExperiment { meaning: ExperimentMeaning::Latency { links, .. }, .. }) =
                plan.vary_chain(index, variation)
            else {
                panic!("the chain can be longer")
            };
            let turn = short + links.len() as f64;
            readings[index].short_variation = Some((variation, [-0.05, 0.0, 0.1].map(|off| turn + off).to_vec()));
            let (mut latency, _, raw) = analysis.estimate_latency(&[readings], index, meaning).unwrap();
            let mut row = super::super::instr_table::tests::row("imul", "r64, r64", Vec::new(), 0.0);
            analysis.judge_latency(&mut latency, raw, Some(2.0), &mut row);
            latency.bound
        };
        let found = [2.0, 1.0, 1.5, 3.0].map(bound);
        assert_eq!(found, [LatencyBound::Exact, LatencyBound::Upper, LatencyBound::Upper, LatencyBound::Upper]);
    }

    #[test]
    fn the_kept_part_is_the_latency_of_a_form_without_other_inputs() {
        for (form, is_headline) in [("Mov_r8_imm8 r8, imm8", true), ("Mov_r8_rm8 r8, r8", false)] {
            let plan = plan(form);
            let link_costs = LinkCosts::default();
            let analysis = RowAnalysis::without_slots(&plan, &link_costs, 0.2);
            let same = |one: &FormExperiment| matches!(one.meaning, ExperimentMeaning::SameDestination { .. });
            let mut readings = vec![ProgramReading::default(); plan.experiments.len()];
            readings[plan.experiments.iter().position(same).unwrap()].cycles = vec![1.0; 3];
            let mut row = super::super::instr_table::tests::row("mov", "r8", Vec::new(), 0.25);
            if !is_headline {
                row.latency.push(super::super::instr_table::tests::latency("op2", "op1", 1.0, LatencyBound::Exact));
            }
            analysis.add_false_dependency(&[readings], Some(0.25), &mut row);
            let found = row.latency.last().unwrap();
            assert_eq!((found.from.as_str(), found.to.as_str(), found.bound), ("op1", "op1", LatencyBound::Exact));
            assert_eq!(found.variant.is_none(), is_headline, "{form}");
            assert_eq!(row.tags, ["partial_write"]);
        }
    }

    #[test]
    fn passes_of_an_eliminated_move_do_not_disagree() {
        let link_costs = LinkCosts::default();
        let disagree = |form: &str, costs: [f64; 2]| {
            let plan = plan(form);
            let analysis = RowAnalysis::without_slots(&plan, &link_costs, 0.1);
            let passes = costs.map(|cycles| read(&plan, cycles, &[]).0);
            let mut row = super::super::instr_table::tests::row("mov", "r64, r64", Vec::new(), 0.1);
            analysis.add_latencies(&passes, Some(0.1), &mut row);
            assert!(!row.latency.is_empty());
            row.caveats.iter().any(|caveat| caveat.code == CaveatKind::NotRepeatable)
        };
        assert!(!disagree("Mov_rm64_r64 r64, r64", [0.13, 0.16]));
        assert!(disagree("Imul_r64_rm64 r64, r64", [3.0, 3.2]));
    }

    #[test]
    fn a_variation_missing_from_one_pass_is_ignored() {
        let plan = plan("Imul_r64_rm64 r64, r64");
        let link_costs = LinkCosts::from_ones(&[links::FROM_32]);
        let analysis = RowAnalysis::without_slots(&plan, &link_costs, 0.2);
        let quicker = [(ChainVariation::Longer(8), 12.0)];
        let (once, index) = read(&plan, 5.0, &quicker);
        let found = |other: &[(ChainVariation, f64)]| {
            let passes = [once.clone(), read(&plan, 5.0, other).0];
            analysis.find_quickest(&passes, index, &plan.experiments[index].meaning).unwrap().0
        };
        assert_eq!(found(&quicker), Some(ChainVariation::Longer(8)));
        assert_eq!(found(&[]), None, "a variation in one pass only is chance");
    }

    #[test]
    fn latencies_between_two_whole_numbers_are_upper_bounds_unless_short_chains_differ() {
        use super::super::instr_row::LatencyRegimes;
        use super::super::instr_table::tests::{cost, latency, row};
        let exact = |value| latency("op2", "op1", value, LatencyBound::Exact);
        let mut two = exact(1.28);
        two.regimes = Some(LatencyRegimes { fresh: cost(1.0), saturated: cost(1.28), knee: cost(50.0) });
        let mut found = row("x", "", vec![exact(1.28), two, exact(1.99), exact(40.3), exact(13.5)], 0.5);
        RowAnalysis::mark_fractions(&mut found);
        let bounds: Vec<bool> = found.latency.iter().map(|one| one.bound == LatencyBound::Upper).collect();
        assert_eq!(bounds, [true, false, false, false, true]);
        assert_eq!(found.caveats.len(), 2);
    }

    #[test]
    fn a_variation_limited_by_the_rate_is_ignored_if_the_chain_has_two_latencies() {
        let plan = plan("VEX_Vphsubd_xmm_xmm_xmmm128 xmm, xmm, xmm");
        let chain = |experiment: &FormExperiment| matches!(experiment.meaning, ExperimentMeaning::Latency { .. });
        let index = plan.experiments.iter().position(chain).unwrap();
        // A CPU without AVX can't have fillers.
        if plan.vary_chain(index, ChainVariation::Beside(3)).is_none() {
            return;
        }
        let link_costs = LinkCosts::default();
        let analysis = RowAnalysis::without_slots(&plan, &link_costs, 0.2);
        let rates = |one: &FormExperiment| matches!(one.meaning, ExperimentMeaning::Throughput { variant: None, .. });
        let rate_at = plan.experiments.iter().position(rates).unwrap();
        let variation = |has_two: bool, rthroughput: f64| {
            let curve = |turns: f64| 18.0 + 2.2 * turns + 1.8 * (turns - 50.0).max(0.0);
            let mut reading = super::super::regimes::tests::pass(&curve, 4.0);
            reading.regimes = reading.regimes.filter(|_| has_two);
            reading.again = vec![(ChainVariation::Beside(3), vec![2.0; 3])];
            let mut readings = vec![ProgramReading::default(); plan.experiments.len()];
            readings[index] = reading;
            readings[rate_at].cycles = vec![rthroughput; 3];
            analysis.find_quickest(&[readings], index, &plan.experiments[index].meaning).unwrap().0
        };
        assert_eq!(variation(true, 2.0), None);
        assert_eq!(variation(true, 0.5), Some(ChainVariation::Beside(3)));
        assert_eq!(variation(false, 2.0), Some(ChainVariation::Beside(3)));
    }

    #[test]
    fn the_quickest_variation_counts_and_a_longer_chain_proves_that_the_rate_is_no_limit() {
        let plan = plan("Imul_r64_rm64 r64, r64");
        let link_costs = LinkCosts::from_ones(&[links::FROM_32]);
        let analysis = RowAnalysis::without_slots(&plan, &link_costs, 0.2);
        let variation = ChainVariation::Longer(8);
        let links = match plan.vary_chain(1 + 7, variation) {
            Some(FormExperiment { meaning: ExperimentMeaning::Latency { links, .. }, .. }) => links.len() as f64,
            _ => 9.0,
        };
        let bound = |cycles: f64, again: &[(ChainVariation, f64)]| {
            let (readings, index) = read(&plan, cycles, again);
            let meaning = &plan.experiments[index].meaning;
            let (mut latency, _, raw) = analysis.estimate_latency(&[readings], index, meaning).unwrap();
            let mut row = super::super::instr_table::tests::row("imul", "r64, r64", Vec::new(), 0.0);
            analysis.judge_latency(&mut latency, raw, Some(3.0), &mut row);
            ((super::latency_cycles(&latency) * 100.0).round() / 100.0, latency.bound)
        };
        assert_eq!(bound(3.0, &[]), (3.0, LatencyBound::Upper), "no slower than its instances");
        assert_eq!(bound(3.4, &[(variation, 3.0 + links)]), (3.0, LatencyBound::Exact));
        assert_eq!(bound(3.0, &[(variation, 3.01 + links)]), (3.0, LatencyBound::Exact), "a longer chain agrees");
        assert_eq!(bound(3.0, &[(variation, 4.0 + links)]), (3.0, LatencyBound::Upper), "a longer chain disagrees");
        assert_eq!(
            bound(5.5, &[(ChainVariation::Beside(4), 4.0)]),
            (5.5, LatencyBound::Exact),
            "this chain has no such variation"
        );
    }
}
