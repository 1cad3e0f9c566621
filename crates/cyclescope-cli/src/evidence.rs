//! Where evidence goes, and which executor fills it.

use crate::args::Common;
use crate::failure::Failure;
use cyclescope::executor::Executor;
use cyclescope::machine::Machine;
use cyclescope::result::container::{Evidence, Origin, remove_unfinished};
use cyclescope::result::recording::Recording;
use std::cell::Cell;
use std::io;
use std::path::Path;
use std::rc::Rc;

/// A directory for evidence. What is unfinished when this goes is removed, unless it is worth keeping.
pub struct Place<'a> {
    directory: &'a Path,
    existed: bool,
    /// Whether the files in it are this command's.
    begun: Cell<bool>,
    /// Whether a part of the result can be computed from a part of the evidence.
    pub keeps_parts: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.keeps_parts {
            return;
        }
        if self.begun.get() {
            remove_unfinished(self.directory);
        }
        if !self.existed {
            // Fails where evidence was written, as it should.
            let _ = std::fs::remove_dir(self.directory);
        }
    }
}

impl<'a> Place<'a> {
    /// The directory that was asked for, which is made here. One that exists has to be empty.
    pub fn prepare(common: &'a Common) -> Result<Option<Place<'a>>, Failure> {
        let Some(directory) = common.evidence.as_deref() else { return Ok(None) };
        let existed = directory.exists();
        let made =
            std::fs::create_dir_all(directory).and_then(|()| match std::fs::read_dir(directory)?.next() {
                Some(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "the directory is not empty")),
                None => Ok(()),
            });
        made.map_err(|error| refused(directory, &error))?;
        Ok(Some(Place { directory, existed, begun: Cell::new(false), keeps_parts: false }))
    }

    /// Begins the evidence of a study.
    pub fn begin(&self, study: &str, repro: &str, machine: &Machine) -> Result<Rc<Evidence>, Failure> {
        let origin = Origin {
            study: study.to_string(),
            repro: repro.to_string(),
            machine: serde_json::to_value(machine).expect("facts are plain data"),
        };
        let evidence =
            Evidence::create(self.directory, origin).map_err(|error| refused(self.directory, &error))?;
        self.begun.set(true);
        Ok(Rc::new(evidence))
    }
}

fn refused(directory: &Path, error: &io::Error) -> Failure {
    let remedy = "name a new or an empty directory, where you may write";
    Failure::usage(format!("no evidence can be written to {}: {error}", directory.display()), Some(remedy))
}

/// An executor whose answers are kept, where evidence is.
pub fn recorded(executor: Box<dyn Executor>, evidence: Option<&Rc<Evidence>>) -> Box<dyn Executor> {
    match evidence {
        Some(evidence) => Box::new(Recording::new(executor, evidence.clone())),
        None => executor,
    }
}

/// Evidence that could not be written.
pub fn unwritten(error: io::Error) -> Failure {
    Failure::internal(format!("writing evidence failed: {error}"))
        .with_remedy("the result itself is complete")
}
