//! Published evaluations with ours beside them, as records. Variances are also there in steps of the clock, in which
//! machines with other steps can be compared.

use super::criteria::in_steps;
use super::evaluated::Evaluated;
use super::method::Method;
use super::published::{PUBLISHED, PUBLISHED_STAIRS, Published, PublishedStairs};
use super::resolution::{Body, Staircase};
use cyclescope_core::error::Constant;
use serde::Serialize;

/// Variances in steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct InSteps {
    /// The total variance in steps².
    pub total_variance: f64,
    /// The variance of variances in steps⁴; null where the source does not give it.
    pub variance_of_variances: Option<f64>,
    /// The variance of minima in steps²; null where the source does not give it.
    pub variance_of_minima: Option<f64>,
}

impl InSteps {
    fn new(step: f64, total: f64, of_variances: Option<f64>, of_minima: Option<f64>) -> InSteps {
        InSteps {
            total_variance: in_steps(total, step),
            variance_of_variances: of_variances.map(|variance| in_steps(in_steps(variance, step), step)),
            variance_of_minima: of_minima.map(|variance| in_steps(variance, step)),
        }
    }
}

/// Our totals of empty pairs, in raw units.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OurPairs {
    /// Where they ran.
    pub executor: Constant,
    /// The step of the readings.
    pub step: f64,
    /// Samples in each ensemble.
    pub samples_per_ensemble: u32,
    /// The paper's figures.
    #[serde(flatten)]
    pub totals: super::ensemble::Totals,
    /// The variances in steps.
    pub in_steps: InSteps,
}

/// A published row of empty pairs, kind `evaluate.published`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BesidePairs {
    /// The row.
    #[serde(flatten)]
    pub published: Published,
    /// Its variances in steps.
    pub in_steps: InSteps,
    /// Ours, one for each executor that ran the method.
    pub ours: Vec<OurPairs>,
}

/// Our totals of a staircase, in raw units.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OurStairs {
    /// Where it ran.
    pub executor: Constant,
    /// The step of the readings.
    pub step: f64,
    /// Lengths.
    pub lengths: usize,
    /// Readings of each.
    pub readings: usize,
    /// The paper's figures.
    #[serde(flatten)]
    pub totals: super::resolution::Totals,
    /// The least readings of the first length and the last.
    pub minima: Option<[u64; 2]>,
    /// The variances in steps.
    pub in_steps: InSteps,
}

/// A published staircase, kind `evaluate.published_stairs`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BesideStairs {
    /// The staircase.
    #[serde(flatten)]
    pub published: PublishedStairs,
    /// Its variances in steps.
    pub in_steps: InSteps,
    /// Ours, one for each executor that ran the method.
    pub ours: Vec<OurStairs>,
}

/// The published rows, with ours.
pub fn pairs(methods: &[Evaluated]) -> Vec<BesidePairs> {
    let beside = |published: &Published| {
        let of_variances = published.variance_of_variances.map(|variance| variance as f64);
        let of_minima = published.variance_of_minima.map(|variance| variance as f64);
        let named = methods.iter().filter(|found| found.candidate.clock.name == published.method);
        BesidePairs {
            in_steps: InSteps::new(published.step, published.total_variance, of_variances, of_minima),
            published: *published,
            ours: named.filter_map(|found| found.method.as_ref()).map(our_pairs).collect(),
        }
    };
    PUBLISHED.iter().map(beside).collect()
}

fn our_pairs(method: &Method) -> OurPairs {
    let (totals, step) = (&method.totals, method.tested.step);
    let [total, of_variances, of_minima] =
        [&totals.total_variance_exact, &totals.variance_of_variances_exact, &totals.variance_of_minima_exact]
            .map(|exact| exact.value());
    OurPairs {
        executor: method.tested.executor,
        step,
        samples_per_ensemble: method.sampled.shape.size.samples,
        totals: totals.clone(),
        in_steps: InSteps::new(step, total, Some(of_variances), Some(of_minima)),
    }
}

/// The published staircases, with ours.
pub fn stairs(methods: &[Evaluated]) -> Vec<BesideStairs> {
    let beside = |published: &PublishedStairs| {
        let named = methods.iter().filter(|found| found.candidate.clock.name == published.method);
        let ours =
            named.filter_map(|found| Some(our_stairs(found, found.resolution.staircase(Body::Iterations)?)));
        BesideStairs {
            in_steps: InSteps::new(
                published.step,
                published.total_variance as f64,
                Some(published.variance_of_variances as f64),
                Some(published.variance_of_minima as f64),
            ),
            published: *published,
            ours: ours.collect(),
        }
    };
    PUBLISHED_STAIRS.iter().map(beside).collect()
}

fn our_stairs(found: &Evaluated, stairs: &Staircase) -> OurStairs {
    let (totals, step) = (&stairs.totals, found.resolution.step);
    let [of_variances, of_minima] =
        [totals.variance_of_variances, totals.variance_of_minima].map(|variance| Some(variance as f64));
    let ends = stairs.points.first().zip(stairs.points.last());
    OurStairs {
        executor: found.candidate.executor,
        step,
        lengths: stairs.points.len(),
        readings: stairs.readings,
        totals: totals.clone(),
        minima: ends.map(|(first, last)| [first.raw.minimum, last.raw.minimum]),
        in_steps: InSteps::new(step, totals.total_variance as f64, of_variances, of_minima),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_staircases_are_comparable_in_steps_only() {
        let [improved, alternative] = &stairs(&[])[..] else { panic!("two staircases") };
        assert!(improved.ours.is_empty() && alternative.published.maximum_deviation == 220);
        assert_eq!(improved.in_steps.total_variance, 1.0 / 16.0);
        assert_eq!(improved.in_steps.variance_of_variances, Some(2.0 / 256.0));
        // A line from 44 to 2048 in equal steps has this variance of its minima: the paper's, to a part in a hundred.
        let [first, last] = improved.published.minima.map(|minimum| minimum as f64);
        let uniform = (last - first).powi(2) / 12.0;
        assert!((improved.published.variance_of_minima as f64 / uniform - 1.0).abs() < 0.01, "{uniform}");
        assert_eq!(pairs(&[]).len(), PUBLISHED.len());
    }
}
