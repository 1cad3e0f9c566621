//! Compares current runs with runs recorded some time ago.
//!
//! Nothing pairs them. Any change in between (the machine, its other tenants, the kernel) is taken
//! for a change of the program. So the bar is all of what counts as the same, not a quarter of it,
//! and two batches of new runs have to agree.

use super::paired_comparison::{ChangeVerdict, ComparisonOutcome, UnclearReason};
use cyclescope_core::statistics::{Interval, median_interval};

/// Fewest runs of a batch, and of the recording. An interval at `CLAIM_LEVEL` needs nine.
pub const RUNS_LEAST: usize = 12;
/// Confidence level of the interval of each median. Their difference is wrong to one side only if
/// both are, which is rarer.
const CLAIM_LEVEL: f64 = 0.995;
/// Confidence level of each median's interval in reports: at least 95 % for the two together.
const REPORTED_LEVEL: f64 = 0.975;

/// Compares recorded runs with two batches of new ones.
pub fn compare_with_recorded(recorded: &[f64], batches: [&[f64]; 2], within: f64) -> ComparisonOutcome {
    let logs = |runs: &[f64]| -> Vec<f64> { runs.iter().map(|run| run.ln()).filter(|run| run.is_finite()).collect() };
    let (old, [first, second]) = (logs(recorded), batches.map(logs));
    let pairs = [first.len(), second.len()];
    let judge = |new: &[f64]| {
        let Interval { low, high, .. } = change_of_medians(&old, new, CLAIM_LEVEL)?;
        Some(match () {
            () if low > within => ChangeVerdict::Slower,
            () if high < -within => ChangeVerdict::Faster,
            () if low > -within && high < within => ChangeVerdict::Same,
            () => ChangeVerdict::Unclear,
        })
    };
    let all = [&first[..], &second[..]].concat();
    let reported = change_of_medians(&old, &all, REPORTED_LEVEL);
    let unclear = |why| ComparisonOutcome { verdict: ChangeVerdict::Unclear, why: Some(why), change: reported, pairs };
    match (judge(&first), judge(&second)) {
        (None, _) | (_, None) => unclear(UnclearReason::TooFew),
        (Some(ChangeVerdict::Unclear), Some(ChangeVerdict::Unclear)) => unclear(UnclearReason::TooNoisy),
        (Some(verdict), Some(other)) if verdict == other => {
            ComparisonOutcome { verdict, why: None, change: reported, pairs }
        }
        (Some(ChangeVerdict::Unclear), _) | (_, Some(ChangeVerdict::Unclear)) => unclear(UnclearReason::NotConfirmed),
        _ => unclear(UnclearReason::BatchesDisagree),
    }
}

/// The ratio of two medians as a share, from the farthest ends of their intervals.
fn change_of_medians(old: &[f64], new: &[f64], level: f64) -> Option<Interval> {
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
    fn both_batches_have_to_agree() {
        let verdict = |first: f64, second: f64| {
            let outcome = compare_with_recorded(&runs(1.0), [&runs(first), &runs(second)], 0.01);
            (outcome.verdict, outcome.why)
        };
        assert_eq!(verdict(1.03, 1.03), (ChangeVerdict::Slower, None));
        assert_eq!(verdict(0.97, 0.97), (ChangeVerdict::Faster, None));
        assert_eq!(verdict(1.005, 1.0), (ChangeVerdict::Same, None));
        assert_eq!(verdict(1.03, 1.0), (ChangeVerdict::Unclear, Some(UnclearReason::BatchesDisagree)));
        assert_eq!(verdict(1.01, 1.01), (ChangeVerdict::Unclear, Some(UnclearReason::TooNoisy)));
        assert_eq!(verdict(1.03, 1.01), (ChangeVerdict::Unclear, Some(UnclearReason::NotConfirmed)));
        let few = compare_with_recorded(&runs(1.0)[..5], [&runs(2.0), &runs(2.0)], 0.01);
        assert_eq!((few.why, few.change), (Some(UnclearReason::TooFew), None));
    }
}
