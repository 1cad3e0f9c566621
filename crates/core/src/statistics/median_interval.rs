//! Confidence intervals for the median, from order statistics.

use super::{Interval, quantile};

/// The median with a confidence interval for the population's median, valid for every distribution.
/// The bounds are the narrowest pair of values at equal ranks from both ends with at least the
/// requested confidence. `None` for too few values: 95 % needs six.
///
/// W. R. Thompson, "On confidence ranges for the median and other expectation distributions",
/// Annals of Mathematical Statistics 7 (1936).
pub fn median_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    // Probability that at most this many values lie below the median, as for a fair coin. Kept as a
    // logarithm: for 1000 values the first term would underflow.
    let mut chance = sorted.len() as f64 * 0.5f64.ln();
    let (mut outside, mut cut) = (chance.exp(), None);
    for below in 0..sorted.len() / 2 {
        if outside > tail {
            break;
        }
        cut = Some(below);
        chance += ((sorted.len() - below) as f64 / (below + 1) as f64).ln();
        outside += chance.exp();
    }
    let cut = cut?;
    Some(Interval { value: quantile(&sorted, 0.5), low: sorted[cut], high: sorted[sorted.len() - 1 - cut] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn ranks_match_published_tables() {
        // Ranks for 95 %, from any table of the sign test: none for 5 values, 1 and 6 of 6, 2 and 9
        // of 10, 4 and 13 of 16, 6 and 15 of 20.
        let ranks = |count: usize| {
            let values: Vec<f64> = (1..=count).map(|value| value as f64).collect();
            median_interval(&values, 0.95).map(|interval| (interval.low, interval.high))
        };
        assert_eq!(ranks(5), None);
        assert_eq!(ranks(6), Some((1.0, 6.0)));
        assert_eq!(ranks(10), Some((2.0, 9.0)));
        assert_eq!(ranks(16), Some((4.0, 13.0)));
        assert_eq!(ranks(20), Some((6.0, 15.0)));
        // For many values: half of them minus 1.96 standard deviations of fair-coin heads.
        assert_eq!(ranks(10_000), Some((4902.0, 5099.0)));
    }

    #[test]
    fn intervals_cover_the_median_of_a_skewed_distribution() {
        let mut random = Random::new(5);
        let holds = |_: &u32| {
            let values: Vec<f64> = (0..16).map(|_| random.exponential()).collect();
            median_interval(&values, 0.95).unwrap().contains(2f64.ln())
        };
        let share = (0..20_000).filter(holds).count() as f64 / 20_000.0;
        // Exactly 1 - 2 (1 + 16 + 120 + 560) / 2^16 = 0.9787.
        assert!((share - 0.9787).abs() < 0.005, "{share}");
    }
}
