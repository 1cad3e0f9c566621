//! What `all` has done in a directory: a file that is written anew after each step.

use super::measuring_step::STEPS;
use crate::args::CommonArgs;
use crate::output::Failure;
use crate::output::table_file::write_whole_file;
use cyclescope::input::{self, InputKind};
use cyclescope::record::SCHEMA;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The name of the file.
pub const FILE_NAME: &str = "all.json";
/// Its kind.
const KIND: &str = "all.ledger";

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// Its file is complete.
    Done,
    /// This machine can't do it.
    LeftOut,
    /// It ended with an error.
    Failed,
}

/// How a step ended, and its file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StepOutcome {
    /// The command.
    pub name: String,
    /// How it ended.
    pub state: StepState,
    /// Its exit code; null if a signal ended it.
    pub exit: Option<i32>,
    /// Why it has no result.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub why: Option<String>,
    /// The file in the directory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<String>,
    /// Seconds of its last run.
    pub seconds: f64,
}

/// What was done in a directory.
#[derive(Debug)]
pub struct StepLedger {
    path: PathBuf,
    content: LedgerContent,
    /// The locked directory, if its file system has locks.
    _lock: Option<OwnedFd>,
}

/// The file's content.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct LedgerContent {
    schema: String,
    kind: String,
    quick: bool,
    cpu: Option<u32>,
    steps: Vec<StepOutcome>,
}

impl StepLedger {
    /// Opens the ledger of a directory, which no other `all` may use until this one ends. A directory
    /// without a ledger must be empty.
    pub fn open(directory: &Path, common: &CommonArgs) -> Result<StepLedger, Failure> {
        let lock = lock_directory(directory)?;
        let path = directory.join(FILE_NAME);
        let new = LedgerContent {
            schema: SCHEMA.to_string(),
            kind: KIND.to_string(),
            quick: common.quick,
            cpu: common.cpu,
            steps: Vec::new(),
        };
        if !path.exists() {
            let mut entries = std::fs::read_dir(directory)
                .map_err(|error| Failure::from_system(format!("reading {} failed", directory.display()), &error))?;
            if entries.next().is_some() {
                let text = format!("{} has files, and none of them is {FILE_NAME}", directory.display());
                return Err(Failure::usage(text, Some("name a new or empty directory, or one that `all` wrote")));
            }
            let ledger = StepLedger { path, content: new, _lock: lock };
            ledger.write()?;
            return Ok(ledger);
        }
        let remedy = "name a new or empty directory, or one that `all` wrote";
        let bytes = input::read_input(&path, InputKind::Results).map_err(|bad| Failure::from_input(&bad, remedy))?;
        let content: Option<LedgerContent> = serde_json::from_slice(&bytes).ok();
        let is_own = |content: &LedgerContent| content.schema == SCHEMA && content.kind == KIND;
        let Some(content) = content.filter(is_own) else {
            return Err(Failure::usage(format!("{} is not a file of `all`", path.display()), Some(remedy)));
        };
        if (content.quick, content.cpu) != (new.quick, new.cpu) {
            let quick = if content.quick { " --quick" } else { "" };
            let cpu = content.cpu.map_or(String::new(), |cpu| format!(" --cpu {cpu}"));
            let text = format!("{} has results of other options", directory.display());
            let remedy = format!("continue with cyclescope all{quick}{cpu}, or name a new directory");
            return Err(Failure::usage(text, Some(&remedy)));
        }
        Ok(StepLedger { path, content, _lock: lock })
    }

    /// Whether a step is done, or can't be done here.
    pub fn is_done(&self, name: &str) -> bool {
        self.content.steps.iter().any(|step| step.name == name && step.state != StepState::Failed)
    }

    /// Records how a step ended.
    pub fn record(&mut self, outcome: StepOutcome) -> Result<(), Failure> {
        self.content.steps.retain(|step| step.name != outcome.name);
        self.content.steps.push(outcome);
        self.write()
    }

    /// The outcomes, in the order of the steps.
    pub fn outcomes(&self) -> impl Iterator<Item = &StepOutcome> {
        STEPS.iter().filter_map(|step| self.content.steps.iter().find(|outcome| outcome.name == step.name))
    }

    /// The files of the results, and the ledger.
    pub fn files(&self) -> Vec<PathBuf> {
        let names = self.outcomes().filter_map(|outcome| outcome.file.clone());
        std::iter::once(self.path.clone()).chain(names.map(|name| self.path.with_file_name(name))).collect()
    }

    fn write(&self) -> Result<(), Failure> {
        let mut text = serde_json::to_string_pretty(&self.content).expect("outcomes are plain data");
        text.push('\n');
        write_whole_file(&self.path, text.as_bytes()).map_err(|error| {
            let remedy = "free some space, and make the directory writable; then repeat the command";
            Failure::from_writing(format!("can't write {}", self.path.display()), &error, remedy)
        })
    }
}

/// Locks a directory until the descriptor is closed.
fn lock_directory(directory: &Path) -> Result<Option<OwnedFd>, Failure> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(directory, flags, Mode::empty()).map_err(std::io::Error::from);
    let opened =
        opened.map_err(|error| Failure::from_system(format!("opening {} failed", directory.display()), &error))?;
    match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(opened)),
        Err(Errno::WOULDBLOCK) => {
            let text = format!("another cyclescope is writing to {}", directory.display());
            Err(Failure::usage(text, Some("wait until it ends, or name another directory")))
        }
        // The file system has no locks, so that another run can't be noticed.
        Err(_) => Ok(None),
    }
}
