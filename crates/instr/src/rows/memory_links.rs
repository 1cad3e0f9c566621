//! Stores and loads as links of a chain, and the subtraction of their costs.

use super::instr_row::OperandLatency;
use super::row_analysis::RowAnalysis;
use crate::bodies::links::{LOADS, Link};
use crate::experiments::experiment::ExperimentMeaning;
use crate::experiments::store_load_trip::StoreLoadTrip;
use crate::forms::form_anatomy::{OperandPlace, RegisterBank};
use cyclescope_core::statistics::Interval;

/// The variant of latencies through renamed memory.
pub(super) const RENAMED: &str = "renamed";

/// Whether a link is a store or a load.
pub(super) fn is_memory_link(link: &Link) -> bool {
    [link.from, link.to].contains(&RegisterBank::Memory)
}

/// Whether a chain leads from the address of a store to its data.
pub(super) fn is_from_address(meaning: &ExperimentMeaning) -> bool {
    matches!(meaning, ExperimentMeaning::Latency { from, to, .. } if from == "mem_addr" && to == "mem_data")
}

/// Core cycles of a latency. Infinite without a figure.
pub(super) fn latency_cycles(latency: &OperandLatency) -> f64 {
    latency.cost.value.unwrap_or(f64::INFINITY)
}

/// Subtracts the cost of links from a chain's, at least zero. If the whole interval is below zero,
/// the link costs are off by that much, and so is the result.
pub(super) fn subtract_cost(raw: Interval, links: f64) -> Interval {
    let less = |value: f64| (value - links).max(0.0);
    let short = (links - raw.value).max(0.0);
    let high = if raw.high < links { short } else { raw.high - links };
    Interval { value: less(raw.value), low: less(raw.low), high }
}

impl RowAnalysis<'_> {
    /// The store and load of a chain through memory, or a pair of the same width. `None` for other
    /// chains.
    pub(super) fn find_trip(&self, meaning: &ExperimentMeaning) -> Option<StoreLoadTrip> {
        let ExperimentMeaning::Latency { links, ports: Some(ports), .. } = meaning else { return None };
        if ![ports.0.place, ports.1.place].contains(&OperandPlace::Memory) {
            return None;
        }
        let bytes = self.plan.anatomy.memory_bytes;
        let alike = || LOADS.iter().copied().find(|load| load.bytes == bytes);
        self.link_costs.find_trip(&links.iter().copied().find(is_memory_link).or_else(alike)?)
    }
}
