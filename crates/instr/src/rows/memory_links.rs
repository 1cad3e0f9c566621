//! Stores and loads as links of a chain, and what is subtracted for them.

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

/// Whether it is a chain from the address of a store to what is stored.
pub(super) fn is_from_address(meaning: &ExperimentMeaning) -> bool {
    matches!(meaning, ExperimentMeaning::Latency { from, to, .. } if from == "mem_addr" && to == "mem_data")
}

/// Core cycles of a latency; infinite where there is no number.
pub(super) fn latency_cycles(latency: &OperandLatency) -> f64 {
    latency.cost.value.unwrap_or(f64::INFINITY)
}

/// A chain's time less that of its links: nothing that happens takes less than no time. Where the whole interval is below
/// that, by so much are the links' costs off, and the result is known no better.
pub(super) fn subtract_cost(raw: Interval, links: f64) -> Interval {
    let less = |value: f64| (value - links).max(0.0);
    let short = (links - raw.value).max(0.0);
    let high = if raw.high < links { short } else { raw.high - links };
    Interval { value: less(raw.value), low: less(raw.low), high }
}

impl RowAnalysis<'_> {
    /// The store and the load of a chain through memory, or those of as many bytes; `None` for other chains.
    pub(super) fn find_trip(&self, meaning: &ExperimentMeaning) -> Option<StoreLoadTrip> {
        let ExperimentMeaning::Latency { links, ports: Some(ports), .. } = meaning else { return None };
        if ![ports.0.place, ports.1.place].contains(&OperandPlace::Memory) {
            return None;
        }
        let bytes = self.plan.anatomy.memory_bytes;
        let alike = || LOADS.iter().copied().find(|load| load.bytes == bytes);
        self.gauge.find_trip(&links.iter().copied().find(is_memory_link).or_else(alike)?)
    }
}
