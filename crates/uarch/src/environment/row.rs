//! A row of the environment section, and texts that rows share.

use crate::verdict::{TestVerdict, VerdictKind};
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;

/// A row of the environment section.
pub(super) struct EnvironmentRow {
    pub name: String,
    pub definition: &'static str,
    pub verdict: TestVerdict,
    pub unit: Unit,
    pub note: Option<String>,
    pub cpuid: Option<u64>,
}

pub(super) fn exact_verdict(value: f64, why: String) -> TestVerdict {
    let size = Some(Interval { value, low: value, high: value });
    TestVerdict { size, ..TestVerdict::new(VerdictKind::Found, why) }
}

pub(super) fn format_percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
