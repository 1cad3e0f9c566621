//! Standard output: JSON lines, or text with colours where a person reads it.

use crate::failure::Failure;
use cyclescope::record::Line;
use serde::Serialize;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

/// Where results go.
pub struct Output {
    json: bool,
    colours: bool,
    stream: BufWriter<Stdout>,
}

impl Output {
    /// Standard output, as JSON lines or as text.
    pub fn new(json: bool) -> Output {
        let stdout = io::stdout();
        // https://no-color.org: set and not empty means no colours.
        let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colours = stdout.is_terminal() && !forbidden;
        Output { json, colours, stream: BufWriter::new(stdout) }
    }

    /// Whether results are JSON lines.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Writes a JSON line at once, so that what was measured is not lost later.
    pub fn record<T: Serialize>(&mut self, kind: &'static str, content: &T) -> Result<(), Failure> {
        let line = serde_json::to_string(&Line::new(kind, content)).expect("records are plain data");
        writeln!(self.stream, "{line}")?;
        Ok(self.stream.flush()?)
    }

    /// Writes a line of text.
    pub fn line(&mut self, text: impl AsRef<str>) -> Result<(), Failure> {
        Ok(writeln!(self.stream, "{}", text.as_ref())?)
    }

    /// Text that stands out where colours are on.
    pub fn bold(&self, text: &str) -> String {
        self.painted("1", text)
    }

    /// Text that steps back where colours are on.
    pub fn faint(&self, text: &str) -> String {
        self.painted("2", text)
    }

    /// Text as a warning where colours are on.
    pub fn yellow(&self, text: &str) -> String {
        self.painted("33", text)
    }

    fn painted(&self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// Writes what is still held back.
    pub fn finish(&mut self) -> Result<(), Failure> {
        Ok(self.stream.flush()?)
    }
}
