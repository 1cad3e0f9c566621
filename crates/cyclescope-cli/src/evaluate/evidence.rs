//! Keeps every reading of an evaluation.

use crate::failure::Failure;
use cyclescope::evidence::prepare;
use cyclescope::machine::Machine;
use cyclescope::program::Program;
use cyclescope::study::evaluate::Candidate;
use cyclescope::study::evaluate::evidence::{Kept, Manifest, Writer, bytes};
use cyclescope::study::evaluate::method::Method;
use cyclescope::study::evaluate::reader::Shape;
use cyclescope::study::evaluate::record::EvaluateRecord;
use std::io;
use std::path::{Path, PathBuf};

/// Evidence under way.
pub struct Evidence {
    directory: PathBuf,
    manifest: Manifest,
    /// The method that is being written.
    writer: Option<Writer>,
    program: Vec<u8>,
}

impl Evidence {
    /// In a new or an empty directory.
    pub fn new(directory: &Path, machine: &Machine) -> Result<Evidence, Failure> {
        prepare(directory).map_err(|error| refused(directory, &error))?;
        let machine = serde_json::to_value(machine).expect("facts are plain data");
        let (directory, manifest) = (directory.to_path_buf(), Manifest::new(machine));
        manifest.write(&directory).map_err(|error| refused(&directory, &error))?;
        Ok(Evidence { directory, manifest, writer: None, program: Vec::new() })
    }

    /// Begins a method.
    pub fn begin(&mut self, of: Candidate, shape: &Shape, program: &Program) -> Result<(), Failure> {
        let (needed, free) = (bytes(shape), self.free());
        if free.is_some_and(|free| free < needed) {
            let text = format!(
                "the readings of {} take {}, more than the free space",
                of.clock.name,
                megabytes(needed)
            );
            return Err(Failure::internal(text)
                .with_remedy("ask for fewer with --ensembles, or leave --evidence out"));
        }
        self.program = program.code().to_vec();
        self.writer = Some(Writer::new(&self.directory, of).map_err(unwritten)?);
        Ok(())
    }

    /// Bytes that are free where the evidence goes, where the system reports it.
    fn free(&self) -> Option<u64> {
        let file = rustix::fs::statvfs(&self.directory).ok()?;
        Some(file.f_bavail * file.f_frsize)
    }

    /// Adds an ensemble's readings.
    pub fn readings(&mut self, readings: &[cyclescope::executor::Sample]) -> Result<(), Failure> {
        self.writer.as_mut().map_or(Ok(()), |writer| writer.write(readings)).map_err(unwritten)
    }

    /// Ends a method. What is complete stays valid if a later one fails.
    pub fn end(&mut self, method: &Method, record: &EvaluateRecord) -> Result<(), Failure> {
        if let Some(writer) = self.writer.take() {
            writer.finish().map_err(unwritten)?;
        }
        self.manifest.methods.push(Kept::new(method, &self.program, record));
        self.manifest.write(&self.directory).map_err(unwritten)
    }
}

fn refused(directory: &Path, error: &io::Error) -> Failure {
    let remedy = "name a new or an empty directory, where you may write";
    Failure::usage(format!("no evidence can be written to {}: {error}", directory.display()), Some(remedy))
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

fn unwritten(error: io::Error) -> Failure {
    Failure::internal(format!("writing evidence failed: {error}"))
        .with_remedy("methods that evaluate.json names are complete; ask for fewer samples with --ensembles")
}
