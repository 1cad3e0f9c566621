//! How often intervals hold the truth, and whether that is as often as they say.
//!
//! An interval that is too wide is as wrong as one that is too narrow, so shares are judged from both sides, and only where
//! there are enough trials: a share of few says nothing.

/// What is a good share at a level, from the least to the most. At 95 % they are DESIGN.md's, 93 to 98 %; at the others they are
/// about as strict in standard deviations of the error.
const GOOD_SHARES: [(f64, [f64; 2]); 4] =
    [(0.5, [0.45, 0.58]), (0.8, [0.76, 0.86]), (0.95, [0.93, 0.98]), (0.99, [0.975, 1.0])];

/// Standard deviations of chance by which a right share may be off before it is refused: once in a thousand trials.
const CHANCE_DEVIATIONS: f64 = 3.1;

/// What a number of intervals says of their calibration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoverageVerdict {
    /// They hold the truth as often as they say.
    Right,
    /// They hold it less or more often.
    Wrong,
    /// There are too few to tell.
    TooFew,
}

/// Trials, of intervals at one of the levels 0.5, 0.8, 0.95 and 0.99, that tell a good share from a bad one: one that is as it
/// should be is found [`CoverageVerdict::Wrong`] once in a thousand times. At 95 % that are 1142, and a share of 91 or of 99 % is
/// then found wrong in 99 of a hundred times.
///
/// # Panics
///
/// At another level.
pub fn trials_needed(level: f64) -> usize {
    let [low, high] = good_shares(level);
    // Beyond a bound of 1 no share can be.
    let nearest = (level - low).min(if high < 1.0 { high - level } else { f64::INFINITY });
    (CHANCE_DEVIATIONS.powi(2) * level * (1.0 - level) / nearest.powi(2)).ceil() as usize
}

/// Judges how many intervals of a level held the truth.
///
/// # Panics
///
/// At a level that [`trials_needed`] does not know.
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
    GOOD_SHARES.iter().find(|(known, _)| *known == level).expect("one of four levels").1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The share of experiments with this true coverage that are found wrong.
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
