//! Whether the ruler followed the core clock: the cost from rounds at one frequency, beside the cost from all.
//!
//! The calls of a round are taken to run at one frequency. Where the core clock changed within a round, the ruler's
//! calls and the snippet's did not. Such a round has another rate than the round before it or after it, so the cost
//! without these rounds shows what they changed.

use crate::ruler::Gauge;

/// Two rounds ran at different frequencies where their rates differ by more than this share,
const RATE_SHARE: f64 = 0.01;
/// and by more than this many standard deviations of the error that the clock's step gives their difference.
const RATE_ERRORS: f64 = 4.0;

/// Those of a layout's undisturbed rounds that ran at the frequency of the rounds beside them. `step` is that of the
/// clock's readings.
pub(super) fn select_steady_rounds<'a>(rounds: &[&'a [f64]], gauge: &Gauge, step: f64) -> Vec<&'a [f64]> {
    let rates: Vec<f64> = rounds.iter().map(|round| gauge.read(round).rate).collect();
    // A duration between two readings has the variance step²/6; a rate is a difference of two durations.
    let error = step * (2.0f64 / 3.0).sqrt() / gauge.span_cycles();
    let alike = |one: f64, other: f64| (one - other).abs() <= RATE_SHARE * one.abs() + RATE_ERRORS * error;
    let steady = |index: &usize| {
        let own = rates[*index];
        let before = index.checked_sub(1).map_or(own, |before| rates[before]);
        let after = rates.get(index + 1).copied().unwrap_or(own);
        alike(own, before) && alike(own, after)
    };
    (0..rounds.len()).filter(steady).map(|index| rounds[index]).collect()
}
