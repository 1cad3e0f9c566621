//! Whether the means of neighbouring lengths are distinguished.
//!
//! Each pass over the lengths gives each difference of two neighbours once, at another time and in another order, so
//! the spread of a difference over the passes is its error, whatever the error comes from. A few passes tell that
//! badly for one difference, well for a stretch of them.

use super::confidence::CONFIDENCE;
use cyclescope_core::statistics::{mean, normal_quantile};
use serde::Serialize;

/// Differences to each side whose spreads over the passes are pooled: with two passes 33 degrees of freedom, from
/// where a normal quantile serves, and still few enough to follow an error that grows with the length.
const POOLING_WINDOW: usize = 16;

/// The share of differences that must be distinguished before "it resolves one" is said. With an error that leaves a
/// test the usual power of 80 % (J. Cohen, "Statistical Power Analysis for the Behavioral Sciences", 1988, section
/// 2.4) this share is, where each takes the same.
const RESOLVED_SHARE: f64 = 0.8;

/// The differences between the means of neighbouring lengths, in core cycles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AdjacentLengths {
    /// How many differences there are.
    pub differences: usize,
    /// Those above zero.
    pub positive: usize,
    /// Those from which one instruction (or iteration) is distinguished from none: what the difference has above the
    /// cost of all but one of those between the two lengths is above zero, at a confidence of 0.95.
    pub told_apart: usize,
    /// The standard error of a difference, from its spread over the passes: root mean square over all.
    pub error: f64,
    /// The least difference that these means tell apart at a confidence of 0.95.
    pub margin: f64,
    /// The standard deviation of the differences around those of a straight line. Above `error` where the core itself
    /// takes more cycles for some lengths than for others.
    pub scatter: f64,
    /// Whether these means resolve one instruction (or iteration): four of five differences are distinguished. Not so
    /// where the error is too large, nor where one more often takes no longer, since it hides.
    pub resolved: bool,
}

/// A difference of two neighbours in each pass.
#[derive(Debug, Clone)]
struct LengthDifference {
    /// By how much the length grows.
    gap: f64,
    /// Core cycles, over the passes.
    value: f64,
    /// The sum of squares around that, and one less than the number of passes.
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

/// Judges the means of each length in each pass, in core cycles, against a slope in core cycles; none of fewer than
/// two passes or lengths.
pub(super) fn compare_adjacent_lengths(
    lengths: &[u32],
    passes: &[Vec<Option<f64>>],
    slope: f64,
) -> Option<AdjacentLengths> {
    let difference = |index: usize| {
        let of = |pass: &Vec<Option<f64>>| Some(pass[index + 1]? - pass[index]?);
        let values: Vec<f64> = passes.iter().filter_map(of).collect();
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
    fn differences_larger_than_their_spread_are_told_apart() {
        let lengths: Vec<u32> = (0..100).collect();
        let stairs = |size: f64, noise: f64| {
            // Two passes that differ by the same number everywhere, and by ± noise.
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
    fn a_difference_of_many_instructions_tells_of_one_by_its_error() {
        let lengths = [0, 10, 20, 30];
        let pass = |noise: f64| vec![Some(0.0), Some(10.0 + noise), Some(20.0), Some(30.0 + noise)];
        let sharp = compare_adjacent_lengths(&lengths, &[pass(0.1), pass(-0.1)], 1.0).unwrap();
        assert_eq!((sharp.told_apart, sharp.resolved), (3, true), "{sharp:?}");
        // Ten instructions would be distinguished, one is not.
        let blunt = compare_adjacent_lengths(&lengths, &[pass(1.0), pass(-1.0)], 1.0).unwrap();
        assert_eq!((blunt.positive, blunt.told_apart, blunt.resolved), (3, 0, false), "{blunt:?}");
    }

    #[test]
    fn what_was_read_once_has_no_error() {
        assert_eq!(compare_adjacent_lengths(&[0, 1], &[vec![Some(1.0), Some(2.0)]], 1.0), None);
        let holed = [vec![Some(1.0), None, Some(3.0)], vec![Some(1.0), Some(2.0), Some(3.0)]];
        assert_eq!(compare_adjacent_lengths(&[0, 1, 2], &holed, 1.0), None);
    }
}
