//! Computes a cost and its interval from raw durations.
//!
//! A round holds the snippet at three lengths, about u, 2u and 4u copies, and the ruler at two. The
//! exact numbers of copies vary between layouts, because the end of a body moves its time by a
//! cycle or two. (Measured: 1 cycle with the parity of an `addps` chain, 2.8 cycles for 100 `div`
//! against 50 or 150.) With fixed numbers this offset would be a bias. Varied, it is part of the
//! spread between layouts.
//!
//! Within a layout, rounds hit by an interrupt are dropped whole and the others are summed. The
//! slope between u and 4u copies, divided by the slope of the ruler, is the layout's cost in core
//! cycles. Layouts differ by more than rounds do, so the result is a t-interval over layouts. The
//! slopes u to 2u and 2u to 4u must agree. Otherwise the cost is not proportional to the number of
//! copies, and no number is given.
//!
//! Three refinements:
//!
//! - Layouts of one replicate share addresses, so their mean is one value of the t-interval.
//! - If the layouts' costs form several modes, the result is one mode or the mean of several: see
//!   `estimate_modes`.
//! - Errors that all layouts share widen the interval: the instrument's, the lack of fit of a line,
//!   and the deviation between measurements.
//!
//! All functions here are pure functions of the durations, so a result can be recomputed from its
//! evidence.

mod disturbance;
mod frequency;
mod layout;

pub(crate) use layout::{LayoutData, LayoutEstimate, RoundShape, call};

use super::modes::{CostMode, CostModes};
use super::question::CostFormula;
use crate::ruler::shared_margin;
use crate::sibling::KeptReplicates;
use cyclescope_core::statistics::{self, Interval, value_range};
use serde::Serialize;
use std::collections::BTreeMap;

/// The cost of a snippet, and the figures that support it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostEstimate {
    /// Core cycles per copy; of the mode with the most layouts if there are several.
    pub cost: Interval,
    /// Raw clock units per copy, from the same layouts.
    pub raw: Interval,
    /// Modes in ascending order of cost; empty if the layouts form one cluster.
    pub modes: Vec<CostMode>,
    /// Slope from 2u to 4u minus slope from u to 2u, in core cycles per copy, with a 99.9 %
    /// interval.
    pub bend: Interval,
    /// Change of the cost from the first half of the rounds to the second, with a 99.9 % interval.
    pub trend: Interval,
    /// Effect on the cost of rounds in which the core clock's frequency changed, in core cycles per
    /// copy, with a 99.9 % interval. `None` if most layouts have too few other rounds.
    pub changing: Option<Interval>,
    /// Core cycles of one link of the `add` chain.
    pub add_link: Interval,
    /// Raw clock units per core cycle, over all layouts: lowest, mean, highest.
    pub rate: [f64; 3],
    /// Independent additions per core cycle, over all layouts: lowest, median, highest.
    pub width: [f64; 3],
    /// Whether most layouts found the core shared with a busy sibling.
    pub shared: bool,
    /// Estimate of each layout.
    pub layouts: Vec<LayoutEstimate>,
    /// Rounds used, over all layouts used.
    pub kept: usize,
    /// All other rounds: disturbed ones, and every round of a layout that is left out, for example
    /// because of a busy sibling.
    pub dropped: usize,
}

/// Confidence level of the tests for a bend and a trend. A false alarm would refuse a good number.
const CERTAIN_CONFIDENCE: f64 = 0.999;

/// Smallest spread within a cluster that separates modes, as a share of the cost.
const MODE_SHARE: f64 = 0.01;

/// Standard deviation of the mean of trained layouts between measurements, as a share of the
/// standard deviation between layouts. Layouts of one measurement find predictors in the same state
/// and learn equally fast. Six functions with some layouts that had not learnt were measured five
/// times each (Zen 5). Their means lay within one standard deviation of layouts of each other.
const SAME_STATE_SHARE: f64 = 0.5;

/// Estimates a cost from the durations of layouts, at a confidence level such as 0.95. The cost is
/// a weighted sum over the snippets of the rounds.
///
/// `None` if fewer than two layouts had enough undisturbed rounds.
pub fn estimate_cost(
    layouts: &[LayoutData],
    shape: &RoundShape,
    cost: &CostFormula,
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
    let interval = |figure: &dyn Fn(&LayoutEstimate) -> f64| interval_over_replicates(&each, &all, figure, confidence);
    let certain =
        |figure: &dyn Fn(&LayoutEstimate) -> f64| interval_over_replicates(&each, &all, figure, CERTAIN_CONFIDENCE);
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

/// The cost from all rounds minus the cost at one frequency, over the layouts that have both.
fn frequency_effect(layouts: &[LayoutEstimate]) -> Option<Interval> {
    let differences = layouts.iter().filter_map(|layout| Some(layout.cost - layout.at_one_frequency?));
    let differences: Vec<f64> = differences.collect();
    (2 * differences.len() > layouts.len()).then(|| t_interval(&differences, CERTAIN_CONFIDENCE))
}

/// Student's t-interval; unbounded for a single value.
fn t_interval(values: &[f64], confidence: f64) -> Interval {
    statistics::t_interval(values, confidence)
        .unwrap_or_else(|| Interval::with_margin(statistics::mean(values), f64::INFINITY))
}

/// The interval of a figure's mean over replicates.
fn interval_over_replicates(
    layouts: &[LayoutEstimate],
    indices: &[usize],
    figure: &dyn Fn(&LayoutEstimate) -> f64,
    confidence: f64,
) -> Interval {
    t_interval(&replicate_means(layouts, indices, figure), confidence)
}

/// Mean of a figure for each replicate, over the layouts with these indices. Layouts of one
/// replicate share addresses and the predictor state tied to them. So the replicates' means are
/// independent, and the layouts are not.
fn replicate_means(layouts: &[LayoutEstimate], indices: &[usize], figure: &dyn Fn(&LayoutEstimate) -> f64) -> Vec<f64> {
    let mut replicates: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for layout in indices.iter().map(|index| &layouts[*index]) {
        replicates.entry(layout.replicate).or_default().push(figure(layout));
    }
    replicates.values().map(|figures| statistics::mean(figures)).collect()
}

/// Variance of the cost's error if a line does not fit the three lengths. The slope between any two
/// of them may be the true one. So the error is uniform over the bend, less the part of the bend
/// that chance explains.
fn lack_of_fit_variance(bends: &[f64]) -> f64 {
    let by_chance = statistics::sample_variance(bends) / bends.len() as f64;
    (statistics::mean(bends).powi(2) - by_chance).max(0.0) / 12.0
}

/// Lowest, middle and highest value of a figure over the layouts.
fn figure_range(
    layouts: &[LayoutEstimate],
    figure: impl Fn(&LayoutEstimate) -> f64,
    middle: impl Fn(&[f64]) -> f64,
) -> [f64; 3] {
    let values: Vec<f64> = layouts.iter().map(figure).collect();
    let [low, high] = value_range(values.iter().copied());
    [low, middle(&values), high]
}

/// A cost and its errors in one layout, in core cycles or in raw clock units.
struct CostErrors {
    cost: f64,
    /// See [`LayoutEstimate::systematic`].
    systematic: f64,
    bend: f64,
    /// See [`LayoutEstimate::between`].
    between: f64,
}

impl CostErrors {
    fn in_cycles(layout: &LayoutEstimate) -> CostErrors {
        let &LayoutEstimate { cost, systematic, between, .. } = layout;
        CostErrors { cost, systematic, bend: layout.bend(), between }
    }

    fn in_raw_units(layout: &LayoutEstimate) -> CostErrors {
        let CostErrors { systematic, bend, between, .. } = CostErrors::in_cycles(layout);
        let rate = layout.rate;
        CostErrors { cost: layout.raw, systematic: systematic * rate, bend: bend * rate, between: between * rate }
    }
}

/// Cost in core cycles and in raw units, and all modes where there are several. Which layouts give
/// the cost:
///
/// - of trained predictors, the cheapest mode that is not rare;
/// - by default, the largest mode;
/// - if [`RoundShape::pooled`] is set, or two modes may be equally frequent, all frequent modes.
fn estimate_modes(
    layouts: &[LayoutEstimate],
    shape: &RoundShape,
    confidence: f64,
) -> (Interval, Interval, Vec<CostMode>) {
    let values: Vec<f64> = layouts.iter().map(|layout| layout.cost).collect();
    let scale = MODE_SHARE * statistics::mean(&values).abs();
    let groups =
        if shape.trained { CostModes::from_trained_costs(&values) } else { CostModes::from_costs(&values, scale) };
    let cost_interval = |group: &[usize], in_unit: fn(&LayoutEstimate) -> CostErrors| {
        let mean_over_layouts = |figure: fn(CostErrors) -> f64| {
            let figures: Vec<f64> = group.iter().map(|index| figure(in_unit(&layouts[*index]))).collect();
            statistics::mean(&figures)
        };
        let interval = interval_over_replicates(layouts, group, &|layout| in_unit(layout).cost, confidence);
        let fit = lack_of_fit_variance(&replicate_means(layouts, group, &|layout| in_unit(layout).bend)).sqrt();
        // A single replicate has no variance and an unbounded interval.
        let fit = if fit.is_finite() { fit } else { 0.0 };
        let costs = replicate_means(layouts, group, &|layout| in_unit(layout).cost);
        let learnt = match shape.trained && costs.len() > 1 {
            true => SAME_STATE_SHARE * statistics::sample_variance(&costs).sqrt(),
            false => 0.0,
        };
        let systematic = mean_over_layouts(|errors| errors.systematic);
        let between = mean_over_layouts(|errors| errors.between);
        let errors = [systematic, between, fit, learnt];
        interval.widen_by(shared_margin(errors.into_iter().fold(0.0, f64::hypot), confidence))
    };
    let modes = groups.list_modes(|group| Some(cost_interval(group, CostErrors::in_cycles)));
    // If two modes may be equally frequent, neither is the cost: another measurement would choose
    // the other one.
    let everything: Vec<usize> = (0..layouts.len()).collect();
    let frequent = groups.frequent_replicates(shape.pooled.unwrap_or(0.0));
    let group = if shape.trained && shape.pooled != Some(0.0) {
        groups.learnt_mode().unwrap_or(&everything)
    } else if shape.pooled.is_none() && groups.rival_modes().count() <= 1 {
        groups.largest_mode().expect("there is at least one layout")
    } else {
        &frequent
    };
    (cost_interval(group, CostErrors::in_cycles), cost_interval(group, CostErrors::in_raw_units), modes)
}

#[cfg(test)]
mod tests;
