//! Measures the core clock with the ruler, relative to the clock of the timing method.

use cyclescope_code::clock::Clock;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::core_study::CoreStudy;
use cyclescope_core::machine::processor::Processor;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::{Interval, mean, quantiles, t_interval, value_range};
use cyclescope_core::unit::Hertz;
use cyclescope_core::unit::Unit;
use cyclescope_exec::Executor;
use cyclescope_measure::rounds::{LayoutReading, RulerRounds};
use cyclescope_measure::ruler::{instrument_margin, least_unshared_width, sentinel_width};
use cyclescope_measure::sibling::KeptReplicates;

/// Confidence level of the intervals.
pub(super) const CONFIDENCE: f64 = 0.95;
const ROUNDS: u32 = 16;
/// Layouts in which a latency is measured.
const LATENCY_LAYOUTS: usize = 16;
/// Largest distance of a measured latency from a whole number.
const WHOLE_SHARE: f64 = 0.01;

/// Measures the core clock with this number of layouts. `rate` is the rate of the TSC, if known:
/// low, value, high.
pub(super) fn measure_core_clock(
    executor: &mut dyn Executor,
    rounds: &RulerRounds,
    clock: &Clock,
    rate: Option<[Hertz; 3]>,
    cpu: &Processor,
    layouts: usize,
    random: &mut Random,
) -> Result<CoreStudy, String> {
    let adders = cpu.microarchitecture.known().and_then(|core| core.adders());
    let read = rounds.run_unshared(executor, layouts, ROUNDS, adders.map(least_unshared_width), random);
    let KeptReplicates { used, shared, .. } = read.map_err(|error| error.to_string())?;
    if used.len() < 2 {
        return Err("something disturbed every attempt to read the ruler".to_string());
    }
    let imul = layout_interval(&used, |reading| reading.imul / reading.add);
    let imul_used = cpu.imul_latency().or_else(|| whole_latency(imul.value));
    let cycle = |reading: &LayoutReading| match imul_used {
        Some(latency) => reading.imul / f64::from(latency),
        None => reading.add,
    };
    let raw = layout_interval(&used, cycle);
    // Errors that all layouts share, as shares: in the chain that gives the cycle, and in both
    // chains.
    let mean_of = |figure: fn(&LayoutReading) -> f64| mean(&used.iter().map(figure).collect::<Vec<_>>());
    let margin = instrument_margin(CONFIDENCE);
    let add_error = margin / mean_of(|reading| reading.add_links);
    let imul_error = margin / (mean_of(|reading| reading.imul_links) * imul.value);
    let error = if imul_used.is_some() { imul_error } else { add_error };
    let rate = match clock.counts {
        Unit::TscTicks => rate,
        Unit::Nanos => Some([Hertz(1e9); 3]),
        _ => None,
    };
    let [least, most] = value_range(used.iter().map(cycle));
    let study = CoreStudy {
        clock: clock.name,
        unit: clock.counts,
        raw_per_cycle: raw.widen_by(error * raw.value),
        megahertz: None,
        // The largest number of raw units per cycle belongs to the slowest clock.
        range: rate.map(|[_, value, _]| [most, least].map(|raw| value.to_megahertz() / raw)),
        imul: imul.widen_by(imul_error.hypot(add_error) * imul.value),
        imul_known: cpu.imul_latency(),
        imul_used,
        width: width_quantiles(&used),
        adders,
        width_known: adders.map(|adders| sentinel_width(adders.count)),
        shared,
        layouts: used.len(),
        kept: used.iter().map(|reading| reading.kept).sum(),
        dropped: used.iter().map(|reading| reading.dropped).sum(),
    };
    Ok(CoreStudy { megahertz: rate.map(|rate| core_megahertz(rate, &study.raw_per_cycle)), ..study })
}

/// Measures the latency of the ruler's `imul` in core cycles; `None` if it is not a whole number.
///
/// # Errors
///
/// Fails if the executor fails.
pub fn measure_imul_latency(
    executor: &mut dyn Executor,
    rounds: &RulerRounds,
    random: &mut Random,
) -> Result<Option<u32>, RunError> {
    let KeptReplicates { used, .. } = rounds.run_unshared(executor, LATENCY_LAYOUTS, ROUNDS, None, random)?;
    let ratios: Vec<f64> = used.iter().map(|reading| reading.imul / reading.add).collect();
    Ok(t_interval(&ratios, CONFIDENCE).and_then(|ratio| whole_latency(ratio.value)))
}

fn core_megahertz([low, value, high]: [Hertz; 3], raw: &Interval) -> Interval {
    Interval {
        value: value.to_megahertz() / raw.value,
        low: low.to_megahertz() / raw.high,
        high: high.to_megahertz() / raw.low,
    }
}

/// Student's t-interval over at least two layouts.
fn layout_interval(readings: &[LayoutReading], figure: impl Fn(&LayoutReading) -> f64) -> Interval {
    let values: Vec<f64> = readings.iter().map(figure).collect();
    t_interval(&values, CONFIDENCE).unwrap_or_else(|| Interval::with_margin(values[0], f64::INFINITY))
}

/// The whole number nearest to a measured latency; `None` if it is too far from it.
fn whole_latency(latency: f64) -> Option<u32> {
    let whole = latency.round();
    ((1.0..=16.0).contains(&whole) && (latency / whole - 1.0).abs() <= WHOLE_SHARE).then_some(whole as u32)
}

fn width_quantiles(readings: &[LayoutReading]) -> [f64; 3] {
    quantiles(&mut readings.iter().map(|reading| reading.width).collect::<Vec<_>>(), [0.0, 0.5, 1.0])
}
