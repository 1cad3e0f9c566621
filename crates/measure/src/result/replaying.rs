//! A replaying executor: returns the recorded readings of each batch.
//!
//! If a batch differs from the recorded one, another version wrote the evidence, or the study's
//! decisions do not follow from recorded answers. That is an error and never gives a number. A
//! request past the last recorded answer is an error too.

use super::container::{
    BatchEvent, BatchFacts, BatchLog, ContainerError, ContainerEvents, ContainerPart, ContentDigest, EvidenceContainer,
    StudyEvent,
};
use super::recording::{ExecutorFacts, MemoryReading};
use cyclescope_code::asm::parse_hex;
use cyclescope_code::context::AREA_REGISTERS;
use cyclescope_code::program::memory::STANDARD_AREA_BYTES;
use cyclescope_core::error::{RunError, intern_text};
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::fact::Fact;
use cyclescope_core::machine::machine_parameters::MachineParameters;
use cyclescope_core::machine::tsc::TscParameters;
use cyclescope_core::unit::Hertz;
use cyclescope_exec::{Batch, Capabilities, CounterAvailability, CounterProgress, Executor, ExecutorMemory, Sample};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

/// Answers from a container.
pub(super) struct ReplayingExecutor {
    facts: ExecutorFacts,
    capabilities: Capabilities,
    machine: Machine,
    recorded: Rc<RecordedAnswers>,
}

/// The answers of a container in recorded order, shared by all executors.
pub(super) struct RecordedAnswers(RefCell<ReplayState>);

/// Reason of the error for a request past the last recorded answer.
const RECORDING_ENDS: &str = "the recording ends here";

struct ReplayState {
    events: ContainerEvents,
    rebuilt: RebuiltBatches,
    /// The time given last.
    now: Duration,
    /// Why no further answer can be given.
    ended: Option<RunError>,
}

/// The programs and layouts that the study builds again, compared with the recorded ones at the
/// end.
struct RebuiltBatches {
    log: BatchLog,
    /// Digests of the programs and of the layouts: as recorded, and as built so far.
    parts: [(ContainerPart, String, ContentDigest); 2],
}

impl RebuiltBatches {
    fn new(container: &EvidenceContainer) -> RebuiltBatches {
        let parts = [ContainerPart::Programs, ContainerPart::Layouts]
            .map(|part| (part, container.content_digest(part).to_string(), ContentDigest::default()));
        RebuiltBatches { log: BatchLog::default(), parts }
    }

    /// Describes a batch as it was recorded.
    fn add_batch(&mut self, batch: &Batch) -> io::Result<BatchFacts> {
        let RebuiltBatches { log, parts } = self;
        log.add_batch(batch, &mut |part, line| {
            let same_part = parts.iter_mut().filter(|(own, ..)| *own == part);
            same_part.for_each(|(_, _, digest)| digest.add_bytes(line));
            Ok(())
        })
    }

    /// The parts that differ from the recorded ones, if all batches have been built.
    fn differing_parts(&self) -> impl Iterator<Item = ContainerPart> {
        self.parts.iter().filter(|(_, recorded, built)| *recorded != built.to_hex()).map(|(part, ..)| *part)
    }
}

impl ReplayState {
    /// Takes the next event, with at most `most` readings.
    fn next_event(&mut self, most: usize) -> Result<(StudyEvent, Vec<Sample>), RunError> {
        if let Some(error) = &self.ended {
            return Err(error.clone());
        }
        match self.events.take_event(most) {
            Ok(Some(next)) => Ok(next),
            Ok(None) => Err(RunError::Replay { how: RECORDING_ENDS.to_string() }),
            Err(error) => Err(RunError::Replay { how: error.to_string() }),
        }
    }
}

fn mismatch_error(what: &str) -> RunError {
    RunError::Replay { how: format!("the study asked for {what}") }
}

impl RecordedAnswers {
    /// Opens the answers of a container.
    pub(super) fn new(container: &EvidenceContainer) -> Result<RecordedAnswers, ContainerError> {
        let (events, rebuilt) = (container.events()?, RebuiltBatches::new(container));
        let state = ReplayState { events, rebuilt, now: Duration::ZERO, ended: None };
        Ok(RecordedAnswers(RefCell::new(state)))
    }

    /// Gives no further answer, for this reason.
    pub(super) fn end_with(&self, error: RunError) -> RunError {
        self.0.borrow_mut().ended.get_or_insert(error).clone()
    }

    /// Whether every answer has been given; false if an answer is damaged or belongs to another
    /// request.
    pub(super) fn is_exhausted(&self) -> bool {
        let state = self.0.borrow();
        let ends = |error: &RunError| matches!(error, RunError::Replay { how } if how == RECORDING_ENDS);
        state.events.is_exhausted() && state.ended.as_ref().is_none_or(ends)
    }

    /// What of the evidence is not what the study built or asked for, once its result is complete.
    pub(super) fn find_differences(&self) -> Vec<&'static str> {
        let more = (!self.is_exhausted()).then_some("the evidence has more readings");
        let state = self.0.borrow();
        let parts = state.rebuilt.differing_parts().map(|part| match part {
            ContainerPart::Programs => "the recorded programs are not those of the study",
            _ => "the recorded layouts are not those of the study",
        });
        more.into_iter().chain(parts).collect()
    }

    /// Takes recorded readings, at most `most`.
    pub(super) fn next_readings(&self, most: usize) -> Result<(serde_json::Value, Vec<Sample>), RunError> {
        let next = self.0.borrow_mut().next_event(most);
        let kept = next.and_then(|(event, samples)| match event {
            StudyEvent::Kept { of } => Ok((of, samples)),
            _ => Err(mismatch_error("something where a batch or the time was recorded")),
        });
        kept.map_err(|error| self.end_with(error))
    }

    /// Takes the recorded batch, if it equals the requested one.
    fn next_batch(&self, batch: &Batch) -> Result<(BatchEvent, Vec<Sample>), RunError> {
        let readings = batch.layouts.len() * batch.samples_per_layout();
        let next = self.0.borrow_mut().next_event(readings);
        let result = next.and_then(|(event, samples)| {
            let rebuilt = self.0.borrow_mut().rebuilt.add_batch(batch);
            let own = rebuilt.map_err(|error| RunError::Replay { how: error.to_string() })?;
            match event {
                StudyEvent::Batch(event) if event.batch == own => match event.error {
                    None if samples.len() != readings => {
                        Err(RunError::Replay { how: format!("a batch of {readings} readings has {}", samples.len()) })
                    }
                    _ => Ok((*event, samples)),
                },
                StudyEvent::Batch(_) => Err(mismatch_error("another batch than the recorded one")),
                _ => Err(mismatch_error("a batch where none was recorded")),
            }
        });
        result.map_err(|error| self.end_with(error))
    }

    /// Takes the recorded time.
    fn next_time(&self) -> Duration {
        let mut state = self.0.borrow_mut();
        match state.next_event(0) {
            Ok((StudyEvent::Time { ns }, _)) => state.now = Duration::from_nanos(ns),
            // The next batch reports the error, since this function cannot fail.
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

/// Capabilities of the recorded executor. All that it ran has worked, so it lacks nothing.
fn recorded_capabilities(facts: &ExecutorFacts) -> Capabilities {
    let areas = vec![STANDARD_AREA_BYTES as usize; AREA_REGISTERS.len()];
    Capabilities {
        executor: intern_text(&facts.name),
        ring: facts.ring,
        timing: facts.timing,
        library: Ok(()),
        narrow_code: Ok(()),
        control_registers: Ok(()),
        cycle_counter: CounterAvailability::Offered,
        aperf: Fact::Known(facts.before.progress.is_some()),
        room: Fact::Known(ExecutorMemory { arena: facts.arena_len, areas }),
    }
}

impl ReplayingExecutor {
    /// Creates an executor with these facts, which shares the recorded answers.
    pub(super) fn new(recorded: Rc<RecordedAnswers>, facts: ExecutorFacts) -> ReplayingExecutor {
        let capabilities = recorded_capabilities(&facts);
        // A replay reads nothing from its own machine. What a study needs to know of the recorded
        // machine is in its plan, or is recorded like readings.
        let tsc = TscParameters { rate: Hertz(1e9), step: 1.0 };
        let machine = MachineParameters { tsc, imul_latency: None }.into();
        ReplayingExecutor { facts, capabilities, machine, recorded }
    }
}

impl Executor for ReplayingExecutor {
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
        let (event, samples) = self.recorded.next_batch(batch)?;
        self.facts.before = event.after;
        // In pieces of whole layouts, as executors do.
        let layout = batch.samples_per_layout().max(1);
        samples.chunks_exact(layout).for_each(take);
        event.error.map_or(Ok(()), Err)
    }

    fn read_memory(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        let (of, _) = self.recorded.next_readings(0).ok()?;
        let how = match serde_json::from_value::<MemoryReading>(of) {
            Ok(read) if read.address == address => match read.bytes.as_deref().map(parse_hex)? {
                Ok(read) if read.len() == bytes => return Some(read),
                _ => format!("the memory at {address:#x} is damaged"),
            },
            Ok(read) => format!("the study read memory at {address:#x}, not at {:#x}", read.address),
            Err(error) => error.to_string(),
        };
        self.recorded.end_with(RunError::Replay { how });
        None
    }

    fn had_exclusive_cpu(&self) -> Fact<bool> {
        self.facts.before.exclusive.clone()
    }

    fn counter_progress(&self) -> Option<CounterProgress> {
        self.facts.before.progress
    }

    fn restored_state(&self) -> Vec<&'static str> {
        self.facts.before.changed.iter().map(|changed| intern_text(changed)).collect()
    }

    fn pause(&mut self, _time: Duration) {}

    fn now(&self) -> Duration {
        self.recorded.next_time()
    }
}
