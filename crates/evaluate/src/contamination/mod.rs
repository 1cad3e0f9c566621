//! How neighbouring code contaminates a reading.
//!
//! The notes name four ways in which code around a pair of readings contaminates it. A fifth are
//! stores that have executed but are not yet visible, because LFENCE and RDTSCP do not wait for
//! them (Intel SDM vol. 2, LFENCE). Crafted neighbouring code provokes each fault. The measured
//! cost is then compared with the method's promise ([`cyclescope_code::clock::OrderingPromises`]).
//!
//! # What is measured
//!
//! The cost of a contamination is the apparent cost of a body between such neighbours, minus the
//! method's own empty pair, minus the true cost of the body. It is negative if the method misses a
//! part of the body, and positive if it counts foreign code. All costs are in core cycles, from the
//! ruler, which runs in every round.
//!
//! A method has two sides. Each is tested with a fenced other side that reads the same counter. In
//! the method's own pair one side's fault would hide the other's: two bare RDTSCs both read before
//! the leading code is done, and their difference does not show it.
//!
//! | Fault | Contrast (`L` leading code, `B` body, `F` following code, `\|` a fence) |
//! |---|---|
//! | leading code unfinished | `L [start] fenced`, less `L \| [start] fenced` |
//! | body started early | `L [start] B fenced` less `L [start] fenced`, less the same with a fenced start |
//! | body unfinished | `fenced A B [end]` less `fenced A [end]`, less the same with a fenced end |
//! | following code in the way | `fenced B [end] F`, less `fenced B [end] \| F` |
//! | stores not drained | `fenced stores [end]` less `fenced [end]`, less the same with an end that drains |
//!
//! Programs of one contrast differ as little as possible, so that the cost of the first
//! instructions after a fence cancels. A body there overlaps with the loads that restore its
//! registers. It seems five cycles shorter than it is, with every method (Xeon, family 6, model
//! 207). The true cost is therefore the cost by fenced readings in the same round, and not the
//! known latency. For the same reason, the part that an end may miss follows other code (`A`).
//!
//! The time of a fence is not simply added to the body before it: some of it may overlap the body's
//! tail. MFENCE takes 66 core cycles in an empty pair, and 57 after 1 to 54 square roots (Zen 5,
//! family 26, model 2). The hidden time does not grow with the body, unlike the part that an end
//! misses. It is at most the fence's own time. `A` is present with and without `B`. If `A` is as
//! long as the end's own time, the same time is hidden twice and cancels. If `A` is shorter, the
//! difference is not counted as missed.
//!
//! Programs begin with an empty store buffer. Otherwise an end that waits for stores would also
//! wait for the caller's, and longer after a short body than after a long one.
//!
//! The first two faults add up. The error of a bare RDTSC for a body after unfinished leading code
//! is the sum of both rows.
//!
//! # When a promise counts as broken
//!
//! One interval in ninety occasionally misses the true value. One kind of code may trigger a
//! peculiarity of the core that has nothing to do with the fault. So a broken promise needs
//! confirmation by a second kind of neighbouring code, in its own layouts:
//!
//! - the fault also has a cost next to the second neighbour;
//! - the cost vanishes with the missing fence between method and neighbour;
//! - for an unfinished body, twice the neighbour increases the missed part, whereas the hidden time
//!   of a fence does not grow with the body. Both lengths fit into the core's window: the part that
//!   a bare RDTSC misses stops growing at about 230 cycles (Zen 5, family 26, model 2).
//!
//! All of these differences lie beyond the tolerance at every point of their intervals. Each
//! interval is wrong on that side in one case of two thousand. Otherwise the verdict is `unclear`.
//! A fault that the method does not exclude needs no second neighbour.
//!
//! # Limits
//!
//! - The reference is fenced by LFENCE, so rows of methods with the same steps are zero by
//!   construction. On AMD cores whose operating system has not made LFENCE dispatch-serialising, it
//!   does not wait for earlier instructions. The reference then misses a part of the neighbour, and
//!   the rows say so instead of comparing.
//! - A busy sibling changes the cost of readings by some cycles. Layouts with one are excluded. If
//!   too few others remain, only much larger costs have a verdict.
//! - A fault that is not seen was not provoked by these neighbours on this core. Other code may
//!   provoke it.

mod fault;
mod neighbour_code;
mod reference_reading;
mod stand_in;
mod trial;
mod trial_runner;

#[cfg(test)]
mod tests;

use fault::TrialConditions;
pub use fault::{CONFIDENCE, ContaminationFault, FAULTS, TOLERANCE_CYCLES, TOLERANCE_DRAIN};
pub use stand_in::STAND_IN;

use super::TestedClock;
use cyclescope_code::clock::{Clock, OrderingPromises};
use cyclescope_core::error::RunError;
use cyclescope_core::machine::fact::Fact;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::Interval;
use cyclescope_exec::Executor;
use neighbour_code::NeighbourCode;
use serde::Serialize;
use std::time::Duration;
use trial::ContaminationTrial;
use trial_runner::{TrialOutcome, TrialRunner};

/// The tolerance with a busy sibling. The cost of an empty pair then moved by up to 10 cycles
/// (Xeon, family 6, model 207).
pub(crate) const TOLERANCE_SHARED: f64 = 10.0;

/// The result for a method's promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PromiseVerdict {
    /// The method promises to exclude it, and it does not occur.
    Kept,
    /// The method promises to exclude it, and two kinds of neighbouring code provoke it: a finding.
    Broken,
    /// The method makes no promise, and it occurs.
    Visible,
    /// The method makes no promise, and these neighbours do not provoke it on this core.
    NotVisible,
    /// The interval is too wide to decide, or only one of two neighbours indicates a breach.
    Unclear,
    /// Not measured. The cost contains the reason.
    NotRun,
}

/// Whether the interval of a cost shows a fault, under these conditions; `None` if undecided.
///
/// The fault is seen if the whole interval lies beyond the tolerance, on the side to which the
/// fault shifts a reading. It is not seen if the interval lies within twice the tolerance on both
/// sides. The second tolerance covers the interval's own width, to which the instrument alone
/// contributes 0.7 cycles each way ([`cyclescope_measure::ruler::INSTRUMENT_CYCLES`]). A cost on
/// the wrong side has another cause and leaves the question open. So does a missing part no larger
/// than the time that the end may hide.
fn is_fault_seen(fault: ContaminationFault, cost: &Interval, conditions: &TrialConditions) -> Option<bool> {
    let TrialConditions { size, overlap, alone } = *conditions;
    let tolerance = fault.tolerance_cycles(size).max(if alone { 0.0 } else { TOLERANCE_SHARED });
    let seen = if fault.adds_time() { cost.low > tolerance } else { cost.high < -tolerance - overlap };
    let absent = alone && cost.low > -2.0 * tolerance && cost.high < 2.0 * tolerance;
    match (seen, absent) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

impl PromiseVerdict {
    /// The verdict for a seen or unseen fault. `None` is undecided.
    fn from_observation(promised: bool, seen: Option<bool>) -> PromiseVerdict {
        match (promised, seen) {
            (true, Some(true)) => PromiseVerdict::Broken,
            (false, Some(true)) => PromiseVerdict::Visible,
            (true, Some(false)) => PromiseVerdict::Kept,
            (false, Some(false)) => PromiseVerdict::NotVisible,
            (_, None) => PromiseVerdict::Unclear,
        }
    }

    /// Whether the contamination occurs; `None` if undecided.
    pub fn fault_happens(self) -> Option<bool> {
        match self {
            PromiseVerdict::Broken | PromiseVerdict::Visible => Some(true),
            PromiseVerdict::Kept | PromiseVerdict::NotVisible => Some(false),
            PromiseVerdict::Unclear | PromiseVerdict::NotRun => None,
        }
    }
}

/// The result for one fault of one timing method.
#[derive(Debug, Clone, Serialize)]
pub struct Contamination {
    /// The fault.
    pub fault: ContaminationFault,
    /// Whether the method promises to exclude it.
    pub promised: bool,
    /// The neighbouring code that provoked it, described. For following code, the kind with the
    /// highest cost.
    pub neighbour: &'static str,
    /// Cost of the neighbouring code itself, in core cycles: roughly the most that can be missed or
    /// counted.
    pub size: Option<f64>,
    /// Cost of the fault in core cycles, at a level of [`CONFIDENCE`]; negative if a part is
    /// missed.
    pub cost: Fact<Interval>,
    /// Whether a busy sibling was detected on the core. The tolerance is then 10 core cycles.
    pub shared: bool,
    /// The test with a second kind of neighbouring code; `None` unless the first indicates a
    /// breach.
    pub second: Option<SecondOpinion>,
    /// Verdict on the promise.
    pub verdict: PromiseVerdict,
}

/// The test of a suspected breach with a second kind of neighbouring code.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SecondOpinion {
    /// Description of the neighbouring code.
    pub neighbour: &'static str,
    /// Cost of the fault next to it, in core cycles, at a level of [`CONFIDENCE`]; `None` if every
    /// attempt was disturbed.
    pub cost: Option<Interval>,
    /// Whether it shows the breach and everything that a breach implies.
    pub confirms: bool,
}

/// Measures all faults of a timing method, in the order of [`FAULTS`].
///
/// Takes at most `time`, and less if the intervals become narrow sooner. A permanently busy sibling
/// is only detected if the core's width is known.
///
/// Each fault gets an equal part of the time. A method that exits to the hypervisor with CPUID gets
/// fewer rounds and wider intervals. If they are too wide, it gets no verdict.
pub fn measure_contamination(
    executor: &mut dyn Executor,
    tested: &TestedClock,
    time: Duration,
    random: &mut Random,
) -> Result<Vec<Contamination>, RunError> {
    let part = time / FAULTS.len() as u32;
    let mut means = TrialRunner::new(executor, random, tested);
    FAULTS.iter().map(|&fault| run_fault_trials(&mut means, tested, fault, part)).collect()
}

/// Measures one fault of a timing method in this time.
pub(crate) fn measure_fault(
    executor: &mut dyn Executor,
    tested: &TestedClock,
    fault: ContaminationFault,
    time: Duration,
    random: &mut Random,
) -> Result<Contamination, RunError> {
    run_fault_trials(&mut TrialRunner::new(executor, random, tested), tested, fault, time)
}

/// Whether two methods have the same trials for a fault, so that the result of one applies to both.
pub(crate) fn is_measured_alike(one: &Clock, other: &Clock, fault: ContaminationFault) -> bool {
    trial::has_same_trials(one, other, fault)
}

/// The rows of a method that cannot run here, with the reason.
pub fn list_rows_not_run(promises: &OrderingPromises, why: &str) -> Vec<Contamination> {
    let row = |fault| {
        new_unmeasured(fault, promises, neighbour_code::choose_neighbours(fault)[0], PromiseVerdict::NotRun, why)
    };
    FAULTS.map(row).into()
}

fn new_unmeasured(
    fault: ContaminationFault,
    promises: &OrderingPromises,
    neighbour: &NeighbourCode,
    verdict: PromiseVerdict,
    why: &str,
) -> Contamination {
    Contamination {
        fault,
        promised: fault.is_excluded_by(promises),
        neighbour: neighbour.words,
        size: None,
        cost: Fact::unknown(why),
        shared: false,
        second: None,
        verdict,
    }
}

fn run_fault_trials(
    means: &mut TrialRunner,
    tested: &TestedClock,
    fault: ContaminationFault,
    mut time: Duration,
) -> Result<Contamination, RunError> {
    let mut pair = neighbour_code::choose_neighbours(fault);
    if fault == ContaminationFault::FollowingInTheWay {
        time /= 2;
        pair = find_worst_following(means, tested, time)?;
    }
    let [neighbour, other] = pair;
    let promises = &tested.clock.promises;
    let outcome = means.run_trial(&ContaminationTrial::new(tested, fault, neighbour), time)?;
    let Some(TrialOutcome { costs, conditions }) = outcome else {
        return Ok(new_unmeasured(fault, promises, neighbour, PromiseVerdict::Unclear, "every attempt was disturbed"));
    };
    if neighbour.least > 0.0 && conditions.size < neighbour.least {
        let why = "LFENCE does not wait for earlier code here, so there is no reference to compare with";
        return Ok(new_unmeasured(fault, promises, neighbour, PromiseVerdict::Unclear, why));
    }
    let (promised, cost) = (fault.is_excluded_by(promises), costs[0]);
    let mut seen = is_fault_seen(fault, &cost, &conditions);
    let mut asked = None;
    if promised && seen == Some(true) {
        let second = confirm_breach(means, tested, fault, other, time)?;
        seen = seen.filter(|_| second.confirms);
        asked = Some(second);
    }
    Ok(Contamination {
        fault,
        promised,
        neighbour: neighbour.words,
        size: Some(conditions.size),
        cost: Fact::Known(cost),
        shared: !conditions.alone,
        second: asked,
        verdict: PromiseVerdict::from_observation(promised, seen),
    })
}

/// Tests a suspected breach with a second neighbour, in its own layouts.
fn confirm_breach(
    means: &mut TrialRunner,
    tested: &TestedClock,
    fault: ContaminationFault,
    neighbour: &NeighbourCode,
    time: Duration,
) -> Result<SecondOpinion, RunError> {
    let outcome = means.run_trial(&ContaminationTrial::confirming_breach(tested, fault, neighbour), time)?;
    let words = neighbour.words;
    let Some(TrialOutcome { costs, conditions }) = outcome else {
        return Ok(SecondOpinion { neighbour: words, cost: None, confirms: false });
    };
    let shown = |cost| is_fault_seen(fault, cost, &conditions) == Some(true);
    let held_back = neighbour.least == 0.0 || conditions.size >= neighbour.least;
    let confirms = held_back && costs.iter().all(shown);
    Ok(SecondOpinion { neighbour: words, cost: costs.first().copied(), confirms })
}

/// The two kinds of following code with the highest cost. Separate layouts select them, so that the
/// reported cost is not the maximum of many and its interval stays valid.
fn find_worst_following(
    means: &mut TrialRunner,
    tested: &TestedClock,
    time: Duration,
) -> Result<[&'static NeighbourCode; 2], RunError> {
    let candidates = &neighbour_code::FOLLOWING;
    let outcome = means.run_trial(&ContaminationTrial::comparing_following(tested, candidates), time)?;
    let Some(TrialOutcome { costs, .. }) = outcome else {
        return Ok(neighbour_code::choose_neighbours(ContaminationFault::FollowingInTheWay));
    };
    let mut ranked: Vec<(&'static NeighbourCode, f64)> =
        candidates.iter().zip(costs.iter().map(|cost| cost.value)).collect();
    ranked.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    Ok([ranked[0].0, ranked[1].0])
}
