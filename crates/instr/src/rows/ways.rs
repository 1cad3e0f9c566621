//! The ways in which one chain was measured, and which of them counts.

use super::analysis::{Analysis, PASS_SHARE};
use super::memory::{self, cycles};
use super::regimes::regimes;
use super::row::{Bound, Latency, Regimes};
use crate::bodies::links::{self, Link};
use crate::experiments::experiment::{BOUND_SHARE, Meaning, Way};
use crate::experiments::gauge::Cost;
use crate::experiments::modes::usual;
use crate::experiments::program_reading::ProgramReading;
use cyclescope_code::asm::Listing;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::record::Quantity;

/// Core cycles within which two chains have the same cost.
pub(super) const SAME_CYCLES: f64 = 0.05;
/// Core cycles by which an open chain, in which no instance waits, is faster than its links.
const OPEN: f64 = 0.5;

/// A latency, whether its links are certain, and what the whole chain takes for each instance.
pub(super) type Figure = (Latency, bool, f64);

impl Analysis<'_> {
    /// The way whose figure counts: that of the plan, unless another one was tried in every pass, and is quicker in each that
    /// has both. What else happens in a chain makes it slower, never faster. One in which only few layouts came to a figure,
    /// because the cost of the others was not proportional to the number of instances, is none. Where short chains show that
    /// the chain has two latencies, one that is no slower than its instances is none: that fewer instructions wait in the
    /// scheduler makes it quicker, it is but a bound, and the row has both latencies.
    pub(super) fn quickest(
        &self,
        passes: &[Vec<ProgramReading>],
        index: usize,
        meaning: &Meaning,
    ) -> Option<(Option<Way>, Figure)> {
        let mut all = self.ways(passes, index, meaning);
        let by_pass: Vec<_> =
            passes.iter().map(|pass| self.ways(std::slice::from_ref(pass), index, meaning)).collect();
        let has_plan = all.iter().any(|(way, _)| way.is_none());
        let has_two = all.len() > 1 && self.regimes(passes, index).is_some();
        let rate = passes.first().map_or(f64::INFINITY, |readings| self.plan.rate(readings));
        all.retain(|(way, (.., raw))| {
            let is_bound = has_two && *raw <= rate * (1.0 + BOUND_SHARE);
            let quicker = |ways: &Vec<(Option<Way>, Figure)>| {
                let of = |way: Option<Way>| ways.iter().find(|(other, _)| *other == way);
                of(*way).zip(of(None)).is_none_or(|(one, plain)| is_below(&one.1.0, &plain.1.0))
            };
            let tried = |way| {
                let mut readings = passes.iter().filter_map(|pass| pass.get(index));
                readings.all(|reading| reading.again.iter().any(|(other, _)| *other == way))
            };
            let counts =
                |way| tried(way) && self.is_steady(passes, index, way) && by_pass.iter().all(quicker);
            !has_plan || way.is_none_or(|way| !is_bound && counts(way))
        });
        let once = |(_, (latency, ..)): &(Option<Way>, Figure)| latency.cost.high.is_none();
        all.into_iter().min_by(|a, b| once(a).cmp(&once(b)).then(cycles(&a.1.0).total_cmp(&cycles(&b.1.0))))
    }

    /// The two latencies of an experiment's chain, where it has two.
    pub(super) fn regimes(&self, passes: &[Vec<ProgramReading>], index: usize) -> Option<Regimes> {
        let Meaning::Latency { links, .. } = &self.plan.experiments[index].meaning else { return None };
        let readings: Vec<&ProgramReading> = passes.iter().filter_map(|pass| pass.get(index)).collect();
        // Where links are quicker too, nobody can tell whose the difference is.
        let less = self.gauge.sum(links).filter(|_| self.gauge.is_steady(links))?.cycles;
        regimes(&readings, less, self.confidence)
    }

    /// Whether a chain in some way came to a figure in half as many layouts as the one of the plan in the same passes.
    fn is_steady(&self, passes: &[Vec<ProgramReading>], index: usize, way: Way) -> bool {
        let readings = passes.iter().filter_map(|pass| pass.get(index));
        let counts = readings.filter_map(|reading| {
            let (_, cycles) = reading.again.iter().find(|(other, _)| *other == way)?;
            Some([cycles.len(), reading.cycles.len()])
        });
        let [steady, planned] = counts.fold([0, 0], |sum, counts| [0, 1].map(|at| sum[at] + counts[at]));
        2 * steady >= planned
    }

    /// The latency by the experiment's chain as it was planned, and by each other way in which it was measured.
    pub(super) fn ways(
        &self,
        passes: &[Vec<ProgramReading>],
        index: usize,
        meaning: &Meaning,
    ) -> Vec<(Option<Way>, Figure)> {
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
            Some((Some(way), (latency, certain, raw)))
        });
        plain.map(|plain| (None, plain)).into_iter().chain(again).collect()
    }

    /// The latency by a chain that takes `raw`, whether its links are certain, and what it takes for each instance.
    /// `renamed` is what a chain through memory takes at least beside its other links, if memory is not renamed.
    fn chained(&self, meaning: &Meaning, raw: Interval, renamed: Option<f64>) -> Option<Figure> {
        let Meaning::Latency { from, to, variant, links, turn, .. } = meaning else { return None };
        let Cost { cycles, certain, .. } = self.gauge.sum(links)?;
        // What the convention has no say in.
        let own = |link: &&Link| match renamed {
            Some(_) => !memory::is_access(link),
            None => self.gauge.sum(&[**link]).is_some_and(|cost| cost.certain),
        };
        let apart: Vec<Link> = links.iter().filter(own).copied().collect();
        let beside = self.gauge.sum(&apart)?;
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
        let whole = is_renamed || !certain && raw.high < cycles;
        let (cycles, taken) = if whole { (beside.cycles, apart) } else { (cycles, links.clone()) };
        let margin = self.gauge.sum(&taken)?.margin;
        let cost = memory::possible(raw.widened(margin), cycles);
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
}

/// Whether a latency is less than another one, beyond what is the same.
pub(super) fn is_below(one: &Latency, other: &Latency) -> bool {
    cycles(one) < cycles(other) - SAME_CYCLES.max(PASS_SHARE * cycles(other))
}

/// The figures of a chain that was measured in another way.
pub(crate) fn again(passes: &[Vec<ProgramReading>], index: usize, way: Way) -> Vec<f64> {
    let readings = passes.iter().filter_map(|pass| pass.get(index));
    let figures = readings.flat_map(|reading| reading.again.iter().filter(|(other, _)| *other == way));
    figures.flat_map(|(_, values)| values.clone()).collect()
}
