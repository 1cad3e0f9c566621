//! Compares several builds of both programs. All builds of a program have the same source, but are
//! linked or padded differently. An effect of code placement then does not count as a change.
//!
//! Here one build is one observation, as one run is for pairs. A verdict of pairs holds only if it
//! holds over builds too.

use super::paired_comparison::{
    CHANGE_BAR, CLAIM_LEVEL, ChangeVerdict, ComparisonOutcome, REPORTED_LEVEL, UnclearReason, share_level,
};
use cyclescope_core::statistics::{Interval, median, welch_interval};

/// Checks a verdict of pairs against the run times of each build of the old and of the new program.
/// It is one of `comparisons` that together have the error of one.
pub fn judge_over_builds(
    outcome: ComparisonOutcome,
    [old, new]: [&[Vec<f64>]; 2],
    within: f64,
    comparisons: usize,
) -> ComparisonOutcome {
    let [old, new] = [old, new].map(build_medians);
    let change = |level| {
        let Interval { value, low, high } = welch_interval(&new, &old, level)?;
        let [value, low, high] = [value, low, high].map(f64::exp_m1);
        Some(Interval { value, low, high })
    };
    let bar = CHANGE_BAR * within;
    let holds =
        change(share_level(CLAIM_LEVEL, comparisons)).is_some_and(|Interval { low, high, .. }| match outcome.verdict {
            ChangeVerdict::Slower => low > bar,
            ChangeVerdict::Faster => high < -bar,
            ChangeVerdict::Same => low > -within && high < within,
            ChangeVerdict::Unclear | ChangeVerdict::OnlyOld | ChangeVerdict::OnlyNew => true,
        });
    let outcome = ComparisonOutcome { change: change(REPORTED_LEVEL), ..outcome };
    if holds {
        return outcome;
    }
    ComparisonOutcome { verdict: ChangeVerdict::Unclear, why: Some(UnclearReason::BuildsDiffer), ..outcome }
}

/// The logarithm of each build's median.
fn build_medians(builds: &[Vec<f64>]) -> Vec<f64> {
    let logs = builds.iter().map(|runs| runs.iter().map(|run| run.ln()).filter(|run| run.is_finite()).collect());
    logs.filter(|runs: &Vec<f64>| !runs.is_empty()).map(|mut runs| median(&mut runs)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_core::random::Random;

    /// Builds of a program that takes `takes`. In some of them the code's placement adds `effect`.
    fn builds(random: &mut Random, takes: f64, count: usize, effect: f64) -> Vec<Vec<f64>> {
        let mut build = || {
            let place = 1.0 + if random.happens(0.5) { effect } else { 0.0 };
            (0..8).map(|_| takes * place * (1.0 + 0.001 * random.normal())).collect()
        };
        (0..count).map(|_| build()).collect()
    }

    fn judged(verdict: ChangeVerdict, old: &[Vec<f64>], new: &[Vec<f64>]) -> ComparisonOutcome {
        judge_over_builds(ComparisonOutcome { verdict, why: None, change: None, pairs: [12, 12] }, [old, new], 0.01, 1)
    }

    #[test]
    fn a_change_of_all_builds_is_confirmed() {
        let mut random = Random::new(3);
        let [old, new] = [1.0, 1.01].map(|takes| builds(&mut random, takes, 6, 0.0));
        let found = judged(ChangeVerdict::Slower, &old, &new);
        assert_eq!((found.verdict, found.why), (ChangeVerdict::Slower, None));
        assert!(found.change.unwrap().contains(0.01), "{found:?}");
        assert_eq!(judged(ChangeVerdict::Faster, &new, &old).verdict, ChangeVerdict::Faster);
        assert_eq!(judged(ChangeVerdict::Same, &old, &old).verdict, ChangeVerdict::Same);
        assert_eq!(judged(ChangeVerdict::Slower, &old, &old).why, Some(UnclearReason::BuildsDiffer));
        assert_eq!(judged(ChangeVerdict::Same, &old[..1], &old).why, Some(UnclearReason::BuildsDiffer));
    }

    #[test]
    fn code_placement_is_rarely_taken_for_a_change() {
        for effect in [0.002, 0.02, 0.5] {
            let mut random = Random::new(4);
            let wrong = (0..4000).filter(|_| {
                let [old, new] = [(); 2].map(|()| builds(&mut random, 1.0, 6, effect));
                let verdict = |verdict| judged(verdict, &old, &new).verdict == verdict;
                verdict(ChangeVerdict::Slower) || verdict(ChangeVerdict::Faster)
            });
            let wrong = wrong.count();
            assert!(wrong <= 40, "{wrong} of 4000 with {effect}");
        }
    }
}
