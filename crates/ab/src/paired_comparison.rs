//! The decision: takes pairs of runs and returns a verdict.
//!
//! A pure function of the readings, so it can be simulated. Pairs are evaluated when there are 12,
//! and again after each increase by a quarter. Each evaluation (a look) computes an interval of the
//! median ratio:
//!
//! - Above a quarter of what counts as the same, it claims *slower*; below the negative of that,
//!   *faster*.
//! - Within what counts as the same, on both sides, it claims *the same*.
//!
//! A claim begins a second batch of new pairs, which has to confirm it. If the programs do not
//! differ, all looks of a batch together claim a given direction about once in a hundred times. Two
//! batches agree once in ten thousand times.

use cyclescope_core::statistics::{self, Interval, holm_share, median_interval};
use serde::Serialize;

/// Default share within which two programs count as the same.
pub const SAME_WITHIN: f64 = 0.01;

/// A change must exceed this part of what counts as the same. If changes below one per cent count
/// as the same, a change of one per cent must be found, so the bar lies well below.
pub(super) const CHANGE_BAR: f64 = 0.25;
/// Pairs at the first look. Intervals at [`SAME_LEVEL`] need eleven.
const FIRST_LOOK: usize = 12;
/// Confidence level of a look's interval. A batch has a dozen looks, each sharing most of its pairs
/// with the one before. Over all of them the chance of a false claim to one side grows from 0.25 %
/// to about 1 %.
pub(super) const CLAIM_LEVEL: f64 = 0.995;
/// Confidence level for calling two programs the same. If they differ by just more than what counts
/// as the same, chance calls them the same once in two hundred times, over all looks.
const SAME_LEVEL: f64 = 0.999;
/// Confidence level of reported intervals.
pub(super) const REPORTED_LEVEL: f64 = 0.95;

/// Verdict on a benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeVerdict {
    /// The new program takes longer.
    Slower,
    /// The new program takes less time.
    Faster,
    /// The programs differ by less than what counts as the same.
    Same,
    /// The comparison is undecided.
    Unclear,
    /// Only the old program has this benchmark.
    OnlyOld,
    /// Only the new program has this benchmark.
    OnlyNew,
}

/// Why a comparison is undecided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnclearReason {
    /// There were too few pairs for an interval.
    TooFew,
    /// The interval is too wide.
    TooNoisy,
    /// The first batch claims a change, and the second one has no answer yet.
    NotConfirmed,
    /// One batch claims slower and the other one faster.
    BatchesDisagree,
    /// The verdict from pairs of runs does not hold over the builds of the programs.
    BuildsDiffer,
    /// The programs say that they could not measure it.
    NotMeasured,
}

/// Outcome of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ComparisonOutcome {
    /// The verdict.
    pub verdict: ChangeVerdict,
    /// Reason for [`ChangeVerdict::Unclear`].
    pub why: Option<UnclearReason>,
    /// Change of the new program as a share of the old one's time, with its 95 % interval. It comes
    /// from the batch that decided, or from all pairs if none did. `None` with too few pairs.
    pub change: Option<Interval>,
    /// Pairs of the first and the second batch.
    pub pairs: [usize; 2],
}

impl ComparisonOutcome {
    /// The outcome without any pair of runs.
    pub fn without_pairs(verdict: ChangeVerdict, why: Option<UnclearReason>) -> ComparisonOutcome {
        ComparisonOutcome { verdict, why, change: None, pairs: [0; 2] }
    }

    /// How many times as many pairs would probably decide a comparison that is too noisy, or whose
    /// second batch has no answer yet; `None` for others. An interval narrows with the root of their
    /// number.
    pub fn times_as_many_pairs(&self, within: f64) -> Option<f64> {
        let more_help = matches!(self.why, Some(UnclearReason::TooNoisy | UnclearReason::NotConfirmed));
        let change = self.change.filter(|_| more_help)?;
        let (size, reach) = (change.value.abs(), (change.high - change.low) / 2.0);
        let reported = normal_quantile(REPORTED_LEVEL);
        // The reach of the reported interval with which that of the level would decide.
        let same = (within - size) * reported / normal_quantile(SAME_LEVEL);
        let differs = (size - CHANGE_BAR * within) * reported / normal_quantile(CLAIM_LEVEL);
        let pairs = |reach_needed: f64, batches: f64| {
            if reach_needed > 0.0 { batches * (reach / reach_needed).powi(2) } else { f64::INFINITY }
        };
        // A change has to be confirmed by a second batch.
        let least = pairs(same, 1.0).min(pairs(differs, 2.0));
        least.is_finite().then_some(least.max(1.0))
    }

    /// The outcome of a benchmark that one program lacks, by which of the two programs have it.
    /// `None` if both have it.
    pub fn of_presence(old: bool, new: bool) -> Option<ComparisonOutcome> {
        let (verdict, why) = match (old, new) {
            (true, true) => return None,
            (true, false) => (ChangeVerdict::OnlyOld, None),
            (false, true) => (ChangeVerdict::OnlyNew, None),
            (false, false) => (ChangeVerdict::Unclear, Some(UnclearReason::TooFew)),
        };
        Some(ComparisonOutcome::without_pairs(verdict, why))
    }
}

/// A comparison in progress.
#[derive(Debug, Clone)]
pub struct PairedComparison {
    within: f64,
    /// Logarithms of new ÷ old.
    batches: [Vec<f64>; 2],
    look: usize,
    /// Claim of the first batch.
    claim: Option<ChangeVerdict>,
    ended: Option<(ChangeVerdict, Option<UnclearReason>)>,
}

impl PairedComparison {
    /// Begins a comparison. A change by less than this share counts as the same.
    pub fn new(within: f64) -> PairedComparison {
        PairedComparison { within, batches: [Vec::new(), Vec::new()], look: FIRST_LOOK, claim: None, ended: None }
    }

    /// Adds the times of a pair of runs, in any common unit. Ignores pairs after the decision, and
    /// times that are not above 0.
    pub fn add_pair(&mut self, old: f64, new: f64) {
        self.add_pair_of_several(old, new, 1);
    }

    /// Does the same for one of several comparisons, which together have the error of one: each
    /// has its part. See [`ProgramRanking`](crate::ProgramRanking).
    pub(super) fn add_pair_of_several(&mut self, old: f64, new: f64, comparisons: usize) {
        let ratio = (new / old).ln();
        if self.is_decided() || !ratio.is_finite() {
            return;
        }
        let number = usize::from(self.claim.is_some());
        self.batches[number].push(ratio);
        if self.batches[number].len() == self.look {
            self.look += self.look.div_ceil(4);
            self.judge_batch(number, comparisons);
        }
    }

    /// Whether the verdict is final, so that further pairs change nothing.
    pub fn is_decided(&self) -> bool {
        self.ended.is_some()
    }

    /// Whether the verdict is final, and says that the programs differ.
    pub(super) fn has_found_difference(&self) -> bool {
        matches!(self.ended, Some((ChangeVerdict::Slower | ChangeVerdict::Faster, _)))
    }

    /// Whether the current batch has been evaluated once, so that there is something to report.
    pub fn has_begun(&self) -> bool {
        self.look > FIRST_LOOK
    }

    fn judge_batch(&mut self, number: usize, comparisons: usize) {
        let Some(claimed) = self.batch_verdict(&self.batches[number], comparisons) else { return };
        self.ended = match (self.claim, claimed) {
            (_, ChangeVerdict::Same) => Some((claimed, None)),
            (Some(claim), claimed) if claim == claimed => Some((claimed, None)),
            (Some(_), _) => Some((ChangeVerdict::Unclear, Some(UnclearReason::BatchesDisagree))),
            (None, _) => {
                (self.claim, self.look) = (Some(claimed), FIRST_LOOK);
                None
            }
        };
    }

    /// Claim of a batch, if any.
    fn batch_verdict(&self, batch: &[f64], comparisons: usize) -> Option<ChangeVerdict> {
        let change = |level| median_change(batch, share_level(level, comparisons));
        let claimed = change(CLAIM_LEVEL)?;
        let bar = CHANGE_BAR * self.within;
        match () {
            () if claimed.low > bar => Some(ChangeVerdict::Slower),
            () if claimed.high < -bar => Some(ChangeVerdict::Faster),
            () => {
                let all = change(SAME_LEVEL)?;
                (all.low > -self.within && all.high < self.within).then_some(ChangeVerdict::Same)
            }
        }
    }

    /// The outcome so far.
    pub fn outcome(&self) -> ComparisonOutcome {
        let [first, second] = &self.batches;
        let pairs = [first.len(), second.len()];
        let all = [&first[..], &second[..]].concat();
        let all = median_change(&all, REPORTED_LEVEL);
        let Some((verdict, why)) = self.ended else {
            let why = match (self.claim, all) {
                (Some(_), _) => UnclearReason::NotConfirmed,
                (None, None) => UnclearReason::TooFew,
                (None, Some(_)) => UnclearReason::TooNoisy,
            };
            return ComparisonOutcome { verdict: ChangeVerdict::Unclear, why: Some(why), change: all, pairs };
        };
        let decided = if self.claim.is_some() { second } else { first };
        let change = if why.is_none() { median_change(decided, REPORTED_LEVEL) } else { all };
        ComparisonOutcome { verdict, why, change, pairs }
    }
}

/// Standard deviations on each side of the mean that hold this share of a normal distribution.
fn normal_quantile(level: f64) -> f64 {
    statistics::normal_quantile(0.5 + level / 2.0)
}

/// The level of one of several comparisons that together have the error of this level.
pub(super) fn share_level(level: f64, comparisons: usize) -> f64 {
    1.0 - holm_share(1.0 - level, comparisons)
}

/// The median of the ratios as a share, with its interval.
fn median_change(ratios: &[f64], level: f64) -> Option<Interval> {
    let Interval { value, low, high } = median_interval(ratios, level)?;
    let [value, low, high] = [value, low, high].map(f64::exp_m1);
    Some(Interval { value, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_core::random::Random;

    fn compare_ratios(ratios: impl IntoIterator<Item = f64>) -> PairedComparison {
        let mut comparison = PairedComparison::new(SAME_WITHIN);
        ratios.into_iter().for_each(|ratio| comparison.add_pair(2.0, 2.0 * ratio));
        comparison
    }

    #[test]
    fn a_change_needs_two_batches_and_the_second_gives_its_size() {
        let claimed = compare_ratios([1.05; 12]);
        assert!(!claimed.is_decided());
        let outcome = claimed.outcome();
        assert_eq!(
            (outcome.verdict, outcome.why),
            (ChangeVerdict::Unclear, Some(UnclearReason::NotConfirmed)),
            "one batch is not enough"
        );
        let slower = compare_ratios([1.05; 12].into_iter().chain([1.02; 12])).outcome();
        assert_eq!((slower.verdict, slower.why, slower.pairs), (ChangeVerdict::Slower, None, [12, 12]));
        assert!((slower.change.unwrap().value - 0.02).abs() < 1e-12, "{slower:?}");
        assert_eq!(compare_ratios([0.98; 24]).outcome().verdict, ChangeVerdict::Faster);
        assert_eq!(compare_ratios([1.001; 12]).outcome().verdict, ChangeVerdict::Same);
    }

    #[test]
    fn a_claim_that_the_second_batch_contradicts_is_not_reported() {
        let against = compare_ratios([1.05; 12].into_iter().chain([0.95; 12])).outcome();
        assert_eq!((against.verdict, against.why), (ChangeVerdict::Unclear, Some(UnclearReason::BatchesDisagree)));
        assert_eq!(compare_ratios([1.05; 12].into_iter().chain([1.0; 12])).outcome().verdict, ChangeVerdict::Same);
    }

    #[test]
    fn a_change_below_the_bar_is_the_same_and_a_wide_interval_is_unclear() {
        // 0.3 % is above a quarter of 1 %, and 0.2 % below.
        assert_eq!(compare_ratios([1.003; 24]).outcome().verdict, ChangeVerdict::Slower);
        assert_eq!(compare_ratios([1.002; 24]).outcome().verdict, ChangeVerdict::Same);
        let wide = compare_ratios((0..200).map(|number| if number % 2 == 0 { 0.9 } else { 1.1 })).outcome();
        assert_eq!((wide.verdict, wide.why), (ChangeVerdict::Unclear, Some(UnclearReason::TooNoisy)));
    }

    #[test]
    fn a_noisy_comparison_tells_how_many_pairs_it_takes() {
        let mut random = Random::new(5);
        for (change, noise) in [(0.0, 0.05), (0.02, 0.1)] {
            let mut enough = 0;
            for _ in 0..100 {
                let mut ratios = || (change + noise * random.normal()).exp();
                let mut comparison = compare_ratios((0..100).map(|_| ratios()));
                let Some(times) = comparison.outcome().times_as_many_pairs(SAME_WITHIN) else {
                    enough += 1;
                    continue;
                };
                assert!((1.0..1000.0).contains(&times), "{times}");
                let more = (200.0 * (times + 1.0)) as usize;
                (0..more).for_each(|_| comparison.add_pair(1.0, ratios()));
                enough += usize::from(comparison.is_decided());
            }
            assert!(enough >= 80, "{enough} of 100 with {change}");
        }
        assert_eq!(compare_ratios([1.0; 24]).outcome().times_as_many_pairs(SAME_WITHIN), None);
        // A second batch that has no answer yet needs more pairs too.
        let noisy = (0..40).map(|number| if number % 2 == 0 { 0.98 } else { 1.06 });
        let claimed = compare_ratios([1.02; 12].into_iter().chain(noisy)).outcome();
        assert_eq!(claimed.why, Some(UnclearReason::NotConfirmed));
        assert!(claimed.times_as_many_pairs(SAME_WITHIN).is_some_and(|times| times > 1.0), "{claimed:?}");
    }

    #[test]
    fn few_pairs_and_invalid_times_decide_nothing() {
        let few = compare_ratios([1.5; 5]).outcome();
        assert_eq!((few.why, few.change), (Some(UnclearReason::TooFew), None));
        let mut none = PairedComparison::new(SAME_WITHIN);
        for (old, new) in [(0.0, 1.0), (1.0, 0.0), (f64::NAN, 1.0), (-1.0, 1.0)] {
            none.add_pair(old, new);
        }
        assert_eq!(none.outcome().pairs, [0, 0]);
    }
}
