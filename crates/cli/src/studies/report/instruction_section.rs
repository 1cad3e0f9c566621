//! The table of instructions in two compressed forms: a summary as columns, which the page reads
//! at once, and the whole rows in chunks, which it reads when a row is opened.

use super::published_join::PublishedJoin;
use super::report_file::ReportFile;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use cyclescope::record::Quantity;
use cyclescope::study::instr::experiments::slot_judgement::SlotVerdict;
use cyclescope::study::instr::rows::instr_row::{InstrRow, LatencyBound, OperandLatency};
use cyclescope::study::instr::tables::compare::headline_latencies;
use cyclescope::study::instr::tables::reference::{PublishedFigure, ReferenceEntry};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use std::collections::HashMap;
use std::io::Write;

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

/// A compressed part of the page.
#[derive(Serialize)]
pub struct PageBlob {
    name: String,
    text: String,
}

/// Texts by number, each once.
#[derive(Default)]
pub struct TextPool {
    texts: Vec<String>,
    places: HashMap<String, usize>,
}

impl TextPool {
    fn place_of(&mut self, text: &str) -> usize {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        self.places.insert(text.to_string(), self.texts.len());
        self.texts.push(text.to_string());
        self.texts.len() - 1
    }
}

/// The columns of a table. Texts are numbers in a pool.
#[derive(Default, Serialize)]
pub struct SummaryColumns {
    code: Vec<usize>,
    mnemonic: Vec<usize>,
    operands: Vec<usize>,
    encoding: Vec<usize>,
    isa: Vec<usize>,
    latency: Vec<usize>,
    status: Vec<usize>,
    caveats: Vec<usize>,
    latency_most: Vec<Option<f64>>,
    throughput: Vec<Option<f64>>,
    low: Vec<Option<f64>>,
    high: Vec<Option<f64>>,
    slots: Vec<Option<f64>>,
}

/// The columns with their texts.
#[derive(Serialize)]
pub struct TableSummary {
    texts: Vec<String>,
    columns: SummaryColumns,
}

impl TableSummary {
    /// The columns with the texts of the pool that they were made with.
    pub fn new(pool: TextPool, columns: SummaryColumns) -> TableSummary {
        TableSummary { texts: pool.texts, columns }
    }
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
    if columns.code.is_empty() {
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

impl PageBlob {
    /// Compresses the content.
    pub fn new(name: &str, content: &impl Serialize) -> PageBlob {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        serde_json::to_writer(&mut packed, content).expect("rows are serialisable, and memory takes them");
        packed.flush().expect("memory takes the rest");
        let bytes = packed.finish().expect("memory takes the end");
        PageBlob { name: name.to_string(), text: BASE64_STANDARD.encode(bytes) }
    }

    /// The compressed bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> Vec<u8> {
        BASE64_STANDARD.decode(&self.text).expect("it was encoded")
    }
}

impl SummaryColumns {
    fn add_row(&mut self, row: &InstrRow, pool: &mut TextPool) {
        let latencies: Vec<&OperandLatency> = headline_latencies(row).collect();
        let most = latencies.iter().filter_map(|latency| latency.cost.value).reduce(f64::max);
        let throughput = row.throughput.as_ref().map(|rate| &rate.cost);
        let caveats: Vec<String> = row.caveats.iter().map(|caveat| name_of(&caveat.code)).collect();
        let status = name_of(&row.status);
        let slots = row.slots.as_ref().filter(|slots| slots.verdict == SlotVerdict::Exact);
        self.code.push(pool.place_of(&row.code));
        self.mnemonic.push(pool.place_of(&row.mnemonic));
        self.operands.push(pool.place_of(&row.operands));
        self.encoding.push(pool.place_of(&row.encoding));
        self.isa.push(pool.place_of(&row.isa));
        self.latency.push(pool.place_of(&describe_latencies(&latencies)));
        self.status.push(pool.place_of(&status));
        self.caveats.push(pool.place_of(&caveats.join(", ")));
        self.latency_most.push(most.map(round_figure));
        let figure = |of: fn(&Quantity) -> Option<f64>| throughput.and_then(of).map(round_figure);
        self.throughput.push(figure(|cost| cost.value));
        self.low.push(figure(|cost| cost.low));
        self.high.push(figure(|cost| cost.high));
        self.slots.push(slots.and_then(|slots| slots.whole).map(|whole| whole as f64));
    }

    /// Adds a line of a published table.
    pub fn add_published(&mut self, entry: &ReferenceEntry, pool: &mut TextPool) {
        let value = |figure: Option<PublishedFigure>| figure.map(|figure| round_figure(largest_value(figure)));
        self.code.push(pool.place_of(entry.code.as_deref().unwrap_or_default()));
        self.mnemonic.push(pool.place_of(&entry.mnemonic));
        self.operands.push(pool.place_of(&entry.operands));
        self.encoding.push(pool.place_of(entry.encoding.as_deref().unwrap_or_default()));
        self.isa.push(pool.place_of(""));
        let latency = entry.latency.map_or(String::new(), describe_published);
        self.latency.push(pool.place_of(&latency));
        self.status.push(pool.place_of("measured"));
        self.caveats.push(pool.place_of(""));
        self.latency_most.push(value(entry.latency));
        self.throughput.push(value(entry.throughput));
        self.low.push(None);
        self.high.push(None);
        self.slots.push(value(entry.slots));
    }
}

/// The name of a value of a closed list, as in JSON.
fn name_of(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_string()
}

fn largest_value(figure: PublishedFigure) -> f64 {
    match figure {
        PublishedFigure::Exact(value) | PublishedFigure::AtMost(value) | PublishedFigure::Range(_, value) => value,
    }
}

fn describe_published(figure: PublishedFigure) -> String {
    match figure {
        PublishedFigure::Exact(value) => value.to_string(),
        PublishedFigure::AtMost(value) => format!("≤ {value}"),
        PublishedFigure::Range(low, high) => format!("{low} – {high}"),
    }
}

/// A figure with five digits, which is more than any interval supports.
fn round_figure(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// The range of the latencies, such as `1`, `3 – 7.5` or `≤ 4`.
fn describe_latencies(latencies: &[&OperandLatency]) -> String {
    let by_value = |one: &&&OperandLatency, other: &&&OperandLatency| {
        one.cost.value.unwrap_or_default().total_cmp(&other.cost.value.unwrap_or_default())
    };
    let text = |latency: &OperandLatency| {
        let sign = if latency.bound == LatencyBound::Upper { "≤ " } else { "" };
        let value = latency.cost.value.unwrap_or_default();
        let digits = if value >= 100.0 {
            0
        } else if value >= 10.0 {
            1
        } else {
            2
        };
        let number = format!("{value:.digits$}");
        let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { &number };
        format!("{sign}{number}")
    };
    let ends = (latencies.iter().min_by(by_value), latencies.iter().max_by(by_value));
    let (Some(least), Some(most)) = ends else { return String::new() };
    let [least, most] = [text(least), text(most)];
    if least == most { least } else { format!("{least} – {most}") }
}
