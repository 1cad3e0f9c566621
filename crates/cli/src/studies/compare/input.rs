//! A file to compare: results, or a published table.

use crate::output::{Failure, warn};
use crate::studies::uarch::CoreRecord;
use cyclescope::input::{self, Kind};
use cyclescope::study::instr::rows::table::Table;
use cyclescope::study::instr::tables::compare::runs;
use cyclescope::study::instr::tables::reference::Reference;
use std::path::Path;

/// One of the two files.
pub(super) struct Input {
    pub(super) path: String,
    pub(super) content: Content,
}

/// What a file holds.
pub(super) enum Content {
    Results(Table),
    Reference(Reference),
    /// Records of `uarch`, and the table that has what else is in the file.
    Core {
        table: Table,
        records: Vec<CoreRecord>,
    },
}

impl Input {
    pub(super) fn read(path: &Path) -> Result<Input, Failure> {
        let name = path.display().to_string();
        let remedy = "name a file that `cyclescope instr --out` wrote, or a CSV file";
        let bytes = input::read(path, Kind::Results).map_err(|bad| Failure::input(&bad, remedy))?;
        // A byte order mark, which editors of other systems put first.
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        // Results are objects; the first line of a CSV file is names.
        let is_results = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        let content = if is_results {
            let mut table = Table::read(bytes).map_err(|error| Failure::file(&name, error))?;
            if table.rows.is_empty() {
                table.rows = runs(bytes);
            }
            if table.rows.is_empty() {
                let records = CoreRecord::read(bytes).map_err(|error| Failure::file(&name, error))?;
                if records.is_empty() {
                    let remedy = "name a file that `cyclescope instr --out` wrote, or lines of `cyclescope run --json` \
                                  or `cyclescope uarch --json`";
                    return Err(Failure::usage(format!("{name} contains no instructions"), Some(remedy)));
                }
                return Ok(Input { path: name, content: Content::Core { table, records } });
            }
            Content::Results(table)
        } else {
            Content::Reference(Reference::read(bytes).map_err(|error| Failure::file(&name, error))?)
        };
        Ok(Input { path: name, content })
    }

    pub(super) fn warn(&self) {
        match &self.content {
            Content::Results(table) | Content::Core { table, .. } => {
                let Some(line) = table.cut else { return };
                warn(&format!(
                    "{}, line {line} is incomplete and was left out: the program ended while writing it",
                    self.path
                ));
            }
            Content::Reference(reference) => {
                reference.warnings.iter().for_each(|text| warn(&format!("{}: {text}", self.path)));
            }
        }
    }

    /// The name of the executor that ran the code: a file has rows of one.
    pub fn executor(&self) -> Option<&str> {
        match &self.content {
            Content::Results(table) => table.rows.first().map(|row| row.executor.as_str()),
            Content::Reference(_) | Content::Core { .. } => None,
        }
    }

    pub(super) fn processor(&self) -> Option<&str> {
        match &self.content {
            Content::Results(table) | Content::Core { table, .. } => table.processor(),
            Content::Reference(_) => None,
        }
    }
}
