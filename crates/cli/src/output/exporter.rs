//! What a format of results is.

use super::Output;
use super::failure::Failure;
use super::report::ResultReport;
use std::fmt;
use std::path::Path;

/// A format of results.
pub trait Exporter: Sync {
    /// Its name, which is that of its option too.
    fn name(&self) -> &'static str;

    /// The option of a command that names the file to write; none where the command has no such option.
    fn command_option(&self, _command: &str) -> Option<ExportOption> {
        None
    }

    /// Whether what a study found that ended early is written too.
    fn accepts_partial(&self) -> bool {
        false
    }

    /// Whether it prints lines of the result before that is complete.
    fn prints_lines(&self) -> bool {
        false
    }

    /// Prints a line of the result, which is JSON, as soon as it is complete.
    fn print_line(&self, _line: &str, _output: &mut Output) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether it is printed instead of text where its file is `-`.
    fn replaces_text(&self) -> bool {
        false
    }

    /// Prints the result when it is complete.
    fn print_report(&self, _report: &dyn ResultReport, _output: &mut Output) -> Result<(), Failure> {
        Ok(())
    }

    /// Fails early where the result could not be written after hours. Makes nothing.
    fn check_path(&self, _path: &Path) -> Result<(), Failure> {
        Ok(())
    }

    /// Makes what has to be there before the result is written.
    fn prepare_path(&self, _path: &Path) -> Result<(), Failure> {
        Ok(())
    }

    /// Writes the result.
    fn write_report(&self, _report: &dyn ResultReport, _path: &Path) -> Result<(), Failure> {
        Ok(())
    }
}

/// An option that names the file of a format.
pub struct ExportOption {
    /// What it names: `FILE`, `DIR`.
    pub value: &'static str,
    /// What it does.
    pub help: &'static str,
    /// Options that it does not go with.
    pub conflicts: &'static [&'static str],
}

impl fmt::Debug for dyn Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
