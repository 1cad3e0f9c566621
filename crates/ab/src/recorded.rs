//! Runs of now against runs that were recorded some time ago.
//!
//! Nothing pairs them: whatever changed in between, the machine, its other tenants, the kernel, is taken for a change of the program. So the
//! bar is what counts as the same, and not a quarter of it, and two batches of new runs have to say it.

use super::comparison::{Outcome, Unclear, Verdict};
use cyclescope_core::statistics::{Interval, median_interval};

/// Runs of a batch at least, and of the recorded ones: an interval at `LEVEL` needs nine.
pub const FEWEST: usize = 12;
/// The level of the interval of each median. The difference of two is wrong to one side where both are, which is rarer.
const LEVEL: f64 = 0.995;
/// The level of each median of an interval that is told: it is at least 95 % for the two together.
const TOLD: f64 = 0.975;

/// Compares recorded runs with two batches of new ones.
pub fn against(recorded: &[f64], batches: [&[f64]; 2], within: f64) -> Outcome {
    let logs = |runs: &[f64]| -> Vec<f64> {
        runs.iter().map(|run| run.ln()).filter(|run| run.is_finite()).collect()
    };
    let (old, [first, second]) = (logs(recorded), batches.map(logs));
    let pairs = [first.len(), second.len()];
    let said = |new: &[f64]| {
        let Interval { low, high, .. } = change(&old, new, LEVEL)?;
        Some(match () {
            () if low > within => Verdict::Slower,
            () if high < -within => Verdict::Faster,
            () if low > -within && high < within => Verdict::Same,
            () => Verdict::Unclear,
        })
    };
    let all = [&first[..], &second[..]].concat();
    let told = change(&old, &all, TOLD);
    let unclear = |why| Outcome { verdict: Verdict::Unclear, why: Some(why), change: told, pairs };
    match (said(&first), said(&second)) {
        (None, _) | (_, None) => unclear(Unclear::TooFew),
        (Some(Verdict::Unclear), Some(Verdict::Unclear)) => unclear(Unclear::TooNoisy),
        (Some(verdict), Some(other)) if verdict == other => {
            Outcome { verdict, why: None, change: told, pairs }
        }
        (Some(Verdict::Unclear), _) | (_, Some(Verdict::Unclear)) => unclear(Unclear::NotConfirmed),
        _ => unclear(Unclear::BatchesDisagree),
    }
}

/// The ratio of two medians as a share, from the farthest ends of their intervals.
fn change(old: &[f64], new: &[f64], level: f64) -> Option<Interval> {
    let (old, new) = (median_interval(old, level)?, median_interval(new, level)?);
    let [value, low, high] = [new.value - old.value, new.low - old.high, new.high - old.low].map(f64::exp_m1);
    Some(Interval { value, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(level: f64) -> Vec<f64> {
        (0..24).map(|number| level * (1.0 + 0.0001 * f64::from(number % 7))).collect()
    }

    #[test]
    fn both_batches_have_to_say_it() {
        let verdict = |first: f64, second: f64| {
            let outcome = against(&runs(1.0), [&runs(first), &runs(second)], 0.01);
            (outcome.verdict, outcome.why)
        };
        assert_eq!(verdict(1.03, 1.03), (Verdict::Slower, None));
        assert_eq!(verdict(0.97, 0.97), (Verdict::Faster, None));
        assert_eq!(verdict(1.005, 1.0), (Verdict::Same, None));
        assert_eq!(verdict(1.03, 1.0), (Verdict::Unclear, Some(Unclear::BatchesDisagree)));
        assert_eq!(verdict(1.01, 1.01), (Verdict::Unclear, Some(Unclear::TooNoisy)));
        assert_eq!(verdict(1.03, 1.01), (Verdict::Unclear, Some(Unclear::NotConfirmed)));
        let few = against(&runs(1.0)[..5], [&runs(2.0), &runs(2.0)], 0.01);
        assert_eq!((few.why, few.change), (Some(Unclear::TooFew), None));
    }
}
