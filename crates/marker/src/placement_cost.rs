//! From durations to costs.
//!
//! A visit runs a loop with the marker and one without for fewer and for more times around. The difference of the two
//! lengths is free of what a call and its readings take; the difference of the two differences, by the ruler in core
//! cycles, is what the marker adds to once around. How often exactly they go around is drawn anew for each visit,
//! for whether a branch predictor foresees a loop's end depends on it.
//!
//! A visit is a single round, for what a predictor has learnt stays for a whole visit and changes from one to the next;
//! visits that an interrupt hit are among the outermost fifths that the mean leaves out. At one placement visits can
//! fall into modes: then its cost is that of the mode that most of them are in. The marker's cost is the median over
//! placements, with an interval from order statistics, which assumes nothing about how placements vary.
//!
//! Pure functions, so that they can be proved on made-up durations.

use super::bench::{CaseVisit, call};
use cyclescope_core::statistics::{
    Interval, mean, median, median_interval, quantiles, t_interval, trimmed_interval, untrimmed_range,
};
use cyclescope_measure::contrast::Contrast;
use cyclescope_measure::modes::{CostMode, CostModes};
use cyclescope_measure::ruler::{Gauge, LayoutSamples, instrument_margin, sentinel_loops, shared_margin};
use serde::Serialize;

/// Modes closer than this, in core cycles, are not distinguished: it is what a single visit may be wrong by.
const MODE_CYCLES: f64 = 0.05;
/// Nor are those closer than this number of steps of the clock, on whose multiples costs lie that are not multiples.
const MODE_STEPS: f64 = 2.0;

/// Standard deviation of a visit's cost that the clock's step makes by itself, in steps: a duration between two readings
/// has the variance step²/6, and four durations are in a cost. The costs that are kept may agree by chance, for all lie on
/// multiples of the step: nothing but the step says how far off they are then.
fn step_deviation() -> f64 {
    (4.0f64 / 6.0).sqrt()
}

/// What one visit says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct VisitReading {
    /// Core cycles of once around the loop without the marker.
    pub base: f64,
    /// Core cycles of once around the loop with it.
    pub site: f64,
    /// Raw units of the clock a core cycle.
    pub rate: f64,
    /// Core cycles of one link of the `add` chain; 1 where the rulers agree.
    pub add_link: f64,
    /// Independent additions a core cycle, as the width sentinel saw it.
    pub width: f64,
    /// Its standard error, as a share of it.
    pub width_error: f64,
    /// Times around by which the two lengths differ.
    pub span: f64,
    /// The clock's step, in core cycles of once around.
    pub step: f64,
}

impl VisitReading {
    /// Core cycles that the marker adds.
    pub(crate) fn cost(&self) -> f64 {
        self.site - self.base
    }
}

/// What a visit's durations say; none where the clock was set back meanwhile, or there are none.
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
    /// Core cycles that the marker adds to once around; where there are modes, in the one that most visits are in.
    pub cost: Interval,
    /// The modes, by cost; empty where visits agree.
    pub modes: Vec<CostMode>,
    /// Core cycles of once around the loop without the marker.
    pub base: f64,
    /// Core cycles of once around the loop with it.
    pub site: f64,
    /// What half of the visits are between, of the loop without the marker and of that with it.
    pub spread: [[f64; 2]; 2],
    /// What went into the cost.
    pub timed: LoopTimes,
    /// Visits used.
    pub visits: usize,
}

/// Iterations, and what they took, of the visits that a cost is the mean of: without the outermost fifths.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct LoopTimes {
    /// Iterations of each of the two loops, by which the two lengths of a visit differ.
    pub loops: u64,
    /// Core cycles of the loop without the marker.
    pub base: f64,
    /// Core cycles of the loop with it.
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

    /// All of them together.
    pub(crate) fn sum_times(all: impl Iterator<Item = LoopTimes>) -> LoopTimes {
        all.fold(LoopTimes::default(), |sum, one| LoopTimes {
            loops: sum.loops + one.loops,
            base: sum.base + one.base,
            site: sum.site + one.site,
        })
    }
}

/// The cost at a placement, at one level of confidence such as 0.95; none from fewer than two visits.
pub(crate) fn estimate_placement(readings: &[VisitReading], confidence: f64) -> Option<PlacementCost> {
    let costs: Vec<f64> = readings.iter().map(VisitReading::cost).collect();
    let step = mean(&readings.iter().map(|reading| reading.step).collect::<Vec<_>>());
    let modes = CostModes::from_costs(&costs, MODE_CYCLES.max(MODE_STEPS * step));
    let interval = |group: &[usize]| {
        let costs: Vec<f64> = group.iter().map(|index| costs[*index]).collect();
        let spans: Vec<f64> = group.iter().map(|index| readings[*index].span).collect();
        // Two differences, each of which may be wrong alike in all visits.
        let margin = instrument_margin(confidence) * 2f64.sqrt() / mean(&spans);
        let interval = trimmed_interval(&costs, confidence).or_else(|| t_interval(&costs, confidence))?;
        let by_step = step_deviation() * step / (costs.len() as f64).sqrt();
        let half = interval.half_width().max(shared_margin(by_step, confidence));
        Some(Interval::with_margin(interval.value, half).widen_by(margin))
    };
    let largest = modes.largest_mode()?;
    let mut cost = interval(largest)?;
    // Which mode most visits are in may be chance: then the cost is anywhere from one to the other.
    for rival in modes.rival_modes().filter_map(interval) {
        cost.low = cost.low.min(rival.low);
        cost.high = cost.high.max(rival.high);
    }
    let middle = |of: fn(&VisitReading) -> f64| {
        median(&mut largest.iter().map(|index| of(&readings[*index])).collect::<Vec<_>>())
    };
    let spread =
        |of: fn(&VisitReading) -> f64| quantiles(&mut readings.iter().map(of).collect::<Vec<_>>(), [0.25, 0.75]);
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

/// The median over placements of one figure of each, with its interval; `None` of too few for one.
pub(crate) fn median_over_placements(values: &[f64], confidence: f64) -> Option<Interval> {
    median_interval(values, confidence)
}
