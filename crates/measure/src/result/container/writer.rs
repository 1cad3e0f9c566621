//! Writes a container while a study runs.

use super::checksum::Checksum;
use super::columns::{put, put_samples};
use super::manifest::{Manifest, NEW_MANIFEST, Origin, PartFacts};
use super::part::PartWriter;
use super::reader::SAMPLES_MOST;
use super::{Event, FILES, How, MANIFEST, Part};
use crate::result::record::Line;
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
pub struct Writer {
    directory: PathBuf,
    origin: Origin,
    facts: Value,
    /// In the order of [`Part`].
    parts: [PartWriter; 4],
    /// The numbers of programs by their checksums.
    known: HashMap<u64, u64>,
    buffer: Vec<u8>,
}

/// A program as its line has it.
#[derive(Serialize)]
struct ProgramLine {
    code: String,
    body: [usize; 2],
    relocations: Vec<u32>,
}

impl Writer {
    /// A new container in a directory that is made or empty. A manifest is there from the beginning.
    pub fn create(directory: &Path, origin: Origin) -> io::Result<Writer> {
        fs::create_dir_all(directory)?;
        if fs::read_dir(directory)?.next().is_some() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the directory is not empty"));
        }
        // The first file claims the directory: of two commands that begin at once one fails here, and made nothing.
        let part = |part| PartWriter::create(directory, part);
        let programs = part(Part::Programs)?;
        let parts = [programs, part(Part::Layouts)?, part(Part::Readings)?, part(Part::Records)?];
        let mut writer = Writer {
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

    fn part(&mut self, part: Part) -> &mut PartWriter {
        &mut self.parts[part as usize]
    }

    /// Adds a program where it is not known yet. Returns its number.
    pub fn program(&mut self, program: &Program) -> io::Result<u64> {
        let sum = program_digest(program);
        if let Some(number) = self.known.get(&sum) {
            return Ok(*number);
        }
        let mut code = String::with_capacity(2 * program.len());
        program.code().iter().for_each(|byte| write!(code, "{byte:02x}").expect("text grows"));
        let body = program.body();
        let line =
            ProgramLine { code, body: [body.start, body.end], relocations: program.relocations().to_vec() };
        let number = self.line(Part::Programs, &line)?;
        self.known.insert(sum, number);
        Ok(number)
    }

    /// Adds layouts. Returns the number of the first.
    pub(crate) fn layouts(&mut self, layouts: &[Layout]) -> io::Result<u64> {
        let first = self.part(Part::Layouts).items();
        for layout in layouts {
            self.line(Part::Layouts, layout)?;
        }
        Ok(first)
    }

    /// Adds an event with its readings.
    pub fn event(&mut self, event: &Event, samples: &[Sample]) -> io::Result<()> {
        if samples.len() as u64 > SAMPLES_MOST {
            let text = format!("an event of evidence has at most {SAMPLES_MOST} readings");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        let head = serde_json::to_vec(event)?;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        put(head.len() as u64, &mut buffer);
        buffer.extend(head);
        put_samples(samples, &mut buffer);
        let written = self.part(Part::Readings).add(&buffer);
        self.buffer = buffer;
        written.map(|_| ())
    }

    /// Adds a line that the command prints.
    pub fn record<T: Serialize>(&mut self, kind: &'static str, record: &T) -> io::Result<()> {
        self.line(Part::Records, &Line::new(kind, record)).map(|_| ())
    }

    fn line<T: Serialize>(&mut self, part: Part, content: &T) -> io::Result<u64> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        serde_json::to_writer(&mut buffer, content)?;
        buffer.push(b'\n');
        let number = self.part(part).add(&buffer);
        self.buffer = buffer;
        number
    }

    /// Adds a line of the result as it is printed.
    pub fn line_of_result(&mut self, line: &str) -> io::Result<()> {
        self.part(Part::Records).add(format!("{line}\n").as_bytes()).map(|_| ())
    }

    /// Sets the study's inputs beside the readings; the last call counts.
    pub fn set_facts<T: Serialize>(&mut self, facts: &T) -> io::Result<()> {
        self.facts = plain(facts)?;
        Ok(())
    }

    /// Makes all that is there readable: a process that is killed later loses what came after it.
    pub fn checkpoint(&mut self) -> io::Result<()> {
        let mut files = BTreeMap::new();
        for part in Part::ALL {
            files.insert(part.file().to_string(), self.part(part).flush()?);
        }
        Manifest::new(self.origin.clone(), false, self.facts.clone(), files).write(&self.directory)
    }

    /// Ends the container.
    pub fn finish(self) -> io::Result<()> {
        let Writer { directory, origin, facts, parts, .. } = self;
        let mut files: BTreeMap<String, PartFacts> = BTreeMap::new();
        for (part, writer) in Part::ALL.into_iter().zip(parts) {
            files.insert(part.file().to_string(), writer.finish()?);
        }
        Manifest::new(origin, true, facts, files).write(&directory)
    }
}

/// Removes the files of a container that is not finished and has no line of the result.
pub fn remove_unfinished(directory: &Path) {
    let worth = |manifest: Manifest| manifest.finished || manifest.files[Part::Records.file()].items > 0;
    if Manifest::read(directory).is_ok_and(worth) {
        return;
    }
    for file in FILES.into_iter().chain([MANIFEST, NEW_MANIFEST]) {
        // One that is not there need not go; for one that stays, the directory does, and says so by it.
        let _ = fs::remove_file(directory.join(file));
    }
}

/// Identifies a program: a checksum of its code and of the range of its body.
fn program_digest(program: &Program) -> u64 {
    let mut sum = Checksum::default();
    sum.add(program.code());
    for end in [program.body().start, program.body().end] {
        sum.add(&(end as u64).to_le_bytes());
    }
    sum.number()
}

/// Identifies a batch: a checksum of its programs, layouts and parameters.
pub(in crate::result) fn digest(batch: &Batch) -> io::Result<String> {
    let mut sum = Checksum::default();
    batch.programs.iter().for_each(|program| sum.add(&program_digest(program).to_le_bytes()));
    sum.add(&serde_json::to_vec(&batch.layouts)?);
    sum.add(&serde_json::to_vec(&How::of(batch))?);
    Ok(sum.text())
}

/// A container that a study and its executors write together. Writing stops at the first failure, which
/// [`Evidence::finish`] returns; the study continues.
pub struct Evidence {
    writer: RefCell<Result<Writer, io::Error>>,
    /// Whether recording is paused.
    aside: Cell<bool>,
}

impl Evidence {
    /// A new container, see [`Writer::create`].
    pub fn create(directory: &Path, origin: Origin) -> io::Result<Evidence> {
        let writer = Writer::create(directory, origin)?;
        Ok(Evidence { writer: RefCell::new(Ok(writer)), aside: Cell::new(false) })
    }

    /// Calls a function without recording.
    pub(in crate::result) fn aside<T>(&self, act: impl FnOnce() -> T) -> T {
        let before = self.aside.replace(true);
        let result = act();
        self.aside.set(before);
        result
    }

    /// Writes to the container unless an earlier write has failed.
    pub fn keep<T>(&self, act: impl FnOnce(&mut Writer) -> io::Result<T>) -> Option<T> {
        if self.aside.get() {
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

    /// Writes no more, for this reason, which [`Evidence::finish`] returns.
    pub fn give_up(&self, reason: io::Error) {
        let mut writer = self.writer.borrow_mut();
        if writer.is_ok() {
            *writer = Err(reason);
        }
    }

    /// Whether writing has met a failure.
    pub fn has_failed(&self) -> bool {
        self.writer.borrow().is_err()
    }

    /// Ends the container. An error is the first that writing met; the container stays unfinished then.
    pub fn finish(&self) -> io::Result<()> {
        let complete = Err(io::Error::other("the evidence is complete"));
        self.writer.replace(complete)?.finish()
    }
}

/// Facts by their text: a value of its own can't hold integers of 128 bits, which become floating point numbers here.
pub fn plain<T: Serialize>(facts: &T) -> io::Result<Value> {
    Ok(serde_json::from_str(&serde_json::to_string(facts)?)?)
}
