//! Reads a container.

use super::columns::{read_samples, read_varint};
use super::content_digest::ContentDigest;
use super::evidence_seal::EvidenceSeal;
use super::manifest::Manifest;
use super::part::{self, PartReader};
use super::{ContainerError, ContainerPart, StudyEvent};
use cyclescope_exec::Sample;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Most bytes of an event's head: a batch of 100 000 programs takes some hundred kilobytes, and the
/// memory of a region of a program two characters for each byte of up to 16 MiB.
pub(super) const HEAD_MOST: u64 = 64 << 20;
/// Most bytes of a line. The record of a method or marker with its assembly takes some hundred
/// kilobytes.
const LINE_MOST: u64 = 16 << 20;
/// Most bytes of a program's line. The longest body takes two characters for each byte.
const PROGRAM_MOST: u64 = 2 * (64 << 20) + (1 << 20);
/// Most readings of an event, 512 MiB in total. The largest batches have some million.
pub(super) const SAMPLES_MOST: u64 = 1 << 25;

/// A container whose files match the manifest and, if it is finished, the seal.
#[derive(Debug)]
pub struct EvidenceContainer {
    directory: PathBuf,
    /// Digests of the content of [`ContainerPart::BEFORE_RECORDS`].
    contents: [String; 3],
    /// The manifest.
    pub manifest: Manifest,
}

impl EvidenceContainer {
    /// Opens the container in a directory and checks the digests of all files.
    pub fn open(directory: &Path) -> Result<EvidenceContainer, ContainerError> {
        let manifest = Manifest::read(directory)?;
        let contents = Default::default();
        let mut container = EvidenceContainer { directory: directory.to_path_buf(), contents, manifest };
        for part in ContainerPart::BEFORE_RECORDS {
            container.contents[part as usize] = container.digest_content(part)?;
        }
        container.check_records()?;
        Ok(container)
    }

    /// Reads a part to its end. Returns the digest of its content.
    fn digest_content(&self, part: ContainerPart) -> Result<String, ContainerError> {
        let mut reader = self.open_part(part)?;
        let mut digest = ContentDigest::default();
        loop {
            let content = reader.fill_buf();
            let content = content
                .map_err(|error| ContainerError::damaged_field(part.file_name(), "content", error.to_string()))?;
            if content.is_empty() {
                break;
            }
            digest.add_bytes(content);
            let count = content.len();
            reader.consume(count);
        }
        self.check_end(reader, part)?;
        Ok(digest.to_hex())
    }

    /// Fails if a finished part has more or less content than the manifest says.
    fn check_end(&self, reader: PartReader, part: ContainerPart) -> Result<(), ContainerError> {
        if self.manifest.finished { part::check_end(reader, part) } else { Ok(()) }
    }

    /// Reads the records to their end. If they are finished, compares the seal in their last line.
    fn check_records(&self) -> Result<(), ContainerError> {
        let part = ContainerPart::Records;
        let damaged = |how: &str| ContainerError::damaged_field(part.file_name(), "seal", how);
        let mut lines = self.part_lines(part)?;
        let (mut digest, mut last) = (ContentDigest::default(), Vec::new());
        while let Some(line) = lines.next_text()? {
            digest.add_bytes(&std::mem::replace(&mut last, line));
        }
        let seal: Option<EvidenceSeal> = serde_json::from_slice(&last).ok();
        if !self.manifest.finished {
            return match seal {
                None => Ok(()),
                Some(_) => Err(damaged("the manifest says that the evidence is unfinished")),
            };
        }
        self.check_end(lines.reader, part)?;
        let files = ContainerPart::BEFORE_RECORDS.map(|part| &self.manifest.files[part.file_name()]);
        let own = EvidenceSeal::new(&self.manifest, files, digest.to_hex()).ok();
        let (seal, own) = seal.zip(own).ok_or_else(|| damaged("it is missing"))?;
        match seal.first_difference(&own) {
            None => Ok(()),
            Some(file) => Err(damaged(&format!("{file} does not belong to it"))),
        }
    }

    /// The digest of a part's content.
    pub(in crate::result) fn content_digest(&self, part: ContainerPart) -> &str {
        &self.contents[part as usize]
    }

    /// Fails if the command that wrote it did not finish.
    pub fn require_finished(&self) -> Result<(), ContainerError> {
        if self.manifest.finished { Ok(()) } else { Err(ContainerError::Unfinished) }
    }

    /// Reads the study's facts.
    pub fn facts<T: DeserializeOwned>(&self) -> Result<T, ContainerError> {
        if self.manifest.facts.is_null() && !self.manifest.finished {
            return Err(ContainerError::Unfinished);
        }
        T::deserialize(&self.manifest.facts)
            .map_err(|error| ContainerError::damaged_field(super::MANIFEST, "facts", error.to_string()))
    }

    /// The machine's facts, as `doctor` prints them.
    pub fn machine(&self) -> Result<Value, ContainerError> {
        let machine = &self.manifest.origin.machine;
        match machine.is_object() {
            true => Ok(machine.clone()),
            false => Err(ContainerError::damaged_field(super::MANIFEST, "machine", "it has no facts")),
        }
    }

    fn open_part(&self, part: ContainerPart) -> Result<PartReader, ContainerError> {
        let facts = &self.manifest.files[part.file_name()];
        part::open_part(&self.directory, part, facts, self.manifest.finished)
    }

    /// Iterates over the events.
    pub fn events(&self) -> Result<ContainerEvents, ContainerError> {
        let left = self.manifest.files[ContainerPart::Readings.file_name()].items;
        Ok(ContainerEvents { reader: self.open_part(ContainerPart::Readings)?, left, number: 0 })
    }

    /// Iterates over the lines that the command printed.
    pub fn records(&self) -> Result<ContainerLines, ContainerError> {
        let mut lines = self.part_lines(ContainerPart::Records)?;
        if self.manifest.finished {
            // The last line is the seal.
            lines.numbers.end = lines.numbers.end.saturating_sub(1);
        }
        Ok(lines)
    }

    /// Iterates over the programs: `code` in hexadecimal, `body`, `relocations`.
    pub fn programs(&self) -> Result<ContainerLines, ContainerError> {
        self.part_lines(ContainerPart::Programs)
    }

    /// Iterates over the layouts.
    pub fn layouts(&self) -> Result<ContainerLines, ContainerError> {
        self.part_lines(ContainerPart::Layouts)
    }

    /// Iterates over all lines of a part.
    pub(super) fn part_lines(&self, part: ContainerPart) -> Result<ContainerLines, ContainerError> {
        let count = self.manifest.files[part.file_name()].items;
        Ok(ContainerLines { reader: self.open_part(part)?, part, numbers: 1..count.saturating_add(1) })
    }
}

/// Iterates over the lines of a file.
pub struct ContainerLines {
    reader: PartReader,
    part: ContainerPart,
    numbers: Range<u64>,
}

impl ContainerLines {
    /// Takes the next line with its line end.
    pub(super) fn next_text(&mut self) -> Result<Option<Vec<u8>>, ContainerError> {
        let Some(number) = self.numbers.next() else { return Ok(None) };
        let most = if self.part == ContainerPart::Programs { PROGRAM_MOST } else { LINE_MOST };
        let mut line = Vec::new();
        let read = (&mut self.reader).take(most).read_until(b'\n', &mut line);
        let how = match read {
            Ok(_) if line.ends_with(b"\n") => return Ok(Some(line)),
            Ok(0) => "it is missing".to_string(),
            Ok(_) => "it has no end".to_string(),
            Err(error) => error.to_string(),
        };
        Err(self.damaged_line(number, how))
    }

    fn damaged_line(&self, number: u64, how: String) -> ContainerError {
        ContainerError::damaged_field(self.part.file_name(), format!("line {number}"), how)
    }

    /// Takes the next line's value.
    fn next_value(&mut self) -> Result<Option<Value>, ContainerError> {
        let number = self.numbers.start;
        let Some(line) = self.next_text()? else { return Ok(None) };
        serde_json::from_slice(&line).map(Some).map_err(|error| self.damaged_line(number, error.to_string()))
    }
}

impl Iterator for ContainerLines {
    type Item = Result<Value, ContainerError>;

    fn next(&mut self) -> Option<Self::Item> {
        let value = self.next_value().transpose();
        if let Some(Err(_)) = value {
            // Lines after a damaged one can't be read.
            self.numbers = 0..0;
        }
        value
    }
}

/// The events of a container in chronological order.
pub struct ContainerEvents {
    reader: PartReader,
    left: u64,
    number: u64,
}

impl ContainerEvents {
    /// Whether all events have been read.
    pub(in crate::result) fn is_exhausted(&self) -> bool {
        self.left == 0
    }

    /// Takes the next event with at most `most` readings; `None` after the last event.
    pub fn take_event(&mut self, most: usize) -> Result<Option<(StudyEvent, Vec<Sample>)>, ContainerError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.number += 1;
        let named = |field: &str| format!("event {}: {field}", self.number);
        let damaged = |field: &str, how: &str| {
            ContainerError::damaged_field(ContainerPart::Readings.file_name(), named(field), how)
        };
        let failed = |field: &'static str| move |error: io::Error| (field, error.to_string());
        let event = (|| {
            let length = read_varint(&mut self.reader).map_err(failed("length"))?;
            let Some(length) = length.filter(|length| *length <= HEAD_MOST) else {
                return Err(("length", "it is not the length of an event".to_string()));
            };
            let mut head = Vec::new();
            let read = (&mut self.reader).take(length).read_to_end(&mut head).map_err(failed("head"))?;
            if (read as u64) < length {
                return Err(("head", "the file ends within it".to_string()));
            }
            let event = serde_json::from_slice(&head).map_err(|error| ("head", error.to_string()))?;
            let samples = read_samples(&mut self.reader, SAMPLES_MOST.min(most as u64)).map_err(failed("readings"))?;
            let samples = samples.ok_or(("readings", "a number is out of its range".to_string()))?;
            Ok((event, samples))
        })();
        event.map(Some).map_err(|(field, how)| damaged(field, &how))
    }
}
