//! Runs the probes of a snippet: programs that record a state in one of its copies.

use super::history::{self, StateHistory, StateReading};
use super::register_use::RegisterUse;
use crate::schedule::{BatchPace, PlannedLayout, Schedule, place_fixed};
use cyclescope_code::clock::Clock;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_code::program::{EntryState, Program, ProgramRecipe, WatchPoint, WatchedSnippet, WatchedState};
use cyclescope_core::error::RunError;
use cyclescope_exec::{Executor, PlacedProgram, ProgramCall, Sample};
use iced_x86::FlowControl;
use std::time::Duration;

/// Conditional branches of the first copy: more iterations than any register's initial value.
const FIRST_BRANCHES: i32 = 1 << 20;
/// A later copy may reach this multiple of the first copy's branches, and some more.
const MORE_BRANCHES: u64 = 4;
const SOME_BRANCHES: u64 = 64;
/// Processor time of all probes of a snippet.
const PROBE_DEADLINE: Duration = Duration::from_millis(300);
/// Calls after which the x87 stack of eight registers has overflowed.
const CALLS: u64 = 9;

/// Copies whose state is read. Shorter lists are for snippets that fail after some copies; `None`
/// after the shortest. Numbers that shrink need some thousand copies until they are denormal.
fn list_copies(point: &WatchPoint, attempt: usize, calls: bool) -> Option<Vec<u64>> {
    let has_flags = matches!(point.state, WatchedState::FloatFlags | WatchedState::StackStatus);
    let (late, far) = match point.state {
        _ if has_flags => (history::LATE.start..history::LATE.start + 1, history::FAR.start..history::FAR.start + 1),
        WatchedState::FloatResult(_) => (history::LATE, history::FAR),
        _ => (history::LATE, 0..0),
    };
    Some(match attempt {
        0 if calls => vec![CALLS],
        0 => (2..4).chain(late).chain(far).collect(),
        1 => (2..4).chain(late).collect(),
        2 => (2..CALLS).collect(),
        3 => vec![2],
        _ => return None,
    })
}

/// The values of the carried registers before a copy.
pub(super) fn list_entries(usage: &RegisterUse) -> impl Iterator<Item = WatchPoint> {
    usage.carried().map(|register| WatchPoint { instruction: 0, state: WatchedState::Entry(register) })
}

/// Whether the snippet calls code that is not its own.
pub(super) fn calls_out(watched: &WatchedSnippet) -> bool {
    watched.instructions().iter().any(|instruction| instruction.flow_control() == FlowControl::IndirectCall)
}

/// The probes of a snippet.
pub(super) struct SnippetProbe<'a> {
    executor: &'a mut dyn Executor,
    recipe: ProgramRecipe<'a>,
    watched: &'a WatchedSnippet,
    memory: &'a ProgramMemory,
}

impl<'a> SnippetProbe<'a> {
    pub(super) fn new(
        executor: &'a mut dyn Executor,
        watched: &'a WatchedSnippet,
        init: &'a [u8],
        clock: &'a Clock,
        world: EntryState,
        memory: &'a ProgramMemory,
    ) -> SnippetProbe<'a> {
        let watches_stack = watched.points().iter().any(|point| point.state == WatchedState::StackStatus);
        let world = EntryState { x87: world.x87 || watches_stack, ..world };
        let recipe = ProgramRecipe { world, init, ..ProgramRecipe::empty(clock) };
        SnippetProbe { executor, recipe, watched, memory }
    }

    /// Reads states in one copy.
    pub(super) fn read_copy(&mut self, points: &[WatchPoint], copy: u64) -> Result<Vec<StateHistory>, RunError> {
        self.read_states(points, FIRST_BRANCHES, |_| Some(vec![copy]))
    }

    /// Reads each watched state in the first copy and in later ones, as many as run.
    pub(super) fn read_histories(&mut self, usage: &RegisterUse) -> Result<Vec<StateHistory>, RunError> {
        let points: Vec<WatchPoint> = self.watched.points().iter().copied().chain(list_entries(usage)).collect();
        let mut histories = self.read_copy(&points, 1)?;
        let branches: u64 = histories.iter().map(StateHistory::first_branches).sum();
        let limit = (MORE_BRANCHES * branches + SOME_BRANCHES).min(FIRST_BRANCHES as u64) as i32;
        let points = self.watched.points();
        let calls = calls_out(self.watched);
        for attempt in 0.. {
            match self.read_states(points, limit, |point| list_copies(point, attempt, calls)) {
                Ok(later) => {
                    for (history, later) in histories.iter_mut().zip(later) {
                        history.extend_with(later);
                    }
                    break;
                }
                Err(error) if error.is_harness_failure() => return Err(error),
                Err(_) if list_copies(&points[0], attempt + 1, calls).is_none() => break,
                Err(_) => {}
            }
        }
        Ok(histories)
    }

    /// Reads the states in these copies. Each reading has fresh registers and memory. Empty if the
    /// programs can't be built or placed.
    fn read_states(
        &mut self,
        points: &[WatchPoint],
        branches: i32,
        copies: impl Fn(&WatchPoint) -> Option<Vec<u64>>,
    ) -> Result<Vec<StateHistory>, RunError> {
        let programs = points.iter().map(|point| self.recipe.build_probe(self.watched, point, branches));
        let Ok(programs) = programs.collect::<Result<Vec<Program>, _>>() else { return Ok(Vec::new()) };
        let copies: Vec<Vec<u64>> = points.iter().map(|point| copies(point).unwrap_or_default()).collect();
        let (places, end) = place_fixed(&programs);
        if end > self.executor.arena_len() {
            return Ok(Vec::new());
        }
        let in_place = |(place, copies): (&PlacedProgram, &Vec<u64>)| {
            let layout = |copies: &u64| {
                let call = ProgramCall { place: 0, loop_count: *copies };
                let data = vec![0; self.memory.areas.len()];
                PlannedLayout::with_calls_in_order(vec![*place], vec![call], 1).with_data(data)
            };
            copies.iter().map(layout).collect::<Vec<PlannedLayout>>()
        };
        let layouts = places.iter().zip(&copies).flat_map(in_place);
        let memory = self.memory.clone();
        let pace = BatchPace { warm_up: 0, rounds: 1, delay: 1, deadline: PROBE_DEADLINE, memory };
        let samples = Schedule::with_layouts(programs, pace, layouts).run(self.executor)?;
        let mut samples = samples.iter();
        let histories = points.iter().zip(copies).map(|(point, copies)| {
            let readings = copies.into_iter().zip(samples.by_ref());
            let reading = |(copy, sample): (u64, &Sample)| StateReading { copy, words: [sample.start, sample.end] };
            StateHistory::new(*point, readings.map(reading).collect())
        });
        Ok(histories.collect())
    }
}
