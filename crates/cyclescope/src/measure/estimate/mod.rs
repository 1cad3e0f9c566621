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

use super::contrast::Contrast;
use super::modes::{Mode, Modes};
use crate::ruler::{Alone, Gauge, LayoutSamples, sentinel_loops, shared_margin};
use crate::statistics::{self, Interval};
use serde::{Deserialize, Serialize};

/// The calls of a round: those of the whole ruler, then the snippet's. Each layout runs them in an order of its own.
pub mod call {
    pub use crate::ruler::column::{ADD_LONG, ADD_SHORT, IMUL_LONG, IMUL_SHORT, SENTINEL, WHOLE as RULERS};

    /// u copies of the snippet.
    pub const ONE: usize = RULERS;
    /// 2u copies.
    pub const TWO: usize = RULERS + 1;
    /// 4u copies.
    pub const FOUR: usize = RULERS + 2;
    /// Calls in a round.
    pub const COUNT: usize = RULERS + 3;
}

/// What must be known of a round to read its durations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Iterations of a looped body, 1 without a loop.
    pub loop_count: u64,
    /// Latency of `imul r32, r32` in core cycles, a whole number.
    pub imul_latency: f64,
    /// The step of the clock's readings in its raw units.
    pub step: f64,
    /// Independent additions a cycle that the sentinel reads on a core of its own, where that is known.
    pub width: Option<f64>,
    /// Whether the layouts form one population even where their costs fall into clusters: what a first run costs
    /// depends on whether it begins a cache line, and the mean over that is the answer.
    pub pooled: bool,
}

/// One layout's durations, and how many copies of the snippet its three bodies held.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutData {
    /// Copies: about u, 2u and 4u.
    pub copies: [usize; 3],
    /// Iterations of the ruler's loops.
    pub ruler_loops: u64,
    /// The durations, a column for each of [`call`].
    pub samples: LayoutSamples,
}

impl LayoutData {
    /// Its ruler.
    pub(crate) fn gauge(&self, shape: &Shape) -> Gauge {
        Gauge::whole(self.ruler_loops, sentinel_loops(shape.step), shape.imul_latency)
    }
}

/// What one layout says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LayoutEstimate {
    /// Core cycles a copy, from the slope between u and 4u.
    pub cost: f64,
    /// Core cycles a copy between u and 2u, and between 2u and 4u.
    pub slopes: [f64; 2],
    /// What the instrument may be wrong by, as a standard deviation, in core cycles a copy.
    pub systematic: f64,
    /// The change of the cost from the first half of the rounds to the second, in core cycles.
    pub trend: f64,
    /// Raw units of the clock a copy.
    pub raw: f64,
    /// Raw units of the clock a core cycle.
    pub rate: f64,
    /// Core cycles of one link of the `add` chain; 1 where the rulers agree.
    pub add_link: f64,
    /// Independent additions a core cycle, as the width sentinel saw it.
    pub width: f64,
    /// Its standard error, as a share of it.
    pub width_error: f64,
    /// Rounds used.
    pub kept: usize,
    /// Rounds dropped.
    pub dropped: usize,
}

/// The cost of a snippet, and what speaks for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// Core cycles a copy; where there are several modes, of the one that most layouts are in.
    pub cost: Interval,
    /// Raw units of the clock a copy, of the same layouts.
    pub raw: Interval,
    /// The modes, by cost; empty where the layouts form one cluster.
    pub modes: Vec<Mode>,
    /// Slope from 2u to 4u less slope from u to 2u, in core cycles a copy, with a 99.9 % interval.
    pub bend: Interval,
    /// The change of the cost from the first half of the rounds to the second, with a 99.9 % interval.
    pub trend: Interval,
    /// Core cycles of one link of the `add` chain.
    pub add_link: Interval,
    /// Raw units of the clock a core cycle, over all layouts: lowest, mean, highest.
    pub rate: [f64; 3],
    /// Independent additions a core cycle, over all layouts: lowest, median, highest.
    pub width: [f64; 3],
    /// Whether most layouts found the core shared with a busy sibling.
    pub shared: bool,
    /// Each layout's estimate.
    pub layouts: Vec<LayoutEstimate>,
    /// Rounds used, in all layouts.
    pub kept: usize,
    /// Rounds dropped, in all layouts.
    pub dropped: usize,
}

/// The level at which a cost counts as bent or moving: a false alarm refuses a good number.
const CERTAIN: f64 = 0.999;

/// A layout with fewer undisturbed rounds is not used.
const KEPT_LEAST: usize = 3;

/// Clusters of layouts whose own spread is less than this share of the cost are not told apart as modes by it.
const MODE_SHARE: f64 = 0.01;

/// The mean duration of each call over some rounds.
fn means(rounds: &[&[f64]]) -> [f64; call::COUNT] {
    let mut sums = [0.0; call::COUNT];
    for round in rounds {
        for (sum, duration) in sums.iter_mut().zip(*round) {
            *sum += duration;
        }
    }
    sums.map(|sum| sum / rounds.len() as f64)
}

fn layout_estimate(layout: &LayoutData, limit: &[f64], shape: &Shape) -> Option<LayoutEstimate> {
    let kept: Vec<&[f64]> = layout
        .samples
        .rounds()
        .filter(|round| round.iter().zip(limit).all(|(duration, limit)| duration <= limit))
        .collect();
    let total = layout.samples.rounds().len();
    if kept.len() < KEPT_LEAST || kept.len() * 4 < total {
        return None;
    }
    let mean = means(&kept);
    let gauge = layout.gauge(shape);
    let scale = gauge.read(&mean);
    let rate = scale.rate;
    let [one, two, four] = layout.copies.map(|copies| copies as f64 * shape.loop_count as f64);
    let slope = Contrast::slope([call::ONE, call::FOUR], four - one);
    let raw = slope.of(&mean);
    let half = |rounds: &[&[f64]]| {
        let mean = means(rounds);
        slope.of(&mean) / gauge.read(&mean).rate
    };
    let (first, second) = kept.split_at(kept.len() / 2);
    Some(LayoutEstimate {
        cost: raw / rate,
        slopes: if two > one && four > two {
            [([call::ONE, call::TWO], two - one), ([call::TWO, call::FOUR], four - two)]
                .map(|(calls, copies)| Contrast::slope(calls, copies).of(&mean) / rate)
        } else {
            // A cold start has two lengths only, which any line fits.
            [raw / rate; 2]
        },
        systematic: gauge.systematic(raw / rate, four - one),
        trend: half(second) - half(first),
        raw,
        rate,
        add_link: scale.add_link(),
        width: scale.width,
        width_error: gauge.width_error(&scale, shape.step, kept.len()),
        kept: kept.len(),
        dropped: total - kept.len(),
    })
}

/// What the durations of some layouts say, at one level of confidence such as 0.95.
///
/// `None` where fewer than two layouts had enough undisturbed rounds.
pub fn estimate(layouts: &[LayoutData], shape: &Shape, confidence: f64) -> Option<Estimate> {
    if layouts.is_empty() {
        return None;
    }
    let limits = disturbance::limits(layouts, shape.step);
    let usable = layouts.iter().zip(&limits);
    let usable = usable.filter_map(|(layout, limit)| layout_estimate(layout, limit, shape)).collect();
    let Alone { used: each, shared } = disturbance::undisturbed(usable, shape);
    if each.len() < 2 {
        return None;
    }
    let rounds: usize = layouts.iter().map(|layout| layout.samples.rounds().len()).sum();
    let kept = each.iter().map(|layout| layout.kept).sum();
    let interval = |of: &dyn Fn(&LayoutEstimate) -> f64| {
        t_interval(&each.iter().map(of).collect::<Vec<_>>(), confidence)
    };
    let certain =
        |of: &dyn Fn(&LayoutEstimate) -> f64| t_interval(&each.iter().map(of).collect::<Vec<_>>(), CERTAIN);
    let (cost, raw, modes) = costs(&each, shape.pooled, confidence);
    Some(Estimate {
        cost,
        raw,
        modes,
        bend: certain(&|layout| layout.slopes[1] - layout.slopes[0]),
        trend: certain(&|layout| layout.trend),
        add_link: interval(&|layout| layout.add_link),
        rate: spread(&each, |layout| layout.rate, statistics::mean),
        width: spread(&each, |layout| layout.width, |values| statistics::median(&mut values.to_vec())),
        shared,
        kept,
        dropped: rounds - kept,
        layouts: each,
    })
}

/// Student's interval; of a single value one without bounds.
fn t_interval(values: &[f64], confidence: f64) -> Interval {
    statistics::t_interval(values, confidence)
        .unwrap_or_else(|| Interval::around(statistics::mean(values), f64::INFINITY))
}

/// Lowest, middle and highest of a figure over the layouts.
fn spread(
    layouts: &[LayoutEstimate],
    of: impl Fn(&LayoutEstimate) -> f64,
    middle: impl Fn(&[f64]) -> f64,
) -> [f64; 3] {
    let values: Vec<f64> = layouts.iter().map(of).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    [low, middle(&values), high]
}

/// Cost and raw cost of the largest mode, and all modes where there are several.
fn costs(layouts: &[LayoutEstimate], pooled: bool, confidence: f64) -> (Interval, Interval, Vec<Mode>) {
    let values: Vec<f64> = layouts.iter().map(|layout| layout.cost).collect();
    let scale = MODE_SHARE * statistics::mean(&values).abs();
    let groups = if pooled { Modes::one(values.len()) } else { Modes::of(&values, scale) };
    let of = |group: &[usize], figure: &dyn Fn(&LayoutEstimate) -> [f64; 2]| {
        let [figures, systematic] =
            [0, 1].map(|part| group.iter().map(|index| figure(&layouts[*index])[part]).collect::<Vec<_>>());
        t_interval(&figures, confidence).widened(shared_margin(statistics::mean(&systematic), confidence))
    };
    let cost = |layout: &LayoutEstimate| [layout.cost, layout.systematic];
    let raw = |layout: &LayoutEstimate| [layout.raw, layout.systematic * layout.rate];
    let largest = groups.largest().expect("there is at least one layout");
    let modes = groups.listed(|group| Some(of(group, &cost)));
    (of(largest, &cost), of(largest, &raw), modes)
}

#[cfg(test)]
mod tests;
