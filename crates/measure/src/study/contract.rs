//! What every study is: select → plan → measure → judge → record.
//!
//! Selecting and planning make a value, the study. [`Study::plan`] returns all its inputs beside the answers of the
//! machine. [`Study::measure`] asks for these answers, judges them, and reports each [`ResultRecord`] as soon as it is complete.
//! Judgements and records follow from plan and answers alone: a study reads no clock, no file and no machine without
//! [`MachineAnswers`]. So evidence, replay, progress, JSON and result files are the same code for all studies:
//! `super::replay` and the command line's driver.

use crate::result::answers::MachineAnswers;
use crate::result::container::{ContainerError, EvidenceContainer};
use crate::result::record::SchemaLine;
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
    fn restore(container: &EvidenceContainer) -> Result<Self, ContainerError>
    where
        Self: Sized;

    /// Measures, judges, and reports each record as soon as it is complete.
    ///
    /// # Errors
    ///
    /// [`StopReason::Requested`] where whoever follows has ended it.
    fn measure(&mut self, answers: &MachineAnswers, follow: &mut dyn StudyFollower) -> Result<(), StopReason>;

    /// How the lock of the CPU was found, where an executor had one.
    fn lock_state(&self) -> Option<&LockState> {
        None
    }
}

/// A line of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultRecord {
    /// Its kind.
    pub kind: &'static str,
    /// The JSON object, schema and kind included, without a line break.
    pub line: String,
    /// What it is to the result.
    pub role: RecordRole,
}

/// What a line is to a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordRole {
    /// A part of it, found now: a result file takes it.
    Part,
    /// What all parts come to: a result file may have further parts, so that it does not belong there.
    Sum,
    /// A part that the result file has already.
    Resumed,
}

impl ResultRecord {
    /// A part that was found now.
    ///
    /// # Panics
    ///
    /// If its content is not plain data.
    pub fn new<T: Serialize>(kind: &'static str, content: &T) -> ResultRecord {
        let line = serde_json::to_string(&SchemaLine::new(kind, content)).expect("records are plain data");
        ResultRecord { kind, line, role: RecordRole::Part }
    }

    /// A part that the result file has, from the fields that it has there.
    ///
    /// # Panics
    ///
    /// Never: the fields are plain data.
    pub fn from_resumed_line(kind: &'static str, line: &Value) -> ResultRecord {
        let mut fields = line.as_object().cloned().unwrap_or_default();
        // These the new line has itself.
        fields.retain(|name, _| name != "schema" && name != "kind");
        ResultRecord { role: RecordRole::Resumed, ..ResultRecord::new(kind, &fields) }
    }
}

/// How far a study has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyProgress {
    /// The work that is done.
    pub done: u64,
    /// All work, in the same unit.
    pub total: u64,
    /// What is being done, or how much is complete, in a few words.
    pub message: String,
}

impl StudyProgress {
    /// Of a study whose work has no unit: its share, from 0 to 1.
    pub fn from_share(share: f64, message: impl Into<String>) -> StudyProgress {
        const PARTS: f64 = 1000.0;
        let done = (share.clamp(0.0, 1.0) * PARTS) as u64;
        StudyProgress { done, total: PARTS as u64, message: message.into() }
    }
}

/// Whoever follows a study. `Break` ends it.
pub trait StudyFollower {
    /// A line of the result is complete.
    fn accept_record(&mut self, record: ResultRecord) -> ControlFlow<()>;

    /// The study goes on.
    fn report_progress(&mut self, _progress: StudyProgress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Part of a record to come, from which a study can be resumed; `part` writes it as a line of JSON, which takes time
    /// that is spent only where it is kept.
    fn save_part(&mut self, _part: &dyn Fn() -> String) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Collects the lines of a result.
impl StudyFollower for Vec<ResultRecord> {
    fn accept_record(&mut self, record: ResultRecord) -> ControlFlow<()> {
        self.push(record);
        ControlFlow::Continue(())
    }
}

/// Why a study ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// Whoever follows has ended it.
    Requested,
    /// It can't go on.
    Failed(Error),
}

impl From<Error> for StopReason {
    fn from(error: Error) -> StopReason {
        StopReason::Failed(error)
    }
}

impl From<RunError> for StopReason {
    fn from(error: RunError) -> StopReason {
        StopReason::Failed(error.into())
    }
}

impl From<Unavailable> for StopReason {
    fn from(error: Unavailable) -> StopReason {
        StopReason::Failed(error.into())
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StopReason::Requested => f.write_str("the study was ended early"),
            StopReason::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StopReason {}

/// Turns what a follower says into an end.
pub fn check_stop(flow: ControlFlow<()>) -> Result<(), StopReason> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(StopReason::Requested),
    }
}
