//! From raw durations to a cost with an interval.
//!
//! A round holds the snippet at three lengths, about u, 2u and 4u copies, and the ruler at two. The exact numbers
//! of copies vary from layout to layout: where a body ends moves its time by a cycle or two (measured: 1 cycle
//! with the parity of an `addps` chain, 2.8 cycles for 100 `div` against 50 or 150), which is the same in every
//! round of one length and would be a bias, and becomes part of the spread between layouts. Within a layout
//! rounds that an interrupt hit are dropped whole, the rest are summed, and the slope between u and 4u copies,
//! divided by the slope of the ruler, is that layout's cost in core cycles: a ratio of sums. Across layouts a
//! t-interval is taken, since layouts differ by more than rounds do. The slopes u to 2u and 2u to 4u must
//! agree, or the cost is not proportional to the number of copies and no number is given.
//!
//! Everything here is a pure function of the durations, so that a result can be computed again from its
//! evidence.

mod disturbance;
mod frequency;
mod layout;

pub(crate) use layout::{LayoutData, LayoutEstimate, RoundShape, call};

use super::contrast::Contrast;
use super::modes::{CostMode, CostModes};
use crate::ruler::shared_margin;
use crate::sibling::KeptReplicates;
use cyclescope_core::statistics::{self, Interval, value_range};
use serde::Serialize;
use std::collections::BTreeMap;

/// The cost of a snippet, and the figures that support it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostEstimate {
    /// Core cycles a copy; where there are several modes, of the one that most layouts are in.
    pub cost: Interval,
    /// Raw units of the clock a copy, of the same layouts.
    pub raw: Interval,
    /// Modes in ascending order of cost; empty where the layouts form one cluster.
    pub modes: Vec<CostMode>,
    /// Slope from 2u to 4u less slope from u to 2u, in core cycles a copy, with a 99.9 % interval.
    pub bend: Interval,
    /// Change of the cost from the first half of the rounds to the second, with a 99.9 % interval.
    pub trend: Interval,
    /// What rounds in which the core clock's frequency changed add to the cost, in core cycles a copy, with a 99.9 %
    /// interval; `None` where most layouts have too few other rounds.
    pub changing: Option<Interval>,
    /// Core cycles of one link of the `add` chain.
    pub add_link: Interval,
    /// Raw units of the clock a core cycle, over all layouts: lowest, mean, highest.
    pub rate: [f64; 3],
    /// Independent additions a core cycle, over all layouts: lowest, median, highest.
    pub width: [f64; 3],
    /// Whether most layouts found the core shared with a busy sibling.
    pub shared: bool,
    /// Estimate of each layout.
    pub layouts: Vec<LayoutEstimate>,
    /// Rounds used, in all layouts.
    pub kept: usize,
    /// Rounds dropped, in all layouts.
    pub dropped: usize,
}

/// Confidence level of the tests for a bend and a trend: a false alarm refuses a good number.
const CERTAIN_CONFIDENCE: f64 = 0.999;

/// Smallest spread within a cluster that is used to separate modes, as a share of the cost.
const MODE_SHARE: f64 = 0.01;

/// Standard deviation, as a share of that of layouts, by which the mean of trained layouts differs from one measurement to the
/// next: layouts of one measurement find predictors in the same state, and learn as fast or as slowly. (Six functions of which some
/// layouts had not learnt, in five measurements each on Zen 5: these lay within one standard deviation of layouts of each other.)
const SAME_STATE_SHARE: f64 = 0.5;

/// Estimates a cost, a sum over the snippets of the rounds, from the durations of layouts, at a level of confidence such
/// as 0.95.
///
/// `None` where fewer than two layouts had enough undisturbed rounds.
pub fn estimate_cost(
    layouts: &[LayoutData],
    shape: &RoundShape,
    cost: &Contrast,
    confidence: f64,
) -> Option<CostEstimate> {
    if layouts.is_empty() {
        return None;
    }
    let limits = disturbance::find_outlier_limits(layouts, shape.step);
    let usable = layouts.iter().zip(&limits);
    let usable = usable.filter_map(|(layout, limit)| layout.estimate_layout(limit, shape, cost)).collect();
    let KeptReplicates { used: each, shared, .. } = disturbance::select_undisturbed(usable, shape);
    if each.len() < 2 {
        return None;
    }
    let rounds: usize = layouts.iter().map(|layout| layout.samples.rounds().len()).sum();
    let kept = each.iter().map(|layout| layout.kept).sum();
    let all: Vec<usize> = (0..each.len()).collect();
    let interval = |of: &dyn Fn(&LayoutEstimate) -> f64| interval_over_replicates(&each, &all, of, confidence);
    let certain = |of: &dyn Fn(&LayoutEstimate) -> f64| interval_over_replicates(&each, &all, of, CERTAIN_CONFIDENCE);
    let (cost, raw, modes) = estimate_modes(&each, shape, confidence);
    Some(CostEstimate {
        cost,
        raw,
        modes,
        bend: certain(&LayoutEstimate::bend),
        trend: certain(&|layout| layout.trend),
        changing: frequency_effect(&each),
        add_link: interval(&|layout| layout.add_link),
        rate: figure_range(&each, |layout| layout.rate, statistics::mean),
        width: figure_range(&each, |layout| layout.width, |values| statistics::median(&mut values.to_vec())),
        shared,
        kept,
        dropped: rounds - kept,
        layouts: each,
    })
}

/// The cost from all rounds less the cost at one frequency, over the layouts that have both.
fn frequency_effect(layouts: &[LayoutEstimate]) -> Option<Interval> {
    let differences = layouts.iter().filter_map(|layout| Some(layout.cost - layout.at_one_frequency?));
    let differences: Vec<f64> = differences.collect();
    (2 * differences.len() > layouts.len()).then(|| t_interval(&differences, CERTAIN_CONFIDENCE))
}

/// Student's interval; a single value has one without bounds.
fn t_interval(values: &[f64], confidence: f64) -> Interval {
    statistics::t_interval(values, confidence)
        .unwrap_or_else(|| Interval::with_margin(statistics::mean(values), f64::INFINITY))
}

/// The interval of a figure's mean over replicates.
fn interval_over_replicates(
    layouts: &[LayoutEstimate],
    indices: &[usize],
    of: &dyn Fn(&LayoutEstimate) -> f64,
    confidence: f64,
) -> Interval {
    t_interval(&replicate_means(layouts, indices, of), confidence)
}

/// A figure of each replicate, from the layouts of these indices. Layouts of one replicate share addresses, and what
/// predictors remember of these: their means, and not the layouts, are independent.
fn replicate_means(layouts: &[LayoutEstimate], indices: &[usize], of: &dyn Fn(&LayoutEstimate) -> f64) -> Vec<f64> {
    let mut replicates: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for layout in indices.iter().map(|index| &layouts[*index]) {
        replicates.entry(layout.replicate).or_default().push(of(layout));
    }
    replicates.values().map(|figures| statistics::mean(figures)).collect()
}

/// Variance of the cost's error where a line does not fit the three lengths: a slope between any two of them may be the
/// true one, so the error is uniform over the bend, less what chance makes of the bend.
fn lack_of_fit_variance(bends: &[f64]) -> f64 {
    let by_chance = statistics::sample_variance(bends) / bends.len() as f64;
    (statistics::mean(bends).powi(2) - by_chance).max(0.0) / 12.0
}

/// Lowest, middle and highest value of a figure over the layouts.
fn figure_range(
    layouts: &[LayoutEstimate],
    of: impl Fn(&LayoutEstimate) -> f64,
    middle: impl Fn(&[f64]) -> f64,
) -> [f64; 3] {
    let values: Vec<f64> = layouts.iter().map(of).collect();
    let [low, high] = value_range(values.iter().copied());
    [low, middle(&values), high]
}

/// Cost and raw cost of the largest mode, and all modes where there are several.
fn estimate_modes(
    layouts: &[LayoutEstimate],
    shape: &RoundShape,
    confidence: f64,
) -> (Interval, Interval, Vec<CostMode>) {
    let values: Vec<f64> = layouts.iter().map(|layout| layout.cost).collect();
    let scale = MODE_SHARE * statistics::mean(&values).abs();
    let groups =
        if shape.trained { CostModes::from_trained_costs(&values) } else { CostModes::from_costs(&values, scale) };
    let of = |group: &[usize], figure: &dyn Fn(&LayoutEstimate) -> [f64; 4]| {
        let shared = |part: usize| {
            let figures: Vec<f64> = group.iter().map(|index| figure(&layouts[*index])[part]).collect();
            statistics::mean(&figures)
        };
        let interval = interval_over_replicates(layouts, group, &|layout| figure(layout)[0], confidence);
        let fit = lack_of_fit_variance(&replicate_means(layouts, group, &|layout| figure(layout)[2])).sqrt();
        // A single replicate has no variance, and its interval no bounds.
        let fit = if fit.is_finite() { fit } else { 0.0 };
        let own = replicate_means(layouts, group, &|layout| figure(layout)[0]);
        let learnt = match shape.trained && own.len() > 1 {
            true => SAME_STATE_SHARE * statistics::sample_variance(&own).sqrt(),
            false => 0.0,
        };
        let errors = [shared(1), shared(3), fit, learnt];
        interval.widen_by(shared_margin(errors.into_iter().fold(0.0, f64::hypot), confidence))
    };
    let cost = |layout: &LayoutEstimate| [layout.cost, layout.systematic, layout.bend(), layout.between];
    let raw = |layout: &LayoutEstimate| {
        let [_, errors @ ..] = cost(layout).map(|cycles| cycles * layout.rate);
        [layout.raw, errors[0], errors[1], errors[2]]
    };
    let modes = groups.list_modes(|group| Some(of(group, &cost)));
    // Of two modes that may be equally frequent neither is the cost: another measurement would find the other one.
    let everything: Vec<usize> = (0..layouts.len()).collect();
    let frequent = groups.frequent_replicates(shape.pooled.unwrap_or(0.0));
    let group = match groups.rival_modes().count() {
        _ if shape.trained && shape.pooled != Some(0.0) => groups.learnt_mode().unwrap_or(&everything),
        0 | 1 if shape.pooled.is_none() => groups.largest_mode().expect("there is at least one layout"),
        _ => &frequent,
    };
    (of(group, &cost), of(group, &raw), modes)
}

#[cfg(test)]
mod tests;
