//! A contrast: a weighted sum of the columns of a round, which are the durations of its calls.
//!
//! If the weights sum to 0, the overhead of every call (pair of readings, entry, exit) cancels. A
//! slope over copies, the difference of two programs and the bend of a slope are examples.
//! Contrasts are linear: a contrast of means is the mean of contrasts.
//!
//! A cost that sums over snippets, not columns, is a [`CostFormula`](super::CostFormula).

use serde::{Deserialize, Serialize};

/// Columns of a round, each with the weight of its call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Contrast(Vec<(usize, f64)>);

impl Contrast {
    /// The sum of these columns, each multiplied by its weight.
    pub fn new(weights: impl IntoIterator<Item = (usize, f64)>) -> Contrast {
        Contrast(weights.into_iter().collect())
    }

    /// The time per copy, from two calls that differ by `copies` copies.
    pub fn slope_between([fewer, more]: [usize; 2], copies: f64) -> Contrast {
        Contrast::new([(more, 1.0 / copies), (fewer, -1.0 / copies)])
    }

    /// The difference of this contrast and `other`.
    pub fn minus(self, other: &Contrast) -> Contrast {
        self.plus_weighted(-1.0, other)
    }

    /// The sum of this contrast and `weight` times `other`.
    pub fn plus_weighted(mut self, weight: f64, other: &Contrast) -> Contrast {
        self.0.extend(other.0.iter().map(|&(column, own)| (column, weight * own)));
        self
    }

    /// The columns, each with its weight.
    pub fn weights(&self) -> impl Iterator<Item = (usize, f64)> {
        self.0.iter().copied()
    }

    /// Evaluates the contrast for the durations of a round, or for means over rounds, in their
    /// unit.
    pub fn evaluate(&self, durations: &[f64]) -> f64 {
        self.0.iter().map(|(column, weight)| weight * durations[*column]).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_cancels_the_overhead_of_calls() {
        // 30 units per call, 2 per copy; 10, 20 and 40 copies.
        let durations = [50.0, 70.0, 110.0];
        let [short, long] = [Contrast::slope_between([0, 1], 10.0), Contrast::slope_between([1, 2], 20.0)];
        assert_eq!((short.evaluate(&durations), long.evaluate(&durations)), (2.0, 2.0));
        assert_eq!(long.minus(&short).evaluate(&durations), 0.0);
        assert_eq!(Contrast::new([(0, 3.0), (2, -1.0)]).evaluate(&durations), 40.0);
    }
}
