//! Iterations in parts of about a millisecond.

use cyclescope_clock::{CycleClock, Span};
use std::time::Duration;

/// Ticks of a millisecond, near enough for the length of a part: TSCs count 2 to 4 a nanosecond.
const MILLISECOND: f64 = 2.5e6;
/// Parts of a benchmark in a run of `cyclescope ab`: the protocol asks for 5 to 50 samples, and 20 of half a millisecond take its 10.
const OF_A_RUN: usize = 20;
/// Standard deviations on each side of the mean in 95 % of a normal distribution.
const NORMAL: f64 = 1.96;

/// How long to measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Ticks of a part.
    long: f64,
    parts: usize,
    /// Ticks after which no further part is begun once there are enough, and how many that takes.
    longest: f64,
    fewest: usize,
}

impl Plan {
    /// For a table: so many parts of a millisecond that chance moves their median little, and at least so many that it has an interval.
    pub(crate) const TABLE: Plan =
        Plan { long: MILLISECOND, parts: 101, longest: 2000.0 * MILLISECOND, fewest: 11 };

    /// For a run that should take so long.
    pub(crate) fn of_a_run(time: Duration) -> Plan {
        let longest = MILLISECOND * 1e3 * time.as_secs_f64();
        Plan { long: longest / OF_A_RUN as f64, parts: OF_A_RUN, longest, fewest: 1 }
    }
}

/// Core cycles of an iteration.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cost {
    pub cycles: f64,
    /// The interval of 95 % of the median.
    pub interval: [f64; 2],
    /// Iterations of each part, and the core cycles of one of them in each, in order.
    pub number: u64,
    pub parts: Vec<f64>,
    /// Parts around which the core's clock moved.
    pub moved: usize,
}

/// Runs parts of at most so many iterations: `part` runs as many as it is told.
pub(crate) fn measure(
    plan: Plan,
    most: u64,
    mut part: impl FnMut(&CycleClock, u64) -> Span,
    clock: &CycleClock,
) -> Cost {
    let mut number = 1;
    let mut span = part(clock, number);
    while span.ticks.0 < plan.long / 2.0 && number < most {
        number = (2 * number).min(most);
        span = part(clock, number);
    }
    let (mut cycles, mut moved, mut passed) = (Vec::new(), 0, 0.0);
    while cycles.len() < plan.parts && (cycles.len() < plan.fewest || passed < plan.longest) {
        let span = part(clock, number);
        cycles.push(span.cycles.0 / number as f64);
        moved += usize::from(span.moved);
        passed += span.ticks.0;
    }
    let [low, cost, high] = middle(cycles.clone());
    Cost { cycles: cost, interval: [low, high], number, parts: cycles, moved }
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
    fn parts_grow_to_a_millisecond_and_no_longer() {
        let clock = CycleClock::new();
        let scale = Scale { cycles: 1.0, spread: 0.0 };
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
        assert_eq!((short.cycles, short.interval, short.parts.len()), (10.0, [10.0; 2], 101));
        assert_eq!(short.number, 1 << 17);
        assert_eq!(of(Plan::TABLE, 10.0, 1000).number, 1000);
        let long = of(Plan::TABLE, 1e9, u64::MAX);
        assert_eq!((long.number, long.parts.len(), long.moved), (1, 11, 0));
        // A run of ten milliseconds: twenty parts of half of one, or fewer of what takes longer.
        let run = Plan::of_a_run(Duration::from_millis(10));
        let short = of(run, 10.0, u64::MAX);
        assert_eq!((short.number, short.parts), (1 << 16, vec![10.0; 20]));
        assert_eq!(of(run, 1e9, u64::MAX).parts, [1e9]);
    }
}
