//! The result of a study, as exporters see it.

use super::Output;
use super::failure::Failure;
use cyclescope::plot::{BarChart, Chart, Diagram, HeatMap, LinkedBoxes};
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
    /// Boxes and curves between them.
    Linked(LinkedBoxes),
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

/// A result of given parts, for tests of what is printed and written.
#[cfg(test)]
pub struct GivenReport<'a> {
    pub print: &'a dyn Fn(&mut Output) -> Result<(), Failure>,
    pub table: TextTable,
    pub summary: TextTable,
    pub draw: &'a dyn Fn() -> Vec<Picture>,
}

#[cfg(test)]
impl ResultReport for GivenReport<'_> {
    fn print_text(&self, output: &mut Output) -> Result<(), Failure> {
        (self.print)(output)
    }

    fn table(&self) -> TextTable {
        self.table.clone()
    }

    fn summary(&self) -> TextTable {
        self.summary.clone()
    }

    fn pictures(&self) -> Vec<Picture> {
        (self.draw)()
    }
}

/// Checks in every format that nothing obeys a text of the result.
///
/// # Panics
///
/// At the first text that a terminal, a spreadsheet or a browser would obey.
#[cfg(test)]
pub fn require_harmless_report(report: &dyn ResultReport) {
    use cyclescope_fuzz::{find_formula, find_terminal_command};
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
    let mut written = vec![("text".to_string(), Output::capture(false, |output| report.print_text(output)))];
    for exporter in super::EXPORTERS {
        written.push((
            exporter.name().to_string(),
            Output::capture(false, |output| exporter.print_report(report, output)),
        ));
        let path = folder.path().join(exporter.name());
        if exporter.name() == "plots" {
            std::fs::create_dir(&path).expect("a folder");
        }
        exporter.write_report(report, &path).expect("there is room");
        let files =
            if path.is_dir() { std::fs::read_dir(&path).expect("a folder").flatten().collect() } else { Vec::new() };
        let files = files.iter().map(std::fs::DirEntry::path).chain(path.is_file().then_some(path));
        written.extend(files.map(|path| (path.display().to_string(), std::fs::read(path).expect("a file"))));
    }
    for (name, bytes) in &written {
        assert_eq!(find_terminal_command(bytes), None, "{name}");
        let text = String::from_utf8_lossy(bytes);
        assert!(name == "text" || name.ends_with("csv") || !text.contains("<script"), "{name}: {text:.2000}");
        assert_eq!(find_formula(bytes).filter(|_| name.ends_with("csv")), None, "{name}");
    }
}

/// Checks the same of lines of JSON.
#[cfg(test)]
pub fn require_harmless_lines<'a>(lines: impl IntoIterator<Item = &'a str>) {
    for line in lines {
        let printed = Output::capture(true, |output| output.write_json(line));
        assert_eq!(cyclescope_fuzz::find_terminal_command(&printed), None, "{line:.2000}");
        let [read, own] = [&printed, line.as_bytes()].map(|text| serde_json::from_slice::<Value>(text).expect("JSON"));
        assert!(read == own, "{line:.2000}");
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
