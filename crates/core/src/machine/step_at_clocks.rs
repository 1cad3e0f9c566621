//! Whether the TSC's step depends on the core clock.
//!
//! Durations at the slowest and at the fastest core clock of a series are compared with multiples
//! of one step. They are several hundred steps long. If the step followed the core clock, a move of
//! 1 % would shift the durations off the multiples. Multiples would then be as frequent as among
//! random numbers.
//!
//! Limits: a fractional step is not tested, because its multiples are only known roughly.

use serde::{Deserialize, Serialize};

/// The step at the slowest and at the fastest core clock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepAtClocks {
    /// Relative move of the core clock: fastest divided by slowest, minus 1.
    pub moved: f64,
    /// Step in ticks.
    pub ticks: f64,
    /// Share of durations that are multiples of the step, at the slowest and at the fastest clock.
    pub on_lattice: [f64; 2],
    /// Number of durations at each clock.
    pub durations: [usize; 2],
    /// Whether the step is the same at both clocks.
    pub steady: bool,
}

/// Smallest relative move of the core clock for a test. It shifts a duration of several hundred
/// steps by some steps.
const LEAST_CLOCK_MOVE: f64 = 0.01;
/// Share of the clock range that counts as slowest, and as fastest.
const END_SHARE: f64 = 0.25;
/// Fewest durations at each end.
const FEWEST_DURATIONS: usize = 100;
/// Multiples of a steady step are at least this frequent, including readings that are off by one
/// tick.
const STEADY_SHARE: f64 = 0.8;
/// From this step on, readings one tick off a multiple count too: RDTSC is off by one in a tenth of
/// its readings.
const WIDE_STEP_TICKS: f64 = 8.0;

impl StepAtClocks {
    /// Fails with the reason if a step of this many ticks cannot be tested.
    pub fn check_testable(step: f64) -> Result<(), String> {
        if step <= 1.0 {
            return Err("the TSC counts single ticks".to_string());
        }
        if step.fract() != 0.0 {
            return Err("the step is not a whole number of ticks".to_string());
        }
        Ok(())
    }

    /// Compares the steps from samples of a clock that changed. Each sample has raw units per core
    /// cycle, and durations in raw units. `extremes` are the least and the most raw units per core
    /// cycle.
    pub fn from_samples(samples: &[(f64, Vec<f64>)], step: f64, extremes: [f64; 2]) -> Result<StepAtClocks, String> {
        let [fastest, slowest] = extremes;
        StepAtClocks::check_testable(step)?;
        let moved = slowest / fastest - 1.0;
        if moved < LEAST_CLOCK_MOVE {
            return Err(format!("the core clock moved by {:.2} %", 100.0 * moved));
        }
        let margin = END_SHARE * (slowest - fastest);
        let slow = select_durations(samples, |rate| rate >= slowest - margin);
        let fast = select_durations(samples, |rate| rate <= fastest + margin);
        if slow.len().min(fast.len()) < FEWEST_DURATIONS {
            return Err("too few durations were undisturbed at the slowest or the fastest clock".to_string());
        }
        let on_lattice = [&slow, &fast].map(|durations| lattice_share(durations, step));
        let steady = on_lattice.iter().all(|share| *share >= STEADY_SHARE);
        if !steady && on_lattice.iter().all(|share| *share < STEADY_SHARE) {
            return Err("durations are multiples of the step at no clock".to_string());
        }
        Ok(StepAtClocks { moved, ticks: step, on_lattice, durations: [slow.len(), fast.len()], steady })
    }
}

fn select_durations(samples: &[(f64, Vec<f64>)], wanted: impl Fn(f64) -> bool) -> Vec<f64> {
    let samples = samples.iter().filter(|(rate, _)| wanted(*rate));
    samples.flat_map(|(_, durations)| durations).copied().filter(|duration| duration.is_finite()).collect()
}

fn lattice_share(durations: &[f64], step: f64) -> f64 {
    let beside = if step >= WIDE_STEP_TICKS { 1.0 } else { 0.0 };
    let distance = |duration: &f64| (duration - (duration / step).round() * step).abs();
    let on = durations.iter().filter(|duration| distance(duration) <= beside).count();
    on as f64 / durations.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Samples at two core clocks, each with 200 durations of about 6 000 ticks in multiples of its
    /// own step.
    fn simulate_samples(rates: [f64; 2], steps: [f64; 2]) -> Vec<(f64, Vec<f64>)> {
        let mut random = Random::new(1);
        let mut sample = |rate, step: f64| {
            let duration = |_| ((200 + random.below(60)) as f64 * step).round();
            (rate, (0..200).map(duration).collect())
        };
        vec![sample(rates[0], steps[0]), sample(rates[1], steps[1])]
    }

    fn test_steps(rates: [f64; 2], steps: [f64; 2]) -> Result<StepAtClocks, String> {
        StepAtClocks::from_samples(&simulate_samples(rates, steps), 26.0, rates)
    }

    #[test]
    fn a_constant_step_is_steady_and_one_that_follows_the_clock_is_not() {
        let steady = test_steps([0.60, 0.62], [26.0, 26.0]).unwrap();
        assert!(steady.steady && steady.on_lattice == [1.0, 1.0] && steady.durations == [200, 200]);
        let follows = test_steps([0.60, 0.62], [26.0, 26.0 * 0.62 / 0.60]).unwrap();
        assert!(!follows.steady && follows.on_lattice[0] < 0.5 && follows.on_lattice[1] == 1.0, "{follows:?}");
    }

    #[test]
    fn without_a_step_or_a_change_there_is_no_verdict() {
        assert!(test_steps([0.60, 0.603], [26.0, 26.0]).unwrap_err().contains("moved by 0.50 %"));
        let samples = simulate_samples([0.60, 0.62], [26.0, 26.0]);
        for (step, why) in [(1.0, "single"), (25.5, "whole"), (31.0, "no clock")] {
            let refused = StepAtClocks::from_samples(&samples, step, [0.60, 0.62]).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
