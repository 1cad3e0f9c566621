//! A published table beside the results that it speaks of: for each row, what the lines say that name
//! it by the rules of `compare`, and how far that is from the row's figures.

use super::page_blob::PageBlob;
use super::table_summary::{SummaryColumns, TableSummary, TextPool};
use cyclescope::study::instr::rows::instr_row::InstrRow;
use cyclescope::study::instr::tables::compare::{Tolerance, compare_with_reference};
use cyclescope::study::instr::tables::reference::{PublishedFigure, ReferenceEntry, ReferenceTable};
use serde::Serialize;
use std::collections::HashMap;

/// A published table as it is joined with a table of results.
#[derive(Serialize)]
pub struct PublishedJoin {
    /// Number of the table of results.
    table: usize,
    /// Name of the compressed part.
    summary: String,
}

/// What the published table says of each row, in the order of the rows.
#[derive(Serialize)]
struct JoinSummary {
    #[serde(flatten)]
    table: TableSummary,
    /// Whether a line names the row.
    is_named: Vec<bool>,
    /// The largest relative difference; null if no figure of the row was compared.
    difference: Vec<Option<f64>>,
}

/// The published table beside the results, which are table number `table` of the page.
pub fn join_published(
    rows: &[InstrRow],
    published: &ReferenceTable,
    table: usize,
    name: String,
) -> (PublishedJoin, PageBlob) {
    let comparison = compare_with_reference(rows, published, Tolerance::PUBLISHED);
    let mut lines: Vec<Vec<&ReferenceEntry>> = vec![Vec::new(); rows.len()];
    for (row, line) in comparison.named {
        lines[row].push(&published.entries[line]);
    }
    let mut differences: HashMap<(&str, &str, &str), f64> = HashMap::new();
    for one in &comparison.differences {
        let known = differences.entry((&one.code, &one.operands, &one.encoding)).or_default();
        *known = known.max(one.relative.abs());
    }
    let mut pool = TextPool::default();
    let mut columns = SummaryColumns::default();
    let mut difference = Vec::new();
    for (row, lines) in rows.iter().zip(&lines) {
        columns.add_published(&merge_lines(row, lines), &mut pool);
        let has_figure = [
            !row.latency.is_empty() && lines.iter().any(|line| line.latency.is_some()),
            row.throughput.is_some() && lines.iter().any(|line| line.throughput.is_some()),
            row.slots.is_some() && lines.iter().any(|line| line.slots.is_some()),
        ];
        let key = (row.code.as_str(), row.operands.as_str(), row.encoding.as_str());
        let found = differences.get(&key).copied().unwrap_or_default();
        difference.push(has_figure.contains(&true).then_some(found));
    }
    let is_named = lines.iter().map(|lines| !lines.is_empty()).collect();
    let summary = JoinSummary { table: TableSummary::new(pool, columns), is_named, difference };
    let blob = PageBlob::new(&name, &summary);
    (PublishedJoin { table, summary: name }, blob)
}

/// The lines that name a row as one line of its name. Unlike figures become a range.
fn merge_lines(row: &InstrRow, lines: &[&ReferenceEntry]) -> ReferenceEntry {
    let merge = |figure: fn(&ReferenceEntry) -> Option<PublishedFigure>| {
        let mut figures = lines.iter().filter_map(|line| figure(line));
        let first = figures.next()?;
        Some(figures.fold(first, |one, other| if one == other { one } else { span_figures(one, other) }))
    };
    ReferenceEntry {
        line: lines.first().map_or(0, |line| line.line),
        code: Some(row.code.clone()),
        mnemonic: row.mnemonic.clone(),
        operands: row.operands.clone(),
        encoding: Some(row.encoding.clone()),
        pair: None,
        latency: merge(|line| line.latency),
        bound: None,
        throughput: merge(|line| line.throughput),
        slots: merge(|line| line.slots),
    }
}

/// The range of two figures. An upper bound has no lower end but 0.
fn span_figures(one: PublishedFigure, other: PublishedFigure) -> PublishedFigure {
    let ends = [one, other].map(|figure| match figure {
        PublishedFigure::Exact(value) => (value, value),
        PublishedFigure::AtMost(most) => (0.0, most),
        PublishedFigure::Range(low, high) => (low, high),
    });
    PublishedFigure::Range(ends[0].0.min(ends[1].0), ends[0].1.max(ends[1].1))
}

#[cfg(test)]
mod tests {
    use super::super::report_file::ReportFile;
    use super::*;
    use flate2::read::GzDecoder;
    use serde_json::Value;

    const RESULTS: &[u8] = include_bytes!("../../../../cyclescope/tests/hostile/results.jsonl");

    #[test]
    fn a_published_table_is_joined_as_compare_does() {
        let results = ReportFile::from_bytes("a.jsonl".to_string(), RESULTS).unwrap().instructions.unwrap();
        let measured = |row: &&InstrRow| row.throughput.as_ref().is_some_and(|rate| rate.cost.value.is_some());
        let at = results.rows.iter().position(|row| measured(&row)).expect("a row with a rate");
        let row = &results.rows[at];
        let rate = row.throughput.as_ref().unwrap().cost.value.unwrap();
        // Capitals, another spelling of spaces and no encoding: only the rules of `compare` find the row.
        let line = format!("{},\"{}\",{}", row.mnemonic.to_uppercase(), row.operands.replace(", ", ","), 2.0 * rate);
        let csv = format!("mnemonic,operands,rthroughput_cycles\n{line}\nnosuch,r64,1\n");
        let table = ReferenceTable::read(csv.as_bytes()).unwrap();
        let (join, blob) = join_published(&results.rows, &table, 3, "join-0".to_string());
        assert_eq!((join.table, join.summary.as_str()), (3, "join-0"));
        let content: Value = serde_json::from_reader(GzDecoder::new(&blob.bytes()[..])).unwrap();
        assert_eq!(content["is_named"][at], true);
        assert!((content["difference"][at].as_f64().unwrap() - 0.5).abs() < 1e-9, "{content}");
        assert_eq!(content["columns"]["throughput"].as_array().unwrap().len(), results.rows.len());
        let named = content["is_named"].as_array().unwrap().iter().filter(|named| **named == true).count();
        let same_form = |other: &&InstrRow| (&other.mnemonic, &other.operands) == (&row.mnemonic, &row.operands);
        assert_eq!(named, results.rows.iter().filter(same_form).count());
    }

    #[test]
    fn unlike_figures_become_a_range() {
        use PublishedFigure::{AtMost, Exact, Range};
        assert_eq!(span_figures(Exact(1.0), Exact(3.0)), Range(1.0, 3.0));
        assert_eq!(span_figures(AtMost(7.0), Range(2.0, 3.0)), Range(0.0, 7.0));
    }
}
