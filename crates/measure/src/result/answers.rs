//! All external inputs of a study: executors' readings, the time, and other queries of the machine.
//!
//! Answers are live, live and recorded as evidence, or replayed from evidence. A study that takes all inputs from here
//! is deterministic over its evidence, and computes the same result again.

use super::container::{Container, ContainerError, Event, Evidence, plain};
use super::recording::{ExecutorFacts, Recording};
use super::replaying::{Recorded, Replaying};
use cyclescope_core::error::{Error, RunError};
use cyclescope_exec::{Executor, Sample};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::rc::Rc;

/// Source of the answers.
pub struct Answers(Source);

enum Source {
    Live,
    Kept(Rc<Evidence>),
    Recorded(Rc<Recorded>),
}

impl Answers {
    /// This machine.
    pub fn live() -> Answers {
        Answers(Source::Live)
    }

    /// This machine, with every answer recorded.
    pub fn kept(evidence: Rc<Evidence>) -> Answers {
        Answers(Source::Kept(evidence))
    }

    /// Answers from a container.
    ///
    /// # Errors
    ///
    /// If its readings are damaged.
    pub fn recorded(container: &Container) -> Result<Answers, ContainerError> {
        Ok(Answers(Source::Recorded(Rc::new(Recorded::new(container)?))))
    }

    /// An error in what was answered: a replay that meets it has not come to the end of its evidence.
    pub fn damaged(&self, how: impl Into<String>) -> RunError {
        let error = RunError::Replay { how: how.into() };
        match &self.0 {
            Source::Recorded(recorded) => recorded.end(error),
            _ => error,
        }
    }

    /// Whether every recorded answer has been given; live ones have no end.
    pub fn is_exhausted(&self) -> bool {
        match &self.0 {
            Source::Recorded(recorded) => recorded.is_exhausted(),
            _ => false,
        }
    }

    /// An executor, which is opened unless the answers are recorded.
    ///
    /// # Errors
    ///
    /// Those of `open`, or [`RunError::Replay`] where none was opened at this point.
    pub fn executor(
        &self,
        open: impl FnOnce() -> Result<Box<dyn Executor>, Error>,
    ) -> Result<Box<dyn Executor>, Error> {
        match &self.0 {
            Source::Live => open(),
            Source::Kept(evidence) => {
                let executor = open()?;
                self.get(|| Ok::<_, Error>(ExecutorFacts::of(executor.as_ref())))?;
                Ok(Box::new(Recording::new(executor, evidence.clone())))
            }
            Source::Recorded(recorded) => {
                let facts: ExecutorFacts = self.get(|| Err::<_, Error>(unasked()))?;
                Ok(Box::new(Replaying::new(recorded.clone(), facts)))
            }
        }
    }

    /// The result of `ask`. Answers of executors inside `ask` are not recorded, because a replay does not call it.
    ///
    /// # Errors
    ///
    /// Those of `ask`, or [`RunError::Replay`] where nothing of this type was asked at this point.
    pub fn get<T: Serialize + DeserializeOwned, E: From<RunError>>(
        &self,
        ask: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        match &self.0 {
            Source::Live => ask(),
            Source::Kept(evidence) => {
                let answer = evidence.aside(ask)?;
                // The study goes on with what a replay will read, so that both take the same course.
                let of = plain(&answer).map_err(|error| RunError::io("keeping an answer", &error))?;
                let read = T::deserialize(&of).map_err(|error| {
                    RunError::machinery("reading back an answer", error.to_string(), "leave --evidence out")
                })?;
                evidence.keep(|writer| writer.event(&Event::Kept { of }, &[]));
                Ok(read)
            }
            Source::Recorded(recorded) => {
                let (of, _) = recorded.kept(0)?;
                let damaged = |error: serde_json::Error| RunError::Replay { how: error.to_string() };
                T::deserialize(of).map_err(|error| recorded.end(damaged(error)).into())
            }
        }
    }

    /// The readings of something that is no executor: `count` of them, of `what`.
    ///
    /// # Errors
    ///
    /// Those of `ask`, or [`RunError::Replay`] where other readings were taken at this point.
    pub fn readings(
        &self,
        what: serde_json::Value,
        count: usize,
        ask: impl FnOnce() -> Result<Vec<Sample>, RunError>,
    ) -> Result<Vec<Sample>, RunError> {
        match &self.0 {
            Source::Live => ask(),
            Source::Kept(evidence) => {
                let samples = ask()?;
                evidence.keep(|writer| writer.event(&Event::Kept { of: what }, &samples));
                Ok(samples)
            }
            Source::Recorded(recorded) => {
                let (of, samples) = recorded.kept(count)?;
                match of == what && samples.len() == count {
                    true => Ok(samples),
                    false => {
                        let how = format!("the study asked for {count} readings of {what}, not for {of}");
                        Err(recorded.end(RunError::Replay { how }))
                    }
                }
            }
        }
    }
}

/// Never returned: recorded answers are not asked for.
fn unasked() -> Error {
    RunError::Replay { how: "nothing is asked of the machine".to_string() }.into()
}
