//! All external inputs of a study: readings of executors, the time, and other queries of the
//! machine.
//!
//! Answers are live, live and recorded as evidence, or replayed from evidence. A study that takes
//! all its inputs from here is deterministic over its evidence, so a replay computes the same
//! result.

use super::caveat::Caveat;
use super::container::{ContainerError, EvidenceContainer, EvidenceRecorder, StudyEvent, to_json_value};
use super::counter_check::CounterCheck;
use super::recording::{ExecutorFacts, RecordingExecutor};
use super::replaying::{RecordedAnswers, ReplayingExecutor};
use cyclescope_core::error::{Error, RunError};
use cyclescope_exec::{Executor, Sample};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::rc::Rc;

/// Source of the answers.
pub struct MachineAnswers {
    source: AnswerSource,
    /// The caveat of all results, if a counter and the ruler disagree.
    caveat: RefCell<Option<Caveat>>,
}

enum AnswerSource {
    Live,
    Recording(Rc<EvidenceRecorder>),
    Replaying(Rc<RecordedAnswers>),
}

impl MachineAnswers {
    /// This machine.
    pub fn live() -> MachineAnswers {
        MachineAnswers::from_source(AnswerSource::Live)
    }

    /// This machine, with every answer recorded.
    pub fn recording_to(evidence: Rc<EvidenceRecorder>) -> MachineAnswers {
        MachineAnswers::from_source(AnswerSource::Recording(evidence))
    }

    fn from_source(source: AnswerSource) -> MachineAnswers {
        MachineAnswers { source, caveat: RefCell::new(None) }
    }

    /// Answers from a container.
    ///
    /// # Errors
    ///
    /// If its readings are damaged.
    pub fn from_container(container: &EvidenceContainer) -> Result<MachineAnswers, ContainerError> {
        Ok(MachineAnswers::from_source(AnswerSource::Replaying(Rc::new(RecordedAnswers::new(container)?))))
    }

    /// Reports wrong evidence. A replay that fails here has not reached the end of its evidence.
    pub fn damage_error(&self, how: impl Into<String>) -> RunError {
        let error = RunError::Replay { how: how.into() };
        match &self.source {
            AnswerSource::Replaying(recorded) => recorded.end_with(error),
            _ => error,
        }
    }

    /// Whether every recorded answer has been given. Live answers never end.
    pub fn is_exhausted(&self) -> bool {
        match &self.source {
            AnswerSource::Replaying(recorded) => recorded.is_exhausted(),
            _ => false,
        }
    }

    /// What of the evidence is not what the study built or asked for, once its result is complete.
    /// Live answers do not differ.
    pub fn find_differences(&self) -> Vec<&'static str> {
        match &self.source {
            AnswerSource::Replaying(recorded) => recorded.find_differences(),
            _ => Vec::new(),
        }
    }

    /// The caveat of all results, if the counter of core cycles of an opened executor disagrees with
    /// the ruler.
    pub fn find_caveat(&self) -> Option<Caveat> {
        self.caveat.borrow().clone()
    }

    /// Keeps the caveat of an executor.
    fn note_check(&self, check: Option<CounterCheck>) {
        let found = check.and_then(|check| check.find_caveat());
        let mut caveat = self.caveat.borrow_mut();
        *caveat = found.or(caveat.take());
    }

    /// Returns an executor: a new one from `open`, or a replaying one if the answers are recorded.
    ///
    /// # Errors
    ///
    /// Those of `open`, or [`RunError::Replay`] if none was opened at this point.
    pub fn open_executor(
        &self,
        open: impl FnOnce() -> Result<Box<dyn Executor>, Error>,
    ) -> Result<Box<dyn Executor>, Error> {
        match &self.source {
            AnswerSource::Live => {
                let mut executor = open()?;
                self.note_check(CounterCheck::run(executor.as_mut())?);
                Ok(executor)
            }
            AnswerSource::Recording(evidence) => {
                let mut executor = open()?;
                let facts = self.ask_machine(|| ExecutorFacts::from_executor(executor.as_mut()))?;
                self.note_check(facts.counter);
                Ok(Box::new(RecordingExecutor::new(executor, evidence.clone())))
            }
            AnswerSource::Replaying(recorded) => {
                let facts: ExecutorFacts = self.ask_machine(|| Err::<_, Error>(unasked_error()))?;
                self.note_check(facts.counter);
                Ok(Box::new(ReplayingExecutor::new(recorded.clone(), facts)))
            }
        }
    }

    /// Returns the result of `ask`. Answers of executors inside `ask` are not recorded, because a
    /// replay does not call it.
    ///
    /// # Errors
    ///
    /// Those of `ask`, or [`RunError::Replay`] if nothing of this type was asked at this point.
    pub fn ask_machine<T: Serialize + DeserializeOwned, E: From<RunError>>(
        &self,
        ask: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        match &self.source {
            AnswerSource::Live => ask(),
            AnswerSource::Recording(evidence) => {
                let answer = evidence.without_recording(ask)?;
                // The study continues with the value that a replay will read, so both take the same
                // course.
                let of = to_json_value(&answer).map_err(|error| RunError::from_io("keeping an answer", &error))?;
                let read = T::deserialize(&of).map_err(|error| {
                    RunError::from_harness("reading back an answer", error.to_string(), "leave --evidence out")
                })?;
                evidence.write_with(|writer| writer.add_event(&StudyEvent::Kept { of }, &[]));
                Ok(read)
            }
            AnswerSource::Replaying(recorded) => {
                let (of, _) = recorded.next_readings(0)?;
                let damaged = |error: serde_json::Error| RunError::Replay { how: error.to_string() };
                T::deserialize(of).map_err(|error| recorded.end_with(damaged(error)).into())
            }
        }
    }

    /// Takes `count` readings of `what` from a source other than an executor.
    ///
    /// # Errors
    ///
    /// Those of `ask`, or [`RunError::Replay`] if other readings were taken at this point.
    pub fn take_readings(
        &self,
        what: serde_json::Value,
        count: usize,
        ask: impl FnOnce() -> Result<Vec<Sample>, RunError>,
    ) -> Result<Vec<Sample>, RunError> {
        match &self.source {
            AnswerSource::Live => ask(),
            AnswerSource::Recording(evidence) => {
                let samples = ask()?;
                evidence.write_with(|writer| writer.add_event(&StudyEvent::Kept { of: what }, &samples));
                Ok(samples)
            }
            AnswerSource::Replaying(recorded) => {
                let (of, samples) = recorded.next_readings(count)?;
                match of == what && samples.len() == count {
                    true => Ok(samples),
                    false => {
                        let how = format!("the study asked for {count} readings of {what}, not for {of}");
                        Err(recorded.end_with(RunError::Replay { how }))
                    }
                }
            }
        }
    }
}

/// Never returned: recorded answers do not ask the machine.
fn unasked_error() -> Error {
    RunError::Replay { how: "nothing is asked of the machine".to_string() }.into()
}
