//! Whether the means of adjacent lengths are distinguishable.
//!
//! Each pass over the lengths gives each difference of adjacent lengths once, at a new time and in
//! a new order. The spread of a difference over the passes is therefore its error, whatever the
//! cause. A few passes determine that error poorly for one difference, but well for a range of
//! them.

use super::confidence::CONFIDENCE;
use cyclescope_core::statistics::{mean, normal_quantile};
use serde::Serialize;

/// Differences on each side whose spreads over the passes are pooled. With two passes this gives 33
/// degrees of freedom, enough for a normal quantile. It is still narrow enough to follow an error
/// that grows with the length.
const POOLING_WINDOW: usize = 16;

/// Share of differences that must be distinguishable for a positive verdict. It is the usual power
/// of a test, 80 % (J. Cohen, "Statistical Power Analysis for the Behavioral Sciences", 1988,
/// section 2.4). With that power, this share is distinguished if each costs the same.
const RESOLVED_SHARE: f64 = 0.8;

/// The differences between the means of adjacent lengths, in core cycles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AdjacentLengths {
    /// Number of differences.
    pub differences: usize,
    /// Number of differences above zero.
    pub positive: usize,
    /// Number of differences that distinguish one instruction (or iteration) from none. The cost of
    /// all but one of the instructions between the two lengths is subtracted; the remainder must
    /// exceed zero at a confidence of 0.95.
    pub told_apart: usize,
    /// Standard error of a difference, from its spread over the passes, as a root mean square over
    /// all differences.
    pub error: f64,
    /// Smallest difference that these means distinguish at a confidence of 0.95.
    pub margin: f64,
    /// Standard deviation of the differences from those of a straight line. Exceeds `error` if the
    /// core itself takes more cycles at some lengths.
    pub scatter: f64,
    /// Whether these means resolve one instruction (or iteration): four of five differences are
    /// distinguishable. False if the error is too large, or if one more often adds no time because
    /// it is hidden.
    pub resolved: bool,
}

/// The difference of two adjacent lengths in each pass.
#[derive(Debug, Clone)]
struct LengthDifference {
    /// Difference of the lengths.
    gap: f64,
    /// Mean over the passes, in core cycles.
    value: f64,
    /// Sum of squares around the mean, and the number of passes minus one.
    squares: (f64, f64),
}

impl LengthDifference {
    fn new(gap: f64, passes: &[f64]) -> Option<LengthDifference> {
        if passes.len() < 2 {
            return None;
        }
        let value = mean(passes);
        let squares = passes.iter().map(|pass| (pass - value).powi(2)).sum();
        Some(LengthDifference { gap, value, squares: (squares, passes.len() as f64 - 1.0) })
    }
}

/// Compares the means of each length in each pass with a slope. All are in core cycles. `None` for
/// fewer than two passes or lengths.
pub(super) fn compare_adjacent_lengths(
    lengths: &[u32],
    passes: &[Vec<Option<f64>>],
    slope: f64,
) -> Option<AdjacentLengths> {
    let difference = |index: usize| {
        let pass_difference = |pass: &Vec<Option<f64>>| Some(pass[index + 1]? - pass[index]?);
        let values: Vec<f64> = passes.iter().filter_map(pass_difference).collect();
        LengthDifference::new(f64::from(lengths[index + 1] - lengths[index]), &values)
    };
    let differences: Vec<LengthDifference> = (0..lengths.len().saturating_sub(1)).filter_map(difference).collect();
    if differences.is_empty() {
        return None;
    }
    let z = normal_quantile(0.5 + CONFIDENCE / 2.0);
    let errors = standard_errors(&differences);
    let told_apart = |(difference, error): &(&LengthDifference, &f64)| {
        difference.value - (difference.gap - 1.0) * slope > z * **error
    };
    let told_apart = differences.iter().zip(&errors).filter(told_apart).count();
    let off_line: Vec<f64> = differences.iter().map(|difference| difference.value - difference.gap * slope).collect();
    let error = root_mean_square(&errors);
    Some(AdjacentLengths {
        differences: differences.len(),
        positive: differences.iter().filter(|difference| difference.value > 0.0).count(),
        told_apart,
        error,
        margin: z * error,
        scatter: root_mean_square(&off_line),
        resolved: told_apart as f64 >= RESOLVED_SHARE * differences.len() as f64,
    })
}

/// The standard error of each difference.
fn standard_errors(differences: &[LengthDifference]) -> Vec<f64> {
    let error = |(index, difference): (usize, &LengthDifference)| {
        let window = index.saturating_sub(POOLING_WINDOW)..differences.len().min(index + POOLING_WINDOW + 1);
        let add = |sum: (f64, f64), part: &LengthDifference| (sum.0 + part.squares.0, sum.1 + part.squares.1);
        let (squares, freedom) = differences[window].iter().fold((0.0, 0.0), add);
        (squares / freedom / (difference.squares.1 + 1.0)).sqrt()
    };
    differences.iter().enumerate().map(error).collect()
}

fn root_mean_square(values: &[f64]) -> f64 {
    (values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_larger_than_their_spread_are_distinguished() {
        let lengths: Vec<u32> = (0..100).collect();
        let stairs = |size: f64, noise: f64| {
            // Two passes that differ by a constant and by ± noise.
            let pass = |sign: f64| {
                lengths
                    .iter()
                    .map(move |&length| {
                        let wobble = if length % 2 == 0 { noise } else { -noise };
                        Some(size * f64::from(length) + sign * (7.0 + wobble))
                    })
                    .collect()
            };
            compare_adjacent_lengths(&lengths, &[pass(1.0), pass(-1.0)], size).unwrap()
        };
        // Each difference is off by ± 2 · 0.1: sample variance 0.08, error of a mean of two 0.2.
        let clear = stairs(1.0, 0.1);
        assert!((clear.error - 0.2).abs() < 1e-9 && (clear.margin - 0.392).abs() < 1e-3, "{clear:?}");
        assert_eq!((clear.differences, clear.positive, clear.told_apart), (99, 99, 99));
        assert!(clear.resolved && clear.scatter < 1e-9);
        let drowned = stairs(1.0, 1.0);
        assert_eq!((drowned.positive, drowned.told_apart, drowned.resolved), (99, 0, false));
    }

    #[test]
    fn a_difference_of_many_instructions_is_judged_for_one() {
        let lengths = [0, 10, 20, 30];
        let pass = |noise: f64| vec![Some(0.0), Some(10.0 + noise), Some(20.0), Some(30.0 + noise)];
        let sharp = compare_adjacent_lengths(&lengths, &[pass(0.1), pass(-0.1)], 1.0).unwrap();
        assert_eq!((sharp.told_apart, sharp.resolved), (3, true), "{sharp:?}");
        // Ten instructions are distinguishable, one is not.
        let blunt = compare_adjacent_lengths(&lengths, &[pass(1.0), pass(-1.0)], 1.0).unwrap();
        assert_eq!((blunt.positive, blunt.told_apart, blunt.resolved), (3, 0, false), "{blunt:?}");
    }

    #[test]
    fn a_single_pass_has_no_error() {
        assert_eq!(compare_adjacent_lengths(&[0, 1], &[vec![Some(1.0), Some(2.0)]], 1.0), None);
        let holed = [vec![Some(1.0), None, Some(3.0)], vec![Some(1.0), Some(2.0), Some(3.0)]];
        assert_eq!(compare_adjacent_lengths(&[0, 1, 2], &holed, 1.0), None);
    }
}
