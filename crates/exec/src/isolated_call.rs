//! Counts of events that are read around all rounds of one call, not around each call.

use super::batch::{Batch, Sample};
use super::layout::{Layout, ProgramCall};

/// The batches that run one call of a layout: in untimed rounds, and in those that are counted.
pub(crate) fn isolate_call(batch: &Batch, layout: &Layout, call: ProgramCall) -> [Batch; 2] {
    let layouts = vec![Layout { round: vec![call], ..layout.clone() }];
    let counted = Batch { layouts, events: Vec::new(), warm_up: 0, ..batch.clone() };
    [Batch { warm_up: batch.warm_up, rounds: 1, ..counted.clone() }, counted]
}

/// Divides a count among rounds, as evenly as whole numbers allow.
pub(crate) fn divide_count(before: u64, after: u64, rounds: usize) -> impl Iterator<Item = Sample> {
    let count = u128::from(after.wrapping_sub(before));
    let reading = move |round: usize| before.wrapping_add((count * round as u128 / rounds as u128) as u64);
    (0..rounds).map(move |round| Sample { start: reading(round), end: reading(round + 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_divided_count_is_complete() {
        for (before, count, rounds) in [(5, 17, 4), (u64::MAX - 3, 10, 3), (0, 0, 2), (7, 2, 5)] {
            let samples: Vec<Sample> = divide_count(before, before.wrapping_add(count), rounds).collect();
            let parts: Vec<u64> = samples.iter().map(|sample| sample.end.wrapping_sub(sample.start)).collect();
            assert_eq!((parts.len(), parts.iter().sum::<u64>()), (rounds, count));
            assert!(parts.iter().max().unwrap() - parts.iter().min().unwrap() <= 1, "{parts:?}");
        }
    }
}
