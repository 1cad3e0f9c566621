//! Results in words, for people: each study prints its own.

use super::Output;
use super::exporter::Exporter;
use super::failure::Failure;
use super::report::Report;

/// Text on standard output.
pub struct Text;

impl Exporter for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn print(&self, report: &dyn Report, output: &mut Output) -> Result<(), Failure> {
        report.text(output)
    }
}
