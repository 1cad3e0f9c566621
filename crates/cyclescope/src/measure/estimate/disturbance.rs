//! Exclusion of disturbed rounds, and of layouts on a shared core, from an estimate.

use super::layout::{LayoutData, LayoutEstimate, Shape, call};
use crate::ruler::{Alone, Outliers, Quiet};
use crate::statistics;

/// The share of outliers up to which the machine is taken as their cause: a timer at 1 kHz hits a call of 2 µs once in
/// 500, so this allows for a busy machine.
const OUTLIER_SHARE: f64 = 0.05;

/// Raw units that an interrupt costs at least, with its entry, exit and the cache lines that it evicted.
const INTERRUPT: f64 = 1000.0;

/// The durations above which a round is dropped, for each layout and call.
pub(super) fn limits(layouts: &[LayoutData], step: f64) -> Vec<Vec<f64>> {
    let durations = |call: usize| {
        let groups: Vec<Vec<f64>> =
            layouts.iter().map(|layout| layout.samples.column(call).collect()).collect();
        Outliers::of(groups, step)
    };
    let calls: Vec<Outliers> = (0..call::COUNT).map(durations).collect();
    let disturbed = calls[..call::RULERS].iter().map(|call| call.share).fold(0.0, f64::max);
    let limit = |layout: usize, call: &Outliers| {
        let median = call.medians[layout];
        // More outliers than in the ruler are caused by the snippet, such as by a mispredicted branch, and not by
        // interrupts: they are part of its cost.
        let own = call.share > OUTLIER_SHARE.max(2.0 * disturbed);
        median + if own { call.reach.max(INTERRUPT + median / 2.0) } else { call.reach }
    };
    (0..layouts.len()).map(|layout| calls.iter().map(|call| limit(layout, call)).collect()).collect()
}

/// Leaves out layouts whose ruler was disturbed in most rounds, so that no round was an outlier: their clock rate is
/// one that no frequency change explains, or negative.
fn with_a_sane_ruler(mut layouts: Vec<LayoutEstimate>) -> Vec<LayoutEstimate> {
    let mut rates: Vec<f64> = layouts.iter().map(|layout| layout.rate).collect();
    if rates.is_empty() {
        return layouts;
    }
    let median = statistics::median(&mut rates);
    layouts.retain(|layout| (0.5 * median..=2.0 * median).contains(&layout.rate));
    layouts
}

/// Leaves out layouts during which the core was shared, by the width sentinel, where enough others remain.
pub(super) fn undisturbed(layouts: Vec<LayoutEstimate>, shape: &Shape) -> Alone<LayoutEstimate> {
    let layouts = with_a_sane_ruler(layouts);
    let quiet = Quiet::of(layouts.iter().map(|layout| (layout.width, layout.width_error)), shape.width);
    quiet.alone(layouts, |layout| (layout.width, layout.width_error))
}
