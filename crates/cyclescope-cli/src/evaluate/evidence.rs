//! Keeps every reading of an evaluation.

use crate::evidence::Place;
use crate::failure::Failure;
use cyclescope::executor::Sample;
use cyclescope::machine::Machine;
use cyclescope::program::Program;
use cyclescope::result::container::{self, Writer};
use cyclescope::study::evaluate::Candidate;
use cyclescope::study::evaluate::evidence::{EvaluationFacts, Kept, STUDY, bytes, keep};
use cyclescope::study::evaluate::method::Method;
use cyclescope::study::evaluate::reader::Shape;
use cyclescope::study::evaluate::record::EvaluateRecord;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Evidence under way.
pub struct Evidence {
    directory: PathBuf,
    container: Rc<container::Evidence>,
    facts: EvaluationFacts,
    /// How many methods were begun; one without a sane reading is not completed.
    begun: u64,
    /// The number of the current method's program.
    program: u64,
}

impl Evidence {
    /// In a directory that was made for it. What was completed stays whatever happens later.
    pub fn new(place: &Place, directory: &Path, machine: &Machine, repro: &str) -> Result<Evidence, Failure> {
        let container = place.begin(STUDY, repro, machine)?;
        let facts = EvaluationFacts::default();
        Ok(Evidence { directory: directory.to_path_buf(), container, facts, begun: 0, program: 0 })
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
        self.begun += 1;
        self.program = self.write(|writer| writer.program(program))?;
        Ok(())
    }

    /// Bytes that are free where the evidence goes, where the system reports it.
    fn free(&self) -> Option<u64> {
        let file = rustix::fs::statvfs(&self.directory).ok()?;
        Some(file.f_bavail * file.f_frsize)
    }

    fn write<T>(&self, act: impl FnOnce(&mut Writer) -> io::Result<T>) -> Result<T, Failure> {
        match self.container.keep(act) {
            Some(result) => Ok(result),
            None => Err(unwritten(self.container.finish().err())),
        }
    }

    /// Adds an ensemble's readings.
    pub fn readings(&mut self, readings: &[Sample]) -> Result<(), Failure> {
        self.write(|writer| keep(writer, self.begun, readings))
    }

    /// Adds a line that the command prints.
    pub fn record<T: Serialize>(&mut self, kind: &'static str, record: &T) -> Result<(), Failure> {
        self.write(|writer| writer.record(kind, record))
    }

    /// Ends a method. What is complete stays valid if a later one fails.
    pub fn end(&mut self, method: &Method, record: &EvaluateRecord) -> Result<(), Failure> {
        let kept = Kept::new(method, (self.begun, self.program), record);
        self.facts.methods.push(kept.map_err(|error| unwritten(Some(error)))?);
        self.write(|writer| {
            writer.set_facts(&self.facts)?;
            writer.checkpoint()
        })
    }

    /// Ends the evidence.
    pub fn finish(self) -> Result<(), Failure> {
        self.container.finish().map_err(|error| unwritten(Some(error)))
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

fn unwritten(error: Option<io::Error>) -> Failure {
    let error = error.map_or(String::new(), |error| format!(": {error}"));
    Failure::internal(format!("writing evidence failed{error}"))
        .with_remedy("methods that manifest.json names are complete; ask for fewer samples with --ensembles")
}
