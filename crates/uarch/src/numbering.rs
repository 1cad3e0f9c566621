//! Which ends in the curves of walks are of one level, and which number the level has.

use super::plateau::{End, Level};
use super::test::walk::Walks;

/// The largest factor between the edges of an end, where what is counted fills sets by chance and where not. Where a rise is
/// slower there is no end: costs that drift are of no structure.
const SOFT_MOST: [f64; 2] = [2.5, 1.4];
/// Share by which two ends may lie apart that are the same, where both are sharp and where one is soft.
const APART: [f64; 2] = [0.02, 0.06];

/// What a walk found of a level: its name, the level and its end.
pub(super) type Ended<'a> = (&'a str, &'a Level, End);

/// The end of a level that has a number, in each walk that has it there. Walks agree where the second one is among them.
pub(super) type Group<'a> = Vec<Ended<'a>>;

/// The levels that have a number, and the ends that leave open which number the next end has on which walks agree: those that the first two walks have
/// before it. Where each has one and they are near, it is one level whose end is not known. Past the last end that is agreed on, there may be one more level.
pub(super) fn numbered<'a>(walks: &Walks, found: &'a [(&'a str, Vec<Level>)]) -> (Vec<Group<'a>>, Vec<End>) {
    let (first, levels) = &found[0];
    let second: Vec<End> =
        found.get(1).map_or(Vec::new(), |(_, levels)| levels.iter().filter_map(|level| level.upto).collect());
    let (mut numbered, mut open, mut behind) = (Vec::new(), Vec::<Group>::new(), 0);
    for level in levels {
        let Some(end) = level.upto else { continue };
        let group = group(walks, (*first, level, end), found);
        let place = agreed(&group, found).and_then(|agreed| second.iter().position(|other| *other == agreed));
        let Some(place) = place else {
            open.push(group);
            continue;
        };
        let others = second.get(behind..place);
        match (&open[..], others) {
            ([], Some([])) => {}
            ([own], Some([other])) if near(walks, own[0].2, *other) => numbered.append(&mut open),
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

/// Whether two ends on which walks do not agree may be of one level: no farther apart than the edges of one.
fn near(walks: &Walks, one: End, other: End) -> bool {
    let most = SOFT_MOST[usize::from(!walks.by_chance)];
    one.low.max(other.low) as f64 <= most * one.high.min(other.high) as f64
}

/// Whether the second walk is among those of an end.
pub(super) fn agree(group: &[Ended], found: &[(&str, Vec<Level>)]) -> bool {
    agreed(group, found).is_some()
}

/// The end that the second walk has there.
fn agreed(group: &[Ended], found: &[(&str, Vec<Level>)]) -> Option<End> {
    let (second, _) = found.get(1)?;
    group.iter().find(|(name, ..)| name == second).map(|(.., end)| *end)
}

/// The levels behind the last end that has a number, where the second walk has another end there and the first one has none.
pub(super) fn unshared<'a>(
    numbered: &[Group],
    found: &'a [(&'a str, Vec<Level>)],
) -> Option<Vec<(&'a str, &'a Level)>> {
    let last = numbered.last().filter(|group| agree(group, found))?;
    let levels = begun(found, Some(last));
    let (second, _) = found.get(1)?;
    levels.iter().any(|(name, level)| name == second && level.upto.is_some()).then_some(levels)
}

/// The level of each walk behind the end before it, where the walk has that: of the first level its first one.
pub(super) fn begun<'a>(
    found: &'a [(&'a str, Vec<Level>)],
    before: Option<&Group>,
) -> Vec<(&'a str, &'a Level)> {
    let level = |(name, levels): &'a (&'a str, Vec<Level>)| {
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

/// An end of the first walk and those of the others that overlap with it; none are steep enough where it is not.
fn group<'a>(walks: &Walks, own: Ended<'a>, found: &'a [(&'a str, Vec<Level>)]) -> Vec<Ended<'a>> {
    let most = SOFT_MOST[usize::from(!walks.by_chance)];
    let steep = |end: &End| end.high as f64 <= most * end.low as f64;
    let others = found[1..].iter().filter(|_| steep(&own.2)).filter_map(|(name, levels)| {
        let mut ended = levels.iter().filter_map(|level| Some((*name, level, level.upto.filter(steep)?)));
        ended.find(|(_, _, end)| overlap(own.2, *end))
    });
    std::iter::once(own).chain(others).collect()
}

pub(super) fn overlap(one: End, other: End) -> bool {
    let apart = APART[usize::from(!one.sharp || !other.sharp)];
    let reaches = |one: End, other: End| one.low as f64 <= other.high as f64 * (1.0 + apart);
    reaches(one, other) && reaches(other, one)
}
