//! What is left out of an estimate: rounds that something disturbed, and layouts on a shared core.

use super::{LayoutData, LayoutEstimate, Shape, call};
use crate::ruler::{sentinel_adds, sentinel_loops};
use crate::statistics;

/// A duration beyond its layout's median by this many scales is an outlier.
const OUTLIER_SCALES: f64 = 6.0;

/// The share of a duration by which the core clock wanders from one round to the next.
const CLOCK_WANDER: f64 = 0.0005;

/// The share of outliers up to which they are put down to the machine: a timer at 1 kHz hits a call of 2 µs
/// once in 500, so this leaves room for a busy one.
const OUTLIER_SHARE: f64 = 0.05;

/// A core that adds fewer numbers a cycle than this share of its best is shared with a busy sibling, for a
/// part of the layout at least,
const ALONE_SHARE: f64 = 0.95;

/// unless so many standard errors of the sentinel explain it.
const ALONE_ERRORS: f64 = 3.0;

/// The same against what the core could add at most: five adders were measured to add 4.1 of 4.8 numbers a
/// cycle, for they are chosen before it is known which will be free. A busy sibling takes half.
const KNOWN_SHARE: f64 = 0.7;

/// Layouts on an unshared core from which on shared ones are left out.
const ALONE_LEAST: usize = 4;

/// Raw units that an interrupt costs at least, with its entry, exit and the cache lines that it evicted.
const INTERRUPT: f64 = 1000.0;

/// The durations above which a round is dropped, for each layout and call.
pub(super) fn limits(layouts: &[LayoutData], step: f64) -> Vec<Vec<f64>> {
    let calls: Vec<Residuals> = (0..call::COUNT).map(|call| Residuals::of(layouts, call, step)).collect();
    let disturbed = call::RULERS.iter().map(|call| calls[*call].outliers).fold(0.0, f64::max);
    let limit = |layout: usize, call: &Residuals| {
        let median = call.medians[layout];
        // More outliers than the ruler meets are the snippet's own doing, not an interrupt's: a mispredicted
        // branch, say. They belong to its cost.
        let own = call.outliers > OUTLIER_SHARE.max(2.0 * disturbed);
        median + if own { call.width.max(INTERRUPT + median / 2.0) } else { call.width }
    };
    (0..layouts.len()).map(|layout| calls.iter().map(|call| limit(layout, call)).collect()).collect()
}

/// How one call's durations lie about the median of their layout.
struct Residuals {
    medians: Vec<f64>,
    /// Beyond the median by more than this is an outlier.
    width: f64,
    /// The share of outliers.
    outliers: f64,
}

impl Residuals {
    fn of(layouts: &[LayoutData], call: usize, step: f64) -> Residuals {
        let durations = |layout: &LayoutData| layout.samples.column(call).collect::<Vec<_>>();
        let medians: Vec<f64> =
            layouts.iter().map(|layout| statistics::median(&mut durations(layout))).collect();
        let mut residuals: Vec<f64> = layouts
            .iter()
            .zip(&medians)
            .flat_map(|(layout, median)| layout.samples.column(call).map(move |duration| duration - median))
            .collect();
        residuals.sort_by(f64::total_cmp);
        // From the lower half alone: disturbances only lengthen, and may be many.
        let range = 2.0 * (statistics::median(&mut residuals) - statistics::quantile(&residuals, 0.25));
        let typical = statistics::mean(&medians);
        let width = OUTLIER_SCALES * range.max(step).max(CLOCK_WANDER * typical);
        let outliers = residuals.len() - residuals.partition_point(|residual| *residual <= width);
        Residuals { medians, width, outliers: outliers as f64 / residuals.len() as f64 }
    }
}

impl LayoutEstimate {
    /// The standard error of the width, as a share of it, where the clock's step is all that it comes from: a
    /// duration between two readings of such a clock has the variance step²/6.
    fn width_error(&self, step: f64) -> f64 {
        let sentinel = sentinel_adds(sentinel_loops(step)) / self.width * self.rate;
        step / (6.0 * self.kept as f64).sqrt() / sentinel
    }
}

/// Leaves out layouts whose ruler was hit in most rounds, so that no outlier stood out: it then shows a clock that
/// no frequency change explains, or one that runs backwards.
fn with_a_sane_ruler(mut layouts: Vec<LayoutEstimate>) -> Vec<LayoutEstimate> {
    let mut rates: Vec<f64> = layouts.iter().map(|layout| layout.rate).collect();
    if rates.is_empty() {
        return layouts;
    }
    let median = statistics::median(&mut rates);
    layouts.retain(|layout| (0.5 * median..=2.0 * median).contains(&layout.rate));
    layouts
}

/// Leaves out layouts during which the core was shared, as the width sentinel saw it, where enough remain;
/// also tells whether what remains was shared.
pub(super) fn undisturbed(layouts: Vec<LayoutEstimate>, shape: &Shape) -> (Vec<LayoutEstimate>, bool) {
    let layouts = with_a_sane_ruler(layouts);
    let mut widths: Vec<f64> = layouts.iter().map(|layout| layout.width).collect();
    widths.sort_by(f64::total_cmp);
    // Not the widest: one layout's noise must not condemn the others.
    let seen = if widths.is_empty() { 0.0 } else { statistics::quantile(&widths, 0.9) };
    let known = KNOWN_SHARE * shape.width.unwrap_or(0.0);
    let alone = |layout: &LayoutEstimate| {
        let least = (ALONE_SHARE - ALONE_ERRORS * layout.width_error(shape.step)) * seen;
        layout.width >= least.max(known)
    };
    let count = layouts.iter().filter(|layout| alone(layout)).count();
    if count < ALONE_LEAST || count * 4 < layouts.len() {
        let shared = count * 2 < layouts.len();
        return (layouts, shared);
    }
    (layouts.into_iter().filter(alone).collect(), false)
}
