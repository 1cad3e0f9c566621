//! How the cost of a step is spread over layouts and rounds, in core cycles and in time.
//!
//! What is far from the core, as memory that others use too, answers in a time of its own, and not
//! always in the same one. A round of some hundred steps is as fine as this is seen: of single
//! steps nothing is known.

use cyclescope_core::statistics::{Interval, quantiles};
use cyclescope_core::unit::{Hertz, Unit};
use cyclescope_measure::result::record::Quantity;
use serde::{Deserialize, Serialize};

/// Shares of the rounds below each quantile.
const SHARES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// The cost of a step in some rounds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CostSpread {
    /// Raw units of the timing method at each share.
    raw: [f64; SHARES.len()],
    /// Core cycles at each share.
    cycles: [f64; SHARES.len()],
    rounds: usize,
}

/// The spread as a record has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpreadRecord {
    /// The count at which it was measured.
    pub n: usize,
    /// The time of a step: the median of the rounds, with their quartiles as the ends. Refused
    /// where the rate of the timing method is not known.
    pub time: Quantity,
    /// The rounds of all layouts.
    pub rounds: usize,
    /// What a share of the rounds is below.
    pub quantiles: Vec<QuantileRecord>,
}

/// What a share of the rounds is below.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuantileRecord {
    /// Share of the rounds below it.
    pub share: f64,
    /// Core cycles of a step.
    pub core_cycles: f64,
    /// Nanoseconds of a step.
    pub ns: Option<f64>,
}

impl CostSpread {
    /// Of rounds, each with the raw units and the core cycles of a step; none without rounds.
    pub(super) fn from_rounds(rounds: &[[f64; 2]]) -> Option<CostSpread> {
        let quantiles = |part: usize| {
            let mut all: Vec<f64> = rounds.iter().map(|round| round[part]).collect();
            quantiles(&mut all, SHARES)
        };
        (!rounds.is_empty()).then(|| CostSpread { raw: quantiles(0), cycles: quantiles(1), rounds: rounds.len() })
    }

    /// At a count, where the timing method's raw units come at this rate.
    pub(super) fn to_record(&self, n: usize, rate: Option<Hertz>) -> SpreadRecord {
        let ns = |raw: f64| rate.map(|rate| raw / rate.0 * 1e9).filter(|ns| ns.is_finite());
        let [_, low, value, high, _] = self.raw.map(ns);
        let time = match (low, value, high) {
            (Some(low), Some(value), Some(high)) => {
                Quantity::new(Interval { value, low, high }, Unit::Nanos).at_least_zero()
            }
            _ => Quantity::refused(Unit::Nanos),
        };
        let quantiles = SHARES.iter().zip(self.raw.iter().zip(&self.cycles));
        let quantiles = quantiles.map(|(share, (raw, cycles))| QuantileRecord {
            share: *share,
            core_cycles: *cycles,
            ns: ns(*raw),
        });
        SpreadRecord { n, time, rounds: self.rounds, quantiles: quantiles.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_in_core_cycles_and_in_time() {
        // 1 to 101 core cycles of two raw units each, at 4 GHz of these: a core cycle is half a
        // nanosecond.
        let rounds: Vec<[f64; 2]> = (1..=101).rev().map(|n| [2.0 * f64::from(n), f64::from(n)]).collect();
        let record = CostSpread::from_rounds(&rounds).unwrap().to_record(7, Some(Hertz(4e9)));
        let shares: Vec<[f64; 3]> = record
            .quantiles
            .iter()
            .map(|quantile| [quantile.share, quantile.core_cycles, quantile.ns.unwrap()])
            .collect();
        let all = [[0.05, 6.0, 3.0], [0.25, 26.0, 13.0], [0.5, 51.0, 25.5], [0.75, 76.0, 38.0], [0.95, 96.0, 48.0]];
        assert_eq!(shares, all);
        assert_eq!((record.time.low, record.time.value, record.time.high), (Some(13.0), Some(25.5), Some(38.0)));
        assert_eq!((record.n, record.rounds), (7, 101));
    }

    #[test]
    fn a_spread_needs_rounds_and_its_time_a_rate() {
        let record = CostSpread::from_rounds(&[[8.0, 4.0]]).unwrap().to_record(1, None);
        assert_eq!((record.time.value, record.quantiles[2].ns), (None, None));
        assert_eq!(record.quantiles[2].core_cycles, 4.0);
        assert_eq!(CostSpread::from_rounds(&[]), None);
    }
}
