//! The smallest difference that a method resolves: the paper's staircase, and its improvement with
//! more readings.
//!
//! The paper (section 3.3) grows a loop from 0 to 999 iterations and takes the shortest reading of
//! each length. The resolution is the number of "assembly instructions" by which the code must grow
//! until that reading moves. However, its `measured_loop` grows by an iteration per step, not by an
//! instruction. With a clock that counts in steps of several ticks, or a varying core frequency,
//! minima in ticks describe these more than the method.
//!
//! So there are two staircases, the paper's and one of single instructions of one core cycle each.
//! The paper's figures, in raw units and by its program's formulas, are complemented by figures in
//! core cycles. These are means of undisturbed readings, each divided by the ruler of its own
//! round.
//!
//! A mean of many readings resolves less than the clock's step. The second question is the
//! difference that a number of readings resolves. The answer comes from the spread of groups of
//! readings, because the square-root rule ignores drift.
//!
//! Limits: the code has one fixed offset within a page, so alignment cannot confound the result,
//! but its effect is not measured. A core takes a cycle more or less depending on where a body
//! ends. Adjacent lengths then differ by more or less than one cycle even if the method resolves
//! one.

mod adjacent_lengths;
mod confidence;
mod reading_ladder;
mod round_ruler;
mod staircase;
mod staircase_experiment;
mod staircase_points;
#[cfg(test)]
mod tests;

pub use adjacent_lengths::AdjacentLengths;
pub(crate) use confidence::CONFIDENCE;
pub use reading_ladder::{LadderRung, ReadingLadder};
pub use staircase::{Staircase, StaircaseFollower, StaircaseProgress};
pub use staircase_experiment::StaircaseBody;
#[cfg(test)]
pub(crate) use staircase_points::StaircasePoint;
pub use staircase_points::{LengthEnsemble, StaircaseTotals};

use super::TestedClock;
use cyclescope_core::random::Random;
use cyclescope_core::unit::Unit;
use cyclescope_exec::Executor;
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::study::StopReason;
use std::time::Duration;

/// Time for one method. Three fifths go to the staircase of additions, which distinguishes core
/// cycles. The paper's loop and the readings by number get one fifth each.
///
/// With a pair of 50 ticks, about 290 readings of each length then distinguish four of five
/// adjacent lengths (Xeon, 3 GHz). A third of the time distinguishes half of them.
pub const RESOLUTION_TIME: Duration = Duration::from_millis(500);

/// Time for one method in a quick evaluation, which does not distinguish single additions.
pub(crate) const RESOLUTION_TIME_QUICK: Duration = Duration::from_millis(120);

/// Number of readings for one reading of each length: two staircases of a thousand.
pub(crate) const READINGS_PER_REPETITION: f64 = 2000.0;
/// Most readings of each length, as in the paper.
pub const READINGS_MOST: u32 = 100_000;

/// The resolution of one timing method.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Resolution {
    /// Name of the method.
    pub clock: &'static str,
    /// Name of the method that reads the ruler.
    pub ruler_clock: &'static str,
    /// Unit of raw readings.
    pub unit: Unit,
    /// Step of its readings, in raw units.
    pub step: f64,
    /// Latency of `imul r64, r64` in core cycles, from which core cycles are derived.
    pub imul_latency: f64,
    /// Confidence level of the intervals.
    pub confidence: f64,
    /// The staircases: the paper's loop, and single additions.
    pub staircases: Vec<Staircase>,
    /// The differences that many readings resolve, for short and for long code.
    pub by_samples: Vec<ReadingLadder>,
    /// Total duration in seconds.
    pub seconds: f64,
    /// Reasons to distrust the numbers. On an emulated machine there are none in core cycles.
    pub caveats: Vec<Caveat>,
}

impl Resolution {
    /// The staircase of this kind of body.
    pub fn staircase(&self, body: StaircaseBody) -> Option<&Staircase> {
        self.staircases.iter().find(|staircase| staircase.body == body)
    }
}

/// The effort to spend.
#[derive(Debug, Clone, Copy)]
pub struct ResolutionEffort {
    /// Time for one method.
    pub time: Duration,
    /// Readings of each length of the staircases, regardless of time.
    pub readings: Option<u32>,
}

/// Measures the resolution of a timing method.
///
/// With limited time, a slow method gets fewer readings of each length, and then fewer lengths.
/// Methods with CPUID in a virtual machine are an example. A requested number of readings is taken
/// at all lengths. `follower` then receives each pass and may stop the measurement.
pub fn measure_resolution(
    executor: &mut dyn Executor,
    tested: &TestedClock,
    effort: ResolutionEffort,
    random: &mut Random,
    follower: &mut StaircaseFollower,
) -> Result<Resolution, StopReason> {
    let start = executor.now();
    let part = effort.time / 5;
    let mut staircases = Vec::new();
    for body in StaircaseBody::ALL {
        let time = if body == StaircaseBody::Adds { 3 * part } else { part };
        let plan = match effort.readings {
            Some(readings) => staircase_experiment::StaircasePlan::for_readings(tested, readings),
            None => staircase_experiment::StaircasePlan::fit_to_time(executor, tested, body, time, random)?,
        };
        let follower = effort.readings.is_some().then_some(&mut *follower);
        staircases.push(staircase::measure_staircase(executor, tested, body, &plan, random, follower)?);
    }
    let by_samples = match tested.emulated {
        true => Vec::new(),
        false => reading_ladder::measure_ladders(executor, tested, reading_ladder::LadderEffort::Time(part), random)?,
    };
    Ok(Resolution {
        clock: tested.clock.name,
        ruler_clock: tested.ruler.name,
        unit: tested.clock.counts,
        step: tested.step,
        imul_latency: tested.imul_latency,
        confidence: CONFIDENCE,
        staircases,
        by_samples,
        seconds: executor.now().saturating_sub(start).as_secs_f64(),
        caveats: tested.caveats(),
    })
}
