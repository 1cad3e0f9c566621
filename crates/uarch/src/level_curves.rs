//! Runs a test of levels: measures a curve for each program and judges each level.
//!
//! Counts are measured in random order: a burst of the sibling then affects counts that are far
//! apart. Counts around the ends of levels are measured again until no end moves. The lowest cost
//! of each count is kept.

use super::cost::{CostPoint, MeasureCosts};
use super::level_records::{CurveExtent, counts_within_levels, describe_end, describe_ends, judge_levels, size_key};
use super::numbering::{ends_overlap, is_agreed, number_levels};
use super::plateau::{
    CurveLevel, LevelCriteria, LevelEnd, counts_to_refine, find_levels, reaches_next_level, still_rises,
};
use super::record::{UarchRecord, WalkRecord};
use super::spec::{LevelsSpec, ProgramFamily, TestSpec, TestedPart, WitnessProgram};
use super::verdict::{VerdictKind, WitnessResult};
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_measure::sibling::SiblingPolicy;
use std::mem::replace;

/// Ratio of neighbouring counts in the first pass.
const COUNT_FACTOR: f64 = 1.26;
/// The largest number of counts added to a curve.
const MAX_EXTRA_COUNTS: usize = 60;
/// A count is measured again if all its layouts were disturbed.
const POINT_RETRY_POLICY: SiblingPolicy = SiblingPolicy { retries: 2, ..SiblingPolicy::USUAL };
/// How often the counts around ends are measured again at most. One repetition is not enough: with
/// a sibling busy for a quarter of the time, an end was a sixth too early in one of five programs
/// (Genoa, family 25, model 17).
const MAX_END_RECHECKS: usize = 3;
/// Range around a level's end in which counts are measured again, as a factor.
const RECHECK_FACTOR: f64 = 1.1;

/// Measures the test up to a count, and judges it.
pub(super) fn run_levels(
    core: &mut dyn MeasureCosts,
    test: &'static TestSpec,
    spec: &'static LevelsSpec,
    most: usize,
    random: &mut Random,
) -> Result<Vec<UarchRecord>, RunError> {
    let mut blind = Vec::new();
    let mut curves = match measure_curves(core, spec.programs, spec, most, random) {
        Err(RunError::Unavailable(reason)) => {
            return Ok(vec![UarchRecord::unavailable(test, size_key(test, spec, 0), &reason, spec.unit)]);
        }
        curves => curves?,
    };
    if !spec.fallback_programs.is_empty() && describe_ends(&find_family_levels(&curves, spec)).is_empty() {
        blind = replace(&mut curves, self::measure_curves(core, spec.fallback_programs, spec, most, random)?);
    }
    let found = find_family_levels(&curves, spec);
    let (sizes, _) = number_levels(spec, &found);
    let first = sizes.first().filter(|group| is_agreed(group, &found)).map(|group| group[0].2);
    let witness = match (&spec.witness, first) {
        // A witness that occupies only a small part of a level or its edges can't move its end.
        (Some(program), Some(first)) if program.can_move_end(first.low, first.high) => {
            Some(measure_witness(core, spec, program, first, most, random)?)
        }
        _ => None,
    };
    // The largest count that all curves have.
    let measured = curves.iter().map(|(_, points)| points.last().map_or(0, |point| point.n)).min();
    let rising = curves.iter().any(|(_, points)| still_rises(points, level_criteria(spec)));
    let another =
        curves[..curves.len().min(2)].iter().any(|(_, points)| reaches_next_level(points, level_criteria(spec)));
    let course = CurveExtent { max_count: measured.unwrap_or(most), rising, reaches_next_level: another };
    let mut records = judge_levels(test, spec, &found, witness.as_ref(), course);
    records[0].witnesses.extend(witness);
    // For memory, time matters too. A difference of two programs has no spread.
    if test.part == TestedPart::Memory && spec.cost_definition.is_some() && spec.programs[0].control.is_none() {
        for (what, n) in counts_within_levels(test, spec, &found, [spec.count_range[0], course.max_count]) {
            // Without a cost there is no time.
            let found = |record: &&mut UarchRecord| record.what == what && record.verdict == VerdictKind::Found;
            if let Some(record) = records.iter_mut().find(found).filter(|_| n >= spec.count_range[0]) {
                record.measured = core.measure_spread(&spec.programs[0], n)?.map(|spread| (n, spread));
            }
        }
    }
    let walked = curves.into_iter().chain(blind).map(|(family, curve)| WalkRecord {
        name: family.name.into(),
        levels: find_levels(&curve, level_criteria(spec)),
        curve,
    });
    records[0].walks = walked.collect();
    Ok(records)
}

/// Programs and their curves.
type FamilyCurves = Vec<(&'static ProgramFamily, Vec<CostPoint>)>;

fn measure_curves(
    core: &mut dyn MeasureCosts,
    all: &'static [ProgramFamily],
    spec: &LevelsSpec,
    most: usize,
    random: &mut Random,
) -> Result<FamilyCurves, RunError> {
    all.iter().map(|family| Ok((family, measure_curve(core, family, spec, most, random)?))).collect()
}

/// The levels of each program.
fn find_family_levels(curves: &FamilyCurves, spec: &LevelsSpec) -> Vec<(&'static str, Vec<CurveLevel>)> {
    curves.iter().map(|(family, points)| (family.name, find_levels(points, level_criteria(spec)))).collect()
}

fn level_criteria(spec: &LevelsSpec) -> LevelCriteria {
    LevelCriteria { min_rise: spec.min_rise, min_ratio: spec.min_ratio, fills_randomly: spec.fills_randomly }
}

/// The curve of a program.
fn measure_curve(
    core: &mut dyn MeasureCosts,
    family: &ProgramFamily,
    spec: &LevelsSpec,
    most: usize,
    random: &mut Random,
) -> Result<Vec<CostPoint>, RunError> {
    let [least, _] = spec.count_range;
    let steps = ((most as f64 / least as f64).ln() / COUNT_FACTOR.ln()).ceil().max(1.0);
    let mut wanted: Vec<usize> = (0..=steps as usize)
        .map(|step| (least as f64 * (most as f64 / least as f64).powf(step as f64 / steps)).round() as usize)
        .collect();
    wanted.dedup();
    let (mut points, mut more, mut checked_ends) = (Vec::<CostPoint>::new(), 0, Vec::<Vec<LevelEnd>>::new());
    loop {
        random.shuffle(&mut wanted);
        // The smallest count first: if it is unavailable, all are.
        if points.is_empty() {
            wanted.sort_by_key(|n| *n != least);
        }
        for n in wanted {
            let point = match POINT_RETRY_POLICY.retry_while(Option::is_none, || core.measure_cost(family, n)) {
                // This much memory is unavailable: the counts measured so far are enough.
                Err(RunError::Unavailable(_)) if !points.is_empty() => None,
                tried => tried?,
            };
            let Some(point) = point else { continue };
            match points.iter_mut().find(|point| point.n == n) {
                // A disturbed control makes the difference too small.
                Some(earlier) if family.control.is_some() => {
                    let middle = |one: f64, other: f64| (one + other) / 2.0;
                    let cost = middle(earlier.cost, point.cost);
                    *earlier = CostPoint {
                        cost,
                        low: earlier.low.min(point.low),
                        high: earlier.high.max(point.high),
                        ..point
                    };
                }
                // Background load takes room and time, and never adds any.
                Some(earlier) if point.cost < earlier.cost => *earlier = point,
                Some(_) => {}
                None => points.push(point),
            }
        }
        points.sort_by_key(|point| point.n);
        wanted = counts_to_refine(&points, level_criteria(spec));
        wanted.retain(|n| points.iter().all(|point| point.n != *n));
        more += wanted.len();
        if wanted.is_empty() || more > MAX_EXTRA_COUNTS {
            let ends: Vec<LevelEnd> =
                find_levels(&points, level_criteria(spec)).iter().filter_map(|level| level.upto).collect();
            if checked_ends.len() == MAX_END_RECHECKS
                || checked_ends.last().is_some_and(|before| ends_stay(before, &ends))
            {
                return Ok(points);
            }
            wanted = counts_around(&points, &ends);
            checked_ends.push(ends);
        }
    }
}

/// Whether the first level ends earlier by the part that the witness occupies.
fn measure_witness(
    core: &mut dyn MeasureCosts,
    spec: &LevelsSpec,
    program: &'static WitnessProgram,
    first: LevelEnd,
    most: usize,
    random: &mut Random,
) -> Result<WitnessResult, RunError> {
    let points = measure_curve(core, &program.family, spec, most.min(WITNESS_MAX_FACTOR * first.high), random)?;
    let found = find_levels(&points, level_criteria(spec)).first().and_then(|level| level.upto);
    let name = program.family.name;
    let Some(found) = found else {
        return Ok(WitnessResult { name: name.into(), holds: false, text: "its first level has no end".to_string() });
    };
    let [low, value, high] = [found.low, found.value, found.high].map(|n| n + program.occupied);
    let shifted = LevelEnd { low, value, high, ..found };
    let holds = ends_overlap(shifted, first);
    Ok(WitnessResult {
        name: name.into(),
        holds,
        text: format!("{} and {} are {}", describe_end(found), program.occupied, describe_end(shifted)),
    })
}

/// The largest count of a witness, as a multiple of the first level's end.
const WITNESS_MAX_FACTOR: usize = 2;

/// Whether all ends have stayed.
fn ends_stay(before: &[LevelEnd], ends: &[LevelEnd]) -> bool {
    before.len() == ends.len() && before.iter().zip(ends).all(|(one, other)| ends_overlap(*one, *other))
}

/// The counts that determine where levels end.
fn counts_around(points: &[CostPoint], ends: &[LevelEnd]) -> Vec<usize> {
    let around = |n: usize| {
        let near =
            |end: &LevelEnd| (end.low as f64 / RECHECK_FACTOR..=end.high as f64 * RECHECK_FACTOR).contains(&(n as f64));
        ends.iter().any(near)
    };
    points.iter().map(|point| point.n).filter(|n| around(*n)).collect()
}
