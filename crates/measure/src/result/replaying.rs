//! A replaying executor: it returns the recorded readings of each batch.
//!
//! A batch that differs from the recorded one means that the evidence was written by another version, or by a study
//! whose decisions do not follow from recorded answers. That is an error, never a number. A request past the last
//! recorded answer is an error too.

use super::container::{BatchEvent, Container, ContainerError, Event, Events, digest};
use super::recording::ExecutorFacts;
use cyclescope_code::context::AREA_REGISTERS;
use cyclescope_code::program::memory::STANDARD_BYTES;
use cyclescope_core::error::{RunError, interned};
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::fact::Fact;
use cyclescope_core::machine::given::GivenMachine;
use cyclescope_core::machine::tsc::GivenTsc;
use cyclescope_core::unit::Hertz;
use cyclescope_exec::{Batch, Capabilities, CounterProgress, CycleCounter, Executor, Room, Sample};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// Answers from a container.
pub(super) struct Replaying {
    facts: ExecutorFacts,
    capabilities: Capabilities,
    machine: Machine,
    recorded: Rc<Recorded>,
}

/// The answers of a container, in the order in which they were given, to whomever asks.
pub(super) struct Recorded(RefCell<State>);

/// Reason of the error for a request past the last recorded answer.
const ENDS: &str = "the recording ends here";

struct State {
    events: Events,
    /// The time that was told last.
    now: Duration,
    /// Why no further answer can be given.
    ended: Option<RunError>,
}

impl State {
    /// The next event, with `most` readings at most.
    fn next(&mut self, most: usize) -> Result<(Event, Vec<Sample>), RunError> {
        if let Some(error) = &self.ended {
            return Err(error.clone());
        }
        match self.events.take(most) {
            Ok(Some(next)) => Ok(next),
            Ok(None) => Err(RunError::Replay { how: ENDS.to_string() }),
            Err(error) => Err(RunError::Replay { how: error.to_string() }),
        }
    }
}

fn different(what: &str) -> RunError {
    RunError::Replay { how: format!("the study asked for {what}") }
}

impl Recorded {
    /// Opens the answers of a container.
    pub(super) fn new(container: &Container) -> Result<Recorded, ContainerError> {
        let state = State { events: container.events()?, now: Duration::ZERO, ended: None };
        Ok(Recorded(RefCell::new(state)))
    }

    /// Gives no further answer, for this reason.
    pub(super) fn end(&self, error: RunError) -> RunError {
        self.0.borrow_mut().ended.get_or_insert(error).clone()
    }

    /// Whether every answer has been given; false where an answer is damaged or belongs to another request.
    pub(super) fn is_exhausted(&self) -> bool {
        let state = self.0.borrow();
        let ends = |error: &RunError| matches!(error, RunError::Replay { how } if how == ENDS);
        state.events.are_over() && state.ended.as_ref().is_none_or(ends)
    }

    /// The recorded readings, `most` at most.
    pub(super) fn kept(&self, most: usize) -> Result<(serde_json::Value, Vec<Sample>), RunError> {
        let next = self.0.borrow_mut().next(most);
        let kept = next.and_then(|(event, samples)| match event {
            Event::Kept { of } => Ok((of, samples)),
            _ => Err(different("something where a batch or the time was recorded")),
        });
        kept.map_err(|error| self.end(error))
    }

    /// The recorded batch, where it is the one that is asked for.
    fn batch(&self, batch: &Batch) -> Result<(BatchEvent, Vec<Sample>), RunError> {
        let own = digest(batch).map_err(|error| RunError::Replay { how: error.to_string() })?;
        let readings = batch.layouts.len() * batch.rounds as usize * batch.calls();
        let next = self.0.borrow_mut().next(readings);
        let result = next.and_then(|(event, samples)| match event {
            Event::Batch(event) if event.digest == own => match event.error {
                None if samples.len() != readings => Err(RunError::Replay {
                    how: format!("a batch of {readings} readings has {}", samples.len()),
                }),
                _ => Ok((*event, samples)),
            },
            Event::Batch(_) => Err(different("another batch than the recorded one")),
            _ => Err(different("a batch where none was recorded")),
        });
        result.map_err(|error| self.end(error))
    }

    /// The recorded time.
    fn now(&self) -> Duration {
        let mut state = self.0.borrow_mut();
        match state.next(0) {
            Ok((Event::Time { ns }, _)) => state.now = Duration::from_nanos(ns),
            // The next batch will fail: this has no way to.
            Ok(_) => {
                let how = "the study asked for the time where it did not before".to_string();
                state.ended.get_or_insert(RunError::Replay { how });
            }
            Err(error) => {
                state.ended.get_or_insert(error);
            }
        }
        state.now
    }
}

/// Capabilities of the recorded executor. All that it ran has worked, so nothing is lacking.
fn capabilities(facts: &ExecutorFacts) -> Capabilities {
    let areas = vec![STANDARD_BYTES as usize; AREA_REGISTERS.len()];
    Capabilities {
        executor: interned(&facts.name),
        ring: facts.ring,
        timing: facts.timing,
        library: Ok(()),
        control_registers: Ok(()),
        cycle_counter: CycleCounter::Offered,
        aperf: Fact::Known(facts.before.progress.is_some()),
        room: Fact::Known(Room { arena: facts.arena_len, areas }),
    }
}

impl Replaying {
    /// The executor with these facts, one of those whose answers are recorded.
    pub(super) fn new(recorded: Rc<Recorded>, facts: ExecutorFacts) -> Replaying {
        let capabilities = capabilities(&facts);
        // Nothing may be read from the machine that replays. What a study needs to know of the recorded one is in its
        // plan, or is asked for like readings.
        let tsc = GivenTsc { rate: Hertz(1e9), step: 1.0 };
        let machine = GivenMachine { tsc, imul_latency: None }.into();
        Replaying { facts, capabilities, machine, recorded }
    }
}

impl Executor for Replaying {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn arena_len(&self) -> usize {
        self.facts.arena_len
    }

    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        let (event, samples) = self.recorded.batch(batch)?;
        self.facts.before = event.after;
        // In pieces of whole layouts, as executors do.
        let layout = (batch.rounds as usize * batch.calls()).max(1);
        samples.chunks_exact(layout).for_each(take);
        event.error.map_or(Ok(()), Err)
    }

    fn exclusive(&self) -> Fact<bool> {
        self.facts.before.exclusive.clone()
    }

    fn progress(&self) -> Option<CounterProgress> {
        self.facts.before.progress
    }

    fn changed(&self) -> Vec<&'static str> {
        self.facts.before.changed.iter().map(|changed| interned(changed)).collect()
    }

    fn pause(&mut self, _time: Duration) {}

    fn now(&self) -> Duration {
        self.recorded.now()
    }
}
