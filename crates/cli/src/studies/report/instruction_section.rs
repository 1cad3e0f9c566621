//! The table of instructions in two compressed forms: a summary as columns, which the page reads
//! at once, and the whole rows in chunks, which it reads when a row is opened.

use super::page_blob::PageBlob;
use super::published_join::PublishedJoin;
use super::report_file::ReportFile;
use super::table_summary::{SummaryColumns, TableSummary, TextPool};
use cyclescope::study::instr::rows::instr_row::InstrRow;
use serde::Serialize;

/// Rows of a chunk.
pub const ROWS_PER_CHUNK: usize = 128;

/// A table and the names of its compressed parts.
#[derive(Serialize)]
pub struct InstructionSection {
    name: String,
    machine: Option<usize>,
    summary: String,
    details: Vec<String>,
    /// Whether it is a published table.
    is_published: bool,
    /// A published table beside each table of results.
    pub joins: Vec<PublishedJoin>,
}

/// The section of a file, and its compressed parts; `None` without a table.
pub fn describe_instructions(
    file: &ReportFile,
    machine: Option<usize>,
    number: usize,
) -> Option<(InstructionSection, Vec<PageBlob>)> {
    let mut pool = TextPool::default();
    let mut columns = SummaryColumns::default();
    let rows: &[InstrRow] = file.instructions.as_ref().map_or(&[], |table| &table.rows);
    rows.iter().for_each(|row| columns.add_row(row, &mut pool));
    let published = file.published.iter().flat_map(|table| &table.entries);
    published.for_each(|entry| columns.add_published(entry, &mut pool));
    if columns.is_empty() {
        return None;
    }
    let summary = format!("table-{number}");
    let mut blobs = vec![PageBlob::new(&summary, &TableSummary::new(pool, columns))];
    let mut details = Vec::new();
    for (chunk, rows) in rows.chunks(ROWS_PER_CHUNK).enumerate() {
        let name = format!("table-{number}-{chunk}");
        blobs.push(PageBlob::new(&name, &rows));
        details.push(name);
    }
    let (name, is_published) = (file.name.clone(), file.published.is_some());
    Some((InstructionSection { name, machine, summary, details, is_published, joins: Vec::new() }, blobs))
}
