//! Effects of background load while tests ran: on the core, on rounds, and on CPU time.

use super::row::{EnvironmentRow, exact_verdict, format_percent};
use crate::conditions::{KernelCounts, RunConditions, TICKS};
use crate::reported_machine::ReportedMachine;
use crate::verdict::{TestVerdict, VerdictKind};
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use cyclescope_measure::ruler::LeastWidth;
use std::time::Duration;

/// Share of layouts with a busy sibling below which it counts as noise.
const SHARED_LEAST: f64 = 0.02;

/// Standard errors in a 95 % interval.
const STANDARD_ERRORS: f64 = 1.96;

/// Background load during a study.
pub(crate) struct BackgroundActivity<'a> {
    /// What readings show of background load.
    pub conditions: &'a RunConditions,
    /// The least width of an unshared core of this design, if data contain it.
    pub width: Option<LeastWidth>,
    /// The kernel's counters at the start and at the end.
    pub counted: [KernelCounts; 2],
    /// The time between them.
    pub time: Duration,
}

/// A share of a total, with its 95 % confidence interval.
fn share_verdict(share: f64, number: usize, why: String) -> TestVerdict {
    let error = STANDARD_ERRORS * (share * (1.0 - share) / number as f64).sqrt();
    // If no case was seen among n, the upper end of the interval is 3/n (95 %, Poisson
    // distribution).
    verdict_within(share, error.max(if share == 0.0 { 3.0 / number as f64 } else { 0.0 }), why)
}

/// A share with its error.
fn verdict_within(share: f64, error: f64, why: String) -> TestVerdict {
    let size = Some(Interval { value: share, low: (share - error).max(0.0), high: (share + error).min(1.0) });
    TestVerdict { size, ..TestVerdict::new(VerdictKind::Found, why) }
}

pub(super) fn busy_sibling_row(surroundings: &ReportedMachine, course: &BackgroundActivity) -> EnvironmentRow {
    let verdict = match course.conditions.shared_layouts(course.width) {
        None => TestVerdict::new(VerdictKind::Unclear, "nothing was measured"),
        Some((share, layouts)) if share < SHARED_LEAST => {
            let limit = match course.width {
                Some(_) => "",
                None => "; one that is busy all the time is not seen, since the core's design is not known",
            };
            let why = format!("in {} of {layouts} layouts the core was narrower{limit}", format_percent(share));
            TestVerdict::new(VerdictKind::None, why)
        }
        Some((share, layouts)) => {
            let why = format!("share of {layouts} layouts in which the core was narrower than at its best");
            share_verdict(share, layouts, why)
        }
    };
    let siblings = surroundings.siblings.known().map_or("unknown", String::as_str);
    EnvironmentRow {
        name: "busy_sibling".to_string(),
        definition: "share of layouts in which something else used the core, by the width of a burst of additions",
        verdict,
        unit: Unit::Share,
        note: Some(format!("kernel: siblings of CPU {}: {siblings}", surroundings.cpu)),
        cpuid: None,
    }
}

pub(super) fn disturbed_rounds_row(course: &BackgroundActivity) -> EnvironmentRow {
    let verdict = match course.conditions.disturbed_rounds() {
        None => TestVerdict::new(VerdictKind::Unclear, "nothing was measured"),
        Some((share, rounds)) => share_verdict(share, rounds, format!("of {rounds} rounds; they were left out")),
    };
    EnvironmentRow {
        name: "disturbed_rounds".to_string(),
        definition: "share of rounds that something disturbed: interrupts, other tasks, the hypervisor",
        verdict,
        unit: Unit::Share,
        note: None,
        cpuid: None,
    }
}

pub(super) fn stolen_time_row(course: &BackgroundActivity) -> EnvironmentRow {
    let [first, last] = &course.counted;
    let stolen = last.stolen_share(first, course.time);
    let verdict = match (stolen.known(), stolen.why()) {
        (Some(share), _) if *share > 0.0 => {
            // The kernel counts whole ticks.
            let tick = 1.0 / (TICKS * course.time.as_secs_f64());
            verdict_within(*share, tick, "the hypervisor gave this time to others".to_string())
        }
        (Some(_), _) => TestVerdict::new(VerdictKind::None, "the kernel counted none; a hypervisor need not tell it"),
        (None, why) => TestVerdict::new(VerdictKind::Unclear, why.unwrap_or("the kernel counts none")),
    };
    EnvironmentRow {
        name: "stolen_time".to_string(),
        definition: "share of the time of the CPU that the hypervisor gave to others, as the kernel counts it",
        verdict,
        unit: Unit::Share,
        note: None,
        cpuid: None,
    }
}

pub(super) fn quota_row(surroundings: &ReportedMachine, course: &BackgroundActivity) -> EnvironmentRow {
    let [first, last] = &course.counted;
    let throttled = last.throttled_stops(first);
    let limit = surroundings.quota.known().copied().flatten();
    let verdict = match (limit, throttled.known(), throttled.why()) {
        (None, ..) if surroundings.quota.known().is_none() => {
            TestVerdict::new(VerdictKind::Unclear, surroundings.quota.why().unwrap_or("the limit can't be read"))
        }
        (None, ..) => TestVerdict::new(
            VerdictKind::None,
            "no control group limits the time of the CPU, as far as this process sees",
        ),
        (Some(_), Some(stops), _) => exact_verdict(*stops as f64, "times that the quota stopped its tasks".to_string()),
        (Some(_), None, why) => TestVerdict::new(VerdictKind::Unclear, why.unwrap_or("stops are not counted")),
    };
    EnvironmentRow {
        name: "quota".to_string(),
        definition: "times that the quota of a control group stopped its tasks",
        verdict,
        unit: Unit::Count,
        note: limit.map(|cpus| format!("kernel: a quota of {cpus:.2} CPUs")),
        cpuid: None,
    }
}
