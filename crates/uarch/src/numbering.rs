//! Which ends of different curves belong to one level, and the level's number.

use super::plateau::{CurveLevel, LevelEnd};
use super::spec::LevelsSpec;

/// The largest factor between the edges of an end: if items fill sets by chance, and if not. A
/// slower rise is no end: drifting costs belong to no structure.
const SOFT_MOST: [f64; 2] = [2.5, 1.4];
/// Share by which two equal ends may differ: if both are sharp, and if one is soft.
const END_TOLERANCE: [f64; 2] = [0.02, 0.06];

/// A level that a program has: the program's name, the level and its end.
pub(super) type EndedLevel<'a> = (&'a str, &'a CurveLevel, LevelEnd);

/// The ends of a numbered level, one per program that has it. Programs agree if the second one is
/// among them.
pub(super) type LevelGroup<'a> = Vec<EndedLevel<'a>>;

/// The numbered levels, and the ends that leave the next number open. These are the ends of the
/// first two programs before the next end on which they agree. If each has one and they are near,
/// they are one level of unknown end. One more level may follow the last agreed end.
pub(super) fn number_levels<'a>(
    spec: &LevelsSpec,
    found: &'a [(&'a str, Vec<CurveLevel>)],
) -> (Vec<LevelGroup<'a>>, Vec<LevelEnd>) {
    let (first, levels) = &found[0];
    let second: Vec<LevelEnd> =
        found.get(1).map_or(Vec::new(), |(_, levels)| levels.iter().filter_map(|level| level.upto).collect());
    let (mut numbered, mut open, mut behind) = (Vec::new(), Vec::<LevelGroup>::new(), 0);
    for level in levels {
        let Some(end) = level.upto else { continue };
        let group = group_ends(spec, (*first, level, end), found);
        let place = agreed_end(&group, found).and_then(|agreed| second.iter().position(|other| *other == agreed));
        let Some(place) = place else {
            open.push(group);
            continue;
        };
        let others = second.get(behind..place);
        match (&open[..], others) {
            ([], Some([])) => {}
            ([own], Some([other])) if may_be_one_level(spec, own[0].2, *other) => numbered.append(&mut open),
            _ => {
                let own = open.iter().map(|group| group[0].2);
                return (numbered, own.chain(others.unwrap_or(&[end]).iter().copied()).collect());
            }
        }
        behind = place + 1;
        numbered.push(group);
    }
    numbered.extend(open.into_iter().next());
    (numbered, Vec::new())
}

/// Whether two different ends may belong to one level: they are no farther apart than the edges of
/// one end.
fn may_be_one_level(spec: &LevelsSpec, one: LevelEnd, other: LevelEnd) -> bool {
    let most = SOFT_MOST[usize::from(!spec.fills_randomly)];
    one.low.max(other.low) as f64 <= most * one.high.min(other.high) as f64
}

/// Whether the second program is among the programs of an end.
pub(super) fn is_agreed(group: &[EndedLevel], found: &[(&str, Vec<CurveLevel>)]) -> bool {
    agreed_end(group, found).is_some()
}

/// The second program's end in this group.
fn agreed_end(group: &[EndedLevel], found: &[(&str, Vec<CurveLevel>)]) -> Option<LevelEnd> {
    let (second, _) = found.get(1)?;
    group.iter().find(|(name, ..)| name == second).map(|(.., end)| *end)
}

/// The levels behind the last numbered end, if only the second program has another end there.
pub(super) fn find_unshared_levels<'a>(
    numbered: &[LevelGroup],
    found: &'a [(&'a str, Vec<CurveLevel>)],
) -> Option<Vec<(&'a str, &'a CurveLevel)>> {
    let last = numbered.last().filter(|group| is_agreed(group, found))?;
    let levels = levels_behind(found, Some(last));
    let (second, _) = found.get(1)?;
    levels.iter().any(|(name, level)| name == second && level.upto.is_some()).then_some(levels)
}

/// The level of each program behind this end; without an end, each program's first level.
pub(super) fn levels_behind<'a>(
    found: &'a [(&'a str, Vec<CurveLevel>)],
    before: Option<&LevelGroup>,
) -> Vec<(&'a str, &'a CurveLevel)> {
    let level = |(name, levels): &'a (&'a str, Vec<CurveLevel>)| {
        let place = match before {
            None => 0,
            Some(before) => {
                let (.., end) = before.iter().find(|(other, ..)| other == name)?;
                1 + levels.iter().position(|level| level.upto == Some(*end))?
            }
        };
        Some((*name, levels.get(place)?))
    };
    found.iter().filter_map(level).collect()
}

/// An end of the first program, and the ends of other programs that overlap with it; empty if it is
/// not steep enough.
fn group_ends<'a>(
    spec: &LevelsSpec,
    own: EndedLevel<'a>,
    found: &'a [(&'a str, Vec<CurveLevel>)],
) -> Vec<EndedLevel<'a>> {
    let most = SOFT_MOST[usize::from(!spec.fills_randomly)];
    let steep = |end: &LevelEnd| end.high as f64 <= most * end.low as f64;
    let others = found[1..].iter().filter(|_| steep(&own.2)).filter_map(|(name, levels)| {
        let mut ended = levels.iter().filter_map(|level| Some((*name, level, level.upto.filter(steep)?)));
        ended.find(|(_, _, end)| ends_overlap(own.2, *end))
    });
    std::iter::once(own).chain(others).collect()
}

pub(super) fn ends_overlap(one: LevelEnd, other: LevelEnd) -> bool {
    let apart = END_TOLERANCE[usize::from(!one.sharp || !other.sharp)];
    let reaches = |one: LevelEnd, other: LevelEnd| one.low as f64 <= other.high as f64 * (1.0 + apart);
    reaches(one, other) && reaches(other, one)
}
