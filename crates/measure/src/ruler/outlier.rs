//! Detects disturbed readings: by an interrupt, stolen time or a change of frequency.
//!
//! A reading is an outlier if its distance from the median exceeds several interquartile ranges,
//! and also the spread of undisturbed readings that the clock's step and wander cause.

use cyclescope_core::statistics::{quantiles, quartiles};
use statrs::distribution::{DiscreteCDF, Poisson};

/// A reading above the median by this many interquartile ranges is an outlier. For a normal
/// distribution these are 8 standard deviations, which chance does not reach. An interrupt takes
/// thousands of ticks.
const OUTLIER_RANGES: f64 = 6.0;

/// A layout with fewer undisturbed rounds is not used. If two rounds differ, either may be the
/// disturbed one.
pub const KEPT_LEAST: usize = 3;

/// Share of a duration by which the core clock wanders between rounds.
const CLOCK_WANDER: f64 = 0.0005;

/// Outliers among the durations of one call, relative to the lower quartile of their group (such as
/// a layout).
#[derive(Debug, Clone, PartialEq)]
pub struct Outliers {
    /// Lower quartile of each group; NaN if it has no finite duration. If each of twelve calls is disturbed with a probability of
    /// 0.3, more than half are disturbed once in twenty times, and more than three quarters once in
    /// twenty thousand.
    pub bases: Vec<f64>,
    /// Least distance of an outlier from the base.
    pub reach: f64,
    /// Number of outliers,
    pub hits: usize,
    /// in this time: the durations' sum without what disturbances added, in raw units.
    pub time: f64,
}

impl Outliers {
    /// Finds the outliers in groups of durations, in raw units of a clock with this step. Groups may
    /// differ only by their positions. Infinite durations are those of calls that say nothing.
    pub(crate) fn from_groups(mut groups: Vec<Vec<f64>>, step: f64) -> Outliers {
        groups.iter_mut().for_each(|group| group.retain(|duration| duration.is_finite()));
        let base = |group: &mut Vec<f64>| if group.is_empty() { f64::NAN } else { quantiles(group, [0.25])[0] };
        let bases: Vec<f64> = groups.iter_mut().map(base).collect();
        let mut residuals = Vec::with_capacity(groups.iter().map(Vec::len).sum());
        for (group, base) in groups.iter().zip(&bases) {
            residuals.extend(group.iter().map(|duration| duration - base));
        }
        if residuals.is_empty() {
            return Outliers { bases, reach: 0.0, hits: 0, time: 0.0 };
        }
        let [quarter, middle, _] = quartiles(&mut residuals);
        // From the lower half alone: disturbances lengthen durations, and may be frequent.
        let range = 2.0 * (middle - quarter);
        let known: Vec<f64> = bases.iter().copied().filter(|base| base.is_finite()).collect();
        let typical = cyclescope_core::statistics::mean(&known);
        let reach = range / 2.0 + OUTLIER_RANGES * range.max(step).max(CLOCK_WANDER * typical);
        let hits = residuals.len() - residuals.partition_point(|residual| *residual <= reach);
        Outliers { bases, reach, hits, time: typical * residuals.len() as f64 }
    }

    /// Whether disturbances at this rate (hits per raw unit of time) do not explain the call's
    /// hits. They cause as many hits by chance in less than one of ten thousand cases.
    pub(crate) fn exceeds_rate(&self, rate: f64) -> bool {
        const RARE: f64 = 1e-4;
        let by_chance = Poisson::new((rate * self.time).max(f64::MIN_POSITIVE));
        self.hits > 0 && by_chance.is_ok_and(|chance| chance.sf(self.hits as u64 - 1) < RARE)
    }

    /// Outliers in excess of the disturbances expected at this rate.
    pub(crate) fn excess_over_rate(&self, rate: f64) -> f64 {
        self.hits as f64 - rate * self.time
    }
}

/// The range of undisturbed values that a disturbance can move either way, such as differences of
/// two readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UndisturbedBand {
    low: f64,
    high: f64,
}

impl UndisturbedBand {
    /// The median plus or minus some interquartile ranges, or some `least` if that is wider; `None`
    /// without finite values.
    pub fn from_values(mut values: Vec<f64>, least: f64) -> Option<UndisturbedBand> {
        values.retain(|value| value.is_finite());
        if values.is_empty() {
            return None;
        }
        let [low, middle, high] = quartiles(&mut values);
        let reach = OUTLIER_RANGES * least.max(high - low);
        Some(UndisturbedBand { low: middle - reach, high: middle + reach })
    }

    /// The median of the values.
    #[cfg(test)]
    pub(crate) fn middle(&self) -> f64 {
        (self.low + self.high) / 2.0
    }

    /// Whether a value is in the band.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_are_relative_to_their_own_group() {
        // Two groups of different lengths. One reading in the shorter group is interrupted, but
        // adds less than the other group's length.
        let group = |middle: f64| (0..40).map(|n| middle + f64::from(n % 5)).collect::<Vec<_>>();
        let mut groups = vec![group(1000.0), group(100.0)];
        groups[1][7] = 400.0;
        let outliers = Outliers::from_groups(groups, 1.0);
        assert_eq!((outliers.bases[0], outliers.bases[1]), (1001.0, 101.0));
        assert!(outliers.reach >= 6.0 && outliers.reach < 298.0, "{outliers:?}");
        assert_eq!((outliers.hits, outliers.time), (1, 80.0 * 551.0));
    }

    #[test]
    fn interrupted_calls_are_no_durations() {
        let group: Vec<f64> = (0..8).map(|n| 100.0 + f64::from(n % 2)).chain([f64::INFINITY; 9]).collect();
        let outliers = Outliers::from_groups(vec![group, vec![f64::INFINITY; 3]], 1.0);
        assert!(outliers.bases[0] == 100.0 && outliers.bases[1].is_nan(), "{outliers:?}");
        assert!(outliers.reach < 10.0 && outliers.hits == 0 && outliers.time < 1000.0, "{outliers:?}");
        let none = Outliers::from_groups(vec![vec![f64::INFINITY; 3]], 1.0);
        assert!(none.bases[0].is_nan() && (none.hits, none.time) == (0, 0.0), "{none:?}");
    }

    #[test]
    fn many_outliers_do_not_widen_the_reach() {
        let mut group = vec![100.0; 60];
        group.extend([9000.0; 30]);
        let outliers = Outliers::from_groups(vec![group], 2.0);
        assert_eq!(outliers.reach, 12.0);
        assert_eq!(outliers.hits, 30);
    }

    #[test]
    fn hits_are_compared_with_the_length_of_calls() {
        // 30 hits in 300 calls of 100 units. Disturbances once per 2 000 units would cause 15, once
        // per 1 000 units 30.
        let outliers = Outliers { bases: vec![100.0], reach: 6.0, hits: 30, time: 30_000.0 };
        assert!(!outliers.exceeds_rate(1.0 / 1000.0) && !outliers.exceeds_rate(1.0 / 2000.0));
        assert!(outliers.exceeds_rate(1.0 / 4000.0) && outliers.exceeds_rate(0.0));
        assert!((outliers.excess_over_rate(1.0 / 2000.0) - 15.0).abs() < 1e-9);
    }

    #[test]
    fn a_band_is_at_least_one_step_wide() {
        let band = UndisturbedBand::from_values(vec![10.0; 9], 2.0).unwrap();
        assert!(band.contains(-2.0) && band.contains(22.0) && !band.contains(22.5));
        assert_eq!(band.middle(), 10.0);
        assert_eq!(UndisturbedBand::from_values(vec![f64::INFINITY], 1.0), None);
    }
}
