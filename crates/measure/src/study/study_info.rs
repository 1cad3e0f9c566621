//! What is known of a study before it is made.

use super::contract::Study;
use crate::Plan;
use crate::result::container::{ContainerError, EvidenceContainer};
use cyclescope_core::machine::Machine;
use cyclescope_exec::ExecutorOpener;
use serde_json::Value;

/// A study, as the command line and `replay` find it.
#[derive(Clone, Copy)]
pub struct StudyInfo {
    /// Its name.
    pub name: &'static str,
    /// What it asks, for help.
    pub about: &'static str,
    /// See [`Study::restore`].
    pub restore: fn(&EvidenceContainer) -> Result<Box<dyn Study>, ContainerError>,
    /// How it is selected where it has no options of its own. None where the command line has a front for it.
    pub generic: Option<GenericStudy>,
}

/// A study that takes nothing but the names of its subjects.
#[derive(Clone, Copy)]
pub struct GenericStudy {
    /// What it can measure, each by name and with a few words.
    pub subjects: &'static [(&'static str, &'static str)],
    /// What others call what it measures; `--list` shows each by its name.
    pub catalogs: &'static [SuiteCatalog],
    /// The fields of its records that a table shows, in this order.
    pub columns: &'static [&'static str],
    /// The field of its records that explains them in words.
    pub explanation: Option<&'static str>,
    /// How many of the lines of a result file that was interrupted, from its second line on, are of subjects of which it has all
    /// lines.
    pub count_complete: fn(&[Value]) -> usize,
    /// Makes the study.
    pub select: fn(StudySelection) -> Box<dyn Study>,
}

/// The questions of another suite, and which subjects of a study answer them.
#[derive(Debug, Clone, Copy)]
pub struct SuiteCatalog {
    /// Its name.
    pub name: &'static str,
    /// The questions.
    pub entries: &'static [SuiteQuestion],
}

/// A question.
#[derive(Debug, Clone, Copy)]
pub struct SuiteQuestion {
    /// What the other suite calls it.
    pub name: &'static str,
    /// What it is for, in a few words.
    pub about: &'static str,
    /// Subjects, or commands that begin with `cyclescope`.
    pub answers: &'static [&'static str],
}

/// What was asked for.
pub struct StudySelection<'a> {
    /// Some of the subjects, each once, in their order.
    pub subjects: Vec<&'static str>,
    /// Timing method and its step, latency of `imul`, level of the intervals, seed, budget.
    pub plan: Plan,
    /// Opens the executor.
    pub open: ExecutorOpener,
    /// The machine to measure on.
    pub machine: &'a Machine,
    /// Bytes of memory that may be used.
    pub memory: u64,
    /// The lines that a result file has of subjects that are complete: these are not measured again.
    pub complete_lines: Vec<Value>,
}
