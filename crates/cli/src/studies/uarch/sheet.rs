//! Prints the core on a page: its numbers by part, each with its interval and unit, or the verdict
//! if a number is missing.

use super::datasheet::print_datasheet;
use super::figure::FigureText;
use super::pair_matrix::PairMatrix;
use super::record::UarchLine;
use crate::output::page::{TextPage, print_note};
use crate::output::report_words::format_quantity;
use crate::output::terminal::escape_controls;
use crate::output::{Failure, Output, WIDTH, wrap_text};
use crate::studies::line_view::TextDetail;
use cyclescope::caveat::CaveatKind;
use cyclescope::study::uarch::{KneeCounter, TestedPart};
use serde_json::Value;

/// The parts, in the order in which an instruction passes them.
const PART_TITLES: [(TestedPart, &str); 5] = [
    (TestedPart::FrontEnd, "Front end"),
    (TestedPart::Window, "In flight"),
    (TestedPart::Execution, "Execution"),
    (TestedPart::Memory, "Memory"),
    (TestedPart::Environment, "Environment"),
];

/// Spaces between columns, and before the first.
const COLUMN_GAP: usize = 2;
/// Maximum width of the first column. A longer name gets its own line.
const NAME_WIDTH: usize = 36;

/// A row of the page.
struct SheetRow {
    part: TestedPart,
    name: String,
    /// Whether the row has a number.
    found: bool,
    /// The number, or the verdict.
    number: String,
    unit: String,
    interval: String,
    /// CPUID's figure if it differs; a cost in time; or that the sibling was busy.
    remark: String,
    /// The meaning of a finding, and related information from CPUID or the kernel.
    finding: Vec<String>,
}

/// Prints the result in this detail.
pub fn print_result(lines: &[Value], detail: TextDetail, output: &mut Output) -> Result<(), Failure> {
    let mut records = UarchLine::from_lines(lines);
    UarchLine::sort_by_test(&mut records);
    match detail {
        TextDetail::Summary => print_datasheet(&records, output),
        TextDetail::Numbers => print_numbers(&records, false, output),
        TextDetail::Reasons => print_numbers(&records, true, output),
    }
}

/// Prints all numbers, with or without the reasons for missing ones.
fn print_numbers(records: &[UarchLine], with_reasons: bool, output: &mut Output) -> Result<(), Failure> {
    let rows: Vec<SheetRow> =
        records.iter().filter(|record| record.pair.is_none()).map(SheetRow::from_record).collect();
    let columns = column_widths(&rows);
    let mut page = TextPage::new(output);
    for (part, title) in PART_TITLES {
        let mut rows = rows.iter().filter(|row| row.part == part).peekable();
        if rows.peek().is_some() {
            page.begin_section(title)?;
        }
        rows.try_for_each(|row| {
            row.row_lines(columns).iter().try_for_each(|line| page.output.write_line(escape_controls(line)))?;
            row.finding.iter().try_for_each(|text| print_note_below(&mut page, text))
        })?;
    }
    if let Some(matrix) = PairMatrix::from_records(records) {
        page.begin_section("From one CPU to another")?;
        matrix.page_lines().iter().try_for_each(|line| page.output.write_line(line))?;
        describe_pairs(records).iter().try_for_each(|text| print_note_below(&mut page, text))?;
    }
    print_knee_events(&mut page, records)?;
    // The reason of a finding is printed below it.
    let is_unexplained = |record: &&UarchLine| with_reasons && !record.is_found() && !record.has_finding();
    let mut missing = records.iter().filter(is_unexplained).peekable();
    if missing.peek().is_some() {
        page.begin_section("Reasons for missing numbers")?;
    }
    missing.try_for_each(|record| page.print_row(&record.describe_name(), &record.why))?;
    if rows.iter().any(|row| row.found && row.interval.is_empty()) {
        page.output.write_line("")?;
        print_note(&mut page, "A number is shown without an interval if both of its ends look the same.")?;
    }
    Ok(())
}

/// Prints the events before each knee and behind it.
fn print_knee_events(page: &mut TextPage, records: &[UarchLine]) -> Result<(), Failure> {
    let mut counted = records.iter().filter(|record| !record.counters.is_empty()).peekable();
    if counted.peek().is_some() {
        page.begin_section("Events per step, before a knee and behind it")?;
    }
    counted.try_for_each(|record| {
        let texts = record.counters.iter().map(describe_knee_event);
        let caveats = record.caveats.iter().filter(|caveat| caveat.code == CaveatKind::CountersDisagree);
        let texts = texts.chain(caveats.map(|caveat| caveat.text.clone())).collect::<Vec<_>>();
        page.print_row(&record.describe_name(), &texts.join("; "))
    })
}

fn describe_knee_event(counter: &KneeCounter) -> String {
    let KneeCounter { name, at: [before_at, behind_at], before, behind, agrees, lost } = counter;
    if let Some(why) = lost {
        return format!("{name}: {why}");
    }
    let agrees = match agrees {
        Some(true) => ", which agrees",
        Some(false) => ", which disagrees",
        None => "",
    };
    format!("{name} {} at {before_at}, {} at {behind_at}{agrees}", format_quantity(before), format_quantity(behind))
}

/// The meaning of a finding, and related information.
fn describe_finding(record: &UarchLine) -> Vec<String> {
    let why = Some(&record.why).filter(|why| !why.is_empty());
    why.into_iter().chain(&record.told).cloned().collect()
}

/// Reasons for missing pair numbers, without duplicates, and what the nearest pair shows.
fn describe_pairs(records: &[UarchLine]) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    let of_pair =
        |record: &UarchLine| record.pair.as_ref().map(|pair| format!("{} and {}", pair.cpus[0], pair.cpus[1]));
    let missing = records.iter().filter(|record| !record.is_found());
    for (record, pair) in missing.filter_map(|record| Some((record, of_pair(record)?))) {
        match reasons.iter_mut().find(|(why, _)| *why == record.why) {
            Some((_, pairs)) => pairs.push(pair),
            None => reasons.push((&record.why, vec![pair])),
        }
    }
    let reason = |(why, pairs): &(&str, Vec<String>)| match &pairs[..] {
        [pair] => format!("CPUs {pair}: {why}"),
        [pair, rest @ ..] => format!("CPUs {pair} and {} more pairs: {why}", rest.len()),
        [] => why.to_string(),
    };
    let found = records.iter().filter(|record| record.is_found() && record.pair.is_some());
    let value = |record: &UarchLine| record.value.value.unwrap_or(f64::INFINITY);
    let nearest = found.min_by(|one, other| value(one).total_cmp(&value(other)));
    let nearest = nearest.and_then(|record| {
        let told = record.told.as_ref().map(|told| format!("; {told}")).unwrap_or_default();
        Some(format!("The nearest are CPUs {}: {}{told}", of_pair(record)?, record.why))
    });
    nearest.into_iter().chain(reasons.iter().map(reason)).collect()
}

/// Prints a text below a row.
fn print_note_below(page: &mut TextPage, text: &str) -> Result<(), Failure> {
    let below = " ".repeat(2 * COLUMN_GAP);
    wrap_text(&escape_controls(text), WIDTH - below.len())
        .iter()
        .try_for_each(|line| page.output.write_line(format!("{below}{line}")))
}

impl SheetRow {
    fn from_record(record: &UarchLine) -> SheetRow {
        let found = record.is_found();
        let scale = record.value.best_scale();
        let number = record.value.value.filter(|_| found).map(|value| scale.format_number(value));
        let interval = record.value.format_interval(&scale).filter(|_| found);
        let contradicted = record.cpuid_contradiction().and_then(|told| told.format_with_unit());
        let told = contradicted
            .map(|told| format!("CPUID says {told}"))
            .or(record.describe_time().filter(|_| found))
            .or(record.told.clone().filter(|_| found && record.part != TestedPart::Environment));
        let shared = record.is_shared().then(|| "sibling busy".to_string());
        SheetRow {
            part: record.part,
            name: record.describe_name(),
            found,
            number: number.unwrap_or_else(|| record.describe_verdict()),
            unit: if found { scale.name } else { String::new() },
            interval: interval.unwrap_or_default(),
            remark: told.into_iter().chain(shared).collect::<Vec<_>>().join("; "),
            finding: match record.has_finding() {
                true => describe_finding(record),
                false => Vec::new(),
            },
        }
    }

    /// Formats the row with these column widths. A long name, and a remark without room, get their
    /// own lines.
    fn row_lines(&self, [names, numbers, units, intervals]: [usize; 4]) -> Vec<String> {
        let gap = " ".repeat(COLUMN_GAP);
        let SheetRow { name, number, unit, interval, remark: told, .. } = self;
        let own = (name.chars().count() > names).then(|| format!("{gap}{name}"));
        let name = if own.is_some() { "" } else { name };
        let line = match self.found {
            true => format!("{gap}{name:<names$}{gap}{number:>numbers$} {unit:<units$}{gap}{interval:<intervals$}"),
            false => format!("{gap}{name:<names$}{gap}{number}"),
        };
        let whole = format!("{line}{gap}{told}");
        let fits = whole.trim_end().chars().count() <= WIDTH;
        let below = (!fits).then(|| format!("{gap}{gap}{told}"));
        let lines = own.into_iter().chain([if fits { whole } else { line }]).chain(below);
        lines.map(|line| line.trim_end().to_string()).collect()
    }
}

/// The widths of names, numbers, units and intervals.
fn column_widths(rows: &[SheetRow]) -> [usize; 4] {
    let widest = |text: fn(&SheetRow) -> &str, of: fn(&SheetRow) -> bool| {
        rows.iter().filter(|row| of(row)).map(|row| text(row).chars().count()).max().unwrap_or_default()
    };
    [
        widest(|row| &row.name, |_| true).min(NAME_WIDTH),
        widest(|row| &row.number, |row| row.found),
        widest(|row| &row.unit, |_| true),
        widest(|row| &row.interval, |_| true),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::simulated_lines;
    use super::*;

    fn rows(records: &[UarchLine]) -> Vec<String> {
        let rows: Vec<SheetRow> = records.iter().map(SheetRow::from_record).collect();
        rows.iter().flat_map(|row| row.row_lines(column_widths(&rows))).collect()
    }

    #[test]
    fn numbers_and_intervals_are_aligned() {
        let all = [
            "  reorder buffer               394 entries      394 to 396",
            "  spare integer registers     limited by reorder buffer",
            "  spare mask registers        unclear",
            "  data caches, level 1: size    48 KiB          47.5 to 48.5",
            "  data caches, level 1: cost  4.98 core cycles  4.95 to 5.02",
            "  usable return stack         none",
        ];
        assert_eq!(rows(&UarchLine::from_lines(&simulated_lines::simulated_lines())), all);
    }

    #[test]
    fn costs_are_also_shown_in_time() {
        let mut records = UarchLine::from_lines(&simulated_lines::simulated_lines());
        assert_eq!(records[4].describe_time(), None);
        let quantile = |share: f64, ns: f64| serde_json::json!({ "share": share, "core_cycles": 5.0, "ns": ns });
        let time = serde_json::json!({ "value": 151.3, "low": 150.0, "high": 155.0, "unit": "ns" });
        let quantiles = [quantile(0.05, 148.04), quantile(0.5, 151.3), quantile(0.95, 172.0)];
        let spread = serde_json::json!({ "n": 9, "time": time, "rounds": 96, "quantiles": quantiles });
        records[4].spread = Some(serde_json::from_value(spread).expect("a spread"));
        let rows = rows(&records);
        assert_eq!(rows[5], "    151.3 ns; 148.0 to 172 ns in 90 % of rounds", "{rows:?}");
    }

    #[test]
    fn findings_are_explained_below_their_row() {
        let line = simulated_lines::simulated_line(
            "environment",
            "environment.page_walk",
            "found",
            Some([55.0; 3]),
            "core_cycles",
        );
        let mut record = UarchLine::from_lines(&[line]).remove(0);
        record.part = TestedPart::Environment;
        (record.why, record.told) = ("a walk goes far".to_string(), Some("CPUID: a guest".to_string()));
        let row = SheetRow::from_record(&record);
        assert_eq!(
            (row.name.as_str(), row.finding),
            ("page walk", vec!["a walk goes far".to_string(), "CPUID: a guest".to_string()])
        );
        record.part = TestedPart::Memory;
        assert!(SheetRow::from_record(&record).finding.is_empty());
    }

    #[test]
    fn cpuid_is_next_to_the_number_or_below_it() {
        let mut records = UarchLine::from_lines(&simulated_lines::simulated_lines());
        records[3].cpuid = Some(32768);
        let wide = "  data caches, level 1: size    48 KiB          47.5 to 48.5  CPUID says 32 KiB";
        assert_eq!(rows(&records)[3], wide);
        records[0].caveats = serde_json::from_str(r#"[{ "code": "sibling_busy", "text": "" }]"#).expect("a caveat");
        let shared = "  reorder buffer               394 entries      394 to 396    sibling busy";
        assert_eq!(rows(&records)[0], shared);
        records[0].caveats.clear();
        records[3].what = "translation_of_addresses.1.size_of_all".to_string();
        records[3].value.high = Some(1_049_600.0);
        records[3].cpuid = Some(2_097_152);
        let rows = rows(&records);
        assert_eq!(rows[3], "  translation of addresses, level 1: size of all");
        assert_eq!(rows[4].trim(), "48 KiB          47.5 to 1025");
        assert_eq!(rows[5], "    CPUID says 2 MiB");
        assert!(rows.iter().all(|row| row.chars().count() <= WIDTH), "{rows:?}");
    }
}
