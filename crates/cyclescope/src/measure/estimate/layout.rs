//! One layout: the calls of its rounds, and its estimate.

use super::frequency;
use crate::measure::contrast::Contrast;
use crate::ruler::{Gauge, KEPT_LEAST, LayoutSamples, sentinel_loops};
use serde::{Deserialize, Serialize};

/// The calls of a round: those of the whole ruler, then the snippet's. Each layout runs them in an order of its own.
pub(crate) mod call {
    pub(crate) use crate::ruler::column::{
        ADD_LONG, ADD_SHORT, IMUL_LONG, IMUL_SHORT, SENTINEL, WHOLE as RULERS,
    };

    /// u copies of the snippet.
    pub(crate) const ONE: usize = RULERS;
    /// 2u copies.
    pub(crate) const TWO: usize = RULERS + 1;
    /// 4u copies.
    pub(crate) const FOUR: usize = RULERS + 2;
    /// Calls in a round.
    pub(crate) const COUNT: usize = RULERS + 3;
}

/// Parameters of a round that are needed to read its durations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Iterations of a looped body, 1 without a loop.
    pub loop_count: u64,
    /// Latency of `imul r32, r32` in core cycles, a whole number.
    pub imul_latency: f64,
    /// Step of the clock's readings in its raw units.
    pub step: f64,
    /// Independent additions a cycle that the sentinel reads on an unshared core; `None` where that is unknown.
    pub width: Option<f64>,
    /// Whether the layouts form one population even where their costs fall into clusters: the cost of a first run
    /// depends on its offset in a cache line, and the mean over the offsets is the result.
    pub pooled: bool,
}

/// Durations of one layout, and the numbers of copies in its three bodies.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutData {
    /// Copies of the snippet in the three bodies: about u, 2u and 4u.
    pub copies: [usize; 3],
    /// Iterations of the ruler's loops.
    pub ruler_loops: u64,
    /// Durations, a column for each of [`call`].
    pub samples: LayoutSamples,
}

impl LayoutData {
    /// The layout's ruler.
    pub(crate) fn gauge(&self, shape: &Shape) -> Gauge {
        Gauge::whole(self.ruler_loops, sentinel_loops(shape.step), shape.imul_latency)
    }
}

/// Figures of one layout.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LayoutEstimate {
    /// Core cycles a copy, from the slope between u and 4u.
    pub cost: f64,
    /// Core cycles a copy between u and 2u, and between 2u and 4u.
    pub slopes: [f64; 2],
    /// Standard deviation of the instrument's error, in core cycles a copy.
    pub systematic: f64,
    /// Change of the cost from the first half of the rounds to the second, in core cycles.
    pub trend: f64,
    /// The cost without rounds in which the core clock's frequency changed; `None` where the others are too few.
    pub at_one_frequency: Option<f64>,
    /// Raw units of the clock a copy.
    pub raw: f64,
    /// Raw units of the clock a core cycle.
    pub rate: f64,
    /// Core cycles of one link of the `add` chain; 1 where the rulers agree.
    pub add_link: f64,
    /// Independent additions a core cycle, as the width sentinel saw it.
    pub width: f64,
    /// Standard error of `width`, as a share of it.
    pub width_error: f64,
    /// Rounds used.
    pub kept: usize,
    /// Rounds dropped.
    pub dropped: usize,
}

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

impl LayoutData {
    /// Figures of the layout from its rounds below these limits; `None` where they are too few.
    pub(super) fn estimate(&self, limit: &[f64], shape: &Shape) -> Option<LayoutEstimate> {
        let kept: Vec<&[f64]> = self
            .samples
            .rounds()
            .filter(|round| round.iter().zip(limit).all(|(duration, limit)| duration <= limit))
            .collect();
        let total = self.samples.rounds().len();
        if kept.len() < KEPT_LEAST || kept.len() * 4 < total {
            return None;
        }
        let mean = means(&kept);
        let gauge = self.gauge(shape);
        let scale = gauge.read(&mean);
        let rate = scale.rate;
        let [one, two, four] = self.copies.map(|copies| copies as f64 * shape.loop_count as f64);
        let slope = Contrast::slope([call::ONE, call::FOUR], four - one);
        let raw = slope.of(&mean);
        let over = |rounds: &[&[f64]]| {
            let mean = means(rounds);
            slope.of(&mean) / gauge.read(&mean).rate
        };
        let (first, second) = kept.split_at(kept.len() / 2);
        let steady = frequency::steady(&kept, &gauge, shape.step);
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
