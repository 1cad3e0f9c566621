//! What is known of the numbers of tests that were measured before.

use super::record::UarchRecord;
use super::verdict::Kind;
use cyclescope_core::statistics::Interval;
use cyclescope_measure::result::record::Quantity;
use serde::Deserialize;
use serde_json::Value;

/// What is known of a number of another test.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Known {
    pub(super) what: String,
    pub(super) verdict: Kind,
    pub(super) value: Quantity,
    pub(super) why: String,
    #[serde(default)]
    pub(super) cpuid: Option<u64>,
}

impl Known {
    pub(super) fn of(record: &UarchRecord) -> Known {
        let UarchRecord { what, verdict, value, why, cpuid, .. } = record;
        Known { what: what.clone(), verdict: *verdict, value: *value, why: why.clone(), cpuid: *cpuid }
    }

    /// Of a line of a file; none where it is not whole.
    pub(super) fn read(line: &Value) -> Option<Known> {
        Known::deserialize(line).ok()
    }

    /// The number, where there is one.
    pub(super) fn found(&self) -> Option<Interval> {
        let Quantity { value, low, high, .. } = self.value;
        let value = value.filter(|_| self.verdict == Kind::Found)?;
        Some(Interval { value, low: low.unwrap_or(value), high: high.unwrap_or(value) })
    }
}
