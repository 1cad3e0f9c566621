//! Several builds of both programs, of the same source and linked or padded in other ways: what the place of the code does is no change.
//!
//! A build is one observation here, as a run is within it. A verdict of pairs holds only where it holds over builds too.

use super::comparison::{BAR, LEVEL, Outcome, TOLD, Unclear, Verdict};
use cyclescope_core::statistics::{Interval, median, welch_interval};

/// Judges a verdict of pairs by what each build of the old and of the new program took in its runs.
pub fn over_builds(outcome: Outcome, old: &[Vec<f64>], new: &[Vec<f64>], within: f64) -> Outcome {
    let (old, new) = (centres(old), centres(new));
    let change = |level| {
        let Interval { value, low, high } = welch_interval(&new, &old, level)?;
        let [value, low, high] = [value, low, high].map(f64::exp_m1);
        Some(Interval { value, low, high })
    };
    let bar = BAR * within;
    let holds = change(LEVEL).is_some_and(|Interval { low, high, .. }| match outcome.verdict {
        Verdict::Slower => low > bar,
        Verdict::Faster => high < -bar,
        Verdict::Same => low > -within && high < within,
        Verdict::Unclear => true,
    });
    let outcome = Outcome { change: change(TOLD), ..outcome };
    if holds {
        return outcome;
    }
    Outcome { verdict: Verdict::Unclear, why: Some(Unclear::BuildsDiffer), ..outcome }
}

/// The logarithm of what each build takes.
fn centres(builds: &[Vec<f64>]) -> Vec<f64> {
    let logs =
        builds.iter().map(|runs| runs.iter().map(|run| run.ln()).filter(|run| run.is_finite()).collect());
    logs.filter(|runs: &Vec<f64>| !runs.is_empty()).map(|mut runs| median(&mut runs)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_core::random::Random;

    /// Builds of a program that takes this, of which the place of the code makes some take more.
    fn builds(random: &mut Random, takes: f64, count: usize, effect: f64) -> Vec<Vec<f64>> {
        let mut build = || {
            let place = 1.0 + if random.happens(0.5) { effect } else { 0.0 };
            (0..8).map(|_| takes * place * (1.0 + 0.001 * random.normal())).collect()
        };
        (0..count).map(|_| build()).collect()
    }

    fn judged(verdict: Verdict, old: &[Vec<f64>], new: &[Vec<f64>]) -> Outcome {
        over_builds(Outcome { verdict, why: None, change: None, pairs: [12, 12] }, old, new, 0.01)
    }

    #[test]
    fn a_change_of_all_builds_holds() {
        let mut random = Random::new(3);
        let [old, new] = [1.0, 1.01].map(|takes| builds(&mut random, takes, 6, 0.0));
        let found = judged(Verdict::Slower, &old, &new);
        assert_eq!((found.verdict, found.why), (Verdict::Slower, None));
        assert!(found.change.unwrap().contains(0.01), "{found:?}");
        assert_eq!(judged(Verdict::Faster, &new, &old).verdict, Verdict::Faster);
        assert_eq!(judged(Verdict::Same, &old, &old).verdict, Verdict::Same);
        assert_eq!(judged(Verdict::Slower, &old, &old).why, Some(Unclear::BuildsDiffer));
        assert_eq!(judged(Verdict::Same, &old[..1], &old).why, Some(Unclear::BuildsDiffer));
    }

    #[test]
    fn the_place_of_the_code_is_seldom_a_change() {
        for effect in [0.002, 0.02, 0.5] {
            let mut random = Random::new(4);
            let wrong = (0..4000).filter(|_| {
                let [old, new] = [(); 2].map(|()| builds(&mut random, 1.0, 6, effect));
                let verdict = |verdict| judged(verdict, &old, &new).verdict == verdict;
                verdict(Verdict::Slower) || verdict(Verdict::Faster)
            });
            let wrong = wrong.count();
            assert!(wrong <= 40, "{wrong} of 4000 with {effect}");
        }
    }
}
