//! The variations in which a chain was measured, and the one that counts.

use super::instr_row::{LatencyBound, LatencyRegimes, OperandLatency};
use super::memory_links::{self, is_memory_link, latency_cycles};
use super::regimes::estimate_regimes;
use super::row_analysis::{PASS_SHARE, RowAnalysis};
use crate::bodies::links::{self, Link};
use crate::experiments::experiment::{BOUND_SHARE, ChainVariation, ExperimentMeaning};
use crate::experiments::link_costs::LinkEstimate;
use crate::experiments::modes::estimate_largest_mode;
use crate::experiments::program_reading::ProgramReading;
use crate::experiments::store_load_trip::{MemoryRenaming, RENAMED_SHARE, StoreLoadTrip};
use crate::forms::form_anatomy::{OperandPlace, RegisterSlot};
use cyclescope_code::asm::Listing;
use cyclescope_core::statistics::{Interval, t_interval};
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::record::Quantity;

/// Two chains have the same cost within this many core cycles.
pub(super) const SAME_CYCLES: f64 = 0.05;
/// Half a core cycle tells two whole numbers apart.
const HALF_CYCLE: f64 = 0.5;
/// An open chain, in which no instance waits, is faster than its links by more than this many core
/// cycles.
const OPEN_CYCLES: f64 = 0.5;
/// Lower limit of a computation, in core cycles.
const COMPUTE_LEAST: f64 = 1.0;
/// Assumed upper limit of forwarding, as a multiple of a load's time from its address. It holds on
/// Zen 5 (7.1 and 4 core cycles).
const FORWARDING_MOST: f64 = 2.0;

/// A latency, whether its links are certain, and the whole chain's cost per instance.
pub(super) type LatencyFigure = (OperandLatency, bool, f64);

impl RowAnalysis<'_> {
    /// The variation that counts. It is the planned chain, unless another was tried in every pass
    /// and is quicker in each pass that has both. Side effects make a chain slower, never faster.
    ///
    /// A variation is ignored if few of its layouts have a figure. The others were then not
    /// proportional to the number of instances. It is also ignored if short chains reveal two
    /// latencies and the variation is no slower than its instances. It is then only a bound: it is
    /// quicker because fewer instructions wait in the scheduler. The row shows both latencies.
    pub(super) fn find_quickest(
        &self,
        passes: &[Vec<ProgramReading>],
        index: usize,
        meaning: &ExperimentMeaning,
    ) -> Option<(Option<ChainVariation>, LatencyFigure)> {
        self.choose_quickest(passes, index, meaning, self.estimate_variations(passes, index, meaning))
    }

    /// The one of these variations that counts: see [`find_quickest`](Self::find_quickest).
    fn choose_quickest(
        &self,
        passes: &[Vec<ProgramReading>],
        index: usize,
        meaning: &ExperimentMeaning,
        mut all: Vec<(Option<ChainVariation>, LatencyFigure)>,
    ) -> Option<(Option<ChainVariation>, LatencyFigure)> {
        if let [(None, _)] = all[..] {
            return all.pop();
        }
        let by_pass: Vec<_> =
            passes.iter().map(|pass| self.estimate_variations(std::slice::from_ref(pass), index, meaning)).collect();
        let has_plan = all.iter().any(|(variation, _)| variation.is_none());
        let has_two = all.len() > 1 && self.find_regimes(passes, index).is_some();
        let rthroughput = passes.first().map_or(f64::INFINITY, |readings| self.plan.least_rthroughput(readings));
        all.retain(|(variation, (.., raw))| {
            let is_bound = has_two && *raw <= rthroughput * (1.0 + BOUND_SHARE);
            let quicker = |variations: &Vec<(Option<ChainVariation>, LatencyFigure)>| {
                let figure =
                    |variation: Option<ChainVariation>| variations.iter().find(|(other, _)| *other == variation);
                figure(*variation).zip(figure(None)).is_none_or(|(varied, plain)| is_below(&varied.1.0, &plain.1.0))
            };
            let tried = |variation| {
                let mut readings = passes.iter().filter_map(|pass| pass.get(index));
                readings.all(|reading| reading.again.iter().any(|(other, _)| *other == variation))
            };
            let counts =
                |variation| tried(variation) && self.is_steady(passes, index, variation) && by_pass.iter().all(quicker);
            !has_plan || variation.is_none_or(|variation| !is_bound && counts(variation))
        });
        let once = |(_, (latency, ..)): &(Option<ChainVariation>, LatencyFigure)| latency.cost.high.is_none();
        all.into_iter()
            .min_by(|a, b| once(a).cmp(&once(b)).then(latency_cycles(&a.1.0).total_cmp(&latency_cycles(&b.1.0))))
    }

    /// The two latencies of an experiment's chain, if it has two.
    pub(super) fn find_regimes(&self, passes: &[Vec<ProgramReading>], index: usize) -> Option<LatencyRegimes> {
        let ExperimentMeaning::Latency { links, .. } = &self.plan.experiments[index].meaning else {
            return None;
        };
        let readings: Vec<&ProgramReading> = passes.iter().filter_map(|pass| pass.get(index)).collect();
        // If links may be quicker too, the difference can't be attributed.
        let less = self.link_costs.sum(links).filter(|_| self.link_costs.is_steady(links))?.cycles;
        estimate_regimes(&readings, less, self.confidence)
    }

    /// Whether a variation has figures in at least half as many layouts as the planned chain in the
    /// same passes.
    fn is_steady(&self, passes: &[Vec<ProgramReading>], index: usize, variation: ChainVariation) -> bool {
        let readings = passes.iter().filter_map(|pass| pass.get(index));
        let counts = readings.filter_map(|reading| {
            let (_, cycles) = reading.again.iter().find(|(other, _)| *other == variation)?;
            Some([cycles.len(), reading.cycles.len()])
        });
        let [steady, planned] = counts.fold([0, 0], |sum, counts| [0, 1].map(|at| sum[at] + counts[at]));
        2 * steady >= planned
    }

    /// The latency by the planned chain and by each measured variation.
    pub(super) fn estimate_variations(
        &self,
        passes: &[Vec<ProgramReading>],
        index: usize,
        meaning: &ExperimentMeaning,
    ) -> Vec<(Option<ChainVariation>, LatencyFigure)> {
        let estimate = self.estimate_experiment(passes, index);
        let renamed = self.least_through_memory(passes, meaning);
        let plain = estimate.and_then(|estimate| self.subtract_links(meaning, estimate.cost, renamed));
        let mut variations: Vec<ChainVariation> = Vec::new();
        for reading in passes.iter().filter_map(|pass| pass.get(index)) {
            let new: Vec<ChainVariation> = reading.again.iter().map(|(variation, _)| *variation).collect();
            variations.extend(new.into_iter().filter(|variation| !variations.contains(variation)).collect::<Vec<_>>());
        }
        let again = variations.into_iter().filter_map(|variation| {
            let cost = estimate_largest_mode(&variation_figures(passes, index, variation), self.confidence)?.cost;
            let (latency, certain, raw) =
                self.subtract_links(&self.plan.vary_chain(index, variation)?.meaning, cost, None)?;
            // Such a long chain is not limited by throughput.
            let raw = if matches!(variation, ChainVariation::Longer(_)) { f64::INFINITY } else { raw };
            Some((Some(variation), (latency, certain, raw)))
        });
        plain.map(|plain| (None, plain)).into_iter().chain(again).collect()
    }

    /// The latency by a chain that takes `raw`, whether its links are certain, and the chain's cost
    /// per instance. `renamed` is the lower limit of a chain through memory, without its other
    /// links, if memory is not renamed.
    fn subtract_links(
        &self,
        meaning: &ExperimentMeaning,
        raw: Interval,
        renamed: Option<f64>,
    ) -> Option<LatencyFigure> {
        let ExperimentMeaning::Latency { from, to, variant, links, turn, .. } = meaning else { return None };
        let mode = self.plan.anatomy.mode();
        let LinkEstimate { cycles, certain, .. } = self.link_costs.sum(links)?;
        // Links that don't depend on the convention.
        let own = |link: &&Link| match renamed {
            Some(_) => !is_memory_link(link),
            None => self.link_costs.sum(&[**link]).is_some_and(|cost| cost.certain),
        };
        let apart: Vec<Link> = links.iter().filter(own).copied().collect();
        let other_links = self.link_costs.sum(&apart)?;
        // A chain that is faster than its own links is not closed: with memory renaming, a store
        // does not wait for its address. Links through memory may vanish. Links between classes
        // take at least a cycle.
        let least = |link: &Link| match self.link_costs.sum(&[*link]) {
            Some(cost) if cost.certain => cost.cycles,
            _ => 1.0,
        };
        let closed = if renamed.is_some() { apart.iter().map(least).sum::<f64>() } else { cycles };
        if raw.value < closed - OPEN_CYCLES {
            return None;
        }
        let is_renamed = renamed.is_some_and(|least| raw.value - other_links.cycles < least);
        // If the convention gives a link more than the whole, only the whole is known.
        let whole = is_renamed || !certain && raw.high < cycles;
        let (cycles, taken) = if whole { (other_links.cycles, apart) } else { (cycles, links.clone()) };
        let margin = self.link_costs.sum(&taken)?.margin;
        let cost = memory_links::subtract_cost(raw.widen_by(margin), cycles);
        let turn = Listing::from_code(turn, mode).text().replace('\n', "; ");
        let subtracted = match taken.is_empty() {
            true => String::new(),
            false => format!(" [{:.2} less {cycles:.2} for {}]", raw.value, links::join_names(&taken, mode)),
        };
        let latency = OperandLatency {
            from: from.clone(),
            to: to.clone(),
            cost: Quantity::new(cost, Unit::CoreCycles),
            bound: match certain {
                true => LatencyBound::Exact,
                false if whole && !is_renamed => LatencyBound::Upper,
                // The load waits for the same address, which may take longer than the store.
                false if !meaning.is_alternating() && memory_links::is_from_address(meaning) => LatencyBound::Upper,
                false => LatencyBound::Sum,
            },
            variant: if is_renamed { Some(memory_links::RENAMED.to_string()) } else { variant.clone() },
            immediate: None,
            chain: format!("{turn}{subtracted}"),
            regimes: None,
        };
        let instances = if meaning.has_pairs() { 2.0 } else { 1.0 };
        Some((latency, certain, raw.value / instances))
    }

    /// The latency by an experiment, whether its links are certain, and the whole chain's cost.
    pub(crate) fn estimate_latency(
        &self,
        passes: &[Vec<ProgramReading>],
        index: usize,
        meaning: &ExperimentMeaning,
    ) -> Option<LatencyFigure> {
        let all = self.estimate_variations(passes, index, meaning);
        // Longer chains that take as long show that throughput does not limit this one.
        let longer = |(_, (latency, _, raw)): &(Option<ChainVariation>, LatencyFigure)| {
            raw.is_infinite().then(|| latency_cycles(latency))
        };
        let longer: Vec<f64> = all.iter().filter_map(longer).collect();
        let (_, least) = self.choose_quickest(passes, index, meaning, all)?;
        let same = |cycles: &f64| (cycles - latency_cycles(&least.0)).abs() <= SAME_CYCLES;
        let confirmed = longer.iter().any(same) || self.confirms_short(passes, index, latency_cycles(&least.0));
        let raw = if confirmed { f64::INFINITY } else { least.2 };
        Some((least.0, least.1, raw))
    }

    /// Whether short chains with further links leave only the whole number of core cycles that a
    /// chain near the rate of its instances shows. A closed chain is never quicker than its latency.
    fn confirms_short(&self, passes: &[Vec<ProgramReading>], index: usize, cost: f64) -> bool {
        let readings = passes.iter().filter_map(|pass| pass.get(index)?.short_variation.as_ref());
        let Some((variation, _)) = readings.clone().next() else { return false };
        let slopes: Vec<f64> =
            readings.filter(|(other, _)| other == variation).flat_map(|(_, slopes)| slopes.clone()).collect();
        let links = self.plan.vary_chain(index, *variation).and_then(|one| match one.meaning {
            ExperimentMeaning::Latency { links, .. } => self.link_costs.sum_fresh(&links),
            _ => None,
        });
        let Some((turn, links)) = t_interval(&slopes, self.confidence).zip(links) else { return false };
        let whole = (cost - cost.round()).abs() <= SAME_CYCLES;
        whole && turn.low - links > cost.round() - HALF_CYCLE && turn.value - links < cost.round() + HALF_CYCLE
    }

    /// Lower limit of a chain through memory, without its other links, if memory is not renamed.
    /// Infinite if it is renamed in every chain. `None` for other chains.
    pub(super) fn least_through_memory(
        &self,
        passes: &[Vec<ProgramReading>],
        meaning: &ExperimentMeaning,
    ) -> Option<f64> {
        let ExperimentMeaning::Latency { to, ports: Some(ports), .. } = meaning else { return None };
        let trip = self.find_trip(meaning)?;
        if trip.renamed == MemoryRenaming::Always {
            return Some(f64::INFINITY);
        }
        let load = trip.load;
        // Alternating places can cost more than forwarding if the core predicts which store a load
        // reads.
        let whole = trip.whole.min(FORWARDING_MOST * load);
        let reads = self.plan.anatomy.reads_place(OperandPlace::Memory);
        let computed = if reads { COMPUTE_LEAST } else { 0.0 };
        let floor = match (ports.0.place, ports.1.place) {
            // An instance that also loads from the address does so before it computes the stored
            // value.
            (OperandPlace::Slot(RegisterSlot::Base), OperandPlace::Memory) if reads => load + COMPUTE_LEAST + whole,
            (OperandPlace::Memory, OperandPlace::Memory) => {
                self.self_chain_cost(passes, trip).unwrap_or(0.0).max(whole + COMPUTE_LEAST)
            }
            (_, OperandPlace::Memory) => whole + computed,
            // The code after the load takes as long from its address as from a stored value.
            _ => self.address_cost(passes, to, false).unwrap_or(0.0).max(load),
        };
        Some(floor - (1.0 - RENAMED_SHARE) * load)
    }

    /// The time from a stored value to the next instance's, if memory is not renamed. It equals the
    /// time from the address, corrected for the difference between forwarding and the cache.
    fn self_chain_cost(&self, passes: &[Vec<ProgramReading>], trip: StoreLoadTrip) -> Option<f64> {
        let from_cache = (trip.load - trip.whole).max(0.0);
        Some(self.address_cost(passes, "mem_data", true)? - from_cache)
    }

    /// The least latency from the address of memory to an output, by a chain that its instances'
    /// rate does not limit. `alternates` selects alternating chains.
    pub(super) fn address_cost(&self, passes: &[Vec<ProgramReading>], output: &str, alternates: bool) -> Option<f64> {
        let rthroughput = self.plan.least_rthroughput(passes.first()?);
        let fits = |meaning: &ExperimentMeaning| {
            let ExperimentMeaning::Latency { from, to, variant: None, .. } = meaning else { return false };
            from == "mem_addr" && to == output && meaning.is_alternating() == alternates
        };
        let experiments = self.plan.experiments.iter().enumerate().filter(|(_, one)| fits(&one.meaning));
        let found = experiments.filter_map(|(index, one)| self.estimate_latency(passes, index, &one.meaning));
        let own = found.filter(|(latency, _, raw)| {
            latency.variant.is_none() && (*raw > rthroughput * (1.0 + BOUND_SHARE) || rthroughput.is_infinite())
        });
        own.map(|(latency, ..)| latency_cycles(&latency)).min_by(f64::total_cmp)
    }
}

/// Whether a latency is below another, beyond the tolerance.
pub(super) fn is_below(one: &OperandLatency, other: &OperandLatency) -> bool {
    latency_cycles(one) < latency_cycles(other) - SAME_CYCLES.max(PASS_SHARE * latency_cycles(other))
}

/// The figures of a variation of a chain.
pub(crate) fn variation_figures(passes: &[Vec<ProgramReading>], index: usize, variation: ChainVariation) -> Vec<f64> {
    let readings = passes.iter().filter_map(|pass| pass.get(index));
    let figures = readings.flat_map(|reading| reading.again.iter().filter(|(other, _)| *other == variation));
    figures.flat_map(|(_, values)| values.clone()).collect()
}
