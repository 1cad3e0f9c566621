//! Counts of events in a result.

use crate::result::caveat::{Caveat, CaveatKind};
use crate::result::quantity::Quantity;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use cyclescope_events::CounterColumn;
use serde::{Deserialize, Serialize};

/// An event's count per copy, or the ratio of two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterRecord {
    /// The name that the user gave it.
    pub name: String,
    /// The count per copy, or the ratio; without a value if the counter was lost.
    #[serde(flatten)]
    pub quantity: Quantity,
    /// Number of the pass that counted it, from 1; of a ratio the later one.
    pub pass: usize,
    /// Why it has no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// The events that a subject causes.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedEvents {
    /// The columns of the request.
    pub counters: Vec<CounterRecord>,
    /// Number of passes that counted them.
    pub passes: usize,
    /// The count of core cycles, where it is readable.
    pub cycles: Option<Quantity>,
}

/// The count of one event, or why it is lost.
#[derive(Debug, Clone, PartialEq)]
pub struct EventCount {
    /// Its pass, from 1.
    pub pass: usize,
    /// The count per copy.
    pub count: Result<Interval, String>,
}

impl CounterRecord {
    /// A column of a result, from the counts of all events.
    pub fn from_counts(name: &str, column: &CounterColumn, counts: &[EventCount]) -> CounterRecord {
        let (unit, pass, found) = match *column {
            CounterColumn::Event(event) => (Unit::Count, counts[event].pass, counts[event].count.clone()),
            CounterColumn::Ratio(above, below) => {
                let [above, below] = [&counts[above], &counts[below]];
                let ratio = above.count.clone().and_then(|above| divide_intervals(above, below.count.clone()?));
                (Unit::Ratio, above.pass.max(below.pass), ratio)
            }
        };
        let quantity = found.as_ref().map_or(Quantity::refused(unit), |found| Quantity::new(*found, unit));
        CounterRecord { name: name.to_string(), quantity, pass, lost: found.err() }
    }
}

/// The ratio of two positive quantities, as wide as both intervals allow.
fn divide_intervals(above: Interval, below: Interval) -> Result<Interval, String> {
    if below.low <= 0.0 {
        return Err("the divisor may be 0".to_string());
    }
    let ends = [above.low, above.high].map(|end| [end / below.low, end / below.high]).concat();
    let value = above.value / below.value;
    Ok(Interval {
        value,
        low: ends.iter().copied().fold(value, f64::min),
        high: ends.iter().copied().fold(value, f64::max),
    })
}

/// The counter and the ruler disagree if their intervals are further apart than this share of the
/// cost: the tolerance of the ruler's two chains.
const AGREEMENT_SHARE: f64 = 0.01;

/// A caveat if the counter of core cycles and the ruler disagree.
pub fn compare_counted_cycles(counted: &Quantity, cost: &Quantity) -> Option<Caveat> {
    let ends = |quantity: &Quantity| Some([quantity.low?, quantity.value?, quantity.high?]);
    let ([low, value, high], [cost_low, cost, cost_high]) = (ends(counted)?, ends(cost)?);
    let gap = (cost_low - high).max(low - cost_high);
    if gap <= AGREEMENT_SHARE * cost.abs() {
        return None;
    }
    let text = format!(
        "the core-cycles counter counted {value:.3} per copy ({low:.3} to {high:.3}), and the ruler {cost:.3} \
         ({cost_low:.3} to {cost_high:.3})"
    );
    Some(Caveat { code: CaveatKind::RulersDisagree, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_as_wide_as_both_counts_allow() {
        let count = |pass, value, margin| EventCount { pass, count: Ok(Interval::with_margin(value, margin)) };
        let counts = [count(1, 6.0, 0.6), count(2, 2.0, 0.0), count(1, 0.5, 0.5)];
        let ratio = CounterRecord::from_counts("a/b", &CounterColumn::Ratio(0, 1), &counts);
        assert_eq!((ratio.quantity.value, ratio.quantity.unit, ratio.pass), (Some(3.0), Unit::Ratio, 2));
        assert!(
            (ratio.quantity.low.unwrap() - 2.7).abs() < 1e-12 && (ratio.quantity.high.unwrap() - 3.3).abs() < 1e-12
        );
        let refused = CounterRecord::from_counts("a/c", &CounterColumn::Ratio(0, 2), &counts);
        assert!(refused.quantity.value.is_none() && refused.lost.is_some());
    }

    #[test]
    fn a_counter_beside_the_ruler_is_a_caveat() {
        let cycles = |value, margin| Quantity::new(Interval::with_margin(value, margin), Unit::CoreCycles);
        assert_eq!(compare_counted_cycles(&cycles(3.01, 0.02), &cycles(3.0, 0.01)), None);
        assert_eq!(compare_counted_cycles(&cycles(3.04, 0.01), &cycles(3.0, 0.01)), None);
        let caveat = compare_counted_cycles(&cycles(3.1, 0.01), &cycles(3.0, 0.01)).expect("they disagree");
        assert_eq!(caveat.code, CaveatKind::RulersDisagree);
    }
}
