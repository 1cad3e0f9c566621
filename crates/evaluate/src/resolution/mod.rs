//! The smallest difference that a method can tell: the paper's staircase, and how it falls with more readings.
//!
//! The paper (section 3.3) lets a loop grow from 0 to 999 iterations and looks at the least reading of each length:
//! the resolution is the number of "assembly instructions" by which the code must grow until it moves. Its
//! `measured_loop` grows by an iteration a step, though, not by an instruction, and where the clock counts in steps of
//! several ticks or the core's frequency changes, minima in ticks say more about these than about the method. So there
//! are two staircases here, that of the paper and one of single instructions of one core cycle each, and beside the
//! paper's figures, in raw units and as its program computes them, there are figures in core cycles: means of readings
//! that nothing disturbed, each divided by the ruler of its own round.
//!
//! A mean of many readings sees through the clock's step. How far is the second question here: which difference
//! a number of readings resolves, found from the spread of groups of readings and not by the rule of the square root,
//! which knows nothing of drift.
//!
//! Limits: one place within a page, so that alignment is no confound, and no figure for what alignment does. A core takes
//! a cycle more or less where a body ends here or there, so that neighbouring lengths differ by more or less than one
//! even where the method resolves one.

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
pub use staircase_points::StaircaseTotals;
#[cfg(test)]
pub(crate) use staircase_points::{LengthEnsemble, StaircasePoint};

use super::TestedClock;
use cyclescope_core::random::Random;
use cyclescope_core::unit::Unit;
use cyclescope_exec::Executor;
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::study::StopReason;
use std::time::Duration;

/// Time for one method: three fifths for the staircase of additions, which tell one core cycle from the next, and a fifth
/// each for the paper's loop and for the readings by number. Then some 290 readings of each length tell four of five
/// neighbours apart where a pair takes 50 ticks (Xeon, 3 GHz); in a third of the time half of them.
pub const RESOLUTION_TIME: Duration = Duration::from_millis(500);

/// The same in a hurry, in which one addition is not distinguished from the next.
pub(crate) const RESOLUTION_TIME_QUICK: Duration = Duration::from_millis(120);

/// Readings that one reading of each length makes: two staircases of a thousand.
pub(crate) const READINGS_PER_REPETITION: f64 = 2000.0;
/// Readings of each length at most, as in the paper.
pub const READINGS_MOST: u32 = 100_000;

/// The resolution of one timing method.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Resolution {
    /// The method.
    pub clock: &'static str,
    /// The method that reads the ruler.
    pub ruler_clock: &'static str,
    /// What raw units are.
    pub unit: Unit,
    /// The step of its readings, in raw units.
    pub step: f64,
    /// Latency of `imul r64, r64` in core cycles, which core cycles are derived with.
    pub imul_latency: f64,
    /// The level of the intervals.
    pub confidence: f64,
    /// The staircases: the paper's loop and single additions.
    pub staircases: Vec<Staircase>,
    /// What many readings tell apart: of short and of long code.
    pub by_samples: Vec<ReadingLadder>,
    /// How long all of it took, in seconds.
    pub seconds: f64,
    /// What to know before believing the numbers: where the machine is emulated there are none in core cycles.
    pub caveats: Vec<Caveat>,
}

impl Resolution {
    /// The staircase of one kind of body.
    pub fn staircase(&self, body: StaircaseBody) -> Option<&Staircase> {
        self.staircases.iter().find(|staircase| staircase.body == body)
    }
}

/// How much to measure.
#[derive(Debug, Clone, Copy)]
pub struct ResolutionEffort {
    /// Time for one method.
    pub time: Duration,
    /// Readings of each length of the staircases, whatever time they take.
    pub readings: Option<u32>,
}

/// Measures the resolution of a timing method.
///
/// In a given time methods whose pair takes long, such as those with CPUID in a virtual machine, have fewer readings of
/// each length, and fewer lengths where that does not suffice. A given number of readings is taken of all lengths; `tell`
/// hears of each pass then, and may end it all.
pub fn measure_resolution(
    executor: &mut dyn Executor,
    tested: &TestedClock,
    effort: ResolutionEffort,
    random: &mut Random,
    tell: &mut StaircaseFollower,
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
        let tell = effort.readings.is_some().then_some(&mut *tell);
        staircases.push(staircase::measure_staircase(executor, tested, body, &plan, random, tell)?);
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
