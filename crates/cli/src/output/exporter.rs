//! The interface of a result format.

use super::Output;
use super::failure::Failure;
use super::report::ResultReport;
use std::fmt;
use std::path::Path;

/// A format of results.
pub trait Exporter: Sync {
    /// Name of the format and of its option.
    fn name(&self) -> &'static str;

    /// The option of a command that names the file to write; `None` if the command lacks one.
    fn command_option(&self, _command: &str) -> Option<ExportOption> {
        None
    }

    /// Whether the format accepts the result of a study that ended early.
    fn accepts_partial(&self) -> bool {
        false
    }

    /// Whether the format prints lines before the result is complete.
    fn prints_lines(&self) -> bool {
        false
    }

    /// Prints a JSON line of the result as soon as it is complete.
    fn print_line(&self, _line: &str, _output: &mut Output) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether the file `-` prints the format instead of text.
    fn replaces_text(&self) -> bool {
        false
    }

    /// Prints the complete result.
    fn print_report(&self, _report: &dyn ResultReport, _output: &mut Output) -> Result<(), Failure> {
        Ok(())
    }

    /// Checks early that the result can be written, without creating anything.
    fn check_path(&self, _path: &Path) -> Result<(), Failure> {
        Ok(())
    }

    /// Creates what must exist before the result is written.
    fn prepare_path(&self, _path: &Path) -> Result<(), Failure> {
        Ok(())
    }

    /// Writes the result.
    fn write_report(&self, _report: &dyn ResultReport, _path: &Path) -> Result<(), Failure> {
        Ok(())
    }
}

/// The option that names a format's file.
pub struct ExportOption {
    /// Placeholder of the value in the help: `FILE` or `DIR`.
    pub value: &'static str,
    /// Help text.
    pub help: &'static str,
    /// Options that can't be combined with it.
    pub conflicts: &'static [&'static str],
}

impl fmt::Debug for dyn Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
