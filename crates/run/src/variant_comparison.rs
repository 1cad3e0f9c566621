//! Compares two variants measured in the same rounds.

use crate::RunOutcome;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use cyclescope_measure::estimate::CostEstimate;
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::result::record::{Quantity, RunRecord};
use cyclescope_measure::result::variant_comparison::{CostRatio, VariantComparison, VariantVerdict};

/// Confidence level of the verdict. About one in a hundred comparisons of a snippet with itself
/// finds a difference.
const VERDICT_CONFIDENCE: f64 = 0.99;
/// Two variants are the same if their difference may be 0 and is certainly below this share of the
/// cost.
const SAME_SHARE: f64 = 0.02;
/// Steps of the bisection for the ratio's interval: more than a float has digits.
const BISECTION_STEPS: usize = 60;

/// Compares the outcomes of the first variant, the other variant and the difference. `record` is
/// that of the other variant.
pub(super) fn compare_variants([one, other, difference]: [&RunOutcome; 3], record: &RunRecord) -> VariantComparison {
    let given = one.estimate().is_some() && other.estimate().is_some();
    let estimate = difference.estimate().filter(|_| given);
    let quantity = |estimate: &CostEstimate| Quantity::new(estimate.cost, Unit::CoreCycles);
    let certain = difference.measurement.estimate_at(VERDICT_CONFIDENCE).filter(|_| estimate.is_some());
    VariantComparison {
        snippet: record.snippet.clone(),
        bytes: record.bytes.clone(),
        cost: record.cost,
        difference: estimate.map_or(Quantity::refused(Unit::CoreCycles), quantity),
        ratio: estimate.map_or(CostRatio::REFUSED, |_| estimate_ratio(one, other, record.confidence)),
        verdict: certain
            .zip(one.cost())
            .map_or(VariantVerdict::Unclear, |(difference, cost)| judge_difference(&difference.cost, cost.value)),
    }
}

/// The caveats of the other variant that the first lacks.
pub(super) fn further_caveats(first: &[Caveat], other: &RunOutcome) -> Vec<Caveat> {
    let new = other.caveats.iter().filter(|caveat| first.iter().all(|known| known.code != caveat.code));
    new.map(|caveat| Caveat { code: caveat.code, text: format!("the other variant: {}", caveat.text) }).collect()
}

fn judge_difference(difference: &Interval, cost: f64) -> VariantVerdict {
    let reach = difference.low.abs().max(difference.high.abs());
    match difference.contains(0.0) {
        false if difference.value > 0.0 => VariantVerdict::Slower,
        false => VariantVerdict::Faster,
        true if reach <= SAME_SHARE * cost.abs() => VariantVerdict::Same,
        true => VariantVerdict::Unclear,
    }
}

/// Estimates the ratio of two costs from the same readings: all r for which the interval of the
/// other cost minus r times the first contains 0 (E. C. Fieller, "Some problems in interval
/// estimation", Journal of the Royal Statistical Society B 16 (1954)).
fn estimate_ratio(one: &RunOutcome, other: &RunOutcome, confidence: f64) -> CostRatio {
    let [Some(base), Some(cost)] = [one.cost(), other.cost()] else { return CostRatio::REFUSED };
    if base.low <= 0.0 || cost.low <= 0.0 {
        return CostRatio::REFUSED;
    }
    let value = cost.value / base.value;
    let contains = |ratio: f64| {
        let left = other.measurement.cost.clone().plus_weighted(-ratio, &one.measurement.cost);
        one.measurement.estimate_of(&left, confidence).is_some_and(|left| left.cost.contains(0.0))
    };
    // `inside` is in the interval. `outside` is not: both costs' own bounds exclude it.
    let end = |outside: f64| {
        let (mut inside, mut outside) = (value, outside);
        for _ in 0..BISECTION_STEPS {
            let middle = (inside + outside) / 2.0;
            if contains(middle) { inside = middle } else { outside = middle }
        }
        inside
    };
    CostRatio { value: Some(value), low: Some(end(0.0)), high: Some(end(10.0 * cost.high / base.low)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_needs_an_interval_that_is_narrow_or_excludes_0() {
        let around = |value, margin| judge_difference(&Interval::with_margin(value, margin), 100.0);
        assert_eq!(around(3.0, 1.0), VariantVerdict::Slower);
        assert_eq!(around(-3.0, 1.0), VariantVerdict::Faster);
        assert_eq!(around(0.5, 1.0), VariantVerdict::Same);
        assert_eq!(around(2.0, 3.0), VariantVerdict::Unclear);
        assert_eq!(around(0.001, 0.0005), VariantVerdict::Slower);
    }
}
