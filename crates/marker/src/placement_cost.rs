//! Turns durations into costs.
//!
//! A visit runs a loop with the marker and one without, each with few and with many iterations. The
//! difference of the two lengths cancels the cost of the call and its readings. The difference of
//! these two differences, converted to core cycles by the ruler, is the marker's cost per
//! iteration. Each visit draws new iteration counts, because they affect whether a branch predictor
//! predicts the end of a loop.
//!
//! A visit is a single round: a predictor's state persists for a whole visit and changes between
//! visits. Visits with an interrupt fall into the outermost fifths, which the mean excludes. Visits
//! at one placement may form modes. The cost is then that of the most frequent mode. The marker's
//! cost is the median over placements. Its interval uses order statistics, which assume nothing
//! about the distribution over placements.
//!
//! All functions are pure, so that tests can use simulated durations.

use super::bench::{CaseVisit, call};
use cyclescope_core::statistics::{
    Interval, mean, median, median_interval, quantiles, t_interval, trimmed_interval, untrimmed_range,
};
use cyclescope_measure::contrast::Contrast;
use cyclescope_measure::modes::{CostMode, CostModes};
use cyclescope_measure::ruler::{Gauge, LayoutSamples, instrument_margin, sentinel_loops, shared_margin};
use serde::Serialize;

/// Modes closer than this, in core cycles, are not distinguished: the possible error of a single
/// visit.
const MODE_CYCLES: f64 = 0.05;
/// Modes closer than this number of clock steps are not distinguished either. Costs fall on
/// multiples of the step.
const MODE_STEPS: f64 = 2.0;

/// Standard deviation of a visit's cost from the clock's step alone, in steps. A duration between
/// two readings has the variance step²/6, and a cost contains four durations. The remaining costs
/// may agree by chance, because all are multiples of the step. Only the step then gives their
/// error.
fn step_deviation() -> f64 {
    (4.0f64 / 6.0).sqrt()
}

/// The figures of one visit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct VisitReading {
    /// Core cycles per iteration without the marker.
    pub base: f64,
    /// Core cycles per iteration with the marker.
    pub site: f64,
    /// Raw units of the clock per core cycle.
    pub rate: f64,
    /// Core cycles of one link of the `add` chain; 1 if the rulers agree.
    pub add_link: f64,
    /// Independent additions per core cycle according to the width sentinel.
    pub width: f64,
    /// Standard error of `width`, as a share of it.
    pub width_error: f64,
    /// Difference of the two iteration counts.
    pub span: f64,
    /// The clock's step, in core cycles per iteration.
    pub step: f64,
}

impl VisitReading {
    /// Cost of the marker in core cycles.
    pub(crate) fn cost(&self) -> f64 {
        self.site - self.base
    }
}

/// The figures from a visit's durations; `None` if the clock was set back, or there are no
/// durations.
pub(crate) fn read_visit(
    samples: &LayoutSamples,
    visit: &CaseVisit,
    imul_latency: f64,
    step: f64,
) -> Option<VisitReading> {
    let round = samples.rounds().next()?;
    let gauge = Gauge::whole_ruler(visit.ruler_loops, sentinel_loops(step), imul_latency);
    let scale = gauge.read(round);
    let rate = scale.rate;
    let span = (visit.loops[1] - visit.loops[0]) as f64;
    let around = |lengths| Contrast::slope_between(lengths, span).evaluate(round) / rate;
    let reading = VisitReading {
        base: around([call::BASE_FEW, call::BASE_MANY]),
        site: around([call::SITE_FEW, call::SITE_MANY]),
        rate,
        add_link: scale.add_link(),
        width: scale.width,
        width_error: gauge.width_error(&scale, step, 1),
        span,
        step: step / rate / span,
    };
    (scale.is_sane() && reading.cost().is_finite()).then_some(reading)
}

/// The cost at one placement.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacementCost {
    /// Cost of the marker per iteration, in core cycles; with modes, that of the most frequent one.
    pub cost: Interval,
    /// The modes, sorted by cost; empty if visits agree.
    pub modes: Vec<CostMode>,
    /// Core cycles per iteration without the marker.
    pub base: f64,
    /// Core cycles per iteration with the marker.
    pub site: f64,
    /// Ranges of the middle half of the visits, without the marker and with it.
    pub spread: [[f64; 2]; 2],
    /// Iterations and times behind the cost.
    pub timed: LoopTimes,
    /// Number of visits used.
    pub visits: usize,
}

/// Iterations and times of the visits in a mean cost, without the outermost fifths.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct LoopTimes {
    /// Iterations of each of the two loops: the difference of a visit's two lengths.
    pub loops: u64,
    /// Core cycles of the loop without the marker.
    pub base: f64,
    /// Core cycles of the loop with the marker.
    pub site: f64,
}

impl LoopTimes {
    fn from_readings<'a>(readings: impl Iterator<Item = &'a VisitReading>) -> LoopTimes {
        readings.fold(LoopTimes::default(), |timed, reading| LoopTimes {
            loops: timed.loops + reading.span as u64,
            base: timed.base + reading.span * reading.base,
            site: timed.site + reading.span * reading.site,
        })
    }

    /// The sum of all times.
    pub(crate) fn sum_times(all: impl Iterator<Item = LoopTimes>) -> LoopTimes {
        all.fold(LoopTimes::default(), |sum, one| LoopTimes {
            loops: sum.loops + one.loops,
            base: sum.base + one.base,
            site: sum.site + one.site,
        })
    }
}

/// The cost at a placement, at a confidence level such as 0.95; `None` for fewer than two visits.
pub(crate) fn estimate_placement(readings: &[VisitReading], confidence: f64) -> Option<PlacementCost> {
    let costs: Vec<f64> = readings.iter().map(VisitReading::cost).collect();
    let step = mean(&readings.iter().map(|reading| reading.step).collect::<Vec<_>>());
    let modes = CostModes::from_costs(&costs, MODE_CYCLES.max(MODE_STEPS * step));
    let interval = |group: &[usize]| {
        let costs: Vec<f64> = group.iter().map(|index| costs[*index]).collect();
        let spans: Vec<f64> = group.iter().map(|index| readings[*index].span).collect();
        // Two differences, each with an error common to all visits.
        let margin = instrument_margin(confidence) * 2f64.sqrt() / mean(&spans);
        let interval = trimmed_interval(&costs, confidence).or_else(|| t_interval(&costs, confidence))?;
        let by_step = step_deviation() * step / (costs.len() as f64).sqrt();
        let half = interval.half_width().max(shared_margin(by_step, confidence));
        Some(Interval::with_margin(interval.value, half).widen_by(margin))
    };
    let largest = modes.largest_mode()?;
    let mut cost = interval(largest)?;
    // If chance may decide which mode is most frequent, the interval covers both modes.
    for rival in modes.rival_modes().filter_map(interval) {
        cost.low = cost.low.min(rival.low);
        cost.high = cost.high.max(rival.high);
    }
    let middle = |figure: fn(&VisitReading) -> f64| {
        median(&mut largest.iter().map(|index| figure(&readings[*index])).collect::<Vec<_>>())
    };
    let spread = |figure: fn(&VisitReading) -> f64| {
        quantiles(&mut readings.iter().map(figure).collect::<Vec<_>>(), [0.25, 0.75])
    };
    let mut counted = largest.to_vec();
    counted.sort_by(|one, other| costs[*one].total_cmp(&costs[*other]));
    Some(PlacementCost {
        cost,
        modes: modes.list_modes(interval),
        base: middle(|reading| reading.base),
        site: middle(|reading| reading.site),
        spread: [spread(|reading| reading.base), spread(|reading| reading.site)],
        timed: LoopTimes::from_readings(counted[untrimmed_range(counted.len())].iter().map(|index| &readings[*index])),
        visits: readings.len(),
    })
}

/// Median over placements of one figure, with its interval; `None` if there are too few placements
/// for one.
pub(crate) fn median_over_placements(values: &[f64], confidence: f64) -> Option<Interval> {
    median_interval(values, confidence)
}
