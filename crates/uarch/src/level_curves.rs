//! Runs a test of levels: measures a curve for each program and judges each level.
//!
//! Counts are measured in random order: a burst of the sibling then affects counts that are far
//! apart. Counts around the ends of levels are measured again until no end moves. The lowest cost
//! of each count is kept.

use super::cost::{CostPoint, MeasureCosts};
use super::level_records::{CurveExtent, counts_within_levels, describe_end, describe_ends, judge_levels, size_key};
use super::numbering::{NumberedLevel, ends_overlap, ends_rising, number_levels};
use super::plateau::{
    CurveLevel, LevelCriteria, LevelEnd, counts_to_refine, disturbed_counts, find_levels, reaches_next_level,
    still_rises,
};
use super::record::{UarchRecord, WalkRecord};
use super::spec::{LevelsSpec, ProgramFamily, TestSpec, TestedPart, WitnessProgram};
use super::verdict::{VerdictKind, WitnessResult};
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_measure::sibling::SiblingPolicy;
use std::collections::BTreeMap;
use std::mem::{replace, take};
use std::ops::RangeInclusive;

/// Ratio of neighbouring counts in the first pass.
const COUNT_FACTOR: f64 = 1.26;
/// The largest number of counts added to a curve.
const MAX_EXTRA_COUNTS: usize = 60;
/// The largest number of times that a disturbed count is measured again.
const MAX_SETTLED: usize = 3;
/// The largest number of such measurements of a curve.
const MAX_SETTLING_MEASUREMENTS: usize = 60;
/// A count is measured again if all its layouts were disturbed.
const POINT_RETRY_POLICY: SiblingPolicy = SiblingPolicy { retries: 2, ..SiblingPolicy::USUAL };
/// How often the counts around ends are measured again at most. One repetition is not enough: with
/// a sibling busy for a quarter of the time, an end was a sixth too early in one of five programs
/// (Genoa, family 25, model 17).
const MAX_END_RECHECKS: usize = 3;
/// Number of repeated measurements after which no more counts around ends are measured again: where
/// costs differ all the time, more of them show little.
const MAX_REPEATED: usize = 100;
/// The share of ends that may be early because all repetitions were disturbed.
const MISSED_SHARE: f64 = 0.01;
/// Share by which a repetition differs if one of both was disturbed. Other physical pages change a
/// gradual rise by some 10 % (Turin, family 26, model 2).
const DISTURBED_SHARE: f64 = 0.15;
/// Range around a level's end in which counts are measured again, as a factor.
const RECHECK_FACTOR: f64 = 1.1;
/// Range around the likely end of a wide interval in which counts are measured again, as a factor.
const WIDE_RECHECK_FACTOR: f64 = 1.5;

/// How often the counts between ends are measured again on which programs disagree.
const MAX_SETTLING_ROUNDS: usize = 2;
/// The largest number of counts measured again in each curve each time.
const MAX_ZONE_COUNTS: usize = 16;
/// The largest number of counts added to a curve each time.
const MAX_SETTLING_COUNTS: usize = 12;

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
    settle_disagreements(core, &mut curves, spec, random)?;
    let found = find_family_levels(&curves, spec);
    let first = first_agreed_end(spec, &found);
    let witness = match (&spec.witness, first) {
        // A witness that occupies only a small part of a level or its edges can't move its end.
        (Some(program), Some(first)) if program.can_move_end(first.low, first.high) => {
            Some(measure_witness(core, spec, program, &mut curves, first, most, random)?)
        }
        _ => None,
    };
    let found = find_family_levels(&curves, spec);
    // The largest count that all curves have.
    let measured = curves.iter().map(|walk| walk.points.last().map_or(0, |point| point.n)).min();
    let rising = curves.iter().any(|walk| still_rises(&walk.points, level_criteria(spec)));
    let another =
        curves[..curves.len().min(2)].iter().any(|walk| reaches_next_level(&walk.points, level_criteria(spec)));
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
    let walked = curves.into_iter().chain(blind).map(|walk| WalkRecord {
        name: walk.family.name.into(),
        levels: find_levels(&walk.points, level_criteria(spec)),
        curve: walk.points,
    });
    records[0].walks = walked.collect();
    Ok(records)
}

/// The curves of some programs. Their counts are measured in one random order, so that changes of
/// the background load affect all of them.
fn measure_curves(
    core: &mut dyn MeasureCosts,
    all: &'static [ProgramFamily],
    spec: &LevelsSpec,
    most: usize,
    random: &mut Random,
) -> Result<Vec<CurveWalk<'static>>, RunError> {
    let mut walks: Vec<CurveWalk> = all.iter().map(|family| CurveWalk::new(family, spec, most)).collect();
    measure_walks(core, &mut walks, spec, random)?;
    Ok(walks)
}

/// The levels of each program.
fn find_family_levels(walks: &[CurveWalk<'static>], spec: &LevelsSpec) -> Vec<(&'static str, Vec<CurveLevel>)> {
    walks.iter().map(|walk| (walk.family.name, find_levels(&walk.points, level_criteria(spec)))).collect()
}

fn level_criteria(spec: &LevelsSpec) -> LevelCriteria {
    LevelCriteria {
        min_rise: spec.min_rise,
        min_ratio: spec.min_ratio,
        fills_randomly: spec.fills_randomly,
        ends_rising: ends_rising(spec),
    }
}

/// A program's curve while it is measured.
struct CurveWalk<'a> {
    family: &'a ProgramFamily,
    /// The result of each count.
    points: Vec<CostPoint>,
    /// The lowest costs of each count: of the program, and of its control.
    lowest: BTreeMap<usize, (CostPoint, Option<CostPoint>)>,
    /// How often each count was measured because it seemed disturbed.
    settled: BTreeMap<usize, usize>,
    /// Number of these measurements.
    settling: usize,
    /// Counts to measure next.
    wanted: Vec<usize>,
    /// Number of counts that were added.
    added: usize,
    /// Number of repeated measurements, and of those that differ from the lowest cost before.
    repeated: usize,
    disturbed: usize,
    /// Whether the wanted counts are those around ends.
    checks_ends: bool,
    /// The ends at each time that counts around them were measured again.
    checked_ends: Vec<Vec<LevelEnd>>,
}

impl<'a> CurveWalk<'a> {
    fn new(family: &'a ProgramFamily, spec: &LevelsSpec, most: usize) -> CurveWalk<'a> {
        let [least, _] = spec.count_range;
        let steps = ((most as f64 / least as f64).ln() / COUNT_FACTOR.ln()).ceil().max(1.0);
        let mut wanted: Vec<usize> = (0..=steps as usize)
            .map(|step| (least as f64 * (most as f64 / least as f64).powf(step as f64 / steps)).round() as usize)
            .collect();
        wanted.dedup();
        CurveWalk {
            family,
            points: Vec::new(),
            lowest: BTreeMap::new(),
            settled: BTreeMap::new(),
            settling: 0,
            wanted,
            added: 0,
            repeated: 0,
            disturbed: 0,
            checks_ends: false,
            checked_ends: Vec::new(),
        }
    }

    /// Finds the counts to measure next: disturbed ones, then between those whose costs differ, then
    /// around ends, until no end moves.
    fn choose_counts(&mut self, rises: LevelCriteria) {
        self.checks_ends = false;
        self.wanted = self.unsettled_counts(rises);
        if !self.wanted.is_empty() {
            return;
        }
        self.wanted = counts_to_refine(&self.points, rises);
        self.wanted.retain(|n| self.points.iter().all(|point| point.n != *n));
        self.added += self.wanted.len();
        if !self.wanted.is_empty() && self.added <= MAX_EXTRA_COUNTS {
            return;
        }
        self.wanted.clear();
        let ends: Vec<LevelEnd> = find_levels(&self.points, rises).iter().filter_map(|level| level.upto).collect();
        let needed = self.needed_rechecks();
        let mut before = self.checked_ends.iter().rev().take(needed);
        let stay = before.len() == needed && before.all(|before| ends_stay(before, &ends));
        if !stay && self.checked_ends.len() < MAX_END_RECHECKS && self.repeated < MAX_REPEATED {
            self.wanted = self.counts_around(&ends);
            self.checked_ends.push(ends);
            self.checks_ends = true;
        }
    }

    /// Disturbed counts that may be measured again.
    fn unsettled_counts(&mut self, rises: LevelCriteria) -> Vec<usize> {
        let mut unsettled = disturbed_counts(&self.points, rises);
        unsettled.retain(|n| {
            let times = self.settled.entry(*n).or_default();
            *times += 1;
            *times <= MAX_SETTLED
        });
        // The smallest counts are the quickest to measure, and others disturb them least.
        unsettled.truncate(MAX_SETTLING_MEASUREMENTS - self.settling);
        self.settling += unsettled.len();
        unsettled
    }

    /// Number of repetitions in a row that must not move an end: more if many were disturbed.
    fn needed_rechecks(&self) -> usize {
        let share = self.disturbed as f64 / self.repeated.max(1) as f64;
        let needed = (MISSED_SHARE.ln() / share.ln()).ceil();
        if share >= 1.0 { MAX_END_RECHECKS } else { (needed as usize).clamp(1, MAX_END_RECHECKS) }
    }

    /// The counts that determine where levels end. A count before an end that costs as much as the
    /// level can't get cheaper. A difference can: its control may have been disturbed.
    fn counts_around(&self, ends: &[LevelEnd]) -> Vec<usize> {
        let before = if self.family.control.is_some() { RECHECK_FACTOR } else { 1.0 };
        let is_near = |n: usize| {
            let n = n as f64;
            // Counts far from the likely end of a wide interval do not move it.
            let low = |end: &LevelEnd| (end.low as f64).max(end.value as f64 / WIDE_RECHECK_FACTOR);
            let high = |end: &LevelEnd| (end.high as f64).min(end.value as f64 * WIDE_RECHECK_FACTOR);
            let near_low = |end: &LevelEnd| (low(end) / before..=low(end) * RECHECK_FACTOR).contains(&n);
            // Each larger count limits the cost at the high edge too.
            let beyond = RECHECK_FACTOR * RECHECK_FACTOR;
            let near_high = |end: &LevelEnd| (high(end) / RECHECK_FACTOR..=high(end) * beyond).contains(&n);
            ends.iter().any(|end| near_low(end) || near_high(end))
        };
        self.points.iter().map(|point| point.n).filter(|n| is_near(*n)).collect()
    }

    /// The counts of a zone, and those next to it that [`CurveWalk::counts_around`] takes too.
    fn counts_in(&self, zone: &RangeInclusive<usize>) -> Vec<usize> {
        let before = if self.family.control.is_some() { RECHECK_FACTOR } else { 1.0 };
        let edges = *zone.start() as f64 / before..=*zone.end() as f64 * RECHECK_FACTOR;
        self.points.iter().map(|point| point.n).filter(|n| edges.contains(&(*n as f64))).collect()
    }

    /// Adds a measurement of a program and of its control. Background load takes room and time, and
    /// never adds any: the lowest cost of each is kept. If only a difference is known, a disturbed
    /// control makes it too small, and the middle is kept.
    fn add_point(&mut self, point: CostPoint, control: Option<CostPoint>, rises: LevelCriteria) {
        let lower = |one: CostPoint, other: CostPoint| {
            if rises.quiet_cost(&other) < rises.quiet_cost(&one) { other } else { one }
        };
        let middle = |one: CostPoint, other: CostPoint| CostPoint {
            cost: (one.cost + other.cost) / 2.0,
            low: one.low.min(other.low),
            high: one.high.max(other.high),
            ..one
        };
        let only_difference = self.family.control.is_some() && control.is_none();
        if let Some((earlier, _)) = self.lowest.get(&point.n).filter(|_| self.checks_ends) {
            let [one, other] = [earlier, &point].map(|point| rises.quiet_cost(point));
            self.repeated += 1;
            self.disturbed += usize::from((one - other).abs() > DISTURBED_SHARE * one.min(other).abs());
        }
        let kept = match self.lowest.get(&point.n) {
            Some((earlier, _)) if only_difference => (middle(*earlier, point), None),
            Some((earlier, rest)) => (lower(*earlier, point), rest.zip(control).map(|(one, other)| lower(one, other))),
            None => (point, control),
        };
        self.lowest.insert(point.n, kept);
        let result = |(point, control): &(CostPoint, Option<CostPoint>)| {
            control.as_ref().map_or(*point, |control| point.minus(control))
        };
        self.points = self.lowest.values().map(result).collect();
    }
}

/// Measures curves until no end moves.
fn measure_walks(
    core: &mut dyn MeasureCosts,
    walks: &mut [CurveWalk],
    spec: &LevelsSpec,
    random: &mut Random,
) -> Result<(), RunError> {
    while walks.iter().any(|walk| !walk.wanted.is_empty()) {
        measure_wanted(core, walks, spec, random)?;
        walks
            .iter_mut()
            .filter(|walk| !walk.points.is_empty())
            .for_each(|walk| walk.choose_counts(level_criteria(spec)));
    }
    Ok(())
}

/// Measures the wanted counts of all programs in one random order.
fn measure_wanted(
    core: &mut dyn MeasureCosts,
    walks: &mut [CurveWalk],
    spec: &LevelsSpec,
    random: &mut Random,
) -> Result<(), RunError> {
    let mut wanted: Vec<(usize, usize)> = Vec::new();
    for (place, walk) in walks.iter_mut().enumerate() {
        wanted.extend(take(&mut walk.wanted).into_iter().map(|n| (place, n)));
    }
    random.shuffle(&mut wanted);
    // The smallest counts first: if one is unavailable, all are.
    let least = wanted.iter().map(|(_, n)| *n).min();
    wanted.sort_by_key(|(place, n)| !walks[*place].points.is_empty() || Some(*n) != least);
    for (place, n) in wanted {
        let walk = &mut walks[place];
        let measured = POINT_RETRY_POLICY.retry_while(Option::is_none, || core.measure_with_control(walk.family, n));
        let measured = match measured {
            // This much memory is unavailable: the counts measured so far are enough.
            Err(RunError::Unavailable(_)) if !walk.points.is_empty() => None,
            tried => tried?,
        };
        if let Some((point, control)) = measured {
            walk.add_point(point, control, level_criteria(spec));
        }
    }
    Ok(())
}

/// Measures the counts between the ends again on which programs disagree.
fn settle_disagreements(
    core: &mut dyn MeasureCosts,
    walks: &mut [CurveWalk<'static>],
    spec: &LevelsSpec,
    random: &mut Random,
) -> Result<(), RunError> {
    for _ in 0..MAX_SETTLING_ROUNDS {
        let found = find_family_levels(walks, spec);
        let (sizes, open) = number_levels(spec, &found);
        let is_settled = |(number, size): &(usize, &NumberedLevel)| size.has_size(spec, *number);
        let disputed = sizes.iter().enumerate().filter(|size| !is_settled(size)).flat_map(|(_, size)| size.all_ends());
        let disputed: Vec<LevelEnd> = disputed.map(|(.., end)| *end).chain(open).collect();
        let Some(low) = disputed.iter().map(|end| end.low).min() else { break };
        let high = disputed.iter().map(|end| end.high).max().unwrap_or(low);
        remeasure_zone(core, walks, spec, low..=high, random)?;
    }
    Ok(())
}

/// Measures the counts of a zone again, and more counts where ends have moved.
fn remeasure_zone(
    core: &mut dyn MeasureCosts,
    walks: &mut [CurveWalk],
    spec: &LevelsSpec,
    zone: RangeInclusive<usize>,
    random: &mut Random,
) -> Result<(), RunError> {
    for walk in walks.iter_mut() {
        let all = walk.counts_in(&zone);
        let step = all.len().div_ceil(MAX_ZONE_COUNTS).max(1);
        walk.wanted = all.into_iter().step_by(step).collect();
    }
    measure_wanted(core, walks, spec, random)?;
    for walk in walks.iter_mut() {
        walk.wanted = counts_to_refine(&walk.points, level_criteria(spec));
        walk.wanted.retain(|n| walk.points.iter().all(|point| point.n != *n));
        walk.wanted.truncate(MAX_SETTLING_COUNTS);
    }
    measure_wanted(core, walks, spec, random)
}

/// The end of the first level, if programs agree on it.
fn first_agreed_end(spec: &LevelsSpec, found: &[(&'static str, Vec<CurveLevel>)]) -> Option<LevelEnd> {
    let (sizes, _) = number_levels(spec, found);
    sizes.first().filter(|level| level.is_agreed()).map(|level| level.ends[0].2)
}

/// Whether the first level ends earlier by the part that the witness occupies. If it does not,
/// background load may have held a part while either of both ran: both ends are measured again.
fn measure_witness(
    core: &mut dyn MeasureCosts,
    spec: &LevelsSpec,
    program: &'static WitnessProgram,
    curves: &mut [CurveWalk<'static>],
    first: LevelEnd,
    most: usize,
    random: &mut Random,
) -> Result<WitnessResult, RunError> {
    let mut walks = [CurveWalk::new(&program.family, spec, most.min(WITNESS_MAX_FACTOR * first.high))];
    measure_walks(core, &mut walks, spec, random)?;
    let (mut first, mut witness) = (first, judge_witness(&walks[0], spec, program, first));
    for _ in 0..MAX_SETTLING_ROUNDS {
        if witness.holds {
            break;
        }
        let ends = find_levels(&walks[0].points, level_criteria(spec));
        let end = ends.first().and_then(|level| level.upto).unwrap_or(first);
        let expected = [first.low, first.high].map(|n| n.saturating_sub(program.occupied));
        remeasure_zone(core, &mut walks, spec, end.low.min(expected[0])..=end.high.max(expected[1]), random)?;
        let shown = [end.low, end.high].map(|n| n + program.occupied);
        remeasure_zone(core, curves, spec, first.low.min(shown[0])..=first.high.max(shown[1]), random)?;
        first = first_agreed_end(spec, &find_family_levels(curves, spec)).unwrap_or(first);
        witness = judge_witness(&walks[0], spec, program, first);
    }
    Ok(witness)
}

/// Judges the end of the witness's first level.
fn judge_witness(walk: &CurveWalk, spec: &LevelsSpec, program: &WitnessProgram, first: LevelEnd) -> WitnessResult {
    let found = find_levels(&walk.points, level_criteria(spec)).first().and_then(|level| level.upto);
    let name = program.family.name;
    let Some(found) = found else {
        return WitnessResult { name: name.into(), holds: false, text: "its first level has no end".to_string() };
    };
    let [low, value, high] = [found.low, found.value, found.high].map(|n| n + program.occupied);
    let shifted = LevelEnd { low, value, high, ..found };
    let text = format!("{} and {} are {}", describe_end(found), program.occupied, describe_end(shifted));
    WitnessResult { name: name.into(), holds: ends_overlap(shifted, first), text }
}

/// The largest count of a witness, as a multiple of the first level's end.
const WITNESS_MAX_FACTOR: usize = 2;

/// Whether all ends have stayed.
fn ends_stay(before: &[LevelEnd], ends: &[LevelEnd]) -> bool {
    before.len() == ends.len() && before.iter().zip(ends).all(|(one, other)| ends_overlap(*one, *other))
}
