//! Excludes disturbed rounds, and layouts on a shared core, from an estimate.

use super::layout::{LayoutData, LayoutEstimate, RoundShape, call};
use crate::ruler::{Outliers, UnsharedWidth};
use crate::sibling::{KeptReplicates, SiblingPolicy};
use cyclescope_core::statistics;

/// Least cost of an interrupt in raw units: its entry, its exit and the cache lines that it evicts.
const INTERRUPT_COST: f64 = 1000.0;

/// Limits per layout and call. A round with a longer duration is dropped.
pub(super) fn find_outlier_limits(layouts: &[LayoutData], step: f64) -> Vec<Vec<f64>> {
    let find_outliers = |column: usize| {
        let groups: Vec<Vec<f64>> = layouts.iter().map(|layout| layout.samples.column(column).collect()).collect();
        Outliers::from_groups(groups, step)
    };
    let columns = layouts.first().map_or(0, |layout| layout.samples.columns());
    let outliers: Vec<Outliers> = (0..columns).map(find_outliers).collect();
    let rate = disturbance_rate(&outliers[..call::RULERS]);
    let own: Vec<bool> =
        (0..columns).map(|column| column >= call::RULERS && is_own_event(&outliers, column, rate)).collect();
    let limit = |layout: usize, column: usize| {
        let (found, base) = (&outliers[column], outliers[column].bases[layout]);
        base + if own[column] { found.reach.max(INTERRUPT_COST + base / 2.0) } else { found.reach }
    };
    (0..layouts.len()).map(|layout| (0..columns).map(|column| limit(layout, column)).collect()).collect()
}

/// Outliers per raw unit of time in the ruler's calls: the rate of the machine's disturbances. One
/// hit is added so that the rate is never 0.
fn disturbance_rate(ruler: &[Outliers]) -> f64 {
    let hits: usize = ruler.iter().map(|outliers| outliers.hits).sum();
    (1 + hits) as f64 / ruler.iter().map(|outliers| outliers.time).sum::<f64>()
}

/// Whether the outliers of a snippet's calls are its own events, such as mispredicted branches.
/// These are part of its cost. All its lengths then have more outliers than the machine's
/// disturbances explain, and the longer ones do not have fewer.
fn is_own_event(outliers: &[Outliers], column: usize, rate: f64) -> bool {
    let lengths = call::snippet_calls((column - call::RULERS) / 3).map(|column| &outliers[column]);
    let excess = lengths.map(|length| length.excess_over_rate(rate));
    // By chance two counts differ by up to three roots of their sum.
    let chance = 3.0 * (lengths[0].hits as f64 + lengths[2].hits as f64).sqrt();
    lengths.iter().all(|length| length.exceeds_rate(rate)) && excess[2] >= excess[0] - chance
}

/// Leaves out layouts whose ruler was disturbed in most rounds, so that no round was an outlier. No
/// frequency change explains their clock rate, or it is negative.
fn drop_disturbed_rulers(mut layouts: Vec<LayoutEstimate>) -> Vec<LayoutEstimate> {
    let mut rates: Vec<f64> = layouts.iter().map(|layout| layout.rate).collect();
    if rates.is_empty() {
        return layouts;
    }
    let median = statistics::median(&mut rates);
    layouts.retain(|layout| (0.5 * median..=2.0 * median).contains(&layout.rate));
    layouts
}

/// Leaves out layouts whose width sentinel found a shared core, if enough others remain.
pub(super) fn select_undisturbed(layouts: Vec<LayoutEstimate>, shape: &RoundShape) -> KeptReplicates<LayoutEstimate> {
    let layouts = drop_disturbed_rulers(layouts);
    let quiet =
        UnsharedWidth::from_widths(layouts.iter().map(|layout| (layout.width, layout.width_error)), shape.width);
    SiblingPolicy::USUAL.keep_unshared(layouts, quiet, |layout| (layout.width, layout.width_error))
}
