//! Reads a file to compare: results, or a published table.

use crate::output::{Failure, print_warning};
use crate::studies::uarch::UarchLine;
use cyclescope::input::{self, InputKind};
use cyclescope::study::instr::rows::instr_table::InstrTable;
use cyclescope::study::instr::tables::compare::read_runs;
use cyclescope::study::instr::tables::reference::ReferenceTable;
use cyclescope::study::ports::ports_comparison::PortsTable;
use std::path::Path;

/// One of the two files.
pub(super) struct CompareInput {
    pub(super) path: String,
    pub(super) content: InputContent,
}

/// The contents of a file.
pub(super) enum InputContent {
    Results(InstrTable),
    Reference(ReferenceTable),
    /// Records of `uarch`, and the table of the other lines.
    Core {
        table: InstrTable,
        records: Vec<UarchLine>,
    },
    /// Lines of `ports`, and the table of the other lines.
    Ports {
        table: InstrTable,
        ports: PortsTable,
    },
}

impl CompareInput {
    pub(super) fn read(path: &Path) -> Result<CompareInput, Failure> {
        let name = path.display().to_string();
        let remedy = "name a file from `cyclescope instr --out`, or a CSV file";
        let bytes = input::read_input(path, InputKind::Results).map_err(|bad| Failure::from_input(&bad, remedy))?;
        CompareInput::from_bytes(name, &bytes)
    }

    /// Reads the content of the file of this name.
    pub(super) fn from_bytes(name: String, bytes: &[u8]) -> Result<CompareInput, Failure> {
        // A byte order mark, which some editors write first.
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        // Results start with a JSON object; a CSV file starts with column names.
        let is_results = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        let content = if is_results {
            let mut table = InstrTable::read(bytes).map_err(|error| Failure::from_file(&name, error))?;
            if table.rows.is_empty() {
                table.rows = read_runs(bytes).map_err(|error| Failure::from_file(&name, error))?;
            }
            if table.rows.is_empty()
                && let Some(ports) = PortsTable::read(bytes).map_err(|error| Failure::from_file(&name, error))?
            {
                return Ok(CompareInput { path: name, content: InputContent::Ports { table, ports } });
            }
            if table.rows.is_empty() {
                let records = UarchLine::from_content(bytes).map_err(|error| Failure::from_file(&name, error))?;
                if records.is_empty() {
                    let remedy = "name a file from `cyclescope instr --out`, or lines from `cyclescope run --json`, \
                                  `cyclescope uarch --json` or `cyclescope ports --json`";
                    return Err(Failure::usage(format!("{name} contains no instructions"), Some(remedy)));
                }
                return Ok(CompareInput { path: name, content: InputContent::Core { table, records } });
            }
            InputContent::Results(table)
        } else {
            InputContent::Reference(ReferenceTable::read(bytes).map_err(|error| Failure::from_file(&name, error))?)
        };
        Ok(CompareInput { path: name, content })
    }

    pub(super) fn print_warnings(&self) {
        match &self.content {
            InputContent::Results(table) | InputContent::Core { table, .. } | InputContent::Ports { table, .. } => {
                let Some(line) = table.cut else { return };
                print_warning(&format!(
                    "{}, line {line} is incomplete and ignored: its program ended while writing it",
                    self.path
                ));
            }
            InputContent::Reference(reference) => {
                reference.warnings.iter().for_each(|text| print_warning(&format!("{}: {text}", self.path)));
            }
        }
    }

    /// The name of the executor that ran the code. All rows of a file have the same one.
    pub fn executor(&self) -> Option<&str> {
        match &self.content {
            InputContent::Results(table) => table.rows.first().map(|row| row.executor.as_str()),
            InputContent::Ports { ports, .. } => ports.rows.first().map(|row| row.executor.as_str()),
            InputContent::Reference(_) | InputContent::Core { .. } => None,
        }
    }

    pub(super) fn processor(&self) -> Option<&str> {
        match &self.content {
            InputContent::Results(table) | InputContent::Core { table, .. } | InputContent::Ports { table, .. } => {
                table.processor()
            }
            InputContent::Reference(_) => None,
        }
    }
}
