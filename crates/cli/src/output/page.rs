//! Labels and values in two columns, and tables, that fit 80 characters.

use crate::output::failure::Failure;
use crate::output::terminal::harmless;
use crate::output::{Output, WIDTH, wrapped};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use cyclescope::machine::fact::Fact;

/// Characters before a value.
const INDENT: usize = 20;
/// Characters of the first two columns of a table.
const LABEL: usize = 20;
const VALUE: usize = 12;

/// A report under way.
pub struct Page<'a> {
    /// Where it goes.
    pub output: &'a mut Output,
    begun: bool,
}

impl Page<'_> {
    /// A report to standard output.
    pub fn new(output: &mut Output) -> Page<'_> {
        Page { output, begun: false }
    }

    /// Begins a section.
    pub fn section(&mut self, title: &str) -> Result<(), Failure> {
        if self.begun {
            self.output.line("")?;
        }
        self.begun = true;
        let title = self.output.bold(title);
        self.output.line(title)
    }

    /// A label and its value, which may take several lines.
    pub fn row(&mut self, label: &str, value: &str) -> Result<(), Failure> {
        self.painted_row(label, value, |_, text| text.to_string())
    }

    /// A value that may be unknown.
    pub fn fact<T>(
        &mut self,
        label: &str,
        fact: &Fact<T>,
        text: impl Fn(&T) -> String,
    ) -> Result<(), Failure> {
        match fact {
            Fact::Known(value) => self.row(label, &text(value)),
            Fact::Unknown(why) => self.unknown(label, why),
        }
    }

    /// A value that is unknown.
    pub fn unknown(&mut self, label: &str, why: &str) -> Result<(), Failure> {
        self.painted_row(label, &format!("not known: {why}"), Output::faint)
    }

    /// A shell command, which can be copied even where it takes several lines.
    pub fn command(&mut self, label: &str, command: &str) -> Result<(), Failure> {
        let mut label = label;
        let lines = wrapped(&harmless(command), WIDTH - INDENT - 2);
        for (index, line) in lines.iter().enumerate() {
            let more = if index + 1 < lines.len() { " \\" } else { "" };
            self.output.line(format!("  {label:<width$}{line}{more}", width = INDENT - 2))?;
            label = "";
        }
        Ok(())
    }

    /// A row of a table of three columns, the last of which may be any text.
    pub fn table_row(&mut self, label: &str, value: &str, text: &str) -> Result<(), Failure> {
        let column = 4 + LABEL + 1 + VALUE + 1;
        let mut start = format!("    {label:<LABEL$} {value:>VALUE$}");
        for line in wrapped(&harmless(text), WIDTH - column) {
            self.output.line(format!("{start:<width$}{line}", width = column))?;
            start.clear();
        }
        Ok(())
    }

    /// A value in colour.
    pub fn painted_row(
        &mut self,
        label: &str,
        value: &str,
        paint: impl Fn(&Output, &str) -> String,
    ) -> Result<(), Failure> {
        let mut label = label;
        // A label without room for a space behind it has a line of its own.
        if label.chars().count() > INDENT - 3 {
            self.output.line(format!("  {label}"))?;
            label = "";
        }
        for line in wrapped(&harmless(value), WIDTH - INDENT) {
            let line = paint(self.output, &line);
            self.output.line(format!("  {label:<width$}{line}", width = INDENT - 2))?;
            label = "";
        }
        Ok(())
    }
}

/// A table of right-aligned columns after a left-aligned first one.
pub fn table(heading: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(heading);
    for column in 0..heading.len() {
        let column = table.column_mut(column).expect("each has a heading");
        column.set_padding((1, 0));
    }
    for column in 1..heading.len() {
        table.column_mut(column).expect("each has a heading").set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Prints a table.
pub fn print(page: &mut Page, table: &Table) -> Result<(), Failure> {
    for line in table.lines() {
        page.output.line(format!(" {}", harmless(line.trim_end())))?;
    }
    Ok(())
}

/// Prints what a table's reader should know.
pub fn note(page: &mut Page, text: &str) -> Result<(), Failure> {
    for line in wrapped(&harmless(text), WIDTH - 2) {
        let line = page.output.faint(&line);
        page.output.line(format!("  {line}"))?;
    }
    Ok(())
}
