//! Tables as Markdown, to be pasted.

use super::Output;
use super::exporter::{ExportOption, Exporter};
use super::failure::Failure;
use super::report::Report;
use super::table_file::{require_writable, write};
use cyclescope::study::TextTable;
use std::path::Path;

/// Markdown files with a table of few columns.
pub struct Markdown;

impl Exporter for Markdown {
    fn name(&self) -> &'static str {
        "markdown"
    }

    fn option(&self, command: &str) -> Option<ExportOption> {
        let help = "Also write the table as Markdown";
        (command == "instr").then_some(ExportOption { value: "FILE", help, conflicts: &[] })
    }

    fn replaces_text(&self) -> bool {
        true
    }

    fn print(&self, report: &dyn Report, output: &mut Output) -> Result<(), Failure> {
        text(&report.summary()).lines().try_for_each(|line| output.line(line))
    }

    fn check(&self, path: &Path) -> Result<(), Failure> {
        require_writable(path)
    }

    fn write(&self, report: &dyn Report, path: &Path) -> Result<(), Failure> {
        write(path, text(&report.summary()).as_bytes())
    }
}

fn text(table: &TextTable) -> String {
    let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let names: Vec<String> = table.columns.iter().map(|column| escaped(&column.name)).collect();
    let rules = table.columns.iter().map(|column| if column.is_number { "---:" } else { "---" });
    let rows =
        table.rows.iter().map(|cells| row(&cells.iter().map(|cell| escaped(cell)).collect::<Vec<_>>()));
    let rule = format!("|{}|\n", rules.collect::<Vec<_>>().join("|"));
    row(&names) + &rule + &rows.collect::<String>()
}

/// Text that ends no cell.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_whole_and_numbers_stand_below_each_other() {
        let mut table = TextTable::new(["instruction", "rthroughput"]);
        table.columns[1].is_number = true;
        table.rows = vec![vec!["a|b\nc".to_string(), "0.25".to_string()]];
        assert_eq!(text(&table), "| instruction | rthroughput |\n|---|---:|\n| a\\|b c | 0.25 |\n");
    }
}
