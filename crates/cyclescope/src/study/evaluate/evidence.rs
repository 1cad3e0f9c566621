//! Evidence of an evaluation: every reading of every method, and what it takes to read them again.
//!
//! A directory holds `evaluate.json`, one manifest for all methods, and for each method `NAME.readings`, in ring 0
//! `NAME.kernel.readings`: pairs of little-endian 64-bit readings, start and end, in the order in which they were
//! taken, the ruler's included. An ensemble is [`super::reader::Shape::readings`] pairs long.

use super::method::Method;
use super::reader::{Reader, Shape, Size};
use super::record::EvaluateRecord;
use super::trimmed::Scale;
use super::{Candidate, Subject};
use crate::clock::Clock;
use crate::executor::{DEFAULT, Offer, Sample};
use crate::ruler::Quiet;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// The manifest's name.
pub const MANIFEST: &str = "evaluate.json";

/// Bytes of a manifest at most: some dozen methods of some kilobytes each.
const MANIFEST_MOST: u64 = 16 << 20;

/// Samples of an ensemble at most.
pub const SAMPLES_MOST: u32 = 3_000_000;

/// Bytes of one reading's pair.
const PAIR: usize = 16;

/// What is written about one method.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kept {
    /// Its name.
    pub clock: String,
    /// The executor's name; the first version that kept evidence had one executor alone.
    #[serde(default = "default_executor")]
    pub executor: String,
    /// How its readings are laid out.
    pub shape: Shape,
    /// What was asked for.
    pub asked: Size,
    /// The program of the empty pair before it was placed, in hexadecimal.
    pub program: String,
    /// Seconds that it took.
    pub seconds: f64,
    /// The width of a core of its own that earlier methods found.
    pub earlier: Quiet,
    /// Its record as it was printed.
    pub record: Value,
}

fn default_executor() -> String {
    DEFAULT.name.to_string()
}

/// The manifest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Manifest {
    /// The version that wrote it.
    pub version: String,
    /// The machine's facts.
    pub machine: Value,
    /// The methods, as they were completed.
    pub methods: Vec<Kept>,
}

impl Manifest {
    /// One without methods yet.
    pub fn new(machine: Value) -> Manifest {
        Manifest { version: env!("CARGO_PKG_VERSION").to_string(), machine, methods: Vec::new() }
    }

    /// Writes it, whole or not at all.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        let new = directory.join("evaluate.json.new");
        std::fs::write(&new, text)?;
        std::fs::rename(new, directory.join(MANIFEST))
    }

    /// Reads one.
    pub fn read(directory: &Path) -> io::Result<Manifest> {
        let path = directory.join(MANIFEST);
        let file = std::fs::metadata(&path)?;
        if !file.is_file() || file.len() > MANIFEST_MOST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "evaluate.json is no manifest"));
        }
        let text = std::fs::read_to_string(path)?;
        serde_json::from_str(&text).map_err(io::Error::other)
    }
}

/// Bytes that the readings of a method take at most.
pub fn bytes(shape: &Shape) -> u64 {
    u64::from(shape.size.ensembles) * (shape.readings() * PAIR) as u64
}

/// The file of a method's readings.
fn readings_of(directory: &Path, clock: &str, executor: &str) -> PathBuf {
    directory.join(match executor == DEFAULT.name {
        true => format!("{clock}.readings"),
        false => format!("{clock}.{executor}.readings"),
    })
}

/// Writes the readings of one method.
pub struct Writer(BufWriter<File>);

impl Writer {
    /// Into a new file.
    pub fn new(directory: &Path, Candidate { clock, executor }: Candidate) -> io::Result<Writer> {
        File::create_new(readings_of(directory, clock.name, executor))
            .map(|file| Writer(BufWriter::with_capacity(1 << 20, file)))
    }

    /// Adds readings.
    pub fn write(&mut self, readings: &[Sample]) -> io::Result<()> {
        for sample in readings {
            self.0.write_all(&sample.start.to_le_bytes())?;
            self.0.write_all(&sample.end.to_le_bytes())?;
        }
        Ok(())
    }

    /// Ends the file.
    pub fn finish(mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Kept {
    /// What to keep about a method.
    pub fn new(method: &Method, program: &[u8], record: &EvaluateRecord) -> Kept {
        Kept {
            clock: method.subject.clock.name.to_string(),
            executor: method.subject.executor.to_string(),
            shape: method.sampled.shape,
            asked: method.asked,
            program: crate::run::hex(program),
            seconds: method.sampled.seconds,
            earlier: method.earlier,
            // By its text: a value can't hold integers of 128 bits, which become floating point numbers here.
            record: serde_json::to_string(record)
                .and_then(|text| serde_json::from_str(&text))
                .unwrap_or(Value::Null),
        }
    }

    /// Computes the method's figures again from its readings. What was not measured by them, the overhead over layouts,
    /// is missing.
    pub fn replay(&self, directory: &Path) -> io::Result<Method<'static>> {
        let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
        let clock =
            Clock::named(&self.clock).ok_or_else(|| invalid(format!("there is no clock {}", self.clock)))?;
        let executor = Offer::named(&self.executor)
            .ok_or_else(|| invalid(format!("there is no executor {}", self.executor)))?
            .name;
        let Shape { size, block, scale } = self.shape;
        let plausible = |value: f64| value.is_finite() && value > 0.0 && value < 1e6;
        let sane = (1..=size.samples as usize).contains(&block) && size.samples <= SAMPLES_MOST;
        if !sane || !plausible(scale.step) || !plausible(scale.imul_latency) {
            return Err(invalid(format!("the shape of {}'s readings makes no sense", self.clock)));
        }
        let path = readings_of(directory, &self.clock, executor);
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let file = std::fs::metadata(&path).map_err(named)?;
        let ensemble = (self.shape.readings() * PAIR) as u64;
        let ensembles = self.record["ensembles"].as_u64();
        if !file.is_file() || Some(file.len()) != ensembles.and_then(|count| count.checked_mul(ensemble)) {
            return Err(invalid(format!("{} is not as long as its ensembles", path.display())));
        }
        let mut file = BufReader::with_capacity(1 << 20, File::open(&path).map_err(named)?);
        let mut reader = Reader::new(self.shape);
        let mut bytes = vec![0; self.shape.readings() * PAIR];
        let mut samples = vec![Sample::default(); self.shape.readings()];
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        loop {
            match read_whole(&mut file, &mut bytes)? {
                0 => break,
                filled if filled < bytes.len() => {
                    return Err(invalid(format!("the readings of {} end within an ensemble", self.clock)));
                }
                _ => {}
            }
            for (sample, pair) in samples.iter_mut().zip(bytes.chunks_exact(PAIR)) {
                *sample = Sample { start: word(&pair[..8]), end: word(&pair[8..]) };
            }
            reader.take(&samples);
        }
        let Scale { step, imul_latency } = scale;
        let emulated = self.is_emulated();
        let subject = Subject { clock, executor, ruler: clock, step, imul_latency, width: None, emulated };
        Method::read(subject, self.asked, reader.finish(self.seconds), (None, self.earlier))
            .ok_or_else(|| invalid(format!("there is no sane reading of {}", self.clock)))
    }

    /// Whether its record says that the machine was emulated.
    pub(super) fn is_emulated(&self) -> bool {
        let mut caveats = self.record["caveats"].as_array().into_iter().flatten();
        caveats.any(|caveat| caveat["code"] == "emulated")
    }
}

/// Fills a buffer as far as the file goes.
fn read_whole(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            more => filled += more,
        }
    }
    Ok(filled)
}
