//! Coverage: how often intervals contain the true value, and whether that matches their confidence.
//!
//! An interval that is too wide is as wrong as one that is too narrow, so shares are judged in both
//! directions. A verdict needs enough trials: the share of a few says nothing.

/// Accepted shares per confidence level, lowest and highest. At 95 % they are those of DESIGN.md,
/// 93 to 98 %. At other levels they are about as strict in standard deviations of the error.
const GOOD_SHARES: [(f64, [f64; 2]); 4] =
    [(0.5, [0.45, 0.58]), (0.8, [0.76, 0.86]), (0.95, [0.93, 0.98]), (0.99, [0.975, 1.0])];

/// Standard deviations by which chance may move a good share before it is rejected: once in 1000
/// trials.
const CHANCE_DEVIATIONS: f64 = 3.1;

/// Calibration of a set of intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoverageVerdict {
    /// They contain the truth as often as they claim.
    Right,
    /// They contain it less or more often than they claim.
    Wrong,
    /// There are too few to decide.
    TooFew,
}

/// Number of trials that separates a good share from a bad one, at level 0.5, 0.8, 0.95 or 0.99. A
/// correct share is then judged [`CoverageVerdict::Wrong`] once in 1000 times. At 95 %, 1142 trials
/// are needed. A share of 91 or 99 % is then judged wrong in 99 of 100 cases.
///
/// # Panics
///
/// Panics at any other level.
pub fn trials_needed(level: f64) -> usize {
    let [low, high] = good_shares(level);
    // No share can exceed a bound of 1.
    let nearest = (level - low).min(if high < 1.0 { high - level } else { f64::INFINITY });
    (CHANCE_DEVIATIONS.powi(2) * level * (1.0 - level) / nearest.powi(2)).ceil() as usize
}

/// Judges how many intervals of one level contained the truth.
///
/// # Panics
///
/// Panics at a level that [`trials_needed`] does not support.
pub fn judge_coverage(level: f64, held: usize, trials: usize) -> CoverageVerdict {
    let [low, high] = good_shares(level);
    let share = held as f64 / trials as f64;
    match trials >= trials_needed(level) {
        false => CoverageVerdict::TooFew,
        true if (low..=high).contains(&share) => CoverageVerdict::Right,
        true => CoverageVerdict::Wrong,
    }
}

fn good_shares(level: f64) -> [f64; 2] {
    GOOD_SHARES.iter().find(|(listed, _)| *listed == level).expect("one of four levels").1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Share of experiments with this true coverage that are judged wrong.
    fn found_wrong(level: f64, truth: f64) -> f64 {
        const EXPERIMENTS: usize = 1000;
        let (trials, mut random) = (trials_needed(level), Random::new(5));
        let wrong = (0..EXPERIMENTS).filter(|_| {
            let held = (0..trials).filter(|_| random.happens(truth)).count();
            judge_coverage(level, held, trials) == CoverageVerdict::Wrong
        });
        wrong.count() as f64 / EXPERIMENTS as f64
    }

    #[test]
    fn enough_trials_tell_good_shares_from_bad_ones() {
        assert_eq!(trials_needed(0.95), 1142);
        for level in [0.5, 0.8, 0.95, 0.99] {
            assert!(found_wrong(level, level) < 0.01, "{level}");
        }
        for bad in [0.91, 0.99] {
            assert!(found_wrong(0.95, bad) > 0.98, "{bad}");
        }
        for (level, bad) in [(0.5, 0.4), (0.5, 0.63), (0.8, 0.72), (0.8, 0.9), (0.99, 0.95)] {
            assert!(found_wrong(level, bad) > 0.98, "{bad} at {level}");
        }
    }

    #[test]
    fn few_trials_say_nothing() {
        assert_eq!(judge_coverage(0.95, 300, 300), CoverageVerdict::TooFew);
        assert_eq!(judge_coverage(0.95, 1110, 1200), CoverageVerdict::Wrong);
        assert_eq!(judge_coverage(0.95, 1140, 1200), CoverageVerdict::Right);
        assert_eq!(judge_coverage(0.95, 1200, 1200), CoverageVerdict::Wrong);
    }
}
