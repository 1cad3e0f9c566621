//! Records that compare published evaluations with ours. Variances are also given in steps of the
//! clock, so that machines with different steps are comparable.

use super::criteria::variance_in_steps;
use super::method_evaluation::MethodEvaluation;
use super::published::{PUBLISHED_PAIRS, PUBLISHED_STAIRS, PublishedPairs, PublishedStairs};
use super::resolution::{Staircase, StaircaseBody};
use super::sampled_method::SampledMethod;
use cyclescope_core::error::StaticText;
use serde::Serialize;

/// Variances in steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct VariancesInSteps {
    /// The total variance in steps².
    pub total_variance: f64,
    /// The variance of variances in steps⁴; null if the source omits it.
    pub variance_of_variances: Option<f64>,
    /// The variance of minima in steps²; null if the source omits it.
    pub variance_of_minima: Option<f64>,
}

impl VariancesInSteps {
    fn new(step: f64, total: f64, of_variances: Option<f64>, of_minima: Option<f64>) -> VariancesInSteps {
        VariancesInSteps {
            total_variance: variance_in_steps(total, step),
            variance_of_variances: of_variances
                .map(|variance| variance_in_steps(variance_in_steps(variance, step), step)),
            variance_of_minima: of_minima.map(|variance| variance_in_steps(variance, step)),
        }
    }
}

/// Our totals of empty pairs, in raw units.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredPairs {
    /// Name of the executor.
    pub executor: StaticText,
    /// Step of the readings.
    pub step: f64,
    /// Samples in each ensemble.
    pub samples_per_ensemble: u32,
    /// The paper's figures.
    #[serde(flatten)]
    pub totals: super::ensemble::EnsembleTotals,
    /// The variances in steps.
    pub in_steps: VariancesInSteps,
}

/// A published row of empty pairs compared with ours, kind `evaluate.published`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairsComparison {
    /// The published row.
    #[serde(flatten)]
    pub published: PublishedPairs,
    /// Its variances in steps.
    pub in_steps: VariancesInSteps,
    /// Our totals, one entry per executor that ran the method.
    pub ours: Vec<MeasuredPairs>,
}

/// Our totals of a staircase, in raw units.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredStairs {
    /// Name of the executor.
    pub executor: StaticText,
    /// Step of the readings.
    pub step: f64,
    /// Number of lengths.
    pub lengths: usize,
    /// Readings of each length.
    pub readings: usize,
    /// The paper's figures.
    #[serde(flatten)]
    pub totals: super::resolution::StaircaseTotals,
    /// Shortest readings of the first and the last length.
    pub minima: Option<[u64; 2]>,
    /// The variances in steps.
    pub in_steps: VariancesInSteps,
}

/// A published staircase compared with ours, kind `evaluate.published_stairs`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StairsComparison {
    /// The published staircase.
    #[serde(flatten)]
    pub published: PublishedStairs,
    /// Its variances in steps.
    pub in_steps: VariancesInSteps,
    /// Our totals, one entry per executor that ran the method.
    pub ours: Vec<MeasuredStairs>,
}

/// Compares the published rows with our results.
pub fn compare_pairs(methods: &[MethodEvaluation]) -> Vec<PairsComparison> {
    let compare = |published: &PublishedPairs| {
        let of_variances = published.variance_of_variances.map(|variance| variance as f64);
        let of_minima = published.variance_of_minima.map(|variance| variance as f64);
        let named = methods.iter().filter(|found| found.candidate.clock.name == published.method);
        PairsComparison {
            in_steps: VariancesInSteps::new(published.step, published.total_variance, of_variances, of_minima),
            published: *published,
            ours: named.filter_map(|found| found.method.as_ref()).map(measured_pairs).collect(),
        }
    };
    PUBLISHED_PAIRS.iter().map(compare).collect()
}

fn measured_pairs(method: &SampledMethod) -> MeasuredPairs {
    let (totals, step) = (&method.totals, method.tested.step);
    let [total, of_variances, of_minima] =
        [&totals.total_variance_exact, &totals.variance_of_variances_exact, &totals.variance_of_minima_exact]
            .map(|exact| exact.to_f64());
    MeasuredPairs {
        executor: method.tested.executor,
        step,
        samples_per_ensemble: method.sampled.shape.size.samples,
        totals: totals.clone(),
        in_steps: VariancesInSteps::new(step, total, Some(of_variances), Some(of_minima)),
    }
}

/// Compares the published staircases with our results.
pub fn compare_stairs(methods: &[MethodEvaluation]) -> Vec<StairsComparison> {
    let compare = |published: &PublishedStairs| {
        let named = methods.iter().filter(|found| found.candidate.clock.name == published.method);
        let ours = named
            .filter_map(|found| Some(measured_stairs(found, found.resolution.staircase(StaircaseBody::Iterations)?)));
        StairsComparison {
            in_steps: VariancesInSteps::new(
                published.step,
                published.total_variance as f64,
                Some(published.variance_of_variances as f64),
                Some(published.variance_of_minima as f64),
            ),
            published: *published,
            ours: ours.collect(),
        }
    };
    PUBLISHED_STAIRS.iter().map(compare).collect()
}

fn measured_stairs(found: &MethodEvaluation, stairs: &Staircase) -> MeasuredStairs {
    let (totals, step) = (&stairs.totals, found.resolution.step);
    let [of_variances, of_minima] =
        [totals.variance_of_variances, totals.variance_of_minima].map(|variance| Some(variance as f64));
    let ends = stairs.points.first().zip(stairs.points.last());
    MeasuredStairs {
        executor: found.candidate.executor,
        step,
        lengths: stairs.points.len(),
        readings: stairs.readings,
        totals: totals.clone(),
        minima: ends.map(|(first, last)| [first.raw.minimum, last.raw.minimum]),
        in_steps: VariancesInSteps::new(step, totals.total_variance as f64, of_variances, of_minima),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_staircases_are_comparable_only_in_steps() {
        let [improved, alternative] = &compare_stairs(&[])[..] else { panic!("two staircases") };
        assert!(improved.ours.is_empty() && alternative.published.maximum_deviation == 220);
        assert_eq!(improved.in_steps.total_variance, 1.0 / 16.0);
        assert_eq!(improved.in_steps.variance_of_variances, Some(2.0 / 256.0));
        // Equal steps from 44 to 2048 have this variance of minima. It is within 1 % of the
        // paper's.
        let [first, last] = improved.published.minima.map(|minimum| minimum as f64);
        let uniform = (last - first).powi(2) / 12.0;
        assert!((improved.published.variance_of_minima as f64 / uniform - 1.0).abs() < 0.01, "{uniform}");
        assert_eq!(compare_pairs(&[]).len(), PUBLISHED_PAIRS.len());
    }
}
