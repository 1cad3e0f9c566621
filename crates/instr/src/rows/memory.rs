//! Chains through memory: whether the core took the store's register for the load, and what can be said of each then.
//!
//! A core that renames memory does so by a guess: by the base register and the displacement, or by how many stores lie
//! between a store and the load that last read what it stored. No chain is therefore known not to be renamed; its time
//! tells. A load takes what it takes from its address, which a chain of pointers shows, so that a chain through memory that
//! takes much less was renamed. The store and the load of such a chain have one cost together, which is no part of either.

use super::analysis::Analysis;
use super::row::{Bound, Latency, Row};
use crate::bodies::links::{LOADS, Link};
use crate::experiments::experiment::{BOUND_SHARE, Experiment, Meaning};
use crate::experiments::program_reading::ProgramReading;
use crate::experiments::trip::{RENAMED_SHARE, Renamed, Trip};
use crate::forms::operands::{Bank, Place, Slot};
use cyclescope_code::asm::access::{is_atomic, is_non_temporal_store};
use cyclescope_core::statistics::Interval;
use cyclescope_measure::result::caveat::{Caveat, Code};
use std::collections::BTreeMap;

/// The variant of latencies through renamed memory.
pub(super) const RENAMED: &str = "renamed";
/// Core cycles that computing takes at least.
const COMPUTED: f64 = 1.0;
/// Forwarding is taken to cost no more than this, in units of what a load takes from its address: an assumption, met by Zen 5
/// (7.1 and 4 core cycles).
const FORWARDED: f64 = 2.0;
/// Core cycles by which a chain through one place is faster than one through two in turn if memory is renamed at times.
/// That the places change can cost half a cycle, and of 64 bytes one to two that differ by layout (Zen 5), where nothing is
/// renamed.
const MIXED: f64 = 1.5;

/// Whether a link is a store or a load.
pub(super) fn is_access(link: &Link) -> bool {
    [link.from, link.to].contains(&Bank::Memory)
}

/// Whether it is a chain from the address of a store to what is stored.
pub(super) fn is_from_address(meaning: &Meaning) -> bool {
    matches!(meaning, Meaning::Latency { from, to, .. } if from == "mem_addr" && to == "mem_data")
}

/// Core cycles of a latency; infinite where there is no number.
pub(super) fn cycles(latency: &Latency) -> f64 {
    latency.cost.value.unwrap_or(f64::INFINITY)
}

/// A chain's time less that of its links: nothing that happens takes less than no time. Where the whole interval is below
/// that, by so much are the links' costs off, and the result is known no better.
pub(super) fn possible(raw: Interval, links: f64) -> Interval {
    let less = |value: f64| (value - links).max(0.0);
    let short = (links - raw.value).max(0.0);
    let high = if raw.high < links { short } else { raw.high - links };
    Interval { value: less(raw.value), low: less(raw.low), high }
}

/// What other chains say of one through memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Another is better: one that alternates, where memory was renamed at times at one place; one at one place, where it
    /// was not, or where two instances take so long by themselves.
    Worse,
    /// Nothing tells whether memory was renamed.
    Unsure,
}

impl Analysis<'_> {
    /// What a chain through memory takes at least, beside its other links, where memory is not renamed; infinite where it is
    /// renamed in every chain. `None` for other chains.
    pub(super) fn least_through_memory(
        &self,
        passes: &[Vec<ProgramReading>],
        meaning: &Meaning,
    ) -> Option<f64> {
        let Meaning::Latency { to, ports: Some(ports), .. } = meaning else { return None };
        let trip = self.trip(meaning)?;
        if trip.renamed == Renamed::Always {
            return Some(f64::INFINITY);
        }
        let load = trip.load;
        // Two places in turn can cost a core more than forwarding does, where it guesses which store a load reads.
        let whole = trip.whole.min(FORWARDED * load);
        let reads = self.plan.anatomy.reads(Place::Memory);
        let computed = if reads { COMPUTED } else { 0.0 };
        let floor = match (ports.0.place, ports.1.place) {
            // An instance that loads from the address too does so before it computes what it stores.
            (Place::Slot(Slot::Base), Place::Memory) if reads => load + COMPUTED + whole,
            (Place::Memory, Place::Memory) => {
                self.self_chain(passes, trip).unwrap_or(0.0).max(whole + COMPUTED)
            }
            (_, Place::Memory) => whole + computed,
            // What comes after the load takes as long from its address as from what was stored.
            _ => self.address_cost(passes, to, false).unwrap_or(0.0).max(load),
        };
        Some(floor - (1.0 - RENAMED_SHARE) * load)
    }

    /// The store and the load of a chain through memory, or those of as many bytes; `None` for other chains.
    fn trip(&self, meaning: &Meaning) -> Option<Trip> {
        let Meaning::Latency { links, ports: Some(ports), .. } = meaning else { return None };
        if ![ports.0.place, ports.1.place].contains(&Place::Memory) {
            return None;
        }
        let bytes = self.plan.anatomy.memory_bytes;
        let alike = || LOADS.iter().copied().find(|load| load.bytes == bytes);
        self.gauge.trip(&links.iter().copied().find(is_access).or_else(alike)?)
    }

    /// From what an instance stored to what the next one stores, if memory is not renamed: it takes as long as from the
    /// address, but that the stored data come by another way than those of the cache.
    fn self_chain(&self, passes: &[Vec<ProgramReading>], trip: Trip) -> Option<f64> {
        let from_cache = (trip.load - trip.whole).max(0.0);
        Some(self.address_cost(passes, "mem_data", true)? - from_cache)
    }

    /// The least latency from the address of memory to an output, by a chain that is not as slow as it is because its
    /// instances are; in memory, by one that alternates where that is asked for.
    fn address_cost(&self, passes: &[Vec<ProgramReading>], output: &str, alternates: bool) -> Option<f64> {
        let rate = self.plan.rate(passes.first()?);
        let is = |meaning: &Meaning| {
            let Meaning::Latency { from, to, variant: None, .. } = meaning else { return false };
            from == "mem_addr" && to == output && meaning.alternates() == alternates
        };
        let experiments = self.plan.experiments.iter().enumerate().filter(|(_, one)| is(&one.meaning));
        let found = experiments.filter_map(|(index, one)| self.latency(passes, index, &one.meaning));
        let own = found.filter(|(latency, _, raw)| {
            latency.variant.is_none() && (*raw > rate * (1.0 + BOUND_SHARE) || rate.is_infinite())
        });
        own.map(|(latency, ..)| cycles(&latency)).min_by(f64::total_cmp)
    }

    /// What other chains between the same ends say of those through memory that are not known as renamed.
    pub(super) fn standings(&self, passes: &[Vec<ProgramReading>]) -> BTreeMap<usize, Standing> {
        let rate = passes.first().map_or(f64::INFINITY, |readings| self.plan.rate(readings));
        let known = |wanted: bool| {
            let chains = self.plan.experiments.iter().enumerate().filter(move |(_, one)| {
                let Meaning::Latency { ports: Some(ports), .. } = &one.meaning else { return false };
                let through = [ports.0.place, ports.1.place].contains(&Place::Memory);
                through && one.meaning.alternates() == wanted
            });
            let of = |(index, one): (usize, &Experiment)| {
                let (latency, _, raw) = self.latency(passes, index, &one.meaning)?;
                (latency.variant.as_deref() != Some(RENAMED)).then_some((index, latency, raw))
            };
            chains.filter_map(of).collect::<Vec<_>>()
        };
        let alternating = known(true);
        let mut standings = BTreeMap::new();
        for (index, one, _) in known(false) {
            let meaning = &self.plan.experiments[index].meaning;
            if self.may_be_renamed(passes, meaning) {
                standings.insert(index, Standing::Unsure);
            }
            let same =
                |(_, other, _): &&(usize, Latency, f64)| (&other.from, &other.to) == (&one.from, &one.to);
            for (other, latency, raw) in alternating.iter().filter(same) {
                let slow = rate.is_finite() && *raw <= rate * (1.0 + BOUND_SHARE);
                let mixed = is_from_address(meaning)
                    || self.renames(meaning) && cycles(&one) < cycles(latency) - MIXED;
                match (slow, mixed) {
                    (true, _) => _ = standings.insert(*other, Standing::Worse),
                    (false, true) => _ = standings.insert(index, Standing::Worse),
                    (false, false) => {
                        standings.insert(*other, Standing::Worse);
                        standings.remove(&index);
                    }
                }
            }
        }
        standings
    }

    /// Whether a chain at one place may have been renamed although its time does not show it, because an unknown part of
    /// it is what the instance computes.
    fn may_be_renamed(&self, passes: &[Vec<ProgramReading>], meaning: &Meaning) -> bool {
        let Meaning::Latency { ports: Some(ports), .. } = meaning else { return false };
        let sample = &self.plan.anatomy.sample;
        let stores = ports.1.place == Place::Memory && !is_atomic(sample) && !is_non_temporal_store(sample);
        let known =
            || ports.0.place == Place::Memory && self.address_cost(passes, "mem_data", true).is_some();
        self.renames(meaning) && stores && !known()
    }

    /// Whether the core takes the store's register for the load anywhere, with the store and the load of this chain.
    fn renames(&self, meaning: &Meaning) -> bool {
        self.trip(meaning).is_some_and(|trip| trip.renamed != Renamed::Never)
    }

    /// Makes a latency to memory a bound that holds whether memory was renamed or not: where it was, the chain lacks what a
    /// store and a load take together.
    pub(super) fn at_most(&self, meaning: &Meaning, latency: &mut Latency) {
        let Some(trip) = self.trip(meaning) else { return };
        for end in [&mut latency.cost.value, &mut latency.cost.low, &mut latency.cost.high] {
            *end = end.map(|cycles| cycles + trip.whole);
        }
        latency.bound = Bound::Upper;
        latency.chain += &format!(" [and {:.2} if memory was renamed]", trip.whole);
    }
}

/// Adds headlines where memory was renamed in every chain: what is known of a load is what it takes from its address, and
/// nothing of a store alone.
pub(super) fn fall_back(row: &mut Row) {
    let is_renamed = |latency: &&Latency| latency.variant.as_deref() == Some(RENAMED);
    let mut added: Vec<Latency> = Vec::new();
    for renamed in row.latency.iter().filter(is_renamed) {
        let same = |other: &Latency| {
            (&other.from, &other.to) == (&renamed.from, &renamed.to) && other.variant.is_none()
        };
        if row.latency.iter().chain(&added).any(same) {
            continue;
        }
        let address =
            |other: &&Latency| other.from == "mem_addr" && other.to == renamed.to && other.variant.is_none();
        let loaded = renamed.from == "mem_data" && renamed.to != "mem_data";
        let known = row.latency.iter().find(address).filter(|_| loaded);
        let what = match known {
            Some(_) => "the bound is what the address costs",
            None => "a store has no cost of its own then",
        };
        let text = format!("{} to {}: memory is renamed in every chain; {what}", renamed.from, renamed.to);
        row.caveats.push(Caveat { code: Code::UpperBound, text });
        let from = renamed.from.clone();
        added.extend(known.map(|known| Latency { from, bound: Bound::Upper, ..known.clone() }));
    }
    row.latency.extend(added);
}

#[cfg(test)]
mod tests {
    use super::super::analysis::tests::plan;
    use super::*;
    use crate::experiments::gauge::Gauge;

    #[test]
    fn places_in_turn_count_only_where_a_store_and_a_load_show_that_memory_is_renamed() {
        let plan = plan("Add_r64_rm64 r64, m64");
        let from_data = |experiment: &Experiment| matches!(&experiment.meaning, Meaning::Latency { from, to, .. } if from == "mem_data" && to == "op1");
        let links = |experiment: &Experiment| match &experiment.meaning {
            Meaning::Latency { links, .. } => links.clone(),
            _ => Vec::new(),
        };
        let links: Vec<Link> = plan.experiments.iter().flat_map(links).collect();
        let mut readings = vec![ProgramReading::default(); plan.experiments.len()];
        let mut chains = [usize::MAX; 2];
        for (index, experiment) in plan.experiments.iter().enumerate().filter(|(_, one)| from_data(one)) {
            let alternates = experiment.meaning.alternates();
            readings[index].cycles = vec![if alternates { 24.0 } else { 20.0 }; 6];
            chains[usize::from(alternates)] = index;
        }
        let worse = |renamed| {
            let trip = Trip { load: 4.0, whole: 7.0, renamed };
            let gauge = Gauge::of_ones(&links).with_trip(&links, trip);
            let analysis = Analysis { plan: &plan, gauge: &gauge, confidence: 0.95, slot: 0.2 };
            let standings = analysis.standings(std::slice::from_ref(&readings));
            chains.map(|index| standings.get(&index) == Some(&Standing::Worse))
        };
        assert_eq!(
            worse(Renamed::Never),
            [false, true],
            "the places that change are slow for another reason"
        );
        assert_eq!(worse(Renamed::SamePlace), [true, false], "one place may be renamed at times");
    }
}
