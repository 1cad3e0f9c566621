//! Instructions that block ports, found by counting: forms of one µop, or plain stores, whose counts
//! show which ports their µops use.
//!
//! A whole number of µops on one counter is a set of its own; counters that share one µop are a set.
//! Of all forms with the same ports, the fastest blocks.

use super::counted_programs::{BodyPair, CountedPrograms, count_programs};
use super::experiment::FormExperiment;
use super::timing::{LoopedProgram, ProgramTimer, TimingSize, TimingSurroundings};
use crate::bodies::counted_body::{accesses_memory, build_blockers};
use crate::experiments::form_plan::FormPlan;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_exec::Executor;
use cyclescope_measure::EventPlan;
use cyclescope_measure::result::counter_record::CountedEvents;

/// Layouts that time a candidate.
const TIMED: TimingSize = TimingSize { layouts: 1, warm_up: 1, rounds: 2 };
/// Programs timed in one batch.
const TIMED_PROGRAMS: usize = 14;
/// How often the bodies of a candidate repeat its code, and iterations of its shorter call.
const REPEATS: [usize; 2] = [8, 16];
const LOOPS: u64 = 40;
/// A blocker takes at most this many times the core cycles that its ports need: it keeps them busy.
const SLOWNESS_MOST: f64 = 1.25;
/// Rates are the same up to this factor.
const SAME_RATE: f64 = 1.05;
/// Fewer µops than this on a counter are none.
const NO_SHARE: f64 = 0.02;
/// How far a count may be from a whole number.
pub(crate) const WHOLE_TOLERANCE: f64 = 0.1;

/// A form that blocks some ports.
#[derive(Debug, Clone)]
pub(crate) struct PortBlocker {
    /// The form.
    pub(crate) plan: FormPlan,
    /// The blocked ports, by their place among the counters.
    pub(crate) ports: Vec<usize>,
    /// µops of one copy on these ports.
    pub(crate) uops: f64,
    /// Core cycles of a copy.
    pub(crate) cycles: f64,
}

/// The whole number that a count is near to.
pub(crate) fn find_whole(count: f64) -> Option<u32> {
    let whole = count.round();
    ((count - whole).abs() <= WHOLE_TOLERANCE && whole >= 0.0).then_some(whole as u32)
}

/// The sets of ports that µops with these counts use, each with its number of µops. `None` if the
/// counts leave it open.
pub(crate) fn split_by_whole(counts: &[f64]) -> Option<Vec<(Vec<usize>, u32)>> {
    let used: Vec<usize> = (0..counts.len()).filter(|port| counts[*port] > NO_SHARE).collect();
    let (own, shared): (Vec<usize>, Vec<usize>) =
        used.into_iter().partition(|port| find_whole(counts[*port]).is_some_and(|whole| whole > 0));
    let mut sets: Vec<(Vec<usize>, u32)> =
        own.into_iter().filter_map(|port| Some((vec![port], find_whole(counts[port])?))).collect();
    if !shared.is_empty() {
        let whole = find_whole(shared.iter().map(|port| counts[*port]).sum()).filter(|whole| *whole > 0)?;
        sets.push((shared, whole));
    }
    Some(sets)
}

/// The µops of each port in a result; `None` if a counter was lost.
pub(crate) fn read_port_counts(counted: &CountedEvents) -> Option<Vec<f64>> {
    counted.counters.iter().map(|counter| counter.quantity.value).collect()
}

/// A candidate, and programs of its blockers alone.
struct BlockerCandidate {
    plan: FormPlan,
    counted: CountedPrograms,
    /// A program whose results rotate through more registers.
    relaxed: LoopedProgram,
}

impl BlockerCandidate {
    fn new(timer: &ProgramTimer, plan: FormPlan) -> Option<BlockerCandidate> {
        let program = |twice: bool, repeats: usize| {
            let (period, count) = build_blockers(&plan.anatomy, twice)?;
            let FormExperiment { world, init, .. } = plan.body_experiment(&period, &[], String::new())?;
            let program = timer.build_program(world, &init, &period, repeats);
            Some(LoopedProgram { program, copies: repeats * count, loops: LOOPS })
        };
        let [short, long] = REPEATS;
        let body = BodyPair { short: program(false, short)?, long: program(false, long)? };
        let relaxed = program(true, short)?;
        Some(BlockerCandidate { plan, counted: CountedPrograms { body, control: None }, relaxed })
    }
}

/// Finds blockers for as many sets of ports as these candidates use, the smallest sets first.
pub(crate) fn find_blockers(
    timer: &ProgramTimer,
    executor: &mut dyn Executor,
    plans: Vec<FormPlan>,
    (events, confidence): (&EventPlan, f64),
    random: &mut Random,
) -> Result<Vec<PortBlocker>, RunError> {
    let candidates: Vec<BlockerCandidate> =
        plans.into_iter().filter_map(|plan| BlockerCandidate::new(timer, plan)).collect();
    let surroundings = candidates
        .iter()
        .fold(TimingSurroundings { touches_memory: true, ..TimingSurroundings::default() }, |all, candidate| {
            TimingSurroundings { vectors: all.vectors.max(candidate.plan.surroundings.vectors), ..all }
        });
    let programs: Vec<CountedPrograms> = candidates.iter().map(|candidate| candidate.counted.clone()).collect();
    let counts = count_programs(executor, &programs, surroundings, (events, confidence), random)?;
    let timed = candidates.iter().flat_map(|one| [one.counted.body.long.clone(), one.relaxed.clone()]);
    let timed: Vec<LoopedProgram> = timed.collect();
    let mut cycles = Vec::new();
    for part in timed.chunks(TIMED_PROGRAMS) {
        let timings = timer.time_programs(executor, part, TIMED, surroundings, random)?;
        cycles.extend(timings[0].iter().map(|timing| timing.cycles.iter().copied().fold(f64::INFINITY, f64::min)));
    }
    let mut blockers: Vec<PortBlocker> = Vec::new();
    for ((candidate, counted), cycles) in candidates.into_iter().zip(counts).zip(cycles.chunks(2)) {
        let (plan, [cycles, relaxed]) = (candidate.plan, [cycles[0], cycles[1]]);
        let Some(sets) = read_port_counts(&counted).and_then(|counts| split_by_whole(&counts)) else { continue };
        // Of several µops, each must have ports of its own.
        let is_simple = sets.len() == 1 && sets[0].1 == 1 || accesses_memory(&plan.anatomy);
        // Dependencies must not leave ports idle.
        let is_free = cycles <= SAME_RATE * relaxed;
        let is_fast =
            |(ports, uops): &(Vec<usize>, u32)| cycles <= SLOWNESS_MOST * f64::from(*uops) / ports.len() as f64;
        for (ports, uops) in sets.into_iter().filter(|set| is_simple && is_free && is_fast(set)) {
            let blocker = PortBlocker { plan: plan.clone(), ports, uops: uops.into(), cycles };
            match blockers.iter_mut().find(|known| known.ports == blocker.ports) {
                Some(known) if known.cycles <= blocker.cycles => {}
                Some(known) => *known = blocker,
                None => blockers.push(blocker),
            }
        }
    }
    blockers.sort_by_key(|blocker| blocker.ports.len());
    Ok(blockers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_counts_are_sets_of_their_own() {
        assert_eq!(split_by_whole(&[0.25, 0.26, 0.24, 0.25, 0.0]), Some(vec![(vec![0, 1, 2, 3], 1)]));
        assert_eq!(split_by_whole(&[0.0, 1.0, 0.01]), Some(vec![(vec![1], 1)]));
        // A store: its data, and its address by one of three ports.
        assert_eq!(split_by_whole(&[0.3, 0.4, 1.0, 0.3]), Some(vec![(vec![2], 1), (vec![0, 1, 3], 1)]));
        assert_eq!(split_by_whole(&[0.5, 0.25, 0.0]), None);
        assert_eq!(split_by_whole(&[0.0, 0.0]), Some(Vec::new()), "an eliminated move");
    }
}
