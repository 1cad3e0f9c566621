//! A test of levels: the curves of its walks, and a verdict on each level.
//!
//! The order in which counts are measured is random, so that a neighbour's burst falls on counts far apart; and where a level ends each count is
//! measured again until no end moves, and the lowest cost counts.

use super::cost::{CostPoint, Costs};
use super::levels::{Course, ends, judged, size_of, told, within};
use super::numbering::{agree, numbered, overlap};
use super::plateau::{End, Level, Rises, another, closer, levels, unfinished};
use super::record::{UarchRecord, WalkRecord};
use super::test::walk::{Beside, Walk, Walks};
use super::test::{Part, Test};
use super::verdict::{Kind, Witness};
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_measure::sibling::SiblingPolicy;
use std::mem::replace;

/// Factor of neighbouring counts at first.
const FACTOR: f64 = 1.26;
/// Counts that are added to a walk's curve at most.
const MORE: usize = 60;
/// A count is measured again whose layouts were all disturbed.
const BESIDE_OTHERS: SiblingPolicy = SiblingPolicy { retries: 2, ..SiblingPolicy::USUAL };
/// Times that the counts around ends are measured again at most. Beside a sibling that is busy for a quarter of the time, one time left an end a sixth too early in
/// one of five walks (Genoa, family 25, model 17).
const AGAIN: usize = 3;
/// How far around a level's end counts are measured again, as a factor.
const AROUND: f64 = 1.1;

/// Measures the test up to a count, and judges.
pub(super) fn climb(
    core: &mut dyn Costs,
    test: &'static Test,
    walks: &'static Walks,
    most: usize,
    random: &mut Random,
) -> Result<Vec<UarchRecord>, RunError> {
    let mut blind = Vec::new();
    let mut curves = match curves(core, walks.walks, walks, most, random) {
        Err(RunError::Unavailable(reason)) => {
            return Ok(vec![UarchRecord::without(test, size_of(test, walks, 0), &reason, walks.unit)]);
        }
        curves => curves?,
    };
    if !walks.others.is_empty() && ends(&found_in(&curves, walks)).is_empty() {
        blind = replace(&mut curves, self::curves(core, walks.others, walks, most, random)?);
    }
    let found = found_in(&curves, walks);
    let (sizes, _) = numbered(walks, &found);
    let first = sizes.first().filter(|group| agree(group, &found)).map(|group| group[0].2);
    let witness = match (&walks.beside, first) {
        // What is a small part of a level or of its edges can't move its end.
        (Some(beside), Some(first)) if beside.tells(first.low, first.high) => {
            Some(witness(core, walks, beside, first, most, random)?)
        }
        _ => None,
    };
    // The largest count that all have.
    let measured = curves.iter().map(|(_, points)| points.last().map_or(0, |point| point.n)).min();
    let rising = curves.iter().any(|(_, points)| unfinished(points, rises(walks)));
    let another = curves[..curves.len().min(2)].iter().any(|(_, points)| another(points, rises(walks)));
    let course = Course { most: measured.unwrap_or(most), rising, another };
    let mut records = judged(test, walks, &found, witness.as_ref(), course);
    records[0].witnesses.extend(witness);
    // What memory takes is a matter of time too. Of a difference of programs there is no spread.
    if test.part == Part::Memory && walks.cost.is_some() && walks.walks[0].without.is_none() {
        for (what, n) in within(test, walks, &found, [walks.counts[0], course.most]) {
            // Without a cost there is no time.
            let found = |record: &&mut UarchRecord| record.what == what && record.verdict == Kind::Found;
            if let Some(record) = records.iter_mut().find(found).filter(|_| n >= walks.counts[0]) {
                record.measured = core.spread(&walks.walks[0], n)?.map(|spread| (n, spread));
            }
        }
    }
    let walked = curves.into_iter().chain(blind).map(|(walk, curve)| WalkRecord {
        name: walk.name,
        levels: levels(&curve, rises(walks)),
        curve,
    });
    records[0].walks = walked.collect();
    Ok(records)
}

/// Walks and their curves.
type Curves = Vec<(&'static Walk, Vec<CostPoint>)>;

fn curves(
    core: &mut dyn Costs,
    all: &'static [Walk],
    walks: &Walks,
    most: usize,
    random: &mut Random,
) -> Result<Curves, RunError> {
    all.iter().map(|walk| Ok((walk, curve(core, walk, walks, most, random)?))).collect()
}

/// The levels of each walk.
fn found_in(curves: &Curves, walks: &Walks) -> Vec<(&'static str, Vec<Level>)> {
    curves.iter().map(|(walk, points)| (walk.name, levels(points, rises(walks)))).collect()
}

fn rises(walks: &Walks) -> Rises {
    Rises { rise: walks.rise, ratio: walks.ratio, by_chance: walks.by_chance }
}

/// The curve of a walk.
fn curve(
    core: &mut dyn Costs,
    walk: &Walk,
    walks: &Walks,
    most: usize,
    random: &mut Random,
) -> Result<Vec<CostPoint>, RunError> {
    let [least, _] = walks.counts;
    let steps = ((most as f64 / least as f64).ln() / FACTOR.ln()).ceil().max(1.0);
    let mut wanted: Vec<usize> = (0..=steps as usize)
        .map(|step| (least as f64 * (most as f64 / least as f64).powf(step as f64 / steps)).round() as usize)
        .collect();
    wanted.dedup();
    let (mut points, mut more, mut again) = (Vec::<CostPoint>::new(), 0, Vec::<Vec<End>>::new());
    loop {
        random.shuffle(&mut wanted);
        // The least first: where it is not to be had, nothing is.
        if points.is_empty() {
            wanted.sort_by_key(|n| *n != least);
        }
        for n in wanted {
            let point = match BESIDE_OTHERS.retry_while(Option::is_none, || core.cost(walk, n)) {
                // So much memory is not to be had: what was measured tells.
                Err(RunError::Unavailable(_)) if !points.is_empty() => None,
                tried => tried?,
            };
            let Some(point) = point else { continue };
            match points.iter_mut().find(|point| point.n == n) {
                // What disturbed the program that is subtracted made the difference smaller.
                Some(known) if walk.without.is_some() => {
                    let middle = |one: f64, other: f64| (one + other) / 2.0;
                    let cost = middle(known.cost, point.cost);
                    *known = CostPoint {
                        cost,
                        low: known.low.min(point.low),
                        high: known.high.max(point.high),
                        ..point
                    };
                }
                // Other work takes room and time, and never gives any.
                Some(known) if point.cost < known.cost => *known = point,
                Some(_) => {}
                None => points.push(point),
            }
        }
        points.sort_by_key(|point| point.n);
        wanted = closer(&points, rises(walks));
        wanted.retain(|n| points.iter().all(|point| point.n != *n));
        more += wanted.len();
        if wanted.is_empty() || more > MORE {
            let ends: Vec<End> =
                levels(&points, rises(walks)).iter().filter_map(|level| level.upto).collect();
            if again.len() == AGAIN || again.last().is_some_and(|before| stay(before, &ends)) {
                return Ok(points);
            }
            wanted = around(&points, &ends);
            again.push(ends);
        }
    }
}

/// Whether a program that occupies a part beforehand ends the first level by so much earlier.
fn witness(
    core: &mut dyn Costs,
    walks: &Walks,
    beside: &'static Beside,
    first: End,
    most: usize,
    random: &mut Random,
) -> Result<Witness, RunError> {
    let points = curve(core, &beside.walk, walks, most.min(WITNESS_MOST * first.high), random)?;
    let found = levels(&points, rises(walks)).first().and_then(|level| level.upto);
    let name = beside.walk.name;
    let Some(found) = found else {
        return Ok(Witness { name, holds: false, text: "its first level has no end".to_string() });
    };
    let [low, value, high] = [found.low, found.value, found.high].map(|n| n + beside.occupied);
    let shifted = End { low, value, high, ..found };
    let holds = overlap(shifted, first);
    Ok(Witness {
        name,
        holds,
        text: format!("{} and {} are {}", told(found), beside.occupied, told(shifted)),
    })
}

/// Up to how many times the first level's end a witness is measured.
const WITNESS_MOST: usize = 2;

/// Whether no end has moved.
fn stay(before: &[End], ends: &[End]) -> bool {
    before.len() == ends.len() && before.iter().zip(ends).all(|(one, other)| overlap(*one, *other))
}

/// The counts that tell where levels end.
fn around(points: &[CostPoint], ends: &[End]) -> Vec<usize> {
    let around = |n: usize| {
        let near = |end: &End| (end.low as f64 / AROUND..=end.high as f64 * AROUND).contains(&(n as f64));
        ends.iter().any(near)
    };
    points.iter().map(|point| point.n).filter(|n| around(*n)).collect()
}
