//! What the programs of a test of levels prove: sizes and costs of the levels with a number.
//!
//! A size is proven if the ends of two programs overlap. The interval is that of the narrow ends: a
//! wide end confirms them. If all are wide, it spans them. The cost of a level needs only a second
//! program that costs as much at the same counts, whatever the level's end is.

use super::numbering::{NumberedLevel, ends_rising, is_narrow, levels_behind, number_levels};
use super::plateau::{CurveLevel, LevelEnd};
use super::record::UarchRecord;
use super::spec::{LevelsSpec, TestSpec};
use super::verdict::{TestVerdict, VerdictKind, WitnessResult};
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;

/// The largest factor between the edges of all ends of one structure, if its entries are used one
/// by one.
const SINGLE_STRUCTURE_WIDTH: f64 = 1.3;
/// Share by which the costs of a level may differ between programs.
const COST_TOLERANCE: f64 = 0.25;

/// The keys of costs, each with a count well within its level: the geometric middle of the level,
/// and beyond all levels the largest count.
pub(super) fn counts_within_levels(
    test: &TestSpec,
    spec: &LevelsSpec,
    found: &[(&str, Vec<CurveLevel>)],
    [least, most]: [usize; 2],
) -> Vec<(String, usize)> {
    let (numbered, _) = number_levels(spec, found);
    let mut from = least;
    let mut all = Vec::new();
    for (number, group) in numbered.iter().enumerate() {
        let end = group.ends[0].2;
        let middle = (from as f64 * end.low as f64).sqrt().round() as usize;
        all.push((cost_key(test, number), middle));
        from = end.high;
    }
    let last = if numbered.is_empty() { cost_key(test, 0) } else { cost_beyond_key(test) };
    all.push((last, most));
    all
}

/// The key of a level's size.
pub(super) fn size_key(test: &TestSpec, spec: &LevelsSpec, number: usize) -> String {
    match spec.single_structure {
        true => test.name.to_string(),
        false => format!("{}.{}.size", test.name, number + 1),
    }
}

/// The key of the cost of a step in a level.
fn cost_key(test: &TestSpec, number: usize) -> String {
    format!("{}.{}.cost", test.name, number + 1)
}

/// The key of the cost of a step beyond all levels.
fn cost_beyond_key(test: &TestSpec) -> String {
    format!("{}.beyond.cost", test.name)
}

/// The state of curves at the largest common count: whether a cost still rises there, and whether
/// it reaches the next level.
#[derive(Debug, Clone, Copy)]
pub(super) struct CurveExtent {
    pub max_count: usize,
    pub rising: bool,
    pub reaches_next_level: bool,
}

/// The key of ends that only one program has before the next end on which programs agree. Later
/// levels have no number.
pub(super) fn doubt_key(test: &TestSpec) -> String {
    format!("{}.more.size", test.name)
}

/// Two records for each level with a number, its size and its cost, and records of the levels
/// behind them.
pub(super) fn judge_levels(
    test: &'static TestSpec,
    spec: &LevelsSpec,
    found: &[(&str, Vec<CurveLevel>)],
    witness: Option<&WitnessResult>,
    course: CurveExtent,
) -> Vec<UarchRecord> {
    let (mut numbered, between) = number_levels(spec, found);
    if spec.single_structure {
        numbered.truncate(1);
    }
    let report = LevelReport { test, spec, found, numbered, course };
    let mut records = report.level_records(witness);
    if between.is_empty() {
        records.extend(report.next_level_records());
    } else {
        records.push(report.doubt_record(&between));
    }
    records.extend(report.beyond_record());
    if report.numbered.is_empty() {
        records.insert(0, report.no_level_record());
    }
    records
}

/// What the programs of a test found in common.
struct LevelReport<'a> {
    test: &'static TestSpec,
    spec: &'a LevelsSpec,
    found: &'a [(&'a str, Vec<CurveLevel>)],
    numbered: Vec<NumberedLevel<'a>>,
    course: CurveExtent,
}

impl LevelReport<'_> {
    /// The size and the cost of each level with a number.
    fn level_records(&self, witness: Option<&WitnessResult>) -> Vec<UarchRecord> {
        let LevelReport { spec, found, numbered, .. } = self;
        let mut records = Vec::new();
        for (number, group) in numbered.iter().enumerate() {
            let verdict = match witness.filter(|witness| number == 0 && !witness.holds) {
                Some(WitnessResult { name, text, .. }) => {
                    TestVerdict::new(VerdictKind::Unclear, format!("{name}: {text}"))
                }
                None => judge_size(spec, number, group, found),
            };
            records.push(self.size_record(number, verdict));
            records.extend(self.cost_record(cost_key(self.test, number), &self.levels_with_number(number)));
        }
        records
    }

    /// The level of each program with this number: those behind the end of the level before, those
    /// that end with it, and those of other programs that cost as much at the same counts.
    fn levels_with_number(&self, number: usize) -> Vec<(&str, &CurveLevel)> {
        let LevelReport { found, numbered, .. } = self;
        let mut levels = levels_behind(found, number.checked_sub(1).map(|before| &numbered[before]));
        let ended = numbered.get(number).into_iter().flat_map(NumberedLevel::all_ends);
        let missing = |levels: &[(&str, &CurveLevel)], name: &str| levels.iter().all(|(own, _)| *own != name);
        for (name, level, _) in ended {
            if missing(&levels, name) {
                levels.push((*name, *level));
            }
        }
        levels.sort_by_key(|(name, _)| found.iter().position(|(own, _)| own == name));
        if let Some((_, first)) = levels.first().copied() {
            for (name, own) in found.iter().filter(|(name, _)| missing(&levels, name)).collect::<Vec<_>>() {
                let same = own.iter().find(|level| level.meets(first) && self.is_same_cost(first.cost, level.cost));
                levels.extend(same.map(|level| (*name, level)));
            }
        }
        levels
    }

    fn is_same_cost(&self, cost: f64, other: f64) -> bool {
        (cost - other).abs() <= (COST_TOLERANCE * cost).max(self.spec.min_rise)
    }

    /// The level behind those with a number, if there is one and its end is unknown.
    fn next_level_records(&self) -> Vec<UarchRecord> {
        let LevelReport { spec, numbered, course, .. } = self;
        let number = numbered.len();
        if !course.reaches_next_level || number == 0 || spec.single_structure || ends_rising(spec) {
            return Vec::new();
        }
        let size = self.size_record(number, TestVerdict::new(VerdictKind::Unclear, describe_rise(course.max_count)));
        // Up to its end, a step in all programs costs as much as in this level.
        let levels = self.levels_with_number(number);
        std::iter::once(size).chain(self.cost_record(cost_key(self.test, number), &levels)).collect()
    }

    /// The ends that leave the number of the next level open.
    fn doubt_record(&self, between: &[LevelEnd]) -> UarchRecord {
        let each: Vec<String> = between.iter().map(|end| describe_end(*end)).collect();
        let why = format!(
            "one program alone has an end at {}, so that the number of the next level is not known: {}",
            each.join(", "),
            describe_ends(self.found)
        );
        let verdict = TestVerdict::new(VerdictKind::Unclear, why);
        UarchRecord::new(self.test, doubt_key(self.test), verdict, self.spec.unit)
    }

    /// The cost of a step beyond all levels. If the first program has no end, there is only the
    /// first level.
    fn beyond_record(&self) -> Option<UarchRecord> {
        let LevelReport { test, spec, found, numbered, course } = self;
        match (numbered.len(), spec.cost_definition) {
            (0, _) => self.cost_record(cost_key(test, 0), &levels_behind(found, None)),
            (_, Some(definition)) if course.reaches_next_level => {
                let verdict = TestVerdict::new(VerdictKind::Unclear, describe_rise(course.max_count));
                let record = UarchRecord::new(test, cost_beyond_key(test), verdict, Unit::CoreCycles);
                Some(UarchRecord { definition: definition.into(), ..record })
            }
            _ => {
                let last = found.iter().filter_map(|(name, levels)| Some((*name, levels.last()?)));
                self.cost_record(cost_beyond_key(test), &last.collect::<Vec<_>>())
            }
        }
    }

    /// The first size, if no level has a number.
    fn no_level_record(&self) -> UarchRecord {
        let LevelReport { spec, found, course: CurveExtent { max_count: most, rising, .. }, .. } = self;
        let verdict = match found.iter().any(|(_, levels)| levels.is_empty()) {
            true => TestVerdict::new(VerdictKind::Unclear, "a program costs the same over no stretch of counts"),
            false if *rising => TestVerdict::new(VerdictKind::Unclear, describe_rise(*most)),
            false if describe_ends(found).is_empty() && spec.always_ends => {
                TestVerdict::new(VerdictKind::Unclear, format!("no end was seen up to {most}"))
            }
            false if describe_ends(found).is_empty() => {
                TestVerdict::new(VerdictKind::None, format!("no end up to {most}"))
            }
            false => TestVerdict::new(
                VerdictKind::Unclear,
                format!("one program alone has an end: {}", describe_ends(found)),
            ),
        };
        self.size_record(0, verdict)
    }

    fn size_record(&self, number: usize, verdict: TestVerdict) -> UarchRecord {
        UarchRecord::new(self.test, size_key(self.test, self.spec, number), verdict, self.spec.unit)
    }

    /// The first program's cost of a step in a level, if the test reports costs. The interval spans
    /// all programs that agree: they ran at other times, and their loads miss other things.
    fn cost_record(&self, what: String, levels: &[(&str, &CurveLevel)]) -> Option<UarchRecord> {
        let definition = self.spec.cost_definition?;
        let (_, first) = *levels.first()?;
        let same = || levels.iter().map(|(_, level)| *level).filter(|level| self.is_same_cost(first.cost, level.cost));
        let low = same().map(|level| level.low).fold(first.low, f64::min);
        let high = same().map(|level| level.high).fold(first.high, f64::max);
        let size = Some(Interval { value: first.cost, low, high });
        let agree = same().count() > 1;
        let each = levels.iter().map(|(name, level)| format!("{name} {:.1}", level.cost.max(0.0)));
        let why = each.collect::<Vec<_>>().join(", ");
        let verdict = match levels.len() {
            1 => TestVerdict::new(VerdictKind::Unclear, format!("one program alone has this level: {why}")),
            _ if !agree => TestVerdict::new(VerdictKind::Unclear, format!("programs differ: {why}")),
            _ => TestVerdict { size, ..TestVerdict::new(VerdictKind::Found, why) },
        };
        Some(UarchRecord {
            definition: definition.into(),
            ..UarchRecord::new(self.test, what, verdict, Unit::CoreCycles)
        })
    }
}

fn describe_rise(most: usize) -> String {
    format!("the cost still rises at {most}")
}

/// All ends as text.
pub(super) fn describe_ends(found: &[(&str, Vec<CurveLevel>)]) -> String {
    let each = found.iter().filter_map(|(name, levels)| {
        let ends: Vec<String> = levels.iter().filter_map(|level| Some(describe_end(level.upto?))).collect();
        (!ends.is_empty()).then(|| format!("{name} {}", ends.join(", ")))
    });
    each.collect::<Vec<_>>().join("; ")
}

/// The size on which programs agree.
fn judge_size(
    spec: &LevelsSpec,
    number: usize,
    group: &NumberedLevel,
    found: &[(&str, Vec<CurveLevel>)],
) -> TestVerdict {
    if !group.has_size(spec, number) {
        let why = match group.ends.len() + group.dissenting.len() {
            1 => format!("one program alone has an end at {}: {}", describe_end(group.ends[0].2), describe_ends(found)),
            _ => format!("programs end at different counts: {}", describe_ends(found)),
        };
        return TestVerdict::new(VerdictKind::Unclear, why);
    }
    if !group.is_agreed() {
        return judge_shared_size(group);
    }
    let mut edges: Vec<LevelEnd> = group.ends.iter().map(|(.., end)| *end).collect();
    if edges.iter().any(|end| is_narrow(spec, *end)) {
        edges.retain(|end| is_narrow(spec, *end));
    }
    let low = edges.iter().map(|end| end.low).min().unwrap_or_default() as f64;
    let high = edges.iter().map(|end| end.high).max().unwrap_or_default() as f64;
    let value = edges[0].value as f64;
    let each = group.ends.iter().map(|(name, _, end)| format!("{name} {}", describe_end(*end)));
    let earlier = group.dissenting.iter().map(|(name, _, end)| format!("; {name} {} is earlier", describe_end(*end)));
    let why = format!("{} agree{}", each.collect::<Vec<_>>().join(", "), earlier.collect::<String>());
    if spec.single_structure && high > SINGLE_STRUCTURE_WIDTH * low {
        return TestVerdict::new(VerdictKind::Unclear, format!("noise hides where it ends: {why}"));
    }
    TestVerdict { size: Some(Interval { value, low, high }), ..TestVerdict::new(VerdictKind::Found, why) }
}

/// The size of a level that ends at different counts because others use it too.
fn judge_shared_size(group: &NumberedLevel) -> TestVerdict {
    let ends = || group.all_ends().map(|(.., end)| end);
    let low = ends().map(|end| end.low).min().unwrap_or_default() as f64;
    let high = ends().map(|end| end.high).max().unwrap_or_default() as f64;
    let value = ends().map(|end| end.value).max().unwrap_or_default() as f64;
    let each = group.all_ends().map(|(name, _, end)| format!("{name} {}", describe_end(*end)));
    let why = format!("{}: what others leave of it changes", each.collect::<Vec<_>>().join(", "));
    TestVerdict { size: Some(Interval { value, low, high }), ..TestVerdict::new(VerdictKind::Found, why) }
}

pub(super) fn describe_end(end: LevelEnd) -> String {
    match end.low == end.high {
        true => format!("{}", end.low),
        false => format!("{} to {}", end.low, end.high),
    }
}
