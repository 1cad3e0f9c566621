//! Which ends of different curves belong to one level, and the level's number.
//!
//! Programs support a level if their ends overlap. A single end nearby belongs to the level too:
//! its program saw the level end elsewhere. Two programs are enough if they are the first two, or
//! if the cost of no other program stays the same over that end.

use super::plateau::{CurveLevel, LevelEnd};
use super::spec::LevelsSpec;

/// The largest factor between two ends of one level if items fill sets by chance, and if not; also
/// the width from which on an end is wide.
const NEAR_FACTOR: [f64; 2] = [2.5, 1.4];
/// The largest factor between the edges of an end that may be slow. A rise over more counts shows
/// no end.
const WIDE_MOST: f64 = 16.0;
/// The largest factor between ends of a level that others use too: 1.6 in one run of the third
/// cache of a busy guest (Turin, family 26, model 2).
const SHARED_FACTOR: f64 = 2.0;
/// Share by which two equal ends may differ: if both are sharp, and if one is soft.
const END_TOLERANCE: [f64; 2] = [0.02, 0.06];

/// A level that a program has: the program's name, the level and its end.
pub(super) type EndedLevel<'a> = (&'a str, &'a CurveLevel, LevelEnd);

/// A level with a number.
#[derive(Debug, Clone)]
pub(super) struct NumberedLevel<'a> {
    /// Ends that overlap, in the order of the programs.
    pub ends: Vec<EndedLevel<'a>>,
    /// Ends of other programs nearby.
    pub dissenting: Vec<EndedLevel<'a>>,
}

impl<'a> NumberedLevel<'a> {
    /// Whether two programs agree on the end. Background load takes room and never gives any, so a
    /// program that ends a little earlier contradicts nothing.
    pub(super) fn is_agreed(&self) -> bool {
        let least = self.ends.iter().map(|(.., end)| end.value).min().unwrap_or_default() as f64;
        let earlier = |end: &LevelEnd| {
            let value = end.value as f64;
            self.ends.iter().all(|(.., own)| end.high < own.low) && least <= NEAR_FACTOR[1] * value
        };
        self.ends.len() > 1 && self.dissenting.iter().all(|(.., end)| earlier(end))
    }

    /// All ends of the level.
    pub(super) fn all_ends(&self) -> impl Iterator<Item = &EndedLevel<'a>> {
        self.ends.iter().chain(&self.dissenting)
    }

    /// Whether its size is known. The first level belongs to the core, and others use those behind
    /// it.
    pub(super) fn has_size(&self, spec: &LevelsSpec, number: usize) -> bool {
        self.is_agreed() || number > 0 && self.is_shared_level(spec)
    }

    /// Whether different ends are those of a level that others use too: programs ran at different
    /// times, and what others leave of a cache changes. The size is anywhere between the ends.
    fn is_shared_level(&self, spec: &LevelsSpec) -> bool {
        let values = || self.all_ends().map(|(.., end)| end.value);
        let [least, most] = [values().min(), values().max()].map(|value| value.unwrap_or_default() as f64);
        spec.fills_randomly && self.all_ends().count() > 1 && most <= SHARED_FACTOR * least
    }

    fn has_program(&self, name: &str) -> bool {
        self.all_ends().any(|(own, ..)| *own == name)
    }

    fn value(&self) -> usize {
        self.ends[0].2.value
    }
}

/// The numbered levels, and the ends that leave the next number open: single ends before the next
/// level on which programs agree. One more level may follow the last agreed one.
pub(super) fn number_levels<'a>(
    spec: &LevelsSpec,
    found: &'a [(&'a str, Vec<CurveLevel>)],
) -> (Vec<NumberedLevel<'a>>, Vec<LevelEnd>) {
    let groups = join_near_ends(spec, group_ends(spec, found));
    let last = groups.iter().rposition(|group| supports_number(group, found));
    let mut numbered = Vec::new();
    for (place, group) in groups.into_iter().enumerate() {
        // Programs that saw one level end at different counts still show that it is there.
        let known = supports_number(&group, found) || !group.dissenting.is_empty();
        match last {
            Some(last) if place <= last && !known => {
                return (numbered, group.all_ends().map(|(.., end)| *end).collect());
            }
            Some(last) if place <= last => numbered.push(group),
            _ => {
                numbered.push(group);
                break;
            }
        }
    }
    (numbered, Vec::new())
}

/// Whether the programs of a group prove that there is a level.
fn supports_number(group: &NumberedLevel, found: &[(&str, Vec<CurveLevel>)]) -> bool {
    let has = |place: usize| found.get(place).is_some_and(|(name, _)| group.ends.iter().any(|(own, ..)| own == name));
    let [low, high] =
        [group.ends.iter().map(|(.., end)| end.low).min(), group.ends.iter().map(|(.., end)| end.high).max()]
            .map(Option::unwrap_or_default);
    let flat = |(name, levels): &(&str, Vec<CurveLevel>)| {
        !group.has_program(name) && levels.iter().any(|level| level.spans(low, high))
    };
    has(0) && has(1) || group.ends.len() > 1 && !found.iter().any(flat)
}

/// Whether a slow rise has no cause but full structures: sets fill by chance, or a control is
/// subtracted.
pub(super) fn may_end_slowly(spec: &LevelsSpec) -> bool {
    spec.fills_randomly || ends_rising(spec)
}

/// Whether a rise up to the largest count ends the last level: it has no other cause, and entries
/// are used one by one, so that nothing misses before the level is full.
pub(super) fn ends_rising(spec: &LevelsSpec) -> bool {
    let controlled = spec.programs.iter().all(|family| family.control.is_some());
    controlled && !spec.single_structure && !spec.fills_randomly
}

/// The largest factor between the edges of an end.
fn max_width(spec: &LevelsSpec) -> f64 {
    if may_end_slowly(spec) { WIDE_MOST } else { NEAR_FACTOR[1] }
}

/// Whether an end shows the size by itself. A wider one only confirms it.
pub(super) fn is_narrow(spec: &LevelsSpec, end: LevelEnd) -> bool {
    end.high as f64 <= NEAR_FACTOR[usize::from(!spec.fills_randomly)] * end.low as f64
}

/// The ends of all programs in groups that overlap, one end per program in each, in ascending
/// order.
fn group_ends<'a>(spec: &LevelsSpec, found: &'a [(&'a str, Vec<CurveLevel>)]) -> Vec<NumberedLevel<'a>> {
    let ended = found
        .iter()
        .flat_map(|(name, levels)| levels.iter().filter_map(move |level| Some((*name, level, level.upto?))));
    let mut ends: Vec<EndedLevel> = ended.collect();
    // Narrow ends first: a wide one may overlap with several.
    ends.sort_by_key(|(.., end)| (!is_narrow(spec, *end), end.value));
    let steep = |end: LevelEnd| end.high as f64 <= max_width(spec) * end.low as f64;
    let mut groups: Vec<NumberedLevel> = Vec::new();
    for own in ends {
        let fits = |group: &&mut NumberedLevel| {
            !group.has_program(own.0) && group.ends.iter().all(|(.., end)| steep(*end) && ends_overlap(own.2, *end))
        };
        let nearest = groups.iter_mut().filter(fits).min_by_key(|group| group.value().abs_diff(own.2.value));
        match nearest.filter(|_| steep(own.2)) {
            Some(group) => group.ends.push(own),
            None => groups.push(NumberedLevel { ends: vec![own], dissenting: Vec::new() }),
        }
    }
    let place = |name: &str| found.iter().position(|(own, _)| *own == name);
    groups.iter_mut().for_each(|group| group.ends.sort_by_key(|(name, ..)| place(name)));
    groups.sort_by_key(NumberedLevel::value);
    groups
}

/// Adds single ends to a group nearby that lacks their program.
fn join_near_ends<'a>(spec: &LevelsSpec, groups: Vec<NumberedLevel<'a>>) -> Vec<NumberedLevel<'a>> {
    let mut joined: Vec<NumberedLevel> = Vec::new();
    for group in groups {
        match joined.last_mut().filter(|last| may_be_one_level(spec, last, &group)) {
            Some(last) if group.ends.len() == 1 => last.dissenting.extend(group.ends),
            Some(last) if last.ends.len() == 1 => {
                let single = std::mem::replace(last, group);
                last.dissenting.extend(single.ends.into_iter().chain(single.dissenting));
            }
            _ => joined.push(group),
        }
    }
    joined
}

/// Whether two groups may be one level: no program has both ends, one end is single, and they are
/// no farther apart than the edges of one end.
fn may_be_one_level(spec: &LevelsSpec, one: &NumberedLevel, other: &NumberedLevel) -> bool {
    let most = NEAR_FACTOR[usize::from(!spec.fills_randomly)];
    let near = |one: LevelEnd, other: LevelEnd| one.low.max(other.low) as f64 <= most * one.high.min(other.high) as f64;
    other.all_ends().all(|(name, ..)| !one.has_program(name))
        && (one.ends.len() == 1 || other.ends.len() == 1)
        && near(one.ends[0].2, other.ends[0].2)
}

/// The level of each program behind this end; without an end, each program's first level.
pub(super) fn levels_behind<'a>(
    found: &'a [(&'a str, Vec<CurveLevel>)],
    before: Option<&NumberedLevel>,
) -> Vec<(&'a str, &'a CurveLevel)> {
    let level = |(name, levels): &'a (&'a str, Vec<CurveLevel>)| {
        let place = match before {
            None => 0,
            Some(before) => {
                let (.., end) = before.all_ends().find(|(other, ..)| other == name)?;
                1 + levels.iter().position(|level| level.upto == Some(*end))?
            }
        };
        Some((*name, levels.get(place)?))
    };
    found.iter().filter_map(level).collect()
}

pub(super) fn ends_overlap(one: LevelEnd, other: LevelEnd) -> bool {
    let apart = END_TOLERANCE[usize::from(!one.sharp || !other.sharp)];
    let reaches = |one: LevelEnd, other: LevelEnd| one.low as f64 <= other.high as f64 * (1.0 + apart);
    reaches(one, other) && reaches(other, one)
}
