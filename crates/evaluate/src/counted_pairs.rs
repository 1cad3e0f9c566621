//! Events of a method's empty pair, in ensembles that are counted instead of timed.
//!
//! They follow the timed ensembles. A count includes the code that calls the pair and the pair's own
//! readings: both belong to each sample.

use super::sampling::PairSampler;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::{Interval, mean, t_interval};
use cyclescope_exec::Executor;
use cyclescope_measure::result::counter_record::CountedEvents;
use cyclescope_measure::{COUNTED_LAYOUTS, EventPlan};

/// Samples in a block, and blocks of a counted ensemble.
const BLOCK: usize = 32;
const BLOCKS: u32 = 32;
/// Confidence level of the intervals.
const CONFIDENCE: f64 = 0.95;

/// The events of a sample.
#[derive(Debug, Clone)]
pub struct CountedPairs {
    /// Over all ensembles.
    pub all: CountedEvents,
    /// In each ensemble: its mean.
    pub ensembles: Vec<CountedEvents>,
}

impl CountedPairs {
    /// Counts the events of a method's pair.
    pub(crate) fn count(
        sampler: &PairSampler,
        executor: &mut dyn Executor,
        events: &EventPlan,
        random: &mut Random,
    ) -> Result<CountedPairs, RunError> {
        let seeds: Vec<u64> = (0..COUNTED_LAYOUTS).map(|_| random.next_bits()).collect();
        let mut counted = events.count(1 + COUNTED_LAYOUTS, &mut |codes| {
            let mut means: Vec<Vec<f64>> = vec![Vec::new(); codes.len()];
            for (number, seed) in seeds.iter().enumerate() {
                let counts = sampler.count_ensemble(executor, (BLOCK, BLOCKS), number, *seed, codes)?;
                means.iter_mut().zip(counts).for_each(|(means, count)| means.push(count));
            }
            let over_all = |means: &Vec<f64>| {
                let mean = || Interval::with_margin(mean(means), f64::INFINITY);
                t_interval(means, CONFIDENCE).unwrap_or_else(mean)
            };
            let all = means.iter().map(over_all).collect();
            let each = |number: usize| means.iter().map(|means| Interval::with_margin(means[number], 0.0)).collect();
            Ok(std::iter::once(all).chain((0..seeds.len()).map(each)).collect())
        })?;
        let all = counted.remove(0);
        Ok(CountedPairs { all, ensembles: counted })
    }

    /// Pairs that can't be counted, for this reason.
    pub(crate) fn lost(events: &EventPlan, why: &str) -> CountedPairs {
        CountedPairs { all: events.lose_counts(why), ensembles: Vec::new() }
    }
}
