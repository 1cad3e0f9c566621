//! Core cycles of many executions, each number to one part in a thousand.

use std::vec;
use std::vec::Vec;

/// Units per core cycle.
const UNITS: f64 = 16.0;
/// Negative core cycles that are kept apart: more may be subtracted than was read.
const BELOW: f64 = 64.0;
/// Buckets per octave. Below this number of units each has its own bucket.
const BUCKETS: usize = 1 << BITS;
const BITS: u32 = 11;

/// The distribution of core cycles over executions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram {
    octaves: Vec<Vec<u64>>,
    /// Number of executions.
    pub count: u64,
    /// Sum of their core cycles.
    pub sum: f64,
    /// Most core cycles of one execution.
    pub most: f64,
}

/// Figures of the executions up to a limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Below {
    /// Number of executions.
    pub count: u64,
    /// Mean of their core cycles.
    pub mean: f64,
    /// Standard deviation of their core cycles.
    pub deviation: f64,
}

impl Histogram {
    /// Adds one execution.
    pub(crate) fn add(&mut self, cycles: f64) {
        // The cast turns negative numbers and NaN into zero.
        let units = ((cycles + BELOW) * UNITS) as u64;
        let octave = (u64::BITS - BITS).saturating_sub(units.leading_zeros());
        let place = (units >> octave) as usize;
        while self.octaves.len() <= octave as usize {
            self.octaves.push(vec![0; BUCKETS]);
        }
        if let Some(bucket) = self.octaves.get_mut(octave as usize).and_then(|buckets| buckets.get_mut(place)) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum += cycles;
        self.most = if self.count == 1 { cycles } else { self.most.max(cycles) };
    }

    /// The core cycles of each bucket in ascending order, and its number of executions.
    fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        self.octaves.iter().enumerate().flat_map(|(octave, buckets)| {
            let width = (1u64 << octave) as f64;
            let middle = move |place: usize| (place as f64 + 0.5) * width / UNITS - BELOW;
            let number = buckets.iter().enumerate().filter(|(_, number)| **number > 0);
            number.map(move |(place, number)| (middle(place), *number))
        })
    }

    /// The core cycles that this share of all executions does not exceed; `None` without
    /// executions.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        let rank = ((share * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        self.buckets().find_map(|(cycles, number)| {
            seen += number;
            (seen >= rank).then_some(cycles)
        })
    }

    /// Figures of the executions up to a limit.
    pub(crate) fn below(&self, limit: f64) -> Below {
        let kept = || self.buckets().filter(|(cycles, _)| *cycles <= limit);
        let count: u64 = kept().map(|(_, number)| number).sum();
        let number = count.max(1) as f64;
        let mean = kept().map(|(cycles, number)| cycles * number as f64).sum::<f64>() / number;
        let square = |(cycles, number): (f64, u64)| (cycles - mean).powi(2) * number as f64;
        Below { count, mean, deviation: (kept().map(square).sum::<f64>() / number).sqrt() }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn histogram_of(all: &[f64]) -> Histogram {
        let mut histogram = Histogram::default();
        all.iter().for_each(|cycles| histogram.add(*cycles));
        histogram
    }

    #[test]
    fn numbers_are_kept_to_a_part_in_a_thousand() {
        for cycles in [-20.0, 0.0, 0.5, 37.25, 150.0, 9_999.0, 1e6, 3.3e9, 1e13] {
            let kept = histogram_of(&[cycles]).quantile(0.5).unwrap();
            assert!((kept - cycles).abs() <= 0.07 + 0.001 * (cycles + BELOW), "{cycles}: {kept}");
        }
        let odd = histogram_of(&[f64::NAN, f64::NEG_INFINITY, -1e9]);
        assert_eq!((odd.count, odd.quantile(1.0).unwrap() < -60.0), (3, true));
    }

    #[test]
    fn quantiles_are_those_of_a_sorted_list() {
        let all: Vec<f64> = (0..1000).map(|number| f64::from(number * 7919 % 1000)).collect();
        let histogram = histogram_of(&all);
        let mut sorted = all.clone();
        sorted.sort_by(f64::total_cmp);
        for share in [0.001, 0.05, 0.5, 0.95, 1.0] {
            let expected = sorted[(share * 1000.0) as usize - 1];
            let found = histogram.quantile(share).unwrap();
            assert!((found - expected).abs() < 1.0, "{share}: {found} for {expected}");
        }
        assert_eq!((histogram.count, histogram.sum, histogram.most), (1000, 499_500.0, 999.0));
        assert_eq!(histogram_of(&[]).quantile(0.5), None);
    }

    #[test]
    fn executions_below_a_limit_have_a_mean_and_a_deviation() {
        let below = histogram_of(&[10.0, 12.0, 14.0, 1000.0]).below(20.0);
        assert_eq!(below.count, 3);
        assert!((below.mean - 12.0).abs() < 0.1 && (below.deviation - 1.633).abs() < 0.05, "{below:?}");
    }
}
