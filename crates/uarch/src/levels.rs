//! What the walks of a test of levels prove: sizes and costs of the levels that have a number.
//!
//! A size needs the first two walks' ends of that level to overlap.

use super::numbering::{Ended, Group, agree, begun, numbered, unshared};
use super::plateau::{End, Level};
use super::record::UarchRecord;
use super::test::Test;
use super::test::walk::Walks;
use super::verdict::{Kind, Verdict, Witness};
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;

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
    let (mut numbered, between) = numbered(walks, found);
    if walks.one {
        numbered.truncate(1);
    }
    let walked = Walked { test, walks, found, numbered, course };
    let mut records = walked.levels(witness);
    if between.is_empty() {
        records.extend(walked.behind());
    } else {
        records.push(walked.in_doubt(&between));
    }
    records.extend(walked.beyond());
    if walked.numbered.is_empty() {
        records.insert(0, walked.without());
    }
    records
}

/// What the walks of a test have in common.
struct Walked<'a> {
    test: &'static Test,
    walks: &'a Walks,
    found: &'a [(&'a str, Vec<Level>)],
    numbered: Vec<Group<'a>>,
    course: Course,
}

impl Walked<'_> {
    /// The size and the cost of each level that has a number.
    fn levels(&self, witness: Option<&Witness>) -> Vec<UarchRecord> {
        let Walked { walks, found, numbered, .. } = self;
        let mut records = Vec::new();
        for (number, group) in numbered.iter().enumerate() {
            let verdict = match witness.filter(|witness| number == 0 && !witness.holds) {
                Some(Witness { name, text, .. }) => Verdict::new(Kind::Unclear, format!("{name}: {text}")),
                None => size(walks, group, found),
            };
            records.push(self.sized(number, verdict));
            // Walks whose ends differ may still agree in what a step costs before.
            let same = begun(found, number.checked_sub(1).map(|before| &numbered[before]));
            records.extend(self.priced(cost_of(self.test, number), &same));
        }
        records
    }

    /// The level behind those that have a number, where there is one of which the end is not known.
    fn behind(&self) -> Vec<UarchRecord> {
        let Walked { walks, found, numbered, course, .. } = self;
        let behind = match unshared(numbered, found) {
            Some(levels) => Some((format!("one program alone has an end there: {}", ends(found)), levels)),
            None if course.another => Some((rises_at(course.most), begun(found, numbered.last()))),
            None => None,
        };
        let number = numbered.len();
        let Some((why, levels)) = behind.filter(|_| number > 0 && !walks.one) else { return Vec::new() };
        let size = self.sized(number, Verdict::new(Kind::Unclear, why));
        // Before its end a step costs in all what it costs in this level.
        std::iter::once(size).chain(self.priced(cost_of(self.test, number), &levels)).collect()
    }

    /// The ends that leave open which number the next one has.
    fn in_doubt(&self, between: &[End]) -> UarchRecord {
        let each: Vec<String> = between.iter().map(|end| told(*end)).collect();
        let why = format!(
            "one program alone has an end at {}, so that the number of the next level is not known: {}",
            each.join(", "),
            ends(self.found)
        );
        let verdict = Verdict::new(Kind::Unclear, why);
        UarchRecord::new(self.test, in_doubt(self.test), verdict, self.walks.unit)
    }

    /// What a step costs past all levels. Where the first walk has no end at all there is the first level alone.
    fn beyond(&self) -> Option<UarchRecord> {
        let Walked { test, walks, found, numbered, course } = self;
        match (numbered.len(), walks.cost) {
            (0, _) => self.priced(cost_of(test, 0), &begun(found, None)),
            (_, Some(definition)) if course.another => {
                let verdict = Verdict::new(Kind::Unclear, rises_at(course.most));
                let record = UarchRecord::new(test, cost_beyond(test), verdict, Unit::CoreCycles);
                Some(UarchRecord { definition, ..record })
            }
            _ => {
                let last = found.iter().filter_map(|(name, levels)| Some((*name, levels.last()?)));
                self.priced(cost_beyond(test), &last.collect::<Vec<_>>())
            }
        }
    }

    /// The first size, where no level has a number.
    fn without(&self) -> UarchRecord {
        let Walked { walks, found, course: Course { most, rising, .. }, .. } = self;
        let verdict = match found.iter().any(|(_, levels)| levels.is_empty()) {
            true => Verdict::new(Kind::Unclear, "a program costs the same over no stretch of counts"),
            false if *rising => Verdict::new(Kind::Unclear, rises_at(*most)),
            false if ends(found).is_empty() && walks.always => {
                Verdict::new(Kind::Unclear, format!("no end was seen up to {most}"))
            }
            false if ends(found).is_empty() => Verdict::new(Kind::None, format!("no end up to {most}")),
            false => Verdict::new(Kind::Unclear, format!("one program alone has an end: {}", ends(found))),
        };
        self.sized(0, verdict)
    }

    fn sized(&self, number: usize, verdict: Verdict) -> UarchRecord {
        UarchRecord::new(self.test, size_of(self.test, self.walks, number), verdict, self.walks.unit)
    }

    /// What a step costs in a level, where the test asks that: the first walk's.
    fn priced(&self, what: String, levels: &[(&str, &Level)]) -> Option<UarchRecord> {
        let definition = self.walks.cost?;
        let (_, first) = *levels.first()?;
        let size = Some(Interval { value: first.cost, low: first.low, high: first.high });
        let near = |cost: f64| (cost - first.cost).abs() <= (COST_APART * first.cost).max(self.walks.rise);
        let agree = levels[1..].iter().any(|(_, level)| near(level.cost));
        let each = levels.iter().map(|(name, level)| format!("{name} {:.1}", level.cost.max(0.0)));
        let why = each.collect::<Vec<_>>().join(", ");
        let verdict = match levels.len() {
            1 => Verdict::new(Kind::Unclear, format!("one program alone has this level: {why}")),
            _ if !agree => Verdict::new(Kind::Unclear, format!("programs differ: {why}")),
            _ => Verdict { size, ..Verdict::new(Kind::Found, why) },
        };
        Some(UarchRecord { definition, ..UarchRecord::new(self.test, what, verdict, Unit::CoreCycles) })
    }
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
