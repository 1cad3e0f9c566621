//! Iterations in parts of about a millisecond.

use cyclescope_clock::{CycleClock, Span};

/// Ticks of a part, and parts of a benchmark.
const LONG: f64 = 2.5e6;
const PARTS: usize = 101;
/// Ticks after which no further part is begun once there are enough for an interval, and how many that takes.
const LONGEST: f64 = 5e9;
const FEWEST: usize = 11;
/// Standard deviations on each side of the mean in 95 % of a normal distribution.
const NORMAL: f64 = 1.96;

/// Core cycles of an iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cost {
    pub cycles: f64,
    /// The interval of 95 % of the median.
    pub interval: [f64; 2],
    pub iterations: u64,
    pub parts: usize,
    /// Parts around which the core's clock moved.
    pub moved: usize,
}

/// Runs parts of at most so many iterations: `part` runs as many as it is told.
pub(crate) fn measure(most: u64, mut part: impl FnMut(&CycleClock, u64) -> Span, clock: &CycleClock) -> Cost {
    let mut number = 1;
    let mut span = part(clock, number);
    while span.ticks.0 < LONG / 2.0 && number < most {
        number = (2 * number).min(most);
        span = part(clock, number);
    }
    let (mut cycles, mut moved, mut passed) = (Vec::new(), 0, 0.0);
    while cycles.len() < PARTS && (cycles.len() < FEWEST || passed < LONGEST) {
        let span = part(clock, number);
        cycles.push(span.cycles.0 / number as f64);
        moved += usize::from(span.moved);
        passed += span.ticks.0;
    }
    let parts = cycles.len();
    let [low, cost, high] = middle(cycles);
    Cost { cycles: cost, interval: [low, high], iterations: parts as u64 * number, parts, moved }
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
        let of = |each: f64, most| {
            let span = |number: u64| Span {
                cycles: CoreCycles(each * number as f64),
                ticks: Ticks(each * number as f64),
                scales: [scale; 2],
                moved: false,
            };
            measure(most, |_, number| span(number), &clock)
        };
        let short = of(10.0, u64::MAX);
        assert_eq!((short.cycles, short.interval, short.parts), (10.0, [10.0; 2], 101));
        assert_eq!(short.iterations, 101 << 17);
        assert_eq!(of(10.0, 1000).iterations, 101_000);
        let long = of(1e9, u64::MAX);
        assert_eq!((long.iterations, long.parts, long.moved), (11, 11, 0));
    }
}
