//! Statistics of small samples: means, quantiles, confidence intervals, and modes.
//!
//! Pure functions of plain numbers. They assume independent values; the caller chooses them, such
//! as one value per layout and not one per call. The t-intervals also assume roughly normal values.
//! With eight or more layouts that are not strongly skewed, their coverage is close to the
//! confidence.

mod coverage;
mod distribution;
mod holm;
mod median_interval;
mod modes;
mod trimmed_interval;

pub use coverage::{CoverageVerdict, judge_coverage, trials_needed};
pub use distribution::{normal_quantile, t_quantile};
pub use holm::{holm_share, reject_by_holm};
pub use median_interval::median_interval;
pub use modes::find_modes;
pub use trimmed_interval::{trimmed_interval, untrimmed_range};

/// A value and the interval that contains the true value with a stated confidence.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

impl Interval {
    /// Interval that extends equally far to both sides.
    pub fn with_margin(value: f64, margin: f64) -> Interval {
        Interval { value, low: value - margin, high: value + margin }
    }

    /// Half of the interval's width.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Widens the interval by an independent error with this margin at the same confidence.
    pub fn widen_by(self, margin: f64) -> Interval {
        let share = |bound: f64| (bound - self.value).hypot(margin);
        Interval { low: self.value - share(self.low), high: self.value + share(self.high), ..self }
    }

    /// Whether the interval contains this number.
    pub fn contains(&self, number: f64) -> bool {
        self.low <= number && number <= self.high
    }
}

/// Arithmetic mean; NaN without values.
///
/// Sums distances from the first value, so that large values with small differences lose no digits.
pub fn mean(values: &[f64]) -> f64 {
    let Some(origin) = values.first() else { return f64::NAN };
    origin + values.iter().map(|value| value - origin).sum::<f64>() / values.len() as f64
}

/// Unbiased sample variance by the two-pass formula; NaN for fewer than two values.
///
/// The second pass also corrects the mean's rounding (Chan, Golub and LeVeque, "Algorithms for
/// computing the sample variance", The American Statistician 37 (1983), formula 1.7).
pub fn sample_variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return f64::NAN;
    }
    let (centre, count) = (mean(values), values.len() as f64);
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    let rest: f64 = values.iter().map(|value| value - centre).sum();
    (squares - rest * rest / count) / (count - 1.0)
}

/// Quantile of values in ascending order, with linear interpolation between two values. This is
/// definition 7 of Hyndman and Fan, "Sample quantiles in statistical packages", The American
/// Statistician 50 (1996).
///
/// # Panics
///
/// Panics without values, or unless `p` is in [0, 1].
pub fn quantile(sorted: &[f64], p: f64) -> f64 {
    assert!(!sorted.is_empty() && (0.0..=1.0).contains(&p), "no quantile {p} of {} values", sorted.len());
    debug_assert!(sorted.is_sorted_by(|a, b| a.total_cmp(b).is_le()), "values are in ascending order");
    let at = p * (sorted.len() - 1) as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (at - below as f64) * (sorted[above] - sorted[below])
}

/// Several quantiles of values in any order: see [`quantile`].
///
/// # Panics
///
/// Panics without values.
pub fn quantiles<const N: usize>(values: &mut [f64], shares: [f64; N]) -> [f64; N] {
    values.sort_by(f64::total_cmp);
    shares.map(|share| quantile(values, share))
}

/// The quartiles of values in any order, the median in the middle.
///
/// # Panics
///
/// Panics without values.
pub fn quartiles(values: &mut [f64]) -> [f64; 3] {
    quantiles(values, [0.25, 0.5, 0.75])
}

/// Standard deviation of the normal distribution with the same interquartile range. A few outliers
/// do not change it.
///
/// # Panics
///
/// Panics without values.
pub fn quartile_deviation(values: &mut [f64]) -> f64 {
    /// The interquartile range of a normal distribution, in standard deviations.
    const NORMAL: f64 = 1.349;
    let [low, _, high] = quartiles(values);
    (high - low) / NORMAL
}

/// The least and the largest value; infinite and in reverse order without values.
pub fn value_range(values: impl IntoIterator<Item = f64>) -> [f64; 2] {
    let none = [f64::INFINITY, f64::NEG_INFINITY];
    values.into_iter().fold(none, |[low, high], value| [low.min(value), high.max(value)])
}

/// The median of values in any order.
///
/// # Panics
///
/// Panics without values.
pub fn median(values: &mut [f64]) -> f64 {
    quantiles(values, [0.5])[0]
}

/// Student's interval for the population mean; `None` for fewer than two values.
pub fn t_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    if values.len() < 2 {
        return None;
    }
    let count = values.len() as f64;
    let error = (sample_variance(values) / count).sqrt();
    Some(Interval::with_margin(mean(values), t_margin(error, count - 1.0, confidence)))
}

/// Welch's interval for the population mean of `a` minus that of `b`, whose variances may differ.
/// `None` if either has fewer than two values.
///
/// B. L. Welch, "The generalization of Student's problem when several different population
/// variances are involved", Biometrika 34 (1947).
pub fn welch_interval(a: &[f64], b: &[f64], confidence: f64) -> Option<Interval> {
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let share = |values: &[f64]| sample_variance(values) / values.len() as f64;
    let (share_a, share_b) = (share(a), share(b));
    let total = share_a + share_b;
    let difference = mean(a) - mean(b);
    if total == 0.0 {
        return Some(Interval::with_margin(difference, 0.0));
    }
    // Relative shares, because squares of tiny variances would underflow.
    let (part_a, part_b) = (share_a / total, share_b / total);
    let freedom = 1.0 / (part_a.powi(2) / (a.len() - 1) as f64 + part_b.powi(2) / (b.len() - 1) as f64);
    Some(Interval::with_margin(difference, t_margin(total.sqrt(), freedom.max(1.0), confidence)))
}

fn t_margin(error: f64, freedom: f64, confidence: f64) -> f64 {
    // Both tails share the error probability. The lower one keeps its digits near 1.
    -t_quantile((1.0 - confidence) / 2.0, freedom) * error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    #[test]
    fn published_examples_are_reproduced() {
        // Checked by hand: 2, 4, 4, 4, 5, 5, 7, 9 has mean 5 and sum of squared distances 32.
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&values), 5.0);
        assert!((sample_variance(&values) - 32.0 / 7.0).abs() < 1e-12);
        assert_eq!(quantile(&values, 0.5), 4.5);
        assert_eq!((quantile(&values, 0.0), quantile(&values, 1.0)), (2.0, 9.0));
        assert!((quantile(&values, 0.9) - 7.6).abs() < 1e-12);
        // t(0.975, 7) = 2.364624 (any table of Student's distribution).
        let interval = t_interval(&values, 0.95).expect("eight values");
        let margin = 2.364_624 * (32.0f64 / 7.0 / 8.0).sqrt();
        assert!((interval.high - 5.0 - margin).abs() < 1e-5 && (5.0 - interval.low - margin).abs() < 1e-5);
        assert!(interval.contains(5.0) && !interval.contains(5.0 + 1.01 * margin));
    }

    #[test]
    fn too_few_values_have_no_interval() {
        assert!(mean(&[]).is_nan() && sample_variance(&[1.0]).is_nan());
        assert_eq!(t_interval(&[1.0], 0.95), None);
        assert_eq!(welch_interval(&[1.0], &[1.0, 2.0], 0.95), None);
        assert_eq!(welch_interval(&[3.0, 3.0], &[1.0, 1.0], 0.95), Some(Interval::with_margin(2.0, 0.0)));
    }

    #[test]
    fn variance_survives_a_large_offset() {
        let values = [1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0];
        assert_eq!(sample_variance(&values), 30.0);
        assert_eq!(mean(&values), 1e9 + 10.0);
    }

    #[test]
    fn welch_equals_the_pooled_interval_for_equal_variances() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [2.5, 3.5, 4.5, 5.5]);
        let interval = welch_interval(&a, &b, 0.9).expect("four values each");
        let margin = t_quantile(0.95, 6.0) * (2.0 * (5.0f64 / 3.0) / 4.0).sqrt();
        assert!((interval.value + 1.5).abs() < 1e-12 && (interval.high + 1.5 - margin).abs() < 1e-12);
    }

    /// Share of 20 000 simulated intervals that contain the truth.
    fn coverage(mut covers: impl FnMut(&mut Random) -> bool) -> f64 {
        let mut random = Random::new(7);
        (0..20_000).filter(|_| covers(&mut random)).count() as f64 / 20_000.0
    }

    #[test]
    fn coverage_matches_the_confidence() {
        for confidence in [0.5, 0.8, 0.95, 0.99] {
            let draw = |random: &mut Random, n: usize, sd: f64| -> Vec<f64> {
                (0..n).map(|_| 3.0 + sd * random.normal()).collect()
            };
            let student = coverage(|random| {
                let interval = t_interval(&draw(random, 8, 1.0), confidence);
                interval.is_some_and(|interval| interval.contains(3.0))
            });
            let welch = coverage(|random| {
                let (a, b) = (draw(random, 6, 1.0), draw(random, 12, 5.0));
                welch_interval(&a, &b, confidence).is_some_and(|interval| interval.contains(0.0))
            });
            assert!((student - confidence).abs() < 0.011, "{student} for {confidence}");
            assert!((welch - confidence).abs() < 0.013, "{welch} for {confidence}");
        }
    }

    proptest! {
        #[test]
        fn mean_and_variance_follow_shift_and_scale(
            values in prop::collection::vec(-1e3..1e3f64, 2..40), shift in -1e3..1e3f64, factor in 0.1..10f64,
        ) {
            let moved: Vec<f64> = values.iter().map(|value| value * factor + shift).collect();
            prop_assert!((mean(&moved) - (mean(&values) * factor + shift)).abs() < 1e-8);
            let variance = sample_variance(&values) * factor * factor;
            prop_assert!((sample_variance(&moved) - variance).abs() <= 1e-9 * (1.0 + variance));
        }

        #[test]
        fn quantiles_stay_in_range_and_increase(
            mut values in prop::collection::vec(-1e3..1e3f64, 1..40), p in 0.0..=1f64, more in 0.0..=1f64,
        ) {
            values.sort_by(f64::total_cmp);
            let (low, high) = (quantile(&values, p.min(more)), quantile(&values, p.max(more)));
            prop_assert!(low <= high + 1e-9);
            prop_assert!(values[0] <= low && high <= values[values.len() - 1] + 1e-9);
        }

        #[test]
        fn welch_changes_sign_with_swapped_arguments(
            a in prop::collection::vec(-1e3..1e3f64, 2..20), b in prop::collection::vec(-1e3..1e3f64, 2..20),
        ) {
            let there = welch_interval(&a, &b, 0.95).expect("two values each");
            let back = welch_interval(&b, &a, 0.95).expect("two values each");
            prop_assert!((there.value + back.value).abs() < 1e-9);
            prop_assert!((there.low + back.high).abs() <= 1e-9 * (1.0 + there.low.abs()));
        }
    }
}
