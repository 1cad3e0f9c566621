//! Results of tests that were measured before.

use super::record::UarchRecord;
use super::verdict::VerdictKind;
use cyclescope_core::statistics::Interval;
use cyclescope_measure::result::record::Quantity;
use serde::Deserialize;
use serde_json::Value;

/// A number of another test.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct EarlierResult {
    pub(super) what: String,
    pub(super) verdict: VerdictKind,
    pub(super) value: Quantity,
    pub(super) why: String,
    #[serde(default)]
    pub(super) cpuid: Option<u64>,
}

impl EarlierResult {
    pub(super) fn from_record(record: &UarchRecord) -> EarlierResult {
        let UarchRecord { what, verdict, value, why, cpuid, .. } = record;
        EarlierResult { what: what.clone(), verdict: *verdict, value: *value, why: why.clone(), cpuid: *cpuid }
    }

    /// Reads a line of a result file; `None` if the line is incomplete.
    pub(super) fn from_line(line: &Value) -> Option<EarlierResult> {
        EarlierResult::deserialize(line).ok()
    }

    /// The number, if one was found.
    pub(super) fn found_size(&self) -> Option<Interval> {
        let Quantity { value, low, high, .. } = self.value;
        let value = value.filter(|_| self.verdict == VerdictKind::Found)?;
        Some(Interval { value, low: low.unwrap_or(value), high: high.unwrap_or(value) })
    }
}
