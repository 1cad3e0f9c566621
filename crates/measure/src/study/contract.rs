//! What every study is: select → plan → measure → judge → record.
//!
//! Selecting and planning make a value, the study. [`Study::plan`] returns all its inputs beside the answers of the
//! machine. [`Study::measure`] asks for these answers, judges them, and reports each [`Record`] as soon as it is complete.
//! Judgements and records follow from plan and answers alone: a study reads no clock, no file and no machine without
//! [`Answers`]. So evidence, replay, progress, JSON and result files are the same code for all studies:
//! `super::replay` and the command line's driver.

use crate::result::answers::Answers;
use crate::result::container::{Container, ContainerError};
use crate::result::record::Line;
use cyclescope_core::error::{Error, RunError, Unavailable};
use cyclescope_exec::LockState;
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::io;
use std::ops::ControlFlow;

/// A question that takes many measurements, with all that it takes to answer it.
pub trait Study {
    /// Its name: of its command, and in manifests.
    fn name(&self) -> &'static str;

    /// All inputs of the study beside the answers of the machine, as the manifest has them.
    ///
    /// # Errors
    ///
    /// Where it can't be written as JSON.
    fn plan(&self) -> io::Result<Value>;

    /// The study whose plan a container holds.
    ///
    /// # Errors
    ///
    /// Where the plan is not one that this version makes.
    fn restore(container: &Container) -> Result<Self, ContainerError>
    where
        Self: Sized;

    /// Measures, judges, and reports each record as soon as it is complete.
    ///
    /// # Errors
    ///
    /// [`Stop::Asked`] where whoever follows has ended it.
    fn measure(&mut self, answers: &Answers, follow: &mut dyn Follow) -> Result<(), Stop>;

    /// How the lock of the CPU was found, where an executor had one.
    fn lock_state(&self) -> Option<&LockState> {
        None
    }
}

/// A line of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its kind.
    pub kind: &'static str,
    /// The JSON object, schema and kind included, without a line break.
    pub line: String,
    /// What it is to the result.
    pub role: Role,
}

/// What a line is to a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A part of it, found now: a result file takes it.
    Part,
    /// What all parts come to: a result file may have further parts, so that it does not belong there.
    Sum,
    /// A part that the result file has already.
    Resumed,
}

impl Record {
    /// A part that was found now.
    ///
    /// # Panics
    ///
    /// If its content is not plain data.
    pub fn new<T: Serialize>(kind: &'static str, content: &T) -> Record {
        let line = serde_json::to_string(&Line::new(kind, content)).expect("records are plain data");
        Record { kind, line, role: Role::Part }
    }

    /// A part that the result file has, from the fields that it has there.
    ///
    /// # Panics
    ///
    /// Never: the fields are plain data.
    pub fn resumed(kind: &'static str, line: &Value) -> Record {
        let mut fields = line.as_object().cloned().unwrap_or_default();
        // These the new line has itself.
        fields.retain(|name, _| name != "schema" && name != "kind");
        Record { role: Role::Resumed, ..Record::new(kind, &fields) }
    }
}

/// How far a study has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The work that is done.
    pub done: u64,
    /// All work, in the same unit.
    pub total: u64,
    /// What is being done, or how much is complete, in a few words.
    pub message: String,
}

impl Progress {
    /// Of a study whose work has no unit: its share, from 0 to 1.
    pub fn share(share: f64, message: impl Into<String>) -> Progress {
        const PARTS: f64 = 1000.0;
        let done = (share.clamp(0.0, 1.0) * PARTS) as u64;
        Progress { done, total: PARTS as u64, message: message.into() }
    }
}

/// Whoever follows a study. `Break` ends it.
pub trait Follow {
    /// A line of the result is complete.
    fn record(&mut self, record: Record) -> ControlFlow<()>;

    /// The study goes on.
    fn progress(&mut self, _progress: Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Part of a record to come, from which a study can be resumed; `part` writes it as a line of JSON, which takes time
    /// that is spent only where it is kept.
    fn part(&mut self, _part: &dyn Fn() -> String) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Collects the lines of a result.
impl Follow for Vec<Record> {
    fn record(&mut self, record: Record) -> ControlFlow<()> {
        self.push(record);
        ControlFlow::Continue(())
    }
}

/// Why a study ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// Whoever follows has ended it.
    Asked,
    /// It can't go on.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

impl From<RunError> for Stop {
    fn from(error: RunError) -> Stop {
        Stop::Failed(error.into())
    }
}

impl From<Unavailable> for Stop {
    fn from(error: Unavailable) -> Stop {
        Stop::Failed(error.into())
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Asked => f.write_str("the study was ended early"),
            Stop::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Stop {}

/// Turns what a follower says into an end.
pub fn going(flow: ControlFlow<()>) -> Result<(), Stop> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Stop::Asked),
    }
}
