//! Tables as Markdown files, for pasting.

use super::Output;
use super::exporter::{ExportOption, Exporter};
use super::failure::Failure;
use super::report::ResultReport;
use super::table_file::{require_writable, write_table};
use super::terminal::escape_commands;
use cyclescope::study::TextTable;
use std::path::Path;

/// Writes Markdown files with a short table.
pub struct MarkdownExporter;

impl Exporter for MarkdownExporter {
    fn name(&self) -> &'static str {
        "markdown"
    }

    fn command_option(&self, command: &str) -> Option<ExportOption> {
        let help = "Also write the table to this Markdown file";
        matches!(command, "instr" | "ports").then_some(ExportOption { value: "FILE", help, conflicts: &[] })
    }

    fn replaces_text(&self) -> bool {
        true
    }

    fn print_report(&self, report: &dyn ResultReport, output: &mut Output) -> Result<(), Failure> {
        to_markdown(&report.summary()).lines().try_for_each(|line| output.write_line(line))
    }

    fn check_path(&self, path: &Path) -> Result<(), Failure> {
        require_writable(path)
    }

    fn write_report(&self, report: &dyn ResultReport, path: &Path) -> Result<(), Failure> {
        write_table(path, to_markdown(&report.summary()).as_bytes())
    }
}

fn to_markdown(table: &TextTable) -> String {
    let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let names: Vec<String> = table.columns.iter().map(|column| escape_cell(&column.name)).collect();
    let rules = table.columns.iter().map(|column| if column.is_number { "---:" } else { "---" });
    let rows = table.rows.iter().map(|cells| row(&cells.iter().map(|cell| escape_cell(cell)).collect::<Vec<_>>()));
    let rule = format!("|{}|\n", rules.collect::<Vec<_>>().join("|"));
    row(&names) + &rule + &rows.collect::<String>()
}

/// Escapes text so that it stays inside its cell, and is no link, no picture and no HTML.
fn escape_cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len());
    for c in escape_commands(&text.replace(['\n', '\r'], " ")).chars() {
        match c {
            '\\' | '|' | '[' => cell.extend(['\\', c]),
            '<' => cell.push_str("&lt;"),
            '&' => cell.push_str("&amp;"),
            _ => cell.push(c),
        }
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stay_intact_and_numbers_are_right_aligned() {
        let mut table = TextTable::new(["instruction", "rthroughput"]);
        table.columns[1].is_number = true;
        table.rows = vec![vec!["a|b\nc".to_string(), "0.25".to_string()]];
        assert_eq!(escape_cell("\\|<b>[x](y)&amp;\u{1b}"), r"\\\|&lt;b>\[x](y)&amp;amp;\\x1b");
        assert_eq!(to_markdown(&table), "| instruction | rthroughput |\n|---|---:|\n| a\\|b c | 0.25 |\n");
    }
}
