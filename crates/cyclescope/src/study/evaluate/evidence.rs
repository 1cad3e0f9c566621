//! Evidence of an evaluation: every reading of every method, and what it takes to read them again.
//!
//! Each ensemble is an event of the container with the number of its method; the facts have the methods in order. What
//! was measured beside the ensembles, neighbours, resolution and overhead over layouts, follows from times and from
//! `doctor`'s experiments on the machine itself, and is kept as records only.

use super::Subject;
use super::method::Method;
use super::reader::{Reader, Shape, Size};
use super::record::EvaluateRecord;
use super::trimmed::Scale;
use crate::clock::Clock;
use crate::executor::{Offer, Sample};
use crate::result::container::{Container, ContainerError, Event, Events, Writer, plain};
use crate::ruler::Quiet;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;

/// The study's name in manifests.
pub const STUDY: &str = "evaluate";

/// Samples of an ensemble at most.
pub(crate) const SAMPLES_MOST: u32 = 3_000_000;

/// Bytes of one reading's pair.
const PAIR: usize = 16;

/// What is written about one method.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kept {
    /// Its name.
    pub clock: String,
    /// The executor's name.
    pub executor: String,
    /// How its readings are laid out.
    pub shape: Shape,
    /// What was asked for.
    pub asked: Size,
    /// Its number in the events of its ensembles, which grows from method to method.
    pub number: u64,
    /// The number of the empty pair's program.
    pub program: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// The width of a core of its own that earlier methods found.
    pub earlier: Quiet,
    /// Its record as it was printed.
    pub record: Value,
}

/// The facts of an evaluation.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EvaluationFacts {
    /// The methods, as they were completed.
    pub methods: Vec<Kept>,
}

/// Which method an ensemble is of.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Of {
    method: u64,
}

/// Bytes that the readings of a method take at most: a tenth of what they are raw, where a thirtieth was measured (see
/// [`container`](crate::result::container)).
pub fn bytes(shape: &Shape) -> u64 {
    u64::from(shape.size.ensembles) * (shape.readings() * PAIR) as u64 / 10
}

/// Adds an ensemble's readings, of the method with this number.
pub fn keep(writer: &mut Writer, method: u64, readings: &[Sample]) -> io::Result<()> {
    writer.event(&Event::Kept { of: serde_json::to_value(Of { method })? }, readings)
}

impl EvaluationFacts {
    /// Computes the figures of all methods again from their readings. What was not measured by them, the overhead over
    /// layouts, is missing.
    pub fn replay(&self, container: &Container) -> Result<Vec<Method<'static>>, ContainerError> {
        let mut events = container.events()?;
        let methods = self.methods.iter().enumerate();
        methods.map(|(index, kept)| kept.replay(index, &mut events)).collect()
    }
}

impl Kept {
    /// What to keep about a method.
    pub fn new(method: &Method, (number, program): (u64, u64), record: &EvaluateRecord) -> io::Result<Kept> {
        Ok(Kept {
            clock: method.subject.clock.name.to_string(),
            executor: method.subject.executor.to_string(),
            shape: method.sampled.shape,
            asked: method.asked,
            number,
            program,
            seconds: method.sampled.seconds,
            earlier: method.earlier,
            record: plain(record)?,
        })
    }

    fn replay(&self, index: usize, events: &mut Events) -> Result<Method<'static>, ContainerError> {
        let damaged = |field: &str, how: &str| {
            ContainerError::fact(&format!("methods[{index}].{field}"), format!("{how} ({})", self.clock))
        };
        let clock = Clock::named(&self.clock).ok_or_else(|| damaged("clock", "there is no such clock"))?;
        let executor = Offer::named(&self.executor)
            .ok_or_else(|| damaged("executor", "there is no such executor"))?
            .name;
        let Shape { size, block, scale } = self.shape;
        let plausible = |value: f64| value.is_finite() && value > 0.0 && value < 1e6;
        let sane = (1..=size.samples as usize).contains(&block) && size.samples <= SAMPLES_MOST;
        if !sane || !plausible(scale.step) || !plausible(scale.imul_latency) {
            return Err(damaged("shape", "a number in it is out of its range"));
        }
        let ensembles = self.record["ensembles"].as_u64();
        let ensembles = ensembles.ok_or_else(|| damaged("record.ensembles", "it is no number"))?;
        let mut reader = Reader::new(self.shape);
        let mut taken = 0;
        while taken < ensembles {
            let Some((Event::Kept { of }, samples)) = events.take(self.shape.readings())? else {
                return Err(damaged("record.ensembles", "there are fewer readings"));
            };
            let of = Of::deserialize(of).map_err(|error| damaged("number", &error.to_string()))?;
            // One that was not completed.
            if of.method < self.number {
                continue;
            }
            if of.method > self.number || samples.len() != self.shape.readings() {
                return Err(damaged("shape", "the readings are of another method or number"));
            }
            reader.take(&samples);
            taken += 1;
        }
        let Scale { step, imul_latency } = scale;
        let emulated = self.is_emulated();
        let subject = Subject { clock, executor, ruler: clock, step, imul_latency, width: None, emulated };
        Method::read(subject, self.asked, reader.finish(self.seconds), (None, self.earlier))
            .ok_or_else(|| damaged("record", "no reading is sane"))
    }

    /// Whether its record says that the machine was emulated.
    pub(super) fn is_emulated(&self) -> bool {
        let mut caveats = self.record["caveats"].as_array().into_iter().flatten();
        caveats.any(|caveat| caveat["code"] == "emulated")
    }
}
