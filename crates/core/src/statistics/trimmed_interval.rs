//! Trimmed means, which a few outliers do not change, and their intervals.

use super::{Interval, mean, sample_variance, t_margin};
use std::ops::Range;

/// Share of the values dropped at each end. Wilcox, "Introduction to Robust Estimation and
/// Hypothesis Testing", recommends 20 %.
const TRIMMED_SHARE: f64 = 0.2;

/// Yuen's interval for the population's trimmed mean, with a fifth of the values dropped at each
/// end. For a symmetric population the trimmed mean is the mean. `None` for fewer than five values.
///
/// K. K. Yuen, "The two-sample trimmed t for unequal population variances", Biometrika 61 (1974).
pub fn trimmed_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let count = values.len();
    if count < 5 {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let kept = untrimmed_range(count);
    let value = mean(&sorted[kept.clone()]);
    // Winsorised: each dropped value counts as the outermost kept value.
    let [low, high] = [sorted[kept.start], sorted[kept.end - 1]];
    sorted.iter_mut().for_each(|value| *value = value.clamp(low, high));
    let h = kept.len() as f64;
    let error = (sample_variance(&sorted) * (count - 1) as f64 / (h * (h - 1.0))).sqrt();
    Some(Interval::with_margin(value, t_margin(error, h - 1.0, confidence)))
}

/// Range of the kept values among this number of sorted values.
pub fn untrimmed_range(count: usize) -> Range<usize> {
    let left_out = (TRIMMED_SHARE * count as f64) as usize;
    left_out..count - left_out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn a_worked_example_is_reproduced() {
        // Of 1 … 10, two are dropped at each end: mean 5.5. Winsorised 3 3 3 4 5 6 7 8 8 8 has
        // squares 42.5 about the mean, so the error is √(42.5 / 30). t(0.975, 5) = 2.570582.
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let interval = trimmed_interval(&values, 0.95).unwrap();
        assert_eq!(interval.value, 5.5);
        assert!((interval.half_width() - 2.570_582 * (42.5f64 / 30.0).sqrt()).abs() < 1e-5);
        assert_eq!(trimmed_interval(&values[..4], 0.95), None);
    }

    #[test]
    fn intervals_cover_the_truth_despite_outliers() {
        for (wild, count) in [(0.0, 12), (0.1, 24), (0.2, 48)] {
            let mut random = Random::new(9);
            let mut covers = || {
                let draw = |random: &mut Random| {
                    let scale = if random.happens(wild) { 20.0 } else { 1.0 };
                    3.0 + scale * random.normal()
                };
                let values: Vec<f64> = (0..count).map(|_| draw(&mut random)).collect();
                trimmed_interval(&values, 0.99).unwrap().contains(3.0)
            };
            let share = (0..20_000).filter(|_| covers()).count() as f64 / 20_000.0;
            assert!((share - 0.99).abs() < 0.006, "{share} of {count} with {wild} wild");
        }
    }
}
