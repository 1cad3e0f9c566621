//! Tables as CSV files.

use super::Output;
use super::exporter::{ExportOption, Exporter};
use super::failure::Failure;
use super::report::ResultReport;
use super::table_file::{require_writable, write_table};
use super::terminal::escape_commands;
use cyclescope::study::TextTable;
use std::io;
use std::path::Path;

/// Writes CSV files with all figures.
pub struct CsvExporter;

impl Exporter for CsvExporter {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn command_option(&self, command: &str) -> Option<ExportOption> {
        let help = match command {
            "run" => "Also write the table to this CSV file; `-` prints it instead of the table",
            "instr" | "ports" => "Also write the table to this CSV file",
            _ => return None,
        };
        Some(ExportOption { value: "FILE", help, conflicts: &[] })
    }

    fn replaces_text(&self) -> bool {
        true
    }

    fn print_report(&self, report: &dyn ResultReport, output: &mut Output) -> Result<(), Failure> {
        String::from_utf8_lossy(&to_csv_bytes(&report.table())?).lines().try_for_each(|line| output.write_line(line))
    }

    fn check_path(&self, path: &Path) -> Result<(), Failure> {
        require_writable(path)
    }

    fn write_report(&self, report: &dyn ResultReport, path: &Path) -> Result<(), Failure> {
        write_table(path, &to_csv_bytes(&report.table())?)
    }
}

fn to_csv_bytes(table: &TextTable) -> io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(table.columns.iter().map(|column| guard_cell(&column.name)))?;
    table.rows.iter().try_for_each(|row| writer.write_record(row.iter().map(|cell| guard_cell(cell))))?;
    writer.into_inner().map_err(|error| error.into_error())
}

/// A cell that every program shows as text: control characters are escaped, and an apostrophe is in
/// front of each line that a spreadsheet would compute (OWASP, "CSV Injection").
fn guard_cell(text: &str) -> String {
    let is_formula = |line: &str| line.starts_with(['=', '+', '-', '@', '\t']) && line.parse::<f64>().is_err();
    let guard = |line: &str| if is_formula(line) { format!("'{line}") } else { line.to_string() };
    escape_commands(text).split('\n').map(guard).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula_or_a_command() {
        let cells = ["=1+1", "+1", "-0.5", "-O2", "@SUM(A1)", "\t=1", "\r=1", "a\n=1", "a\u{1b}[2J", "µ, \"x\"", ""];
        let mut table = TextTable::new(cells);
        table.rows = vec![cells.map(str::to_string).to_vec()];
        let csv = to_csv_bytes(&table).expect("memory");
        assert_eq!((cyclescope_fuzz::find_terminal_command(&csv), cyclescope_fuzz::find_formula(&csv)), (None, None));
        let expected =
            ["'=1+1", "+1", "-0.5", "'-O2", "'@SUM(A1)", "'\t=1", r"\x0d=1", "a\n'=1", r"a\x1b[2J", "µ, \"x\"", ""];
        assert_eq!(cells.map(guard_cell), expected);
    }
}
