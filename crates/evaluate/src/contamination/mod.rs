//! What neighbouring code does to a reading.
//!
//! The notes name four ways in which code around a pair of readings contaminates it; stores that have executed but
//! are not yet visible are a fifth, for LFENCE and RDTSCP do not wait for them (Intel SDM vol. 2, LFENCE). Each is
//! provoked by a crafted neighbour and measured, and the result compared with what the method promises
//! ([`cyclescope_code::clock::OrderingPromises`]).
//!
//! # What is measured
//!
//! The cost of a contamination is what a body *seems* to cost with the method between such neighbours, less the
//! method's own empty pair, less what the body truly costs: negative where the method misses something, positive
//! where it counts something that is not the body's. All of it is in core cycles, by the ruler, which runs in every round.
//!
//! A method has two sides, and each is tried against a fenced other side that reads the same counter. With its own
//! pair one side's fault would hide the other's: two bare RDTSCs both read before the leading code is done, and
//! their difference shows nothing of it.
//!
//! | Fault | Contrast (`L` leading code, `B` body, `F` following code, `\|` a fence) |
//! |---|---|
//! | leading code unfinished | `L [start] fenced`, less `L \| [start] fenced` |
//! | body started early | `L [start] B fenced` less `L [start] fenced`, less the same with a fenced start |
//! | body unfinished | `fenced A B [end]` less `fenced A [end]`, less the same with a fenced end |
//! | following code in the way | `fenced B [end] F`, less `fenced B [end] \| F` |
//! | stores not drained | `fenced stores [end]` less `fenced [end]`, less the same with an end that drains |
//!
//! Programs of one contrast differ in as little as they can, so that what the first instructions after a fence cost
//! cancels: a body there runs beside the loads that restore its registers, and seems five cycles shorter than it is,
//! with every method alike (Xeon, family 6, model 207). That is why the truth is what fenced readings see of the same
//! body, in the same round, and not its known latency; and why what an end may miss follows other code (`A`).
//!
//! A fence that takes time of its own is not simply added to the body in front of it: some of that time may pass beside
//! the body's tail. MFENCE takes 66 core cycles in an empty pair, and 57 behind one square root as behind 54 of them
//! (Zen 5, family 26, model 2). What is hidden so does not grow with the body, as what an end misses does, and is at
//! most the fence's own time. `A` is there with and without `B`, and where it is as long as the end's own time the same
//! is hidden twice and cancels. Where it is shorter, as much as the end takes longer than `A` is not counted as missed.
//!
//! Programs begin with an empty store buffer. Stores that their caller left would keep an end waiting that waits for
//! stores, behind a short body longer than behind a long one.
//!
//! The first two faults add up: what bare RDTSC gets wrong about a body behind unfinished leading code is the sum of
//! both rows.
//!
//! # When a promise counts as broken
//!
//! One interval of ninety in a table misses the truth now and then, and one kind of code may meet a habit of the core
//! that has nothing to do with the fault. So a method is called one that breaks its promise only where a second
//! neighbour of another kind, in layouts of its own, shows the same:
//!
//! - the fault costs something beside the second neighbour, too;
//! - it no longer does where the fence that the method should have stands between it and the neighbour;
//! - of a body that is unfinished, more is missed beside twice the neighbour: what a fence hides of its own time does not
//!   grow with the body. Both lengths are short enough to be in flight as a whole: what a bare RDTSC misses stops growing
//!   at some 230 cycles, where nothing further fits into the core (Zen 5, family 26, model 2).
//!
//! All of these differences lie beyond the tolerance at every point of their intervals, each of which is wrong in one
//! case of two thousand on that side. Otherwise the verdict is `unclear`. What is not promised needs no second neighbour.
//!
//! # Limits
//!
//! - The reference is fenced by LFENCE, so rows of methods with the same steps are zero by construction. Where LFENCE
//!   does not wait for earlier instructions (AMD cores whose operating system has not made it dispatch-serialising)
//!   the reference does not see the whole neighbour, and the rows say so instead of comparing.
//! - A busy sibling changes what readings cost by some cycles. Layouts beside one are left out; where too few others
//!   remain only what is far larger has a verdict.
//! - That nothing is seen says that these neighbours did nothing on this core, not that no code can.

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

/// The same where the core was shared with a busy sibling: what an empty pair takes moved by up to 10 cycles then
/// (Xeon, family 6, model 207).
pub(crate) const TOLERANCE_SHARED: f64 = 10.0;

/// What a measured contamination says about a method's promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PromiseVerdict {
    /// Promised not to happen, and it does not.
    Kept,
    /// Promised not to happen, and it surely does, beside two kinds of neighbours: a finding.
    Broken,
    /// Not promised, and it happens.
    Visible,
    /// Not promised, and these neighbours do not make it happen on this core.
    NotVisible,
    /// The interval is too wide to tell, or one neighbour speaks against the method and the other does not.
    Unclear,
    /// Not measured; the cost says why.
    NotRun,
}

/// Whether a fault is seen in an interval of what it costs, measured under these conditions; `None` where that can't be
/// told.
///
/// Seen is what lies beyond the tolerance at every point of the interval, on the side to which the fault moves a
/// reading. Not seen is what lies within twice the tolerance, to both sides: the other one is for the interval's
/// own width, which the instrument alone makes 0.7 cycles each way ([`cyclescope_measure::ruler::INSTRUMENT_CYCLES`]). A
/// cost on the wrong side comes from something else, and leaves the question open. So does a part of a body that
/// seems missed and is no larger than what the end's own time may hide.
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
    /// What it means for a promise that a fault is seen, or not. `None` where that can't be told.
    fn from_observation(promised: bool, seen: Option<bool>) -> PromiseVerdict {
        match (promised, seen) {
            (true, Some(true)) => PromiseVerdict::Broken,
            (false, Some(true)) => PromiseVerdict::Visible,
            (true, Some(false)) => PromiseVerdict::Kept,
            (false, Some(false)) => PromiseVerdict::NotVisible,
            (_, None) => PromiseVerdict::Unclear,
        }
    }

    /// Whether the contamination happens; `None` where that can't be decided.
    pub fn fault_happens(self) -> Option<bool> {
        match self {
            PromiseVerdict::Broken | PromiseVerdict::Visible => Some(true),
            PromiseVerdict::Kept | PromiseVerdict::NotVisible => Some(false),
            PromiseVerdict::Unclear | PromiseVerdict::NotRun => None,
        }
    }
}

/// One fault of one timing method.
#[derive(Debug, Clone, Serialize)]
pub struct Contamination {
    /// The fault.
    pub fault: ContaminationFault,
    /// Whether the method promises that it does not happen.
    pub promised: bool,
    /// The neighbour that provoked it, in words. Of several kinds of following code the one that cost most.
    pub neighbour: &'static str,
    /// What the neighbour itself takes, in core cycles: about the most that could be missed or counted.
    pub size: Option<f64>,
    /// What it costs, in core cycles, at a level of [`CONFIDENCE`]; negative where something is missed.
    pub cost: Fact<Interval>,
    /// Whether the core was shared with a busy sibling meanwhile, as far as can be seen: the tolerance is then
    /// 10 core cycles.
    pub shared: bool,
    /// What another kind of neighbour says; none where the first does not speak against the method.
    pub second: Option<SecondOpinion>,
    /// What that says about the promise.
    pub verdict: PromiseVerdict,
}

/// What another kind of neighbour says of a breach that one neighbour has shown.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SecondOpinion {
    /// The neighbour, in words.
    pub neighbour: &'static str,
    /// What the fault costs beside it, in core cycles, at a level of [`CONFIDENCE`]; none where something disturbed
    /// every attempt.
    pub cost: Option<Interval>,
    /// Whether it shows the breach, too, and all that must then be seen with it.
    pub confirms: bool,
}

/// Measures all faults of a timing method, in this time or, where the intervals are soon narrow, in less, in the
/// order of [`FAULTS`]. A sibling that is always busy shows only where the core's width is known.
///
/// Each fault has an equal part of the time, whatever a reading costs: a method that leaves the guest with CPUID gets
/// fewer rounds, wider intervals and, where they are too wide, no verdict.
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

/// Measures one fault of a timing method, in this time.
pub(crate) fn measure_fault(
    executor: &mut dyn Executor,
    tested: &TestedClock,
    fault: ContaminationFault,
    time: Duration,
    random: &mut Random,
) -> Result<Contamination, RunError> {
    run_fault_trials(&mut TrialRunner::new(executor, random, tested), tested, fault, time)
}

/// Whether a fault is provoked and measured in the same way with two methods, so that what one shows is shown of both.
pub(crate) fn is_measured_alike(one: &Clock, other: &Clock, fault: ContaminationFault) -> bool {
    trial::has_same_trials(one, other, fault)
}

/// The rows of a method that can't be run here, and why.
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
    let outcome = means.run_trial(&ContaminationTrial::new(tested.clock, fault, neighbour), time)?;
    let Some(TrialOutcome { costs, conditions }) = outcome else {
        return Ok(new_unmeasured(
            fault,
            promises,
            neighbour,
            PromiseVerdict::Unclear,
            "something disturbed every attempt",
        ));
    };
    if neighbour.least > 0.0 && conditions.size < neighbour.least {
        let why = "LFENCE does not hold code back here, so there is nothing to compare with";
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

/// Asks another neighbour about a breach, in layouts of its own.
fn confirm_breach(
    means: &mut TrialRunner,
    tested: &TestedClock,
    fault: ContaminationFault,
    neighbour: &NeighbourCode,
    time: Duration,
) -> Result<SecondOpinion, RunError> {
    let outcome = means.run_trial(&ContaminationTrial::confirming_breach(tested.clock, fault, neighbour), time)?;
    let words = neighbour.words;
    let Some(TrialOutcome { costs, conditions }) = outcome else {
        return Ok(SecondOpinion { neighbour: words, cost: None, confirms: false });
    };
    let shown = |cost| is_fault_seen(fault, cost, &conditions) == Some(true);
    let held_back = neighbour.least == 0.0 || conditions.size >= neighbour.least;
    let confirms = held_back && costs.iter().all(shown);
    Ok(SecondOpinion { neighbour: words, cost: costs.first().copied(), confirms })
}

/// The two kinds of following code that cost most. They are chosen in layouts of their own, so that the cost that is
/// reported is not the largest of many, and its interval holds.
fn find_worst_following(
    means: &mut TrialRunner,
    tested: &TestedClock,
    time: Duration,
) -> Result<[&'static NeighbourCode; 2], RunError> {
    let candidates = &neighbour_code::FOLLOWING;
    let outcome = means.run_trial(&ContaminationTrial::comparing_following(tested.clock, candidates), time)?;
    let Some(TrialOutcome { costs, .. }) = outcome else {
        return Ok(neighbour_code::choose_neighbours(ContaminationFault::FollowingInTheWay));
    };
    let mut ranked: Vec<(&'static NeighbourCode, f64)> =
        candidates.iter().zip(costs.iter().map(|cost| cost.value)).collect();
    ranked.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    Ok([ranked[0].0, ranked[1].0])
}
