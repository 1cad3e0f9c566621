//! Writes a container while a study runs.

use super::checksum::Checksum;
use super::columns::{write_samples, write_varint};
use super::manifest::{EvidenceOrigin, Manifest, NEW_MANIFEST, PartFacts};
use super::part::PartWriter;
use super::reader::SAMPLES_MOST;
use super::{BatchParameters, ContainerPart, MANIFEST, PART_FILES, StudyEvent};
use crate::result::record::SchemaLine;
use cyclescope_code::program::Program;
use cyclescope_exec::{Batch, Layout, Sample};
use serde::Serialize;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Writes a container.
pub struct ContainerWriter {
    directory: PathBuf,
    origin: EvidenceOrigin,
    facts: Value,
    /// In the order of [`ContainerPart`].
    parts: [PartWriter; 4],
    /// Numbers of the programs written so far, by checksum.
    known: HashMap<u64, u64>,
    buffer: Vec<u8>,
}

/// A program as its line contains it.
#[derive(Serialize)]
struct ProgramLine {
    code: String,
    body: [usize; 2],
    relocations: Vec<u32>,
}

impl ContainerWriter {
    /// Creates a container in a new or empty directory. It has a manifest from the beginning.
    pub fn create(directory: &Path, origin: EvidenceOrigin) -> io::Result<ContainerWriter> {
        fs::create_dir_all(directory)?;
        if fs::read_dir(directory)?.next().is_some() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the directory is not empty"));
        }
        // The first file claims the directory. If two commands begin at once, one fails here
        // without having created anything.
        let part = |part| PartWriter::create(directory, part);
        let programs = part(ContainerPart::Programs)?;
        let parts =
            [programs, part(ContainerPart::Layouts)?, part(ContainerPart::Readings)?, part(ContainerPart::Records)?];
        let mut writer = ContainerWriter {
            directory: directory.to_path_buf(),
            origin,
            facts: Value::Null,
            parts,
            known: HashMap::new(),
            buffer: Vec::new(),
        };
        writer.checkpoint()?;
        Ok(writer)
    }

    fn part_writer(&mut self, part: ContainerPart) -> &mut PartWriter {
        &mut self.parts[part as usize]
    }

    /// Adds a program unless it was added before. Returns its number.
    pub fn add_program(&mut self, program: &Program) -> io::Result<u64> {
        let sum = program_digest(program);
        if let Some(number) = self.known.get(&sum) {
            return Ok(*number);
        }
        let mut code = String::with_capacity(2 * program.len());
        program.code().iter().for_each(|byte| write!(code, "{byte:02x}").expect("text grows"));
        let body = program.body_range();
        let line = ProgramLine { code, body: [body.start, body.end], relocations: program.relocations().to_vec() };
        let number = self.add_line(ContainerPart::Programs, &line)?;
        self.known.insert(sum, number);
        Ok(number)
    }

    /// Adds layouts. Returns the number of the first.
    pub(crate) fn add_layouts(&mut self, layouts: &[Layout]) -> io::Result<u64> {
        let first = self.part_writer(ContainerPart::Layouts).items();
        for layout in layouts {
            self.add_line(ContainerPart::Layouts, layout)?;
        }
        Ok(first)
    }

    /// Adds an event with its readings.
    pub fn add_event(&mut self, event: &StudyEvent, samples: &[Sample]) -> io::Result<()> {
        if samples.len() as u64 > SAMPLES_MOST {
            let text = format!("an event of evidence has at most {SAMPLES_MOST} readings");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        let head = serde_json::to_vec(event)?;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        write_varint(head.len() as u64, &mut buffer);
        buffer.extend(head);
        write_samples(samples, &mut buffer);
        let written = self.part_writer(ContainerPart::Readings).add_item(&buffer);
        self.buffer = buffer;
        written.map(|_| ())
    }

    /// Adds a line that the command prints.
    pub fn add_record<T: Serialize>(&mut self, kind: &'static str, record: &T) -> io::Result<()> {
        self.add_line(ContainerPart::Records, &SchemaLine::new(kind, record)).map(|_| ())
    }

    fn add_line<T: Serialize>(&mut self, part: ContainerPart, content: &T) -> io::Result<u64> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        serde_json::to_writer(&mut buffer, content)?;
        buffer.push(b'\n');
        let number = self.part_writer(part).add_item(&buffer);
        self.buffer = buffer;
        number
    }

    /// Adds a line of the result as printed.
    pub fn add_result_line(&mut self, line: &str) -> io::Result<()> {
        self.part_writer(ContainerPart::Records).add_item(format!("{line}\n").as_bytes()).map(|_| ())
    }

    /// Sets the study's inputs besides the readings; the last call counts.
    pub fn set_facts<T: Serialize>(&mut self, facts: &T) -> io::Result<()> {
        self.facts = to_json_value(facts)?;
        Ok(())
    }

    /// Makes everything so far readable. A process killed later loses only what followed.
    pub fn checkpoint(&mut self) -> io::Result<()> {
        let mut files = BTreeMap::new();
        for part in ContainerPart::ALL {
            files.insert(part.file_name().to_string(), self.part_writer(part).flush()?);
        }
        Manifest::new(self.origin.clone(), false, self.facts.clone(), files).write(&self.directory)
    }

    /// Completes the container.
    pub fn finish(self) -> io::Result<()> {
        let ContainerWriter { directory, origin, facts, parts, .. } = self;
        let mut files: BTreeMap<String, PartFacts> = BTreeMap::new();
        for (part, writer) in ContainerPart::ALL.into_iter().zip(parts) {
            files.insert(part.file_name().to_string(), writer.finish()?);
        }
        Manifest::new(origin, true, facts, files).write(&directory)
    }
}

/// Removes the files of an unfinished container without any line of the result.
pub fn remove_unfinished(directory: &Path) {
    let worth = |manifest: Manifest| manifest.finished || manifest.files[ContainerPart::Records.file_name()].items > 0;
    if Manifest::read(directory).is_ok_and(worth) {
        return;
    }
    for file in PART_FILES.into_iter().chain([MANIFEST, NEW_MANIFEST]) {
        // A missing file is fine. A file that stays keeps the directory in place, which shows the
        // failure.
        let _ = fs::remove_file(directory.join(file));
    }
}

/// Identifies a program: a checksum of its code and of its body's range.
fn program_digest(program: &Program) -> u64 {
    let mut sum = Checksum::default();
    sum.add_bytes(program.code());
    for end in [program.body_range().start, program.body_range().end] {
        sum.add_bytes(&(end as u64).to_le_bytes());
    }
    sum.as_number()
}

/// Identifies a batch: a checksum of its programs, layouts and parameters.
pub(in crate::result) fn batch_digest(batch: &Batch) -> io::Result<String> {
    let mut sum = Checksum::default();
    batch.programs.iter().for_each(|program| sum.add_bytes(&program_digest(program).to_le_bytes()));
    sum.add_bytes(&serde_json::to_vec(&batch.layouts)?);
    sum.add_bytes(&serde_json::to_vec(&BatchParameters::from_batch(batch))?);
    Ok(sum.to_hex())
}

/// A container that a study and its executors write together. Writing stops at the first failure,
/// which [`EvidenceRecorder::finish`] returns. The study continues.
pub struct EvidenceRecorder {
    writer: RefCell<Result<ContainerWriter, io::Error>>,
    /// Whether recording is paused.
    paused: Cell<bool>,
}

impl EvidenceRecorder {
    /// Creates a container: see [`ContainerWriter::create`].
    pub fn create(directory: &Path, origin: EvidenceOrigin) -> io::Result<EvidenceRecorder> {
        let writer = ContainerWriter::create(directory, origin)?;
        Ok(EvidenceRecorder { writer: RefCell::new(Ok(writer)), paused: Cell::new(false) })
    }

    /// Calls a function without recording.
    pub(in crate::result) fn without_recording<T>(&self, act: impl FnOnce() -> T) -> T {
        let before = self.paused.replace(true);
        let result = act();
        self.paused.set(before);
        result
    }

    /// Writes to the container unless an earlier write has failed.
    pub fn write_with<T>(&self, act: impl FnOnce(&mut ContainerWriter) -> io::Result<T>) -> Option<T> {
        if self.paused.get() {
            return None;
        }
        let mut state = self.writer.borrow_mut();
        let result = act(state.as_mut().ok()?);
        match result {
            Ok(result) => Some(result),
            Err(error) => {
                *state = Err(error);
                None
            }
        }
    }

    /// Stops writing for this reason, which [`EvidenceRecorder::finish`] returns.
    pub fn stop_writing(&self, reason: io::Error) {
        let mut writer = self.writer.borrow_mut();
        if writer.is_ok() {
            *writer = Err(reason);
        }
    }

    /// Whether writing has failed.
    pub fn has_failed(&self) -> bool {
        self.writer.borrow().is_err()
    }

    /// Completes the container. If writing failed, returns the first error and leaves the container
    /// unfinished.
    pub fn finish(&self) -> io::Result<()> {
        let complete = Err(io::Error::other("the evidence is complete"));
        self.writer.replace(complete)?.finish()
    }
}

/// Converts facts through JSON text. A direct conversion rejects integers of 128 bits; as text they
/// become floating point numbers.
pub fn to_json_value<T: Serialize>(facts: &T) -> io::Result<Value> {
    Ok(serde_json::from_str(&serde_json::to_string(facts)?)?)
}
