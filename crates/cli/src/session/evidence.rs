//! The directory of a command's evidence.

use crate::args::CommonArgs;
use crate::output::Failure;
use crate::output::directory::{make_directory, read_free_bytes};
use cyclescope::machine::Machine;
use cyclescope::result::container::{EvidenceOrigin, EvidenceRecorder, remove_unfinished};
use std::cell::Cell;
use std::io;
use std::path::Path;
use std::rc::Rc;

/// A directory for evidence. Dropping it removes unfinished evidence, unless the result has a
/// complete line.
pub struct EvidenceDirectory<'a> {
    directory: &'a Path,
    existed: bool,
    /// Whether this command has started to write files here.
    begun: Cell<bool>,
}

impl Drop for EvidenceDirectory<'_> {
    fn drop(&mut self) {
        if self.begun.get() {
            remove_unfinished(self.directory);
        }
        if !self.existed {
            // This fails if evidence was written, as intended.
            let _ = std::fs::remove_dir(self.directory);
        }
    }
}

/// Bytes that evidence leaves free on the disk, because a full disk stops more than this program.
const SPARE_BYTES: u64 = 64 << 20;

impl<'a> EvidenceDirectory<'a> {
    /// Fails if little disk space is left. Space that the system doesn't report counts as enough.
    pub fn require_space(&self) -> io::Result<()> {
        match read_free_bytes(self.directory) {
            Some(free) if free < SPARE_BYTES => {
                let left = format!("only {} MB are left on the disk", free >> 20);
                Err(io::Error::new(io::ErrorKind::StorageFull, left))
            }
            _ => Ok(()),
        }
    }

    /// Creates the requested directory. An existing one must be empty.
    pub fn prepare(common: &'a CommonArgs) -> Result<Option<EvidenceDirectory<'a>>, Failure> {
        let Some(directory) = common.evidence.as_deref() else { return Ok(None) };
        let existed = directory.exists();
        let made = make_directory(directory).and_then(|()| match std::fs::read_dir(directory)?.next() {
            Some(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "the directory is not empty")),
            None => Ok(()),
        });
        made.map_err(|error| refuse_directory(directory, &error))?;
        Ok(Some(EvidenceDirectory { directory, existed, begun: Cell::new(false) }))
    }

    /// Begins the evidence of a study.
    pub fn begin_evidence(&self, study: &str, repro: &str, machine: &Machine) -> Result<Rc<EvidenceRecorder>, Failure> {
        let origin = EvidenceOrigin {
            study: study.to_string(),
            repro: repro.to_string(),
            machine: serde_json::to_value(machine).expect("facts are plain data"),
        };
        let evidence = EvidenceRecorder::create(self.directory, origin)
            .map_err(|error| refuse_directory(self.directory, &error))?;
        self.begun.set(true);
        Ok(Rc::new(evidence))
    }
}

fn refuse_directory(directory: &Path, error: &io::Error) -> Failure {
    let remedy = "name a new or empty directory inside an existing, writable one";
    Failure::usage(format!("can't write evidence to {}: {error}", directory.display()), Some(remedy))
}

/// Warning when evidence can't be written while a study runs.
pub const EVIDENCE_STOPPED: &str = "evidence stopped; the study continues without it";

/// The failure for evidence that couldn't be written.
pub fn evidence_failure(error: io::Error) -> Failure {
    let remedy = "free some space, or leave --evidence out; the result itself is complete";
    Failure::from_writing("writing evidence failed", &error, remedy)
}
