//! Iterations in parts.

use cyclescope_clock::{CycleClock, Span};
use std::time::Duration;

/// Ticks in a millisecond, about: it need not be more exact. TSCs count at 2 to 4 GHz.
const MILLISECOND: f64 = 2.5e6;
/// Ticks of a part of a table: shorter than the time between two interrupts of the timer, so that most have none.
const PART: f64 = MILLISECOND / 10.0;
/// Parts of a benchmark, so that the interval of the median goes from the 47th to the 53rd percent.
const PARTS: usize = 1001;
/// Ticks after which no further part is begun, about two seconds, once there are enough for an interval: that of eleven goes from the third to
/// the ninth, so that two disturbed ones on each side are outside.
const LONGEST: f64 = 2000.0 * MILLISECOND;
const FEWEST: usize = 11;
/// Parts of a run of `cyclescope ab`, at least, where the iterations are short: it takes the lower quartile of 5 to 50 (docs/reference.md, ab).
const SHORTLY: f64 = 20.0;
/// Standard deviations on each side of the mean in 95 % of a normal distribution: its quantile of 97.5 %.
const NORMAL: f64 = 1.96;

/// How long the parts are, and how many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Ticks of a part: it takes half of them at least.
    part: f64,
    most: usize,
    fewest: usize,
    /// Ticks of all parts after which none is begun.
    longest: f64,
}

impl Plan {
    /// For a table.
    pub(crate) const TABLE: Plan = Plan { part: PART, most: PARTS, fewest: FEWEST, longest: LONGEST };

    /// For one observation of `cyclescope ab`, which takes about so long.
    pub(crate) fn observation(time: Duration) -> Plan {
        let longest = time.as_secs_f64() * 1e3 * MILLISECOND;
        Plan { part: longest / SHORTLY, most: usize::MAX, fewest: 1, longest }
    }
}

/// Core cycles of an iteration.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cost {
    pub cycles: f64,
    /// The interval of 95 % of the median.
    pub interval: [f64; 2],
    /// Iterations of a part.
    pub iterations: u64,
    pub parts: Vec<Span>,
}

/// Runs parts of at most so many iterations: `part` runs as many as it is told.
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

/// The median, between the ends of its interval: as many numbers are below the true median as a fair coin shows heads, of which the
/// standard deviation is half the root of how many there are.
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
    fn parts_grow_to_their_length_and_no_longer() {
        let clock = CycleClock::new();
        let scale = Scale { cycles: 1.0, pair: Ticks(0.0), spread: 0.0 };
        let of = |plan: Plan, each: f64, most| {
            let span = |number: u64| Span {
                cycles: CoreCycles(each * number as f64),
                ticks: Ticks(each * number as f64),
                scales: [scale; 2],
                moved: false,
            };
            measure(plan, most, |_, number| span(number), &clock)
        };
        let short = of(Plan::TABLE, 10.0, u64::MAX);
        assert_eq!((short.cycles, short.interval, short.parts.len()), (10.0, [10.0; 2], 1001));
        assert_eq!(short.iterations, 1 << 14);
        assert_eq!(of(Plan::TABLE, 10.0, 1000).iterations, 1000);
        let long = of(Plan::TABLE, 1e9, u64::MAX);
        assert_eq!((long.iterations, long.parts.len()), (1, 11));
        // Ten milliseconds are 20 to 40 parts of half of one at most; what takes longer has one.
        let observation = Plan::observation(Duration::from_millis(10));
        let short = of(observation, 10.0, u64::MAX);
        assert_eq!((short.iterations, short.parts.len()), (1 << 16, 39));
        assert_eq!(of(observation, 1e9, u64::MAX).parts.len(), 1);
    }
}
