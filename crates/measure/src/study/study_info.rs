//! Facts about a study before it is created.

use super::contract::Study;
use crate::Plan;
use crate::result::container::{ContainerError, EvidenceContainer};
use cyclescope_core::machine::Machine;
use cyclescope_events::CounterRequest;
use cyclescope_exec::ExecutorOpener;
use serde_json::Value;

/// A study as listed by the command line and `replay`.
#[derive(Clone, Copy)]
pub struct StudyInfo {
    /// Name of its command.
    pub name: &'static str,
    /// Its question, for the help text.
    pub about: &'static str,
    /// See [`Study::restore`].
    pub restore: fn(&EvidenceContainer) -> Result<Box<dyn Study>, ContainerError>,
    /// How to select it if it has no options of its own; `None` if the command line has a front end
    /// for it.
    pub generic: Option<GenericStudy>,
}

/// A study whose only options are the names of its subjects.
#[derive(Clone, Copy)]
pub struct GenericStudy {
    /// Subjects that it can measure, each with its name and a short description.
    pub subjects: &'static [(&'static str, &'static str)],
    /// Names of its subjects in other suites; `--list` shows them with each subject.
    pub catalogs: &'static [SuiteCatalog],
    /// The fields of its records that a table shows, in order.
    pub columns: &'static [&'static str],
    /// The field of its records that explains them in words.
    pub explanation: Option<&'static str>,
    /// Number of an interrupted result file's lines, after the first one, that belong to complete
    /// subjects.
    pub count_complete: fn(&[Value]) -> usize,
    /// Creates the study.
    pub select: fn(StudySelection) -> Box<dyn Study>,
}

/// The questions of another suite, and which subjects of a study answer them.
#[derive(Debug, Clone, Copy)]
pub struct SuiteCatalog {
    /// Name of the other suite.
    pub name: &'static str,
    /// The questions.
    pub entries: &'static [SuiteQuestion],
}

/// A question.
#[derive(Debug, Clone, Copy)]
pub struct SuiteQuestion {
    /// The other suite's name for it.
    pub name: &'static str,
    /// Its purpose, in a few words.
    pub about: &'static str,
    /// Subjects, or commands that begin with `cyclescope`.
    pub answers: &'static [&'static str],
}

/// The selection to measure.
pub struct StudySelection<'a> {
    /// The selected subjects, each once, in order.
    pub subjects: Vec<&'static str>,
    /// Timing method and its step, latency of `imul`, confidence level of the intervals, seed,
    /// budget.
    pub plan: Plan,
    /// Opens the executor.
    pub open: ExecutorOpener,
    /// The machine to measure on.
    pub machine: &'a Machine,
    /// Bytes of memory that the study may use.
    pub memory: u64,
    /// Events to count beside its numbers.
    pub counters: Option<CounterRequest>,
    /// Lines of complete subjects in the result file. These subjects are not measured again.
    pub complete_lines: Vec<Value>,
}
