//! The paper's criterion, applied literally: is a method ergodic?
//!
//! The paper calls a method completely ergodic when the variance of variances and the variance of
//! minima are both 0. Its figures are integers in TSC ticks, from a machine whose TSC counted in
//! steps of 4 (sections 3.2.2 and 3.2.4).

use super::ensemble::EnsembleTotals;
use super::ergodic_verdict::ErgodicVerdict;

/// Fewest ensembles that the criterion is applied to: the variance of a single value is 0.
pub(crate) const ENSEMBLES_LEAST: usize = 4;

/// Variance of variances from chance alone at which the criterion becomes impossible to meet. The
/// paper's figure is an integer, and 1 is the first that is not 0.
const CHANCE_MOST: f64 = 1.0;

/// Whether both variances are 0. Not comparable with few ensembles, or if chance alone makes the
/// variance of variances nonzero.
pub(crate) fn judge_ergodicity(totals: &EnsembleTotals, chance: Option<f64>) -> ErgodicVerdict {
    let few = chance.is_some_and(|chance| chance >= CHANCE_MOST);
    if few || totals.ensembles < ENSEMBLES_LEAST {
        return ErgodicVerdict::NotComparable;
    }
    ErgodicVerdict::from(totals.variance_of_variances == Some(0) && totals.variance_of_minima == Some(0))
}

/// Explains the literal verdict for ensembles of `samples` readings. `step` is the clock's, in raw
/// units.
pub fn explain_ergodicity(totals: &EnsembleTotals, samples: u32, chance: Option<f64>, step: f64) -> String {
    if totals.ensembles < ENSEMBLES_LEAST {
        return format!("not comparable: {} ensembles are too few", totals.ensembles);
    }
    let figure = |value: Option<u128>| value.map_or("beyond 128 bits".to_string(), |value| value.to_string());
    let (minima, variances) = (figure(totals.variance_of_minima), figure(totals.variance_of_variances));
    if let Some(chance) = chance.filter(|chance| *chance >= CHANCE_MOST) {
        return format!(
            "not comparable: with {} ensembles of {samples} samples, chance alone makes a variance of variances of \
             {chance:.0}, and the criterion requires 0 (measured: {variances}; variance of minima: {minima})",
            totals.ensembles
        );
    }
    match (totals.variance_of_minima == Some(0), totals.variance_of_variances == Some(0)) {
        (true, true) if step > 1.0 => {
            format!("minimum and variance are constant; a step of {step:.0} may hide small differences")
        }
        (true, true) => "minimum and variance are constant".to_string(),
        (false, true) => {
            format!("the minimum differs between ensembles (variance {minima}), so no overhead can be subtracted")
        }
        (true, false) => format!(
            "the variance differs between ensembles (variance {variances}), so no error can be stated; the minimum \
             may be constant only because of a coarse step"
        ),
        (false, false) => {
            format!("minimum (variance {minima}) and variance (variance {variances}) differ between ensembles")
        }
    }
}

/// A variance in steps². A clock that only rounds to steps makes at most 0.25.
pub fn variance_in_steps(variance: f64, step: f64) -> f64 {
    variance / (step * step)
}

/// Shortest cost for which one reading's standard deviation is at most `share` of it, in the same
/// unit. The paper's 139 and 690 cycles are 20 and 100 times its 6.9 (section 3.1.2).
pub(crate) fn shortest_cost(deviation: f64, share: f64) -> f64 {
    deviation / share
}

#[cfg(test)]
mod tests {
    use super::super::ensemble::{DurationCount, Ensemble};
    use super::super::published::{PUBLISHED_PAIRS, PublishedPairs};
    use super::*;

    /// Samples above the minimum: their number in a thousand, and their distance from it.
    type Above = (u64, u64);

    /// Runs of ensembles of a thousand samples each: number of ensembles, their minimum, and the
    /// samples above it.
    fn ensembles(runs: &[(usize, u64, Above)]) -> Vec<Ensemble> {
        let ensemble = |minimum: u64, (count, distance): Above| {
            let mut ensemble = Ensemble::default();
            let least = DurationCount { duration: minimum, count: 1000 - count };
            ensemble.add_durations(&[least, DurationCount { duration: minimum + distance, count }]);
            ensemble
        };
        runs.iter().flat_map(|(count, minimum, above)| vec![ensemble(*minimum, *above); *count]).collect()
    }

    /// Ensembles that reproduce the totals of the paper's first method. Minima are 452, 476 and one
    /// of 404, which has the largest deviation. Variances are 96, 48 and 0. The order gives 262
    /// spurious minima.
    fn first_method() -> Vec<Ensemble> {
        let minima: Vec<u64> = [vec![452; 26], [476, 452].repeat(262), vec![476; 450]].concat();
        let variances: Vec<Above> =
            [vec![(400, 20); 472], vec![(1, 636)], vec![(429, 14); 53], vec![(0, 0); 474]].concat();
        minima.iter().zip(variances).flat_map(|(minimum, above)| ensembles(&[(1, *minimum, above)])).collect()
    }

    fn row(method: &str) -> &'static PublishedPairs {
        PUBLISHED_PAIRS.iter().find(|row| row.method == method && row.spurious_minima.is_some()).unwrap()
    }

    fn assert_totals(totals: &EnsembleTotals, row: &PublishedPairs) {
        assert_eq!(totals.overhead_min, row.overhead_min);
        assert_eq!(totals.total_variance, row.total_variance as u128);
        assert_eq!(Some(totals.max_deviation), row.max_deviation);
        assert_eq!(totals.variance_of_variances, row.variance_of_variances.map(u128::from));
        assert_eq!(totals.variance_of_minima, row.variance_of_minima.map(u128::from));
        assert_eq!(Some(totals.spurious_minima), row.spurious_minima);
    }

    #[test]
    fn the_papers_totals_get_the_papers_verdicts() {
        let first = EnsembleTotals::from_ensembles(&first_method()).unwrap();
        assert_totals(&first, row("cpuid-rdtsc"));
        assert_eq!(judge_ergodicity(&first, None), ErgodicVerdict::No);
        for (method, base, most, above) in
            [("cpuid-rdtsc-rdtscp-cpuid", 44, 104, 180), ("cpuid-rdtsc-cr0-rdtsc", 208, 176, 300)]
        {
            let totals =
                EnsembleTotals::from_ensembles(&ensembles(&[(999, base, (above, 4)), (1, base, (1, most))])).unwrap();
            assert_totals(&totals, row(method));
            assert_eq!(judge_ergodicity(&totals, None), ErgodicVerdict::Yes);
        }
    }

    #[test]
    fn shortest_costs_match_the_paper() {
        let deviation = 48f64.sqrt();
        assert_eq!(shortest_cost(deviation, 0.05).round(), 139.0);
        // The paper rounds the deviation to 6.9 first, which gives 690.
        assert_eq!((shortest_cost(deviation, 0.01) / 10.0).round(), 69.0);
    }

    fn reason(totals: &EnsembleTotals, chance: f64, step: f64) -> String {
        explain_ergodicity(totals, 1000, Some(chance), step)
    }

    #[test]
    fn reasons_name_the_varying_figure() {
        let judged = |totals: &EnsembleTotals| judge_ergodicity(totals, Some(0.2));
        let constant = EnsembleTotals::from_ensembles(&ensembles(&[(9, 44, (500, 2))])).unwrap();
        assert!(judged(&constant) == ErgodicVerdict::Yes && reason(&constant, 0.2, 26.0).contains("may hide"));
        let minimum = EnsembleTotals::from_ensembles(&ensembles(&[(5, 44, (0, 0)), (5, 48, (0, 0))])).unwrap();
        assert!(judged(&minimum) == ErgodicVerdict::No && reason(&minimum, 0.2, 4.0).contains("no overhead"));
        let variance = EnsembleTotals::from_ensembles(&ensembles(&[(5, 44, (0, 0)), (5, 44, (500, 20))])).unwrap();
        assert!(judged(&variance) == ErgodicVerdict::No && reason(&variance, 0.2, 4.0).contains("coarse step"));
    }

    #[test]
    fn few_samples_are_not_comparable() {
        let totals = EnsembleTotals::from_ensembles(&ensembles(&[(5, 44, (0, 0)), (5, 44, (500, 20))])).unwrap();
        assert_eq!(judge_ergodicity(&totals, Some(70.0)), ErgodicVerdict::NotComparable);
        let why = reason(&totals, 70.0, 26.0);
        assert!(why.contains("10 ensembles of 1000 samples") && why.contains("of 70,"), "{why}");
        let three = EnsembleTotals::from_ensembles(&ensembles(&[(3, 44, (0, 0))])).unwrap();
        assert_eq!(judge_ergodicity(&three, Some(0.0)), ErgodicVerdict::NotComparable);
    }
}
