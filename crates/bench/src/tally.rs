//! Counts hits, and how often an interval contained the truth.

use cyclescope::statistics::{self, CoverageVerdict, judge_coverage};

/// Largest allowed distance of a reading from a known cost: ±0.02 or 0.5 %; below one cycle ±0.004
/// or 1.5 %.
pub fn tolerance(expected: f64) -> f64 {
    let (cycles, share) = if expected < 1.0 { (0.004, 0.015) } else { (0.02, 0.005) };
    f64::max(cycles, share * expected)
}

/// Readings of one snippet under one condition; `None` for a measurement without a number.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SnippetReadings(pub Vec<Option<f64>>);

impl SnippetReadings {
    /// The given numbers.
    pub fn given_values(&self) -> Vec<f64> {
        self.0.iter().flatten().copied().collect()
    }

    /// Number of readings within the tolerance of the expected cost.
    pub fn count_hits(&self, expected: f64) -> usize {
        let margin = tolerance(expected);
        self.given_values().iter().filter(|value| (*value - expected).abs() <= margin).count()
    }

    /// Number of measurements without a number.
    pub fn count_refused(&self) -> usize {
        self.0.iter().filter(|value| value.is_none()).count()
    }

    /// Lowest and highest number, if any.
    pub fn range(&self) -> Option<[f64; 2]> {
        let given = self.given_values();
        let low = given.iter().copied().reduce(f64::min)?;
        let high = given.iter().copied().reduce(f64::max)?;
        Some([low, high])
    }
}

/// The levels at which coverage is counted.
pub const COVERAGE_LEVELS: [f64; 4] = [0.5, 0.8, 0.95, 0.99];

/// How often intervals contained the truth.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CoverageTally {
    held: [usize; 4],
    widths: Vec<f64>,
    errors: Vec<f64>,
    refused: usize,
}

impl CoverageTally {
    /// Counts one measurement: whether its interval at each of [`COVERAGE_LEVELS`] contained the
    /// truth, the half width at 95 %, and the value's excess over the truth.
    pub fn add_interval(&mut self, held: [bool; 4], half_width: f64, error: f64) {
        self.errors.push(error);
        for (count, held) in self.held.iter_mut().zip(held) {
            *count += usize::from(held);
        }
        self.widths.push(half_width);
    }

    /// Counts a measurement without a number.
    pub fn add_refused(&mut self) {
        self.refused += 1;
    }

    /// Adds another count to this one.
    pub fn merge(&mut self, other: &CoverageTally) {
        for (count, more) in self.held.iter_mut().zip(other.held) {
            *count += more;
        }
        self.widths.extend(&other.widths);
        self.errors.extend(&other.errors);
        self.refused += other.refused;
    }

    /// Measurements that gave a number.
    pub fn count_given(&self) -> usize {
        self.widths.len()
    }

    /// Measurements without a number.
    pub fn count_refused(&self) -> usize {
        self.refused
    }

    /// The share of intervals that contained the truth, at each level.
    pub fn held_shares(&self) -> [f64; 4] {
        self.held.map(|held| held as f64 / self.count_given().max(1) as f64)
    }

    /// Whether they did as often as the level says; `None` if there are too few to decide.
    pub fn is_calibrated(&self, level: usize) -> Option<bool> {
        check_calibration(COVERAGE_LEVELS[level], self.held[level], self.count_given())
    }

    /// The mean error; NaN without measurements.
    pub fn bias(&self) -> f64 {
        statistics::mean(&self.errors)
    }

    /// The median half width at 95 %; `None` without measurements.
    pub fn half_width(&self) -> Option<f64> {
        (!self.widths.is_empty()).then(|| statistics::median(&mut self.widths.clone()))
    }
}

/// Whether intervals contained the truth as often as their level says; `None` if there are too few
/// to decide.
pub fn check_calibration(level: f64, held: usize, trials: usize) -> Option<bool> {
    match judge_coverage(level, held, trials) {
        CoverageVerdict::Right => Some(true),
        CoverageVerdict::Wrong => Some(false),
        CoverageVerdict::TooFew => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerances_are_absolute_for_small_and_relative_for_large_costs() {
        assert_eq!(tolerance(1.0), 0.02);
        assert_eq!(tolerance(10.0), 0.05);
        assert_eq!(tolerance(0.2), 0.004);
        assert!((tolerance(0.5) - 0.0075).abs() < 1e-12);
    }

    #[test]
    fn a_missing_number_is_not_a_hit() {
        let readings = SnippetReadings(vec![Some(3.019), None, Some(2.979), Some(3.0)]);
        assert_eq!((readings.count_hits(3.0), readings.count_refused()), (2, 1));
        assert_eq!(readings.range(), Some([2.979, 3.019]));
        assert_eq!(SnippetReadings(vec![None]).range(), None);
    }

    #[test]
    fn coverage_adds_up() {
        let mut one = CoverageTally::default();
        one.add_interval([false, true, true, true], 0.1, 0.5);
        one.add_refused();
        let mut all = CoverageTally::default();
        all.add_interval([false, false, true, true], 0.3, -0.1);
        all.merge(&one);
        assert_eq!((all.count_given(), all.count_refused()), (2, 1));
        assert_eq!(all.held_shares(), [0.0, 0.5, 1.0, 1.0]);
        assert!((all.half_width().unwrap() - 0.2).abs() < 1e-12);
        assert!((all.bias() - 0.2).abs() < 1e-12);
        assert_eq!(CoverageTally::default().half_width(), None);
    }
}
