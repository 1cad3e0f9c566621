//! Whether later calls of a function execute other instructions than the first one, on fresh memory
//! in a new process: a sort finds a sorted array from the second call on.
//!
//! A copy of the function counts how often each of its blocks runs, and how often each branch goes
//! each way ([`ProgramRecipe::build_counted_call`]). Counts are compared, never times, so the answer
//! is exact on a busy machine too. Of the numbers that an instruction's time depends on, it compares
//! the quotients of integer divisions, whether results of floating-point divisions and square roots
//! are short, and whether any number is denormal. State that leaves all these alone, such as a result
//! in memory, is no difference.
//!
//! Its limits: code that is reached in other ways than by calls and branches, as by unwinding, is
//! not followed. Addresses are not compared. Of vectors only the lowest element is.

use super::added_area::add_area;
use super::call_counts::{CallCounts, EARLY_CALLS, find_others, judge_growth, judge_numbers};
use super::finding::UnsteadyState;
use super::remedy::advise_preparation;
use crate::schedule::{BatchPace, PlannedLayout, Schedule, place_fixed};
use cyclescope_code::clock::Clock;
use cyclescope_code::program::memory::{AreaFill, MemoryArea, PagePresence, ProgramMemory};
use cyclescope_code::program::{
    COUNTERS_BYTES, CountComparison, CountedCall, DivisionCount, EntryState, FunctionCall, FunctionCode,
    FunctionCounters, LoopPlan, Program, ProgramRecipe,
};
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::RunError;
use cyclescope_exec::{Executor, ProgramCall, Sample};
use iced_x86::Register;
use std::collections::BTreeSet;
use std::time::Duration;

/// Late calls that are compared at once.
const LATE_CALLS: usize = 4;
/// Calls that are not counted before late ones are, and the most instructions of a first call for
/// which they are made.
const UNCOUNTED_CALLS: [(u64, u64); 3] = [(32, 1 << 20), (1000, 1 << 14), (16_384, 1 << 10)];
/// Calls that are not counted before those that show whether instructions grow with each call.
const GROWING_CALLS: [(u64, u64); 2] = [UNCOUNTED_CALLS[0], UNCOUNTED_CALLS[1]];
/// Processor time of all calls of a program.
const CALLS_DEADLINE: Duration = Duration::from_millis(300);
/// The same for a function that takes too long for that. Only two of its calls are compared.
const PAIR_DEADLINE: Duration = Duration::from_secs(2);
/// Most times that the code is read again because calls reached further code.
const DISCOVERIES_MOST: usize = 12;
const PAIR_DISCOVERIES_MOST: usize = 3;

/// What the calls of a function have in common.
#[derive(Debug)]
pub(super) enum PathVerdict {
    /// They execute the same instructions.
    Same {
        /// Instructions of the first call.
        instructions: u64,
        /// Whether all executed code was counted.
        is_complete: bool,
    },
    /// They do not.
    Other(UnsteadyState),
    /// The function takes too long to be called twice.
    TooLong,
    /// The code can't be followed.
    Unknown,
}

/// A step of a series of calls: calls that are not counted, or counted ones.
#[derive(Debug, Clone, Copy)]
enum CallStep {
    Uncounted(u64),
    Counted(usize),
}

/// A series of calls after a fresh start. The first call is counted in any case.
struct CallSeries<'a> {
    executor: &'a mut dyn Executor,
    recipe: ProgramRecipe<'a>,
    snippet: &'a Snippet,
    call: FunctionCall<'a>,
    memory: ProgramMemory,
    /// The register that points to the counters.
    register: Register,
    /// Whether only the first two calls are compared.
    is_pair: bool,
}

/// The programs that count calls of a function: the first call, a later one, four comparisons of
/// both, and calls that are not counted.
struct CountingPrograms {
    programs: Vec<Program>,
    counters: FunctionCounters,
}

/// The counts of a series, and targets of branches that were not followed.
struct SeriesCounts {
    calls: Vec<CallCounts>,
    targets: BTreeSet<u64>,
}

/// Compares the first call of the function with later ones.
pub(super) fn compare_call_paths(
    executor: &mut dyn Executor,
    snippet: &Snippet,
    clock: &Clock,
    world: EntryState,
    memory: &ProgramMemory,
) -> Result<PathVerdict, RunError> {
    let Some(call) = FunctionCall::from_code(snippet.code(), snippet.init()) else { return Ok(PathVerdict::Unknown) };
    let Some((register, memory)) = add_counters(memory) else { return Ok(PathVerdict::Unknown) };
    let recipe = ProgramRecipe { world, init: snippet.init(), ..ProgramRecipe::empty(clock) };
    let mut series = CallSeries { executor, recipe, snippet, call, memory, register, is_pair: false };
    let mut compared = series.compare();
    if matches!(compared, Err(RunError::Hung { .. })) {
        series.is_pair = true;
        compared = series.compare();
    }
    match compared {
        Err(error) if error.is_harness_failure() => Err(error),
        Err(RunError::Hung { .. }) => Ok(PathVerdict::TooLong),
        Err(_) => Ok(PathVerdict::Unknown),
        Ok(verdict) => Ok(verdict),
    }
}

/// Adds the area of the counters, to which a free register points.
fn add_counters(memory: &ProgramMemory) -> Option<(Register, ProgramMemory)> {
    let area = MemoryArea::new(COUNTERS_BYTES, AreaFill::Bytes(vec![0]));
    add_area(memory, MemoryArea { present: PagePresence::Everywhere, ..area })
}

impl CallSeries<'_> {
    fn compare(&mut self) -> Result<PathVerdict, RunError> {
        let mut targets = BTreeSet::new();
        let mut followed = None;
        let (early_calls, discoveries) =
            if self.is_pair { (1, PAIR_DISCOVERIES_MOST) } else { (EARLY_CALLS, DISCOVERIES_MOST) };
        for _ in 0..discoveries {
            let starts: Vec<u64> = targets.iter().copied().collect();
            let executor = &*self.executor;
            let read = &mut |address, bytes| executor.read_memory(address, bytes);
            let Some(code) = FunctionCode::discover(self.call.function, &starts, read) else {
                return Ok(PathVerdict::Unknown);
            };
            let Some(programs) = self.build_programs(&code) else { return Ok(PathVerdict::Unknown) };
            let counts = self.count(&programs, &[CallStep::Counted(early_calls)])?;
            let known = targets.len();
            targets.extend(&counts.targets);
            followed = Some((programs, counts));
            if targets.len() == known {
                break;
            }
        }
        let Some((programs, early)) = followed else { return Ok(PathVerdict::Unknown) };
        if let Some(state) = self.judge(&early.calls, &programs.counters) {
            let growing = self.find_growth(&programs, &early.calls)?;
            return Ok(PathVerdict::Other(growing.unwrap_or(state)));
        }
        let instructions = early.calls.first().map_or(0, |counts| counts.first);
        let mut is_complete = early.targets.is_empty();
        for (calls, most) in UNCOUNTED_CALLS {
            if instructions > most || self.is_pair {
                break;
            }
            let steps = [CallStep::Uncounted(calls), CallStep::Counted(LATE_CALLS)];
            let late = self.count(&programs, &steps)?;
            if let Some(state) = self.judge(&late.calls, &programs.counters) {
                let growing = self.find_growth(&programs, &early.calls)?;
                return Ok(PathVerdict::Other(growing.unwrap_or(state)));
            }
            is_complete &= late.targets.is_empty();
        }
        Ok(PathVerdict::Same { instructions, is_complete })
    }

    /// Finds out whether calls execute ever more instructions, as those of a function do that adds
    /// to a list and walks through it.
    fn find_growth(
        &mut self,
        programs: &CountingPrograms,
        early: &[CallCounts],
    ) -> Result<Option<UnsteadyState>, RunError> {
        let mut groups = vec![early.to_vec()];
        for (calls, most) in GROWING_CALLS {
            let last = groups.last().and_then(|group| group.last()).map_or(0, |counts| counts.own);
            if self.is_pair || last > most {
                break;
            }
            match self.count(programs, &[CallStep::Uncounted(calls), CallStep::Counted(LATE_CALLS)]) {
                Ok(late) => groups.push(late.calls),
                // The calls before show the growth.
                Err(RunError::Hung { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(judge_growth(&groups))
    }

    /// Builds the programs. `None` if they can't be built or placed.
    fn build_programs(&self, code: &FunctionCode) -> Option<CountingPrograms> {
        let CallSeries { recipe, register, .. } = *self;
        let counters = FunctionCounters::from_code(code)?;
        let counted = |which| recipe.build_counted_call(&self.call, code, &counters, which, register).ok();
        let compared = |comparison| recipe.build_count_comparison(&counters, comparison, register);
        let looped = Some(LoopPlan::PLAIN);
        let uncounted = ProgramRecipe { snippet: self.snippet.code(), copies: 1, looped, ..recipe };
        let programs = vec![
            counted(CountedCall::First)?,
            counted(CountedCall::Later)?,
            compared(CountComparison::Later),
            compared(CountComparison::Divisions),
            compared(CountComparison::FloatDivisions),
            compared(CountComparison::First),
            uncounted.build(),
        ];
        let (_, end) = place_fixed(&programs);
        (end <= self.executor.arena_len()).then_some(CountingPrograms { programs, counters })
    }

    /// Counts the first call and those of the steps.
    fn count(&mut self, programs: &CountingPrograms, steps: &[CallStep]) -> Result<SeriesCounts, RunError> {
        let [first, later, compared, divisions, floats, compared_first, uncounted] = [0, 1, 2, 3, 4, 5, 6];
        let programs = &programs.programs;
        let (places, _) = place_fixed(programs);
        let once = |place| ProgramCall { place, loop_count: 1 };
        let mut calls = vec![once(first)];
        let mut numbers = Vec::new();
        let mut number = 1;
        for step in steps {
            match *step {
                CallStep::Uncounted(count) => {
                    calls.push(ProgramCall { place: uncounted, loop_count: count });
                    number += count;
                }
                CallStep::Counted(count) => {
                    for _ in 0..count {
                        number += 1;
                        numbers.push((calls.len(), number));
                        calls.extend([later, compared, divisions, floats, compared_first].map(once));
                    }
                }
            }
        }
        let data = vec![0; self.memory.areas.len()];
        let layout = PlannedLayout::with_calls_in_order(places, calls, 1).with_data(data);
        let memory = self.memory.clone();
        let deadline = if self.is_pair { PAIR_DEADLINE } else { CALLS_DEADLINE };
        let pace = BatchPace { warm_up: 0, rounds: 1, delay: 1, deadline, memory };
        // What earlier calls changed in the library would be found by the first one.
        self.executor.renew_process();
        let samples = Schedule::with_layouts(programs.clone(), pace, [layout]).run(self.executor)?;
        let words = |at: usize| samples.get(at).copied().unwrap_or_default();
        let counts = numbers.iter().map(|(at, call)| {
            let [first_call, own_call, compared, divisions, floats, compared_first] =
                [0, *at, at + 1, at + 2, at + 3, at + 4].map(words);
            let Sample { start: unlike, end: own } = compared;
            let Sample { start: counter, end: first } = compared_first;
            let [divisions, float_divisions] =
                [divisions, floats].map(|sample| [sample.start, sample.end].map(DivisionCount::from_word));
            let denormal = [first_call.end != 0, own_call.end != 0];
            CallCounts { call: *call, unlike, first, own, counter, divisions, float_divisions, denormal }
        });
        let ends = numbers.iter().map(|(at, _)| *at).chain([0]);
        let targets = ends.map(|at| words(at).start).filter(|target| *target != 0);
        Ok(SeriesCounts { calls: counts.collect(), targets: targets.collect() })
    }

    fn judge(&self, calls: &[CallCounts], counters: &FunctionCounters) -> Option<UnsteadyState> {
        self.judge_instructions(calls, counters).or_else(|| judge_numbers(calls))
    }

    fn judge_instructions(&self, calls: &[CallCounts], counters: &FunctionCounters) -> Option<UnsteadyState> {
        let others = find_others(calls, CallCounts::is_other)?;
        let shown = *others.last()?;
        let place = counters.place(shown.counter).unwrap_or(self.call.function);
        let distance = place.wrapping_sub(self.call.function) as i64;
        let sign = if distance < 0 { "-" } else { "+" };
        let place = format!("{sign}{:#x}", distance.unsigned_abs());
        let CallCounts { call, first, own, .. } = *shown;
        let (which, cost) = match others.len() == calls.len() {
            true => ("later ones differ".to_string(), "that of further calls"),
            false => (format!("{} of {} later ones differ", others.len(), calls.len()), "the mean of such calls"),
        };
        let counts = match first == own {
            true => format!("other instructions than call {call}, {first} in each"),
            false => format!("{first} instructions, and call {call} executes {own}"),
        };
        let text = format!(
            "the first call after a fresh start executes {counts}; {which}, most at {place} from the function's start"
        );
        Some(UnsteadyState { text, remedy: advise_preparation(cost), ..UnsteadyState::default() })
    }
}
