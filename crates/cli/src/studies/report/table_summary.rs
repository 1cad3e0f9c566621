//! The summary of a table of instructions as columns.

use cyclescope::record::Quantity;
use cyclescope::study::instr::experiments::slot_judgement::SlotVerdict;
use cyclescope::study::instr::rows::instr_row::{InstrRow, LatencyBound, OperandLatency};
use cyclescope::study::instr::tables::compare::headline_latencies;
use cyclescope::study::instr::tables::reference::{PublishedFigure, ReferenceEntry};
use serde::Serialize;
use std::collections::HashMap;

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

impl SummaryColumns {
    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.code.is_empty()
    }

    /// Adds a row of results.
    pub fn add_row(&mut self, row: &InstrRow, pool: &mut TextPool) {
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
        let range = match entry.throughput {
            Some(PublishedFigure::Range(low, high)) => Some((round_figure(low), round_figure(high))),
            _ => None,
        };
        self.low.push(range.map(|(low, _)| low));
        self.high.push(range.map(|(_, high)| high));
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
