//! Evidence of a survey: the durations of every visit, and what it takes to compute all costs from them again.
//!
//! Each visit is an event of the container with its subject, placement and times around; its readings are the durations
//! of the calls in the order of [`call`], each from the end of the one before. The records, in the order of the subjects,
//! have the bytes of every function in their assembly. What a visit runs is made by the C compiler, patched and
//! traced, so that a replay computes from the durations and runs no course again.

use super::bench::{Subject, Visit, call};
use super::catalog::Catalog;
use super::estimate::read;
use super::ledger::{Finding, Ledger};
use super::record::MarkerRecord;
use crate::executor::{DEFAULT, Sample};
use crate::result::container::{Container, ContainerError, Event, Writer};
use crate::ruler::LayoutSamples;
use serde::{Deserialize, Serialize};
use std::io;

/// The study's name in manifests.
pub const STUDY: &str = "marker";

/// Placements of a subject at most; benches have some dozen.
const PLACEMENTS_MOST: usize = 256;
/// Subjects at most: all designs with all states in all loops are some hundred.
const SUBJECTS_MOST: usize = 1 << 14;

/// What is known of a survey beside its visits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MarkerFacts {
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

/// Which visit an event is.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Of {
    subject: usize,
    placement: usize,
    loops: [u64; 2],
    ruler_loops: u64,
}

/// Whole numbers up to this one are exact as floating point numbers.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Adds a visit.
pub fn keep(writer: &mut Writer, subject: usize, visit: &Visit, samples: &LayoutSamples) -> io::Result<()> {
    let Visit { placement, loops, ruler_loops } = *visit;
    let of = serde_json::to_value(Of { subject, placement, loops, ruler_loops })?;
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_string());
    let round = samples.rounds().next().ok_or_else(|| invalid("a visit has no round"))?;
    let mut start = 0u64;
    let mut readings = Vec::with_capacity(round.len());
    for duration in round {
        let sample = match *duration {
            // A clock that stepped back, see [`LayoutSamples::new`].
            duration if duration == f64::INFINITY => Sample { start: start + 1, end: start },
            duration if duration.fract() == 0.0 && (0.0..EXACT).contains(&duration) => {
                Sample { start, end: start + duration as u64 }
            }
            _ => return Err(invalid("a duration is no whole number of the clock's units")),
        };
        start = sample.end;
        readings.push(sample);
    }
    writer.event(&Event::Kept { of }, &readings)
}

impl MarkerFacts {
    /// The facts of a survey with these records.
    pub fn new(
        (confidence, imul_latency, step): (f64, f64, f64),
        placements: usize,
        records: &[MarkerRecord],
    ) -> MarkerFacts {
        let key = |record: &MarkerRecord| Key {
            design: record.design.to_string(),
            state: record.state.clone(),
            context: record.context.clone(),
            hits: record.calls.map(|calls| calls.counted),
        };
        MarkerFacts {
            confidence,
            imul_latency,
            step,
            placements,
            executor: records.first().map_or(DEFAULT.name, |record| record.executor).to_string(),
            subjects: records.iter().map(key).collect(),
        }
    }

    /// What the visits in a container say.
    pub fn replay(&self, container: &Container) -> Result<Vec<Finding>, ContainerError> {
        let plausible = |value: f64| value > 0.0 && value < 1e9;
        let latency = self.imul_latency == 0.0 || plausible(self.imul_latency);
        let confidence = (1e-6..1.0).contains(&self.confidence);
        let size = self.placements <= PLACEMENTS_MOST && self.subjects.len() <= SUBJECTS_MOST;
        if !latency || !plausible(self.step) || !confidence || !size {
            return Err(ContainerError::fact("step", "this or another number is out of its range"));
        }
        let catalog = Catalog::of(&self.executor)
            .map_err(|refused| ContainerError::fact("executor", refused.to_string()))?;
        let subject = |key: &Key| {
            let design = catalog.designs.iter().find(|design| design.name == key.design)?;
            let state = (catalog.states)(design).into_iter().find(|state| state.name == key.state)?;
            Some(Subject { design, state, context: key.context.clone() })
        };
        let subjects: Option<Vec<Subject>> = self.subjects.iter().map(subject).collect();
        let subjects = subjects.ok_or_else(|| {
            ContainerError::fact("subjects", "one is of a design or state that there is not")
        })?;
        let mut ledger = Ledger::new(subjects, self.placements);
        for (key, hits) in self.subjects.iter().zip(&mut ledger.hits) {
            *hits = key.hits;
        }
        let mut events = container.events()?;
        while let Some((event, readings)) = events.take(call::COUNT)? {
            let damaged = |how: &str| ContainerError::fact("subjects", how);
            let Event::Kept { of } = event else { return Err(damaged("an event is no visit")) };
            let Of { subject, placement, loops, ruler_loops } =
                Of::deserialize(of).map_err(|error| damaged(&error.to_string()))?;
            if subject >= self.subjects.len() || placement >= self.placements {
                return Err(damaged("a visit is to another subject or placement"));
            }
            if readings.len() != call::COUNT || loops[0] >= loops[1] || ruler_loops == 0 {
                return Err(damaged("a visit has other calls"));
            }
            let samples = LayoutSamples::new(&readings, &ORDER);
            let visit = Visit { placement, loops, ruler_loops };
            ledger.note(subject, placement, read(&samples, &visit, self.imul_latency, self.step));
        }
        Ok(ledger.findings(self.confidence))
    }
}

/// Readings are kept in the order of their columns.
const ORDER: [usize; call::COUNT] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
