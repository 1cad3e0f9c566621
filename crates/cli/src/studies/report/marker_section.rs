//! What instrumentation costs: a table of designs and states for each context.

use super::core_section::field_text;
use super::report_file::ReportFile;
use serde::Serialize;
use serde_json::Value;

/// The costs of markers on a machine.
#[derive(Serialize)]
pub struct MarkerSection {
    machine: Option<usize>,
    contexts: Vec<MarkerContext>,
    conclusions: Vec<MarkerConclusion>,
}

#[derive(Serialize)]
struct MarkerContext {
    name: String,
    rows: Vec<MarkerRow>,
}

#[derive(Serialize)]
struct MarkerRow {
    design: String,
    state: String,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    bytes: String,
}

#[derive(Serialize)]
struct MarkerConclusion {
    text: String,
    verdict: String,
}

/// The section of a file; `None` without markers.
pub fn describe_markers(file: &ReportFile, machine: Option<usize>) -> Option<MarkerSection> {
    let mut contexts: Vec<MarkerContext> = Vec::new();
    for line in file.of_kind("marker") {
        let name = field_text(line, "context");
        if contexts.iter().all(|context| context.name != name) {
            contexts.push(MarkerContext { name: name.clone(), rows: Vec::new() });
        }
        let context = contexts.iter_mut().find(|context| context.name == name).expect("it was added");
        context.rows.push(MarkerRow::from_line(line));
    }
    let conclusions =
        file.of_kind("marker.conclusions").flat_map(|line| line["conclusions"].as_array().into_iter().flatten());
    let conclusions = conclusions.map(|conclusion| MarkerConclusion {
        text: field_text(conclusion, "text"),
        verdict: describe_conclusion(conclusion).to_string(),
    });
    (!contexts.is_empty()).then(|| MarkerSection { machine, contexts, conclusions: conclusions.collect() })
}

fn describe_conclusion(conclusion: &Value) -> &'static str {
    match (conclusion["measured"] == true, conclusion["holds"].as_bool()) {
        (false, _) => "not measured",
        (true, Some(true)) => "holds here",
        (true, Some(false)) => "does not hold here",
        (true, None) => "unclear",
    }
}

impl MarkerRow {
    fn from_line(line: &Value) -> MarkerRow {
        let cost = |field: &str| line["cost"][field].as_f64();
        let bytes = |field: &str| line[field].as_u64().map_or("–".to_string(), |bytes| bytes.to_string());
        MarkerRow {
            design: field_text(line, "design"),
            state: field_text(line, "state"),
            value: cost("value"),
            low: cost("low"),
            high: cost("high"),
            bytes: format!("{} + {}", bytes("likely_bytes"), bytes("unlikely_bytes")),
        }
    }
}
