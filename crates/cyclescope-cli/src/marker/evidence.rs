//! Keeps every visit of a survey, and computes its costs again.

use crate::evidence::{Place, unwritten};
use crate::failure::Failure;
use crate::output::Output;
use cyclescope::machine::Machine;
use cyclescope::result::container::{self, Container, ContainerError};
use cyclescope::study::marker::evidence::{MarkerFacts, STUDY, keep};
use cyclescope::study::marker::ledger::Finding;
use cyclescope::study::marker::record::MarkerRecord;
use cyclescope::study::marker::survey::{Event, Plan};
use serde::Serialize;
use serde_json::Value;
use std::rc::Rc;

/// Evidence under way.
pub struct Evidence(Rc<container::Evidence>);

impl Evidence {
    /// In a directory that was made for it.
    pub fn new(place: &Place, machine: &Machine, repro: &str) -> Result<Evidence, Failure> {
        place.begin(STUDY, repro, machine).map(Evidence)
    }

    /// Keeps what a survey tells. What goes wrong is told by [`Evidence::finish`].
    pub fn take(&mut self, event: &Event) {
        if let Event::Visited { subject, visit, samples } = event {
            self.0.keep(|writer| keep(writer, *subject, visit, samples));
        }
    }

    /// Takes what is known when all is measured.
    pub fn tell(&mut self, plan: &Plan, step: f64, records: &[MarkerRecord]) {
        let placements = records.first().map_or(0, |record| record.placements.len());
        let facts = (plan.confidence, plan.imul_latency, step);
        let facts = MarkerFacts::new(facts, placements, records);
        self.0.keep(|writer| {
            writer.set_facts(&facts)?;
            records.iter().try_for_each(|record| writer.record("marker", record))
        });
    }

    /// Writes the rest.
    pub fn finish(self) -> Result<(), Failure> {
        self.0.finish().map_err(unwritten)
    }
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
pub fn replay(container: &Container, output: &mut Output) -> Result<u8, Failure> {
    container.require_finished()?;
    let facts: MarkerFacts = container.facts()?;
    let findings = facts.replay(container)?;
    let records: Vec<Value> = container.records()?.collect::<Result<_, _>>()?;
    if records.len() != findings.len() {
        let text = format!("there are {} records of {} markers", records.len(), findings.len());
        return Err(ContainerError::fact("subjects", text).into());
    }
    let mut differing = Vec::new();
    for (finding, written) in findings.iter().zip(&records) {
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
        return Ok(cyclescope::record::exit::DONE);
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
