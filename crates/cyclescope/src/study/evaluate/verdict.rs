//! Which method to use here, and what it can tell.

use super::contamination::{Contamination, Fault, Verdict as Seen};
use super::criteria::shortest;
use super::evaluation::Evaluated;
use super::method::Method;
use crate::clock;
use crate::record::Quantity;
use crate::unit::Unit;
use serde::Serialize;

/// The errors that the paper asks about.
pub const SHARES: [f64; 2] = [0.05, 0.01];

/// A method to use, and what can be expected of it.
#[derive(Debug, Clone, Serialize)]
pub struct Recommended {
    /// The method.
    pub clock: &'static str,
    /// Why this one.
    pub why: String,
    /// What its empty pair takes, in core cycles: to be subtracted.
    pub overhead: Quantity,
    /// The standard deviation of one undisturbed reading, in core cycles.
    pub reading_deviation: f64,
    /// Core cycles of the shortest code whose time one reading tells to 5 % and to 1 %, on average, as the paper has
    /// it: 20 and 100 standard deviations.
    pub shortest_once: [f64; 2],
    /// The same by many readings of code and empty pair in turn; none where time did not suffice for many.
    pub shortest_many: Option<ByMany>,
}

/// What many readings tell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ByMany {
    /// Readings of each of two programs.
    pub readings: usize,
    /// The least difference that they tell apart at 95 %, in core cycles.
    pub difference: f64,
    /// Core cycles of the shortest code of which this is 5 % and 1 %.
    pub shortest: [f64; 2],
}

/// What follows from an evaluation, kind `evaluate.verdict`.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    /// For short code: fenced on both sides, at the least overhead.
    pub short_code: Option<Recommended>,
    /// For long code: one that waits for the code's stores, too.
    pub long_code: Option<Recommended>,
    /// What no method should do and one does, or what speaks against all of them.
    pub findings: Vec<String>,
}

impl Verdict {
    /// The verdict on some methods.
    pub fn of(methods: &[Evaluated]) -> Verdict {
        let usable: Vec<(&Evaluated, &Method)> = methods.iter().filter_map(usable).collect();
        let draining: Vec<_> = usable.iter().copied().filter(|(evaluated, _)| drains(evaluated)).collect();
        let mut findings: Vec<String> = methods.iter().flat_map(broken).collect();
        if usable.is_empty() {
            findings
                .push("no method here is fenced on both sides and constant between ensembles".to_string());
        }
        let short_code = cheapest(&usable).map(|method| {
            let why = "nothing around the code gets into its readings, and no such method here costs less";
            recommend(method, why.to_string())
        });
        let long_code = match cheapest(&draining) {
            Some(method) => {
                let why = "it also waits until the code's stores are visible, which others leave out";
                Some(recommend(method, why.to_string()))
            }
            None => cheapest(&usable).map(|method| {
                let why = "as for short code; no method here waits for stores, so that code which stores seems shorter";
                recommend(method, why.to_string())
            }),
        };
        Verdict { short_code, long_code, findings }
    }
}

/// A method that promises to keep neighbours out, was not seen to break that, and is constant.
fn usable(evaluated: &Evaluated) -> Option<(&Evaluated, &Method<'static>)> {
    let method = evaluated.method.as_ref()?;
    let fenced = evaluated
        .contamination
        .iter()
        .filter(|row| row.fault != Fault::StoresNotDrained)
        .all(|row| row.promised && row.verdict.happens() != Some(true));
    (fenced && method.ergodic_trimmed() && method.overhead.is_some()).then_some((evaluated, method))
}

fn drains(evaluated: &Evaluated) -> bool {
    let mut rows = evaluated.contamination.iter();
    rows.any(|row| {
        row.fault == Fault::StoresNotDrained && row.promised && row.verdict.happens() != Some(true)
    })
}

/// The method with the least overhead. Within a step of the clock they are equals, and the one that is the default on
/// more machines wins.
fn cheapest<'a>(
    methods: &[(&'a Evaluated, &'a Method<'static>)],
) -> Option<(&'a Evaluated, &'a Method<'static>)> {
    // Of the ensembles, which were taken over seconds.
    let overhead = |method: &Method| method.trimmed.map_or(f64::INFINITY, |summary| summary.overhead);
    let step = |method: &Method| method.trimmed.map_or(0.0, |summary| summary.step_cycles);
    let least = methods.iter().map(|(_, method)| overhead(method)).fold(f64::INFINITY, f64::min);
    let equals = methods.iter().filter(|(_, method)| overhead(method) <= least + step(method));
    equals.min_by_key(|(evaluated, _)| (clock::rank(evaluated.clock), evaluated.clock.name)).copied()
}

fn recommend((evaluated, method): (&Evaluated, &Method), why: String) -> Recommended {
    let deviation = method.deviation_cycles().unwrap_or(f64::NAN);
    let short = evaluated.resolution.by_samples.first();
    let many = short.and_then(|by| by.rungs.iter().min_by(|a, b| a.interleaved.total_cmp(&b.interleaved)));
    Recommended {
        clock: evaluated.clock.name,
        why,
        overhead: method.overhead.map_or(Quantity::refused(Unit::CoreCycles), |overhead| {
            Quantity::new(overhead, Unit::CoreCycles)
        }),
        reading_deviation: deviation,
        shortest_once: SHARES.map(|share| shortest(deviation, share)),
        shortest_many: many.map(|rung| ByMany {
            readings: rung.readings,
            difference: rung.interleaved,
            shortest: SHARES.map(|share| shortest(rung.interleaved, share)),
        }),
    }
}

/// Promises that a method was seen to break.
fn broken(evaluated: &Evaluated) -> Vec<String> {
    let name = evaluated.clock.name;
    let of = |row: &Contamination| {
        let cost = row.cost.known()?;
        (row.verdict == Seen::Broken).then(|| {
            format!(
                "{name} promises to keep out \"{}\" and does not: {:.1} core cycles ({:.1} to {:.1}) beside {}",
                row.fault.text(),
                cost.value,
                cost.low,
                cost.high,
                row.neighbour
            )
        })
    };
    evaluated.contamination.iter().filter_map(of).collect()
}
