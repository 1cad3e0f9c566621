//! Counts the events of programs beside the timed ones: after all times are known, in layouts of
//! their own.
//!
//! A count is the difference of two bodies of unlike length, each by the slope over iterations. So
//! the loop around the instances cancels, and so do calls. What else the bodies contain is counted
//! alone in a control of both lengths, and subtracted.

use super::timing::{LoopedProgram, TimingSurroundings};
use cyclescope_code::program::Program;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_exec::{Executor, ProgramCall};
use cyclescope_measure::contrast::Contrast;
use cyclescope_measure::result::counter_record::CountedEvents;
use cyclescope_measure::schedule::{self, BatchPace, PlannedLayout, Schedule};
use cyclescope_measure::{COUNTED_LAYOUTS, EventPlan, count_contrasts, placement};
use std::time::Duration;

/// Untimed and counted rounds of a layout.
const WARM_UP: u32 = 1;
const ROUNDS: u32 = 2;
/// The longer call of a program has this many times the iterations of the shorter one.
const LONGER_CALL: u64 = 4;
/// Upper limit of the programs in a batch.
const BATCH_PROGRAMS: usize = 64;
const DEADLINE: Duration = Duration::from_secs(10);

/// A body with some instances, and one with twice as many.
#[derive(Debug, Clone)]
pub(crate) struct BodyPair {
    pub(crate) short: LoopedProgram,
    pub(crate) long: LoopedProgram,
}

/// A body whose events are counted, and its control.
#[derive(Debug, Clone)]
pub(crate) struct CountedPrograms {
    pub(crate) body: BodyPair,
    pub(crate) control: Option<BodyPair>,
}

impl CountedPrograms {
    fn list_programs(&self) -> Vec<&LoopedProgram> {
        [Some(&self.body), self.control.as_ref()]
            .into_iter()
            .flatten()
            .flat_map(|pair| [&pair.short, &pair.long])
            .collect()
    }

    /// Events per instance, if this one's calls begin at a column.
    fn build_contrast(&self, first: usize) -> Contrast {
        let instances = (self.body.long.copies - self.body.short.copies) as f64;
        let signs = [-1.0, 1.0, 1.0, -1.0];
        let slope = |(place, program): (usize, &LoopedProgram)| {
            let more = (LONGER_CALL - 1) * program.loops;
            let column = first + 2 * place;
            Contrast::slope_between([column, column + 1], more as f64)
        };
        let slopes = self.list_programs().into_iter().enumerate().map(slope);
        slopes.zip(signs).fold(Contrast::default(), |all, (slope, sign)| all.plus_weighted(sign / instances, &slope))
    }
}

/// Counts the events of each of these.
///
/// # Errors
///
/// If the code fails.
pub(crate) fn count_programs(
    executor: &mut dyn Executor,
    all: &[CountedPrograms],
    surroundings: TimingSurroundings,
    (events, confidence): (&EventPlan, f64),
    random: &mut Random,
) -> Result<Vec<CountedEvents>, RunError> {
    let mut batches = Vec::new();
    for part in all.chunks(BATCH_PROGRAMS / 4) {
        batches.push(plan_batch(executor, part, surroundings, random)?);
    }
    events.count(all.len(), &mut |codes| {
        let mut counts = Vec::new();
        for (schedule, contrasts) in &batches {
            counts.extend(count_contrasts(executor, schedule, &|_| contrasts.clone(), confidence, codes)?);
        }
        Ok(counts)
    })
}

/// The layouts of some programs, and the contrast of each.
fn plan_batch(
    executor: &dyn Executor,
    all: &[CountedPrograms],
    surroundings: TimingSurroundings,
    random: &mut Random,
) -> Result<(Schedule, Vec<Contrast>), RunError> {
    let listed: Vec<&LoopedProgram> = all.iter().flat_map(CountedPrograms::list_programs).collect();
    let programs: Vec<Program> = listed.iter().map(|program| program.program.clone()).collect();
    let calls: Vec<ProgramCall> = listed
        .iter()
        .enumerate()
        .flat_map(|(place, program)| {
            [1, LONGER_CALL].map(|times| ProgramCall { place, loop_count: times * program.loops })
        })
        .collect();
    let mut layouts = Vec::new();
    for _ in 0..COUNTED_LAYOUTS {
        let arena = executor.arena_len();
        let code = schedule::place_programs(&programs, 0, 0..programs.len(), arena, None, random)?;
        let layout = PlannedLayout::with_calls_in_order(code, calls.clone(), random.next_bits());
        layouts.push(layout.with_data(placement::displace_standard_data(random)));
    }
    let memory = ProgramMemory::standard(surroundings.element, surroundings.touches_memory);
    let pace = BatchPace { warm_up: WARM_UP, rounds: ROUNDS, memory, deadline: DEADLINE, ..BatchPace::default() };
    let mut first = 0;
    let contrasts = all.iter().map(|one| {
        let contrast = one.build_contrast(first);
        first += 2 * one.list_programs().len();
        contrast
    });
    let contrasts = contrasts.collect();
    Ok((Schedule::with_layouts(programs, pace, layouts), contrasts))
}
