//! From times to a row: what the experiments of a form say together.

use super::memory;
use super::regimes::regimes;
use super::row::{Bound, Latency, Regimes, Row, Status, Throughput, Variant};
use crate::asm::Listing;
use crate::caveat::{Caveat, Code};
use crate::record::Quantity;
use crate::statistics::Interval;
use crate::study::instr::bodies::links::{self, Link};
use crate::study::instr::bodies::values;
use crate::study::instr::experiments::experiment::{BOUND_SHARE, Meaning, Way};
use crate::study::instr::experiments::form_plan::FormPlan;
use crate::study::instr::experiments::gauge::{Cost, Gauge};
use crate::study::instr::experiments::modes::{Estimate, MODE_SHARE, lowest, usual};
use crate::study::instr::experiments::program_reading::ProgramReading;
use crate::unit::Unit;

/// No instruction that is executed takes less than a cycle; this much less can be an error.
pub(in crate::study::instr) const LEAST: f64 = 0.95;
/// Core cycles within which two chains have the same cost.
const SAME_CYCLES: f64 = 0.05;
/// Core cycles by which an open chain, in which no instance waits, is faster than its links.
const OPEN: f64 = 0.5;
/// One destination costs this much more than several where there is a false dependency.
const FALSE_SHARE: f64 = 1.2;
/// The passes agree within this many core cycles, or this share of what was timed.
const PASS_CYCLES: f64 = 0.02;
const PASS_SHARE: f64 = 0.01;
/// Denominators of fractions that are named.
const DENOMINATORS: std::ops::RangeInclusive<u32> = 1..=6;
/// Above this, only whole numbers are named.
const FRACTIONS_BELOW: f64 = 4.0;

/// What a form's row is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Analysis<'a> {
    /// The experiments.
    pub plan: &'a FormPlan,
    /// What links cost.
    pub gauge: &'a Gauge,
    /// Level of the intervals.
    pub confidence: f64,
    /// Core cycles of a NOP: one over the width of the core.
    pub slot: f64,
}

impl Analysis<'_> {
    /// Fills in the row from the readings of one or more passes, by experiment.
    pub(crate) fn fill(&self, row: &mut Row, passes: &[Vec<ProgramReading>]) {
        row.status = Status::Measured;
        let throughput = self.throughput(passes, row);
        let rate = throughput.as_ref().and_then(|throughput| throughput.cost.value);
        row.throughput = throughput;
        self.latencies(passes, rate, row);
        self.constants(passes, row);
        self.operands(passes, rate, row);
        self.false_dependency(passes, rate, row);
        row.caveats.extend(self.shared(passes));
        if row.throughput.is_none() && row.latency.is_empty() {
            row.status = Status::Failed;
            row.reason = Some("no experiment gave a number".to_string());
        }
    }

    /// All layouts' figures; where the core was shared all the time, those.
    fn pooled(&self, passes: &[Vec<ProgramReading>], experiment: usize) -> Vec<f64> {
        let readings = || passes.iter().filter_map(|pass| pass.get(experiment));
        let alone: Vec<f64> = readings().flat_map(|reading| reading.cycles.clone()).collect();
        if alone.is_empty() { readings().flat_map(|reading| reading.shared.clone()).collect() } else { alone }
    }

    /// The caveat of experiments of which some never had the core alone.
    fn shared(&self, passes: &[Vec<ProgramReading>]) -> Option<Caveat> {
        let never = |index: &usize| {
            let readings = || passes.iter().filter_map(|pass| pass.get(*index));
            readings().all(|reading| reading.cycles.is_empty())
                && readings().any(|reading| !reading.shared.is_empty())
        };
        let count = (0..self.plan.experiments.len()).filter(never).count();
        let text = format!("{count} of its programs never had the core to themselves");
        (count > 0).then_some(Caveat { code: Code::SiblingBusy, text })
    }

    pub(in crate::study::instr) fn estimate(
        &self,
        passes: &[Vec<ProgramReading>],
        experiment: usize,
    ) -> Option<Estimate> {
        self.of(experiment, &self.pooled(passes, experiment))
    }

    /// What some layouts of an experiment say: of a rate the best, of a chain the usual.
    fn of(&self, experiment: usize, values: &[f64]) -> Option<Estimate> {
        match self.plan.experiments[experiment].meaning.is_rate() {
            true => lowest(values, self.confidence),
            false => usual(values, self.confidence),
        }
    }

    /// Whether two passes say the same; the caveat if not. What was timed took `links` more, whose error is in the
    /// difference too.
    fn disagreement(&self, mut costs: Vec<f64>, links: f64, what: &str) -> Option<Caveat> {
        let said: Vec<String> = costs.iter().map(|cost| format!("{cost:.3}")).collect();
        costs.sort_by(f64::total_cmp);
        let near = |pair: &[f64]| pair[1] - pair[0] <= PASS_CYCLES.max(PASS_SHARE * (pair[1] + links));
        if costs.len() < 2 || costs.windows(2).any(near) {
            return None;
        }
        let text = format!("{what}: {} core cycles in passes one after another", said.join(", "));
        Some(Caveat { code: Code::NotRepeatable, text })
    }

    /// What the links of a chain cost together.
    fn links(&self, meaning: &Meaning) -> f64 {
        let Meaning::Latency { links, .. } = meaning else { return 0.0 };
        self.gauge.sum(links).map_or(0.0, |cost| cost.cycles)
    }

    pub(super) fn throughput(&self, passes: &[Vec<ProgramReading>], row: &mut Row) -> Option<Throughput> {
        let mut best: Option<(usize, Estimate)> = None;
        let mut rates: Vec<f64> = Vec::new();
        for (index, experiment) in self.plan.experiments.iter().enumerate() {
            let Meaning::Throughput { variant: None, .. } = &experiment.meaning else { continue };
            let Some(estimate) = self.estimate(passes, index) else { continue };
            rates.push(estimate.cost.value);
            rates.extend(&estimate.others);
            // A rate that was seen once only is no rate that is sustained.
            let rank = |estimate: &Estimate| (estimate.cost.high.is_infinite(), estimate.cost.value);
            if best.as_ref().is_none_or(|(_, best)| rank(&estimate) < rank(best)) {
                best = Some((index, estimate));
            }
        }
        let (index, estimate) = best?;
        let Meaning::Throughput { recipe, burdened, .. } = &self.plan.experiments[index].meaning else {
            return None;
        };
        let of = |pass: &Vec<ProgramReading>| Some(self.of(index, &pass.get(index)?.cycles)?.cost.value);
        let costs = passes.iter().filter_map(of).collect();
        row.caveats.extend(self.disagreement(costs, 0.0, "reciprocal throughput"));
        if *burdened {
            let text = "throughput: instructions that each instance needs beside it count too";
            row.caveats.push(Caveat { code: Code::UpperBound, text: text.to_string() });
        }
        if estimate.cost.value < LEAST * self.slot {
            row.tags.push("fused".to_string());
        }
        Some(Throughput {
            cost: Quantity::new(estimate.cost, Unit::CoreCycles),
            recipe: recipe.clone(),
            fraction: fraction(&estimate.cost),
            decoders: self.decoders(passes, estimate.cost.value),
            modes: modes(rates, estimate.cost.value),
            variants: self.variants(passes, estimate.cost.value),
        })
    }

    /// The best of each variant; that of subnormal operands only where they make a difference.
    fn variants(&self, passes: &[Vec<ProgramReading>], headline: f64) -> Vec<Variant> {
        let mut best: Vec<Variant> = Vec::new();
        for (index, experiment) in self.plan.experiments.iter().enumerate() {
            let Meaning::Throughput { recipe, variant: Some(variant), .. } = &experiment.meaning else {
                continue;
            };
            let Some(Estimate { cost, .. }) = self.estimate(passes, index) else { continue };
            if variant == values::SUBNORMAL && !values::differ(headline, cost.value) {
                continue;
            }
            let cost = Quantity::new(cost, Unit::CoreCycles);
            let one = Variant { variant: variant.clone(), immediate: None, cost, recipe: recipe.clone() };
            match best.iter_mut().find(|other| other.variant == *variant) {
                Some(known) if one.cost.value < known.cost.value => *known = one,
                Some(_) => {}
                None => best.push(one),
            }
        }
        best
    }

    /// The rate from the decoders, where it differs from the best.
    fn decoders(&self, passes: &[Vec<ProgramReading>], best: f64) -> Option<Quantity> {
        let readings = passes.iter().filter_map(|pass| pass.first());
        let values: Vec<f64> = readings.flat_map(|reading| reading.decoded.clone()).collect();
        let cost = lowest(&values, self.confidence)?.cost;
        let differs = cost.value > best * (1.0 + BOUND_SHARE) && cost.low > best;
        differs.then(|| Quantity::new(cost, Unit::CoreCycles))
    }

    pub(super) fn latencies(&self, passes: &[Vec<ProgramReading>], rate: Option<f64>, row: &mut Row) {
        let mut found: Vec<(Latency, bool, usize)> = Vec::new();
        let worse = self.worse_through_memory(passes);
        for (index, experiment) in self.plan.experiments.iter().enumerate() {
            let Some((mut latency, certain, raw)) = self.latency(passes, index, &experiment.meaning) else {
                continue;
            };
            if worse.contains(&index) {
                continue;
            }
            self.judge(&mut latency, raw, rate, row);
            let same = |other: &Latency| {
                other.from == latency.from && other.to == latency.to && other.variant == latency.variant
            };
            let rank = |certain: bool, latency: &Latency| (!certain, cycles(latency));
            match found.iter_mut().find(|(other, ..)| same(other)) {
                Some(known) if rank(certain, &latency) < rank(known.1, &known.0) => {
                    *known = (latency, certain, index)
                }
                Some(_) => {}
                None => found.push((latency, certain, index)),
            }
        }
        // That an instance does not wait for what it implies says nothing of what it costs.
        found.retain(|(latency, _, index)| {
            let broken = latency.bound == Bound::Upper && cycles(latency) < LEAST;
            !(broken && latency.from != latency.to && self.plan.is_implied(*index))
        });
        // Of chains that were not taken, nobody reads a number.
        for (latency, _, index) in &found {
            let what = format!("{} to {}", latency.from, latency.to);
            let meaning = &self.plan.experiments[*index].meaning;
            // A chain whose memory was renamed in one pass says nothing of what it takes where it is not.
            let of = |pass| {
                let (one, ..) = self.latency(std::slice::from_ref(pass), *index, meaning)?;
                (one.variant == latency.variant).then(|| cycles(&one))
            };
            let costs = passes.iter().filter_map(of).collect();
            let links = self.links(meaning);
            row.caveats.extend(self.disagreement(costs, links, &what));
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
    pub(in crate::study::instr) fn latency(
        &self,
        passes: &[Vec<ProgramReading>],
        index: usize,
        meaning: &Meaning,
    ) -> Option<(Latency, bool, f64)> {
        let estimate = self.estimate(passes, index);
        let renamed = self.least_through_memory(passes, meaning);
        let plain = estimate.and_then(|estimate| self.chained(meaning, estimate.cost, renamed));
        let mut ways: Vec<Way> = Vec::new();
        for reading in passes.iter().filter_map(|pass| pass.get(index)) {
            let new: Vec<Way> = reading.again.iter().map(|(way, _)| *way).collect();
            ways.extend(new.into_iter().filter(|way| !ways.contains(way)).collect::<Vec<_>>());
        }
        let again = ways.into_iter().filter_map(|way| {
            let cost = usual(&again(passes, index, way), self.confidence)?.cost;
            let (latency, certain, raw) = self.chained(&self.plan.again(index, way)?.meaning, cost, None)?;
            // So long a chain is not bound by the rate of its instances.
            let raw = if matches!(way, Way::Longer(_)) { f64::INFINITY } else { raw };
            Some((latency, certain, raw))
        });
        let all: Vec<(Latency, bool, f64)> = plain.into_iter().chain(again).collect();
        // What else happens in a chain makes it slower, never faster: the lowest figure is nearest the truth. One that
        // was seen once only is none.
        let once = |(latency, ..): &(Latency, bool, f64)| latency.cost.high.is_none();
        let least =
            all.iter().min_by(|a, b| once(a).cmp(&once(b)).then(cycles(&a.0).total_cmp(&cycles(&b.0))))?;
        // A longer chain of the same latency shows that this one is not bound by the rate either.
        let same = |(latency, _, raw): &(Latency, bool, f64)| {
            raw.is_infinite() && (cycles(latency) - cycles(&least.0)).abs() <= SAME_CYCLES
        };
        let raw = if all.iter().any(same) { f64::INFINITY } else { least.2 };
        Some((least.0.clone(), least.1, raw))
    }

    /// The two latencies of an experiment's chain, where it has two.
    fn regimes(&self, passes: &[Vec<ProgramReading>], index: usize) -> Option<Regimes> {
        let Meaning::Latency { links, .. } = &self.plan.experiments[index].meaning else { return None };
        let readings: Vec<&ProgramReading> = passes.iter().filter_map(|pass| pass.get(index)).collect();
        // Where links are quicker too, nobody can tell whose the difference is.
        let less = self.gauge.sum(links).filter(|_| self.gauge.is_steady(links))?.cycles;
        regimes(&readings, less, self.confidence)
    }

    /// The latency by a chain that takes `raw`, whether its links are certain, and what it takes for each instance. `renamed` is what
    /// a chain through memory takes at least beside its other links, if memory is not renamed.
    fn chained(
        &self,
        meaning: &Meaning,
        raw: Interval,
        renamed: Option<f64>,
    ) -> Option<(Latency, bool, f64)> {
        let Meaning::Latency { from, to, variant, links, turn, .. } = meaning else { return None };
        let apart: Vec<Link> = links.iter().filter(|link| !memory::is_access(link)).copied().collect();
        let beside = self.gauge.sum(&apart)?;
        let Cost { cycles, certain } = self.gauge.sum(links)?;
        // What is faster than its own links is not closed: a store that a core takes for a move does not wait for its
        // address. Of links through memory nothing may remain, of others from one class to another a cycle.
        let least = |link: &Link| match self.gauge.sum(&[*link]) {
            Some(cost) if cost.certain => cost.cycles,
            _ => 1.0,
        };
        let closed = if renamed.is_some() { apart.iter().map(least).sum::<f64>() } else { cycles };
        if raw.value < closed - OPEN {
            return None;
        }
        let is_renamed = renamed.is_some_and(|least| raw.value - beside.cycles < least);
        // Where the convention gives a link more than there is, only the whole is known.
        let whole = is_renamed || renamed.is_some() && raw.high < cycles;
        let (cycles, taken) = if whole { (beside.cycles, apart) } else { (cycles, links.clone()) };
        let cost = memory::possible(raw, cycles);
        let turn = Listing::from_bytes(turn).text().replace('\n', "; ");
        let subtracted = match taken.is_empty() {
            true => String::new(),
            false => format!(" [{:.2} less {cycles:.2} for {}]", raw.value, links::names(&taken)),
        };
        let latency = Latency {
            from: from.clone(),
            to: to.clone(),
            cost: Quantity::new(cost, Unit::CoreCycles),
            bound: match certain {
                true => Bound::Exact,
                false if whole && !is_renamed => Bound::Upper,
                // The load waits for the same address, which may take longer than the store.
                false if !meaning.alternates() && memory::is_from_address(meaning) => Bound::Upper,
                false => Bound::Sum,
            },
            variant: if is_renamed { Some(memory::RENAMED.to_string()) } else { variant.clone() },
            immediate: None,
            chain: format!("{turn}{subtracted}"),
            regimes: None,
        };
        let instances = if meaning.has_pairs() { 2.0 } else { 1.0 };
        Some((latency, certain, raw.value / instances))
    }

    /// Takes back what a chain can't show: a dependency that is none, or a chain that is slow for another reason.
    pub(in crate::study::instr) fn judge(
        &self,
        latency: &mut Latency,
        raw: f64,
        rate: Option<f64>,
        row: &mut Row,
    ) {
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

    fn false_dependency(&self, passes: &[Vec<ProgramReading>], rate: Option<f64>, row: &mut Row) {
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

/// The figures of a chain that was measured in another way.
pub(in crate::study::instr) fn again(passes: &[Vec<ProgramReading>], index: usize, way: Way) -> Vec<f64> {
    let readings = passes.iter().filter_map(|pass| pass.get(index));
    let figures = readings.flat_map(|reading| reading.again.iter().filter(|(other, _)| *other == way));
    figures.flat_map(|(_, values)| values.clone()).collect()
}

pub(super) fn cycles(latency: &Latency) -> f64 {
    latency.cost.value.unwrap_or(f64::INFINITY)
}

/// Orders latencies: each pair's headline first.
fn headlines(latencies: &mut [Latency]) {
    latencies
        .sort_by(|a, b| (a.variant.is_some(), &a.from, &a.to).cmp(&(b.variant.is_some(), &b.from, &b.to)));
}

/// The modes that are not the best one, rounded and each once.
fn modes(rates: Vec<f64>, best: f64) -> Vec<f64> {
    let mut others: Vec<f64> =
        rates.into_iter().filter(|rate| *rate > best * (1.0 + 2.0 * MODE_SHARE)).collect();
    others.sort_by(f64::total_cmp);
    others.dedup_by(|b, a| *b - *a <= 2.0 * MODE_SHARE * *a);
    others.into_iter().map(|rate| (rate * 1000.0).round() / 1000.0).collect()
}

/// The one simple fraction in an interval.
fn fraction(cost: &Interval) -> Option<String> {
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
        found = Some(if denominator == 1 {
            format!("{numerator}")
        } else {
            format!("{numerator}/{denominator}")
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::study::instr::experiments::experiment::Experiment;
    use crate::study::instr::forms::operands::Anatomy;
    use crate::study::instr::selection::{Criteria, all};

    #[test]
    fn fractions_are_named_where_only_one_fits() {
        let name = |value, margin| fraction(&Interval::around(value, margin));
        assert_eq!(name(0.3335, 0.002).as_deref(), Some("1/3"));
        assert_eq!(name(1.0, 0.01).as_deref(), Some("1"));
        assert_eq!(name(0.22, 0.001), None);
        assert_eq!(name(0.3, 0.1), None);
    }

    #[test]
    fn a_rate_is_the_best_that_is_sustained_and_a_chain_takes_what_it_usually_takes() {
        let some = [1.0, 0.5, 1.001, 0.999, 1.3];
        for estimate in [lowest(&some, 0.95).unwrap(), usual(&some, 0.95).unwrap()] {
            assert!((estimate.cost.value - 1.0).abs() < 0.002 && estimate.others.len() == 1);
        }
        let two = [0.5, 0.501, 0.499, 0.6, 0.601, 0.602, 0.6, 0.599];
        assert!((lowest(&two, 0.95).unwrap().cost.value - 0.5).abs() < 0.002);
        assert!((usual(&two, 0.95).unwrap().cost.value - 0.6).abs() < 0.002);
        assert!(lowest(&[], 0.95).is_none());
        assert!(lowest(&[2.0], 0.95).unwrap().cost.high.is_infinite());
    }

    fn plan(name: &str) -> FormPlan {
        let criteria = Criteria { filters: vec![name.to_string()], ..Criteria::default() };
        let wanted = criteria.select(all()).unwrap().remove(0);
        FormPlan::new(Anatomy::of(wanted.form).unwrap(), &Machine::detect().features, &wanted)
    }

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

    #[test]
    fn passes_agree_where_two_of_them_do() {
        let plan = plan("Imul_r64_rm64 r64, r64");
        let gauge = Gauge::default();
        let analysis = Analysis { plan: &plan, gauge: &gauge, confidence: 0.95, slot: 0.2 };
        let caveat = |costs: &[f64]| analysis.disagreement(costs.to_vec(), 0.0, "x").is_some();
        assert!(!caveat(&[1.0]) && !caveat(&[1.0, 1.015]) && !caveat(&[1.0, 4.5, 1.01]));
        assert!(caveat(&[1.0, 4.5]) && caveat(&[1.0, 1.03, 1.06]));
    }
}
