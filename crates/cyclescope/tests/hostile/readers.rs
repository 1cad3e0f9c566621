//! The library's readers of files, each as a function that takes any bytes. `fuzz/` has a target
//! for each, too.

use super::{dossier, seeds};
use cyclescope::asm;
use cyclescope::asm::CodeMode;
use cyclescope::events::{CounterRequest, EventCatalog, EventTable};
use cyclescope::machine::Machine;
use cyclescope::pasted::read_pasted;
use cyclescope::record::MixPartRecord;
use cyclescope::study::ResumableSession;
use cyclescope::study::ab;
use cyclescope::study::instr::rows::instr_row::InstrRow;
use cyclescope::study::instr::rows::instr_table::InstrTable;
use cyclescope::study::instr::tables::compare::{Tolerance, compare_results, compare_with_reference, read_runs};
use cyclescope::study::instr::tables::reference::ReferenceTable;
use cyclescope::study::instr::tables::summary::SurveySummary;
use cyclescope::study::instr::tables::{compare, export};
use cyclescope::study::instr::{form_list, session};
use cyclescope::study::points;
use cyclescope::study::ports::mix_ports::MixedForm;
use cyclescope::study::ports::ports_comparison::{PortsTable, compare_sharing};
use cyclescope::study::ports::ports_row::PortsRow;
use cyclescope::study::ports::published_map::PublishedMap;
use cyclescope_fuzz::InputShape;
use serde_json::Value;
use std::sync::OnceLock;

/// A reader and its fuzz target.
pub struct Reader {
    /// Name of its fuzz target.
    pub name: &'static str,
    /// Kind of input.
    pub shape: InputShape,
    /// Reads the bytes, and uses the result as the command does.
    pub read: fn(&[u8]),
}

/// All readers.
pub const READERS: &[Reader] = &[
    Reader { name: "assembly", shape: InputShape::Bytes, read: assembly },
    Reader { name: "events", shape: InputShape::Table, read: events },
    Reader { name: "evidence_evaluate", shape: InputShape::WholeJson, read: dossier::replayed },
    Reader { name: "evidence_instr", shape: InputShape::WholeJson, read: dossier::replayed },
    Reader { name: "evidence_marker", shape: InputShape::WholeJson, read: dossier::replayed },
    Reader { name: "evidence_points", shape: InputShape::WholeJson, read: dossier::replayed },
    Reader { name: "evidence_ports", shape: InputShape::WholeJson, read: dossier::replayed },
    Reader { name: "evidence_run", shape: InputShape::WholeJson, read: dossier::replayed },
    Reader { name: "evidence_uarch", shape: InputShape::WholeJson, read: dossier::replayed },
    Reader { name: "forms", shape: InputShape::Table, read: forms },
    Reader { name: "manifest", shape: InputShape::Json, read: dossier::manifest },
    Reader { name: "pasted", shape: InputShape::Bytes, read: pasted },
    Reader { name: "port_names", shape: InputShape::Table, read: port_names },
    Reader { name: "ports", shape: InputShape::JsonLines, read: ports },
    Reader { name: "published", shape: InputShape::Table, read: published },
    Reader { name: "readings", shape: InputShape::Bytes, read: dossier::readings },
    Reader { name: "results", shape: InputShape::JsonLines, read: results },
    Reader { name: "samples", shape: InputShape::JsonLines, read: samples },
    Reader { name: "session", shape: InputShape::Json, read: session },
    Reader { name: "snippets", shape: InputShape::Table, read: snippets },
];

/// Text of another program.
fn pasted(bytes: &[u8]) {
    let _ = read_pasted(&String::from_utf8_lossy(bytes), None);
}

/// A snippet, and machine code in hexadecimal.
fn assembly(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for parsed in [
        asm::parse_with_syntax(text, asm::InstructionSyntax::Intel),
        asm::parse_with_syntax(text, asm::InstructionSyntax::Att),
    ] {
        let _ = parsed.map(|listing| listing.text());
    }
    let _ = asm::parse_hex(text).map(|bytes| asm::Listing::from_bytes(&bytes).text());
}

/// A table of events, and a request of its events.
fn events(bytes: &[u8]) {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    let text = String::from_utf8_lossy(bytes);
    let Ok(table) = EventTable::parse(&text) else { return };
    let catalog = EventCatalog::new(MACHINE.get_or_init(Machine::detect), table);
    let names: Vec<String> = catalog.set_names().iter().map(|name| format!("@{name}")).collect();
    let request = CounterRequest::parse(&names.join(","), &catalog).expect("every set is known");
    assert!(request.is_sound());
    let _ = CounterRequest::parse(&text, &catalog);
}

/// A list of instructions.
fn forms(bytes: &[u8]) {
    let _ = form_list::read_list(bytes, CodeMode::default());
}

/// Samples of a run of benchmarks.
fn samples(bytes: &[u8]) {
    let Ok(run) = ab::parse_samples(bytes, std::time::Duration::from_secs(10)) else { return };
    assert!(run.figures.values().all(|cycles| *cycles > 0.0 && cycles.is_finite()), "{run:?}");
}

/// A list of snippets.
fn snippets(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = points::read_list(text);
}

/// A published map of ports, whose names the ports of a result get.
fn port_names(bytes: &[u8]) {
    let Ok(published) = std::str::from_utf8(bytes).map(PublishedMap::read) else { return };
    let table = PortsTable::read(dossier::PORTS.as_bytes()).expect("good lines").expect("rows");
    let _ = published.map(|published| serde_json::to_string(&table.name_ports(&published)));
}

/// A result file of `ports`, compared with itself and with another one, as the limit of a mix, and with
/// published names.
fn ports(bytes: &[u8]) {
    let Ok(Some(table)) = PortsTable::read(bytes) else { return };
    let good = PortsTable::read(dossier::PORTS.as_bytes()).expect("good lines").expect("rows");
    for other in [&table, &good] {
        let _ = serde_json::to_string(&compare_sharing(&table, other));
        let _ = serde_json::to_string(&compare_sharing(other, &table));
    }
    let part = |row: &PortsRow| MixPartRecord { code: row.code.clone(), form: row.name(), count: usize::MAX };
    let parts: Vec<MixPartRecord> = table.rows.iter().map(part).collect();
    let forms = parts.iter().zip(&table.rows).map(|(part, row)| MixedForm { part, operands: &row.operands });
    let _ = serde_json::to_string(&table.limit_mix(&forms.collect::<Vec<MixedForm>>()).ports);
    let published = PublishedMap::read(seeds::PORT_NAMES[0]).expect("a good map");
    let _ = serde_json::to_string(&table.name_ports(&published));
}

/// A published table, compared with measured rows.
fn published(bytes: &[u8]) {
    static ROWS: OnceLock<Vec<InstrRow>> = OnceLock::new();
    let rows = ROWS.get_or_init(|| InstrTable::read(dossier::RESULTS.as_bytes()).expect("good rows").rows);
    let Ok(reference) = ReferenceTable::read(bytes) else { return };
    used(&compare_with_reference(rows, &reference, Tolerance::PUBLISHED));
}

/// A result file, compared with itself, summarised and exported.
fn results(bytes: &[u8]) {
    let Ok(table) = InstrTable::read(bytes) else { return };
    let _ = table.processor();
    let good = InstrTable::read(dossier::RESULTS.as_bytes()).expect("good rows");
    for rows in [&table.rows, &read_runs(bytes).unwrap_or_default()] {
        used(&compare_results(rows, rows, Tolerance::RESULTS));
        used(&compare_results(rows, &good.rows, Tolerance::RESULTS));
        let _ = serde_json::to_string(&SurveySummary::from_rows(rows));
        let _ = export::build_latency_table(rows);
        let _ = export::build_summary_table(rows);
    }
}

fn used(comparison: &compare::TableComparison) {
    let _ = serde_json::to_string(comparison);
    let _ = comparison.differences.iter().map(serde_json::to_string).count();
}

/// The first line of a resumed file.
fn session(bytes: &[u8]) {
    let Ok(line) = serde_json::from_slice::<Value>(bytes) else { return };
    let now: session::InstrSession =
        serde_json::from_value(dossier::session()["survey"].clone()).expect("a good session");
    if let Ok(kept) = serde_json::from_value::<session::InstrSession>(line["survey"].clone()) {
        let _ = kept.describe_differences(&now, &line, &Value::Null);
    }
    let _ = serde_json::from_value::<session::LinkCostsRecord>(line["gauge"].clone());
    if let Ok(kept) = serde_json::from_value::<points::PointsSession>(line["points"].clone()) {
        let _ = kept.describe_differences(&kept, &line, &line);
    }
}
