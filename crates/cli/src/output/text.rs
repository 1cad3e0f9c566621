//! Results as text; each study prints its own.

use super::Output;
use super::exporter::Exporter;
use super::failure::Failure;
use super::report::ResultReport;

/// Prints text on standard output.
pub struct TextExporter;

impl Exporter for TextExporter {
    fn name(&self) -> &'static str {
        "text"
    }

    fn print_report(&self, report: &dyn ResultReport, output: &mut Output) -> Result<(), Failure> {
        report.print_text(output)
    }
}
