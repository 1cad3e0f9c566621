//! From the layouts of one program to a cost: layouts that agree form a mode, and one of the modes is the answer.

use cyclescope_core::statistics::{Interval, mean, t_interval};

/// Neighbours belong to one mode within this share of a figure and this many core cycles.
pub(crate) const MODE_SHARE: f64 = 0.015;

const MODE_CYCLES: f64 = 0.005;

/// Two modes are apart where the gap between them is this many times the distance of two neighbours: a smaller gap may be
/// chance in a wide spread.
const GAP_FACTOR: f64 = 8.0;

/// A mode counts if it has this share of the layouts.
const FAIR_SHARE: f64 = 0.25;

/// What a cost can be off in every layout alike, as a share: see `ruler::INSTRUMENT_CYCLES`, for rulers of some
/// thousand cycles.
const INSTRUMENT_SHARE: f64 = 0.0002;

/// A value with its interval, and what else was seen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModeEstimate {
    /// What the layouts of the chosen mode say.
    pub cost: Interval,
    /// The means of the modes above it.
    pub others: Vec<f64>,
}

/// The lowest mode that a fair part of some layouts share: the best rate that was sustained.
pub(crate) fn estimate_lowest(values: &[f64], confidence: f64) -> Option<ModeEstimate> {
    let modes = split_modes(values);
    let chosen = find_fair_mode(&modes);
    estimate_mode(&modes, chosen, confidence)
}

/// The range of that mode; of all layouts where none stands out, and `None` without any.
pub(crate) fn find_lowest_mode(values: &[f64]) -> Option<Interval> {
    let modes = split_modes(values);
    let mode = find_fair_mode(&modes).map_or_else(|| modes.concat(), |mode| modes[mode].clone());
    Some(Interval { value: mean(&mode), low: *mode.first()?, high: *mode.last()? })
}

/// The place of the lowest mode that a fair part of the layouts share.
fn find_fair_mode(modes: &[Vec<f64>]) -> Option<usize> {
    let all: usize = modes.iter().map(Vec::len).sum();
    let least = ((all as f64 * FAIR_SHARE).ceil() as usize).max(2);
    modes.iter().position(|mode| mode.len() >= least)
}

/// The mode that most layouts share, the lower of two as large: what a chain takes.
pub(crate) fn estimate_usual(values: &[f64], confidence: f64) -> Option<ModeEstimate> {
    let modes = split_modes(values);
    let most = modes.iter().map(Vec::len).max().filter(|most| *most > 1);
    let chosen = most.and_then(|most| modes.iter().position(|mode| mode.len() == most));
    estimate_mode(&modes, chosen, confidence)
}

/// Figures in ascending order.
fn sort_finite(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// How far the next layout of a mode may lie from this one.
fn mode_width(from: f64) -> f64 {
    MODE_SHARE * from.abs() + MODE_CYCLES
}

/// Modes of layouts that lie no further from the next one than they would by chance. The same width for all would cut a wide
/// spread in pieces: the lowest piece is too low, and the fullest one is narrower than the spread and elsewhere in each run.
fn split_modes(values: &[f64]) -> Vec<Vec<f64>> {
    let sorted = sort_finite(values);
    let gaps: Vec<f64> = sorted.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // Of two in the middle the lower: of few layouts, those far away would make all one.
    let gaps = sort_finite(&gaps);
    let usual = gaps.get(gaps.len().saturating_sub(1) / 2).copied().unwrap_or(0.0);
    let mut modes: Vec<Vec<f64>> = Vec::new();
    for value in sorted {
        let last = modes.last().and_then(|mode| mode.last());
        match last.is_some_and(|last| value - last <= mode_width(*last).max(GAP_FACTOR * usual)) {
            true => modes.last_mut().expect("it has a last figure").push(value),
            false => modes.push(vec![value]),
        }
    }
    modes
}

/// From one of the modes; where none stands out, from all layouts.
fn estimate_mode(modes: &[Vec<f64>], chosen: Option<usize>, confidence: f64) -> Option<ModeEstimate> {
    let all = modes.concat();
    if all.is_empty() {
        return None;
    }
    let values = chosen.map_or(&all, |mode| &modes[mode]);
    let cost = t_interval(values, confidence).unwrap_or(Interval::with_margin(mean(values), f64::INFINITY));
    let others = modes.iter().enumerate().filter(|(index, _)| chosen.is_some_and(|chosen| *index > chosen));
    Some(ModeEstimate { cost: add_instrument_error(cost), others: others.map(|(_, mode)| mean(mode)).collect() })
}

/// A cost with what it can be off in every layout alike.
pub(crate) fn add_instrument_error(cost: Interval) -> Interval {
    cost.widen_by(2.0 * INSTRUMENT_SHARE * cost.value.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_core::random::Random;
    use cyclescope_core::statistics::normal_quantile;

    /// Layouts of a chain around 23 core cycles with this standard deviation: what chains through memory of 23 cycles have on
    /// Zen 5 is 0.1.
    fn layouts(random: &mut Random, deviation: f64) -> Vec<f64> {
        let uniform = |random: &mut Random| (random.below(1 << 30) as f64 + 0.5) / f64::from(1 << 30);
        (0..12).map(|_| 23.0 + deviation * normal_quantile(uniform(random))).collect()
    }

    #[test]
    fn a_wide_spread_of_one_chain_is_one_mode_and_its_interval_holds_the_truth() {
        let mut random = Random::new(3);
        for deviation in [0.02, 0.1, 0.2] {
            let trials = 2000;
            let some = (0..trials).map(|_| estimate_usual(&layouts(&mut random, deviation), 0.95).unwrap());
            let held = some.filter(|estimate| estimate.cost.contains(23.0)).count();
            let share = held as f64 / f64::from(trials);
            assert!(share >= 0.93, "standard deviation {deviation}: {share}");
        }
    }
}
