//! The paper's statistics: ensembles of samples, and totals over all of them.
//!
//! Every figure exists twice. One follows the paper's program, so that rows can be compared digit
//! by digit. The other is an exact fraction. The paper's program floors the variance of each
//! ensemble to an integer and averages these. The variance of variances comes from the floored
//! values and is floored again. Every variance divides by n², not by n(n - 1).
//!
//! Three defects of the program are fixed: a minimum of 0 does not count as unset, an end before
//! its start is distinguished from a long duration, and nothing overflows.
//!
//! Source: the paper, appendix, lines 73 to 184.

use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use serde::Serialize;

/// Smallest difference that is not accepted as a duration, in raw units: the clock went backwards,
/// or the machine slept for days.
pub(crate) const INSANE_DURATION: u64 = 1 << 48;

/// A duration and the number of its occurrences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DurationCount {
    /// End minus start in raw units, modulo 2^64.
    pub(crate) duration: u64,
    pub(crate) count: u64,
}

/// Sums over the samples of one ensemble. Durations are in raw units of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ensemble {
    /// Number of samples.
    pub count: u64,
    /// Shortest duration; `None` without samples.
    pub minimum: Option<u64>,
    /// Longest duration; `None` without samples.
    pub maximum: Option<u64>,
    /// Samples that ended before they began, or took at least 2^48 units. No other figure includes
    /// them.
    pub backwards: u64,
    sum: u128,
    squares: u128,
}

impl Ensemble {
    /// Adds durations.
    pub(crate) fn add_durations(&mut self, durations: &[DurationCount]) {
        for &DurationCount { duration, count } in durations {
            if duration >= INSANE_DURATION {
                self.backwards += count;
                continue;
            }
            self.count += count;
            self.minimum = Some(self.minimum.map_or(duration, |before| before.min(duration)));
            self.maximum = Some(self.maximum.map_or(duration, |before| before.max(duration)));
            let (duration, count) = (u128::from(duration), u128::from(count));
            self.sum += count * duration;
            // Below 2^96, so that 2^32 of them fit.
            self.squares += count * duration * duration;
        }
    }

    /// Longest minus shortest duration.
    pub fn max_deviation(&self) -> u64 {
        self.maximum.unwrap_or(0) - self.minimum.unwrap_or(0)
    }

    /// n Σx² - (Σx)², and n².
    fn variance_fraction(&self) -> (BigUint, BigUint) {
        let (count, sum) = (BigUint::from(self.count), BigUint::from(self.sum));
        (&count * BigUint::from(self.squares) - &sum * &sum, &count * &count)
    }

    /// The variance as the paper's program floors it, in raw units²; 0 without samples.
    pub fn variance(&self) -> u128 {
        if self.count == 0 {
            return 0;
        }
        let (above, below) = self.variance_fraction();
        u128::try_from(above / below).expect("durations are below 2^48, their variance below 2^94")
    }

    /// The variance, exactly; 0 without samples.
    pub fn variance_exact(&self) -> BigRational {
        if self.count == 0 {
            return BigRational::from(BigInt::ZERO);
        }
        let (above, below) = self.variance_fraction();
        BigRational::new(above.into(), below.into())
    }

    /// The mean in raw units; NaN without samples.
    pub(crate) fn mean(&self) -> f64 {
        self.sum as f64 / self.count as f64
    }
}

/// The paper's figures over all ensembles of a method, floored and exact.
///
/// Integers in raw units of the clock, squared for variances, to the fourth power for variances of
/// variances. `None` if a figure does not fit 128 bits, which takes samples of hours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EnsembleTotals {
    /// Number of ensembles.
    pub ensembles: usize,
    /// Shortest duration of all ensembles: the paper's definition of the method's overhead.
    pub overhead_min: u64,
    /// The mean of the floored variances, floored.
    pub total_variance: u128,
    /// Largest deviation from an ensemble's minimum.
    pub max_deviation: u64,
    /// The variance of the floored variances, floored.
    pub variance_of_variances: Option<u128>,
    /// The variance of the ensembles' minima, floored.
    pub variance_of_minima: Option<u128>,
    /// Number of ensembles whose minimum is below that of the ensemble before. Meaningless when
    /// nothing grows; printed because the paper prints it.
    pub spurious_minima: u64,
    /// The mean of the exact variances.
    pub total_variance_exact: ExactFraction,
    /// The variance of the exact variances.
    pub variance_of_variances_exact: ExactFraction,
    /// The exact variance of the minima.
    pub variance_of_minima_exact: ExactFraction,
}

/// An exact fraction, written `numerator/denominator`, or as an integer if it is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExactFraction(pub BigRational);

impl Serialize for ExactFraction {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl ExactFraction {
    /// The nearest floating point number.
    pub fn to_f64(&self) -> f64 {
        // Scale before dividing: both parts may exceed the range of floating point numbers.
        let shift = 64 + self.0.denom().bits();
        let scaled: BigInt = (self.0.numer() << shift) / self.0.denom();
        let excess = scaled.bits().saturating_sub(64);
        let digits = i128::try_from(scaled >> excess).expect("64 bits remain");
        digits as f64 * ((excess as f64) - shift as f64).exp2()
    }
}

/// The paper's `var_calc`: (n Σx² - (Σx)²) / n², floored, without its overflow.
fn floored_variance(values: &[u128]) -> BigUint {
    let count = BigUint::from(values.len());
    let sum: BigUint = values.iter().map(|value| BigUint::from(*value)).sum();
    let squares: BigUint = values.iter().map(|value| BigUint::from(*value).pow(2)).sum();
    (&count * squares - &sum * &sum) / (&count * &count)
}

/// Mean and variance of exact values. The variance divides by n.
fn exact_moments(values: &[BigRational]) -> (BigRational, BigRational) {
    let count = BigRational::from(BigInt::from(values.len()));
    let sum: BigRational = values.iter().sum();
    let squares: BigRational = values.iter().map(|value| value * value).sum();
    let mean = sum / &count;
    let variance = squares / count - &mean * &mean;
    (mean, variance)
}

impl EnsembleTotals {
    /// Totals of the ensembles. `None` without ensembles, or if one has no samples.
    pub(crate) fn from_ensembles(ensembles: &[Ensemble]) -> Option<EnsembleTotals> {
        let minima: Vec<u64> = ensembles.iter().map(|ensemble| ensemble.minimum).collect::<Option<_>>()?;
        let overhead_min = *minima.iter().min()?;
        let variances: Vec<u128> = ensembles.iter().map(Ensemble::variance).collect();
        let exact: Vec<BigRational> = ensembles.iter().map(Ensemble::variance_exact).collect();
        let wide = |values: &[u64]| values.iter().map(|value| u128::from(*value)).collect::<Vec<_>>();
        let whole = |value: &u64| BigRational::from(BigInt::from(*value));
        let (mean, variance) = exact_moments(&exact);
        let (_, of_minima) = exact_moments(&minima.iter().map(whole).collect::<Vec<_>>());
        Some(EnsembleTotals {
            ensembles: ensembles.len(),
            overhead_min,
            total_variance: variances.iter().sum::<u128>() / variances.len() as u128,
            max_deviation: ensembles.iter().map(Ensemble::max_deviation).max()?,
            variance_of_variances: u128::try_from(floored_variance(&variances)).ok(),
            variance_of_minima: u128::try_from(floored_variance(&wide(&minima))).ok(),
            spurious_minima: minima.windows(2).filter(|pair| pair[0] > pair[1]).count() as u64,
            total_variance_exact: ExactFraction(mean),
            variance_of_variances_exact: ExactFraction(variance),
            variance_of_minima_exact: ExactFraction(of_minima),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_core::random::Random;

    /// The paper's `var_calc` in 128 bits, on stored samples.
    fn plain_variance(values: &[u128]) -> u128 {
        let count = values.len() as u128;
        let sum: u128 = values.iter().sum();
        let squares: u128 = values.iter().map(|value| value * value).sum();
        (squares * count - sum * sum) / (count * count)
    }

    fn ensembles(samples: &[Vec<u64>]) -> Vec<Ensemble> {
        let build_ensemble = |samples: &Vec<u64>| {
            let mut ensemble = Ensemble::default();
            let once = |duration: &u64| DurationCount { duration: *duration, count: 1 };
            ensemble.add_durations(&samples.iter().map(once).collect::<Vec<_>>());
            ensemble
        };
        samples.iter().map(build_ensemble).collect()
    }

    fn random_samples(random: &mut Random) -> Vec<Vec<u64>> {
        let (count, size) = (1 + random.below(20), 1 + random.below(300));
        let spread = 1 + random.below(3000);
        let sample = |random: &mut Random| {
            let interrupt = if random.happens(0.01) { random.below(1 << 20) } else { 0 };
            (random.below(spread) + interrupt) as u64
        };
        (0..count).map(|_| (0..size).map(|_| sample(random)).collect()).collect()
    }

    #[test]
    fn floored_figures_equal_a_direct_computation() {
        let mut random = Random::new(11);
        for _ in 0..300 {
            let samples = random_samples(&mut random);
            let totals = EnsembleTotals::from_ensembles(&ensembles(&samples)).unwrap();
            let wide = |samples: &Vec<u64>| samples.iter().map(|x| u128::from(*x)).collect::<Vec<_>>();
            let variances: Vec<u128> = samples.iter().map(|samples| plain_variance(&wide(samples))).collect();
            let minima: Vec<u128> = samples.iter().map(|samples| u128::from(*samples.iter().min().unwrap())).collect();
            let count = samples.len() as u128;
            assert_eq!(totals.total_variance, variances.iter().sum::<u128>() / count);
            assert_eq!(totals.variance_of_variances, Some(plain_variance(&variances)));
            assert_eq!(totals.variance_of_minima, Some(plain_variance(&minima)));
            assert_eq!(u128::from(totals.overhead_min), *minima.iter().min().unwrap());
            let spurious = (1..minima.len()).filter(|&at| minima[at] < minima[at - 1]).count();
            assert_eq!(totals.spurious_minima, spurious as u64);
        }
    }

    #[test]
    fn exact_figures_equal_a_direct_computation() {
        let mut random = Random::new(12);
        for _ in 0..100 {
            let samples = random_samples(&mut random);
            let totals = EnsembleTotals::from_ensembles(&ensembles(&samples)).unwrap();
            // Computed around the mean instead of from sums of squares, in fractions throughout.
            let moments = |values: &[BigRational]| {
                let count = BigRational::from(BigInt::from(values.len()));
                let mean = values.iter().sum::<BigRational>() / &count;
                let square = |value: &BigRational| (value - &mean) * (value - &mean);
                (mean.clone(), values.iter().map(square).sum::<BigRational>() / count)
            };
            let whole = |value: &u64| BigRational::from(BigInt::from(*value));
            let variances: Vec<BigRational> =
                samples.iter().map(|samples| moments(&samples.iter().map(whole).collect::<Vec<_>>()).1).collect();
            let minima: Vec<BigRational> = samples.iter().map(|samples| whole(samples.iter().min().unwrap())).collect();
            let (mean, variance) = moments(&variances);
            assert_eq!(totals.total_variance_exact.0, mean);
            assert_eq!(totals.variance_of_variances_exact.0, variance);
            assert_eq!(totals.variance_of_minima_exact.0, moments(&minima).1);
        }
    }

    #[test]
    fn zero_is_a_valid_duration_and_a_backward_reading_is_not() {
        let mut ensemble = Ensemble::default();
        ensemble.add_durations(&[0, 4, 5_u64.wrapping_sub(9)].map(|duration| DurationCount { duration, count: 1 }));
        assert_eq!((ensemble.minimum, ensemble.maximum), (Some(0), Some(4)));
        assert_eq!((ensemble.count, ensemble.backwards, ensemble.variance()), (2, 1, 4));
    }

    #[test]
    fn long_samples_do_not_overflow() {
        let samples = vec![vec![0, INSANE_DURATION - 1], vec![0, 0], vec![INSANE_DURATION - 1, 0]];
        let totals = EnsembleTotals::from_ensembles(&ensembles(&samples)).unwrap();
        assert_eq!(totals.max_deviation, INSANE_DURATION - 1);
        assert_eq!(totals.variance_of_variances, None);
        let half = (INSANE_DURATION - 1) as f64 / 2.0;
        let expected = half.powi(4) * 2.0 / 9.0;
        assert!((totals.variance_of_variances_exact.to_f64() / expected - 1.0).abs() < 1e-12);
    }

    #[test]
    fn fractions_are_strings_in_json() {
        let fraction = ExactFraction(BigRational::new(1234.into(), 600.into()));
        let text = serde_json::to_string(&fraction).unwrap();
        assert_eq!(text, "\"617/300\"");
        assert!((fraction.to_f64() - 617.0 / 300.0).abs() < 1e-15);
        assert_eq!(ExactFraction(BigRational::from(BigInt::ZERO)).to_f64(), 0.0);
    }

    #[test]
    fn empty_ensembles_have_no_totals() {
        assert_eq!(EnsembleTotals::from_ensembles(&[]), None);
        assert_eq!(EnsembleTotals::from_ensembles(&[Ensemble::default()]), None);
    }
}
