//! Usual figures, learnt over the rounds of many programs with few rounds each.

use super::unshared_width::{UnsharedWidth, relative_deviation};
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
    /// Relative standard deviations of the last groups whose quartile is nearly the best.
    deviations: VecDeque<f64>,
    /// What all groups say.
    unshared: Option<UnsharedWidth>,
}

impl WidthLearner {
    const ROUNDS: usize = 32;
    /// Number of quartiles of which one may be wrong.
    const DOUBTED: usize = 20;
    /// Standard deviations of an upper quartile above the median.
    const QUARTILE_DEVIATIONS: f64 = 0.6745;
    /// Groups whose quartile is within this share of the best show how much unshared widths differ.
    const BEST_SHARE: f64 = 0.05;
    /// Number of such groups.
    const DEVIATIONS: usize = 64;

    /// Learns from one round.
    pub fn learn(&mut self, width: f64) {
        self.recent.push(width);
        if self.recent.len() == Self::ROUNDS {
            self.learn_group();
        }
    }

    fn learn_group(&mut self) {
        self.recent.sort_by(f64::total_cmp);
        let quartile = self.recent[Self::ROUNDS * 3 / 4];
        let at = self.quartiles.partition_point(|known| *known < quartile);
        self.quartiles.insert(at, quartile);
        let best = self.quartiles[self.quartiles.len() - 1 - self.quartiles.len() / Self::DOUBTED];
        if quartile >= (1.0 - Self::BEST_SHARE) * best {
            if self.deviations.len() == Self::DEVIATIONS {
                self.deviations.pop_front();
            }
            self.deviations.push_back(relative_deviation(&mut self.recent));
        }
        self.recent.clear();
        let mut deviations: Vec<f64> = self.deviations.iter().copied().collect();
        let deviation = if deviations.is_empty() { 0.0 } else { median(&mut deviations) };
        self.unshared = Some(UnsharedWidth::above(best, Self::QUARTILE_DEVIATIONS, deviation));
    }

    /// The width of an unshared core; `None` before the first group of rounds is complete.
    pub fn unshared_width(&self) -> Option<UnsharedWidth> {
        self.unshared
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

    #[test]
    fn widths_that_differ_by_themselves_are_those_of_an_unshared_core() {
        let mut random = cyclescope_core::random::Random::new(3);
        let mut learn = |deviation: f64| {
            let mut widths = WidthLearner::default();
            for round in 0..WidthLearner::ROUNDS * 100 {
                let shared = if round % 5 == 0 { 0.6 } else { 1.0 };
                widths.learn(shared * 4.1 * (1.0 + deviation * random.normal()));
            }
            widths.unshared_width().unwrap()
        };
        let [exact, wide] = [learn(0.001), learn(0.05)];
        assert!(wide.is_alone(3.65, 0.0) && !wide.is_alone(2.9, 0.0));
        assert!(exact.is_alone(4.05, 0.0) && !exact.is_alone(3.9, 0.0));
    }
}
