//! Whether the first call of a function, on fresh memory, takes another time than the second, which
//! finds what the first one left there: a sorted array, say.
//!
//! For functions whose code can't be followed (`call_paths`), so times are compared. Both calls find the
//! same caches: all of the buffer and the top of the stack are written to just before. The quarters
//! of repeated times have to be apart, so that no interrupt makes them differ.
//!
//! Its limits: it sees only differences by half and by some hundred cycles, and no larger buffers
//! than [`BUFFER_MOST`].

use super::finding::UnsteadyState;
use crate::schedule::{BatchPace, PlannedLayout, Schedule, place_fixed};
use cyclescope_code::asm::parse_assembly;
use cyclescope_code::clock::Clock;
use cyclescope_code::program::memory::{PointerPosition, ProgramMemory, StoreLifetime};
use cyclescope_code::program::{EntryState, ProgramRecipe};
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::RunError;
use cyclescope_core::statistics::quartiles;
use cyclescope_exec::{Executor, ProgramCall};
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
/// Processor time of all calls. A function that takes longer is not compared.
const CALLS_DEADLINE: Duration = Duration::from_millis(300);

/// Compares the first call with the second. `None` if they take about the same time, or if they
/// can't be compared.
pub(super) fn compare_first_calls(
    executor: &mut dyn Executor,
    snippet: &Snippet,
    clock: &Clock,
    world: EntryState,
    memory: &ProgramMemory,
) -> Result<Option<UnsteadyState>, RunError> {
    let Some(touch) = touching_code(memory) else { return Ok(None) };
    let init = [snippet.init(), &touch].concat();
    let init_after_call = [snippet.init(), snippet.code(), &touch].concat();
    let programs = [&init, &init_after_call].map(|init| {
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
        Err(_) => return Ok(None),
        Ok(samples) => samples,
    };
    let times = |first: usize| {
        let calls = samples.iter().skip(first).step_by(2).skip(TRAINING_CALLS);
        calls.flat_map(|layout| layout.column(0)).collect::<Vec<f64>>()
    };
    Ok(judge_times(times(0), times(1)))
}

/// Code that writes to each line of the buffer and of the stack's top, and changes no contents.
/// `None` if no buffer like a function's exists, or if it is too large.
fn touching_code(memory: &ProgramMemory) -> Option<Vec<u8>> {
    let buffer = memory.areas.iter().find(|area| {
        area.pointer.is_some_and(|pointer| pointer.register == 14 && pointer.at == PointerPosition::Start)
    })?;
    if buffer.bytes > BUFFER_MOST || buffer.lifetime != StoreLifetime::Fresh {
        return None;
    }
    let text = format!(
        "mov rax, r14; lea rcx, [r14 + {}]; 1: or dword ptr [rax], 0; add rax, 64; cmp rax, rcx; jb 1b; \
         lea rax, [rsp - {STACK_BYTES}]; 2: or dword ptr [rax], 0; add rax, 64; cmp rax, rsp; jb 2b",
        buffer.bytes
    );
    Some(parse_assembly(&text).ok()?.bytes().to_vec())
}

/// Compares times of first and second calls in raw units.
fn judge_times(mut first: Vec<f64>, mut second: Vec<f64>) -> Option<UnsteadyState> {
    if first.len().min(second.len()) < TIMES_LEAST {
        return None;
    }
    let [first, second] = [quartiles(&mut first), quartiles(&mut second)];
    let is_longer = |[low, ..]: [f64; 3], [.., high]: [f64; 3]| low > LONGER * high + LONGER_UNITS;
    let (longer, other, ratio) = match () {
        () if is_longer(first, second) => ("first", "second", first[1] / second[1]),
        () if is_longer(second, first) => ("second", "first", second[1] / first[1]),
        () => return None,
    };
    Some(UnsteadyState {
        text: format!(
            "the {longer} call after a fresh start takes {ratio:.1} times as long as the {other}: the first finds \
             fresh contents of the buffer, and later ones what it leaves there. Times were compared, because the \
             code can't be followed"
        ),
        remedy: "prepare each call with --setup, or take the cost as that of further calls".to_string(),
        is_refused: false,
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
