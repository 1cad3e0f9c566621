//! Whether copies of a snippet do the same work: the first copy of a sample finds the state of
//! entry, and each later one what the previous copy left.
//!
//! `rep movsb` leaves RCX = 0, so all copies but the first copy nothing, and their cost is not that
//! of the first. The check reads the states that the cost depends on
//! ([`WatchedState`](cyclescope_code::program::WatchedState)) in the first copies and in later
//! ones. It compares states, never times, so it is exact on a busy machine too.
//!
//! Functions are compared by the instructions that their calls execute, see `call_paths`, and by the
//! time of their calls, see `first_calls`.
//!
//! Each run of a cold start begins with the registers of entry, so only calls are compared then:
//! what a function leaves in memory stays from run to run.
//!
//! Its limits: it runs in user mode only. What a snippet leaves in memory between the runs of a cold
//! start is not compared.

mod added_area;
mod call_counts;
mod call_paths;
mod finding;
mod first_calls;
mod history;
mod register_use;
mod remedy;
mod snippet_probe;
mod state_judgement;

pub use finding::UnsteadyState;

use call_paths::{PathVerdict, compare_call_paths};
use cyclescope_code::clock::Clock;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_code::program::{EntryState, INSTRUCTIONS_MOST, WatchPoint, WatchedSnippet};
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::RunError;
use cyclescope_exec::{Executor, PrivilegeRing, TimingOrigin};
use finding::Judge;
use first_calls::{TimeVerdict, compare_first_calls, compare_late_calls};
use register_use::RegisterUse;
use snippet_probe::{SnippetProbe, calls_out, list_entries};

/// What the check says of a snippet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SteadinessReport {
    /// The states that the first copy uses up.
    pub states: Vec<UnsteadyState>,
    /// What was not compared, and why, of a function's calls.
    pub unchecked: Option<String>,
}

impl SteadinessReport {
    fn with_states(states: Vec<UnsteadyState>) -> SteadinessReport {
        SteadinessReport { states, unchecked: None }
    }

    /// Whether the calls of a function take longer and longer.
    pub(super) fn grows(&self) -> bool {
        self.states.iter().any(|state| state.grows)
    }

    fn unchecked(reason: String) -> SteadinessReport {
        SteadinessReport { states: Vec::new(), unchecked: Some(reason) }
    }
}

/// Finds the states that the first copy of a snippet uses up, so that later copies do other work.
///
/// # Errors
///
/// If the executor fails. A snippet that fails is left to the measurement.
pub fn find_unsteady_states(
    executor: &mut dyn Executor,
    snippet: &Snippet,
    clock: &Clock,
    world: EntryState,
    memory: &ProgramMemory,
) -> Result<SteadinessReport, RunError> {
    if !runs_probes(executor) {
        return Ok(SteadinessReport::default());
    }
    let Some(watched) = WatchedSnippet::from_code(snippet.code(), snippet.mode()) else {
        return Ok(SteadinessReport::default());
    };
    if watched.points().is_empty() {
        return Ok(SteadinessReport::default());
    }
    let usage = RegisterUse::from_code(watched.instructions(), snippet.init(), snippet.mode());
    let mut probe = SnippetProbe::new(executor, &watched, snippet.init(), clock, world, memory);
    let states = match probe.read_histories(&usage) {
        Ok(histories) => Judge::new(&watched, &usage, &histories, snippet.init()).find_states(),
        Err(error) if error.is_harness_failure() => return Err(error),
        // A function that takes too long is reported below.
        Err(RunError::Hung { .. }) if calls_out(&watched) => Vec::new(),
        Err(_) => return Ok(SteadinessReport::default()),
    };
    if !states.is_empty() || !calls_out(&watched) {
        return Ok(SteadinessReport::with_states(states));
    }
    compare_calls(executor, snippet, clock, world, memory)
}

/// Finds the states that the first call of a function uses up, if the snippet calls one.
///
/// # Errors
///
/// If the executor fails.
pub fn find_unsteady_calls(
    executor: &mut dyn Executor,
    snippet: &Snippet,
    clock: &Clock,
    world: EntryState,
    memory: &ProgramMemory,
) -> Result<SteadinessReport, RunError> {
    match WatchedSnippet::from_code(snippet.code(), snippet.mode()).is_some_and(|watched| calls_out(&watched)) {
        true if runs_probes(executor) => compare_calls(executor, snippet, clock, world, memory),
        _ => Ok(SteadinessReport::default()),
    }
}

fn compare_calls(
    executor: &mut dyn Executor,
    snippet: &Snippet,
    clock: &Clock,
    world: EntryState,
    memory: &ProgramMemory,
) -> Result<SteadinessReport, RunError> {
    if !snippet.mode().is_default() {
        return Ok(SteadinessReport::unchecked("calls of 32-bit code can't be compared".to_string()));
    }
    let found = match compare_call_paths(executor, snippet, clock, world, memory)? {
        PathVerdict::Other(state) => return Ok(SteadinessReport::with_states(vec![state])),
        PathVerdict::TooLong => {
            let reason = "two calls take more than 2 s of processor time".to_string();
            return Ok(SteadinessReport::unchecked(reason));
        }
        PathVerdict::Unknown => None,
        PathVerdict::Same { instructions, is_complete } => Some((instructions, is_complete)),
    };
    let mut times = compare_first_calls(executor, snippet, clock, world, memory)?;
    if let Some((instructions, _)) = found
        && !matches!(times, TimeVerdict::Other(_))
    {
        times = compare_late_calls(executor, snippet, clock, world, memory, instructions)?;
    }
    Ok(match (times, found) {
        (TimeVerdict::Other(state), _) => {
            let counts = match found {
                Some(_) => "The counts of instructions are the same",
                None => "Only times were compared, because the code can't be followed",
            };
            let state = UnsteadyState { text: format!("{}. {counts}", state.text), ..state };
            SteadinessReport::with_states(vec![state])
        }
        (_, Some((_, true))) | (TimeVerdict::Same, None) => SteadinessReport::default(),
        (_, Some((_, false))) => SteadinessReport::unchecked(format!(
            "part of the code that it executes can't be counted: it is not readable, or beyond {INSTRUCTIONS_MOST} \
             instructions"
        )),
        (TimeVerdict::Unknown, None) => {
            let reason = "its code can't be followed, and its first calls can't be timed alike".to_string();
            SteadinessReport::unchecked(reason)
        }
    })
}

/// Explains a fault of the measurement, if the first copy of the snippet succeeds and the second
/// one faults.
///
/// # Errors
///
/// If the executor fails.
pub fn explain_fault(
    executor: &mut dyn Executor,
    snippet: &Snippet,
    clock: &Clock,
    world: EntryState,
    memory: &ProgramMemory,
) -> Result<Option<UnsteadyState>, RunError> {
    let Some(watched) = WatchedSnippet::from_code(snippet.code(), snippet.mode()).filter(|_| runs_probes(executor))
    else {
        return Ok(None);
    };
    let usage = RegisterUse::from_code(watched.instructions(), snippet.init(), snippet.mode());
    let points: Vec<WatchPoint> = list_entries(&usage).collect();
    if points.is_empty() || calls_out(&watched) {
        return Ok(None);
    }
    let mut probe = SnippetProbe::new(executor, &watched, snippet.init(), clock, world, memory);
    let mut read = |copy| match probe.read_copy(&points, copy) {
        Err(error) if error.is_harness_failure() => Err(error),
        read => Ok(read),
    };
    let Ok(histories) = read(1)? else { return Ok(None) };
    let fails = matches!(read(2)?, Err(RunError::Fault { .. }));
    Ok(fails.then(|| Judge::new(&watched, &usage, &histories, snippet.init()).describe_failure()))
}

/// Whether an executor runs code in user mode, so that it returns what a probe records.
fn runs_probes(executor: &dyn Executor) -> bool {
    let capabilities = executor.capabilities();
    capabilities.timing != TimingOrigin::Simulated && capabilities.ring == PrivilegeRing::Three
}
