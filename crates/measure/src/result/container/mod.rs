//! Evidence: all inputs of a result, in one directory and one format for every study.
//!
//! | file | content |
//! |---|---|
//! | `manifest.json` | schema, version, study, machine, the study's facts, length and SHA-256 of every other file |
//! | `programs.jsonl.gz` | the machine code of each program, once, before it is placed |
//! | `layouts.jsonl.gz` | each layout as data: places of programs, order of their calls |
//! | `readings.gz` | the events in chronological order, each with its raw readings |
//! | `records.jsonl.gz` | the JSON lines that the command printed; when finished, the seal |
//!
//! The files are written during the measurement; memory holds at most one batch. A manifest is
//! replaced as a whole and covers the bytes written before it. If a process is killed, later bytes
//! are ignored and the result counts as unfinished.
//!
//! A reading is stored as its duration and its distance from the previous reading, both as
//! variable-length integers. All durations of an event precede all distances. gzip compresses each
//! file. `zlib-rs` reduced the 83 MB of `evaluate --quick` to 11 % at level 3 (level 1: 18 %, level
//! 2: 12 %), at 75 MB/s for readings (Zen 5, virtual machine). Zstandard's C library reached 11 %
//! at level 1 in half the time, but took 33 s to compile. `ruzstd` reached 17 %, LZ4 20 %.
//!
//! Files may be hostile: every length is limited, every count is checked against the content, and
//! an error names file and field. The digests and the seal detect a file that was changed or
//! exchanged. A replay builds the programs and layouts again and compares them. Nothing protects
//! against somebody who invents readings and writes all files anew.

mod batch_log;
mod columns;
mod content_digest;
mod evidence_seal;
mod manifest;
mod part;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub(super) use batch_log::BatchLog;
pub use content_digest::ContentDigest;
pub use manifest::{EvidenceOrigin, Manifest, PartFacts, SCHEMA};
pub use reader::{ContainerEvents, ContainerLines, EvidenceContainer};
pub use writer::{ContainerWriter, EvidenceRecorder, remove_unfinished, to_json_value};

use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_core::error::RunError;
use cyclescope_core::input::{BadInput, InputDefect};
use cyclescope_core::machine::fact::Fact;
use cyclescope_events::EventCode;
use cyclescope_exec::{Batch, CounterProgress};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The manifest's name.
pub(crate) const MANIFEST: &str = "manifest.json";
/// The other files, in the order of [`ContainerPart`].
const PART_FILES: [&str; 4] = ["programs.jsonl.gz", "layouts.jsonl.gz", "readings.gz", "records.jsonl.gz"];

/// The files besides the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerPart {
    /// Each program once.
    Programs,
    /// Every layout.
    Layouts,
    /// The events with their readings.
    Readings,
    /// The lines that the command printed.
    Records,
}

impl ContainerPart {
    const ALL: [ContainerPart; 4] =
        [ContainerPart::Programs, ContainerPart::Layouts, ContainerPart::Readings, ContainerPart::Records];

    const BEFORE_RECORDS: [ContainerPart; 3] =
        [ContainerPart::Programs, ContainerPart::Layouts, ContainerPart::Readings];

    fn file_name(self) -> &'static str {
        PART_FILES[self as usize]
    }
}

/// An event of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum StudyEvent {
    /// The study asked for the time.
    Time {
        /// Nanoseconds since a fixed moment.
        ns: u64,
    },
    /// An executor ran a batch.
    Batch(Box<BatchEvent>),
    /// Readings that a study takes itself.
    Kept {
        /// Name of the readings in the study.
        of: serde_json::Value,
    },
}

/// A batch that was run, and the state of the executor afterwards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchEvent {
    /// The batch.
    #[serde(flatten)]
    pub batch: BatchFacts,
    /// State of the executor after the batch.
    pub after: ExecutorState,
    /// Error that ended the batch early, if any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<RunError>,
}

/// A batch by the numbers of its programs and layouts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchFacts {
    /// Numbers of its programs, in their order.
    pub programs: Vec<u64>,
    /// Number of its first layout; the others follow.
    pub first_layout: u64,
    /// Number of its layouts.
    pub layouts: usize,
    /// Parameters of the batch.
    pub how: BatchParameters,
    /// SHA-256 of its programs, layouts and parameters.
    pub digest: String,
}

/// Parameters of a batch besides programs and layouts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchParameters {
    /// Untimed rounds at the start of each layout.
    pub warm_up: u32,
    /// Timed rounds in each layout.
    pub rounds: u32,
    /// The memory areas.
    pub memory: ProgramMemory,
    /// Largest number of iterations of the delay before each call.
    pub delay: u32,
    /// The events that it counts instead of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventCode>,
    /// Time limit of the batch.
    pub deadline: Duration,
}

impl BatchParameters {
    /// Reads the parameters of a batch.
    pub(crate) fn from_batch(batch: &Batch) -> BatchParameters {
        let Batch { warm_up, rounds, delay, deadline, .. } = *batch;
        let (memory, events) = (batch.memory.clone(), batch.events.clone());
        BatchParameters { warm_up, rounds, memory, delay, events, deadline }
    }
}

/// State that an executor reports in addition to its readings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutorState {
    /// See [`Executor::counter_progress`](cyclescope_exec::Executor::counter_progress).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub progress: Option<CounterProgress>,
    /// See [`Executor::restored_state`](cyclescope_exec::Executor::restored_state).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub changed: Vec<String>,
    /// See [`Executor::had_exclusive_cpu`](cyclescope_exec::Executor::had_exclusive_cpu).
    pub exclusive: Fact<bool>,
}

/// Why evidence can't be read.
#[derive(Debug)]
pub enum ContainerError {
    /// A file is missing.
    Missing(BadInput),
    /// A file can't be read.
    Unreadable(BadInput),
    /// A file has invalid contents.
    Damaged {
        /// The file's name.
        file: &'static str,
        /// The field in it.
        field: String,
        /// What is wrong with it.
        how: String,
    },
    /// Another version wrote it, in another format.
    Foreign,
    /// Another version measured it in a way that this one does not.
    Outdated {
        /// Why this version does not.
        why: String,
    },
    /// The command that wrote it did not finish.
    Unfinished,
}

impl ContainerError {
    /// Reports a field of a file with an invalid value.
    pub(crate) fn damaged_field(
        file: &'static str,
        field: impl Into<String>,
        how: impl Into<String>,
    ) -> ContainerError {
        ContainerError::Damaged { file, field: field.into(), how: how.into() }
    }

    /// Reports a fact of the study in the manifest with an invalid value.
    pub fn damaged_fact(field: &str, how: impl Into<String>) -> ContainerError {
        ContainerError::damaged_field(MANIFEST, format!("facts.{field}"), how)
    }

    fn system_failure(path: &Path, error: io::Error) -> ContainerError {
        BadInput { file: path.to_path_buf(), why: InputDefect::System(error) }.into()
    }
}

impl From<BadInput> for ContainerError {
    fn from(bad: BadInput) -> ContainerError {
        if bad.is_missing() { ContainerError::Missing(bad) } else { ContainerError::Unreadable(bad) }
    }
}

impl fmt::Display for ContainerError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ContainerError::Missing(bad) => write!(f, "there is no evidence: {bad}"),
            ContainerError::Unreadable(bad) => write!(f, "the evidence can't be read: {bad}"),
            ContainerError::Damaged { file, field, how } => {
                write!(f, "the evidence is damaged: {file}: {field}: {how}")
            }
            ContainerError::Foreign => write!(f, "another version of cyclescope wrote the evidence"),
            ContainerError::Outdated { why } => {
                write!(f, "another version of cyclescope measured this in a way that this one does not: {why}")
            }
            ContainerError::Unfinished => {
                write!(f, "the evidence is unfinished: the command that wrote it did not finish")
            }
        }
    }
}

impl std::error::Error for ContainerError {}
