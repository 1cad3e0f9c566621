//! How many events a core can have in flight, from the cost of batches of events.
//!
//! A batch takes about as long as one event while all its events fit. The first event that does not
//! fit waits for another one to end. From there on, batches take longer by a large part of an
//! event. Smaller batches may cost a little per event, for a place in a queue. If each event costs
//! more from the start, another limit sets the pace, and the batches show no room.

use super::cost::{CostPoint, MeasureCosts, measure_median_costs};
use super::record::{UarchRecord, WalkRecord};
use super::spec::{BatchesSpec, ProgramFamily, TestSpec};
use super::verdict::{TestVerdict, VerdictKind, WitnessResult};
use cyclescope_core::error::RunError;
use cyclescope_core::statistics::{Interval, median};
use cyclescope_core::unit::Unit;

/// How far batches that fit may differ from a line, in parts of one event.
const FIT_TOLERANCE: f64 = 0.15;
/// How far larger batches exceed that line at least, in parts of one event.
const MIN_RISE: f64 = 0.25;
/// The largest number of sizes at which only some of the batches fit.
const MAX_PARTIAL: usize = 1;
/// The largest pace of a batch that fits, in parts of an event.
const PACE_MOST: f64 = 0.5;
/// How often everything is measured at most.
const MAX_MEASUREMENTS: usize = 3;
/// The least number of points of a line.
const MIN_LINE_POINTS: usize = 2;
/// Number of events by which two equal ends may differ.
const SAME: f64 = 1.0;
/// Share by which two equal ends may differ.
const SAME_SHARE: f64 = 0.05;

/// The largest batch that fits in all of its runs, and the largest that fits in some of them.
type BatchEnd = [usize; 2];

/// Why a curve has no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NoLimit {
    /// Each event costs too much from the start.
    PaceLimited,
    /// All batches fit.
    AllFit,
    /// The curve has no single rise.
    NoSingleRise,
}

/// Measures batches of all sizes and judges the curves.
pub(super) fn run_batches(
    core: &mut dyn MeasureCosts,
    test: &'static TestSpec,
    batches: &'static BatchesSpec,
) -> Result<Vec<UarchRecord>, RunError> {
    let event_cost = match measure_median_costs(core, &[batches.single_event], 1) {
        Err(RunError::Unavailable(reason)) => {
            return Ok(vec![UarchRecord::unavailable(test, test.name.to_string(), &reason, Unit::Count)]);
        }
        points => points?[0].map_or(f64::NAN, |point| point.cost),
    };
    let families = batches.programs.iter().chain([&batches.witness.family]);
    let mut all: Vec<MeasuredFamily> =
        families.map(|family| (family, vec![Vec::new(); batches.counts.len()])).collect();
    let mut times = 0;
    loop {
        measure_all(core, batches, &mut all)?;
        times += 1;
        let curves: Vec<_> = all.iter().map(|(family, counts)| (*family, median_curve(counts))).collect();
        let ends: Vec<_> = curves
            .iter()
            .map(|(family, points)| (family.name, find_end(points, event_cost, batches.last_event_slack)))
            .collect();
        let (witness_end, ends) = ends.split_last().expect("the witness is one of them");
        let witness = judge_witness(witness_end.0, ends[0].1, batches, witness_end.1);
        let verdict = judge_batches(ends, Some(&witness), batches);
        // Disturbed batches are measured again.
        if verdict.kind == VerdictKind::Unclear && times < MAX_MEASUREMENTS {
            continue;
        }
        let mut record = UarchRecord::new(test, test.name.to_string(), verdict, Unit::Count);
        record.witnesses.push(witness);
        let programs = curves.into_iter();
        record.walks = programs
            .map(|(family, curve)| WalkRecord { name: family.name.into(), levels: Vec::new(), curve })
            .collect();
        return Ok(vec![record]);
    }
}

/// A program and its measurements at each size.
type MeasuredFamily = (&'static ProgramFamily, Vec<Vec<CostPoint>>);

/// Measures all programs once more at each size, in turns.
fn measure_all(core: &mut dyn MeasureCosts, batches: &BatchesSpec, all: &mut [MeasuredFamily]) -> Result<(), RunError> {
    for (place, n) in batches.counts.iter().enumerate() {
        for (family, counts) in all.iter_mut() {
            counts[place].extend(core.measure_cost(family, *n)?);
        }
    }
    Ok(())
}

/// The median at each size. A difference of two programs errs in both directions.
fn median_curve(counts: &[Vec<CostPoint>]) -> Vec<CostPoint> {
    let median_point = |points: &Vec<CostPoint>| {
        let mut points = points.clone();
        points.sort_by(|median_point, other| median_point.cost.total_cmp(&other.cost));
        points.get(points.len().saturating_sub(1) / 2).copied()
    };
    counts.iter().filter_map(median_point).collect()
}

/// The number of events that fit, if one event costs `event_cost`. The last batch may take longer
/// by `part` of that.
fn find_end(points: &[CostPoint], event_cost: f64, part: f64) -> Result<BatchEnd, NoLimit> {
    // The neighbours of a disturbed batch are undisturbed.
    let costs: Vec<f64> = (0..points.len())
        .map(|at| match at {
            0 => points[0].cost,
            at if at + 1 == points.len() => points[at].cost,
            at => median(&mut [points[at - 1].cost, points[at].cost, points[at + 1].cost]),
        })
        .collect();
    let n = |at: usize| points[at].n as f64;
    let known = event_cost > 0.0 && points.len() > 2 * MIN_LINE_POINTS;
    if !known {
        return Err(NoLimit::NoSingleRise);
    }
    // The longest series of batches that fit.
    for last in (MIN_LINE_POINTS - 1..points.len()).rev() {
        let line = FittedLine::from_points((0..=last).map(|at| (n(at), costs[at])).collect());
        let above = |at: usize| (costs[at] - line.value_at(n(at))) / event_cost;
        let raw = |at: usize| (points[at].cost - line.value_at(n(at))) / event_cost;
        // A single batch without room between two that seem to fit is real: another batch may do
        // less work for a reason of its own.
        let inside = (0..=last).all(|at| above(at).abs() <= FIT_TOLERANCE) && raw(last) <= FIT_TOLERANCE;
        let pace = line.slope * n(last) > PACE_MOST * event_cost;
        match (inside, pace) {
            (true, _) if last + 1 == points.len() => {
                return Err(if pace { NoLimit::PaceLimited } else { NoLimit::AllFit });
            }
            (true, false) => {}
            _ => continue,
        }
        let Some(first) = (last + 1..points.len()).find(|at| above(*at) >= MIN_RISE) else { continue };
        let step = first <= last + 1 + MAX_PARTIAL && above(first) - above(last) >= MIN_RISE;
        if step && (first..points.len()).all(|at| above(at) >= MIN_RISE) {
            // The knee is the last size that fits in part. All sizes up to the next measured one
            // may fit.
            let partly = (last..points.len()).take_while(|at| raw(*at) < part).last().unwrap_or(last);
            let next = points.get(partly + 1).map_or(points[partly].n, |next| next.n - 1);
            return Ok([points[last].n, next.max(points[partly].n)]);
        }
    }
    Err(NoLimit::NoSingleRise)
}

/// A line through points: the median slope and the median height.
struct FittedLine {
    slope: f64,
    zero: f64,
}

impl FittedLine {
    fn from_points(points: Vec<(f64, f64)>) -> FittedLine {
        let pairs =
            points.iter().enumerate().flat_map(|(place, one)| points[..place].iter().map(move |other| (one, other)));
        let slope = median(&mut pairs.map(|(one, other)| (one.1 - other.1) / (one.0 - other.0)).collect::<Vec<_>>());
        // Smaller batches cost no more.
        let slope = slope.max(0.0);
        FittedLine { slope, zero: median(&mut points.iter().map(|(n, cost)| cost - slope * n).collect::<Vec<_>>()) }
    }

    fn value_at(&self, n: f64) -> f64 {
        self.zero + self.slope * n
    }
}

fn ends_agree(one: BatchEnd, other: BatchEnd) -> bool {
    let slack = |end: usize| SAME.max(SAME_SHARE * end as f64);
    one[0] as f64 <= other[1] as f64 + slack(other[1]) && other[0] as f64 <= one[1] as f64 + slack(one[1])
}

/// Whether events that are already in flight move the end by their number.
fn judge_witness(
    name: &'static str,
    first: Result<BatchEnd, NoLimit>,
    batches: &BatchesSpec,
    witness_end: Result<BatchEnd, NoLimit>,
) -> WitnessResult {
    let occupied = batches.witness.occupied;
    match (first, witness_end) {
        (Ok(first), Ok(end)) => {
            let moved = end.map(|n| n + occupied);
            let text = format!("{} and {occupied} are {}", describe_end(end), describe_end(moved));
            WitnessResult { name: name.into(), holds: ends_agree(moved, first), text }
        }
        (_, Ok(end)) => {
            WitnessResult { name: name.into(), holds: true, text: format!("{} and {occupied}", describe_end(end)) }
        }
        (_, Err(no)) => WitnessResult { name: name.into(), holds: false, text: no.describe().to_string() },
    }
}

fn judge_batches(
    ends: &[(&str, Result<BatchEnd, NoLimit>)],
    witness: Option<&WitnessResult>,
    batches: &BatchesSpec,
) -> TestVerdict {
    let each = ends.iter().map(|(name, end)| match end {
        Ok(end) => format!("{name} {}", describe_end(*end)),
        Err(no) => format!("{name}: {}", no.describe()),
    });
    let why = each.collect::<Vec<_>>().join(", ");
    let [(_, first), (_, second), ..] = ends else { return TestVerdict::new(VerdictKind::Unclear, why) };
    match (first, second) {
        (Ok(one), Ok(other)) if !ends_agree(*one, *other) => {
            TestVerdict::new(VerdictKind::Unclear, format!("programs differ: {why}"))
        }
        (Ok(one), Ok(other)) => match witness.filter(|witness| !witness.holds) {
            Some(WitnessResult { name, text, .. }) => {
                TestVerdict::new(VerdictKind::Unclear, format!("{name}: {text}; {why}"))
            }
            None => {
                let number = |n: usize| (n + batches.uncounted_events) as f64;
                let [low, high] = [one[0].min(other[0]), one[1].max(other[1])].map(number);
                // Another limit may end one program earlier.
                let size = Some(Interval { value: number(one[1].max(other[1])), low, high });
                TestVerdict { size, ..TestVerdict::new(VerdictKind::Found, format!("{why} agree")) }
            }
        },
        (Err(NoLimit::PaceLimited), Err(NoLimit::PaceLimited)) => {
            TestVerdict { limited_by: Some(batches.pacing_test), ..TestVerdict::new(VerdictKind::Limited, why) }
        }
        (Err(NoLimit::AllFit), Err(NoLimit::AllFit)) => TestVerdict::new(VerdictKind::None, why),
        _ => TestVerdict::new(VerdictKind::Unclear, why),
    }
}

impl NoLimit {
    fn describe(self) -> &'static str {
        match self {
            NoLimit::PaceLimited => "each costs more from the first on",
            NoLimit::AllFit => "all batches take as long as one event",
            NoLimit::NoSingleRise => "the curve rises in no one place",
        }
    }
}

fn describe_end([low, high]: BatchEnd) -> String {
    if low == high { format!("{low}") } else { format!("{low} to {high}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Experiment;
    use crate::test_list::TESTS;

    /// Costs of batches of 1 to 24 events. One event takes 100.
    fn curve(cost: impl Fn(usize) -> f64) -> Vec<CostPoint> {
        (1..=24).map(|n| CostPoint { n, cost: cost(n), low: cost(n), high: cost(n) }).collect()
    }

    fn found(cost: impl Fn(usize) -> f64) -> Result<BatchEnd, NoLimit> {
        find_end(&curve(cost), 100.0, 0.35)
    }

    #[test]
    fn batches_that_fit_take_as_long_as_one_event() {
        let step = |n: usize| if n <= 10 { 100.0 } else { 180.0 + 9.0 * n as f64 };
        assert_eq!(found(step), Ok([10, 10]));
        // Each event costs a little, and the first one without room adds only a part.
        let soft = |part: f64| move |n: usize| 30.0 + 2.0 * n as f64 + [0.0, part, 90.0][n.saturating_sub(17).min(2)];
        let softly = [5.0, 20.0, 30.0, 60.0].map(|part| found(soft(part)));
        assert_eq!(softly, [Ok([18, 18]), Ok([17, 18]), Ok([17, 18]), Ok([17, 17])]);
        let burst = |n: usize| step(n) * if n == 5 || n == 20 { 3.0 } else { 1.0 };
        assert_eq!(found(burst), Ok([10, 10]));
        // One size without room does less work for another reason.
        let foreseen = |n: usize| if n <= 6 || n == 8 { 100.0 } else { 150.0 + 5.0 * n as f64 };
        assert_eq!(found(foreseen), Ok([6, 6]));
        // Unmeasured sizes may fit.
        let few: Vec<CostPoint> = curve(step).into_iter().filter(|point| point.n % 4 == 0).collect();
        assert_eq!(find_end(&few, 100.0, 0.35), Ok([8, 11]));
    }

    #[test]
    fn a_curve_that_rises_from_the_start_has_no_end() {
        assert_eq!(found(|n| 100.0 + 20.0 * n as f64), Err(NoLimit::PaceLimited));
        // Events that follow each other at a pace, visible from some size on.
        assert_eq!(found(|n| 100f64.max(8.0 * n as f64)), Err(NoLimit::NoSingleRise));
        assert_eq!(found(|_| 100.0), Err(NoLimit::AllFit));
        assert_eq!(
            find_end(&curve(|n| if n <= 10 { 100.0 } else { 200.0 }), f64::NAN, 0.35),
            Err(NoLimit::NoSingleRise)
        );
        // If a larger batch is as fast as one that fits, there is no end.
        assert!(found(|n| if (11..20).contains(&n) { 200.0 } else { 100.0 }).is_err());
    }

    const NOTHING: ProgramFamily = ProgramFamily::new("nothing", |_| panic!("it is simulated"));
    const SIMULATED: BatchesSpec = BatchesSpec {
        programs: &[],
        single_event: &NOTHING,
        witness: &crate::spec::WitnessProgram { family: NOTHING, occupied: 4 },
        uncounted_events: 1,
        last_event_slack: 0.35,
        counts: &[],
        also_occupies: &[],
        pacing_test: "load_rate",
    };

    fn verdict(
        first: Result<BatchEnd, NoLimit>,
        second: Result<BatchEnd, NoLimit>,
        witness_end: Result<BatchEnd, NoLimit>,
    ) -> TestVerdict {
        let witness = judge_witness("beside", first, &SIMULATED, witness_end);
        judge_batches(&[("one", first), ("other", second)], Some(&witness), &SIMULATED)
    }

    #[test]
    fn a_number_needs_two_programs_and_a_witness() {
        let size = |verdict: TestVerdict| verdict.size.map(|size| [size.low, size.value, size.high]);
        let found = verdict(Ok([19, 19]), Ok([18, 20]), Ok([15, 15]));
        assert_eq!((found.kind, size(found)), (VerdictKind::Found, Some([19.0, 21.0, 21.0])));
        for (first, second, witness_end) in [
            (Ok([19, 19]), Ok([24, 24]), Ok([15, 15])),
            (Ok([19, 19]), Ok([19, 19]), Ok([19, 19])),
            (Ok([19, 19]), Ok([19, 19]), Err(NoLimit::AllFit)),
            (Ok([19, 19]), Err(NoLimit::PaceLimited), Ok([15, 15])),
        ] {
            let unclear = verdict(first, second, witness_end);
            assert_eq!(
                (unclear.kind, size(unclear)),
                (VerdictKind::Unclear, None),
                "{first:?} {second:?} {witness_end:?}"
            );
        }
        let limited = verdict(Err(NoLimit::PaceLimited), Err(NoLimit::PaceLimited), Err(NoLimit::PaceLimited));
        assert_eq!((limited.kind, limited.limited_by), (VerdictKind::Limited, Some("load_rate")));
        assert_eq!(verdict(Err(NoLimit::AllFit), Err(NoLimit::AllFit), Err(NoLimit::AllFit)).kind, VerdictKind::None);
    }
    #[test]
    fn a_base_line_needs_two_points_and_points_behind_them() {
        assert_eq!(found(|n| if n == 1 { 100.0 } else { 180.0 + 9.0 * n as f64 }), Err(NoLimit::NoSingleRise));
        assert_eq!(find_end(&curve(|_| 100.0)[..2 * MIN_LINE_POINTS], 100.0, 0.35), Err(NoLimit::NoSingleRise));
        assert_eq!(find_end(&curve(|_| 100.0)[..=2 * MIN_LINE_POINTS], 100.0, 0.35), Err(NoLimit::AllFit));
        assert_eq!(find_end(&curve(|_| 100.0), -5.0, 0.35), Err(NoLimit::NoSingleRise), "one takes no time at all");
        // A falling start, as during a warm-up, is no base line.
        let falls = |n: usize| [160.0, 130.0, 100.0].get(n - 1).copied().unwrap_or(70.0);
        assert_eq!(found(falls), Err(NoLimit::NoSingleRise));
    }

    #[test]
    fn costs_behind_an_end_rise_at_once() {
        // A partial rise, then the rest: two sizes fit in part.
        let late = |n: usize| 100.0 + [0.0, 20.0, 20.0, 20.0, 90.0][n.saturating_sub(9).min(4)];
        assert_eq!(found(late), Err(NoLimit::NoSingleRise));
        // Each costs a little more than the one before, without a step.
        let slowly = |n: usize| 100.0 + [0.0, 14.0, 28.0, 42.0, 56.0][n.saturating_sub(9).min(4)];
        assert_eq!(found(slowly), Ok([9, 11]));
    }

    #[test]
    fn equal_ends_differ_by_one_or_a_twentieth_at_most() {
        let are = |one: usize, other: usize| ends_agree([one; 2], [other; 2]);
        assert_eq!([are(10, 11), are(10, 12), are(60, 63), are(60, 64)], [true, false, true, false]);
    }

    #[test]
    fn counts_ascend_in_small_steps_and_named_tests_exist() {
        for test in TESTS {
            let Experiment::Batches(batches) = &test.experiment else { continue };
            assert_eq!(batches.counts[0], 1);
            let near = |two: &[usize]| two[0] < two[1] && two[1] - two[0] <= (two[0] / 7).max(1);
            assert!(batches.counts.windows(2).all(near), "{}", test.name);
            let names = batches.also_occupies.iter().map(|(name, _)| *name).chain([batches.pacing_test]);
            assert!(names.into_iter().all(|name| TESTS.iter().any(|other| other.name == name)));
            // The part exceeds the spread of batches that fit, and is less than the least rise of
            // all others.
            assert!(
                FIT_TOLERANCE <= batches.last_event_slack && batches.last_event_slack < 1.0 - MIN_RISE,
                "{}",
                test.name
            );
        }
    }
}
