//! The rate of the TSC, measured with `CLOCK_MONOTONIC_RAW`.
//!
//! Each point brackets a read of the clock between two reads of the TSC, and keeps the tightest of
//! several brackets. A line through the points of a window gives a rate. Two windows must agree.
//!
//! Limits: if the kernel keeps time with the TSC (clock source `tsc`, `kvm-clock`), this clock *is*
//! the TSC, scaled by the rate that the kernel found at boot. The interval then only shows how well
//! that rate was read back. Only NTP knows the difference from true seconds (`ntp_correction`).
//! Without NTP it is some 10 ppm, the tolerance of a crystal.

use std::time::{Duration, Instant};

use cyclescope_platform::time::{read_clock_correction, read_steady_clock};
use serde::{Deserialize, Serialize};

use super::fact::Fact;
use super::tsc::TscFacts;
use super::tsc_read::lfence_rdtsc;
use crate::error::Unavailable;
use crate::unit::Hertz;

/// The rate of the TSC with a 95 % interval, relative to `CLOCK_MONOTONIC_RAW`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TscCalibration {
    /// Rate of the TSC.
    pub hertz: Hertz,
    /// Lower end of the interval.
    pub low: Hertz,
    /// Upper end of the interval.
    pub high: Hertz,
    /// Whether the last two windows agreed within their intervals. If not, the interval contains
    /// both.
    pub agreed: bool,
    /// Time from the first to the last point, in nanoseconds.
    pub span_ns: u64,
    /// Median width of the brackets in ticks: the cost of reading the clock.
    pub bracket_ticks: u64,
    /// Whether the clock is derived from the TSC itself. The result is then the kernel's own
    /// figure.
    pub clock_is_tsc: Fact<bool>,
    /// Parts per million by which the kernel's clock runs slow according to NTP.
    pub ntp_ppm: Fact<f64>,
}

/// One read of both clocks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct CalibrationPoint {
    /// Middle of the bracket, in ticks from the first point.
    ticks: f64,
    /// The clock, in nanoseconds from the first point.
    nanos: f64,
    /// Width of the bracket, in ticks.
    width: f64,
}

/// A rate in ticks per nanosecond, with the half width of its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TickRate {
    value: f64,
    half: f64,
}

const WINDOW_POINTS: usize = 24;
const BRACKET_TRIES: usize = 12;
const MOST_WINDOWS: u32 = 4;
/// A shorter window would not exceed a scheduler's time slice, and its interval would be useless.
const SHORTEST_WINDOW: Duration = Duration::from_millis(1);

/// Calibrates over a span filled by other work, such as a measurement.
#[derive(Debug)]
pub enum TscStopwatch {
    /// TSC and clock at the start of the span, and the width of their bracket.
    Running {
        /// Ticks before, nanoseconds, ticks after.
        start: (u64, u64, u64),
    },
    /// The rate is given with the machine, whose TSC this process cannot read.
    Given(Hertz),
}

impl TscStopwatch {
    /// Starts the span.
    pub fn start(tsc: &TscFacts) -> Result<TscStopwatch, Unavailable> {
        tsc.require()?;
        Ok(match tsc.given {
            Some(given) => TscStopwatch::Given(given.rate),
            None => TscStopwatch::Running { start: tightest_bracket() },
        })
    }

    /// Rate since the start, with the bounds given by the widths of the two brackets.
    pub fn rate_bounds(&self) -> [Hertz; 3] {
        let (ticks, nanos, width) = match self {
            TscStopwatch::Given(rate) => return [*rate; 3],
            TscStopwatch::Running { start } => *start,
        };
        let (end_ticks, end_nanos, end_width) = tightest_bracket();
        let span = end_nanos.saturating_sub(nanos) as f64 / 1e9;
        let passed = end_ticks.wrapping_sub(ticks) as f64;
        let error = (width + end_width) as f64 / 2.0;
        [passed - error, passed, passed + error].map(|ticks| Hertz(ticks / span))
    }
}

/// The tightest of several brackets.
fn tightest_bracket() -> (u64, u64, u64) {
    (0..BRACKET_TRIES).map(|_| read_bracket()).min_by_key(|found| found.2).unwrap_or_default()
}

/// Calibrates within about `budget`, or half of it if the first two windows agree.
///
/// 100 ms give an interval of about ± 0.1 ppm.
pub(crate) fn calibrate_tsc(tsc: &TscFacts, budget: Duration) -> Result<TscCalibration, Unavailable> {
    tsc.require_readable()?;
    let window = (budget / MOST_WINDOWS).max(SHORTEST_WINDOW);
    let origin = CalibrationOrigin::now();
    let mut windows: Vec<Vec<CalibrationPoint>> = Vec::new();
    loop {
        windows.push(take_window(&origin, window));
        let enough = windows.len() >= 2 && do_rates_agree(last_two_rates(&windows));
        if enough || windows.len() >= MOST_WINDOWS as usize {
            break;
        }
    }
    Ok(TscCalibration {
        clock_is_tsc: tsc.clocksource.clone().map(|name| is_made_from_tsc(&name)),
        ntp_ppm: ntp_correction(),
        ..evaluate_windows(&windows)
    })
}

/// Clock sources that count TSC ticks (Linux arch/x86/kernel/tsc.c, kvmclock.c, hyperv_timer.c,
/// xen/time.c).
fn is_made_from_tsc(name: &str) -> bool {
    matches!(name, "tsc" | "tsc-early" | "kvm-clock" | "hyperv_clocksource_tsc_page" | "xen")
}

/// Rates of the last two windows.
fn last_two_rates(windows: &[Vec<CalibrationPoint>]) -> [TickRate; 2] {
    let last = windows.len() - 1;
    [fit_line(&windows[last - 1]), fit_line(&windows[last])]
}

fn do_rates_agree([first, second]: [TickRate; 2]) -> bool {
    (first.value - second.value).abs() <= first.half + second.half
}

/// Calibration from all windows; facts that are not measured stay unknown.
fn evaluate_windows(windows: &[Vec<CalibrationPoint>]) -> TscCalibration {
    let pair = last_two_rates(windows);
    let agreed = do_rates_agree(pair);
    let kept = if agreed { &windows[windows.len() - 2..] } else { windows };
    let points: Vec<CalibrationPoint> = kept.concat();
    let whole = fit_line(&points);
    let (mut low, mut high) = (whole.value - whole.half, whole.value + whole.half);
    if !agreed {
        low = pair.iter().map(|rate| rate.value - rate.half).fold(low, f64::min);
        high = pair.iter().map(|rate| rate.value + rate.half).fold(high, f64::max);
    }
    let mut widths: Vec<f64> = points.iter().map(|point| point.width).collect();
    widths.sort_unstable_by(f64::total_cmp);
    TscCalibration {
        hertz: Hertz(whole.value * 1e9),
        low: Hertz(low * 1e9),
        high: Hertz(high * 1e9),
        agreed,
        span_ns: (points[points.len() - 1].nanos - points[0].nanos) as u64,
        bracket_ticks: widths[widths.len() / 2] as u64,
        clock_is_tsc: Fact::unknown("not asked for"),
        ntp_ppm: Fact::unknown("not asked for"),
    }
}

/// Least-squares line of ticks over nanoseconds.
///
/// The half width adds systematic errors to the statistical error. The clock counts whole
/// nanoseconds, and its read may lie anywhere inside the bracket.
fn fit_line(points: &[CalibrationPoint]) -> TickRate {
    let count = points.len() as f64;
    let mean = |value: fn(&CalibrationPoint) -> f64| points.iter().map(value).sum::<f64>() / count;
    let (mean_nanos, mean_ticks) = (mean(|point| point.nanos), mean(|point| point.ticks));
    let (mut sxx, mut sxy) = (0.0, 0.0);
    for point in points {
        sxx += (point.nanos - mean_nanos).powi(2);
        sxy += (point.nanos - mean_nanos) * (point.ticks - mean_ticks);
    }
    let value = sxy / sxx;
    let residual = |point: &CalibrationPoint| (point.ticks - mean_ticks) - value * (point.nanos - mean_nanos);
    let variance = points.iter().map(|point| residual(point).powi(2)).sum::<f64>() / (count - 2.0);
    let span = points[points.len() - 1].nanos - points[0].nanos;
    let mut widths: Vec<f64> = points.iter().map(|point| point.width).collect();
    widths.sort_unstable_by(f64::total_cmp);
    // The 10 % and 90 % quantiles: one wide bracket moves the line less than it moves the range.
    let spread = widths[widths.len() * 9 / 10] - widths[widths.len() / 10];
    let half = approximate_t_quantile(count - 2.0) * (variance / sxx).sqrt() + (value + spread / 2.0) / span;
    TickRate { value, half }
}

/// The 97.5 % quantile of Student's t, within 1 % from 5 degrees of freedom on.
fn approximate_t_quantile(freedom: f64) -> f64 {
    1.96 + 2.4 / freedom + 3.0 / freedom.powi(2)
}

/// The first point. All others are counted from it, to stay small enough for `f64`.
struct CalibrationOrigin {
    ticks: u64,
    nanos: u64,
}

impl CalibrationOrigin {
    fn now() -> CalibrationOrigin {
        let (ticks, nanos, _) = read_bracket();
        CalibrationOrigin { ticks, nanos }
    }
}

fn take_window(origin: &CalibrationOrigin, length: Duration) -> Vec<CalibrationPoint> {
    let start = Instant::now();
    (0..WINDOW_POINTS)
        .map(|index| {
            // The first point is taken at once, the last one at the end of the window.
            let due = length * index as u32 / (WINDOW_POINTS as u32 - 1);
            cyclescope_platform::time::sleep(due.saturating_sub(start.elapsed()));
            let (ticks, nanos, width) = tightest_bracket();
            CalibrationPoint {
                ticks: ticks.wrapping_sub(origin.ticks) as f64,
                nanos: nanos.saturating_sub(origin.nanos) as f64,
                width: width as f64,
            }
        })
        .collect()
}

/// One read of the clock between two of the TSC: middle and width of the bracket in ticks, and the
/// clock.
fn read_bracket() -> (u64, u64, u64) {
    // SAFETY: `calibrate_tsc` checked that RDTSC does not fault. The first fence completes the
    // first read before the clock's loads; the second completes the clock's value before the second
    // read.
    let before = unsafe { lfence_rdtsc() };
    let nanos = read_steady_clock();
    // SAFETY: as above.
    let after = unsafe { lfence_rdtsc() };
    let width = after.wrapping_sub(before);
    (before.wrapping_add(width / 2), nanos, width)
}

/// Parts per million by which NTP speeds up the system's clock relative to the kernel's own rate. The
/// TSC's true rate is lower than the kernel's by the same amount.
pub(crate) fn ntp_correction() -> Fact<f64> {
    read_clock_correction().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of a TSC at `rate` ticks per nanosecond, with `jitter` ns on both sides.
    fn points(rate: f64, from: f64, jitter: f64) -> Vec<CalibrationPoint> {
        (0..WINDOW_POINTS)
            .map(|index| {
                let nanos = from + index as f64 * 1e6;
                let noise = (index as f64 * 2.399).sin() * jitter;
                CalibrationPoint { ticks: (nanos + noise) * rate, nanos: nanos.floor(), width: 60.0 }
            })
            .collect()
    }

    #[test]
    fn a_known_rate_is_found_within_the_interval() {
        for jitter in [0.0, 5.0, 200.0] {
            let windows = [points(2.596, 0.0, jitter), points(2.596, 24e6, jitter)];
            let found = evaluate_windows(&windows);
            assert!(found.agreed && found.low.0 <= 2.596e9 && found.high.0 >= 2.596e9, "{found:?}");
            assert!(found.high.ppm_above(found.low) < 2.0 + jitter, "{found:?}");
        }
    }

    #[test]
    fn disagreeing_windows_widen_the_interval() {
        let mut second = points(2.597, 24e6, 5.0);
        for point in &mut second {
            point.ticks -= 24e6 * 0.001;
        }
        let found = evaluate_windows(&[points(2.596, 0.0, 5.0), second]);
        assert!(!found.agreed);
        assert!(found.low.0 < 2.5961e9 && found.high.0 > 2.5969e9, "{found:?}");
    }

    #[test]
    fn student_quantiles_are_within_one_percent() {
        for (freedom, quantile) in [(5.0, 2.571), (10.0, 2.228), (22.0, 2.074), (46.0, 2.013)] {
            assert!((approximate_t_quantile(freedom) / quantile - 1.0).abs() < 0.01, "{freedom}");
        }
    }

    #[test]
    fn this_machine_can_be_calibrated() {
        let machine = crate::machine::Machine::detect();
        match calibrate_tsc(&machine.tsc, Duration::from_millis(20)) {
            Ok(found) => {
                assert!(found.low.0 <= found.hertz.0 && found.hertz.0 <= found.high.0 && found.low.0 > 1e8)
            }
            Err(refused) => cyclescope_skipped::report_skipped(refused),
        }
    }
}
