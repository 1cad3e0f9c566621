//! Keeps every visit of a survey, and computes its costs again.

use crate::failure::Failure;
use crate::output::Output;
use cyclescope::evidence::prepare;
use cyclescope::machine::Machine;
use cyclescope::study::marker::evidence::{MANIFEST, Manifest, Writer};
use cyclescope::study::marker::ledger::Finding;
use cyclescope::study::marker::record::MarkerRecord;
use cyclescope::study::marker::survey::{Event, Plan};
use serde::Serialize;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};

/// Evidence under way.
pub struct Evidence {
    directory: PathBuf,
    writer: Writer,
    manifest: Option<Manifest>,
}

impl Evidence {
    /// In a new or an empty directory.
    pub fn new(directory: &Path) -> Result<Evidence, Failure> {
        let refused = |error: io::Error| {
            let remedy = "name a new or an empty directory, where you may write";
            Failure::usage(
                format!("no evidence can be written to {}: {error}", directory.display()),
                Some(remedy),
            )
        };
        prepare(directory).map_err(refused)?;
        Ok(Evidence {
            directory: directory.to_path_buf(),
            writer: Writer::new(directory).map_err(refused)?,
            manifest: None,
        })
    }

    /// Keeps the events of a survey.
    pub fn take(&mut self, event: &Event) {
        if let Event::Visited { subject, visit, samples } = event {
            self.writer.visited(*subject, visit, samples);
        }
    }

    /// Takes what is known when all is measured.
    pub fn tell(&mut self, machine: &Machine, plan: &Plan, step: f64, records: &[MarkerRecord]) {
        let machine = serde_json::to_value(machine).expect("facts are plain data");
        let placements = records.first().map_or(0, |record| record.placements.len());
        let facts = (plan.confidence, plan.imul_latency, step);
        self.manifest = Some(Manifest::new(machine, facts, placements, records));
    }

    /// Writes the rest.
    pub fn finish(self) -> Result<(), Failure> {
        let Some(manifest) = self.manifest else { return Ok(()) };
        self.writer.finish(&self.directory, &manifest).map_err(|error| {
            Failure::internal(format!("writing evidence failed: {error}"))
                .with_remedy("the result itself is complete")
        })
    }
}

/// Whether a directory contains the evidence of a survey of markers.
pub fn is_evidence(directory: &Path) -> bool {
    directory.join(MANIFEST).exists()
}

/// A cost computed again, kind `marker.replay`.
#[derive(Serialize)]
struct Replayed<'a> {
    design: &'a str,
    state: &'a str,
    context: &'a str,
    cost: Value,
    visits: usize,
}

/// Computes all costs again, prints them, and fails where they are not what was written beside the visits.
pub fn replay(directory: &Path, output: &mut Output) -> Result<(), Failure> {
    let unreadable = |error: io::Error| {
        let remedy = "name a directory that a command with --evidence has finished writing";
        Failure::usage(format!("the evidence can't be read: {error}"), Some(remedy))
    };
    let manifest = Manifest::read(directory).map_err(unreadable)?;
    let findings = manifest.replay(directory).map_err(unreadable)?;
    let mut differing = Vec::new();
    for (finding, written) in findings.iter().zip(&manifest.records) {
        let cost = cost(finding);
        let name = format!(
            "{} {} in {}",
            finding.subject.design.name, finding.subject.state.name, finding.subject.context
        );
        if cost != written["cost"] {
            differing.push(name.clone());
        }
        if output.is_json() {
            let replayed = Replayed {
                design: finding.subject.design.name,
                state: finding.subject.state.name,
                context: &finding.subject.context,
                cost,
                visits: finding.visits,
            };
            output.record("marker.replay", &replayed)?;
        } else {
            let text = finding.cost.map_or("no cost".to_string(), |cost| {
                format!("{:.3} ({:.3} to {:.3}) core cycles", cost.value, cost.low, cost.high)
            });
            output.line(format!("{name}: {text}"))?;
        }
    }
    if differing.is_empty() {
        return Ok(());
    }
    let text = format!("the visits give a different cost than the stored record: {}", differing.join(", "));
    Err(Failure::internal(text).with_remedy("a file was changed, or another version wrote it"))
}

/// A cost as records have it, read back as text gives it.
fn cost(finding: &Finding) -> Value {
    let quantity = cyclescope::study::marker::record::quantity(finding.cost);
    let text = serde_json::to_string(&quantity).expect("a quantity is plain data");
    serde_json::from_str(&text).expect("a quantity can be read back")
}
