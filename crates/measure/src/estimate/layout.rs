//! One layout: the calls of its rounds, and its estimate.

use super::frequency;
use crate::contrast::Contrast;
use crate::question::CostFormula;
use crate::ruler::LeastWidth;
use crate::ruler::{Gauge, KEPT_LEAST, LayoutSamples, sentinel_loops};
use serde::{Deserialize, Serialize};

/// The calls of a round: the whole ruler, then three calls of each snippet. Each layout has its own
/// order.
pub(crate) mod call {
    pub(crate) use crate::ruler::column::{ADD_LONG, ADD_SHORT, IMUL_LONG, IMUL_SHORT, SENTINEL, WHOLE as RULERS};

    /// The calls of a snippet, with u, 2u and 4u repeats.
    pub(crate) const fn snippet_calls(snippet: usize) -> [usize; 3] {
        let first = RULERS + 3 * snippet;
        [first, first + 1, first + 2]
    }
    /// Calls in a round with this number of snippets.
    pub(crate) const fn calls_per_round(snippets: usize) -> usize {
        RULERS + 3 * snippets
    }
}

/// Parameters needed to interpret the durations of a round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RoundShape {
    /// Iterations of a looped body, 1 without a loop.
    pub loop_count: u64,
    /// Latency of `imul r64, r64` in core cycles: a whole number.
    pub imul_latency: f64,
    /// Step of the clock's readings in its raw units.
    pub step: f64,
    /// The least width of an unshared core; `None` if unknown.
    pub width: Option<LeastWidth>,
    /// If costs fall into clusters, the result is the mean over all clusters with at least this
    /// share of the layouts. `None` means the largest cluster alone. A first run's cost depends on
    /// its offset in a cache line. A function's cost depends on its address and on the state of the
    /// predictors. The largest cluster then differs between measurements.
    pub pooled: Option<f64>,
    /// Whether predictors were trained. The cost is then the cheapest of several frequent modes, in
    /// which predictors have learnt.
    pub trained: bool,
    /// Standard deviation between measurements, as a share of each snippet's cost. It is the same
    /// in all layouts of a measurement.
    pub between: f64,
    /// A further standard deviation between measurements, in core cycles, for each snippet.
    pub between_cycles: f64,
}

/// Durations of one layout, and the numbers of repeats in its bodies.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutData {
    /// Number of its replicate, from 0. Layouts of one replicate share an instance of the snippets,
    /// such as the address of a function.
    pub replicate: usize,
    /// Repeats of each snippet in its three bodies: about u, 2u and 4u.
    pub copies: Vec<[usize; 3]>,
    /// Iterations of the ruler's loops.
    pub ruler_loops: u64,
    /// Durations, with a column for each of [`call`].
    pub samples: LayoutSamples,
}

impl LayoutData {
    /// The gauge that reads this layout's ruler.
    pub(crate) fn gauge(&self, shape: &RoundShape) -> Gauge {
        Gauge::whole_ruler(self.ruler_loops, sentinel_loops(shape.step), shape.imul_latency)
    }
}

/// Figures of one layout.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LayoutEstimate {
    /// Number of its replicate, from 0.
    pub replicate: usize,
    /// Core cycles per copy, from the slope between u and 4u.
    pub cost: f64,
    /// Core cycles per copy between u and 2u, and between 2u and 4u.
    pub slopes: [f64; 2],
    /// Standard deviation of the instrument's error, in core cycles per copy.
    pub systematic: f64,
    /// Standard deviation between measurements, in core cycles per copy.
    pub between: f64,
    /// Change of the cost from the first half of the rounds to the second, in core cycles.
    pub trend: f64,
    /// The cost without rounds in which the core clock's frequency changed; `None` if too few
    /// rounds remain.
    pub at_one_frequency: Option<f64>,
    /// Raw clock units per copy.
    pub raw: f64,
    /// Raw clock units per core cycle.
    pub rate: f64,
    /// Core cycles per link of the `add` chain; 1 if the rulers agree.
    pub add_link: f64,
    /// Independent additions per core cycle, from the width sentinel.
    pub width: f64,
    /// Standard error of `width`, as a share of it.
    pub width_error: f64,
    /// Undisturbed rounds, which the figures come from.
    pub kept: usize,
    /// Disturbed rounds.
    pub dropped: usize,
}

impl LayoutEstimate {
    /// The slope between 2u and 4u less that between u and 2u, in core cycles per copy.
    pub(super) fn bend(&self) -> f64 {
        self.slopes[1] - self.slopes[0]
    }
}

/// The mean duration of each call over some rounds.
fn mean_durations(rounds: &[&[f64]]) -> Vec<f64> {
    let mut sums = vec![0.0; rounds.first().map_or(0, |round| round.len())];
    for round in rounds {
        for (sum, duration) in sums.iter_mut().zip(*round) {
            *sum += duration;
        }
    }
    sums.iter().map(|sum| sum / rounds.len() as f64).collect()
}

/// The columns of a cost: the sum of the snippets' slopes between these two of their lengths, each
/// multiplied by its weight in the cost. A cold start has two lengths only, which any line fits.
fn cost_slope(cost: &CostFormula, copies: &[[f64; 3]], [fewer, more]: [usize; 2]) -> Contrast {
    let add = |sum: Contrast, (snippet, weight): (usize, f64)| {
        let [one, two, four] = copies[snippet];
        let [fewer, more] = if two > one && four > two { [fewer, more] } else { [0, 2] };
        let (calls, lengths) = (call::snippet_calls(snippet), copies[snippet]);
        let slope = Contrast::slope_between([calls[fewer], calls[more]], lengths[more] - lengths[fewer]);
        sum.plus_weighted(weight, &slope)
    };
    cost.weights().fold(Contrast::default(), add)
}

/// The number of copies by which two bodies of a single snippet would have to differ for the
/// instrument's error to be that of this cost.
fn effective_copies(cost: &CostFormula, copies: &[[f64; 3]]) -> f64 {
    let square = |(snippet, weight): (usize, f64)| {
        let [one, _, four] = copies[snippet];
        (weight / (four - one)).powi(2)
    };
    1.0 / cost.weights().map(square).sum::<f64>().sqrt()
}

impl LayoutData {
    /// Raw units per copy, from all rounds: durations, or counts of an event.
    pub(crate) fn raw_cost(&self, shape: &RoundShape, cost: &CostFormula) -> f64 {
        let rounds: Vec<&[f64]> = self.samples.rounds().collect();
        cost_slope(cost, &self.copies_in_all(shape), [0, 2]).evaluate(&mean_durations(&rounds))
    }

    /// How often each snippet runs in a call of each length.
    fn copies_in_all(&self, shape: &RoundShape) -> Vec<[f64; 3]> {
        let in_all = |copies: &[usize; 3]| copies.map(|copies| copies as f64 * shape.loop_count as f64);
        self.copies.iter().map(in_all).collect()
    }

    /// Figures of the layout from its rounds below these limits; `None` where they are too few.
    pub(super) fn estimate_layout(
        &self,
        limit: &[f64],
        shape: &RoundShape,
        cost: &CostFormula,
    ) -> Option<LayoutEstimate> {
        let kept: Vec<&[f64]> = self
            .samples
            .rounds()
            .filter(|round| round.iter().zip(limit).all(|(duration, limit)| duration <= limit))
            .collect();
        let total = self.samples.rounds().len();
        if kept.len() < KEPT_LEAST || kept.len() * 4 < total {
            return None;
        }
        let mean = mean_durations(&kept);
        let gauge = self.gauge(shape);
        let scale = gauge.read(&mean);
        let rate = scale.rate;
        let copies = self.copies_in_all(shape);
        let whole = cost_slope(cost, &copies, [0, 2]);
        let raw = whole.evaluate(&mean);
        let over = |rounds: &[&[f64]]| {
            let mean = mean_durations(rounds);
            whole.evaluate(&mean) / gauge.read(&mean).rate
        };
        let (first, second) = kept.split_at(kept.len() / 2);
        let steady = frequency::select_steady_rounds(&kept, &gauge, shape.step);
        Some(LayoutEstimate {
            replicate: self.replicate,
            cost: raw / rate,
            slopes: [[0, 1], [1, 2]].map(|lengths| cost_slope(cost, &copies, lengths).evaluate(&mean) / rate),
            systematic: gauge.systematic_error(raw / rate, effective_copies(cost, &copies)),
            between: {
                let part = |(snippet, weight): (usize, f64)| {
                    let alone = cost_slope(&CostFormula::new([(snippet, weight)]), &copies, [0, 2]);
                    (weight * shape.between_cycles).hypot(shape.between * alone.evaluate(&mean) / rate).powi(2)
                };
                cost.weights().map(part).sum::<f64>().sqrt()
            },
            trend: over(second) - over(first),
            at_one_frequency: (steady.len() >= KEPT_LEAST).then(|| over(&steady)),
            raw,
            rate,
            add_link: scale.add_link(),
            width: scale.width,
            width_error: gauge.width_error(&scale, shape.step, kept.len()),
            kept: kept.len(),
            dropped: total - kept.len(),
        })
    }
}
