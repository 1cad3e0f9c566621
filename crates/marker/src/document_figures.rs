//! The figures of the document on Linux kernel markers, for comparison with ours, in its order and
//! wording.
//!
//! The document's marker disables preemption around the probe call. Here, the states with a guard
//! correspond to it. Its "optimized" marker is the design `immediate`, its "generic" one `flag`.
//!
//! The document counts 32 bytes in the unlikely path, but its own listing has 51, from 0x13 through
//! the jump back at 0x44. It also omits the marker's effect on the function's prologue. Our figures
//! are the marker's own bytes, and the difference of the whole function.

use super::cost_difference::median_difference;
use super::record::{MarkerRecord, to_quantity};
use cyclescope_measure::result::record::Quantity;
use serde::Serialize;

/// Title of the document.
pub const SOURCE: &str = "Linux Kernel Markers 0.19, microbenchmarks";
/// The document's machine.
pub const MACHINE: &str = "Intel Pentium 4, 3 GHz, in the kernel, interrupts disabled";

/// One figure of the document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DocumentFigure {
    /// The executed code, in the document's words.
    pub part: &'static str,
    /// The marker, in the document's words.
    pub of: &'static str,
    /// The figure, in the document's words.
    pub what: &'static str,
    /// The value; `None` if only our measurement has it.
    pub value: Option<f64>,
    /// The corresponding figure of ours.
    pub ours: OwnFigure,
}

/// A figure in one of our records.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OwnFigure {
    /// Design of the record.
    pub design: &'static str,
    /// State of the record.
    pub state: &'static str,
    /// Context of the record.
    pub context: &'static str,
    /// The figure in the record.
    pub figure: RecordFigure,
}

/// A figure of a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RecordFigure {
    /// Iterations of the loop without the marker or with it.
    Loops,
    /// Total time without the marker, in core cycles.
    BaseTime,
    /// Total time with the marker, in core cycles.
    SiteTime,
    /// Core cycles per iteration without the marker.
    Base,
    /// Core cycles per iteration with the marker.
    Site,
    /// Cost of the marker.
    Cost,
    /// Cost of the marker beyond its cost in another state.
    Over(&'static str),
    /// Bytes of the marker on the likely path.
    Likely,
    /// Bytes of the marker on the unlikely path.
    Unlikely,
    /// Difference of the whole functions on the likely path, in bytes.
    FunctionLikely,
    /// Difference of the whole functions on the unlikely path, in bytes.
    FunctionUnlikely,
}

const EMPTY: &str = "Execute an empty loop";
const MEMCPY: &str = "Execute a loop of memcpy 4096 bytes";
const ENABLED: &str = "Execute a loop with a marker enabled (optimized)";
const SIZE: &str = "Size (x86)";
const WITHOUT: &str = "without marker";
const OPTIMIZED: &str = "optimized";
const GENERIC: &str = "generic";
const LOOPS: &str = "NR_LOOPS";
const TIME: &str = "time delta (cycles)";
const LOOP: &str = "cycles per loop";
const MARKER: &str = "cycles per loop for marker";

/// Names that identify one of our records.
#[derive(Debug, Clone, Copy)]
struct RecordKey {
    design: &'static str,
    state: &'static str,
    context: &'static str,
}

const fn record_key(design: &'static str, state: &'static str, context: &'static str) -> RecordKey {
    RecordKey { design, state, context }
}

const fn document_figure(
    part: &'static str,
    of: &'static str,
    what: &'static str,
    value: f64,
    ours: RecordKey,
    figure: RecordFigure,
) -> DocumentFigure {
    let RecordKey { design, state, context } = ours;
    // The document has no negative figures.
    let value = if value < 0.0 { None } else { Some(value) };
    DocumentFigure { part, of, what, value, ours: OwnFigure { design, state, context, figure } }
}

const NOT_GIVEN: f64 = -1.0;
const IMMEDIATE_OFF: RecordKey = record_key("immediate", "dormant", "empty");
const FLAG: RecordKey = record_key("flag", "dormant", "empty");
const IMMEDIATE_OFF_MEMCPY: RecordKey = record_key("immediate", "dormant", "memcpy");
const FLAG_MEMCPY: RecordKey = record_key("flag", "dormant", "memcpy");
const CALL: RecordKey = record_key("immediate", "guarded-empty", "empty");
const DIRECT: RecordKey = record_key("immediate", "guarded-direct", "empty");
const VARARGS: RecordKey = record_key("immediate", "guarded-varargs", "empty");
const FORMAT: RecordKey = record_key("immediate", "guarded-format", "empty");
/// The site with the guard, like the document's.
const FLAG_CALL: RecordKey = record_key("flag", "guarded-empty", "empty");

/// The figures, in the order of the document.
pub(crate) const DOCUMENT_FIGURES: &[DocumentFigure] = &[
    document_figure(EMPTY, WITHOUT, LOOPS, 10_000_000.0, IMMEDIATE_OFF, RecordFigure::Loops),
    document_figure(EMPTY, WITHOUT, TIME, 15_026_497.0, IMMEDIATE_OFF, RecordFigure::BaseTime),
    document_figure(EMPTY, WITHOUT, LOOP, 1.50, IMMEDIATE_OFF, RecordFigure::Base),
    document_figure(EMPTY, OPTIMIZED, LOOPS, 10_000_000.0, IMMEDIATE_OFF, RecordFigure::Loops),
    document_figure(EMPTY, OPTIMIZED, TIME, 40_031_640.0, IMMEDIATE_OFF, RecordFigure::SiteTime),
    document_figure(EMPTY, OPTIMIZED, LOOP, 4.00, IMMEDIATE_OFF, RecordFigure::Site),
    document_figure(EMPTY, OPTIMIZED, MARKER, 2.50, IMMEDIATE_OFF, RecordFigure::Cost),
    document_figure(EMPTY, GENERIC, LOOPS, 10_000_000.0, FLAG, RecordFigure::Loops),
    document_figure(EMPTY, GENERIC, TIME, 26_697_878.0, FLAG, RecordFigure::SiteTime),
    document_figure(EMPTY, GENERIC, LOOP, 2.67, FLAG, RecordFigure::Site),
    document_figure(EMPTY, GENERIC, MARKER, 1.17, FLAG, RecordFigure::Cost),
    document_figure(MEMCPY, WITHOUT, LOOPS, 10_000.0, IMMEDIATE_OFF_MEMCPY, RecordFigure::Loops),
    document_figure(MEMCPY, WITHOUT, TIME, 12_981_555.0, IMMEDIATE_OFF_MEMCPY, RecordFigure::BaseTime),
    document_figure(MEMCPY, WITHOUT, LOOP, 1298.16, IMMEDIATE_OFF_MEMCPY, RecordFigure::Base),
    document_figure(MEMCPY, OPTIMIZED, LOOPS, 10_000.0, IMMEDIATE_OFF_MEMCPY, RecordFigure::Loops),
    document_figure(MEMCPY, OPTIMIZED, TIME, 12_982_290.0, IMMEDIATE_OFF_MEMCPY, RecordFigure::SiteTime),
    document_figure(MEMCPY, OPTIMIZED, LOOP, 1298.23, IMMEDIATE_OFF_MEMCPY, RecordFigure::Site),
    document_figure(MEMCPY, OPTIMIZED, MARKER, 0.074, IMMEDIATE_OFF_MEMCPY, RecordFigure::Cost),
    document_figure(MEMCPY, GENERIC, LOOPS, 10_000.0, FLAG_MEMCPY, RecordFigure::Loops),
    document_figure(MEMCPY, GENERIC, TIME, 13_002_788.0, FLAG_MEMCPY, RecordFigure::SiteTime),
    document_figure(MEMCPY, GENERIC, LOOP, 1300.28, FLAG_MEMCPY, RecordFigure::Site),
    document_figure(MEMCPY, GENERIC, MARKER, 2.123, FLAG_MEMCPY, RecordFigure::Cost),
    document_figure(ENABLED, "with an empty probe", LOOPS, 100_000.0, CALL, RecordFigure::Loops),
    document_figure(ENABLED, "with an empty probe", TIME, 5_210_587.0, CALL, RecordFigure::SiteTime),
    document_figure(ENABLED, "with an empty probe", LOOP, 52.11, CALL, RecordFigure::Site),
    document_figure(
        ENABLED,
        "with an empty probe",
        "cycles per loop for empty probe",
        48.11,
        CALL,
        RecordFigure::Over("dormant"),
    ),
    document_figure(ENABLED, "with direct argument passing", LOOPS, 100_000.0, DIRECT, RecordFigure::Loops),
    document_figure(ENABLED, "with direct argument passing", TIME, 5_299_837.0, DIRECT, RecordFigure::SiteTime),
    document_figure(ENABLED, "with direct argument passing", LOOP, 53.00, DIRECT, RecordFigure::Site),
    document_figure(
        ENABLED,
        "with direct argument passing",
        "cycles per loop to get arguments in probe",
        0.89,
        DIRECT,
        RecordFigure::Over("guarded-empty"),
    ),
    document_figure(ENABLED, "with var args probe", LOOPS, 100_000.0, VARARGS, RecordFigure::Loops),
    document_figure(ENABLED, "with var args probe", TIME, 5_574_300.0, VARARGS, RecordFigure::SiteTime),
    document_figure(ENABLED, "with var args probe", LOOP, 55.74, VARARGS, RecordFigure::Site),
    document_figure(
        ENABLED,
        "with var args probe",
        "cycles per loop to get expected variable arguments",
        2.74,
        VARARGS,
        RecordFigure::Over("guarded-direct"),
    ),
    document_figure(
        ENABLED,
        "with var args probe, format string processing",
        LOOPS,
        100_000.0,
        FORMAT,
        RecordFigure::Loops,
    ),
    document_figure(
        ENABLED,
        "with var args probe, format string processing",
        TIME,
        9_622_117.0,
        FORMAT,
        RecordFigure::SiteTime,
    ),
    document_figure(ENABLED, "with var args probe, format string processing", LOOP, 96.22, FORMAT, RecordFigure::Site),
    document_figure(
        ENABLED,
        "with var args probe, format string processing",
        "cycles per loop to dynamically parse arguments with format string",
        40.48,
        FORMAT,
        RecordFigure::Over("guarded-varargs"),
    ),
    document_figure(SIZE, OPTIMIZED, "adds bytes in the likely path", 6.0, CALL, RecordFigure::Likely),
    document_figure(SIZE, OPTIMIZED, "adds bytes in the unlikely path", 32.0, CALL, RecordFigure::Unlikely),
    document_figure(
        SIZE,
        OPTIMIZED,
        "adds to the whole function, likely",
        NOT_GIVEN,
        CALL,
        RecordFigure::FunctionLikely,
    ),
    document_figure(
        SIZE,
        OPTIMIZED,
        "adds to the whole function, unlikely",
        NOT_GIVEN,
        CALL,
        RecordFigure::FunctionUnlikely,
    ),
    document_figure(SIZE, GENERIC, "adds bytes in the likely path", 11.0, FLAG_CALL, RecordFigure::Likely),
    document_figure(SIZE, GENERIC, "adds bytes in the unlikely path", 32.0, FLAG_CALL, RecordFigure::Unlikely),
    document_figure(
        SIZE,
        GENERIC,
        "adds to the whole function, likely",
        NOT_GIVEN,
        FLAG_CALL,
        RecordFigure::FunctionLikely,
    ),
    document_figure(
        SIZE,
        GENERIC,
        "adds to the whole function, unlikely",
        NOT_GIVEN,
        FLAG_CALL,
        RecordFigure::FunctionUnlikely,
    ),
];

/// A figure of the document compared with ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FigureComparison {
    /// The executed code, in the document's words.
    pub part: &'static str,
    /// The marker, in the document's words.
    pub of: &'static str,
    /// The figure, in the document's words.
    pub what: &'static str,
    /// The document's value.
    pub published: Option<f64>,
    /// Name of our design.
    pub design: &'static str,
    /// Name of our state.
    pub state: &'static str,
    /// Our value in core cycles; null if unknown, and for bytes.
    pub cycles: Option<Quantity>,
    /// Our value in bytes.
    pub bytes: Option<i64>,
    /// Our total number of iterations, or of core cycles, over the visits in the mean cost.
    pub total: Option<u64>,
    /// The difference in meaning between the document's figure and ours, if any.
    pub remark: Option<&'static str>,
}

/// See the document's listing, and the System V ABI for x86-64, 3.2.3 and 3.5.7.
const ABI_REMARK: &str = "the document's call stores its arguments on the stack (i386), ours puts them into \
     registers (x86-64): a probe that reads them loads nothing, and one with a variable argument list stores them \
     first";

/// Compares the document's figures with those in the records.
pub fn compare_figures(records: &[MarkerRecord]) -> Vec<FigureComparison> {
    DOCUMENT_FIGURES.iter().filter_map(|published| published.compare_records(records)).collect()
}

impl DocumentFigure {
    fn compare_records(&self, records: &[MarkerRecord]) -> Option<FigureComparison> {
        let OwnFigure { design, state, context, figure } = self.ours;
        let record = find_record(records, design, state, context)?;
        let timed = &record.timed;
        let total = match figure {
            RecordFigure::Loops => Some(timed.loops),
            RecordFigure::BaseTime => Some(timed.base.round() as u64),
            RecordFigure::SiteTime => Some(timed.site.round() as u64),
            _ => None,
        };
        let (cycles, bytes) = match figure {
            RecordFigure::Loops | RecordFigure::BaseTime | RecordFigure::SiteTime => (None, None),
            RecordFigure::Base => (Some(record.base), None),
            RecordFigure::Site => (Some(record.site), None),
            RecordFigure::Cost => (Some(record.cost), None),
            RecordFigure::Over(other) => {
                let interval = median_difference(record, find_record(records, design, other, context)?);
                (Some(to_quantity(interval)), None)
            }
            RecordFigure::Likely => (None, Some(record.code.likely_bytes as i64)),
            RecordFigure::Unlikely => (None, Some(record.code.unlikely_bytes as i64)),
            RecordFigure::FunctionLikely => (None, Some(record.code.function_likely_bytes)),
            RecordFigure::FunctionUnlikely => (None, Some(record.code.function_unlikely_bytes)),
        };
        let DocumentFigure { part, of, what, value, .. } = *self;
        let passes = part == ENABLED && figure != RecordFigure::Loops || figure == RecordFigure::Unlikely;
        // Our 32-bit code stores its arguments on the stack too.
        let remark = (passes && record.bits.is_default()).then_some(ABI_REMARK);
        Some(FigureComparison { part, of, what, published: value, design, state, cycles, bytes, total, remark })
    }
}

/// The record of a design in a state and context.
pub(crate) fn find_record<'a>(
    records: &'a [MarkerRecord],
    design: &str,
    state: &str,
    context: &str,
) -> Option<&'a MarkerRecord> {
    let matches =
        |record: &&MarkerRecord| record.design == design && record.state == state && record.context == context;
    records.iter().find(matches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tested_conclusions::tests::record;
    use cyclescope_code::asm::CodeMode;

    #[test]
    fn the_documents_increments_equal_differences_of_its_loops() {
        let value = |what: &str, of: &str, part: &str| {
            let row = |row: &&DocumentFigure| (row.what, row.of, row.part) == (what, of, part);
            DOCUMENT_FIGURES.iter().find(row).and_then(|row| row.value).unwrap()
        };
        let per_loop = |of, part| value(LOOP, of, part);
        let is_total = |row: &&DocumentFigure| [LOOPS, TIME].contains(&row.what);
        let totals: Vec<f64> = DOCUMENT_FIGURES.iter().filter(is_total).filter_map(|row| row.value).collect();
        let rows = DOCUMENT_FIGURES.iter().filter(|row| row.what == LOOP).filter_map(|row| row.value);
        for (total, each) in totals.chunks(2).zip(rows) {
            assert!((total[1] / total[0] - each).abs() < 0.006, "{total:?} {each}");
        }
        for (part, of, digits) in
            [(EMPTY, OPTIMIZED, 0.005), (EMPTY, GENERIC, 0.005), (MEMCPY, OPTIMIZED, 0.01), (MEMCPY, GENERIC, 0.01)]
        {
            let cost = per_loop(of, part) - per_loop(WITHOUT, part);
            assert!((cost - value(MARKER, of, part)).abs() < digits, "{part}, {of}: {cost}");
        }
        let rows = || DOCUMENT_FIGURES.iter().filter(|row| row.part == ENABLED && !is_total(row));
        let enabled: Vec<f64> = rows().filter_map(|row| row.value).collect();
        let mut before = per_loop(OPTIMIZED, EMPTY);
        for pair in enabled.chunks(2) {
            assert!((pair[0] - before - pair[1]).abs() < 0.005, "{pair:?}");
            before = pair[0];
        }
    }

    #[test]
    fn every_figure_refers_to_an_existing_case() {
        use crate::source::{context, design};
        use crate::state::list_states;
        for DocumentFigure { ours, .. } in DOCUMENT_FIGURES {
            let design = design::ALL.iter().find(|one| one.name == ours.design).expect("a design");
            assert!(list_states(design).iter().any(|state| state.name == ours.state), "{ours:?}");
            assert!(context::ALL.iter().any(|one| one.name == ours.context), "{ours:?}");
        }
    }

    #[test]
    fn measured_figures_are_compared_with_the_document() {
        let records = [
            record("immediate", "dormant", "empty", &[1.0; 16]),
            record("immediate", "guarded-empty", "empty", &[5.5; 16]),
        ];
        let rows = compare_figures(&records);
        let row_of = |what: &str| rows.iter().find(|row| row.what == what).expect("a row");
        assert_eq!(row_of("cycles per loop for empty probe").cycles.unwrap().value, Some(4.5));
        assert_eq!(row_of(MARKER).cycles.unwrap().value, Some(1.0));
        assert!(rows.iter().all(|row| {
            row.design == "immediate"
                && [row.cycles.is_some(), row.bytes.is_some(), row.total.is_some()].map(u8::from).iter().sum::<u8>()
                    == 1
        }));
        assert_eq!(row_of("adds bytes in the likely path").bytes, Some(6));
        assert_eq!((row_of(LOOPS).total, row_of(LOOPS).published), (Some(1000), Some(1e7)));
        let direct = compare_figures(&[record("immediate", "guarded-direct", "empty", &[5.0; 16])]);
        let has_remark: Vec<bool> = direct.iter().map(|row| row.remark.is_some()).collect();
        assert_eq!(has_remark, [false, true, true], "{direct:?}");
        assert!(row_of(LOOPS).remark.is_none() && row_of(MARKER).remark.is_none());
        let narrow =
            MarkerRecord { bits: CodeMode::Bits32, ..record("immediate", "guarded-direct", "empty", &[5.0; 16]) };
        assert!(compare_figures(&[narrow]).iter().all(|row| row.remark.is_none()));
        assert!(compare_figures(&records[1..]).iter().all(|row| row.what != "cycles per loop for empty probe"));
    }
}
