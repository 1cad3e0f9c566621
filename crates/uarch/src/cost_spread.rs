//! How the cost of a step is spread over layouts and rounds, in core cycles and in time.
//!
//! Shared parts of the machine, such as memory, answer at a speed of their own, which varies. The
//! resolution is one round of some hundred steps: single steps are not visible.

use cyclescope_core::statistics::{Interval, quantiles};
use cyclescope_core::unit::{Hertz, Unit};
use cyclescope_measure::result::record::Quantity;
use serde::{Deserialize, Serialize};

/// The quantiles that are reported.
const SHARES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// The cost of a step in some rounds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CostSpread {
    /// Raw units of the timing method at each quantile.
    raw: [f64; SHARES.len()],
    /// Core cycles at each quantile.
    cycles: [f64; SHARES.len()],
    rounds: usize,
}

/// The spread as records contain it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpreadRecord {
    /// The count that was measured.
    pub n: usize,
    /// The time of a step: the median of the rounds, with their quartiles as interval. Refused if
    /// the rate of the timing method is unknown.
    pub time: Quantity,
    /// Number of rounds of all layouts.
    pub rounds: usize,
    /// The quantiles of the rounds.
    pub quantiles: Vec<QuantileRecord>,
}

/// A quantile of the rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuantileRecord {
    /// The share of rounds below it.
    pub share: f64,
    /// Core cycles of a step.
    pub core_cycles: f64,
    /// Nanoseconds of a step.
    pub ns: Option<f64>,
}

impl CostSpread {
    /// From rounds, each with the raw units and the core cycles of a step; `None` without rounds.
    pub(super) fn from_rounds(rounds: &[[f64; 2]]) -> Option<CostSpread> {
        let quantiles = |part: usize| {
            let mut all: Vec<f64> = rounds.iter().map(|round| round[part]).collect();
            quantiles(&mut all, SHARES)
        };
        (!rounds.is_empty()).then(|| CostSpread { raw: quantiles(0), cycles: quantiles(1), rounds: rounds.len() })
    }

    /// The record at a count, if the timing method's raw units come at this rate.
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
        // 1 to 101 core cycles of two raw units each. At 4 GHz of raw units, a core cycle is half a
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
