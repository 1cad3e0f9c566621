//! From the times of bodies with instances and fillers to the number of dispatch slots.
//!
//! No core runs a body faster than its slots permit, and some lose slots between groups. So the
//! fastest body proves an upper bound. It is the number if two kinds of fillers come to the same
//! whole number, one of them in two numbers: then nothing but the slots limits them.
//!
//! What disturbs a layout makes it slower. So a body counts by its lowest layouts that agree. A faster
//! layout of one body is an accident only if many other bodies have none.

use super::filler_curves::FillerCurves;
use super::slot_reading::SlotReading;
use crate::bodies::slot_body::SlotShape;
use crate::bodies::slot_filler::SlotFiller;
use cyclescope_core::statistics::{Interval, mean};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Slots by which a body may seem faster than it is.
const ERROR_SLOTS: f64 = 0.25;
/// The same as a share of the fillers after an instance: times have an error of some tenths of a per
/// cent.
const ERROR_SHARE: f64 = 0.004;
/// Slots per instance that a core may lose between groups while its number is still certain.
const LOST_SLOTS: f64 = 0.75;
/// A least figure further away from its whole number is between two of them.
const BETWEEN_SLOTS: f64 = 0.5;
/// A layout that is faster than the number by this many slots is a doubt.
const DOUBT_SLOTS: f64 = 0.5;
/// One body with a doubt among this many is an accident of the instrument.
const BODIES_PER_ACCIDENT: usize = 5;
/// A large number holds if it falls by less than this share of the fillers that are added. If something
/// other than the slots limits a body, it falls by all of them.
const FALL_SHARE: f64 = 0.5;
/// From this number on, a core may dispatch an instruction in groups of its own.
const GROUP_LEAST: usize = 3;
/// If so, the fillers in front of it leave the rest of their group empty, almost a whole one for some
/// numbers of fillers. That is so if two numbers lose more than this share of a group.
const GROUP_SHARE: f64 = 0.4;
/// A larger number is no small one.
pub(crate) const SMALL_SLOTS: usize = 8;

/// What is known about the slots of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotVerdict {
    /// The number is certain.
    Exact,
    /// At most this number.
    Upper,
    /// It takes groups of slots of its own, as microcode does.
    Microcoded,
    /// It waits for earlier instructions, or later ones for it, by definition. Dispatch may stop
    /// meanwhile, so time does not show its slots.
    Serialising,
    /// No number was found.
    Unclear,
}

/// Slots per period of a body in each layout, without its fillers, in ascending order.
fn count_beside_fillers(shape: SlotShape, cycles: &[f64], curves: &FillerCurves) -> Vec<f64> {
    let Some(curve) = curves.fastest() else { return Vec::new() };
    let slots = |cycles: &f64| curve.count_slots(*cycles) / shape.copies as f64 - shape.fillers as f64;
    let mut slots: Vec<f64> = cycles.iter().map(slots).collect();
    slots.sort_by(f64::total_cmp);
    slots
}

/// Whether a body with this many fillers after an instance may seem to have another number of slots, in a
/// layout where fillers alone lose this share of their slots. Many lose some by their place in memory, but none
/// is faster than the scale if that was measured undisturbed.
pub(super) fn is_disturbed(fillers: usize, lost: f64) -> bool {
    let error = find_error(fillers);
    !(-error..=DOUBT_SLOTS.max(error)).contains(&(lost * fillers as f64))
}

/// Slots by which a body with this many fillers after an instance may seem faster than it is.
fn find_error(fillers: usize) -> f64 {
    ERROR_SLOTS.max(ERROR_SHARE * fillers as f64)
}

/// The lowest layouts that agree. Without two of them, the lowest alone. `None` without layouts.
fn find_lowest_agreed(slots: &[f64], error: f64) -> Option<Interval> {
    let agreed = slots.windows(2).position(|pair| pair[1] - pair[0] <= error);
    let start = agreed.unwrap_or(0);
    let low = *slots.get(start)?;
    let members: Vec<f64> = slots[start..].iter().copied().take_while(|slots| *slots <= low + error).collect();
    Some(Interval { value: mean(&members), low, high: *members.last()? })
}

/// Slots of an instance in each layout of each reading, in ascending order. What an instance needs takes
/// the least of all controls: they too can only lose slots.
fn count_all_layouts(curves: &FillerCurves, readings: &[SlotReading]) -> Vec<Vec<f64>> {
    let control = |reading: &SlotReading| {
        let slots = count_beside_fillers(reading.shape, reading.control.as_ref()?, curves);
        Some(find_lowest_agreed(&slots, find_error(reading.shape.fillers))?.value)
    };
    let extra = readings.iter().filter_map(control).min_by(f64::total_cmp);
    let count = |reading: &SlotReading| {
        let extra = if reading.control.is_some() { extra } else { Some(0.0) };
        let slots = count_beside_fillers(reading.shape, &reading.cycles, curves);
        extra.map_or(Vec::new(), |extra| slots.into_iter().map(|slots| slots - extra).collect())
    };
    readings.iter().map(count).collect()
}

/// Slots of an instance by each reading. `None` without figures.
pub(crate) fn estimate_all_slots(curves: &FillerCurves, readings: &[SlotReading]) -> Vec<Option<f64>> {
    let layouts = count_all_layouts(curves, readings);
    let estimate = |(reading, slots): (&SlotReading, &Vec<f64>)| {
        find_lowest_agreed(slots, find_error(reading.shape.fillers)).map(|slots| slots.value)
    };
    readings.iter().zip(&layouts).map(estimate).collect()
}

/// Whether more bodies than accidents explain have a layout that is faster than this number of slots.
fn has_doubts(layouts: &[Vec<f64>], whole: usize) -> bool {
    let fastest = || layouts.iter().filter_map(|slots| slots.first());
    let doubts = fastest().filter(|slots| **slots < whole as f64 - DOUBT_SLOTS).count();
    doubts * BODIES_PER_ACCIDENT > fastest().count()
}

/// The number of slots, and how certain it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SlotJudgement {
    /// The verdict.
    pub verdict: SlotVerdict,
    /// The least confirmed figure, with an interval that includes those that agree with it.
    pub slots: Interval,
    /// The whole number that the least figure means. Of a figure between two, the larger one.
    pub whole: usize,
    /// The kinds of fillers that agree.
    pub agreeing: Vec<SlotFiller>,
    /// Whether the other numbers of fillers of a group can show groups of its own.
    pub needs_group_test: bool,
}

impl SlotJudgement {
    /// Judges all readings of a form. `None` without any.
    pub(crate) fn from_readings(curves: &FillerCurves, readings: &[SlotReading]) -> Option<SlotJudgement> {
        let group = curves.width()?.round().max(1.0) as usize;
        let layouts = count_all_layouts(curves, readings);
        let lowest = readings.iter().zip(&layouts).filter_map(|(reading, slots)| {
            Some((reading, find_lowest_agreed(slots, find_error(reading.shape.fillers))?))
        });
        let figures: Vec<(&SlotReading, Interval)> = lowest.collect();
        let (fillers, least) = find_confirmed_least(&figures)?;
        let error = find_error(fillers);
        // Between fillers, an instance has no neighbour to share a slot with.
        let whole = (least.value + error).floor().max(1.0) as usize;
        let is_near = |slots: &Interval| slots.value <= whole as f64 + LOST_SLOTS;
        let near: Vec<&(&SlotReading, Interval)> = figures.iter().filter(|(_, slots)| is_near(slots)).collect();
        let count_numbers = |filler: SlotFiller| {
            let counts = near.iter().filter(|(reading, _)| reading.shape.filler == filler);
            counts.map(|(reading, _)| reading.shape.fillers).collect::<BTreeSet<usize>>().len()
        };
        let agreeing: Vec<SlotFiller> =
            SlotFiller::ALL.into_iter().filter(|filler| count_numbers(*filler) > 0).collect();
        let agrees = agreeing.len() > 1 && agreeing.iter().any(|filler| count_numbers(*filler) > 1);
        let is_large = whole > SMALL_SLOTS;
        let kinds = figures.iter().map(|(reading, _)| reading.shape.filler).collect::<BTreeSet<SlotFiller>>().len();
        let holds = kinds > 1 && SlotFiller::ALL.into_iter().any(|filler| holds_with_fillers(&figures, filler));
        let counted = near.iter().filter(|(reading, _)| agreeing.contains(&reading.shape.filler));
        let ends = counted.fold(least, |all, (_, slots)| Interval {
            low: all.low.min(slots.low),
            high: all.high.max(slots.high),
            ..all
        });
        let second_loss =
            SlotFiller::ALL.into_iter().find_map(|filler| find_second_loss(&figures, filler, group, least.value));
        let may_fill = (GROUP_LEAST..=SMALL_SLOTS).contains(&whole);
        let is_grouped = second_loss.is_some_and(|lost| may_fill && lost >= GROUP_SHARE * (group - 1) as f64);
        let needs_group_test = may_fill && second_loss.is_none();
        let is_between = (least.value - whole as f64).abs() > BETWEEN_SLOTS;
        // The larger of two numbers is the bound.
        let bound = whole + usize::from(is_between && least.value > whole as f64);
        let verdict = match () {
            () if agrees && least.value < -error => SlotVerdict::Unclear,
            () if has_doubts(&layouts, whole) => SlotVerdict::Upper,
            () if is_grouped || is_large && holds => SlotVerdict::Microcoded,
            () if is_large || !agrees || is_between => SlotVerdict::Upper,
            () if !needs_group_test => SlotVerdict::Exact,
            () => SlotVerdict::Upper,
        };
        Some(SlotJudgement { verdict, slots: ends, whole: bound, agreeing, needs_group_test })
    }
}

/// The least figure that a lower one confirms, and its number of fillers. A single one may be an
/// accident of the instrument.
fn find_confirmed_least(figures: &[(&SlotReading, Interval)]) -> Option<(usize, Interval)> {
    let number = |(reading, slots): &(&SlotReading, Interval)| (reading.shape.fillers, *slots);
    let mut slots: Vec<(usize, Interval)> = figures.iter().map(number).collect();
    slots.sort_by(|one, other| one.1.value.total_cmp(&other.1.value));
    let confirmed = slots.windows(2).find(|pair| pair[1].1.value - pair[0].1.value <= ERROR_SLOTS);
    confirmed.map_or(slots.get(1).or(slots.first()), <[(usize, Interval)]>::last).copied()
}

/// Whether a number stays about the same with more fillers of this kind.
fn holds_with_fillers(figures: &[(&SlotReading, Interval)], filler: SlotFiller) -> bool {
    let own = figures.iter().filter(|(reading, _)| reading.shape.filler == filler);
    let by_count = own.map(|(reading, slots)| (reading.shape.fillers, slots.value));
    let order = |one: &(usize, f64), other: &(usize, f64)| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1));
    let fewest = by_count.clone().min_by(order);
    let most = by_count.max_by(|one, other| one.0.cmp(&other.0).then(other.1.total_cmp(&one.1)));
    fewest
        .zip(most)
        .is_some_and(|((few, before), (many, after))| many > few && before - after < FALL_SHARE * (many - few) as f64)
}

/// Slots beyond the least among the bodies of this filler: the second most over all numbers of fillers
/// of a group. `None` if one of these numbers has no body. A body is an accident of the instrument if it seems to need
/// less than no slot, or less than the confirmed least by more than a group can lose.
fn find_second_loss(
    figures: &[(&SlotReading, Interval)],
    filler: SlotFiller,
    group: usize,
    confirmed: f64,
) -> Option<f64> {
    let is_possible = |(reading, slots): &&(&SlotReading, Interval)| {
        let least = (confirmed - (group - 1) as f64).max(-find_error(reading.shape.fillers));
        reading.shape.filler == filler && slots.value >= least
    };
    let own = || figures.iter().filter(is_possible);
    let least_at = |place: usize| {
        let here = own().filter(|(reading, _)| reading.shape.fillers % group == place);
        here.map(|(_, slots)| slots.value).min_by(f64::total_cmp)
    };
    let mut slots = (0..group).map(least_at).collect::<Option<Vec<f64>>>()?;
    slots.sort_by(f64::total_cmp);
    Some(slots[slots.len().saturating_sub(2)] - slots[0])
}

#[cfg(test)]
mod tests {
    use super::super::filler_curves::tests::curves_with_rates;
    use super::*;

    const WIDTH: f64 = 8.0;

    fn curves() -> FillerCurves {
        curves_with_rates(&[(SlotFiller::ZeroIdiom, WIDTH), (SlotFiller::Blend, WIDTH)])
    }

    /// Readings of a form that takes these slots among this number of fillers.
    fn reading(filler: SlotFiller, fillers: usize, slots: f64) -> SlotReading {
        let shape = SlotShape { filler, vex: false, fillers, copies: 4 };
        let cycles = (4.0 * (fillers as f64 + slots) + 1.0) / WIDTH;
        SlotReading { shape, extra: 0, cycles: vec![cycles; 3], control: None, disturbed: Vec::new() }
    }

    fn judge(readings: &[SlotReading]) -> SlotJudgement {
        SlotJudgement::from_readings(&curves(), readings).unwrap()
    }

    /// Two numbers of fillers of each kind.
    fn all_with(counts: [usize; 2], slots: [f64; 2]) -> Vec<SlotReading> {
        let kinds = [SlotFiller::ZeroIdiom, SlotFiller::Blend];
        let of = |(filler, slots): (SlotFiller, f64)| counts.map(|fillers| reading(filler, fillers, slots));
        kinds.into_iter().zip(slots).flat_map(of).collect()
    }

    #[test]
    fn two_fillers_and_two_numbers_make_it_exact() {
        let agreed = judge(&all_with([15, 23], [1.02, 1.3]));
        assert_eq!((agreed.verdict, agreed.whole), (SlotVerdict::Exact, 1));
        assert!(agreed.slots.low < 1.03 && agreed.slots.high > 1.29, "{:?}", agreed.slots);
        let apart = judge(&all_with([15, 23], [1.0, 2.0]));
        assert_eq!((apart.verdict, apart.whole), (SlotVerdict::Upper, 1));
        let three = all_with([15, 23], [1.02, 1.3]);
        assert_eq!(judge(&three[..3]).verdict, SlotVerdict::Exact, "one of the kinds has two numbers");
        let one_number = judge(&[reading(SlotFiller::ZeroIdiom, 15, 1.0), reading(SlotFiller::Blend, 15, 1.0)]);
        assert_eq!(one_number.verdict, SlotVerdict::Upper, "a fixed number of fillers proves no slope");
        assert_eq!(SlotJudgement::from_readings(&curves(), &[]), None);
    }

    #[test]
    fn a_layout_is_disturbed_if_its_fillers_may_hide_a_slot() {
        // Zen 3 beside a shell's loop: 2 slots of a form that has one.
        assert!(is_disturbed(31, 0.036) && is_disturbed(31, -0.036));
        assert!(!is_disturbed(31, 0.015) && !is_disturbed(31, -0.007));
        assert!(is_disturbed(31, -0.01), "the scale was measured in a disturbed moment");
        let error = |fillers: usize| find_error(fillers) / fillers as f64;
        assert!(!is_disturbed(200, 0.99 * error(200)), "times have such errors");
        assert!(is_disturbed(200, 1.01 * error(200)));
    }

    #[test]
    fn a_faster_number_of_fillers_counts() {
        let mut readings = all_with([15, 23], [2.3, 2.4]);
        readings.extend(all_with([14, 22], [2.0, 2.1]));
        assert_eq!((judge(&readings).verdict, judge(&readings).whole), (SlotVerdict::Exact, 2));
        assert_eq!(judge(&all_with([15, 23], [30.0, 31.0])).verdict, SlotVerdict::Microcoded);
        // The time of a period does not depend on its fillers.
        let limited = [15, 23].map(|fillers| reading(SlotFiller::ZeroIdiom, fillers, 53.0 - fillers as f64));
        assert_eq!(judge(&limited).verdict, SlotVerdict::Upper);
    }

    #[test]
    fn a_single_fast_body_proves_nothing() {
        let mut readings = all_with([15, 23], [1.0, 1.1]);
        readings.push(reading(SlotFiller::Blend, 31, 0.1));
        assert_eq!((judge(&readings).verdict, judge(&readings).whole), (SlotVerdict::Exact, 1));
    }

    #[test]
    fn disturbed_layouts_do_not_hide_faster_ones() {
        let with_layouts = |layouts: &[f64]| {
            let mut readings = all_with([15, 23], [1.0, 1.0]);
            for one in &mut readings {
                one.cycles = layouts
                    .iter()
                    .map(|slots| reading(one.shape.filler, one.shape.fillers, *slots).cycles[0])
                    .collect();
            }
            judge(&readings)
        };
        let disturbed = with_layouts(&[0.98, 1.02, 4.1]);
        assert_eq!((disturbed.verdict, disturbed.whole), (SlotVerdict::Exact, 1));
        assert!((disturbed.slots.value - 1.0).abs() < 1e-9 && disturbed.slots.high < 1.1, "{:?}", disturbed.slots);
        // A body's lowest layout may be a little too low. Another body confirms the number.
        let mut low = all_with([15, 23], [1.0, 1.0]);
        low[0] = reading(SlotFiller::ZeroIdiom, 15, 0.72);
        low[1] = reading(SlotFiller::ZeroIdiom, 23, 0.91);
        assert_eq!((judge(&low).verdict, judge(&low).whole), (SlotVerdict::Exact, 1));
        // Between two numbers, none is certain, and the larger one is the bound.
        let between = all_with([15, 23], [1.6, 1.7]);
        assert_eq!((judge(&between).verdict, judge(&between).whole), (SlotVerdict::Upper, 2));
        // Only one layout of each body was undisturbed.
        assert_eq!(with_layouts(&[1.0, 1.9, 2.0]).verdict, SlotVerdict::Upper);
    }

    #[test]
    fn groups_of_its_own_are_no_small_number() {
        let agreed = all_with([18, 26], [6.0, 6.1]);
        assert!(judge(&agreed).needs_group_test && judge(&agreed).verdict == SlotVerdict::Upper);
        let with_all = |slots: fn(usize) -> f64| {
            let more = (18..26).map(|fillers| reading(SlotFiller::ZeroIdiom, fillers, slots(fillers)));
            judge(&agreed.iter().cloned().chain(more).collect::<Vec<_>>()).verdict
        };
        assert_eq!(with_all(|_| 6.0), SlotVerdict::Exact);
        // The fillers fill three groups or four, and the instance one more.
        assert_eq!(with_all(|fillers| (fillers.div_ceil(8) * 8 - fillers + 8) as f64), SlotVerdict::Microcoded);
    }

    #[test]
    fn what_an_instance_needs_is_subtracted() {
        let with = reading(SlotFiller::ZeroIdiom, 15, 3.0);
        let without = reading(SlotFiller::ZeroIdiom, 15, 1.0);
        let both = SlotReading { control: Some(without.cycles), ..with };
        // This control lost slots.
        let lost = SlotReading { control: Some(reading(SlotFiller::ZeroIdiom, 15, 1.5).cycles), ..both.clone() };
        for slots in estimate_all_slots(&curves(), &[both, lost]) {
            assert!((slots.unwrap() - 2.0).abs() < 1e-9);
        }
    }
}
