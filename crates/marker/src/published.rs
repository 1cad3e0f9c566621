//! The figures of the document on Linux kernel markers, to set ours beside: in its order and its words.
//!
//! Its marker disables preemption around the call of the probe; here the states with a guard are compared with it. Its
//! "optimized" marker is the design `immediate`, its "generic" one `flag`. The document counts 32 bytes in the unlikely
//! path, where its own listing has 51 from 0x13 through the jump back at 0x44, and leaves out what the marker does to the
//! function's prologue; our figures have the marker's own bytes, and the difference of the whole function.

use super::difference::difference;
use super::record::{MarkerRecord, quantity};
use cyclescope_measure::result::record::Quantity;
use serde::Serialize;

/// The document.
pub const SOURCE: &str = "Linux Kernel Markers 0.19, microbenchmarks";
/// Its machine.
pub const MACHINE: &str = "Intel Pentium 4, 3 GHz, in the kernel, interrupts disabled";

/// One figure of the document's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Published {
    /// What was executed, as the document has it.
    pub part: &'static str,
    /// The marker, as the document has it.
    pub of: &'static str,
    /// What the figure is, as the document has it.
    pub what: &'static str,
    /// The figure; none where the document doesn't tell it and we do.
    pub value: Option<f64>,
    /// Where ours is.
    pub ours: Place,
}

/// A figure of a record of ours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Place {
    /// The record's design.
    pub design: &'static str,
    /// Its state.
    pub state: &'static str,
    /// Its context.
    pub context: &'static str,
    /// Which of its figures.
    pub figure: Figure,
}

/// Which figure of a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Figure {
    /// How often the loop without the marker, or with it, went around.
    Loops,
    /// How long that took without the marker, in core cycles.
    BaseTime,
    /// The same with it.
    SiteTime,
    /// Core cycles of once around without the marker.
    Base,
    /// Core cycles of once around with it.
    Site,
    /// What the marker adds.
    Cost,
    /// What it adds beyond what it adds in another state.
    Over(&'static str),
    /// The marker's own bytes on the likely path.
    Likely,
    /// Those on the unlikely path.
    Unlikely,
    /// Bytes on the likely path by which the whole functions differ.
    FunctionLikely,
    /// Those on the unlikely path.
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

/// The names of a record of ours.
#[derive(Debug, Clone, Copy)]
struct Named {
    design: &'static str,
    state: &'static str,
    context: &'static str,
}

const fn named(design: &'static str, state: &'static str, context: &'static str) -> Named {
    Named { design, state, context }
}

const fn row(
    part: &'static str,
    of: &'static str,
    what: &'static str,
    value: f64,
    ours: Named,
    figure: Figure,
) -> Published {
    let Named { design, state, context } = ours;
    // The document has no negative figures.
    let value = if value < 0.0 { None } else { Some(value) };
    Published { part, of, what, value, ours: Place { design, state, context, figure } }
}

const UNTOLD: f64 = -1.0;
const OFF: Named = named("immediate", "dormant", "empty");
const FLAG: Named = named("flag", "dormant", "empty");
const OFF_MEMCPY: Named = named("immediate", "dormant", "memcpy");
const FLAG_MEMCPY: Named = named("flag", "dormant", "memcpy");
const CALL: Named = named("immediate", "guarded-empty", "empty");
const DIRECT: Named = named("immediate", "guarded-direct", "empty");
const VARARGS: Named = named("immediate", "guarded-varargs", "empty");
const FORMAT: Named = named("immediate", "guarded-format", "empty");
/// The site that has the guard, as the document's has.
const FLAG_CALL: Named = named("flag", "guarded-empty", "empty");

/// The figures, in the order of the document.
pub(crate) const PUBLISHED: &[Published] = &[
    row(EMPTY, WITHOUT, LOOPS, 10_000_000.0, OFF, Figure::Loops),
    row(EMPTY, WITHOUT, TIME, 15_026_497.0, OFF, Figure::BaseTime),
    row(EMPTY, WITHOUT, LOOP, 1.50, OFF, Figure::Base),
    row(EMPTY, OPTIMIZED, LOOPS, 10_000_000.0, OFF, Figure::Loops),
    row(EMPTY, OPTIMIZED, TIME, 40_031_640.0, OFF, Figure::SiteTime),
    row(EMPTY, OPTIMIZED, LOOP, 4.00, OFF, Figure::Site),
    row(EMPTY, OPTIMIZED, MARKER, 2.50, OFF, Figure::Cost),
    row(EMPTY, GENERIC, LOOPS, 10_000_000.0, FLAG, Figure::Loops),
    row(EMPTY, GENERIC, TIME, 26_697_878.0, FLAG, Figure::SiteTime),
    row(EMPTY, GENERIC, LOOP, 2.67, FLAG, Figure::Site),
    row(EMPTY, GENERIC, MARKER, 1.17, FLAG, Figure::Cost),
    row(MEMCPY, WITHOUT, LOOPS, 10_000.0, OFF_MEMCPY, Figure::Loops),
    row(MEMCPY, WITHOUT, TIME, 12_981_555.0, OFF_MEMCPY, Figure::BaseTime),
    row(MEMCPY, WITHOUT, LOOP, 1298.16, OFF_MEMCPY, Figure::Base),
    row(MEMCPY, OPTIMIZED, LOOPS, 10_000.0, OFF_MEMCPY, Figure::Loops),
    row(MEMCPY, OPTIMIZED, TIME, 12_982_290.0, OFF_MEMCPY, Figure::SiteTime),
    row(MEMCPY, OPTIMIZED, LOOP, 1298.23, OFF_MEMCPY, Figure::Site),
    row(MEMCPY, OPTIMIZED, MARKER, 0.074, OFF_MEMCPY, Figure::Cost),
    row(MEMCPY, GENERIC, LOOPS, 10_000.0, FLAG_MEMCPY, Figure::Loops),
    row(MEMCPY, GENERIC, TIME, 13_002_788.0, FLAG_MEMCPY, Figure::SiteTime),
    row(MEMCPY, GENERIC, LOOP, 1300.28, FLAG_MEMCPY, Figure::Site),
    row(MEMCPY, GENERIC, MARKER, 2.123, FLAG_MEMCPY, Figure::Cost),
    row(ENABLED, "with an empty probe", LOOPS, 100_000.0, CALL, Figure::Loops),
    row(ENABLED, "with an empty probe", TIME, 5_210_587.0, CALL, Figure::SiteTime),
    row(ENABLED, "with an empty probe", LOOP, 52.11, CALL, Figure::Site),
    row(
        ENABLED,
        "with an empty probe",
        "cycles per loop for empty probe",
        48.11,
        CALL,
        Figure::Over("dormant"),
    ),
    row(ENABLED, "with direct argument passing", LOOPS, 100_000.0, DIRECT, Figure::Loops),
    row(ENABLED, "with direct argument passing", TIME, 5_299_837.0, DIRECT, Figure::SiteTime),
    row(ENABLED, "with direct argument passing", LOOP, 53.00, DIRECT, Figure::Site),
    row(
        ENABLED,
        "with direct argument passing",
        "cycles per loop to get arguments in probe",
        0.89,
        DIRECT,
        Figure::Over("guarded-empty"),
    ),
    row(ENABLED, "with var args probe", LOOPS, 100_000.0, VARARGS, Figure::Loops),
    row(ENABLED, "with var args probe", TIME, 5_574_300.0, VARARGS, Figure::SiteTime),
    row(ENABLED, "with var args probe", LOOP, 55.74, VARARGS, Figure::Site),
    row(
        ENABLED,
        "with var args probe",
        "cycles per loop to get expected variable arguments",
        2.74,
        VARARGS,
        Figure::Over("guarded-direct"),
    ),
    row(ENABLED, "with var args probe, format string processing", LOOPS, 100_000.0, FORMAT, Figure::Loops),
    row(
        ENABLED,
        "with var args probe, format string processing",
        TIME,
        9_622_117.0,
        FORMAT,
        Figure::SiteTime,
    ),
    row(ENABLED, "with var args probe, format string processing", LOOP, 96.22, FORMAT, Figure::Site),
    row(
        ENABLED,
        "with var args probe, format string processing",
        "cycles per loop to dynamically parse arguments with format string",
        40.48,
        FORMAT,
        Figure::Over("guarded-varargs"),
    ),
    row(SIZE, OPTIMIZED, "adds bytes in the likely path", 6.0, CALL, Figure::Likely),
    row(SIZE, OPTIMIZED, "adds bytes in the unlikely path", 32.0, CALL, Figure::Unlikely),
    row(SIZE, OPTIMIZED, "adds to the whole function, likely", UNTOLD, CALL, Figure::FunctionLikely),
    row(SIZE, OPTIMIZED, "adds to the whole function, unlikely", UNTOLD, CALL, Figure::FunctionUnlikely),
    row(SIZE, GENERIC, "adds bytes in the likely path", 11.0, FLAG_CALL, Figure::Likely),
    row(SIZE, GENERIC, "adds bytes in the unlikely path", 32.0, FLAG_CALL, Figure::Unlikely),
    row(SIZE, GENERIC, "adds to the whole function, likely", UNTOLD, FLAG_CALL, Figure::FunctionLikely),
    row(SIZE, GENERIC, "adds to the whole function, unlikely", UNTOLD, FLAG_CALL, Figure::FunctionUnlikely),
];

/// A figure of the document's and ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Beside {
    /// What was executed, as the document has it.
    pub part: &'static str,
    /// The marker, as the document has it.
    pub of: &'static str,
    /// What the figure is, as the document has it.
    pub what: &'static str,
    /// The document's figure.
    pub published: Option<f64>,
    /// Our design.
    pub design: &'static str,
    /// Our state.
    pub state: &'static str,
    /// Ours in core cycles; null where it isn't known, and for bytes.
    pub cycles: Option<Quantity>,
    /// Ours in bytes.
    pub bytes: Option<i64>,
    /// Ours of iterations, or of core cycles that all of them took: of the visits that costs are means of.
    pub total: Option<u64>,
    /// Why the document's figure is of something else than ours, where it is.
    pub remark: Option<&'static str>,
}

/// See the listing of the document's, and the System V ABI for x86-64, 3.2.3 and 3.5.7.
const ABI: &str = "the document's call stores its arguments on the stack (i386), ours puts them into registers (x86-64): \
                   a probe that takes them loads nothing, and one with a variable argument list stores them first";

/// The document's figures that some records have, beside theirs.
pub fn beside(records: &[MarkerRecord]) -> Vec<Beside> {
    PUBLISHED.iter().filter_map(|published| published.beside(records)).collect()
}

impl Published {
    fn beside(&self, records: &[MarkerRecord]) -> Option<Beside> {
        let Place { design, state, context, figure } = self.ours;
        let record = find(records, design, state, context)?;
        let timed = &record.timed;
        let total = match figure {
            Figure::Loops => Some(timed.loops),
            Figure::BaseTime => Some(timed.base.round() as u64),
            Figure::SiteTime => Some(timed.site.round() as u64),
            _ => None,
        };
        let (cycles, bytes) = match figure {
            Figure::Loops | Figure::BaseTime | Figure::SiteTime => (None, None),
            Figure::Base => (Some(record.base), None),
            Figure::Site => (Some(record.site), None),
            Figure::Cost => (Some(record.cost), None),
            Figure::Over(other) => {
                let interval = difference(record, find(records, design, other, context)?);
                (Some(quantity(interval)), None)
            }
            Figure::Likely => (None, Some(record.code.likely_bytes as i64)),
            Figure::Unlikely => (None, Some(record.code.unlikely_bytes as i64)),
            Figure::FunctionLikely => (None, Some(record.code.function_likely_bytes)),
            Figure::FunctionUnlikely => (None, Some(record.code.function_unlikely_bytes)),
        };
        let Published { part, of, what, value, .. } = *self;
        let passes = part == ENABLED && figure != Figure::Loops || figure == Figure::Unlikely;
        let remark = passes.then_some(ABI);
        Some(Beside { part, of, what, published: value, design, state, cycles, bytes, total, remark })
    }
}

/// The record of a design in a state and context.
pub(crate) fn find<'a>(
    records: &'a [MarkerRecord],
    design: &str,
    state: &str,
    context: &str,
) -> Option<&'a MarkerRecord> {
    let is = |record: &&MarkerRecord| {
        record.design == design && record.state == state && record.context == context
    };
    records.iter().find(is)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::tests::record;

    #[test]
    fn the_documents_increments_are_differences_of_its_loops() {
        let value = |what: &str, of: &str, part: &str| {
            let row = |row: &&Published| (row.what, row.of, row.part) == (what, of, part);
            PUBLISHED.iter().find(row).and_then(|row| row.value).unwrap()
        };
        let per_loop = |of, part| value(LOOP, of, part);
        let is_total = |row: &&Published| [LOOPS, TIME].contains(&row.what);
        let totals: Vec<f64> = PUBLISHED.iter().filter(is_total).filter_map(|row| row.value).collect();
        let rows = PUBLISHED.iter().filter(|row| row.what == LOOP).filter_map(|row| row.value);
        for (total, each) in totals.chunks(2).zip(rows) {
            assert!((total[1] / total[0] - each).abs() < 0.006, "{total:?} {each}");
        }
        for (part, of, digits) in [
            (EMPTY, OPTIMIZED, 0.005),
            (EMPTY, GENERIC, 0.005),
            (MEMCPY, OPTIMIZED, 0.01),
            (MEMCPY, GENERIC, 0.01),
        ] {
            let cost = per_loop(of, part) - per_loop(WITHOUT, part);
            assert!((cost - value(MARKER, of, part)).abs() < digits, "{part}, {of}: {cost}");
        }
        let rows = || PUBLISHED.iter().filter(|row| row.part == ENABLED && !is_total(row));
        let enabled: Vec<f64> = rows().filter_map(|row| row.value).collect();
        let mut before = per_loop(OPTIMIZED, EMPTY);
        for pair in enabled.chunks(2) {
            assert!((pair[0] - before - pair[1]).abs() < 0.005, "{pair:?}");
            before = pair[0];
        }
    }

    #[test]
    fn every_place_is_a_case_of_ours() {
        use crate::source::{context, design};
        use crate::state::states;
        for Published { ours, .. } in PUBLISHED {
            let design = design::ALL.iter().find(|one| one.name == ours.design).expect("a design");
            assert!(states(design).iter().any(|state| state.name == ours.state), "{ours:?}");
            assert!(context::ALL.iter().any(|one| one.name == ours.context), "{ours:?}");
        }
    }

    #[test]
    fn ours_stand_beside_where_they_were_measured() {
        let records = [
            record("immediate", "dormant", "empty", &[1.0; 16]),
            record("immediate", "guarded-empty", "empty", &[5.5; 16]),
        ];
        let rows = beside(&records);
        let of = |what: &str| rows.iter().find(|row| row.what == what).expect("a row");
        assert_eq!(of("cycles per loop for empty probe").cycles.unwrap().value, Some(4.5));
        assert_eq!(of(MARKER).cycles.unwrap().value, Some(1.0));
        assert!(rows.iter().all(|row| {
            row.design == "immediate"
                && [row.cycles.is_some(), row.bytes.is_some(), row.total.is_some()]
                    .map(u8::from)
                    .iter()
                    .sum::<u8>()
                    == 1
        }));
        assert_eq!(of("adds bytes in the likely path").bytes, Some(6));
        assert_eq!((of(LOOPS).total, of(LOOPS).published), (Some(1000), Some(1e7)));
        let direct = beside(&[record("immediate", "guarded-direct", "empty", &[5.0; 16])]);
        let told: Vec<bool> = direct.iter().map(|row| row.remark.is_some()).collect();
        assert_eq!(told, [false, true, true], "{direct:?}");
        assert!(of(LOOPS).remark.is_none() && of(MARKER).remark.is_none());
        assert!(beside(&records[1..]).iter().all(|row| row.what != "cycles per loop for empty probe"));
    }
}
