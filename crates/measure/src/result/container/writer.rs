//! Writes a container while a study runs.

use super::batch_log::BatchLog;
use super::columns::{write_samples, write_varint};
use super::evidence_seal::EvidenceSeal;
use super::manifest::{EvidenceOrigin, Manifest, NEW_MANIFEST};
use super::part::PartWriter;
use super::reader::{EvidenceContainer, HEAD_MOST, SAMPLES_MOST};
use super::{BatchFacts, ContainerError, ContainerPart, MANIFEST, PART_FILES, StudyEvent};
use crate::result::record::SchemaLine;
use cyclescope_exec::{Batch, Sample};
use serde::Serialize;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
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
    log: BatchLog,
    buffer: Vec<u8>,
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
            log: BatchLog::default(),
            buffer: Vec::new(),
        };
        writer.checkpoint()?;
        Ok(writer)
    }

    fn part_writer(&mut self, part: ContainerPart) -> &mut PartWriter {
        &mut self.parts[part as usize]
    }

    /// Adds the programs and layouts of a batch.
    pub(in crate::result) fn add_batch(&mut self, batch: &Batch) -> io::Result<BatchFacts> {
        let ContainerWriter { parts, log, .. } = self;
        log.add_batch(batch, &mut |part, line| parts[part as usize].add_item(line).map(|_| ()))
    }

    /// Adds an item to a part as it is.
    pub fn add_item(&mut self, part: ContainerPart, item: &[u8]) -> io::Result<()> {
        self.part_writer(part).add_item(item).map(|_| ())
    }

    /// Copies the programs and layouts of other evidence, so that a tool can change the rest.
    ///
    /// # Errors
    ///
    /// If the other evidence is damaged, or this one can't be written.
    pub fn copy_batches(&mut self, from: &EvidenceContainer) -> Result<(), ContainerError> {
        for part in [ContainerPart::Programs, ContainerPart::Layouts] {
            let path = self.directory.join(part.file_name());
            let mut lines = from.part_lines(part)?;
            while let Some(line) = lines.next_text()? {
                self.add_item(part, &line).map_err(|error| ContainerError::system_failure(&path, error))?;
            }
        }
        Ok(())
    }

    /// Adds an event with its readings.
    pub fn add_event(&mut self, event: &StudyEvent, samples: &[Sample]) -> io::Result<()> {
        if samples.len() as u64 > SAMPLES_MOST {
            let text = format!("an event of evidence has at most {SAMPLES_MOST} readings");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        let head = serde_json::to_vec(event)?;
        if head.len() as u64 > HEAD_MOST {
            let text = format!("an event of evidence has at most {} MiB besides its readings", HEAD_MOST >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
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
        let [programs, layouts, readings, mut records] = parts;
        let finished = [programs.finish()?, layouts.finish()?, readings.finish()?];
        let mut manifest = Manifest::new(origin, true, facts, BTreeMap::new());
        let seal = EvidenceSeal::new(&manifest, finished.each_ref(), records.content_digest())?;
        records.add_item((serde_json::to_string(&seal)? + "\n").as_bytes())?;
        let all = finished.into_iter().chain([records.finish()?]);
        manifest.files = PART_FILES.into_iter().map(str::to_string).zip(all).collect();
        manifest.write(&directory)
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
