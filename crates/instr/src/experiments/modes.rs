//! From the layouts of one program to a cost. Layouts that agree form a mode, and one mode is
//! chosen.

use cyclescope_core::statistics::{Interval, mean, t_interval};

/// Successive figures belong to one mode within this share and this many core cycles.
pub(crate) const MODE_SHARE: f64 = 0.015;

const MODE_CYCLES: f64 = 0.005;

/// Two modes are separate if the gap between them is this many times the usual distance of
/// successive figures. In a wide spread, a smaller gap may be chance.
const GAP_FACTOR: f64 = 8.0;

/// A rate is proved if this many layouts sustained it. A single layout may be an accident of the
/// instrument. Slower layouts say nothing against it.
const PROVED_LAYOUTS: usize = 2;

/// Systematic error of a cost in all layouts, as a share. See `ruler::INSTRUMENT_CYCLES`, for
/// rulers of several thousand cycles.
const INSTRUMENT_SHARE: f64 = 0.0002;

/// A cost with its interval, and the other modes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModeEstimate {
    /// The cost by the chosen mode.
    pub cost: Interval,
    /// The means of the modes above it.
    pub others: Vec<f64>,
}

/// The lowest proved mode: the best sustained throughput.
pub(crate) fn estimate_lowest_mode(values: &[f64], confidence: f64) -> Option<ModeEstimate> {
    let modes = split_modes(values);
    let chosen = find_proved_mode(&modes);
    estimate_mode(&modes, chosen, confidence)
}

/// The range of the lowest proved mode, or of all layouts without such a mode. `None` without
/// layouts.
pub(crate) fn find_lowest_mode(values: &[f64]) -> Option<Interval> {
    let modes = split_modes(values);
    let mode = find_proved_mode(&modes).map_or_else(|| modes.concat(), |mode| modes[mode].clone());
    Some(Interval { value: mean(&mode), low: *mode.first()?, high: *mode.last()? })
}

/// Each mode's mean and its share of the layouts, the lowest mode first.
pub(crate) fn list_modes(values: &[f64]) -> Vec<(f64, f64)> {
    let modes = split_modes(values);
    let all: usize = modes.iter().map(Vec::len).sum();
    modes.iter().map(|mode| (mean(mode), mode.len() as f64 / all as f64)).collect()
}

/// Whether any mode is proved.
pub(crate) fn is_proved(values: &[f64]) -> bool {
    find_proved_mode(&split_modes(values)).is_some()
}

/// Whether all figures are within the width of one mode.
pub(crate) fn is_one_mode(values: impl Iterator<Item = f64> + Clone) -> bool {
    let least = values.clone().fold(f64::INFINITY, f64::min);
    values.fold(f64::NEG_INFINITY, f64::max) - least <= mode_width(least)
}

/// The index of the lowest proved mode.
fn find_proved_mode(modes: &[Vec<f64>]) -> Option<usize> {
    modes.iter().position(|mode| mode.len() >= PROVED_LAYOUTS)
}

/// The mode with the most layouts, the lower one of a tie: the cost of a chain.
pub(crate) fn estimate_largest_mode(values: &[f64], confidence: f64) -> Option<ModeEstimate> {
    let modes = split_modes(values);
    let most = modes.iter().map(Vec::len).max().filter(|most| *most > 1);
    let chosen = most.and_then(|most| modes.iter().position(|mode| mode.len() == most));
    estimate_mode(&modes, chosen, confidence)
}

/// The finite figures in ascending order.
fn sort_finite(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The maximum distance of a mode's next figure from this one.
pub(crate) fn mode_width(from: f64) -> f64 {
    MODE_SHARE * from.abs() + MODE_CYCLES
}

/// Splits figures into modes wherever the gap exceeds chance. A fixed width would cut a wide spread
/// into pieces. The lowest piece would be too low, and the fullest too narrow and different in each
/// run.
fn split_modes(values: &[f64]) -> Vec<Vec<f64>> {
    let sorted = sort_finite(values);
    let gaps: Vec<f64> = sorted.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // With an even number of gaps, takes the lower middle one. With few layouts, outliers would
    // otherwise merge all modes.
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

/// Estimates from the chosen mode, or from all layouts if none is chosen.
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

/// Widens a cost by its systematic error.
pub(crate) fn add_instrument_error(cost: Interval) -> Interval {
    cost.widen_by(2.0 * INSTRUMENT_SHARE * cost.value.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_core::random::Random;
    use cyclescope_core::statistics::normal_quantile;

    /// Layouts of a chain of 23 core cycles with this standard deviation. On Zen 5, chains of 23
    /// cycles through memory have a deviation of 0.1.
    fn layouts(random: &mut Random, deviation: f64) -> Vec<f64> {
        let uniform = |random: &mut Random| (random.below(1 << 30) as f64 + 0.5) / f64::from(1 << 30);
        (0..12).map(|_| 23.0 + deviation * normal_quantile(uniform(random))).collect()
    }

    #[test]
    fn a_wide_spread_is_one_mode_and_its_interval_contains_the_true_cost() {
        let mut random = Random::new(3);
        for deviation in [0.02, 0.1, 0.2] {
            let trials = 2000;
            let estimates = (0..trials).map(|_| estimate_largest_mode(&layouts(&mut random, deviation), 0.95).unwrap());
            let held = estimates.filter(|estimate| estimate.cost.contains(23.0)).count();
            let share = held as f64 / f64::from(trials);
            assert!(share >= 0.93, "standard deviation {deviation}: {share}");
        }
    }
}
