//! The decision: pairs of runs come in, a verdict goes out.
//!
//! A pure function of the readings, so that it can be simulated. Pairs are looked at when there are 12, and whenever there are a quarter more.
//! A look takes the interval of the median ratio:
//!
//! - above a quarter of what counts as the same: *slower* is claimed; below its negative: *faster*;
//! - within what counts as the same, on both sides: *the same*.
//!
//! A claim begins a second batch, of new pairs, which has to say the same. Of programs that do not differ, a batch claims a certain
//! direction about once in a hundred times over all its looks, and so two batches once in ten thousand times.

use cyclescope_core::statistics::{Interval, median_interval};
use serde::Serialize;

/// The share within which two programs count as the same, where nothing else is asked for.
pub const SAME_WITHIN: f64 = 0.01;

/// The part of what counts as the same that a change must exceed: one per cent is to be found where a change below one per cent
/// counts as the same, so the bar lies well below.
pub(super) const CHANGE_BAR: f64 = 0.25;
/// Pairs at the first look. Intervals at [`SAME_LEVEL`] need eleven.
const FIRST_LOOK: usize = 12;
/// The level of the interval of a look. Over the looks of a batch, a dozen of which each has most of its pairs in common with
/// the one before, the chance of a false claim to one side grows from 0.25 % to about 1 %.
pub(super) const CLAIM_LEVEL: f64 = 0.995;
/// The level at which two programs are the same. Programs that differ by just what no longer counts as the same are told to be the same by
/// chance: with this level once in two hundred times, over all looks.
const SAME_LEVEL: f64 = 0.999;
/// The level of intervals that are told.
pub(super) const REPORTED_LEVEL: f64 = 0.95;

/// What is said of a benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeVerdict {
    /// The new program takes more.
    Slower,
    /// It takes less.
    Faster,
    /// The two differ by less than what counts as the same.
    Same,
    /// Nothing can be said.
    Unclear,
}

/// Why nothing can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnclearReason {
    /// There were too few pairs for an interval.
    TooFew,
    /// The interval is too wide.
    TooNoisy,
    /// The first batch claims a change, and the second one has no answer yet.
    NotConfirmed,
    /// One batch says slower and the other one faster.
    BatchesDisagree,
    /// What pairs of runs say does not hold over the builds of the programs.
    BuildsDiffer,
}

/// What became of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ComparisonOutcome {
    /// The verdict.
    pub verdict: ChangeVerdict,
    /// Why there is none.
    pub why: Option<UnclearReason>,
    /// What the new program takes more, as a share of the old one's, with its interval of 95 %; by the batch that decided, or by all pairs
    /// where none did. Not known of too few pairs.
    pub change: Option<Interval>,
    /// Pairs of the first and the second batch.
    pub pairs: [usize; 2],
}

/// A comparison under way.
#[derive(Debug, Clone)]
pub struct PairedComparison {
    within: f64,
    /// Logarithms of new ÷ old.
    batches: [Vec<f64>; 2],
    look: usize,
    /// What the first batch says.
    claim: Option<ChangeVerdict>,
    ended: Option<(ChangeVerdict, Option<UnclearReason>)>,
}

impl PairedComparison {
    /// Nothing is known yet; a change by less than this share counts as the same.
    pub fn new(within: f64) -> PairedComparison {
        PairedComparison { within, batches: [Vec::new(), Vec::new()], look: FIRST_LOOK, claim: None, ended: None }
    }

    /// Takes in what a pair of runs took, in any unit that both have. After the decision, and of what is no number above 0, nothing
    /// happens.
    pub fn add_pair(&mut self, old: f64, new: f64) {
        let ratio = (new / old).ln();
        if self.is_decided() || !ratio.is_finite() {
            return;
        }
        let number = usize::from(self.claim.is_some());
        self.batches[number].push(ratio);
        if self.batches[number].len() == self.look {
            self.look += self.look.div_ceil(4);
            self.judge_batch(number);
        }
    }

    /// Whether the verdict is certain, and further pairs change nothing.
    pub fn is_decided(&self) -> bool {
        self.ended.is_some()
    }

    /// Whether the batch under way has been looked at once, so that there is something to say.
    pub fn has_begun(&self) -> bool {
        self.look > FIRST_LOOK
    }

    fn judge_batch(&mut self, number: usize) {
        let Some(said) = self.batch_verdict(&self.batches[number]) else { return };
        self.ended = match (self.claim, said) {
            (_, ChangeVerdict::Same) => Some((said, None)),
            (Some(claim), said) if claim == said => Some((said, None)),
            (Some(_), _) => Some((ChangeVerdict::Unclear, Some(UnclearReason::BatchesDisagree))),
            (None, _) => {
                (self.claim, self.look) = (Some(said), FIRST_LOOK);
                None
            }
        };
    }

    /// What a batch says, if anything.
    fn batch_verdict(&self, batch: &[f64]) -> Option<ChangeVerdict> {
        let (claimed, all) = (median_change(batch, CLAIM_LEVEL)?, median_change(batch, SAME_LEVEL)?);
        let bar = CHANGE_BAR * self.within;
        match () {
            () if claimed.low > bar => Some(ChangeVerdict::Slower),
            () if claimed.high < -bar => Some(ChangeVerdict::Faster),
            () if all.low > -self.within && all.high < self.within => Some(ChangeVerdict::Same),
            () => None,
        }
    }

    /// What is known now.
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

/// The median of the ratios as a share, with its interval.
fn median_change(ratios: &[f64], level: f64) -> Option<Interval> {
    let Interval { value, low, high } = median_interval(ratios, level)?;
    let [value, low, high] = [value, low, high].map(f64::exp_m1);
    Some(Interval { value, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ratios: impl IntoIterator<Item = f64>) -> PairedComparison {
        let mut comparison = PairedComparison::new(SAME_WITHIN);
        ratios.into_iter().for_each(|ratio| comparison.add_pair(2.0, 2.0 * ratio));
        comparison
    }

    #[test]
    fn a_change_is_said_by_two_batches_and_its_size_by_the_second() {
        let claimed = of([1.05; 12]);
        assert!(!claimed.is_decided());
        let outcome = claimed.outcome();
        assert_eq!(
            (outcome.verdict, outcome.why),
            (ChangeVerdict::Unclear, Some(UnclearReason::NotConfirmed)),
            "one batch is not enough"
        );
        let slower = of([1.05; 12].into_iter().chain([1.02; 12])).outcome();
        assert_eq!((slower.verdict, slower.why, slower.pairs), (ChangeVerdict::Slower, None, [12, 12]));
        assert!((slower.change.unwrap().value - 0.02).abs() < 1e-12, "{slower:?}");
        assert_eq!(of([0.98; 24]).outcome().verdict, ChangeVerdict::Faster);
        assert_eq!(of([1.001; 12]).outcome().verdict, ChangeVerdict::Same);
    }

    #[test]
    fn what_the_second_batch_does_not_say_is_not_said() {
        let against = of([1.05; 12].into_iter().chain([0.95; 12])).outcome();
        assert_eq!((against.verdict, against.why), (ChangeVerdict::Unclear, Some(UnclearReason::BatchesDisagree)));
        assert_eq!(of([1.05; 12].into_iter().chain([1.0; 12])).outcome().verdict, ChangeVerdict::Same);
    }

    #[test]
    fn a_change_below_the_bar_is_the_same_and_around_what_counts_as_the_same_it_is_unclear() {
        // 0.3 % is above a quarter of 1 %, and 0.2 % below.
        assert_eq!(of([1.003; 24]).outcome().verdict, ChangeVerdict::Slower);
        assert_eq!(of([1.002; 24]).outcome().verdict, ChangeVerdict::Same);
        let wide = of((0..200).map(|number| if number % 2 == 0 { 0.9 } else { 1.1 })).outcome();
        assert_eq!((wide.verdict, wide.why), (ChangeVerdict::Unclear, Some(UnclearReason::TooNoisy)));
    }

    #[test]
    fn few_pairs_and_no_numbers_say_nothing() {
        let few = of([1.5; 5]).outcome();
        assert_eq!((few.why, few.change), (Some(UnclearReason::TooFew), None));
        let mut none = PairedComparison::new(SAME_WITHIN);
        for (old, new) in [(0.0, 1.0), (1.0, 0.0), (f64::NAN, 1.0), (-1.0, 1.0)] {
            none.add_pair(old, new);
        }
        assert_eq!(none.outcome().pairs, [0, 0]);
    }
}
