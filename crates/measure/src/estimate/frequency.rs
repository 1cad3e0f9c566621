//! Checks whether the ruler followed the core clock: compares the cost at one frequency with the
//! cost from all rounds.
//!
//! All calls of a round are assumed to run at one frequency. If the core clock changes within a
//! round, the ruler's calls and the snippet's calls run at different frequencies. The rate of such
//! a round differs from that of the round before or after. The cost without these rounds shows how
//! much they contributed.

use crate::ruler::Gauge;

/// Two rounds ran at different frequencies if their rates differ by more than this share,
const RATE_SHARE: f64 = 0.01;
/// and by more than this many standard deviations of the error from the clock's step.
const RATE_ERRORS: f64 = 4.0;

/// Selects a layout's undisturbed rounds that ran at the frequency of their neighbours. `step` is
/// the step of the clock's readings.
pub(super) fn select_steady_rounds<'a>(rounds: &[&'a [f64]], gauge: &Gauge, step: f64) -> Vec<&'a [f64]> {
    let rates: Vec<f64> = rounds.iter().map(|round| gauge.read(round).rate).collect();
    // A duration between two readings has the variance step²/6; a rate is a difference of two
    // durations.
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
