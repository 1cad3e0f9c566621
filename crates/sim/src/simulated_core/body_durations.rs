//! The duration of a body for any number of iterations.
//!
//! Some iterations are run. Once their durations repeat with a short period, the rest follows from
//! it. The result is wrong by less than one per cent if the rate changes after hundreds of
//! iterations (one in forty random bodies).

use super::body::{DecodedBody, SimulatedForms};
use super::pipeline::Pipeline;
use cyclescope_code::program::Program;

/// Number of durations that have to repeat. Ports and issue give rates with a denominator of up to
/// eight. Such a rate has at most seven equal durations in a row, unless all are equal.
const COMPARED_DURATIONS: usize = 8;
/// The longest detected period.
const LONGEST_PERIOD: usize = 8;
/// Smallest number of periods in a repetition.
const MIN_PERIODS: usize = 2;
/// Windows of µops to run before any period counts: the first one fills the window.
const MIN_WINDOWS: u64 = 2;
/// µops after which the mean of the later half of all iterations has to suffice.
const MAX_UOPS: u64 = 8192;
const MIN_ITERATIONS: usize = 32;

/// A body's durations.
#[derive(Debug, Clone)]
pub(super) struct BodyDurations {
    /// When each number of iterations is done, starting with zero.
    done: Vec<u32>,
    /// Core cycles of the further iterations, repeated periodically.
    further: Vec<f64>,
}

impl BodyDurations {
    pub(super) fn simulate_program(
        program: &Program,
        forms: &mut SimulatedForms,
        pipeline: &mut Pipeline,
    ) -> BodyDurations {
        let body = DecodedBody::decode_program(program, forms);
        pipeline.start_body(&body, forms);
        let mut done = vec![0];
        if !program.is_looped() {
            done.push(pipeline.run_iteration(&body, forms));
            return BodyDurations { done, further: vec![0.0] };
        }
        let first = pipeline.count;
        let further = loop {
            done.push(pipeline.run_iteration(&body, forms));
            let uops = pipeline.count - first;
            let settled = uops >= MIN_WINDOWS * u64::from(forms.model.window);
            if let Some(period) = settled.then(|| find_period(&done)).flatten() {
                let last = done[done.len() - period - 1..].windows(2);
                break last.map(|pair| f64::from(pair[1] - pair[0])).collect();
            }
            if uops >= MAX_UOPS && done.len() > MIN_ITERATIONS {
                let (middle, last) = (done.len() / 2, done.len() - 1);
                break vec![f64::from(done[last] - done[middle]) / (last - middle) as f64];
            }
        };
        BodyDurations { done, further }
    }

    /// Core cycles of this number of iterations.
    pub(super) fn iteration_cycles(&self, program: &Program, loop_count: u64) -> f64 {
        let iterations = if program.is_looped() { loop_count as usize } else { 1 };
        if let Some(done) = self.done.get(iterations) {
            return f64::from(*done);
        }
        let known = self.done.len() - 1;
        let (rounds, rest) = ((iterations - known) / self.further.len(), (iterations - known) % self.further.len());
        let round: f64 = self.further.iter().sum();
        f64::from(self.done[known]) + rounds as f64 * round + self.further[..rest].iter().sum::<f64>()
    }
}

/// The shortest period of the latest durations.
fn find_period(done: &[u32]) -> Option<usize> {
    let durations: Vec<u32> = done.windows(2).map(|pair| pair[1] - pair[0]).collect();
    (1..=LONGEST_PERIOD).find(|period| {
        let compared = COMPARED_DURATIONS.max(MIN_PERIODS * period);
        let Some(first) = durations.len().checked_sub(compared + period) else { return false };
        let later = &durations[first + period..];
        later.iter().zip(&durations[first..]).all(|(later, earlier)| later == earlier)
    })
}
