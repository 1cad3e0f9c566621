//! Compares two results of `uarch`, number by number.
//!
//! Two numbers differ if each lies outside the other's interval. If one file lacks a number, the
//! verdicts are compared.

use crate::output::Failure;
use crate::output::page::{TextPage, new_table, print_note, print_table};
use crate::output::report_words::{shorten_text, to_one_line};
use crate::studies::uarch::{FigureScale, FigureText, UarchLine};
use comfy_table::CellAlignment;
use cyclescope::record::Quantity;
use cyclescope::study::uarch::VerdictKind;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// Widths of a name, a number and a unit. With the other columns, they fill a line.
const NAME_WIDTH: usize = 29;
const NUMBER_WIDTH: usize = 16;
const UNIT_WIDTH: usize = 7;

/// How a number compares between the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PairOutcome {
    /// Equal within the intervals, or the same verdict without a number.
    Same,
    /// Different numbers.
    Differ,
    /// Different verdicts, or different limiting structures.
    Verdict,
    /// Only in the first file.
    OnlyA,
    /// Only in the second file.
    OnlyB,
}

/// A number that at least one file has.
#[derive(Debug, Serialize)]
pub struct CorePair<'a> {
    test: &'a str,
    what: &'a str,
    outcome: PairOutcome,
    a: Option<CoreSide<'a>>,
    b: Option<CoreSide<'a>>,
}

/// One file's value of a number.
#[derive(Debug, Clone, Copy, Serialize)]
struct CoreSide<'a> {
    verdict: VerdictKind,
    value: Quantity,
    limited_by: Option<&'a str>,
    #[serde(skip)]
    record: &'a UarchLine,
}

/// The numbers of both files: those of the first in its order, then those that only the second has.
#[derive(Debug)]
pub struct CorePairs<'a>(pub Vec<CorePair<'a>>);

/// Counts of numbers by outcome.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct CorePairCounts {
    both: usize,
    only_a: usize,
    only_b: usize,
    same: usize,
    differ: usize,
    verdict: usize,
}

impl<'a> CorePairs<'a> {
    /// Pairs the records of two files. If a file has a number several times, its last record
    /// counts.
    pub fn from_records(a: &'a [UarchLine], b: &'a [UarchLine]) -> CorePairs<'a> {
        let named = |records: &'a [UarchLine]| -> HashMap<&str, &UarchLine> {
            records.iter().map(|record| (record.what.as_str(), record)).collect()
        };
        let [by_a, by_b] = [a, b].map(named);
        let mut seen = HashSet::new();
        let all = a.iter().chain(b).filter(|record| seen.insert(record.what.as_str()));
        let find = |records: &HashMap<&str, &'a UarchLine>, what: &str| records.get(what).copied();
        CorePairs(
            all.map(|record| CorePair::from_records(find(&by_a, &record.what), find(&by_b, &record.what), record))
                .collect(),
        )
    }

    /// Counts numbers by outcome.
    pub fn count_outcomes(&self) -> CorePairCounts {
        let count = |outcome: PairOutcome| self.0.iter().filter(|pair| pair.outcome == outcome).count();
        let (only_a, only_b) = (count(PairOutcome::OnlyA), count(PairOutcome::OnlyB));
        CorePairCounts {
            both: self.0.len() - only_a - only_b,
            only_a,
            only_b,
            same: count(PairOutcome::Same),
            differ: count(PairOutcome::Differ),
            verdict: count(PairOutcome::Verdict),
        }
    }

    /// Prints a table, and below it the verdicts that differ.
    pub fn print(&self, page: &mut TextPage) -> Result<(), Failure> {
        let counts = self.count_outcomes();
        let CorePairCounts { both, only_a, only_b, .. } = counts;
        page.print_row("numbers", &format!("{both} in both, {only_a} only in A, {only_b} only in B"))?;
        let CorePairCounts { same, differ, verdict, .. } = counts;
        page.print_row("of both", &format!("{same} the same, {differ} differ, {verdict} with another verdict"))?;
        page.begin_section("Numbers")?;
        let mut rows = new_table(&["", "A", "B", "", ""]);
        for column in 3..5 {
            rows.column_mut(column).expect("there are five").set_cell_alignment(CellAlignment::Left);
        }
        for pair in &self.0 {
            rows.add_row(pair.table_cells());
        }
        print_table(page, &rows)?;
        page.output.write_line("")?;
        print_note(
            page,
            "Two numbers differ if each lies outside the other's interval. Numbers without a unit are entries.",
        )?;
        let mut changed = self.0.iter().filter(|pair| pair.outcome == PairOutcome::Verdict).peekable();
        if changed.peek().is_some() {
            page.begin_section("Verdicts that differ")?;
        }
        changed.try_for_each(|pair| pair.explain_verdicts(page))
    }
}

impl CorePairCounts {
    /// Whether the files differ in anything that both have.
    pub fn has_differences(&self) -> bool {
        self.differ + self.verdict > 0
    }

    /// Whether the files have no number in common.
    pub fn has_none_in_common(&self) -> bool {
        self.both == 0
    }
}

impl<'a> CorePair<'a> {
    fn from_records(a: Option<&'a UarchLine>, b: Option<&'a UarchLine>, named: &'a UarchLine) -> CorePair<'a> {
        let outcome = match (a, b) {
            (Some(a), Some(b)) => compare_records(a, b),
            (Some(_), None) => PairOutcome::OnlyA,
            (None, _) => PairOutcome::OnlyB,
        };
        CorePair {
            test: &named.test,
            what: &named.what,
            outcome,
            a: a.map(CoreSide::from_record),
            b: b.map(CoreSide::from_record),
        }
    }

    fn records(&self) -> [Option<&'a UarchLine>; 2] {
        [self.a, self.b].map(|side| side.map(|side| side.record))
    }

    fn table_cells(&self) -> [String; 5] {
        let records = self.records();
        let found = || records.into_iter().flatten().filter(|record| record.is_found());
        // Both use the scale of the first, for comparison by eye.
        let scale = found().next().map(|record| record.value.best_scale());
        let cell = |record: Option<&UarchLine>| {
            let text = record.map_or("-".to_string(), |record| format_number(record, scale.as_ref()));
            shorten_text(&to_one_line(&text), NUMBER_WIDTH)
        };
        let name = records.into_iter().flatten().next().map_or(String::new(), UarchLine::describe_name);
        let unit = scale.as_ref().map_or(String::new(), |scale| {
            let short =
                [("core cycles", "cycles"), ("entries", ""), ("bytes per", "B per"), (" per ", "/"), ("per ", "/")];
            short.iter().fold(scale.name.clone(), |name, (long, short)| name.replace(long, short))
        });
        let outcome = match self.outcome {
            PairOutcome::Same => "",
            PairOutcome::Differ => "differ",
            PairOutcome::Verdict => "verdict",
            PairOutcome::OnlyA => "only A",
            PairOutcome::OnlyB => "only B",
        };
        let [a, b] = records.map(cell);
        [
            shorten_text(&to_one_line(&name), NAME_WIDTH),
            a,
            b,
            shorten_text(&to_one_line(&unit), UNIT_WIDTH),
            outcome.to_string(),
        ]
    }

    /// Prints both files' verdicts with their reasons.
    fn explain_verdicts(&self, page: &mut TextPage) -> Result<(), Failure> {
        for (letter, record) in ["A", "B"].iter().zip(self.records()) {
            let Some(record) = record else { continue };
            let label = if *letter == "A" { to_one_line(&record.describe_name()) } else { String::new() };
            page.print_row(&label, &to_one_line(&format!("{letter}: {}: {}", record.describe_verdict(), record.why)))?;
        }
        Ok(())
    }
}

impl<'a> CoreSide<'a> {
    fn from_record(record: &'a UarchLine) -> CoreSide<'a> {
        let limited_by = record.limited_by.as_deref();
        CoreSide { verdict: record.verdict, value: record.value, limited_by, record }
    }
}

fn compare_records(a: &UarchLine, b: &UarchLine) -> PairOutcome {
    let [(Some(one), true), (Some(other), true)] = [a, b].map(|record| (record.value.value, record.is_found())) else {
        let same = a.verdict == b.verdict && a.limited_by == b.limited_by;
        return if same { PairOutcome::Same } else { PairOutcome::Verdict };
    };
    let apart = !a.value.contains(other) && !b.value.contains(one);
    if apart || a.value.unit != b.value.unit { PairOutcome::Differ } else { PairOutcome::Same }
}

/// A number with its interval in a scale, or the verdict.
fn format_number(record: &UarchLine, scale: Option<&FigureScale>) -> String {
    let (Some(value), Some(scale), true) = (record.value.value, scale, record.is_found()) else {
        return record.verdict.name().to_string();
    };
    match record.value.format_interval(scale) {
        Some(interval) => format!("{} ({})", scale.format_number(value), interval.replace(" to ", "-")),
        None => scale.format_number(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::uarch::simulated_line;

    fn records(lines: &[serde_json::Value]) -> Vec<UarchLine> {
        UarchLine::from_lines(lines)
    }

    /// Compares two numbers of entries with their intervals.
    fn between(one: [f64; 3], other: [f64; 3]) -> PairOutcome {
        let of = |number| records(&[simulated_line("rob", "rob", "found", Some(number), "count")]);
        CorePairs::from_records(&of(one), &of(other)).0[0].outcome
    }

    #[test]
    fn numbers_differ_if_each_is_outside_the_others_interval() {
        assert_eq!(between([498.0, 498.0, 500.0], [500.0, 499.0, 501.0]), PairOutcome::Same);
        assert_eq!(between([498.0, 498.0, 500.0], [503.0, 500.0, 505.0]), PairOutcome::Differ);
        assert_eq!(between([498.0, 490.0, 505.0], [503.0, 503.0, 503.0]), PairOutcome::Same);
        assert_eq!(between([112.0; 3], [112.0; 3]), PairOutcome::Same);
    }

    #[test]
    fn reports_verdicts_and_numbers_of_only_one_file() {
        let found = |what: &str| simulated_line(what, what, "found", Some([192.0; 3]), "count");
        let without = |what: &str, verdict: &str| simulated_line(what, what, verdict, None, "count");
        let a = records(&[found("rob"), found("loads_in_flight"), without("load_scheduler", "none")]);
        let b = records(&[without("rob", "unclear"), without("load_scheduler", "none"), found("stores_in_flight")]);
        let pairs = CorePairs::from_records(&a, &b);
        let told: Vec<(&str, PairOutcome)> = pairs.0.iter().map(|pair| (pair.what, pair.outcome)).collect();
        let all = [
            ("rob", PairOutcome::Verdict),
            ("loads_in_flight", PairOutcome::OnlyA),
            ("load_scheduler", PairOutcome::Same),
            ("stores_in_flight", PairOutcome::OnlyB),
        ];
        assert_eq!(told, all);
        let counts = CorePairCounts { both: 2, only_a: 1, only_b: 1, same: 1, differ: 0, verdict: 1 };
        assert_eq!(pairs.count_outcomes(), counts);
        assert!(counts.has_differences() && !counts.has_none_in_common());
    }

    #[test]
    fn both_numbers_use_the_units_of_the_first() {
        let of =
            |bytes: f64| records(&[simulated_line("l2", "l2", "found", Some([bytes, bytes, 1.1 * bytes]), "bytes")]);
        let (a, b) = (of(524_288.0), of(1_048_576.0));
        let cells = CorePairs::from_records(&a, &b).0[0].table_cells();
        assert!(cells.iter().all(|cell| cell.chars().count() <= NUMBER_WIDTH));
        assert_eq!(cells, ["l2", "512 (512-563.2)", "1024 (1024-1126)", "KiB", "differ"]);
    }

    #[test]
    fn rates_have_room_for_their_units() {
        for (unit, short) in [("bytes_per_cycle", "B/cycle"), ("per_cycle", "/cycle")] {
            let rate = records(&[simulated_line("load_rate", "load_rate.8_bytes", "found", Some([3.0; 3]), unit)]);
            let cells = CorePairs::from_records(&rate, &rate).0[0].table_cells();
            assert_eq!(cells, ["load rate: 8 bytes", "3", "3", short, ""]);
        }
    }

    #[test]
    fn last_record_of_a_number_counts() {
        let found = |value: f64| simulated_line("rob", "rob", "found", Some([value; 3]), "count");
        let pairs = (records(&[found(1.0), found(2.0)]), records(&[found(2.0)]));
        let pairs = CorePairs::from_records(&pairs.0, &pairs.1);
        assert_eq!((pairs.0.len(), pairs.0[0].outcome), (1, PairOutcome::Same));
    }
}
