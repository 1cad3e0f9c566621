//! Measures iterations in parts.

use cyclescope_clock::{CycleClock, Span};
use std::time::Duration;

/// Approximate ticks per millisecond: TSCs count at 2 to 4 GHz.
const MILLISECOND: f64 = 2.5e6;
/// Ticks of a part for a table: shorter than the time between two timer interrupts, so that most
/// parts have none.
const PART: f64 = MILLISECOND / 10.0;
/// Parts of a benchmark: with these the interval of the median extends from the 47th to the 53rd
/// percentile.
const PARTS: usize = 1001;
/// No part begins after this number of ticks (about two seconds) once there are enough parts for an
/// interval. The interval of eleven parts extends from the third to the ninth, so two disturbed
/// parts on each side are outside.
const LONGEST: f64 = 2000.0 * MILLISECOND;
const FEWEST: usize = 11;
/// Fewest parts of a run of `cyclescope ab` if iterations are short. It takes the lower quartile of
/// 5 to 50 (docs/reference.md, ab).
const SHORTLY: f64 = 20.0;
/// Standard deviations on each side of the mean in 95 % of a normal distribution: its quantile at
/// 97.5 %.
const NORMAL: f64 = 1.96;

/// Length and number of parts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Ticks of a part; it takes at least half of them.
    part: f64,
    most: usize,
    fewest: usize,
    /// No part begins after this number of ticks in all parts.
    longest: f64,
}

impl Plan {
    /// Plan for a table.
    pub(crate) const TABLE: Plan = Plan { part: PART, most: PARTS, fewest: FEWEST, longest: LONGEST };

    /// Plan that only runs the code, twice.
    pub(crate) const TEST: Plan = Plan { part: 0.0, most: 1, fewest: 1, longest: 0.0 };

    /// Plan for one run of `cyclescope ab`, which takes about this time.
    pub(crate) fn observation(time: Duration) -> Plan {
        let longest = time.as_secs_f64() * 1e3 * MILLISECOND;
        Plan { part: longest / SHORTLY, most: usize::MAX, fewest: 1, longest }
    }
}

/// Core cycles per iteration.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cost {
    pub cycles: f64,
    /// The 95 % interval of the median.
    pub interval: [f64; 2],
    /// Iterations per part.
    pub iterations: u64,
    pub parts: Vec<Span>,
}

/// Measures in parts of at most `most` iterations; `part` runs the given number of them.
pub(crate) fn measure(
    plan: Plan,
    most: u64,
    mut part: impl FnMut(&CycleClock, u64) -> Span,
    clock: &CycleClock,
) -> Cost {
    let mut iterations = 1;
    let mut span = part(clock, iterations);
    while span.ticks.0 < plan.part / 2.0 && iterations < most {
        iterations = (2 * iterations).min(most);
        span = part(clock, iterations);
    }
    let (mut parts, mut passed) = (Vec::new(), 0.0);
    while parts.len() < plan.most && (parts.len() < plan.fewest || passed < plan.longest) {
        let span = part(clock, iterations);
        passed += span.ticks.0;
        parts.push(span);
    }
    let [low, cycles, high] = middle(parts.iter().map(|span| span.cycles.0 / iterations as f64).collect());
    Cost { cycles, interval: [low, high], iterations, parts }
}

/// The median, between the ends of its interval. The count of numbers below the true median is
/// distributed like the heads of a fair coin. Its standard deviation is half the root of the total
/// count.
fn middle(mut numbers: Vec<f64>) -> [f64; 3] {
    numbers.sort_unstable_by(f64::total_cmp);
    let half = numbers.len() as f64 / 2.0;
    let away = NORMAL * half.sqrt() / std::f64::consts::SQRT_2;
    let at = |rank: f64| numbers.get(rank.max(0.0) as usize).or(numbers.last()).copied().unwrap_or_default();
    [at(half - away), at(half), at(half + away)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_clock::{CoreCycles, Scale, Ticks};

    #[test]
    fn a_median_has_an_interval_of_ranks() {
        // 1.96 times half the root of 101 is 9.8 ranks to each side.
        assert_eq!(middle((0..101).rev().map(f64::from).collect()), [40.0, 50.0, 60.0]);
        assert_eq!(middle(vec![7.0]), [7.0; 3]);
    }

    #[test]
    fn parts_grow_up_to_their_length() {
        let clock = CycleClock::new();
        let scale = Scale { cycles: 1.0, pair: Ticks(0.0), spread: 0.0 };
        let measure_cost = |plan: Plan, each: f64, most| {
            let span = |number: u64| Span {
                cycles: CoreCycles(each * number as f64),
                ticks: Ticks(each * number as f64),
                scales: [scale; 2],
                moved: false,
                migrated: false,
            };
            measure(plan, most, |_, number| span(number), &clock)
        };
        let short = measure_cost(Plan::TABLE, 10.0, u64::MAX);
        assert_eq!((short.cycles, short.interval, short.parts.len()), (10.0, [10.0; 2], 1001));
        assert_eq!(short.iterations, 1 << 14);
        assert_eq!(measure_cost(Plan::TABLE, 10.0, 1000).iterations, 1000);
        let long = measure_cost(Plan::TABLE, 1e9, u64::MAX);
        assert_eq!((long.iterations, long.parts.len()), (1, 11));
        // Ten milliseconds are 20 to 40 parts of at most half a millisecond. Longer code has one
        // part.
        let observation = Plan::observation(Duration::from_millis(10));
        let short = measure_cost(observation, 10.0, u64::MAX);
        assert_eq!((short.iterations, short.parts.len()), (1 << 16, 39));
        assert_eq!(measure_cost(observation, 1e9, u64::MAX).parts.len(), 1);
    }
}
