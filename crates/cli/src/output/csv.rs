//! Tables as CSV files.

use super::Output;
use super::exporter::{ExportOption, Exporter};
use super::failure::Failure;
use super::report::ResultReport;
use super::table_file::{require_writable, write_table};
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
            "instr" => "Also write the table to this CSV file",
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
    writer.write_record(table.columns.iter().map(|column| &column.name))?;
    table.rows.iter().try_for_each(|row| writer.write_record(row))?;
    writer.into_inner().map_err(|error| error.into_error())
}
