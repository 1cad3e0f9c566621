//! What the documents say about timing methods, compared with the measured contaminations.

use super::{Contamination, Fault, TOLERANCE_CYCLES, TOLERANCE_DRAIN, Verdict};
use crate::clock::{Clock, Promises, Step};
use crate::unit::Unit;
use serde::Serialize;

/// The methods whose readings the notes hold to be about the same.
const LFENCE_RDTSC: &str = "lfence-rdtsc";
const RDTSCP: &str = "rdtscp";
/// The paper's method for processors without RDTSCP.
const CR0: &str = "cpuid-rdtsc-cr0-rdtsc";

/// The paper's CR0 method for user mode, with SERIALIZE in place of the write to CR0: both serialise, and both leave
/// the second reading alone with what follows. It replaces the method in the claim about its second reading, and
/// is no timing method of its own.
pub const STAND_IN: Clock = Clock {
    name: "cpuid-rdtsc-serialize-rdtsc",
    also: &[],
    about: "stands in for the paper's alternative: SERIALIZE in place of the write to CR0",
    source: "Intel's paper, section 3.2.3; Intel SDM vol. 2, SERIALIZE",
    counts: Unit::TscTicks,
    promises: Promises {
        leading_done: true,
        body_waits: false,
        body_done: true,
        following_waits: false,
        stores_drained: true,
    },
    start: &[Step::Cpuid, Step::Rdtsc, Step::Store],
    end: &[Step::Serialize, Step::Rdtsc, Step::Store],
};

/// A claim, and what this machine says about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// What is claimed.
    pub text: &'static str,
    /// Where.
    pub source: &'static str,
    /// Whether it holds here; `None` where that can't be decided.
    pub holds: Option<bool>,
    /// The figures that say so, or why nothing does.
    pub why: String,
    /// The method that stood in for one that can't run here.
    pub stand_in: Option<&'static str>,
}

/// The documents' claims, by the rows of the methods that they speak of. `rows` finds the rows of a method by its
/// name, where it was measured, [`STAND_IN`] among them. A method that could not run has rows that say why
/// ([`super::not_run`]).
pub fn claims<'a>(rows: impl Fn(&str) -> Option<&'a [Contamination]>) -> Vec<Claim> {
    let (one, other) = (rows(LFENCE_RDTSC), rows(RDTSCP));
    vec![
        equal(one.unwrap_or_default(), other.unwrap_or_default()),
        unprotected(rows(CR0), rows(STAND_IN.name)),
    ]
}

/// The notes: `lfence; rdtsc` and `rdtscp` are roughly the same. They are where no fault costs more with one of them
/// than with the other.
fn equal(lfence_rdtsc: &[Contamination], rdtscp: &[Contamination]) -> Claim {
    let claim = |holds, why| Claim {
        text: "lfence; rdtsc is roughly equivalent to rdtscp",
        source: "Notes on using rdtsc(p): Zen 4 and Alder Lake as examples",
        holds,
        why,
        stand_in: None,
    };
    let compared: Vec<(Option<bool>, String)> =
        lfence_rdtsc.iter().zip(rdtscp).map(|(one, other)| compare(one, other)).collect();
    if compared.is_empty() {
        return claim(None, format!("{LFENCE_RDTSC} and {RDTSCP} were not both measured"));
    }
    let holds = if compared.iter().any(|(same, _)| *same == Some(false)) {
        Some(false)
    } else if compared.iter().all(|(same, _)| *same == Some(true)) {
        Some(true)
    } else {
        None
    };
    let of_interest = compared.iter().filter(|(same, _)| holds == Some(true) || *same == holds);
    let figures: Vec<&str> = of_interest.map(|(_, figures)| figures.as_str()).collect();
    claim(holds, figures.join("; "))
}

/// Whether a fault costs two methods the same, and the figures. `None` where that can't be decided.
fn compare(one: &Contamination, other: &Contamination) -> (Option<bool>, String) {
    let (Some(first), Some(second)) = (one.cost.known(), other.cost.known()) else {
        let why = one.cost.why().or(other.cost.why()).unwrap_or_default();
        return (None, format!("{}: {why}", one.fault.text()));
    };
    // The intervals are independent: each method was measured in layouts of its own.
    let margin = first.half_width().hypot(second.half_width());
    let (difference, margin, tolerance) = match (one.fault, one.size, other.size) {
        // What drains differs between layouts, and the cost with it; their ratio does not.
        (Fault::StoresNotDrained, Some(size), Some(other_size)) if one.verdict.happens() == Some(true) => {
            (first.value / size - second.value / other_size, 0.0, TOLERANCE_DRAIN)
        }
        _ => (first.value - second.value, margin, TOLERANCE_CYCLES),
    };
    let difference = difference.abs();
    let same = if difference - margin > tolerance {
        Some(false)
    } else {
        (difference + margin < 2.0 * tolerance).then_some(true)
    };
    (same, format!("{}: {:.1} and {:.1} core cycles", one.fault.text(), first.value, second.value))
}

/// The paper's CR0 method has nothing after its second reading, so code that follows can come in its way.
fn unprotected(cr0: Option<&[Contamination]>, stand_in: Option<&[Contamination]>) -> Claim {
    let following = |rows: Option<&'_ [Contamination]>| -> Option<(Option<bool>, String)> {
        let row = rows?.iter().find(|row| row.fault == Fault::FollowingInTheWay)?;
        let cost = row.cost.known()?;
        let margin = cost.half_width();
        let why =
            format!("{}: {:.1} ± {margin:.1} core cycles; {}", row.neighbour, cost.value, row.verdict.text());
        Some((row.verdict.happens().map(|happens| !happens), why))
    };
    let claim = |holds, why, stand_in| Claim {
        text: "the CR0 method needs nothing after its second reading: following code does not come in its way",
        source: "G. Paoloni, How to Benchmark Code Execution Times on Intel IA-32 and IA-64, 324264-001, section 3.2.3",
        holds,
        why,
        stand_in,
    };
    if let Some((holds, why)) = following(cr0) {
        return claim(holds, why, None);
    }
    let not_run = cr0.and_then(|rows| rows.iter().find(|row| row.verdict == Verdict::NotRun));
    let refused = not_run.and_then(|row| row.cost.why()).unwrap_or("it was not measured");
    match following(stand_in) {
        Some((holds, why)) => {
            let why = format!("not run: {refused}; SERIALIZE in place of the write to CR0: {why}");
            claim(holds, why, Some(STAND_IN.name))
        }
        None => claim(None, format!("not run: {refused}"), None),
    }
}
