//! Chains through memory: whether the core renamed memory, and what is then known.
//!
//! A core predicts which store a load reads. It may use base register and displacement, or the
//! number of stores since the one that the load last read. So no chain is known in advance to be
//! free of memory renaming; its time decides. A load's time from its address is known from pointer
//! chasing. A chain through memory that takes much less was renamed. Its store and load then have
//! one common cost, which belongs to neither.

use super::instr_row::{InstrRow, LatencyBound, OperandLatency};
use super::memory_links::{RENAMED, is_from_address, latency_cycles};
use super::row_analysis::RowAnalysis;
use crate::experiments::experiment::{BOUND_SHARE, ExperimentMeaning, FormExperiment};
use crate::experiments::program_reading::ProgramReading;
use crate::experiments::store_load_trip::MemoryRenaming;
use crate::forms::form_anatomy::OperandPlace;
use cyclescope_code::asm::access::{is_atomic, is_non_temporal_store};
use cyclescope_measure::result::caveat::{Caveat, CaveatKind};
use std::collections::BTreeMap;

/// Least core cycles by which a chain through one place beats one through two alternating places if
/// memory is renamed at times. Without renaming, alternation can cost half a cycle, and with 64
/// bytes one or two that differ by layout (Zen 5).
const MIXED_CYCLES: f64 = 1.5;

/// How a chain through memory compares with others between the same ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChainStanding {
    /// Another chain is better. That is an alternating one if memory was renamed at times at one
    /// place. It is the chain at one place if memory was not renamed, or if two instances take that
    /// long anyway.
    Worse,
    /// It is unknown whether memory was renamed.
    Unsure,
}

impl RowAnalysis<'_> {
    /// Judges all chains through memory that are not known to be renamed, by the others between the
    /// same ends.
    pub(super) fn judge_standings(&self, passes: &[Vec<ProgramReading>]) -> BTreeMap<usize, ChainStanding> {
        let rthroughput = passes.first().map_or(f64::INFINITY, |readings| self.plan.least_rthroughput(readings));
        let unrenamed = |alternates: bool| {
            let chains = self.plan.experiments.iter().enumerate().filter(move |(_, one)| {
                let ExperimentMeaning::Latency { ports: Some(ports), .. } = &one.meaning else {
                    return false;
                };
                let through = [ports.0.place, ports.1.place].contains(&OperandPlace::Memory);
                through && one.meaning.is_alternating() == alternates
            });
            let estimate = |(index, one): (usize, &FormExperiment)| {
                let (latency, _, raw) = self.estimate_latency(passes, index, &one.meaning)?;
                (latency.variant.as_deref() != Some(RENAMED)).then_some((index, latency, raw))
            };
            chains.filter_map(estimate).collect::<Vec<_>>()
        };
        let alternating = unrenamed(true);
        let mut standings = BTreeMap::new();
        for (index, one, _) in unrenamed(false) {
            let meaning = &self.plan.experiments[index].meaning;
            if self.may_be_renamed(passes, meaning) {
                standings.insert(index, ChainStanding::Unsure);
            }
            let same = |(_, other, _): &&(usize, OperandLatency, f64)| (&other.from, &other.to) == (&one.from, &one.to);
            for (other, latency, raw) in alternating.iter().filter(same) {
                let slow = rthroughput.is_finite() && *raw <= rthroughput * (1.0 + BOUND_SHARE);
                let mixed = is_from_address(meaning)
                    || self.renames_memory(meaning) && latency_cycles(&one) < latency_cycles(latency) - MIXED_CYCLES;
                match (slow, mixed) {
                    (true, _) => _ = standings.insert(*other, ChainStanding::Worse),
                    (false, true) => _ = standings.insert(index, ChainStanding::Worse),
                    (false, false) => {
                        standings.insert(*other, ChainStanding::Worse);
                        standings.remove(&index);
                    }
                }
            }
        }
        standings
    }

    /// Whether a chain at one place may be renamed although its time does not show it. The
    /// instance's own computation is an unknown part of that time.
    fn may_be_renamed(&self, passes: &[Vec<ProgramReading>], meaning: &ExperimentMeaning) -> bool {
        let ExperimentMeaning::Latency { ports: Some(ports), .. } = meaning else { return false };
        let sample = &self.plan.anatomy.sample;
        let stores = ports.1.place == OperandPlace::Memory && !is_atomic(sample) && !is_non_temporal_store(sample);
        let known = || ports.0.place == OperandPlace::Memory && self.address_cost(passes, "mem_data", true).is_some();
        self.renames_memory(meaning) && stores && !known()
    }

    /// Whether the core renames memory anywhere with the store and load of this chain.
    fn renames_memory(&self, meaning: &ExperimentMeaning) -> bool {
        self.find_trip(meaning).is_some_and(|trip| trip.renamed != MemoryRenaming::Never)
    }

    /// Makes a latency to memory an upper bound that holds with and without memory renaming. If
    /// memory was renamed, the chain lacks the time of a store and load.
    pub(super) fn bound_by_trip(&self, meaning: &ExperimentMeaning, latency: &mut OperandLatency) {
        let Some(trip) = self.find_trip(meaning) else { return };
        for end in [&mut latency.cost.value, &mut latency.cost.low, &mut latency.cost.high] {
            *end = end.map(|cycles| cycles + trip.whole);
        }
        latency.bound = LatencyBound::Upper;
        latency.chain += &format!(" [and {:.2} if memory was renamed]", trip.whole);
    }
}

/// Adds headlines if memory was renamed in every chain. A load is bounded by its time from the
/// address. A store alone has no known cost.
pub(super) fn add_fallbacks(row: &mut InstrRow) {
    let is_renamed = |latency: &&OperandLatency| latency.variant.as_deref() == Some(RENAMED);
    let mut added: Vec<OperandLatency> = Vec::new();
    for renamed in row.latency.iter().filter(is_renamed) {
        let same = |other: &OperandLatency| {
            (&other.from, &other.to) == (&renamed.from, &renamed.to) && other.variant.is_none()
        };
        if row.latency.iter().chain(&added).any(same) {
            continue;
        }
        let address =
            |other: &&OperandLatency| other.from == "mem_addr" && other.to == renamed.to && other.variant.is_none();
        let loaded = renamed.from == "mem_data" && renamed.to != "mem_data";
        let known = row.latency.iter().find(address).filter(|_| loaded);
        let what = match known {
            Some(_) => "the bound is the latency from the address",
            None => "a store alone has no known cost",
        };
        let text = format!("{} to {}: memory is renamed in every chain; {what}", renamed.from, renamed.to);
        row.caveats.push(Caveat { code: CaveatKind::UpperBound, text });
        let from = renamed.from.clone();
        added.extend(known.map(|known| OperandLatency { from, bound: LatencyBound::Upper, ..known.clone() }));
    }
    row.latency.extend(added);
}

#[cfg(test)]
mod tests {
    use super::super::row_analysis::tests::plan;
    use super::*;
    use crate::bodies::links::Link;
    use crate::experiments::link_costs::LinkCosts;
    use crate::experiments::store_load_trip::StoreLoadTrip;

    #[test]
    fn alternating_places_count_only_if_the_core_renames_memory() {
        let plan = plan("Add_r64_rm64 r64, m64");
        let from_data = |experiment: &FormExperiment| {
            matches!(
                &experiment.meaning,
                ExperimentMeaning::Latency { from, to, .. } if from == "mem_data" && to == "op1"
            )
        };
        let links = |experiment: &FormExperiment| match &experiment.meaning {
            ExperimentMeaning::Latency { links, .. } => links.clone(),
            _ => Vec::new(),
        };
        let links: Vec<Link> = plan.experiments.iter().flat_map(links).collect();
        let mut readings = vec![ProgramReading::default(); plan.experiments.len()];
        let mut chains = [usize::MAX; 2];
        for (index, experiment) in plan.experiments.iter().enumerate().filter(|(_, one)| from_data(one)) {
            let alternates = experiment.meaning.is_alternating();
            readings[index].cycles = vec![if alternates { 24.0 } else { 20.0 }; 6];
            chains[usize::from(alternates)] = index;
        }
        let worse = |renamed| {
            let trip = StoreLoadTrip { load: 4.0, whole: 7.0, renamed };
            let link_costs = LinkCosts::from_ones(&links).with_trip(&links, trip);
            let analysis = RowAnalysis::without_slots(&plan, &link_costs, 0.2);
            let standings = analysis.judge_standings(std::slice::from_ref(&readings));
            chains.map(|index| standings.get(&index) == Some(&ChainStanding::Worse))
        };
        assert_eq!(worse(MemoryRenaming::Never), [false, true], "alternating places are slow for another reason");
        assert_eq!(worse(MemoryRenaming::SamePlace), [true, false], "one place may be renamed at times");
    }
}
