//! Raw readings ordered by layout, round and call of the round.

use cyclescope_exec::Sample;

/// The durations of one layout in raw clock units: a row for each round, a column for each call.
///
/// Columns have a fixed order, whatever the order in which the layout ran the calls.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutSamples {
    columns: usize,
    durations: Vec<f64>,
}

/// Duration of a call in raw units. If the call ends before it starts, because other threads
/// interrupted it or a migration reset the counter, it is infinite, so that every filter drops it.
pub fn raw_duration(sample: &Sample) -> f64 {
    sample.end.checked_sub(sample.start).map_or(f64::INFINITY, |raw| raw as f64)
}

impl LayoutSamples {
    /// Orders one layout's readings; `order` gives the column of each reading of a round. For
    /// durations see [`raw_duration`].
    pub fn new(samples: &[Sample], order: &[usize]) -> LayoutSamples {
        let mut durations = vec![0.0; samples.len()];
        for (row, round) in durations.chunks_exact_mut(order.len()).zip(samples.chunks_exact(order.len())) {
            for (column, sample) in order.iter().zip(round) {
                row[*column] = raw_duration(sample);
            }
        }
        LayoutSamples { columns: order.len(), durations }
    }

    /// Appends the rounds of other samples of the same calls.
    pub(crate) fn append(&mut self, mut other: LayoutSamples) {
        assert_eq!(self.columns, other.columns, "the calls are the same");
        self.durations.append(&mut other.durations);
    }

    /// The rounds, each a slice of the durations of its calls.
    pub fn rounds(&self) -> std::slice::ChunksExact<'_, f64> {
        self.durations.chunks_exact(self.columns)
    }

    /// The durations of one call over all rounds.
    pub fn column(&self, call: usize) -> impl Iterator<Item = f64> + '_ {
        self.rounds().map(move |round| round[call])
    }

    /// Rounds with a call that was interrupted, or has no duration for another reason.
    pub(crate) fn interrupted_rounds(&self) -> usize {
        self.rounds().filter(|round| round.iter().any(|duration| duration.is_infinite())).count()
    }

    /// The mean of each call over all rounds.
    pub(crate) fn mean_round(&self) -> Vec<f64> {
        let rounds = self.rounds().len() as f64;
        (0..self.columns).map(|call| self.column(call).sum::<f64>() / rounds).collect()
    }

    /// Calls in a round.
    pub fn columns(&self) -> usize {
        self.columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_independent_of_the_order_of_calls() {
        let samples: Vec<_> = (0..6).map(|n| Sample { start: 100, end: 100 + n }).collect();
        let layout = LayoutSamples::new(&samples, &[2, 0, 1]);
        assert_eq!(layout.rounds().collect::<Vec<_>>(), [[1.0, 2.0, 0.0], [4.0, 5.0, 3.0]]);
        assert_eq!(layout.column(2).collect::<Vec<_>>(), [0.0, 3.0]);
    }

    #[test]
    fn appended_rounds_come_last() {
        let one = |end| LayoutSamples::new(&[Sample { start: 0, end }], &[0]);
        let mut samples = one(1);
        samples.append(one(2));
        assert_eq!(samples.column(0).collect::<Vec<_>>(), [1.0, 2.0]);
    }

    #[test]
    fn a_reading_that_runs_backwards_is_infinite() {
        let layout = LayoutSamples::new(&[Sample { start: 9, end: 3 }], &[0]);
        assert_eq!(layout.column(0).next(), Some(f64::INFINITY));
        assert_eq!(layout.interrupted_rounds(), 1);
    }
}
