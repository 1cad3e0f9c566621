//! Chains through memory: whether the core took the store's register for the load, and what can be said of each then.
//!
//! A core that renames memory does so by a guess: by the base register and the displacement, or by how many stores lie
//! between a store and the load that last read what it stored. No chain is therefore known not to be renamed; its time
//! tells. A load takes what it takes from its address, which a chain of pointers shows, so that a chain through memory that
//! takes much less was renamed. The store and the load of such a chain have one cost together, which is no part of either.

use super::analysis::{Analysis, cycles};
use super::row::{Bound, Latency, Row};
use crate::caveat::{Caveat, Code};
use crate::statistics::Interval;
use crate::study::instr::bodies::links::{LOADS, Link};
use crate::study::instr::experiments::experiment::{BOUND_SHARE, Experiment, Meaning};
use crate::study::instr::experiments::gauge::RENAMED_SHARE;
use crate::study::instr::experiments::program_reading::ProgramReading;
use crate::study::instr::forms::operands::{Bank, Place, Slot};

/// The variant of latencies through renamed memory.
pub(super) const RENAMED: &str = "renamed";
/// Core cycles by which a chain through one place is faster than one through two in turn if memory is renamed at times.
/// That the places change can cost half a cycle (Zen 5).
const MIXED: f64 = 1.5;

/// Whether a link is a store or a load.
pub(super) fn is_access(link: &Link) -> bool {
    [link.from, link.to].contains(&Bank::Memory)
}

/// Whether it is a chain from the address of a store to what is stored.
pub(super) fn is_from_address(meaning: &Meaning) -> bool {
    matches!(meaning, Meaning::Latency { from, to, .. } if from == "mem_addr" && to == "mem_data")
}

/// A chain's time less that of its links: nothing that happens takes less than no time.
pub(super) fn possible(raw: Interval, links: f64) -> Interval {
    let less = |value: f64| (value - links).max(0.0);
    Interval { value: less(raw.value), low: less(raw.low), high: less(raw.high) }
}

impl Analysis<'_> {
    /// What a chain through memory takes at least, beside its other links, where memory is not renamed; infinite where it is
    /// renamed in every chain. `None` for other chains.
    pub(super) fn least_through_memory(
        &self,
        passes: &[Vec<ProgramReading>],
        meaning: &Meaning,
    ) -> Option<f64> {
        let Meaning::Latency { to, links, ports: Some(ports), .. } = meaning else { return None };
        let (from, end) = (ports.0.place, ports.1.place);
        if ![from, end].contains(&Place::Memory) {
            return None;
        }
        let bytes = self.plan.anatomy.memory_bytes;
        let alike = || LOADS.iter().copied().find(|load| load.bytes == bytes);
        let link = links.iter().copied().find(is_access).or_else(alike)?;
        let load = self.gauge.load(&link)?;
        if self.gauge.is_renamed(&link) {
            return Some(f64::INFINITY);
        }
        let floor = match (from, end) {
            // An instance that loads from the address too does so before it stores.
            (Place::Slot(Slot::Base), Place::Memory) if self.plan.anatomy.reads(Place::Memory) => 2.0 * load,
            (_, Place::Memory) => load,
            // What comes after the load takes as long from its address as from what was stored.
            _ => self.from_address(passes, to).unwrap_or(0.0).max(load),
        };
        Some(floor - (1.0 - RENAMED_SHARE) * load)
    }

    /// The least latency from the address of memory to an output, by a chain that is not as slow as it is because its
    /// instances are.
    fn from_address(&self, passes: &[Vec<ProgramReading>], output: &str) -> Option<f64> {
        let rate = self.plan.rate(passes.first()?);
        let is = |meaning: &Meaning| {
            let Meaning::Latency { from, to, variant: None, .. } = meaning else { return false };
            from == "mem_addr" && to == output
        };
        let experiments = self.plan.experiments.iter().enumerate().filter(|(_, one)| is(&one.meaning));
        let found = experiments.filter_map(|(index, one)| self.latency(passes, index, &one.meaning));
        let own = found.filter(|(.., raw)| *raw > rate * (1.0 + BOUND_SHARE) || rate.is_infinite());
        own.map(|(latency, ..)| cycles(&latency)).min_by(f64::total_cmp)
    }

    /// Of the chains through memory that are not known as renamed, those that another between the same ends is better than:
    /// at one place, where memory was renamed at times; at two in turn, where there is one at one place that was not, or
    /// where two instances take so long by themselves.
    pub(super) fn worse_through_memory(&self, passes: &[Vec<ProgramReading>]) -> Vec<usize> {
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
        let (plain, alternating) = (known(false), known(true));
        let mut worse = Vec::new();
        for (index, one, _) in &plain {
            let same =
                |(_, other, _): &&(usize, Latency, f64)| (&other.from, &other.to) == (&one.from, &one.to);
            for (other, latency, raw) in alternating.iter().filter(same) {
                let slow = rate.is_finite() && *raw <= rate * (1.0 + BOUND_SHARE);
                let bound = is_from_address(&self.plan.experiments[*index].meaning);
                let mixed = bound || cycles(one) < cycles(latency) - MIXED;
                worse.push(if mixed && !slow { *index } else { *other });
            }
        }
        worse
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
