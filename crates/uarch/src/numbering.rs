//! Which ends in the curves of walks are of one level, and which number the level has.

use super::plateau::{CurveLevel, LevelEnd};
use super::spec::LevelsSpec;

/// The largest factor between the edges of an end, where what is counted fills sets by chance and
/// where not. Where a rise is slower there is no end: costs that drift are of no structure.
const SOFT_MOST: [f64; 2] = [2.5, 1.4];
/// Share by which two ends may lie apart that are the same, where both are sharp and where one is
/// soft.
const END_TOLERANCE: [f64; 2] = [0.02, 0.06];

/// What a walk found of a level: its name, the level and its end.
pub(super) type EndedLevel<'a> = (&'a str, &'a CurveLevel, LevelEnd);

/// The end of a level that has a number, in each walk that has it there. Walks agree where the
/// second one is among them.
pub(super) type LevelGroup<'a> = Vec<EndedLevel<'a>>;

/// The levels that have a number, and the ends that leave open which number the next end has on
/// which walks agree: those that the first two walks have before it. Where each has one and they
/// are near, it is one level whose end is not known. Past the last end that is agreed on, there may
/// be one more level.
pub(super) fn number_levels<'a>(
    walks: &LevelsSpec,
    found: &'a [(&'a str, Vec<CurveLevel>)],
) -> (Vec<LevelGroup<'a>>, Vec<LevelEnd>) {
    let (first, levels) = &found[0];
    let second: Vec<LevelEnd> =
        found.get(1).map_or(Vec::new(), |(_, levels)| levels.iter().filter_map(|level| level.upto).collect());
    let (mut numbered, mut open, mut behind) = (Vec::new(), Vec::<LevelGroup>::new(), 0);
    for level in levels {
        let Some(end) = level.upto else { continue };
        let group = group_ends(walks, (*first, level, end), found);
        let place = agreed_end(&group, found).and_then(|agreed| second.iter().position(|other| *other == agreed));
        let Some(place) = place else {
            open.push(group);
            continue;
        };
        let others = second.get(behind..place);
        match (&open[..], others) {
            ([], Some([])) => {}
            ([own], Some([other])) if may_be_one_level(walks, own[0].2, *other) => numbered.append(&mut open),
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

/// Whether two ends on which walks do not agree may be of one level: no farther apart than the
/// edges of one.
fn may_be_one_level(walks: &LevelsSpec, one: LevelEnd, other: LevelEnd) -> bool {
    let most = SOFT_MOST[usize::from(!walks.fills_randomly)];
    one.low.max(other.low) as f64 <= most * one.high.min(other.high) as f64
}

/// Whether the second walk is among those of an end.
pub(super) fn is_agreed(group: &[EndedLevel], found: &[(&str, Vec<CurveLevel>)]) -> bool {
    agreed_end(group, found).is_some()
}

/// The end that the second walk has there.
fn agreed_end(group: &[EndedLevel], found: &[(&str, Vec<CurveLevel>)]) -> Option<LevelEnd> {
    let (second, _) = found.get(1)?;
    group.iter().find(|(name, ..)| name == second).map(|(.., end)| *end)
}

/// The levels behind the last end that has a number, where the second walk has another end there
/// and the first one has none.
pub(super) fn find_unshared_levels<'a>(
    numbered: &[LevelGroup],
    found: &'a [(&'a str, Vec<CurveLevel>)],
) -> Option<Vec<(&'a str, &'a CurveLevel)>> {
    let last = numbered.last().filter(|group| is_agreed(group, found))?;
    let levels = levels_behind(found, Some(last));
    let (second, _) = found.get(1)?;
    levels.iter().any(|(name, level)| name == second && level.upto.is_some()).then_some(levels)
}

/// The level of each walk behind the end before it, where the walk has that: of the first level its
/// first one.
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

/// An end of the first walk and those of the others that overlap with it; none are steep enough
/// where it is not.
fn group_ends<'a>(
    walks: &LevelsSpec,
    own: EndedLevel<'a>,
    found: &'a [(&'a str, Vec<CurveLevel>)],
) -> Vec<EndedLevel<'a>> {
    let most = SOFT_MOST[usize::from(!walks.fills_randomly)];
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
