//! The interface of every study: select → plan → measure → judge → record.
//!
//! Selecting and planning make a value, the study. [`Study::plan`] returns all inputs of the study
//! except the answers of the machine. [`Study::measure`] asks for these answers, judges them, and
//! reports each [`ResultRecord`] once it is complete. Judgements and records follow from the plan
//! and the answers alone: a study reads no clock, no file and no machine without
//! [`MachineAnswers`]. So all studies share the code for evidence, replay, progress, JSON and
//! result files: the command line's `session/driver.rs` and `session/replay_study.rs`.

use crate::result::answers::MachineAnswers;
use crate::result::caveat::Caveat;
use crate::result::container::{ContainerError, EvidenceContainer};
use crate::result::record::SchemaLine;
use cyclescope_core::error::{Error, RunError, Unavailable};
use cyclescope_exec::LockState;
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::io;
use std::ops::ControlFlow;

/// A question that takes many measurements, with everything needed to answer it.
pub trait Study {
    /// Name of its command, also used in manifests.
    fn name(&self) -> &'static str;

    /// All inputs of the study except the answers of the machine, as written in the manifest.
    ///
    /// # Errors
    ///
    /// If it can't be written as JSON.
    fn plan(&self) -> io::Result<Value>;

    /// Restores the study whose plan a container holds.
    ///
    /// # Errors
    ///
    /// If this version could not have made the plan.
    fn restore(container: &EvidenceContainer) -> Result<Self, ContainerError>
    where
        Self: Sized;

    /// Measures, judges, and reports each record as soon as it is complete.
    ///
    /// # Errors
    ///
    /// [`StopReason::Requested`] if the follower stopped the study.
    fn measure(&mut self, answers: &MachineAnswers, follow: &mut dyn StudyFollower) -> Result<(), StopReason>;

    /// State of the CPU's lock, if an executor took one.
    fn lock_state(&self) -> Option<&LockState> {
        None
    }
}

/// A line of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultRecord {
    /// Kind of the record, such as `run`.
    pub kind: &'static str,
    /// The JSON object, schema and kind included, without a line break.
    pub line: String,
    /// Role of the line in the result.
    pub role: RecordRole,
}

/// Role of a line in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordRole {
    /// A part measured now: a result file takes it.
    Part,
    /// A summary of all parts. A result file omits it, since further parts may follow.
    Sum,
    /// A part that the result file already has.
    Resumed,
}

impl ResultRecord {
    /// A part measured now.
    ///
    /// # Panics
    ///
    /// If its content is not plain data.
    pub fn new<T: Serialize>(kind: &'static str, content: &T) -> ResultRecord {
        let line = serde_json::to_string(&SchemaLine::new(kind, content)).expect("records are plain data");
        ResultRecord { kind, line, role: RecordRole::Part }
    }

    /// The same line with the caveat of all results, if the answers have one.
    pub fn with_caveat_of(self, answers: &MachineAnswers) -> ResultRecord {
        match answers.find_caveat() {
            Some(caveat) => self.with_caveat(&caveat),
            None => self,
        }
    }

    /// The same line with a caveat of all results. A line that has one of its kind keeps that, and a
    /// machine or a failure has none.
    ///
    /// # Panics
    ///
    /// Never: records are JSON objects.
    fn with_caveat(self, caveat: &Caveat) -> ResultRecord {
        if matches!(self.kind, "machine" | "error") {
            return self;
        }
        let mut line: Value = serde_json::from_str(&self.line).expect("records are JSON");
        let own = serde_json::to_value(caveat).expect("a caveat is plain data");
        let known = line["caveats"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let has_kind = known.iter().any(|known| known["code"] == own["code"]);
        line["caveats"] = known.into_iter().chain((!has_kind).then_some(own)).collect();
        ResultRecord { line: line.to_string(), ..self }
    }

    /// A part from the result file, with the fields that it has there.
    ///
    /// # Panics
    ///
    /// Never: the fields are plain data.
    pub fn from_resumed_line(kind: &'static str, line: &Value) -> ResultRecord {
        let mut fields = line.as_object().cloned().unwrap_or_default();
        // The new line adds these two itself.
        fields.retain(|name, _| name != "schema" && name != "kind");
        ResultRecord { role: RecordRole::Resumed, ..ResultRecord::new(kind, &fields) }
    }
}

/// Progress of a study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyProgress {
    /// Finished work.
    pub done: u64,
    /// All work, in the same unit.
    pub total: u64,
    /// The current step, or how much is complete, in a few words.
    pub message: String,
}

impl StudyProgress {
    /// Progress of a study whose work has no unit: its share, from 0 to 1.
    pub fn from_share(share: f64, message: impl Into<String>) -> StudyProgress {
        const PARTS: f64 = 1000.0;
        let done = (share.clamp(0.0, 1.0) * PARTS) as u64;
        StudyProgress { done, total: PARTS as u64, message: message.into() }
    }
}

/// Receives the records and the progress of a study. `Break` stops the study.
pub trait StudyFollower {
    /// Called when a line of the result is complete.
    fn accept_record(&mut self, record: ResultRecord) -> ControlFlow<()>;

    /// Called as the study proceeds.
    fn report_progress(&mut self, _progress: StudyProgress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Called with part of an unfinished record; a resumed study continues after it. `part` formats
    /// it as a line of JSON; call it only to keep the line, since it takes time.
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
    /// The follower stopped the study.
    Requested,
    /// The study failed.
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
            StopReason::Requested => f.write_str("the study was stopped early"),
            StopReason::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StopReason {}

/// Converts a follower's answer to a result.
pub fn check_stop(flow: ControlFlow<()>) -> Result<(), StopReason> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(StopReason::Requested),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::caveat::CaveatKind;
    use serde_json::json;

    #[test]
    fn a_caveat_of_all_results_is_in_each_line_once() {
        let caveat = |code, text: &str| Caveat { code, text: text.to_string() };
        let of_all = caveat(CaveatKind::RulersDisagree, "the counter");
        let caveats = |kind, content: &Value| {
            let record = ResultRecord::new(kind, content).with_caveat(&of_all);
            let line: Value = serde_json::from_str(&record.line).expect("JSON");
            assert_eq!((line["kind"].as_str(), &line["a"]), (Some(kind), &content["a"]));
            line["caveats"].clone()
        };
        assert_eq!(caveats("row", &json!({"a": 1})), json!([of_all]));
        let own = caveat(CaveatKind::Noisy, "own");
        assert_eq!(caveats("row", &json!({"a": 1, "caveats": [own]})), json!([own, of_all]));
        let same = caveat(CaveatKind::RulersDisagree, "own");
        assert_eq!(caveats("row", &json!({"a": 1, "caveats": [same]})), json!([same]));
        assert!(caveats("machine", &json!({"a": 1})).is_null());
    }
}
