//! Lays out text for 80 characters: labels with values, and tables.

use crate::output::failure::Failure;
use crate::output::terminal::escape_controls;
use crate::output::{Output, WIDTH, wrap_text};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use cyclescope::machine::fact::Fact;

/// Column where values begin.
const VALUE_INDENT: usize = 20;
/// Width of the first column of a table row.
const LABEL_WIDTH: usize = 20;
const VALUE_WIDTH: usize = 12;

/// A text report.
pub struct TextPage<'a> {
    /// Where the report is printed.
    pub output: &'a mut Output,
    begun: bool,
}

impl TextPage<'_> {
    /// Starts a report on this output.
    pub fn new(output: &mut Output) -> TextPage<'_> {
        TextPage { output, begun: false }
    }

    /// Prints the title of a section.
    pub fn begin_section(&mut self, title: &str) -> Result<(), Failure> {
        if self.begun {
            self.output.write_line("")?;
        }
        self.begun = true;
        let title = self.output.bold(title);
        self.output.write_line(title)
    }

    /// Prints a label and its value, which may take several lines.
    pub fn print_row(&mut self, label: &str, value: &str) -> Result<(), Failure> {
        self.print_painted_row(label, value, |_, text| text.to_string())
    }

    /// Prints a value that may be unknown.
    pub fn print_fact<T>(&mut self, label: &str, fact: &Fact<T>, text: impl Fn(&T) -> String) -> Result<(), Failure> {
        match fact {
            Fact::Known(value) => self.print_row(label, &text(value)),
            Fact::Unknown(why) => self.print_unknown(label, why),
        }
    }

    /// Prints why a value is unknown.
    pub fn print_unknown(&mut self, label: &str, why: &str) -> Result<(), Failure> {
        self.print_painted_row(label, &format!("unknown: {why}"), Output::faint)
    }

    /// Prints a shell command that can be copied even if it spans several lines.
    pub fn print_command(&mut self, label: &str, command: &str) -> Result<(), Failure> {
        let mut label = label;
        let lines = wrap_text(&escape_controls(command), WIDTH - VALUE_INDENT - 2);
        for (index, line) in lines.iter().enumerate() {
            let more = if index + 1 < lines.len() { " \\" } else { "" };
            self.output.write_line(format!("  {label:<width$}{line}{more}", width = VALUE_INDENT - 2))?;
            label = "";
        }
        Ok(())
    }

    /// Prints a row of three columns, the last with text of any length.
    pub fn print_table_row(&mut self, label: &str, value: &str, text: &str) -> Result<(), Failure> {
        let column = 4 + LABEL_WIDTH + 1 + VALUE_WIDTH + 1;
        let mut start = format!("    {label:<LABEL_WIDTH$} {value:>VALUE_WIDTH$}");
        for line in wrap_text(&escape_controls(text), WIDTH - column) {
            self.output.write_line(format!("{start:<width$}{line}", width = column))?;
            start.clear();
        }
        Ok(())
    }

    /// Prints a label and a value in colour.
    pub fn print_painted_row(
        &mut self,
        label: &str,
        value: &str,
        paint: impl Fn(&Output, &str) -> String,
    ) -> Result<(), Failure> {
        let mut label = label;
        // A label that leaves no room for a space gets its own line.
        if label.chars().count() > VALUE_INDENT - 3 {
            self.output.write_line(format!("  {label}"))?;
            label = "";
        }
        for line in wrap_text(&escape_controls(value), WIDTH - VALUE_INDENT) {
            let line = paint(self.output, &line);
            self.output.write_line(format!("  {label:<width$}{line}", width = VALUE_INDENT - 2))?;
            label = "";
        }
        Ok(())
    }
}

/// Creates a table: a left-aligned first column, then right-aligned ones.
pub fn new_table(heading: &[&str]) -> Table {
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
pub fn print_table(page: &mut TextPage, table: &Table) -> Result<(), Failure> {
    for line in table.lines() {
        page.output.write_line(format!(" {}", escape_controls(line.trim_end())))?;
    }
    Ok(())
}

/// Prints a note about a table.
pub fn print_note(page: &mut TextPage, text: &str) -> Result<(), Failure> {
    for line in wrap_text(&escape_controls(text), WIDTH - 2) {
        let line = page.output.faint(&line);
        page.output.write_line(format!("  {line}"))?;
    }
    Ok(())
}
