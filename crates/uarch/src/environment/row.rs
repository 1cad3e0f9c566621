//! A line of the environment, and the words that lines have in common.

use crate::verdict::{Kind, Verdict};
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;

/// A line of this section.
pub(super) struct Row {
    pub name: String,
    pub definition: &'static str,
    pub verdict: Verdict,
    pub unit: Unit,
    pub told: Option<String>,
    pub cpuid: Option<u64>,
}

pub(super) fn found(value: f64, why: String) -> Verdict {
    let size = Some(Interval { value, low: value, high: value });
    Verdict { size, ..Verdict::new(Kind::Found, why) }
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
