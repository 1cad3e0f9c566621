//! What the walks of a test of levels prove: sizes and costs of the levels that have a number.
//!
//! A size needs the first two walks' ends of that level to overlap.

use super::numbering::{Ended, agree, begun, numbered, unshared};
use super::plateau::{End, Level};
use super::record::UarchRecord;
use super::test::Test;
use super::test::walk::Walks;
use super::verdict::{Kind, Verdict, Witness};
use crate::statistics::Interval;
use crate::unit::Unit;

/// The largest factor between the edges of all ends of one structure, whose entries are used one by one.
const ONE_MOST: f64 = 1.3;
/// Share by which the costs of a level's steps may differ from one program to another.
const COST_APART: f64 = 0.25;

/// The keys of costs, each with a count that is well within its level: the middle of the level by factor, and past all levels the
/// largest count.
pub(super) fn within(
    test: &Test,
    walks: &Walks,
    found: &[(&str, Vec<Level>)],
    [least, most]: [usize; 2],
) -> Vec<(String, usize)> {
    let (numbered, _) = numbered(walks, found);
    let mut from = least;
    let mut all = Vec::new();
    for (number, group) in numbered.iter().enumerate() {
        let end = group[0].2;
        let middle = (from as f64 * end.low as f64).sqrt().round() as usize;
        all.push((cost_of(test, number), middle));
        from = end.high;
    }
    let last = if numbered.is_empty() { cost_of(test, 0) } else { cost_beyond(test) };
    all.push((last, most));
    all
}

/// The key of a level's size.
pub(super) fn size_of(test: &Test, walks: &Walks, number: usize) -> String {
    match walks.one {
        true => test.name.to_string(),
        false => format!("{}.{}.size", test.name, number + 1),
    }
}

/// The key of what a step costs in a level.
fn cost_of(test: &Test, number: usize) -> String {
    format!("{}.{}.cost", test.name, number + 1)
}

/// The key of what a step costs past all levels.
fn cost_beyond(test: &Test) -> String {
    format!("{}.beyond.cost", test.name)
}

/// How far all curves go, whether the cost of one still rises there, and whether it is that of another level.
#[derive(Debug, Clone, Copy)]
pub(super) struct Course {
    pub most: usize,
    pub rising: bool,
    pub another: bool,
}

/// The key of ends that one walk alone has before one on which walks agree. What comes after them has no number.
pub(super) fn in_doubt(test: &Test) -> String {
    format!("{}.more.size", test.name)
}

/// A record for each level that has a number: its size, where it ends, and its cost; and of what is behind them.
pub(super) fn judged(
    test: &'static Test,
    walks: &Walks,
    found: &[(&str, Vec<Level>)],
    witness: Option<&Witness>,
    course: Course,
) -> Vec<UarchRecord> {
    let Course { most, rising, another } = course;
    let (mut numbered, between) = numbered(walks, found);
    if walks.one {
        numbered.truncate(1);
    }
    let mut records = Vec::new();
    for (number, group) in numbered.iter().enumerate() {
        let verdict = match witness.filter(|witness| number == 0 && !witness.holds) {
            Some(Witness { name, text, .. }) => Verdict::new(Kind::Unclear, format!("{name}: {text}")),
            None => size(walks, group, found),
        };
        records.push(UarchRecord::new(test, size_of(test, walks, number), verdict, walks.unit));
        // Walks whose ends differ may still agree in what a step costs before.
        let same = begun(found, number.checked_sub(1).map(|before| &numbered[before]));
        records.extend(priced(test, walks, cost_of(test, number), &same));
    }
    let number = numbered.len();
    let behind = match unshared(&numbered, found) {
        Some(levels) => Some((format!("one program alone has an end there: {}", ends(found)), levels)),
        None if another => Some((rises_at(most), begun(found, numbered.last()))),
        None => None,
    };
    if let Some((why, levels)) = behind.filter(|_| number > 0 && between.is_empty() && !walks.one) {
        let verdict = Verdict::new(Kind::Unclear, why);
        records.push(UarchRecord::new(test, size_of(test, walks, number), verdict, walks.unit));
        // Before its end a step costs in all what it costs in this level.
        records.extend(priced(test, walks, cost_of(test, number), &levels));
    }
    if !between.is_empty() {
        let each: Vec<String> = between.into_iter().map(told).collect();
        let why = format!(
            "one program alone has an end at {}, so that the number of the next level is not known: {}",
            each.join(", "),
            ends(found)
        );
        let verdict = Verdict::new(Kind::Unclear, why);
        records.push(UarchRecord::new(test, in_doubt(test), verdict, walks.unit));
    }
    // Where the first walk has no end at all there is the first level alone.
    let past = match (number, walks.cost) {
        (0, _) => priced(test, walks, cost_of(test, 0), &begun(found, None)),
        (_, Some(definition)) if another => {
            let verdict = Verdict::new(Kind::Unclear, rises_at(most));
            let record = UarchRecord::new(test, cost_beyond(test), verdict, Unit::CoreCycles);
            Some(UarchRecord { definition, ..record })
        }
        _ => {
            let last = found.iter().filter_map(|(name, levels)| Some((*name, levels.last()?)));
            priced(test, walks, cost_beyond(test), &last.collect::<Vec<_>>())
        }
    };
    records.extend(past);
    if numbered.is_empty() {
        let verdict = match found.iter().any(|(_, levels)| levels.is_empty()) {
            true => Verdict::new(Kind::Unclear, "a program costs the same over no stretch of counts"),
            false if rising => Verdict::new(Kind::Unclear, rises_at(most)),
            false if ends(found).is_empty() && walks.always => {
                Verdict::new(Kind::Unclear, format!("no end was seen up to {most}"))
            }
            false if ends(found).is_empty() => Verdict::new(Kind::None, format!("no end up to {most}")),
            false => Verdict::new(Kind::Unclear, format!("one program alone has an end: {}", ends(found))),
        };
        records.insert(0, UarchRecord::new(test, size_of(test, walks, 0), verdict, walks.unit));
    }
    records
}

fn rises_at(most: usize) -> String {
    format!("the cost still rises at {most}")
}

/// All ends, in words.
pub(super) fn ends(found: &[(&str, Vec<Level>)]) -> String {
    let each = found.iter().filter_map(|(name, levels)| {
        let ends: Vec<String> = levels.iter().filter_map(|level| Some(told(level.upto?))).collect();
        (!ends.is_empty()).then(|| format!("{name} {}", ends.join(", ")))
    });
    each.collect::<Vec<_>>().join("; ")
}

/// The size in which walks agree.
fn size(walks: &Walks, group: &[Ended], found: &[(&str, Vec<Level>)]) -> Verdict {
    if !agree(group, found) {
        let why = format!("no other program has an end at {}: {}", told(group[0].2), ends(found));
        return Verdict::new(Kind::Unclear, why);
    }
    let edges = || group.iter().map(|(_, _, end)| end);
    let low = edges().map(|end| end.low).min().unwrap_or_default() as f64;
    let high = edges().map(|end| end.high).max().unwrap_or_default() as f64;
    let value = group[0].2.value as f64;
    let each = group.iter().map(|(name, _, end)| format!("{name} {}", told(*end)));
    let why = format!("{} agree", each.collect::<Vec<_>>().join(", "));
    if walks.one && high > ONE_MOST * low {
        return Verdict::new(Kind::Unclear, format!("noise hides where it ends: {why}"));
    }
    Verdict { size: Some(Interval { value, low, high }), ..Verdict::new(Kind::Found, why) }
}

pub(super) fn told(end: End) -> String {
    match end.low == end.high {
        true => format!("{}", end.low),
        false => format!("{} to {}", end.low, end.high),
    }
}

/// The record of what a step costs in a level, where the test asks that: the first walk's.
fn priced(
    test: &'static Test,
    walks: &Walks,
    what: String,
    levels: &[(&str, &Level)],
) -> Option<UarchRecord> {
    let definition = walks.cost?;
    let (_, first) = *levels.first()?;
    let size = Some(Interval { value: first.cost, low: first.low, high: first.high });
    let near = |cost: f64| (cost - first.cost).abs() <= (COST_APART * first.cost).max(walks.rise);
    let agree = levels[1..].iter().any(|(_, level)| near(level.cost));
    let each = levels.iter().map(|(name, level)| format!("{name} {:.1}", level.cost.max(0.0)));
    let why = each.collect::<Vec<_>>().join(", ");
    let verdict = match levels.len() {
        1 => Verdict::new(Kind::Unclear, format!("one program alone has this level: {why}")),
        _ if !agree => Verdict::new(Kind::Unclear, format!("programs differ: {why}")),
        _ => Verdict { size, ..Verdict::new(Kind::Found, why) },
    };
    Some(UarchRecord { definition, ..UarchRecord::new(test, what, verdict, Unit::CoreCycles) })
}
