//! Whether the calls of a function take another time than its first ones, which find another state:
//! a second witness if the counts of instructions are alike (`call_paths`), and the only one if the
//! code can't be followed.
//!
//! The first call on fresh memory is compared with the second, which finds what the first one left
//! there: a sorted array, say. Both calls find the same caches: all of the buffer and the top of the
//! stack are written to just before, and the code has just been called, for the first call on another
//! buffer with the same contents. Otherwise a program on the sibling that takes the caches would look
//! like a difference. The quarters of repeated times have to be apart, so that no interrupt makes them
//! differ.
//!
//! Calls of a new process are compared with calls some thousand later, which find what the function
//! keeps, such as a table that has grown. Early calls may be slower, since predictors and caches
//! learn; only later ones that are slower are a difference. All of several processes have to show it.
//!
//! Its limits: it sees only differences by half and by some hundred cycles, and compares first calls
//! on no larger buffers than [`BUFFER_MOST`].

use super::added_area::add_area;
use super::finding::UnsteadyState;
use super::remedy::advise_preparation;
use crate::schedule::{BatchPace, PlannedLayout, Schedule, place_fixed};
use cyclescope_code::asm::parse_assembly;
use cyclescope_code::clock::Clock;
use cyclescope_code::program::memory::{MemoryArea, PointerPosition, ProgramMemory, StoreLifetime};
use cyclescope_code::program::{EntryState, LoopPlan, ProgramRecipe};
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::RunError;
use cyclescope_core::statistics::{median, quartiles};
use cyclescope_exec::{Executor, ProgramCall};
use std::ops::Range;
use std::time::Duration;

/// Bytes of the largest buffer, as large as the second-level caches of common cores.
const BUFFER_MOST: u64 = 1 << 20;
/// Bytes of the stack that a function usually needs.
const STACK_BYTES: u64 = 64 << 10;
/// Times of each of the two calls. The first ones train predictors.
const CALLS: usize = 12;
const TRAINING_CALLS: usize = 4;
/// Fewest times that have quartiles.
const TIMES_LEAST: usize = 4;
/// The longer call takes this multiple of the other, and so many raw units more.
const LONGER: f64 = 1.5;
const LONGER_UNITS: f64 = 500.0;
/// New processes that are compared, calls timed in each early and late, and the calls between them:
/// as many as execute so many instructions, and no more than this.
const PROCESSES: usize = 4;
const TIMED_CALLS: usize = 8;
const CALLS_BETWEEN: u64 = 16_384;
const INSTRUCTIONS_BETWEEN: u64 = 1 << 22;
/// Processor time of all calls. A function that takes longer is not compared.
const CALLS_DEADLINE: Duration = Duration::from_millis(300);

/// What times of calls say.
#[derive(Debug)]
pub(super) enum TimeVerdict {
    /// They are about the same.
    Same,
    /// They are not.
    Other(UnsteadyState),
    /// The times can't be compared.
    Unknown,
}

/// Compares the first call with the second.
pub(super) fn compare_first_calls(
    executor: &mut dyn Executor,
    snippet: &Snippet,
    clock: &Clock,
    world: EntryState,
    memory: &ProgramMemory,
) -> Result<TimeVerdict, RunError> {
    let Some(buffer) = find_buffer(memory) else { return Ok(TimeVerdict::Unknown) };
    let Some((other, memory)) = add_area(memory, buffer.clone()) else { return Ok(TimeVerdict::Unknown) };
    let (init, call) = (snippet.init(), snippet.code());
    let touch = touching_code(buffer.bytes);
    // R14 points to the buffer. Two words keep the stack aligned.
    let to_other = parse_code(&format!("push r14; push r14; mov r14, {other:?}"));
    let back = parse_code("pop r14; pop r14");
    let before_first = [&to_other, init, call, &back, init, &touch].concat();
    let before_second = [init, call, &touch].concat();
    let programs = [&before_first, &before_second].map(|init| {
        let recipe = ProgramRecipe { world, init, snippet: snippet.code(), copies: 1, ..ProgramRecipe::empty(clock) };
        recipe.build()
    });
    let (places, _) = place_fixed(&programs);
    let layouts = (0..2 * CALLS).map(|number| {
        let call = ProgramCall { place: 0, loop_count: 1 };
        let layout = PlannedLayout::with_calls_in_order(vec![places[number % 2]], vec![call], 1 + number as u64);
        layout.with_data(vec![0; memory.areas.len()])
    });
    let pace = BatchPace { warm_up: 0, deadline: CALLS_DEADLINE, memory: memory.clone(), ..BatchPace::default() };
    let samples = match Schedule::with_layouts(programs.into(), pace, layouts).measure(executor) {
        Err(error) if error.is_harness_failure() => return Err(error),
        Err(_) => return Ok(TimeVerdict::Unknown),
        Ok(samples) => samples,
    };
    let times = |first: usize| {
        let calls = samples.iter().skip(first).step_by(2).skip(TRAINING_CALLS);
        calls.flat_map(|layout| layout.column(0)).collect::<Vec<f64>>()
    };
    Ok(judge_times(times(0), times(1)).map_or(TimeVerdict::Same, TimeVerdict::Other))
}

/// Compares early calls in new processes with late ones, if a call executes this number of
/// instructions.
pub(super) fn compare_late_calls(
    executor: &mut dyn Executor,
    snippet: &Snippet,
    clock: &Clock,
    world: EntryState,
    memory: &ProgramMemory,
    instructions: u64,
) -> Result<TimeVerdict, RunError> {
    let between = CALLS_BETWEEN.min(INSTRUCTIONS_BETWEEN / instructions.max(1));
    if between == 0 {
        return Ok(TimeVerdict::Unknown);
    }
    let recipe = ProgramRecipe { world, init: snippet.init(), ..ProgramRecipe::empty(clock) };
    let timed = ProgramRecipe { snippet: snippet.code(), copies: 1, ..recipe };
    let programs = [timed, ProgramRecipe { looped: Some(LoopPlan::PLAIN), ..timed }].map(|recipe| recipe.build());
    let (places, _) = place_fixed(&programs);
    let call = |place, loop_count| ProgramCall { place, loop_count };
    let mut calls = vec![call(0, 1); TIMED_CALLS];
    calls.push(call(1, between));
    calls.extend([call(0, 1); TIMED_CALLS]);
    let layout = PlannedLayout::with_calls_in_order(places, calls, 1).with_data(vec![0; memory.areas.len()]);
    let pace = BatchPace { warm_up: 0, deadline: CALLS_DEADLINE, memory: memory.clone(), ..BatchPace::default() };
    let schedule = Schedule::with_layouts(programs.into(), pace, [layout]);
    let mut ratios = Vec::new();
    for _ in 0..PROCESSES {
        executor.renew_process();
        let samples = match schedule.measure(executor) {
            Err(error) if error.is_harness_failure() => return Err(error),
            Err(_) => return Ok(TimeVerdict::Unknown),
            Ok(samples) => samples,
        };
        let Some(samples) = samples.first() else { return Ok(TimeVerdict::Unknown) };
        let shortest = |calls: Range<usize>| calls.flat_map(|call| samples.column(call)).fold(f64::INFINITY, f64::min);
        // The first call of a process finds no page.
        let [early, late] = [1..TIMED_CALLS, TIMED_CALLS + 1..2 * TIMED_CALLS + 1].map(shortest);
        if !is_longer(late, early) {
            return Ok(TimeVerdict::Same);
        }
        ratios.push(late / early);
    }
    let ratio = median(&mut ratios);
    let call = between + TIMED_CALLS as u64 + 1;
    Ok(TimeVerdict::Other(UnsteadyState {
        text: format!(
            "calls from number {call} after a fresh start on take {ratio:.1} times as long as the first ones, in each of \
             {PROCESSES} processes: the function keeps state"
        ),
        remedy: advise_preparation("that of further calls"),
        ..UnsteadyState::default()
    }))
}

/// Whether a time is longer than another one, by so much that no cause but the function's is likely.
fn is_longer(time: f64, other: f64) -> bool {
    time.is_finite() && time > LONGER * other + LONGER_UNITS
}

/// The buffer of a function, which programs find in its initial state. `None` if it is too large.
fn find_buffer(memory: &ProgramMemory) -> Option<&MemoryArea> {
    let buffer = memory.areas.iter().find(|area| {
        area.pointer.is_some_and(|pointer| pointer.register == 14 && pointer.at == PointerPosition::Start)
    })?;
    (buffer.bytes <= BUFFER_MOST && buffer.lifetime == StoreLifetime::Fresh).then_some(buffer)
}

/// Code that writes to each line of a buffer of this size and of the stack's top, and changes no
/// contents.
fn touching_code(bytes: u64) -> Vec<u8> {
    parse_code(&format!(
        "mov rax, r14; lea rcx, [r14 + {bytes}]; 1: or dword ptr [rax], 0; add rax, 64; cmp rax, rcx; jb 1b; \
         lea rax, [rsp - {STACK_BYTES}]; 2: or dword ptr [rax], 0; add rax, 64; cmp rax, rsp; jb 2b"
    ))
}

/// Assembly of this file.
fn parse_code(text: &str) -> Vec<u8> {
    parse_assembly(text).expect("it is valid").bytes().to_vec()
}

/// Compares times of first and second calls in raw units.
fn judge_times(mut first: Vec<f64>, mut second: Vec<f64>) -> Option<UnsteadyState> {
    if first.len().min(second.len()) < TIMES_LEAST {
        return None;
    }
    let [first, second] = [quartiles(&mut first), quartiles(&mut second)];
    let is_apart = |[low, ..]: [f64; 3], [.., high]: [f64; 3]| is_longer(low, high);
    let (longer, other, ratio) = match () {
        () if is_apart(first, second) => ("first", "second", first[1] / second[1]),
        () if is_apart(second, first) => ("second", "first", second[1] / first[1]),
        () => return None,
    };
    Some(UnsteadyState {
        text: format!(
            "the {longer} call after a fresh start takes {ratio:.1} times as long as the {other}: the first finds \
             fresh contents of the buffer, and later ones what it leaves there"
        ),
        remedy: advise_preparation("that of further calls"),
        ..UnsteadyState::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_differ_if_their_quarters_are_apart() {
        let text = |first: [f64; 4], second: [f64; 4]| judge_times(first.into(), second.into()).map(|state| state.text);
        assert!(text([9000.0, 9100.0, 9200.0, 50_000.0], [1000.0; 4]).unwrap().starts_with("the first call"));
        assert!(text([1000.0; 4], [9000.0; 4]).unwrap().starts_with("the second call"));
        // A quarter of the times is disturbed; the calls are short; they differ by a third.
        assert_eq!(text([1000.0, 1000.0, 1000.0, 9000.0], [1000.0; 4]), None);
        assert_eq!(text([500.0; 4], [100.0; 4]), None);
        assert_eq!(text([13_000.0; 4], [10_000.0; 4]), None);
    }
}
