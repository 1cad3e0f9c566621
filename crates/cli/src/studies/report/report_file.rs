//! A file for the page: the lines of results by kind, or a published table.

use crate::output::Failure;
use crate::studies::uarch::UarchLine;
use cyclescope::input::{self, InputKind};
use cyclescope::study::instr::rows::instr_table::InstrTable;
use cyclescope::study::instr::tables::reference::ReferenceTable;
use flate2::read::GzDecoder;
use serde_json::Value;
use std::path::Path;

/// The first bytes of a gzip file.
const GZIP_START: [u8; 2] = [0x1f, 0x8b];

/// A file and its contents.
pub struct ReportFile {
    /// Its name, without its folder.
    pub name: String,
    /// The line of kind `machine`.
    pub machine: Option<Value>,
    /// The rows of `instr`.
    pub instructions: Option<InstrTable>,
    /// A published table of instructions.
    pub published: Option<ReferenceTable>,
    /// The numbers of `uarch`.
    pub core: Vec<UarchLine>,
    /// The lines of other kinds.
    pub lines: Vec<Value>,
    /// What the reader should know, such as an incomplete last line.
    pub warnings: Vec<String>,
}

impl ReportFile {
    /// Reads a file. It may be compressed with gzip.
    pub fn read(path: &Path) -> Result<ReportFile, Failure> {
        let remedy = "name a file that a command wrote with --out or --json, or a published table as CSV";
        let refuse = |bad: input::BadInput| Failure::from_input(&bad, remedy);
        let bytes = input::read_input(path, InputKind::Results).map_err(refuse)?;
        let bytes = match bytes.starts_with(&GZIP_START) {
            true => input::read_stream(GzDecoder::new(&bytes[..]), InputKind::Results)
                .map_err(|why| refuse(input::BadInput { file: path.to_path_buf(), why }))?,
            false => bytes,
        };
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        ReportFile::from_bytes(name, &bytes)
    }

    /// Reads the content of a file of this name.
    pub fn from_bytes(name: String, bytes: &[u8]) -> Result<ReportFile, Failure> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut file = ReportFile {
            name,
            machine: None,
            instructions: None,
            published: None,
            core: Vec::new(),
            lines: Vec::new(),
            warnings: Vec::new(),
        };
        if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
            let table = ReferenceTable::read(bytes).map_err(|error| Failure::from_file(&file.name, error))?;
            file.warnings.clone_from(&table.warnings);
            file.published = Some(table);
            return Ok(file);
        }
        let table = InstrTable::read(bytes).map_err(|error| Failure::from_file(&file.name, error))?;
        if let Some(line) = table.cut {
            file.warnings.push(format!("line {line} is incomplete and ignored: its program ended while writing it"));
        }
        file.machine.clone_from(&table.machine);
        file.core = UarchLine::from_content(bytes).map_err(|error| Failure::from_file(&file.name, error))?;
        UarchLine::sort_by_test(&mut file.core);
        let values = bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        file.lines =
            values.filter(|line| !["machine", "instr", "uarch"].iter().any(|kind| line["kind"] == *kind)).collect();
        if !table.rows.is_empty() {
            file.instructions = Some(table);
        }
        if file.instructions.is_none() && file.core.is_empty() && file.lines.is_empty() {
            let remedy = "name a file that a command wrote with --out or --json";
            return Err(Failure::usage(format!("{} contains no results", file.name), Some(remedy)));
        }
        Ok(file)
    }

    /// The lines of a kind.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.lines.iter().filter(move |line| line["kind"] == kind)
    }

    /// The contents in words.
    pub fn describe_contents(&self) -> String {
        let mut parts = Vec::new();
        if let Some(table) = &self.instructions {
            parts.push(format!("{} instructions", table.rows.len()));
        }
        if let Some(table) = &self.published {
            parts.push(format!("{} lines of a published table", table.entries.len()));
        }
        if !self.core.is_empty() {
            parts.push(format!("{} numbers of the core", self.core.len()));
        }
        let mut kinds: Vec<(&str, usize)> = Vec::new();
        for kind in self.lines.iter().filter_map(|line| line["kind"].as_str()) {
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, count)) => *count += 1,
                None => kinds.push((kind, 1)),
            }
        }
        parts.extend(
            kinds.iter().map(|(kind, count)| if *count == 1 { kind.to_string() } else { format!("{count} {kind}") }),
        );
        parts.join(", ")
    }

    /// The command that made the file, without the options of a single row.
    pub fn describe_command(&self) -> String {
        let of_rows = || self.instructions.as_ref()?.rows.first().map(|row| row.repro.as_str());
        let of_lines = || self.lines.iter().find_map(|line| line["repro"].as_str());
        let text = of_lines().or_else(of_rows).unwrap_or_default();
        let quick = if text.contains(" --quick") { " --quick" } else { "" };
        match (&self.instructions, text.is_empty()) {
            (Some(_), _) => format!("cyclescope instr{quick}"),
            (None, false) => text.to_string(),
            (None, true) if !self.core.is_empty() => "cyclescope uarch".to_string(),
            (None, true) => String::new(),
        }
    }
}
