//! How many events a core has on their way at once, by what a batch of them takes.
//!
//! Batches take about as long as one event while there is room for all of them. The first one without room waits until another one is over, and from
//! there on all batches take longer by a good part of an event. Before that each event may cost a little, as a place in a queue. Where it costs more than
//! a little from the first on, events follow each other at a pace that something else sets, and nobody sees how many there is room for.

use super::cost::{CostPoint, Costs, settled};
use super::record::{UarchRecord, WalkRecord};
use super::test::Test;
use super::test::batches::Batches;
use super::test::walk::Walk;
use super::verdict::{Kind, Verdict, Witness};
use crate::error::RunError;
use crate::statistics::{Interval, median};
use crate::unit::Unit;

/// Parts of one event: by which batches that have room differ at most from a line, by which all others are above it at least, and where the wait for
/// room is whole.
const INSIDE: f64 = 0.15;
const BEYOND: f64 = 0.25;
const WHOLE: f64 = 0.5;
/// The largest part of one event that all of a batch with room cost beside.
const PACE_MOST: f64 = 0.5;
/// Points of a line at least.
const POINTS: usize = 2;
/// By how much two ends may differ that are the same: a number, and a share.
const SAME: f64 = 1.0;
const SAME_SHARE: f64 = 0.05;

/// The largest number of events that have room: the least and the most that it may be.
type End = [usize; 2];

/// Why there is no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum No {
    /// Each event costs too much from the first on.
    Pace,
    /// All batches have room.
    End,
    /// The curve rises in no one place.
    Shape,
}

/// Measures batches of all numbers, and judges.
pub(super) fn batches(
    core: &mut dyn Costs,
    test: &'static Test,
    batches: &'static Batches,
) -> Result<Vec<UarchRecord>, RunError> {
    let (one, curves) = match measured(core, batches) {
        Err(RunError::Unavailable(reason)) => {
            return Ok(vec![UarchRecord::without(test, test.name.to_string(), &reason, Unit::Count)]);
        }
        measured => measured?,
    };
    let (walks, beside) = curves.split_at(batches.walks.len());
    let ends: Vec<_> = walks.iter().map(|(walk, points)| (walk.name, end(points, one))).collect();
    let witness = beside.first().map(|(walk, points)| witness(walk, ends[0].1, batches, end(points, one)));
    let verdict = judged(&ends, witness.as_ref(), batches);
    let mut record = UarchRecord::new(test, test.name.to_string(), verdict, Unit::Count);
    record.witnesses.extend(witness);
    let walked = curves.into_iter();
    record.walks =
        walked.map(|(walk, curve)| WalkRecord { name: walk.name, levels: Vec::new(), curve }).collect();
    Ok(vec![record])
}

/// What one event takes, and the curves of all programs, that of the witness last.
type Measured = (f64, Vec<(&'static Walk, Vec<CostPoint>)>);

fn measured(core: &mut dyn Costs, batches: &'static Batches) -> Result<Measured, RunError> {
    let one = settled(core, &[&batches.one], 1)?[0].map_or(f64::NAN, |point| point.cost);
    let walks: Vec<&Walk> = batches.walks.iter().chain([&batches.beside.walk]).collect();
    let mut curves: Vec<_> = walks.iter().map(|walk| (*walk, Vec::new())).collect();
    for n in batches.counts {
        for ((_, curve), point) in curves.iter_mut().zip(settled(core, &walks, *n)?) {
            curve.extend(point);
        }
    }
    Ok((one, curves))
}

/// The number of events that have room in a curve, where one takes so long.
fn end(points: &[CostPoint], one: f64) -> Result<End, No> {
    // A batch that was disturbed is one alone.
    let costs: Vec<f64> = (0..points.len())
        .map(|at| match at {
            0 => points[0].cost,
            at if at + 1 == points.len() => points[at].cost,
            at => median(&mut [points[at - 1].cost, points[at].cost, points[at + 1].cost]),
        })
        .collect();
    let n = |at: usize| points[at].n as f64;
    let known = one > 0.0 && points.len() > 2 * POINTS;
    if !known {
        return Err(No::Shape);
    }
    let mut paced = false;
    for last in POINTS - 1..points.len() {
        let line = Line::of((0..=last).map(|at| (n(at), costs[at])).collect());
        let above = |at: usize| (costs[at] - line.at(n(at))) / one;
        let inside = (0..=last).all(|at| above(at).abs() <= INSIDE);
        let pace = line.slope * n(last) > PACE_MOST * one;
        paced |= inside && pace;
        if last + 1 == points.len() {
            return Err(if inside && !pace { No::End } else if paced { No::Pace } else { No::Shape });
        }
        if inside && !pace && (last + 1..points.len()).all(|at| above(at) >= BEYOND) {
            let part = (last + 1..points.len()).take_while(|at| above(*at) < WHOLE).last().unwrap_or(last);
            // All up to the next number that was tried may have room.
            let next = points.get(part + 1).map_or(points[part].n, |next| next.n - 1);
            return Ok([points[last].n, next.max(points[part].n)]);
        }
    }
    Err(No::Shape)
}

/// A line through points: the median slope, and the median height.
struct Line {
    slope: f64,
    zero: f64,
}

impl Line {
    fn of(points: Vec<(f64, f64)>) -> Line {
        let pairs = points.iter().enumerate().flat_map(|(place, one)| points[..place].iter().map(move |other| (one, other)));
        let slope = median(&mut pairs.map(|(one, other)| (one.1 - other.1) / (one.0 - other.0)).collect::<Vec<_>>());
        // What comes earlier costs no more.
        let slope = slope.max(0.0);
        Line { slope, zero: median(&mut points.iter().map(|(n, cost)| cost - slope * n).collect::<Vec<_>>()) }
    }

    fn at(&self, n: f64) -> f64 {
        self.zero + self.slope * n
    }
}

fn same(one: End, other: End) -> bool {
    let slack = |end: usize| SAME.max(SAME_SHARE * end as f64);
    one[0] as f64 <= other[1] as f64 + slack(other[1]) && other[0] as f64 <= one[1] as f64 + slack(one[1])
}

/// Whether events that were there beforehand move the end by their number; none where there is no end, or they are too many of it.
fn witness(walk: &Walk, first: Result<End, No>, batches: &Batches, beside: Result<End, No>) -> Witness {
    let occupied = batches.beside.occupied;
    let name = walk.name;
    match (first, beside) {
        (Ok(first), Ok(end)) => {
            let moved = end.map(|n| n + occupied);
            let text = format!("{} and {occupied} are {}", told(end), told(moved));
            Witness { name, holds: same(moved, first), text }
        }
        (_, Ok(end)) => Witness { name, holds: true, text: format!("{} and {occupied}", told(end)) },
        (_, Err(no)) => Witness { name, holds: false, text: no.text().to_string() },
    }
}

fn judged(ends: &[(&str, Result<End, No>)], witness: Option<&Witness>, batches: &Batches) -> Verdict {
    let each = ends.iter().map(|(name, end)| match end {
        Ok(end) => format!("{name} {}", told(*end)),
        Err(no) => format!("{name}: {}", no.text()),
    });
    let why = each.collect::<Vec<_>>().join(", ");
    let [(_, first), (_, second), ..] = ends else { return Verdict::new(Kind::Unclear, why) };
    match (first, second) {
        (Ok(one), Ok(other)) if !same(*one, *other) => Verdict::new(Kind::Unclear, format!("programs differ: {why}")),
        (Ok(one), Ok(other)) => match witness.filter(|witness| !witness.holds) {
            Some(Witness { name, text, .. }) => Verdict::new(Kind::Unclear, format!("{name}: {text}; {why}")),
            None => {
                let number = |n: usize| (n + batches.more) as f64;
                let [low, high] = [one[0].min(other[0]), one[1].max(other[1])].map(number);
                let size = Some(Interval { value: number(one[0].max(other[0])), low, high });
                Verdict { size, ..Verdict::new(Kind::Found, format!("{why} agree")) }
            }
        },
        (Err(No::Pace), Err(No::Pace)) => {
            Verdict { limited_by: Some(batches.pace), ..Verdict::new(Kind::Limited, why) }
        }
        (Err(No::End), Err(No::End)) => Verdict::new(Kind::None, why),
        _ => Verdict::new(Kind::Unclear, why),
    }
}

impl No {
    fn text(self) -> &'static str {
        match self {
            No::Pace => "each costs more from the first on",
            No::End => "all batches take as long as one event",
            No::Shape => "the curve rises in no one place",
        }
    }
}

fn told([low, high]: End) -> String {
    if low == high { format!("{low}") } else { format!("{low} to {high}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Costs of batches of 1 to 24 events, of which one takes 100.
    fn curve(cost: impl Fn(usize) -> f64) -> Vec<CostPoint> {
        (1..=24).map(|n| CostPoint { n, cost: cost(n), low: cost(n), high: cost(n) }).collect()
    }

    fn found(cost: impl Fn(usize) -> f64) -> Result<End, No> {
        end(&curve(cost), 100.0)
    }

    #[test]
    fn batches_take_as_long_as_one_while_there_is_room() {
        let step = |n: usize| if n <= 10 { 100.0 } else { 180.0 + 9.0 * n as f64 };
        assert_eq!(found(step), Ok([10, 10]));
        // Each costs a little, and the first one without room not all.
        let soft = |n: usize| 30.0 + 2.0 * n as f64 + [0.0, 35.0, 90.0][n.saturating_sub(17).min(2)];
        assert_eq!(found(soft), Ok([17, 18]));
        let burst = |n: usize| step(n) * if n == 5 || n == 20 { 3.0 } else { 1.0 };
        assert_eq!(found(burst), Ok([10, 10]));
        // Numbers that were not tried may have room.
        let few: Vec<CostPoint> = curve(step).into_iter().filter(|point| point.n % 4 == 0).collect();
        assert_eq!(end(&few, 100.0), Ok([8, 11]));
    }

    #[test]
    fn what_rises_from_the_first_on_has_no_end() {
        assert_eq!(found(|n| 100.0 + 20.0 * n as f64), Err(No::Pace));
        // As where they follow each other at a pace from some number on.
        assert_eq!(found(|n| 100f64.max(8.0 * n as f64)), Err(No::Shape));
        assert_eq!(found(|_| 100.0), Err(No::End));
        assert_eq!(end(&curve(|n| if n <= 10 { 100.0 } else { 200.0 }), f64::NAN), Err(No::Shape));
        // A batch that is as fast again as one with room leaves no end.
        assert!(found(|n| if (11..20).contains(&n) { 200.0 } else { 100.0 }).is_err());
    }

    const NOTHING: Walk = Walk { name: "nothing", program: |_| panic!("it is simulated"), without: None };
    const PLANTED: Batches = Batches {
        walks: &[],
        one: NOTHING,
        beside: super::super::test::walk::Beside { walk: NOTHING, occupied: 4 },
        more: 1,
        counts: &[],
        takes: &[],
        pace: "load_rate",
    };

    fn verdict(first: Result<End, No>, second: Result<End, No>, beside: Result<End, No>) -> Verdict {
        let witness = witness(&NOTHING, first, &PLANTED, beside);
        judged(&[("one", first), ("other", second)], Some(&witness), &PLANTED)
    }

    #[test]
    fn a_number_needs_two_programs_and_an_end_that_others_move() {
        let size = |verdict: Verdict| verdict.size.map(|size| [size.low, size.value, size.high]);
        let found = verdict(Ok([19, 19]), Ok([18, 20]), Ok([15, 15]));
        assert_eq!((found.kind, size(found)), (Kind::Found, Some([19.0, 20.0, 21.0])));
        for (first, second, beside) in [
            (Ok([19, 19]), Ok([24, 24]), Ok([15, 15])),
            (Ok([19, 19]), Ok([19, 19]), Ok([19, 19])),
            (Ok([19, 19]), Ok([19, 19]), Err(No::End)),
            (Ok([19, 19]), Err(No::Pace), Ok([15, 15])),
        ] {
            let unclear = verdict(first, second, beside);
            assert_eq!((unclear.kind, size(unclear)), (Kind::Unclear, None), "{first:?} {second:?} {beside:?}");
        }
        let limited = verdict(Err(No::Pace), Err(No::Pace), Err(No::Pace));
        assert_eq!((limited.kind, limited.limited_by), (Kind::Limited, Some("load_rate")));
        assert_eq!(verdict(Err(No::End), Err(No::End), Err(No::End)).kind, Kind::None);
    }
}
