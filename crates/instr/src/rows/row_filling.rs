//! Fills a row from its readings: the reciprocal throughput, the dispatch slots, the latencies, and
//! variants by constants and operands.

use super::instr_row::{InstrRow, RowStatus};
use super::row_analysis::RowAnalysis;
use crate::experiments::program_reading::ProgramReading;

impl RowAnalysis<'_> {
    /// Fills the row from the readings of one or more passes.
    pub(crate) fn fill_row(&self, row: &mut InstrRow, passes: &[Vec<ProgramReading>]) {
        row.status = RowStatus::Measured;
        let throughput = self.estimate_throughput(passes, row);
        let rthroughput = throughput.as_ref().and_then(|throughput| throughput.cost.value);
        row.throughput = throughput;
        row.slots = self.estimate_slots(passes, row);
        self.add_latencies(passes, rthroughput, row);
        self.add_constants(passes, row);
        self.add_operands(passes, rthroughput, row);
        self.add_false_dependency(passes, rthroughput, row);
        Self::mark_fractions(row);
        Self::mark_wide(row);
        row.caveats.extend(self.shared_core_caveat(passes));
        if row.throughput.is_none() && row.latency.is_empty() {
            row.status = RowStatus::Failed;
            row.reason = Some("no experiment gave a figure".to_string());
            row.slots = None;
        }
    }
}
