//! Results as JSON lines, each printed as soon as it is complete.

use super::Output;
use super::exporter::Exporter;
use super::failure::Failure;

/// JSON lines on standard output.
pub struct Json;

impl Exporter for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn prints_lines(&self) -> bool {
        true
    }

    fn line(&self, line: &str, output: &mut Output) -> Result<(), Failure> {
        output.json(line)
    }
}
