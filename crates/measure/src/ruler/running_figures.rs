//! Usual figures, learnt over the rounds of many programs with few rounds each.

use super::unshared_width::UnsharedWidth;
use cyclescope_core::statistics::median;
use std::collections::VecDeque;

/// Learns the width of an unshared core from rounds. The width is nearly the largest upper quartile
/// of groups of rounds: a sibling may be busy nearly always, and the width of a round may be wrong
/// in both directions.
#[derive(Debug, Clone, Default)]
pub struct WidthLearner {
    recent: Vec<f64>,
    /// Upper quartiles of groups of [`WidthLearner::ROUNDS`] rounds, in ascending order.
    quartiles: Vec<f64>,
}

impl WidthLearner {
    const ROUNDS: usize = 32;
    /// Number of quartiles of which one may be wrong.
    const DOUBTED: usize = 20;

    /// Learns from one round.
    pub fn learn(&mut self, width: f64) {
        self.recent.push(width);
        if self.recent.len() == Self::ROUNDS {
            self.recent.sort_by(f64::total_cmp);
            let quartile = self.recent[Self::ROUNDS * 3 / 4];
            let at = self.quartiles.partition_point(|known| *known < quartile);
            self.quartiles.insert(at, quartile);
            self.recent.clear();
        }
    }

    /// The width of an unshared core; `None` before the first group of rounds is complete.
    pub fn unshared_width(&self) -> Option<UnsharedWidth> {
        let count = self.quartiles.len();
        let best = count.checked_sub(1 + count / Self::DOUBTED).map(|at| self.quartiles[at]);
        best.map(|best| UnsharedWidth::from_widths([(best, 0.0)], None))
    }
}

/// A figure that should be the same in each round: the median of the last `MOST` rounds.
#[derive(Debug, Clone, Default)]
pub struct RunningMedian {
    recent: VecDeque<f64>,
    usual: Option<f64>,
    learnt: usize,
}

impl RunningMedian {
    /// Number of values kept. The median is recomputed after each `EACH` rounds.
    const MOST: usize = 256;
    const EACH: usize = 32;

    /// Learns from one round.
    pub fn learn(&mut self, figure: f64) {
        if self.recent.len() == Self::MOST {
            self.recent.pop_front();
        }
        self.recent.push_back(figure);
        self.learnt += 1;
        if self.learnt.is_multiple_of(Self::EACH) {
            self.usual = Some(median(&mut self.recent.iter().copied().collect::<Vec<f64>>()));
        }
    }

    /// The usual figure; `None` before the first `EACH` rounds.
    pub fn median_figure(&self) -> Option<f64> {
        self.usual
    }

    /// Whether a figure differs from the usual one by at most `reach`; true while there is no usual
    /// figure.
    pub fn is_near(&self, figure: f64, reach: f64) -> bool {
        self.usual.is_none_or(|usual| (figure - usual).abs() <= reach)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_is_rarely_wrong_is_learnt() {
        let mut rest = RunningMedian::default();
        assert!(rest.is_near(-400.0, 12.0), "nothing is known yet");
        (0..RunningMedian::EACH).for_each(|round| rest.learn(if round % 5 == 0 { -300.0 } else { 40.0 }));
        assert!(rest.is_near(45.0, 12.0) && !rest.is_near(3.0, 12.0) && !rest.is_near(80.0, 12.0));
    }

    #[test]
    fn half_the_width_is_detected_despite_other_readings() {
        let mut widths = WidthLearner::default();
        assert_eq!(widths.unshared_width(), None, "nothing is known yet");
        // A sibling that is busy in a quarter of the rounds changes nothing. Neither does a series
        // of far too large widths.
        (0..64).for_each(|round| widths.learn(if round % 4 == 0 { 2.7 } else { 4.0 }));
        (0..WidthLearner::ROUNDS * 2).for_each(|_| widths.learn(40.0));
        (0..WidthLearner::ROUNDS * 40).for_each(|_| widths.learn(4.0));
        let quiet = widths.unshared_width().unwrap();
        assert!(!quiet.is_alone(2.7, 0.02) && quiet.is_alone(3.85, 0.02));
    }
}
