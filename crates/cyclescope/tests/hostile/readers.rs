//! The library's readers of files, each as a function that takes any bytes and answers. `fuzz/` has a target for each, too.

use super::dossier;
use cyclescope::asm;
use cyclescope::study::Session;
use cyclescope::study::ab;
use cyclescope::study::instr::rows::row::Row;
use cyclescope::study::instr::rows::table::Table;
use cyclescope::study::instr::tables::compare::{Tolerance, against_reference, against_results, runs};
use cyclescope::study::instr::tables::reference::Reference;
use cyclescope::study::instr::tables::summary::Summary;
use cyclescope::study::instr::tables::{compare, export};
use cyclescope::study::instr::{list, session};
use cyclescope::study::points;
use cyclescope_fuzz::Shape;
use serde_json::Value;
use std::sync::OnceLock;

/// A reader, by the name of its target.
pub struct Reader {
    /// Its name.
    pub name: &'static str,
    /// What it reads.
    pub shape: Shape,
    /// Reads, and uses what it read as the command does.
    pub read: fn(&[u8]),
}

/// All of them.
pub const READERS: &[Reader] = &[
    Reader { name: "assembly", shape: Shape::Bytes, read: assembly },
    Reader { name: "evidence_evaluate", shape: Shape::WholeJson, read: dossier::replayed },
    Reader { name: "evidence_instr", shape: Shape::WholeJson, read: dossier::replayed },
    Reader { name: "evidence_marker", shape: Shape::WholeJson, read: dossier::replayed },
    Reader { name: "evidence_points", shape: Shape::WholeJson, read: dossier::replayed },
    Reader { name: "evidence_run", shape: Shape::WholeJson, read: dossier::replayed },
    Reader { name: "evidence_uarch", shape: Shape::WholeJson, read: dossier::replayed },
    Reader { name: "forms", shape: Shape::Bytes, read: forms },
    Reader { name: "manifest", shape: Shape::Json, read: dossier::manifest },
    Reader { name: "published", shape: Shape::Bytes, read: published },
    Reader { name: "readings", shape: Shape::Bytes, read: dossier::readings },
    Reader { name: "results", shape: Shape::JsonLines, read: results },
    Reader { name: "samples", shape: Shape::JsonLines, read: samples },
    Reader { name: "session", shape: Shape::Json, read: session },
    Reader { name: "snippets", shape: Shape::Bytes, read: snippets },
];

/// A snippet, and machine code in hexadecimal.
fn assembly(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for parsed in [asm::parse_as(text, asm::Syntax::Intel), asm::parse_as(text, asm::Syntax::Att)] {
        let _ = parsed.map(|listing| listing.text());
    }
    let _ = asm::hex(text).map(|bytes| asm::Listing::from_bytes(&bytes).text());
}

/// A list of instructions.
fn forms(bytes: &[u8]) {
    let _ = list::read(bytes);
}

/// Samples of a run of benchmarks.
fn samples(bytes: &[u8]) {
    let Ok(figures) = ab::parse(bytes) else { return };
    assert!(figures.values().all(|cycles| *cycles > 0.0 && cycles.is_finite()), "{figures:?}");
}

/// A list of snippets.
fn snippets(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = points::read(text);
}

/// A published table, which rows are compared with.
fn published(bytes: &[u8]) {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    let rows = ROWS.get_or_init(|| Table::read(dossier::RESULTS.as_bytes()).expect("good rows").rows);
    let Ok(reference) = Reference::read(bytes) else { return };
    used(&against_reference(rows, &reference, Tolerance::PUBLISHED));
}

/// A file of results, compared with itself, summed up and exported.
fn results(bytes: &[u8]) {
    let Ok(table) = Table::read(bytes) else { return };
    let _ = table.processor();
    let good = Table::read(dossier::RESULTS.as_bytes()).expect("good rows");
    for rows in [&table.rows, &runs(bytes)] {
        used(&against_results(rows, rows, Tolerance::RESULTS));
        used(&against_results(rows, &good.rows, Tolerance::RESULTS));
        let _ = serde_json::to_string(&Summary::of(rows));
        let _ = export::table(rows);
        let _ = export::summary(rows);
    }
}

fn used(comparison: &compare::Comparison) {
    let _ = serde_json::to_string(comparison);
    let _ = comparison.differences.iter().map(serde_json::to_string).count();
}

/// The first line of a file that is resumed.
fn session(bytes: &[u8]) {
    let Ok(line) = serde_json::from_slice::<Value>(bytes) else { return };
    let now: session::InstrSession =
        serde_json::from_value(dossier::session()["survey"].clone()).expect("a good session");
    if let Ok(kept) = serde_json::from_value::<session::InstrSession>(line["survey"].clone()) {
        let _ = kept.differences(&now, &line, &Value::Null);
    }
    let _ = serde_json::from_value::<session::GaugeRecord>(line["gauge"].clone());
    if let Ok(kept) = serde_json::from_value::<points::PointsSession>(line["points"].clone()) {
        let _ = kept.differences(&kept, &line, &line);
    }
}
