//! Results as JSON lines, printed as soon as each is complete.

use super::Output;
use super::exporter::Exporter;
use super::failure::Failure;

/// Prints JSON lines on standard output.
pub struct JsonExporter;

impl Exporter for JsonExporter {
    fn name(&self) -> &'static str {
        "json"
    }

    fn prints_lines(&self) -> bool {
        true
    }

    fn print_line(&self, line: &str, output: &mut Output) -> Result<(), Failure> {
        output.write_json(line)
    }
}
