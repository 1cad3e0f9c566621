//! Results of `run`, `ab` and other commands: a table for each kind.

use super::core_section::field_text;
use super::report_file::ReportFile;
use cyclescope::record::Quantity;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A table of results of a kind.
#[derive(Serialize)]
pub struct ProgramSection {
    machine: Option<usize>,
    title: String,
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

/// A kind of results: its title, and for each column its field.
struct ResultKind {
    kind: &'static str,
    title: &'static str,
    columns: &'static [(&'static str, &'static str)],
}

/// The kinds that have a table.
const RESULT_KINDS: &[ResultKind] = &[
    ResultKind {
        kind: "run",
        title: "Snippets and functions",
        columns: &[
            ("code", "snippet"),
            ("cost", "cost"),
            ("time", "time"),
            ("caveats", "caveats"),
            ("command", "repro"),
        ],
    },
    ResultKind {
        kind: "ab",
        title: "Programs compared",
        columns: &[("name", "name"), ("verdict", "verdict"), ("change", "change"), ("caveats", "caveats")],
    },
];

/// The tables of a file.
pub fn describe_programs(file: &ReportFile, machine: Option<usize>) -> Vec<ProgramSection> {
    let table = |kind: &ResultKind| {
        let row = |line: &Value| kind.columns.iter().map(|(_, field)| describe_field(&line[*field])).collect();
        let rows: Vec<Vec<String>> = file.of_kind(kind.kind).map(row).collect();
        let columns = kind.columns.iter().map(|(name, _)| *name).collect();
        (!rows.is_empty()).then(|| ProgramSection {
            machine,
            title: format!("{}: {}", kind.title, file.name),
            columns,
            rows,
        })
    };
    RESULT_KINDS.iter().filter_map(table).collect()
}

/// A field as text: a quantity with its interval, caveats by their codes.
fn describe_field(field: &Value) -> String {
    match field {
        Value::Array(items) => {
            let code = |item: &Value| item["code"].as_str().map_or_else(|| item.to_string(), str::to_string);
            items.iter().map(code).collect::<Vec<_>>().join(", ")
        }
        Value::Object(fields) if fields.contains_key("value") => match Quantity::deserialize(field) {
            Ok(quantity) => describe_quantity(&quantity, &field_text(field, "unit")),
            Err(_) => field.to_string(),
        },
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn describe_quantity(quantity: &Quantity, unit: &str) -> String {
    let number = |value: f64| format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').to_string();
    let Some(value) = quantity.value.map(number) else { return "refused".to_string() };
    let interval = quantity.low.zip(quantity.high).map(|(low, high)| format!(" ({} to {})", number(low), number(high)));
    format!("{value}{} {}", interval.unwrap_or_default(), unit.replace('_', " "))
}
