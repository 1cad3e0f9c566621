//! From the layouts of one program to a cost: layouts that agree form a mode, and one of the modes is the answer.

use crate::statistics::{Interval, mean, t_interval};

/// Layouts belong to one mode within this share of its lowest and this many core cycles.
pub(in crate::study::instr) const MODE_SHARE: f64 = 0.015;

const MODE_CYCLES: f64 = 0.005;

/// A mode counts if it has this share of the layouts.
const FAIR_SHARE: f64 = 0.25;

/// What a cost can be off in every layout alike, as a share: see `ruler::INSTRUMENT_CYCLES`, for rulers of some
/// thousand cycles.
const INSTRUMENT_SHARE: f64 = 0.0002;

/// A value with its interval, and what else was seen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Estimate {
    /// What the layouts of the chosen mode say.
    pub cost: Interval,
    /// The means of the modes above it.
    pub others: Vec<f64>,
}

/// The lowest mode that a fair part of some layouts share: the best rate that was sustained.
pub(crate) fn lowest(values: &[f64], confidence: f64) -> Option<Estimate> {
    let modes = clusters(values);
    let all: usize = modes.iter().map(Vec::len).sum();
    let least = ((all as f64 * FAIR_SHARE).ceil() as usize).max(2);
    let chosen = modes.iter().position(|mode| mode.len() >= least);
    estimate(&modes, chosen, confidence)
}

/// The mode that most layouts share, the lower of two as large: what a chain takes.
pub(crate) fn usual(values: &[f64], confidence: f64) -> Option<Estimate> {
    let modes = clusters(values);
    let most = modes.iter().map(Vec::len).max().filter(|most| *most > 1);
    let chosen = most.and_then(|most| modes.iter().position(|mode| mode.len() == most));
    estimate(&modes, chosen, confidence)
}

/// The layouts' modes, from the lowest to the highest.
fn clusters(values: &[f64]) -> Vec<Vec<f64>> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let near = |value: f64, base: f64| (value - base).abs() <= MODE_SHARE * base.abs() + MODE_CYCLES;
    let mut modes: Vec<Vec<f64>> = Vec::new();
    for value in sorted {
        match modes.last_mut() {
            Some(mode) if near(value, mode[0]) => mode.push(value),
            _ => modes.push(vec![value]),
        }
    }
    modes
}

/// From one of the modes; where none stands out, from all layouts.
fn estimate(modes: &[Vec<f64>], chosen: Option<usize>, confidence: f64) -> Option<Estimate> {
    let all = modes.concat();
    if all.is_empty() {
        return None;
    }
    let values = chosen.map_or(&all, |mode| &modes[mode]);
    let cost = t_interval(values, confidence).unwrap_or(Interval::around(mean(values), f64::INFINITY));
    let others = modes.iter().enumerate().filter(|(index, _)| chosen.is_some_and(|chosen| *index > chosen));
    Some(Estimate {
        cost: cost.widened(2.0 * INSTRUMENT_SHARE * cost.value.abs()),
        others: others.map(|(_, mode)| mean(mode)).collect(),
    })
}
