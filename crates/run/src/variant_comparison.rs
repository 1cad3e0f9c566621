//! Compares and ranks variants measured in the same rounds.
//!
//! Each pair of variants is a comparison. Holm's method bounds the chance that any of them finds a
//! false difference. It is valid for dependent comparisons, as those of one measurement are.

use crate::RunOutcome;
use crate::subject::variant_pairs;
use cyclescope_core::statistics::{Interval, holm_share, reject_by_holm};
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::caveat::{Caveat, CaveatKind};
use cyclescope_measure::result::record::{Quantity, RunRecord};
use cyclescope_measure::result::variant_comparison::{CostRatio, RankedVariant, VariantVerdict};

/// The chance that a comparison of equal variants finds a difference between any of them: about one
/// in a hundred.
const VERDICT_ERROR: f64 = 0.01;
/// Two variants are the same if their difference may be 0 and is certainly below this share of the
/// cost.
const SAME_SHARE: f64 = 0.02;
/// Steps of the bisection for the ratio's interval: more than a float has digits.
const BISECTION_STEPS: usize = 60;

/// Compares and ranks variants. `runs` has the outcomes of all variants, and then those of the
/// difference of each pair; `records` are those of the variants. `names` are empty or name each.
pub(super) fn rank_variants(runs: &[RunOutcome], records: &[RunRecord], names: &[String]) -> Vec<RankedVariant> {
    let (costs, differences) = runs.split_at(records.len());
    let pairs: Vec<[usize; 2]> = variant_pairs(costs.len()).collect();
    let has_cost = |variant: usize| costs[variant].estimate().is_some();
    let difference =
        |pair: usize| differences[pair].estimate().filter(|_| pairs[pair].into_iter().all(has_cost)).map(|it| it.cost);
    let difference_at = |pair: usize, error: f64| {
        difference(pair).and_then(|_| Some(differences[pair].measurement.estimate_at(1.0 - error)?.cost))
    };
    let differ = reject_by_holm(pairs.len(), VERDICT_ERROR, |pair, error| {
        difference_at(pair, error).is_some_and(|difference| !difference.contains(0.0))
    });
    let open = differ.iter().filter(|differ| !**differ).count();
    let verdict = |pair: usize| {
        let found = if differ[pair] { difference(pair) } else { difference_at(pair, holm_share(VERDICT_ERROR, open)) };
        let cost = costs[pairs[pair][0]].cost();
        found.zip(cost).map_or(VariantVerdict::Unclear, |(difference, cost)| {
            judge_difference(differ[pair], &difference, cost.value)
        })
    };
    let verdicts: Vec<VariantVerdict> = (0..pairs.len()).map(verdict).collect();
    let ranked = records.iter().enumerate().map(|(variant, record)| {
        let pair = variant.checked_sub(1);
        let quantity = |difference| Quantity::new(difference, Unit::CoreCycles);
        RankedVariant {
            name: names.get(variant).cloned(),
            snippet: record.snippet.clone(),
            bytes: record.bytes.clone(),
            init: record.init.clone(),
            cost: record.cost,
            difference: pair.map(|pair| difference(pair).map_or(Quantity::refused(Unit::CoreCycles), quantity)),
            ratio: pair.map(|pair| {
                let ratio = |_| estimate_ratio(&costs[0], &costs[variant], record.confidence);
                difference(pair).map_or(CostRatio::REFUSED, ratio)
            }),
            verdict: pair.map(|pair| verdicts[pair]),
            rank: has_cost(variant).then(|| rank_variant(variant, &pairs, &verdicts)),
            counters: Vec::new(),
        }
    });
    ranked.collect()
}

/// One more than the number of variants that are found to be faster than this one.
fn rank_variant(variant: usize, pairs: &[[usize; 2]], verdicts: &[VariantVerdict]) -> usize {
    let behind = |(pair, verdict): &(&[usize; 2], &VariantVerdict)| match verdict {
        VariantVerdict::Slower => pair[1] == variant,
        VariantVerdict::Faster => pair[0] == variant,
        VariantVerdict::Same | VariantVerdict::Unclear => false,
    };
    1 + pairs.iter().zip(verdicts).filter(behind).count()
}

/// The caveats of the other variants that the first lacks.
pub(super) fn further_caveats(first: &[Caveat], others: &[RunOutcome], names: &[String]) -> Vec<Caveat> {
    let mut further: Vec<Caveat> = Vec::new();
    for (index, other) in others.iter().enumerate() {
        let name = match names.get(index + 1) {
            Some(name) => name.clone(),
            None if others.len() == 1 => "the other variant".to_string(),
            None => format!("variant {}", index + 2),
        };
        for caveat in &other.caveats {
            // It refuses a number, so each of its variants has its own reason.
            let is_refusal = caveat.code == CaveatKind::NotSteady;
            if is_refusal || first.iter().chain(&further).all(|known| known.code != caveat.code) {
                further.push(Caveat { code: caveat.code, text: format!("{name}: {}", caveat.text) });
            }
        }
    }
    further
}

fn judge_difference(differ: bool, difference: &Interval, cost: f64) -> VariantVerdict {
    let reach = difference.low.abs().max(difference.high.abs());
    match differ {
        true if difference.value > 0.0 => VariantVerdict::Slower,
        true => VariantVerdict::Faster,
        false if reach <= SAME_SHARE * cost.abs() => VariantVerdict::Same,
        false => VariantVerdict::Unclear,
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
    fn variants_without_a_difference_are_the_same_or_unclear() {
        let around = |differ, value, margin| judge_difference(differ, &Interval::with_margin(value, margin), 100.0);
        assert_eq!(around(true, 3.0, 1.0), VariantVerdict::Slower);
        assert_eq!(around(true, -3.0, 1.0), VariantVerdict::Faster);
        assert_eq!(around(false, 0.5, 1.0), VariantVerdict::Same);
        assert_eq!(around(false, 2.0, 3.0), VariantVerdict::Unclear);
    }

    #[test]
    fn a_rank_counts_the_faster_variants() {
        use VariantVerdict::*;
        let pairs: Vec<[usize; 2]> = variant_pairs(3).collect();
        assert_eq!(pairs, [[0, 1], [0, 2], [1, 2]]);
        let ranks = |verdicts: [VariantVerdict; 3]| [0, 1, 2].map(|variant| rank_variant(variant, &pairs, &verdicts));
        assert_eq!(ranks([Slower, Faster, Faster]), [2, 3, 1]);
        assert_eq!(ranks([Same, Slower, Unclear]), [1, 1, 2]);
    }
}
