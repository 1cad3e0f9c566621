//! What other work did while tests ran: to the core, to rounds, and to the time of the CPU.

use super::row::{Row, found, percent};
use crate::conditions::{Conditions, Counted, TICKS};
use crate::surroundings::Surroundings;
use crate::verdict::{Kind, Verdict};
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use std::time::Duration;

/// The share of layouts beside a busy sibling below which that is noise.
const SHARED_LEAST: f64 = 0.02;

/// Standard errors of a 95 % interval.
const STANDARD_ERRORS: f64 = 1.96;

/// What other work did.
pub(crate) struct Course<'a> {
    /// What readings tell.
    pub conditions: &'a Conditions,
    /// Additions a cycle of a core of this design that is not shared, where data contain it.
    pub width: Option<f64>,
    /// What the kernel had counted at first and at last.
    pub counted: [Counted; 2],
    /// The time between.
    pub time: Duration,
}

/// A share of so many, with the 95 % interval that chance alone gives it.
fn found_share(share: f64, number: usize, why: String) -> Verdict {
    let error = STANDARD_ERRORS * (share * (1.0 - share) / number as f64).sqrt();
    // Of a share of which no case was seen among n, the upper end of the interval is 3/n (95 %, by the Poisson distribution).
    between(share, error.max(if share == 0.0 { 3.0 / number as f64 } else { 0.0 }), why)
}

/// A share that is known within an error.
fn between(share: f64, error: f64, why: String) -> Verdict {
    let size = Some(Interval { value: share, low: (share - error).max(0.0), high: (share + error).min(1.0) });
    Verdict { size, ..Verdict::new(Kind::Found, why) }
}

pub(super) fn sibling(surroundings: &Surroundings, course: &Course) -> Row {
    let verdict = match course.conditions.shared(course.width) {
        None => Verdict::new(Kind::Unclear, "nothing was measured"),
        Some((share, layouts)) if share < SHARED_LEAST => {
            let limit = match course.width {
                Some(_) => "",
                None => "; one that is busy all the time is not seen, since the core's design is not known",
            };
            let why = format!("in {} of {layouts} layouts the core was narrower{limit}", percent(share));
            Verdict::new(Kind::None, why)
        }
        Some((share, layouts)) => {
            let why = format!("share of {layouts} layouts in which the core was narrower than at its best");
            found_share(share, layouts, why)
        }
    };
    let siblings = surroundings.siblings.known().map_or("unknown", String::as_str);
    Row {
        name: "busy_sibling".to_string(),
        definition: "share of layouts in which something else used the core, by the width of a burst of additions",
        verdict,
        unit: Unit::Share,
        told: Some(format!("kernel: siblings of CPU {}: {siblings}", surroundings.cpu)),
        cpuid: None,
    }
}

pub(super) fn disturbed(course: &Course) -> Row {
    let verdict = match course.conditions.disturbed() {
        None => Verdict::new(Kind::Unclear, "nothing was measured"),
        Some((share, rounds)) => {
            found_share(share, rounds, format!("of {rounds} rounds; they were left out"))
        }
    };
    Row {
        name: "disturbed_rounds".to_string(),
        definition: "share of rounds that something disturbed: interrupts, other tasks, the hypervisor",
        verdict,
        unit: Unit::Share,
        told: None,
        cpuid: None,
    }
}

pub(super) fn stolen(course: &Course) -> Row {
    let [first, last] = &course.counted;
    let stolen = last.stolen(first, course.time);
    let verdict = match (stolen.known(), stolen.why()) {
        (Some(share), _) if *share > 0.0 => {
            // It is counted in whole ticks.
            let tick = 1.0 / (TICKS * course.time.as_secs_f64());
            between(*share, tick, "the hypervisor gave this time to others".to_string())
        }
        (Some(_), _) => Verdict::new(Kind::None, "the kernel counted none; a hypervisor need not tell it"),
        (None, why) => Verdict::new(Kind::Unclear, why.unwrap_or("the kernel counts none")),
    };
    Row {
        name: "stolen_time".to_string(),
        definition: "share of the time of the CPU that the hypervisor gave to others, as the kernel counts it",
        verdict,
        unit: Unit::Share,
        told: None,
        cpuid: None,
    }
}

pub(super) fn quota(surroundings: &Surroundings, course: &Course) -> Row {
    let [first, last] = &course.counted;
    let throttled = last.throttled(first);
    let limit = surroundings.quota.known().copied().flatten();
    let verdict = match (limit, throttled.known(), throttled.why()) {
        (None, ..) if surroundings.quota.known().is_none() => {
            Verdict::new(Kind::Unclear, surroundings.quota.why().unwrap_or("the limit can't be read"))
        }
        (None, ..) => Verdict::new(
            Kind::None,
            "no control group limits the time of the CPU, as far as this process sees",
        ),
        (Some(_), Some(stops), _) => {
            found(*stops as f64, "times that the quota stopped its tasks".to_string())
        }
        (Some(_), None, why) => Verdict::new(Kind::Unclear, why.unwrap_or("stops are not counted")),
    };
    Row {
        name: "quota".to_string(),
        definition: "times that the quota of a control group stopped its tasks",
        verdict,
        unit: Unit::Count,
        told: limit.map(|cpus| format!("kernel: a quota of {cpus:.2} CPUs")),
        cpuid: None,
    }
}
