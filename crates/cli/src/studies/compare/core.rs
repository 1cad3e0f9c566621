//! Two results of `uarch`: each number beside that of the other file, and whether they differ.
//!
//! Two numbers differ where each is outside the other's interval. Where a number is missing in one, its verdict is what
//! differs.

use crate::output::Failure;
use crate::output::page::{Page, note, print, table};
use crate::output::words::{one_line, shortened};
use crate::studies::uarch::{CoreRecord, Figure, Scale};
use comfy_table::CellAlignment;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// Characters of a name, of a number and of a unit; with the other columns they make a line.
const NAME: usize = 29;
const NUMBER: usize = 16;
const UNIT: usize = 7;

/// What becomes of a number from one file to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is the same within the intervals; of what has no number, the verdict is the same.
    Same,
    /// It differs.
    Differ,
    /// The verdict differs, or the structure that limits.
    Verdict,
    /// Only the first file has it.
    OnlyA,
    /// Only the second one has it.
    OnlyB,
}

/// A number of both files, or of one.
#[derive(Debug, Serialize)]
pub struct Pair<'a> {
    test: &'a str,
    what: &'a str,
    outcome: Outcome,
    a: Option<Side<'a>>,
    b: Option<Side<'a>>,
}

/// What a file says of a number.
#[derive(Debug, Clone, Copy, Serialize)]
struct Side<'a> {
    verdict: &'a str,
    value: &'a Figure,
    limited_by: Option<&'a str>,
    #[serde(skip)]
    record: &'a CoreRecord,
}

/// The numbers of both files, those of the first in its order, then those that only the second has.
#[derive(Debug)]
pub struct Pairs<'a>(pub Vec<Pair<'a>>);

/// Numbers by outcome.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Counts {
    both: usize,
    only_a: usize,
    only_b: usize,
    same: usize,
    differ: usize,
    verdict: usize,
}

impl<'a> Pairs<'a> {
    /// Of the records of two files. Of a number that a file has several times the last record counts.
    pub fn of(a: &'a [CoreRecord], b: &'a [CoreRecord]) -> Pairs<'a> {
        let named = |records: &'a [CoreRecord]| -> HashMap<&str, &CoreRecord> {
            records.iter().map(|record| (record.what.as_str(), record)).collect()
        };
        let [by_a, by_b] = [a, b].map(named);
        let mut seen = HashSet::new();
        let all = a.iter().chain(b).filter(|record| seen.insert(record.what.as_str()));
        let find = |records: &HashMap<&str, &'a CoreRecord>, what: &str| records.get(what).copied();
        Pairs(
            all.map(|record| Pair::of(find(&by_a, &record.what), find(&by_b, &record.what), record))
                .collect(),
        )
    }

    /// Numbers by outcome.
    pub fn counts(&self) -> Counts {
        let count = |outcome: Outcome| self.0.iter().filter(|pair| pair.outcome == outcome).count();
        let (only_a, only_b) = (count(Outcome::OnlyA), count(Outcome::OnlyB));
        Counts {
            both: self.0.len() - only_a - only_b,
            only_a,
            only_b,
            same: count(Outcome::Same),
            differ: count(Outcome::Differ),
            verdict: count(Outcome::Verdict),
        }
    }

    /// Prints them as a table, and below it the verdicts that differ.
    pub fn print(&self, page: &mut Page) -> Result<(), Failure> {
        let counts = self.counts();
        let Counts { both, only_a, only_b, .. } = counts;
        page.row("numbers", &format!("{both} in both, {only_a} only in A, {only_b} only in B"))?;
        let Counts { same, differ, verdict, .. } = counts;
        page.row("of both", &format!("{same} the same, {differ} differ, {verdict} with another verdict"))?;
        page.section("Numbers")?;
        let mut rows = table(&["", "A", "B", "", ""]);
        for column in 3..5 {
            rows.column_mut(column).expect("there are five").set_cell_alignment(CellAlignment::Left);
        }
        for pair in &self.0 {
            rows.add_row(pair.cells());
        }
        print(page, &rows)?;
        page.output.line("")?;
        note(
            page,
            "Two numbers differ where each is outside the other's interval. Those without a unit are entries.",
        )?;
        let mut changed = self.0.iter().filter(|pair| pair.outcome == Outcome::Verdict).peekable();
        if changed.peek().is_some() {
            page.section("Verdicts that differ")?;
        }
        changed.try_for_each(|pair| pair.explain(page))
    }
}

impl Counts {
    /// Whether anything that both files have differs.
    pub fn are_different(&self) -> bool {
        self.differ + self.verdict > 0
    }

    /// Whether no number is in both files.
    pub fn are_apart(&self) -> bool {
        self.both == 0
    }
}

impl<'a> Pair<'a> {
    fn of(a: Option<&'a CoreRecord>, b: Option<&'a CoreRecord>, named: &'a CoreRecord) -> Pair<'a> {
        let outcome = match (a, b) {
            (Some(a), Some(b)) => outcome(a, b),
            (Some(_), None) => Outcome::OnlyA,
            (None, _) => Outcome::OnlyB,
        };
        Pair { test: &named.test, what: &named.what, outcome, a: a.map(Side::of), b: b.map(Side::of) }
    }

    fn records(&self) -> [Option<&'a CoreRecord>; 2] {
        [self.a, self.b].map(|side| side.map(|side| side.record))
    }

    fn cells(&self) -> [String; 5] {
        let records = self.records();
        let found = || records.into_iter().flatten().filter(|record| record.is_found());
        // Both in the scale of the first, so that they can be compared by eye.
        let scale = found().next().map(|record| record.value.scale());
        let cell = |record: Option<&CoreRecord>| {
            let text = record.map_or("-".to_string(), |record| written(record, scale.as_ref()));
            shortened(&one_line(&text), NUMBER)
        };
        let name = records.into_iter().flatten().next().map_or(String::new(), CoreRecord::label);
        let unit = scale.as_ref().map_or(String::new(), |scale| {
            let short = [
                ("core cycles", "cycles"),
                ("entries", ""),
                ("bytes per", "B per"),
                (" per ", "/"),
                ("per ", "/"),
            ];
            short.iter().fold(scale.name.clone(), |name, (long, short)| name.replace(long, short))
        });
        let outcome = match self.outcome {
            Outcome::Same => "",
            Outcome::Differ => "differ",
            Outcome::Verdict => "verdict",
            Outcome::OnlyA => "only A",
            Outcome::OnlyB => "only B",
        };
        let [a, b] = records.map(cell);
        [shortened(&one_line(&name), NAME), a, b, shortened(&one_line(&unit), UNIT), outcome.to_string()]
    }

    /// The verdicts of both files, with their reasons.
    fn explain(&self, page: &mut Page) -> Result<(), Failure> {
        for (letter, record) in ["A", "B"].iter().zip(self.records()) {
            let Some(record) = record else { continue };
            let label = if *letter == "A" { one_line(&record.label()) } else { String::new() };
            page.row(&label, &one_line(&format!("{letter}: {}: {}", record.judged(), record.why)))?;
        }
        Ok(())
    }
}

impl<'a> Side<'a> {
    fn of(record: &'a CoreRecord) -> Side<'a> {
        let limited_by = record.limited_by.as_deref();
        Side { verdict: &record.verdict, value: &record.value, limited_by, record }
    }
}

fn outcome(a: &CoreRecord, b: &CoreRecord) -> Outcome {
    let [(Some(one), true), (Some(other), true)] =
        [a, b].map(|record| (record.value.value, record.is_found()))
    else {
        let same = a.verdict == b.verdict && a.limited_by == b.limited_by;
        return if same { Outcome::Same } else { Outcome::Verdict };
    };
    let apart = !a.value.holds(other) && !b.value.holds(one);
    if apart || a.value.unit != b.value.unit { Outcome::Differ } else { Outcome::Same }
}

/// A number with its interval in a scale, or the verdict.
fn written(record: &CoreRecord, scale: Option<&Scale>) -> String {
    let (Some(value), Some(scale), true) = (record.value.value, scale, record.is_found()) else {
        return record.verdict.clone();
    };
    match record.value.interval(scale) {
        Some(interval) => format!("{} ({})", scale.write(value), interval.replace(" to ", "-")),
        None => scale.write(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::uarch::line;

    fn records(lines: &[serde_json::Value]) -> Vec<CoreRecord> {
        CoreRecord::all(lines)
    }

    /// What becomes of a number of entries with its interval.
    fn between(one: [f64; 3], other: [f64; 3]) -> Outcome {
        let of = |number| records(&[line("rob", "rob", "found", Some(number), "count")]);
        Pairs::of(&of(one), &of(other)).0[0].outcome
    }

    #[test]
    fn numbers_differ_where_each_is_outside_the_others_interval() {
        assert_eq!(between([498.0, 498.0, 500.0], [500.0, 499.0, 501.0]), Outcome::Same);
        assert_eq!(between([498.0, 498.0, 500.0], [503.0, 500.0, 505.0]), Outcome::Differ);
        assert_eq!(between([498.0, 490.0, 505.0], [503.0, 503.0, 503.0]), Outcome::Same);
        assert_eq!(between([112.0; 3], [112.0; 3]), Outcome::Same);
    }

    #[test]
    fn verdicts_and_what_only_one_file_has_are_told() {
        let found = |what: &str| line(what, what, "found", Some([192.0; 3]), "count");
        let without = |what: &str, verdict: &str| line(what, what, verdict, None, "count");
        let a = records(&[found("rob"), found("loads_in_flight"), without("load_scheduler", "none")]);
        let b = records(&[
            without("rob", "unclear"),
            without("load_scheduler", "none"),
            found("stores_in_flight"),
        ]);
        let pairs = Pairs::of(&a, &b);
        let told: Vec<(&str, Outcome)> = pairs.0.iter().map(|pair| (pair.what, pair.outcome)).collect();
        let all = [
            ("rob", Outcome::Verdict),
            ("loads_in_flight", Outcome::OnlyA),
            ("load_scheduler", Outcome::Same),
            ("stores_in_flight", Outcome::OnlyB),
        ];
        assert_eq!(told, all);
        let counts = Counts { both: 2, only_a: 1, only_b: 1, same: 1, differ: 0, verdict: 1 };
        assert_eq!(pairs.counts(), counts);
        assert!(counts.are_different() && !counts.are_apart());
    }

    #[test]
    fn both_numbers_are_in_the_units_of_the_first() {
        let of =
            |bytes: f64| records(&[line("l2", "l2", "found", Some([bytes, bytes, 1.1 * bytes]), "bytes")]);
        let (a, b) = (of(524_288.0), of(1_048_576.0));
        let cells = Pairs::of(&a, &b).0[0].cells();
        assert!(cells.iter().all(|cell| cell.chars().count() <= NUMBER));
        assert_eq!(cells, ["l2", "512 (512-563.2)", "1024 (1024-1126)", "KiB", "differ"]);
    }

    #[test]
    fn rates_have_room_for_their_units() {
        for (unit, short) in [("bytes_per_cycle", "B/cycle"), ("per_cycle", "/cycle")] {
            let rate = records(&[line("load_rate", "load_rate.8_bytes", "found", Some([3.0; 3]), unit)]);
            let cells = Pairs::of(&rate, &rate).0[0].cells();
            assert_eq!(cells, ["load rate: 8 bytes", "3", "3", short, ""]);
        }
    }

    #[test]
    fn the_last_record_of_a_number_counts() {
        let found = |value: f64| line("rob", "rob", "found", Some([value; 3]), "count");
        let pairs = (records(&[found(1.0), found(2.0)]), records(&[found(2.0)]));
        let pairs = Pairs::of(&pairs.0, &pairs.1);
        assert_eq!((pairs.0.len(), pairs.0[0].outcome), (1, Outcome::Same));
    }
}
