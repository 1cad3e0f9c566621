//! Holm's correction for several tests.

/// Tests several hypotheses, and returns which of them are rejected. The chance that any true one
/// is rejected is at most `error`, however the tests depend on each other. `rejects` tests one of
/// them at an error that it is given.
///
/// S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
/// Statistics 6 (1979).
pub fn reject_by_holm(tests: usize, error: f64, rejects: impl Fn(usize, f64) -> bool) -> Vec<bool> {
    let mut rejected = vec![false; tests];
    loop {
        let open = rejected.iter().filter(|rejected| !**rejected).count();
        let share = holm_share(error, open);
        let found: Vec<usize> = (0..tests).filter(|test| !rejected[*test] && rejects(*test, share)).collect();
        if found.is_empty() {
            return rejected;
        }
        found.into_iter().for_each(|test| rejected[test] = true);
    }
}

/// The error of each test while this number of hypotheses is not rejected.
pub fn holm_share(error: f64, open: usize) -> f64 {
    error / open.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn reject(chances: &[f64], error: f64) -> Vec<bool> {
        reject_by_holm(chances.len(), error, |test, error| chances[test] <= error)
    }

    #[test]
    fn rejected_hypotheses_make_room_for_others() {
        // Holm's steps at 0.06: 0.015, 0.02, 0.03, 0.06.
        assert_eq!(reject(&[0.015, 0.02, 0.03, 0.06], 0.06), [true; 4]);
        assert_eq!(reject(&[0.06, 0.03, 0.02, 0.015], 0.06), [true; 4]);
        assert_eq!(reject(&[0.014, 0.021, 0.022, 0.06], 0.06), [true, false, false, false]);
        assert_eq!(reject(&[0.016; 4], 0.06), [false; 4]);
        assert_eq!(reject(&[], 0.05), Vec::<bool>::new());
        assert_eq!(reject(&[0.05], 0.05), [true]);
    }

    #[test]
    fn true_hypotheses_are_rarely_rejected() {
        let mut random = Random::new(11);
        let mut count = |tests: usize| {
            let trials = (0..20_000).filter(|_| {
                let chances: Vec<f64> = (0..tests).map(|_| random.uniform()).collect();
                reject(&chances, 0.05).contains(&true)
            });
            trials.count()
        };
        for tests in [1, 2, 10, 45] {
            let found = count(tests);
            assert!((800..=1100).contains(&found), "{found} of 20000 with {tests} tests");
        }
    }
}
