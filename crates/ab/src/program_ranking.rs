//! Ranks several programs that run in the same rounds: a comparison of each pair.
//!
//! Many comparisons raise a false alarm more often than one. Holm's method bounds the chance that
//! any of them does. It is valid for dependent comparisons, as those with a common program are, and
//! finds more than Bonferroni's. The error that a look allows is divided by the number of pairs in
//! which no difference is found yet. So a ranking of equal programs has a false alarm about as
//! rarely as a single comparison.
//!
//! S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
//! Statistics 6 (1979). With repeated looks: J. Bartroff and J. Song, "Sequential tests of multiple
//! hypotheses controlling type I and II familywise error rates", Journal of Statistical Planning
//! and Inference 153 (2014).

use super::paired_comparison::{ChangeVerdict, ComparisonOutcome, PairedComparison};

/// A ranking in progress.
#[derive(Debug, Clone)]
pub struct ProgramRanking {
    /// Whether each program had a time in any round.
    present: Vec<bool>,
    /// Numbers of the programs, the smaller one first, and their comparison.
    pairs: Vec<([usize; 2], PairedComparison)>,
}

/// The outcomes of all pairs of programs that had times.
#[derive(Debug, Clone, PartialEq)]
pub struct RankingOutcome {
    present: Vec<bool>,
    pairs: Vec<([usize; 2], ComparisonOutcome)>,
}

impl ProgramRanking {
    /// Begins a ranking. A difference by less than the share `within` counts as none.
    pub fn new(programs: usize, within: f64) -> ProgramRanking {
        let pairs = (0..programs).flat_map(|old| (old + 1..programs).map(move |new| [old, new]));
        let pairs = pairs.map(|pair| (pair, PairedComparison::new(within))).collect();
        ProgramRanking { present: vec![false; programs], pairs }
    }

    /// Adds the times of a round, one of each program, in any common unit. A program without a time
    /// is left out.
    pub fn add_round(&mut self, times: &[Option<f64>]) {
        self.present.iter_mut().zip(times).for_each(|(present, time)| *present |= time.is_some());
        let open = self.present_pairs().filter(|(_, comparison)| !comparison.has_found_difference()).count();
        for ([old, new], comparison) in &mut self.pairs {
            if let (Some(old), Some(new)) = (times[*old], times[*new]) {
                comparison.add_pair_of_several(old, new, open);
            }
        }
    }

    /// The pairs of programs that both had a time in some round; all if none had one yet.
    fn present_pairs(&self) -> impl Iterator<Item = &([usize; 2], PairedComparison)> {
        let none = !self.present.contains(&true);
        self.pairs.iter().filter(move |([old, new], _)| none || self.present[*old] && self.present[*new])
    }

    /// Number of pairs of programs that both had a time; of all before the first round.
    pub fn pair_count(&self) -> usize {
        self.present_pairs().count()
    }

    /// Number of pairs that further rounds may decide.
    pub fn open_pairs(&self) -> usize {
        self.present_pairs().filter(|(_, comparison)| !comparison.is_decided()).count()
    }

    /// Whether each open pair has been evaluated once, so that there is something to report.
    pub fn has_begun(&self) -> bool {
        self.present_pairs().all(|(_, comparison)| comparison.is_decided() || comparison.has_begun())
    }

    /// The outcome so far. `judge` may change that of each pair.
    pub fn outcome(&self, judge: impl Fn([usize; 2], ComparisonOutcome) -> ComparisonOutcome) -> RankingOutcome {
        let pairs = self.present_pairs().map(|(pair, comparison)| (*pair, judge(*pair, comparison.outcome())));
        RankingOutcome { present: self.present.clone(), pairs: pairs.collect() }
    }
}

impl RankingOutcome {
    /// How each program but the first compares with the first. If others had times, a program is
    /// left out that had none, as the first one.
    pub fn against_first(&self) -> impl Iterator<Item = (usize, ComparisonOutcome)> {
        let any = self.present.contains(&true);
        let shown = move |new: &usize| !any || self.present[0] || self.present[*new];
        (1..self.present.len()).filter(shown).filter_map(|new| {
            let compared = self.pairs.iter().find(|(pair, _)| *pair == [0, new]).map(|(_, outcome)| *outcome);
            let outcome = compared.or_else(|| ComparisonOutcome::of_presence(self.present[0], self.present[new]));
            outcome.map(|outcome| (new, outcome))
        })
    }

    /// The rank of each program, from 1: one more than the number of programs that are found to be
    /// faster. Programs between which no difference is found may share a rank. `None` for a program
    /// without times.
    pub fn ranks(&self) -> Vec<Option<usize>> {
        let mut ranks: Vec<Option<usize>> = self.present.iter().map(|present| present.then_some(1)).collect();
        for ([old, new], outcome) in &self.pairs {
            let slower = match outcome.verdict {
                ChangeVerdict::Slower => *new,
                ChangeVerdict::Faster => *old,
                _ => continue,
            };
            ranks[slower] = ranks[slower].map(|rank| rank + 1);
        }
        ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SAME_WITHIN;

    /// Ranks programs that always take these times.
    fn rank_times(times: &[f64], rounds: usize) -> RankingOutcome {
        let mut ranking = ProgramRanking::new(times.len(), SAME_WITHIN);
        let round: Vec<Option<f64>> = times.iter().copied().map(Some).collect();
        (0..rounds).for_each(|_| ranking.add_round(&round));
        ranking.outcome(|_, outcome| outcome)
    }

    #[test]
    fn programs_are_ranked_by_pairs() {
        let found = rank_times(&[1.02, 1.0, 1.04, 1.0005, 1.02], 40);
        assert_eq!(found.ranks(), [3, 1, 5, 1, 3].map(Some));
        let verdicts: Vec<ChangeVerdict> = found.against_first().map(|(_, outcome)| outcome.verdict).collect();
        use ChangeVerdict::*;
        assert_eq!(verdicts, [Faster, Slower, Faster, Same]);
    }

    #[test]
    fn more_pairs_need_more_certainty() {
        // A median above all twelve values is 2 in 2^12 by chance: below 0.5 %, and a tenth of it
        // too, but not a twenty-first part.
        for (programs, rounds) in [(2, 12), (5, 12), (7, 15)] {
            let mut times = vec![1.0; programs];
            times[1] = 1.05;
            let found = rank_times(&times, 100);
            let (_, slower) = found.against_first().next().expect("there is a second program");
            assert_eq!((slower.verdict, slower.pairs[0]), (ChangeVerdict::Slower, rounds), "{programs}");
        }
    }

    #[test]
    fn found_differences_make_room_for_others() {
        // Six of the seven programs differ from all others by much. Their 20 differences leave one
        // pair, which needs the certainty of one comparison.
        let mut ranking = ProgramRanking::new(7, SAME_WITHIN);
        let round = |other: Option<f64>| [Some(1.0), other, Some(2.0), Some(3.0), Some(4.0), Some(5.0), Some(6.0)];
        (0..30).for_each(|_| ranking.add_round(&round(None)));
        let late = |ranking: &ProgramRanking| {
            ranking.outcome(|_, outcome| outcome).against_first().next().map(|(_, outcome)| outcome)
        };
        assert!(late(&ranking).is_some_and(|outcome| outcome.verdict == ChangeVerdict::OnlyOld), "{ranking:?}");
        // 15 of the 21 pairs are decided; each of the other six is tested as one of six.
        (0..24).for_each(|_| ranking.add_round(&round(Some(1.05))));
        let found = late(&ranking).expect("there is a second program");
        assert_eq!((found.verdict, found.pairs), (ChangeVerdict::Slower, [12, 12]));
    }

    #[test]
    fn a_round_without_a_program_counts_for_the_others() {
        let mut ranking = ProgramRanking::new(3, SAME_WITHIN);
        (0..24).for_each(|_| ranking.add_round(&[Some(1.0), None, Some(1.1)]));
        assert_eq!((ranking.pair_count(), ranking.open_pairs(), ranking.has_begun()), (1, 0, true));
        assert_eq!(ranking.outcome(|_, outcome| outcome).ranks(), [Some(1), None, Some(2)]);
        ranking.add_round(&[Some(1.0), Some(1.0), None]);
        assert_eq!((ranking.pair_count(), ranking.open_pairs(), ranking.has_begun()), (3, 2, false));
    }

    #[test]
    fn programs_without_times_are_named() {
        let verdicts = |round: &[Option<f64>]| -> Vec<(usize, ChangeVerdict)> {
            let mut ranking = ProgramRanking::new(round.len(), SAME_WITHIN);
            (0..24).for_each(|_| ranking.add_round(round));
            let found = ranking.outcome(|_, outcome| outcome);
            found.against_first().map(|(program, outcome)| (program, outcome.verdict)).collect()
        };
        use ChangeVerdict::*;
        assert_eq!(verdicts(&[Some(1.0), None]), [(1, OnlyOld)]);
        assert_eq!(verdicts(&[None, Some(1.0)]), [(1, OnlyNew)]);
        assert_eq!(verdicts(&[None, None]), [(1, Unclear)]);
        assert_eq!(verdicts(&[None, Some(1.0), None]), [(1, OnlyNew)]);
        assert_eq!(verdicts(&[Some(1.0), None, Some(1.0)]), [(1, OnlyOld), (2, Same)]);
    }
}
