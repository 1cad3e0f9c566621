//! Evidence of a survey: the durations of every visit, and what it takes to compute all costs from them again.
//!
//! A directory holds `marker.json`, one manifest with the records as they were printed, whose assembly has the bytes of
//! every function, and `visits`, 96 bytes for each visit in the order in which they were made: five little-endian 32-bit
//! numbers (subject, placement, times around of the shorter and of the longer loops and of the ruler's), four bytes of
//! nothing, and the durations of the calls in the order of [`call`], as nine 64-bit floating point numbers in raw units
//! of the clock.

use super::bench::{Subject, Visit, call};
use super::catalog::Catalog;
use super::estimate::read;
use super::ledger::{Finding, Ledger};
use super::record::MarkerRecord;
use crate::executor::DEFAULT;
use crate::ruler::LayoutSamples;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

/// The manifest's name.
pub const MANIFEST: &str = "marker.json";
/// The name of the file of durations.
const VISITS: &str = "visits";
/// Bytes of a manifest at most.
const MANIFEST_MOST: u64 = 256 << 20;
/// Bytes of a visit.
const VISIT: usize = 4 * 6 + 8 * call::COUNT;

/// What is known of a survey beside its visits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Manifest {
    /// The version that wrote it.
    pub version: String,
    /// The machine's facts.
    pub machine: Value,
    /// The level of confidence.
    pub confidence: f64,
    /// The latency of `imul` in core cycles.
    pub imul_latency: f64,
    /// The step of the clock's readings in its raw units.
    pub step: f64,
    /// How many placements there are.
    pub placements: usize,
    /// The executor's name.
    pub executor: String,
    /// The subjects, in the order of their numbers.
    pub subjects: Vec<Key>,
    /// The records as they were printed, in the same order.
    pub records: Vec<Value>,
}

/// A subject by its names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The design.
    pub design: String,
    /// The state.
    pub state: String,
    /// The loop.
    pub context: String,
    /// How often it called its probe in the proof.
    pub hits: Option<u64>,
}

/// Writes evidence while a survey goes on.
pub struct Writer {
    visits: BufWriter<File>,
    failed: Option<io::Error>,
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

impl Writer {
    /// In a directory that is there.
    pub fn new(directory: &Path) -> io::Result<Writer> {
        let visits = BufWriter::new(File::create_new(directory.join(VISITS))?);
        Ok(Writer { visits, failed: None })
    }

    /// Adds a visit. What goes wrong is told by [`Writer::finish`].
    pub fn visited(&mut self, subject: usize, visit: &Visit, samples: &LayoutSamples) {
        if self.failed.is_none() {
            self.failed = self.write(subject, visit, samples).err();
        }
    }

    fn write(&mut self, subject: usize, visit: &Visit, samples: &LayoutSamples) -> io::Result<()> {
        let [few, many] = visit.loops;
        let numbers = [subject as u64, visit.placement as u64, few, many, visit.ruler_loops, 0];
        for number in numbers {
            let number =
                u32::try_from(number).map_err(|_| damaged("a visit's number has more than 32 bits"))?;
            self.visits.write_all(&number.to_le_bytes())?;
        }
        let round = samples.rounds().next().ok_or_else(|| damaged("a visit has no round"))?;
        round.iter().try_for_each(|duration| self.visits.write_all(&duration.to_le_bytes()))
    }

    /// Writes the rest.
    pub fn finish(mut self, directory: &Path, manifest: &Manifest) -> io::Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.visits.flush()?;
        let mut file = BufWriter::new(File::create_new(directory.join(MANIFEST))?);
        serde_json::to_writer(&mut file, manifest)?;
        file.flush()
    }
}

impl Manifest {
    /// The manifest of a survey with these records.
    pub fn new(
        machine: Value,
        (confidence, imul_latency, step): (f64, f64, f64),
        placements: usize,
        records: &[MarkerRecord],
    ) -> Manifest {
        let key = |record: &MarkerRecord| Key {
            design: record.design.to_string(),
            state: record.state.clone(),
            context: record.context.clone(),
            hits: record.calls.map(|calls| calls.counted),
        };
        let value = |record| serde_json::to_value(record).expect("records are plain data");
        Manifest {
            version: env!("CARGO_PKG_VERSION").to_string(),
            machine,
            confidence,
            imul_latency,
            step,
            placements,
            executor: records.first().map_or(DEFAULT.name, |record| record.executor).to_string(),
            subjects: records.iter().map(key).collect(),
            records: records.iter().map(value).collect(),
        }
    }

    /// Reads it from a directory.
    pub fn read(directory: &Path) -> io::Result<Manifest> {
        let file = File::open(directory.join(MANIFEST))?;
        let text = BufReader::new(file.take(MANIFEST_MOST));
        serde_json::from_reader(text).map_err(|error| damaged(&format!("{MANIFEST}: {error}")))
    }

    /// What the visits in a directory say.
    pub fn replay(&self, directory: &Path) -> io::Result<Vec<Finding>> {
        let catalog = Catalog::of(&self.executor).map_err(|refused| damaged(&refused.to_string()))?;
        let subject = |key: &Key| {
            let design = catalog.designs.iter().find(|design| design.name == key.design)?;
            let state = (catalog.states)(design).into_iter().find(|state| state.name == key.state)?;
            Some(Subject { design, state, context: key.context.clone() })
        };
        let subjects: Option<Vec<Subject>> = self.subjects.iter().map(subject).collect();
        let subjects = subjects.ok_or_else(|| damaged("it names a design or state that there is not"))?;
        let mut ledger = Ledger::new(subjects, self.placements);
        for (key, hits) in self.subjects.iter().zip(&mut ledger.hits) {
            *hits = key.hits;
        }
        let mut visits = BufReader::new(File::open(directory.join(VISITS))?);
        let mut bytes = [0; VISIT];
        while read_whole(&mut visits, &mut bytes)? {
            let (subject, visit, samples) = decode(&bytes);
            if subject >= self.subjects.len() || visit.placement >= self.placements {
                return Err(damaged("a visit is to nothing in the manifest"));
            }
            ledger.note(subject, visit.placement, read(&samples, &visit, self.imul_latency, self.step));
        }
        Ok(ledger.findings(self.confidence))
    }
}

/// Fills the bytes; false at the end of the file.
fn read_whole(file: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read(&mut bytes[filled..])? {
            0 if filled == 0 => return Ok(false),
            0 => return Err(damaged("the last visit is not whole")),
            more => filled += more,
        }
    }
    Ok(true)
}

fn decode(bytes: &[u8; VISIT]) -> (usize, Visit, LayoutSamples) {
    let (numbers, durations) = bytes.split_at(4 * 6);
    let numbers: Vec<u64> = numbers
        .chunks_exact(4)
        .map(|number| u32::from_le_bytes(number.try_into().expect("four bytes")).into())
        .collect();
    let durations = durations
        .chunks_exact(8)
        .map(|number| f64::from_le_bytes(number.try_into().expect("eight bytes")))
        .collect();
    let visit =
        Visit { placement: numbers[1] as usize, loops: [numbers[2], numbers[3]], ruler_loops: numbers[4] };
    (numbers[0] as usize, visit, LayoutSamples::of_durations(durations, call::COUNT))
}
