//! Failures of a command: their messages and exit codes.

use crate::output::terminal::{self, escape_controls};
use cyclescope::error::{BadSnippet, Error, RunError, Unavailable, system_remedy};
use cyclescope::input::BadInput;
use cyclescope::record::{ErrorRecord, SchemaLine, exit};
use cyclescope::result::container::ContainerError;
use cyclescope::study::instr::rows::instr_table::BadList;
use cyclescope_platform::error_code;
use std::fmt::Display;
use std::io::{self, Write};

/// Why a command ended early.
#[derive(Debug)]
pub enum Failure {
    /// An error to report.
    Error(Box<ErrorRecord>),
    /// The reader of stdout closed it, which isn't an error.
    ClosedPipe,
}

impl Failure {
    /// An error in the command line or its input.
    pub fn usage(text: impl Into<String>, remedy: Option<&str>) -> Failure {
        Failure::Error(Box::new(ErrorRecord {
            code: "usage",
            exit: exit::USAGE,
            text: text.into(),
            remedy: remedy.map(str::to_string),
            ..ErrorRecord::default()
        }))
    }

    /// An error of the system or the program.
    pub fn internal(text: impl Into<String>) -> Failure {
        Failure::Error(Box::new(ErrorRecord {
            code: "internal",
            exit: exit::INTERNAL,
            text: text.into(),
            ..ErrorRecord::default()
        }))
    }

    /// A failed operation of the system, with the remedy for its error.
    pub fn from_system(what: impl Display, error: &io::Error) -> Failure {
        Failure::internal(format!("{what}: {error}")).with_system_remedy(error.raw_os_error())
    }

    /// A file that couldn't be made or written. `remedy` is for its place; it does not help where
    /// the system lacks or refuses something else.
    pub fn from_writing(what: impl Display, error: &io::Error, remedy: &str) -> Failure {
        match error.raw_os_error() {
            Some(
                error_code::EMFILE | error_code::ENFILE | error_code::ENOMEM | error_code::ENOSYS | error_code::EIO,
            ) => Failure::from_system(what, error),
            // Errors of temporary folders have no number.
            None if error.kind() == io::ErrorKind::Unsupported => {
                Failure::internal(format!("{what}: {error}")).with_system_remedy(Some(error_code::ENOSYS))
            }
            _ => Failure::internal(format!("{what}: {error}")).with_remedy(remedy),
        }
    }

    /// Replaces the remedy by that for an error of the system, if one is known to help.
    pub fn with_system_remedy(self, errno: Option<i32>) -> Failure {
        match errno.map_or("", system_remedy) {
            "" => self,
            remedy => self.with_remedy(remedy),
        }
    }

    /// Replaces the remedy.
    pub fn with_remedy(mut self, remedy: &str) -> Failure {
        if let Failure::Error(record) = &mut self {
            record.remedy = Some(remedy.to_string());
        }
        self
    }

    /// Puts the subject in front of the text.
    pub fn with_subject(mut self, what: &str) -> Failure {
        if let Failure::Error(record) = &mut self {
            record.text = format!("{what}: {}", record.text);
        }
        self
    }

    /// The failure's text.
    pub fn text(&self) -> &str {
        match self {
            Failure::Error(record) => &record.text,
            Failure::ClosedPipe => "",
        }
    }

    /// Replaces a name in the text.
    pub fn replace_in_text(mut self, from: &str, to: &str) -> Failure {
        if let Failure::Error(record) = &mut self {
            record.text = record.text.replace(from, to);
        }
        self
    }

    /// Prints the failure, as a JSON line on stdout or as text on stderr, and returns the exit
    /// code. If stdout takes no line, stderr gets the text.
    pub fn report(&self, json: bool) -> u8 {
        let Failure::Error(record) = self else { return exit::DONE };
        if json {
            let line = serde_json::to_string(&SchemaLine::new("error", record)).expect("records are plain data");
            let printed = writeln!(io::stdout(), "{}", terminal::escape_json(&line));
            if printed.is_ok() {
                return record.exit;
            }
        }
        // If this fails too, nothing more can be done.
        let _ = io::stderr().write_all(escape_controls(&describe_error(record)).as_bytes());
        record.exit
    }
}

/// Prints a warning on stderr.
pub fn print_warning(text: &str) {
    // If this fails, nothing more can be done.
    let _ = writeln!(io::stderr(), "warning: {}", escape_controls(text));
}

fn describe_error(record: &ErrorRecord) -> String {
    let mut text = match (record.line, record.column) {
        (Some(line), Some(column)) => format!("error: line {line}, column {column}: {}\n", record.text),
        _ => format!("error: {}\n", record.text),
    };
    if let Some(excerpt) = &record.excerpt {
        for line in excerpt.lines() {
            text.push_str(&format!("  {line}\n"));
        }
    }
    if let Some(remedy) = &record.remedy {
        text.push_str(&format!("help: {remedy}\n"));
    }
    text
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::internal(format!("can't write the result: {error}"))
                .with_remedy("free some space, or send standard output elsewhere"),
        }
    }
}

impl From<Unavailable> for Failure {
    fn from(error: Unavailable) -> Failure {
        Failure::Error(Box::new((&error).into()))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(Box::new((&error).into()))
    }
}

impl From<ContainerError> for Failure {
    fn from(error: ContainerError) -> Failure {
        let remedy = "name a directory that a completed command with --evidence wrote";
        match error {
            ContainerError::Unreadable(ref bad) if !bad.is_usage() => {
                Failure::internal(error.to_string()).with_system_remedy(bad.why.system_errno())
            }
            ContainerError::Damaged { .. } => {
                let remedy = "use a complete and unchanged copy, or measure again";
                Failure::usage(error.to_string(), Some(remedy))
            }
            ContainerError::Foreign | ContainerError::Outdated { .. } => {
                let remedy = "replay it with the version that wrote it, or measure again";
                Failure::usage(error.to_string(), Some(remedy))
            }
            _ => Failure::usage(error.to_string(), Some(remedy)),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        Failure::Error(Box::new((&error).into()))
    }
}

impl Failure {
    /// A bad snippet, with the line of its text that contains the error.
    pub fn from_snippet(error: &BadSnippet, text: &str) -> Failure {
        let mut record = ErrorRecord::from(error);
        record.excerpt = excerpt_line(text, error.line, error.column);
        Failure::Error(Box::new(record))
    }
}

impl Failure {
    /// A file that couldn't be read, and its remedy.
    pub fn from_input(bad: &BadInput, remedy: &str) -> Failure {
        match bad.is_usage() {
            true => Failure::usage(bad.to_string(), Some(remedy)),
            false => Failure::internal(bad.to_string()).with_system_remedy(bad.why.system_errno()),
        }
    }

    /// A file of this program's own that couldn't be read.
    pub fn from_unreadable(what: &str, bad: &BadInput) -> Failure {
        Failure::internal(format!("{what}: {}", bad.why)).with_system_remedy(bad.why.system_errno())
    }

    /// A file whose contents are invalid.
    pub fn from_file(path: &str, error: BadList) -> Failure {
        let text = match error.line {
            Some(line) => format!("{path}, line {line}: {}", error.message),
            None => format!("{path}: {}", error.message),
        };
        let mut failure = Failure::usage(text, Some(&error.remedy));
        if let Failure::Error(record) = &mut failure {
            record.line = error.line.and_then(|line| u32::try_from(line).ok());
        }
        failure
    }
}

/// A line of a text, and a caret below one of its columns.
pub fn excerpt_line(text: &str, line: u32, column: u32) -> Option<String> {
    let found = text.lines().nth(line.checked_sub(1)? as usize)?;
    // Tabs would shift the caret.
    let shown = found.replace('\t', " ");
    let before = column.checked_sub(1)? as usize;
    Some(format!("{shown}\n{}^", " ".repeat(before)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caret_points_to_the_column() {
        assert_eq!(excerpt_line("nop\nimull rax", 2, 1).unwrap(), "imull rax\n^");
        assert_eq!(excerpt_line("a\tb", 1, 3).unwrap(), "a b\n  ^");
        assert_eq!(excerpt_line("nop", 2, 1), None);
    }

    #[test]
    fn closed_pipe_is_not_an_error() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(failure.report(false), exit::DONE);
    }
}
