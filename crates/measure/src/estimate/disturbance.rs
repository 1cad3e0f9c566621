//! Exclusion of disturbed rounds, and of layouts on a shared core, from an estimate.

use super::layout::{LayoutData, LayoutEstimate, RoundShape, call};
use crate::ruler::{Outliers, UnsharedWidth};
use crate::sibling::{KeptReplicates, SiblingPolicy};
use cyclescope_core::statistics;

/// Raw units that an interrupt costs at least, with its entry, exit and the cache lines that it evicted.
const INTERRUPT_COST: f64 = 1000.0;

/// The durations above which a round is dropped, for each layout and call.
pub(super) fn find_outlier_limits(layouts: &[LayoutData], step: f64) -> Vec<Vec<f64>> {
    let durations = |call: usize| {
        let groups: Vec<Vec<f64>> = layouts.iter().map(|layout| layout.samples.column(call).collect()).collect();
        Outliers::from_groups(groups, step)
    };
    let columns = layouts.first().map_or(0, |layout| layout.samples.columns());
    let calls: Vec<Outliers> = (0..columns).map(durations).collect();
    let rate = disturbance_rate(&calls[..call::RULERS]);
    let own: Vec<bool> =
        (0..columns).map(|column| column >= call::RULERS && is_own_event(&calls, column, rate)).collect();
    let limit = |layout: usize, column: usize| {
        let (call, base) = (&calls[column], calls[column].bases[layout]);
        base + if own[column] { call.reach.max(INTERRUPT_COST + base / 2.0) } else { call.reach }
    };
    (0..layouts.len()).map(|layout| (0..columns).map(|column| limit(layout, column)).collect()).collect()
}

/// The rate of the machine's disturbances in the ruler's calls: one more than there were, so that none is not never.
fn disturbance_rate(ruler: &[Outliers]) -> f64 {
    let hits: usize = ruler.iter().map(|call| call.hits).sum();
    (1 + hits) as f64 / ruler.iter().map(|call| call.time).sum::<f64>()
}

/// Whether the outliers of a snippet's calls are its own events, such as mispredicted branches, which are part of its cost:
/// in all of its lengths there are more than the machine's disturbances explain, and not fewer in the longer ones.
fn is_own_event(calls: &[Outliers], column: usize, rate: f64) -> bool {
    let own = call::snippet_calls((column - call::RULERS) / 3);
    let excess = own.map(|call| calls[call].excess_over_rate(rate));
    // Two counts differ by chance by three roots of their sum.
    let chance = 3.0 * (calls[own[0]].hits as f64 + calls[own[2]].hits as f64).sqrt();
    own.iter().all(|call| calls[*call].exceeds_rate(rate)) && excess[2] >= excess[0] - chance
}

/// Leaves out layouts whose ruler was disturbed in most rounds, so that no round was an outlier: their clock rate is
/// one that no frequency change explains, or negative.
fn drop_disturbed_rulers(mut layouts: Vec<LayoutEstimate>) -> Vec<LayoutEstimate> {
    let mut rates: Vec<f64> = layouts.iter().map(|layout| layout.rate).collect();
    if rates.is_empty() {
        return layouts;
    }
    let median = statistics::median(&mut rates);
    layouts.retain(|layout| (0.5 * median..=2.0 * median).contains(&layout.rate));
    layouts
}

/// Leaves out layouts during which the core was shared, by the width sentinel, where enough others remain.
pub(super) fn select_undisturbed(layouts: Vec<LayoutEstimate>, shape: &RoundShape) -> KeptReplicates<LayoutEstimate> {
    let layouts = drop_disturbed_rulers(layouts);
    let quiet =
        UnsharedWidth::from_widths(layouts.iter().map(|layout| (layout.width, layout.width_error)), shape.width);
    SiblingPolicy::USUAL.keep_unshared(layouts, quiet, |layout| (layout.width, layout.width_error))
}
