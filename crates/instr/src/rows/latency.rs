//! The latencies of a form, from its chains.

use super::analysis::{Analysis, Disagreement, LEAST, PASS_SHARE};
use super::memory::{self, Standing, cycles};
use super::row::{Bound, Latency, Regimes, Row};
use super::ways::{Figure, SAME_CYCLES, is_below};
use crate::experiments::experiment::{BOUND_SHARE, Meaning, Way};
use crate::experiments::program_reading::ProgramReading;
use cyclescope_code::asm::Listing;
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::record::Quantity;

/// One destination costs this much more than several where there is a false dependency.
const FALSE_SHARE: f64 = 1.2;

impl Analysis<'_> {
    /// The latency of each pair of ends, whether its links are certain, and the experiment that it is from.
    fn chosen(
        &self,
        passes: &[Vec<ProgramReading>],
        rate: Option<f64>,
        row: &mut Row,
    ) -> Vec<(Latency, bool, usize)> {
        let mut found: Vec<(Latency, bool, usize)> = Vec::new();
        let standings = self.standings(passes);
        for (index, experiment) in self.plan.experiments.iter().enumerate() {
            let Some((mut latency, certain, raw)) = self.latency(passes, index, &experiment.meaning) else {
                continue;
            };
            if standings.get(&index) == Some(&Standing::Worse) {
                continue;
            }
            self.judge(&mut latency, raw, rate, row);
            if standings.get(&index) == Some(&Standing::Unsure) {
                self.at_most(&experiment.meaning, &mut latency);
            }
            // Of chains that say the same the first counts, for the lowest of several is too low.
            let better = |known: &(Latency, bool, usize)| match (certain, known.1) {
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
        // That an instance does not wait for what it implies says nothing of what it costs.
        found.retain(|(latency, _, index)| {
            let broken = latency.bound == Bound::Upper && cycles(latency) < LEAST;
            !(broken && latency.from != latency.to && self.plan.is_implied(*index))
        });
        found
    }

    /// The experiment that a latency is from, and the way in which its chain was measured where that is not the first one.
    pub(super) fn chain_of(
        &self,
        passes: &[Vec<ProgramReading>],
        latency: &Latency,
        row: &Row,
    ) -> Option<(usize, Option<Way>)> {
        let rate = row.throughput.as_ref().and_then(|throughput| throughput.cost.value);
        let found = self.chosen(passes, rate, &mut row.clone());
        let (.., index) = found.into_iter().find(|(other, ..)| other.is_same_pair(latency))?;
        let way = self.quickest(passes, index, &self.plan.experiments[index].meaning)?.0;
        Some((index, way))
    }

    pub(super) fn latencies(&self, passes: &[Vec<ProgramReading>], rate: Option<f64>, row: &mut Row) {
        let mut found = self.chosen(passes, rate, row);
        // Of chains that were not taken, nobody reads a number.
        for (latency, _, index) in &mut found {
            let what = format!("{} to {}", latency.from, latency.to);
            let meaning = &self.plan.experiments[*index].meaning;
            // In the way that counts for all passes together: which is the quickest of one pass alone is chance.
            let Some((counts, _)) = self.quickest(passes, *index, meaning) else { continue };
            let of = |pass| {
                let ways = self.ways(std::slice::from_ref(pass), *index, meaning);
                ways.into_iter().find(|(way, _)| *way == counts).map(|(_, figure)| cycles(&figure.0))
            };
            let costs = passes.iter().filter_map(of).collect();
            let links = self.links(meaning);
            if let Some(Disagreement { caveat, range }) = self.disagreement(costs, links, &what) {
                row.caveats.push(caveat);
                latency.spread(range);
            }
        }
        row.latency.extend(found.into_iter().map(|(mut latency, _, index)| {
            // Where the chain was quicker in another way, its own two figures are none of the latency's.
            let same = |regimes: &Regimes| {
                let saturated = regimes.saturated.value.unwrap_or(f64::NAN);
                (saturated - cycles(&latency)).abs() <= SAME_CYCLES
            };
            latency.regimes = self.regimes(passes, index).filter(same);
            latency
        }));
        memory::fall_back(row);
        // Equal registers break a dependency only where there is one between different ones.
        let waits =
            |one: &Latency| one.variant.is_none() && one.from.starts_with("op") && cycles(one) >= LEAST;
        if !row.latency.iter().any(waits) {
            row.tags.retain(|tag| tag != "dependency_breaking");
        }
        headlines(&mut row.latency);
    }

    /// The latency by an experiment, whether its links are certain, and the whole chain's cost.
    pub(crate) fn latency(
        &self,
        passes: &[Vec<ProgramReading>],
        index: usize,
        meaning: &Meaning,
    ) -> Option<Figure> {
        let all = self.ways(passes, index, meaning);
        let (_, least) = self.quickest(passes, index, meaning)?;
        // A longer chain of the same latency shows that this one is not bound by the rate either.
        let same = |(_, (latency, _, raw)): &(Option<Way>, Figure)| {
            raw.is_infinite() && (cycles(latency) - cycles(&least.0)).abs() <= SAME_CYCLES
        };
        let raw = if all.iter().any(same) { f64::INFINITY } else { least.2 };
        Some((least.0, least.1, raw))
    }

    /// Takes back what a chain can't show: a dependency that is none, or a chain that is slow for another reason.
    pub(crate) fn judge(&self, latency: &mut Latency, raw: f64, rate: Option<f64>, row: &mut Row) {
        let cost = latency.cost.value.unwrap_or(f64::NAN);
        let mut tag = |tag: &str| {
            if !row.tags.iter().any(|known| known == tag) {
                row.tags.push(tag.to_string());
            }
        };
        if latency.bound == Bound::Exact && (cost < LEAST || cost.is_nan()) {
            latency.bound = Bound::Upper;
            let same = latency.variant.as_deref() == Some("same register");
            match (same, rate) {
                (true, Some(rate)) if raw < LEAST * rate => tag("zero_idiom"),
                (true, _) => tag("dependency_breaking"),
                (false, _) if !latency.chain.contains(" less ") && latency.from != latency.to => {
                    tag("eliminated")
                }
                _ => {}
            }
            return;
        }
        let bound_by_rate = rate.is_some_and(|rate| raw <= rate * (1.0 + BOUND_SHARE));
        if bound_by_rate && (latency.bound == Bound::Sum || cost > 1.0 + BOUND_SHARE) {
            latency.bound = Bound::Upper;
        }
    }

    pub(super) fn false_dependency(&self, passes: &[Vec<ProgramReading>], rate: Option<f64>, row: &mut Row) {
        for (index, experiment) in self.plan.experiments.iter().enumerate() {
            let Meaning::SameDestination { to } = &experiment.meaning else { continue };
            let (Some(estimate), Some(rate)) = (self.estimate(passes, index), rate) else { continue };
            // A chain takes whole cycles; what takes less waits for something else.
            let cost = estimate.cost.value;
            let whole = cost >= 1.0 - PASS_SHARE && (cost - cost.round()).abs() <= SAME_CYCLES;
            if !whole || cost < FALSE_SHARE * rate {
                continue;
            }
            // The rest of a register of which a part is written is kept.
            let (tag, variant) = match self.plan.anatomy.writes_part(to) {
                true => ("partial_write", "partial write"),
                false => ("false_dependency", "false dependency"),
            };
            row.tags.push(tag.to_string());
            row.latency.push(Latency {
                from: to.clone(),
                to: to.clone(),
                cost: Quantity::new(estimate.cost, Unit::CoreCycles),
                bound: Bound::Exact,
                variant: Some(variant.to_string()),
                immediate: None,
                chain: Listing::from_bytes(&experiment.period).text().replace('\n', "; "),
                regimes: None,
            });
        }
    }
}

/// Orders latencies: each pair's headline first.
fn headlines(latencies: &mut [Latency]) {
    latencies
        .sort_by(|a, b| (a.variant.is_some(), &a.from, &a.to).cmp(&(b.variant.is_some(), &b.from, &b.to)));
}

#[cfg(test)]
mod tests {
    use super::super::analysis::tests::plan;
    use super::*;
    use crate::bodies::links;
    use crate::experiments::experiment::Experiment;
    use crate::experiments::form_plan::FormPlan;
    use crate::experiments::gauge::Gauge;
    /// The first chain of `imul r64, r64`, with `cycles` as its reading, and `again` with those of other ways.
    fn read(plan: &FormPlan, cycles: f64, again: &[(Way, f64)]) -> (Vec<ProgramReading>, usize) {
        let mut readings = vec![ProgramReading::default(); plan.experiments.len()];
        let chain = |experiment: &Experiment| matches!(experiment.meaning, Meaning::Latency { .. });
        let index = plan.experiments.iter().position(chain).unwrap();
        readings[index].cycles = vec![cycles; 3];
        readings[index].again = again.iter().map(|(way, cycles)| (*way, vec![*cycles; 3])).collect();
        (readings, index)
    }

    #[test]
    fn a_way_that_not_every_pass_tried_is_none() {
        let plan = plan("Imul_r64_rm64 r64, r64");
        let gauge = Gauge::of_ones(&[links::FROM_32]);
        let analysis = Analysis { plan: &plan, gauge: &gauge, confidence: 0.95, slot: 0.2 };
        let quicker = [(Way::Longer(8), 12.0)];
        let (once, index) = read(&plan, 5.0, &quicker);
        let found = |other: &[(Way, f64)]| {
            let passes = [once.clone(), read(&plan, 5.0, other).0];
            analysis.quickest(&passes, index, &plan.experiments[index].meaning).unwrap().0
        };
        assert_eq!(found(&quicker), Some(Way::Longer(8)));
        assert_eq!(found(&[]), None, "which pass has it is chance");
    }

    #[test]
    fn a_chain_of_two_latencies_is_not_bounded_by_a_way_as_slow_as_its_instances() {
        let plan = plan("VEX_Vphsubd_xmm_xmm_xmmm128 xmm, xmm, xmm");
        let chain = |experiment: &Experiment| matches!(experiment.meaning, Meaning::Latency { .. });
        let index = plan.experiments.iter().position(chain).unwrap();
        // A CPU without AVX has nothing that can stand beside it.
        if plan.again(index, Way::Beside(3)).is_none() {
            return;
        }
        let gauge = Gauge::default();
        let analysis = Analysis { plan: &plan, gauge: &gauge, confidence: 0.95, slot: 0.2 };
        let rates = |one: &Experiment| matches!(one.meaning, Meaning::Throughput { variant: None, .. });
        let rate_at = plan.experiments.iter().position(rates).unwrap();
        let way = |has_two: bool, rate: f64| {
            let curve = |turns: f64| 18.0 + 2.2 * turns + 1.8 * (turns - 50.0).max(0.0);
            let mut reading = super::super::regimes::tests::pass(&curve, 4.0);
            reading.regimes = reading.regimes.filter(|_| has_two);
            reading.again = vec![(Way::Beside(3), vec![2.0; 3])];
            let mut readings = vec![ProgramReading::default(); plan.experiments.len()];
            readings[index] = reading;
            readings[rate_at].cycles = vec![rate; 3];
            analysis.quickest(&[readings], index, &plan.experiments[index].meaning).unwrap().0
        };
        assert_eq!(way(true, 2.0), None);
        assert_eq!(way(true, 0.5), Some(Way::Beside(3)));
        assert_eq!(way(false, 2.0), Some(Way::Beside(3)));
    }

    #[test]
    fn of_several_ways_the_lowest_counts_and_a_longer_one_lifts_the_bound_of_the_rate() {
        let plan = plan("Imul_r64_rm64 r64, r64");
        let gauge = Gauge::of_ones(&[links::FROM_32]);
        let analysis = Analysis { plan: &plan, gauge: &gauge, confidence: 0.95, slot: 0.2 };
        let way = Way::Longer(8);
        let links = match plan.again(1 + 7, way) {
            Some(Experiment { meaning: Meaning::Latency { links, .. }, .. }) => links.len() as f64,
            _ => 9.0,
        };
        let bound = |cycles: f64, again: &[(Way, f64)]| {
            let (readings, index) = read(&plan, cycles, again);
            let meaning = &plan.experiments[index].meaning;
            let (mut latency, _, raw) = analysis.latency(&[readings], index, meaning).unwrap();
            let mut row = super::super::table::tests::row("imul", "r64, r64", Vec::new(), 0.0);
            analysis.judge(&mut latency, raw, Some(3.0), &mut row);
            ((super::cycles(&latency) * 100.0).round() / 100.0, latency.bound)
        };
        assert_eq!(bound(3.0, &[]), (3.0, Bound::Upper), "no slower than its instances");
        assert_eq!(bound(3.4, &[(way, 3.0 + links)]), (3.0, Bound::Exact));
        assert_eq!(bound(3.0, &[(way, 3.01 + links)]), (3.0, Bound::Exact), "a longer chain says the same");
        assert_eq!(bound(3.0, &[(way, 4.0 + links)]), (3.0, Bound::Upper), "a longer chain says another");
        assert_eq!(
            bound(5.5, &[(Way::Beside(4), 4.0)]),
            (5.5, Bound::Exact),
            "the chain was not measured in this way"
        );
    }
}
