//! The result of a study, as exporters see it.

use super::Output;
use super::failure::Failure;
use cyclescope::plot::{BarChart, Chart, Diagram, HeatMap};
use cyclescope::study::TextTable;
use serde_json::Value;

/// A result.
pub trait ResultReport {
    /// Prints the result in the study's own words.
    fn print_text(&self, output: &mut Output) -> Result<(), Failure>;

    /// All figures as a table.
    fn table(&self) -> TextTable;

    /// A short table for readers.
    fn summary(&self) -> TextTable;

    /// Pictures of the result.
    fn pictures(&self) -> Vec<Picture>;
}

/// A drawing and its file name.
pub struct Picture {
    /// File name without its extension.
    pub name: String,
    /// The drawing.
    pub drawing: Drawing,
}

/// The kinds of drawings.
pub enum Drawing {
    /// Bars in groups.
    Bars(BarChart),
    /// Curves.
    Chart(Chart),
    /// Boxes and arrows.
    Diagram(Diagram),
    /// Coloured squares.
    Heat(HeatMap),
}

impl Picture {
    /// Combines a drawing with its name.
    pub fn new(name: impl Into<String>, drawing: Drawing) -> Picture {
        Picture { name: name.into(), drawing }
    }
}

/// Tabulates JSON lines, one row each. A nested field has its own column, such as `cost.value`.
pub fn tabulate_lines(lines: &[Value]) -> TextTable {
    let rows: Vec<Vec<(String, String)>> = lines.iter().map(|line| flatten_fields(line, "")).collect();
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let text = |row: &[(String, String)], name: &str| {
        row.iter().find(|(field, _)| field == name).map(|(_, text)| text.clone()).unwrap_or_default()
    };
    let mut table = TextTable::new(names.iter().copied());
    table.rows = rows.iter().map(|row| names.iter().map(|name| text(row, name)).collect()).collect();
    table
}

fn flatten_fields(value: &Value, name: &str) -> Vec<(String, String)> {
    match value {
        Value::Object(fields) => {
            let inner = |(field, value): (&String, &Value)| {
                let name = if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
                self::flatten_fields(value, &name)
            };
            fields.iter().flat_map(inner).collect()
        }
        Value::Null => Vec::new(),
        Value::String(text) => vec![(name.to_string(), text.clone())],
        other => vec![(name.to_string(), other.to_string())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_of_several_kinds_share_a_table() {
        let lines = [json!({"a": 1, "b": {"c": "x", "d": null}}), json!({"a": [1, 2], "e": {"f": {"g": true}}})];
        let table = tabulate_lines(&lines);
        let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["a", "b.c", "e.f.g"]);
        assert_eq!(table.rows, [["1", "x", ""], ["[1,2]", "", "true"]]);
    }
}
