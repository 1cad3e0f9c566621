//! Computes the figures of an evaluation again from its evidence.

use super::{rows, tables};
use crate::failure::Failure;
use crate::output::Output;
use crate::page::Page;
use cyclescope::result::container::Container;
use cyclescope::study::evaluate::evidence::EvaluationFacts;
use cyclescope::study::evaluate::method::Method;
use cyclescope::study::evaluate::record::{EvaluateRecord, Surroundings};
use serde_json::Value;

/// Reads the evidence, prints what it says and fails where that is not what was written beside it.
pub fn replay(container: &Container, output: &mut Output) -> Result<u8, Failure> {
    let facts: EvaluationFacts = match container.manifest.facts {
        // Not one method was completed.
        Value::Null => EvaluationFacts::default(),
        _ => container.facts()?,
    };
    if facts.methods.is_empty() {
        return Err(Failure::usage("no method of this evaluation was completed", Some("run it again")));
    }
    let methods = facts.replay(container)?;
    let mut differing = Vec::new();
    for (method, kept) in methods.iter().zip(&facts.methods) {
        let record = record(method, &kept.record);
        if let Some(field) = difference(&record, &kept.record) {
            differing.push(format!("{field} of {}", rows::named(method.subject.candidate())));
        }
        if output.is_json() {
            output.record("evaluate", &record)?;
        }
    }
    if !output.is_json() {
        let mut page = Page::new(output);
        tables::of_samples(&mut page, &methods.iter().collect::<Vec<_>>())?;
        tables::of_trimmed(&mut page, &methods.iter().collect::<Vec<_>>())?;
    }
    if differing.is_empty() {
        if !output.is_json() {
            output.line("")?;
            output.line("These are the figures stored with the readings.")?;
        }
        return Ok(cyclescope::record::exit::DONE);
    }
    let text = format!("the readings give a different {} than the stored result", differing.join(", "));
    Err(Failure::internal(text).with_remedy("a file was changed, or another version wrote it"))
}

/// The record of a method; what does not follow from its readings comes from the stored one.
fn record(method: &Method, written: &Value) -> EvaluateRecord {
    let text = |field: &str| written[field].as_str().unwrap_or_default().to_string();
    EvaluateRecord::new(
        method,
        &Surroundings {
            cpu: written["cpu"].as_u64().unwrap_or(0) as u32,
            cpu_model: text("cpu_model"),
            seed: written["seed"].as_u64().unwrap_or(0),
            repro: text("repro"),
        },
    )
}

/// What does not follow from the readings of the samples.
const NOT_COMPARED: [&str; 2] = ["overhead", "caveats"];

/// The first field that differs from what was written.
fn difference(record: &EvaluateRecord, written: &Value) -> Option<String> {
    let text = serde_json::to_string(record).expect("records are plain data");
    let now: Value = serde_json::from_str(&text).expect("a record can be read back");
    let fields = now.as_object().expect("a record is an object").keys();
    let mut compared = fields.filter(|field| !NOT_COMPARED.contains(&field.as_str()));
    compared.find(|field| now[*field] != written[*field]).cloned()
}
