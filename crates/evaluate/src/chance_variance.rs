//! How much ensembles differ by chance alone.

use cyclescope_core::statistics::median;

/// Variance of the variances of ensembles of `samples` independent readings, in raw units⁴, if only
/// chance made ensembles differ.
///
/// `moments` holds the second and fourth central moment of each ensemble, in raw units² and ⁴. They
/// exclude interrupts, because a single one dominates the variance of its ensemble. `None` without
/// an ensemble.
///
/// The variance of a sample variance is (μ₄ − σ⁴ (n − 3)/(n − 1))/n.
pub(crate) fn chance_variance(moments: impl Iterator<Item = [f64; 2]>, samples: u32) -> Option<f64> {
    let n = f64::from(samples.max(2));
    let variance_of_variance = |[second, fourth]: [f64; 2]| (fourth - second * second * (n - 3.0) / (n - 1.0)) / n;
    let mut values: Vec<f64> = moments.map(variance_of_variance).collect();
    (!values.is_empty()).then(|| median(&mut values).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_core::random::Random;
    use cyclescope_core::statistics::mean;

    /// Readings take two values, one step apart, in ensembles of 100 and of 1000 samples.
    #[test]
    fn independent_readings_have_the_chance_variance() {
        let (step, share) = (26.0, 0.1);
        let mut random = Random::new(5);
        for samples in [100, 1000] {
            let variance = |random: &mut Random| {
                let far = (0..samples).filter(|_| random.happens(share)).count() as f64 / f64::from(samples);
                step * step * far * (1.0 - far)
            };
            let variances: Vec<f64> = (0..4000).map(|_| variance(&mut random)).collect();
            let mean_variance = mean(&variances);
            let observed =
                mean(&variances.iter().map(|variance| (variance - mean_variance).powi(2)).collect::<Vec<_>>());
            let second = step * step * share * (1.0 - share);
            let fourth = second * step * step * (1.0 - 3.0 * share * (1.0 - share));
            let expected = chance_variance([[second, fourth]].into_iter(), samples).unwrap();
            assert!((observed / expected - 1.0).abs() < 0.1, "{samples}: {observed} for {expected}");
        }
        assert_eq!(chance_variance([].into_iter(), 100), None);
    }
}
