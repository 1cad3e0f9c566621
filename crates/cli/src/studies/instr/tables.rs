//! Prints rows and their summary as text.

use crate::output::event_table::{CountedSubject, print_event_table, print_lost_counts};
use crate::output::footnotes::Footnotes;
use crate::output::page::{TextPage, new_table, print_note, print_table};
use crate::output::report_words::{format_count, format_quantity, interval_reach, to_one_line};
use crate::output::{Failure, Output, wrap_text};
use comfy_table::CellAlignment;
use cyclescope::study::instr::experiments::slot_judgement::SlotVerdict;
use cyclescope::study::instr::forms::skip::SkipReason;
use cyclescope::study::instr::rows::instr_row::{InstrRow, LatencyBound, OperandLatency, RowStatus};
use cyclescope::study::instr::tables::compare::headline_latencies;
use cyclescope::study::instr::tables::summary::{FormTally, NamedTally, ReasonCount, SurveySummary};
use std::collections::HashMap;

/// Widths of the columns. With the numbers, they fill a line.
const INSTRUCTION_WIDTH: usize = 23;
const LATENCY_WIDTH: usize = 20;
const TAGS_WIDTH: usize = 12;
/// How the column of slots shows that a form takes groups of slots of its own.
const MICROCODED: &str = "mc";
const SERIALISING: &str = "ser";
/// Maximum number of footnotes and skipped rows shown.
const NOTES_MOST: usize = 20;
const SKIPPED_ROWS_MOST: usize = 20;

/// Prints a row for each form.
pub fn print_rows(rows: &[&InstrRow], output: &mut Output) -> Result<(), Failure> {
    let skipped = rows.iter().filter(|row| row.status == RowStatus::Skipped).count();
    let shown: Vec<&InstrRow> =
        rows.iter().copied().filter(|row| row.status != RowStatus::Skipped || skipped <= SKIPPED_ROWS_MOST).collect();
    let mut page = TextPage::new(output);
    let is_narrow = rows.first().is_some_and(|row| !row.bits.is_default());
    let code = if is_narrow { "Instructions of 32-bit code" } else { "Instructions" };
    page.begin_section(&format!("{code}, in core cycles"))?;
    let mut names: HashMap<String, Vec<&str>> = HashMap::new();
    for row in &shown {
        names.entry(row_name(row)).or_default().push(&row.encoding);
    }
    let mut notes = Footnotes::default();
    let mut lines = new_table(&["instruction", "latency", "rthroughput", "slots", "tags"]);
    for column in [1, 4] {
        lines.column_mut(column).expect("there are five").set_cell_alignment(CellAlignment::Left);
    }
    for row in &shown {
        let code = match names[&row_name(row)].as_slice() {
            [_] => String::new(),
            // Several encodings, and several instructions of one encoding, can share a name.
            all if all.iter().filter(|encoding| **encoding == row.encoding).count() == 1 => {
                format!(" ({})", row.encoding)
            }
            _ => format!(" ({})", row.code),
        };
        let throughput = row.throughput.as_ref().map_or("-".to_string(), |found| format_quantity(&found.cost));
        lines.add_row([
            wrap_cell(&format!("{}{code}", row_name(row)), INSTRUCTION_WIDTH),
            wrap_cell(&format_latency(row), LATENCY_WIDTH),
            throughput,
            slots_cell(row),
            wrap_cell(&tags_cell(row, &mut notes), TAGS_WIDTH),
        ]);
        for line in constant_lines(row) {
            lines.add_row(line);
        }
    }
    if !shown.is_empty() {
        print_table(&mut page, &lines)?;
    }
    print_events(&mut page, &shown)?;
    if shown.len() < rows.len() {
        let text = format!("{} forms were skipped; --list shows them and the reasons.", rows.len() - shown.len());
        print_note(&mut page, &text)?;
    }
    print_legend(&mut page, &shown)?;
    notes.print_first(&mut page, NOTES_MOST, "--out and --json show all")
}

/// Prints the events of an instance of each form, and the ports of its µops.
fn print_events<'a>(page: &mut TextPage, shown: &[&'a InstrRow]) -> Result<(), Failure> {
    let counted = shown.iter().filter(|row| !row.counters.is_empty() || row.ports.is_some());
    let subject = |row: &&'a InstrRow| CountedSubject::<'a> {
        name: wrap_cell(&row_name(row), INSTRUCTION_WIDTH),
        counters: &row.counters,
        passes: row.counter_passes,
        more: row.ports.iter().map(|ports| ("ports", ports.summarize())).collect(),
    };
    let subjects: Vec<CountedSubject> = counted.map(subject).collect();
    print_event_table(page, ("Events per instruction", "instruction"), &subjects)?;
    print_lost_counts(page, shown.iter().filter_map(|row| row.ports.as_ref()?.why.as_deref()))
}

/// Lines for constants with other figures than the headline's; constants with the same figures
/// share a line.
fn constant_lines(row: &InstrRow) -> Vec<[String; 5]> {
    let mut groups: Vec<([String; 2], Vec<&str>)> = Vec::new();
    for name in &row.tried {
        let of = row.latency.iter().filter(|latency| latency.variant.as_ref() == Some(name));
        let latencies = group_latencies(of);
        let variants = row.throughput.iter().flat_map(|throughput| &throughput.variants);
        let rate = variants.into_iter().find(|variant| variant.variant == *name);
        let rate = rate.map_or(String::new(), |variant| format_short(variant.cost.value.unwrap_or(f64::NAN)));
        if latencies.is_empty() && rate.is_empty() {
            continue;
        }
        let figures = [latencies, rate];
        match groups.iter_mut().find(|(known, _)| *known == figures) {
            Some((_, names)) => names.push(name),
            None => groups.push((figures, vec![name])),
        }
    }
    let line = |([latency, rate], names): ([String; 2], Vec<&str>)| {
        let name = wrap_text(&list_constants(&names), INSTRUCTION_WIDTH - 2).join("\n  ");
        [format!("  {name}"), wrap_cell(&latency, LATENCY_WIDTH), rate, String::new(), String::new()]
    };
    groups.into_iter().map(line).collect()
}

/// Lists constants, with the kind named once: `immediate 0x0, 0x1, scale 8`.
fn list_constants(names: &[&str]) -> String {
    let mut text = String::new();
    let mut last = "";
    for name in names {
        let (kind, value) = name.split_once(' ').unwrap_or(("", name));
        let comma = if text.is_empty() { "" } else { ", " };
        text += &if kind == last { format!("{comma}{value}") } else { format!("{comma}{name}") };
        last = kind;
    }
    text
}

/// Describes the headline's constant, and those with the same cost.
pub fn describe_tried(row: &InstrRow) -> String {
    let variants = row.throughput.iter().flat_map(|throughput| &throughput.variants);
    let differ: Vec<&str> = variants
        .map(|variant| variant.variant.as_str())
        .chain(row.latency.iter().filter_map(|latency| latency.variant.as_deref()))
        .collect();
    let same: Vec<&str> = row.tried.iter().map(String::as_str).filter(|name| !differ.contains(name)).collect();
    let headline = row.immediate.as_ref().map_or(String::new(), |immediate| format!("immediate {immediate}; "));
    match same.is_empty() {
        true => format!("{headline}all others differ"),
        false => format!("{headline}{} cost the same", list_constants(&same)),
    }
}

fn print_legend(page: &mut TextPage, shown: &[&InstrRow]) -> Result<(), Failure> {
    let has =
        |bound: LatencyBound| shown.iter().any(|row| headline_latencies(row).any(|latency| latency.bound == bound));
    if has(LatencyBound::Sum) {
        let text = "~: part of a sum over several register classes or through memory. The split is a convention, and a \
                    part can be negative.";
        print_note(page, text)?;
    }
    let bounded = |row: &&InstrRow| slots_cell(row).starts_with('≤');
    if has(LatencyBound::Upper) || shown.iter().any(bounded) {
        print_note(page, "≤: an upper bound.")?;
    }
    if shown.iter().any(|row| slots_cell(row) == MICROCODED) {
        print_note(page, "mc: microcoded; it takes groups of slots of its own.")?;
    }
    if shown.iter().any(|row| slots_cell(row) == SERIALISING) {
        print_note(page, "ser: a locked, fencing or serialising instruction; time does not show its slots.")?;
    }
    if shown.iter().any(|row| headline_latencies(row).any(|latency| latency.regimes.is_some())) {
        let text = "a…b: a in a short chain, which fits in the scheduler, b in a long one; --explain shows their \
                    lengths.";
        print_note(page, text)?;
    }
    Ok(())
}

/// The instruction with its operands.
pub fn row_name(row: &InstrRow) -> String {
    to_one_line(format!("{} {}", row.mnemonic, row.operands).trim_end())
}

/// Formats the headline latencies: one number if all are equal, else grouped pairs.
fn format_latency(row: &InstrRow) -> String {
    match group_latencies(headline_latencies(row)) {
        none if none.is_empty() => "-".to_string(),
        text => text,
    }
}

/// Formats latencies: one number if all are equal, else the pairs grouped by number. Without
/// latencies, the text is empty. The number after `±` is the widest interval of the group.
fn group_latencies<'a>(latencies: impl Iterator<Item = &'a OperandLatency>) -> String {
    let mut groups: Vec<(String, f64, Vec<String>)> = Vec::new();
    for latency in latencies {
        let fresh = latency.regimes.as_ref().and_then(|regimes| regimes.fresh.value);
        let fresh = fresh.map_or(String::new(), |fresh| format!("{}…", format_short(fresh)));
        let cost = format_short(latency.cost.value.unwrap_or(f64::NAN));
        let number = format!("{}{fresh}{cost}", bound_sign(latency.bound));
        let pair = format!("{}→{}", latency.from, latency.to);
        let reach = interval_reach(&latency.cost);
        match groups.iter_mut().find(|(known, ..)| *known == number) {
            Some((_, widest, pairs)) => {
                *widest = widest.max(reach);
                pairs.push(pair);
            }
            None => groups.push((number, reach, vec![pair])),
        }
    }
    let with_reach = |(number, reach, _): &(String, f64, Vec<String>)| format!("{number}±{}", format_margin(*reach));
    match groups.as_slice() {
        [] => String::new(),
        [group] => with_reach(group),
        groups => {
            let each = groups.iter().map(|group| format!("{} {}", group.2.join(" "), with_reach(group)));
            each.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Formats a reach with two decimals, rounded up, so that no interval looks like a point.
fn format_margin(reach: f64) -> String {
    if reach.is_finite() { format_short((100.0 * reach).ceil() / 100.0) } else { "?".to_string() }
}

/// The sign of a bound.
pub fn bound_sign(bound: LatencyBound) -> &'static str {
    match bound {
        LatencyBound::Exact => "",
        LatencyBound::Sum => "~",
        LatencyBound::Upper => "≤",
    }
}

/// Formats core cycles with two decimals, without trailing zeros.
pub fn format_short(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_string();
    }
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    // Noise can turn zero into a tiny negative number.
    if text == "-0" { "0".to_string() } else { text.to_string() }
}

/// The word for slots in a narrow column.
fn slots_cell(row: &InstrRow) -> String {
    match &row.slots {
        None => "-".to_string(),
        Some(slots) if slots.verdict == SlotVerdict::Microcoded => MICROCODED.to_string(),
        Some(slots) if slots.verdict == SlotVerdict::Serialising => SERIALISING.to_string(),
        Some(slots) => slots.summarize(),
    }
}

fn tags_cell(row: &InstrRow, notes: &mut Footnotes) -> String {
    let mut words = row.tags.clone();
    let reason = row.reason.as_deref().unwrap_or_default();
    match row.status {
        RowStatus::Measured => {}
        RowStatus::Skipped => words.push(format!("skipped: {reason}")),
        RowStatus::Failed => words.push(format!("failed {}", notes.add_mark(reason))),
    }
    words.extend(row.caveats.iter().map(|caveat| notes.add_mark(&caveat.text)));
    to_one_line(&words.join(" "))
}

fn wrap_cell(text: &str, width: usize) -> String {
    wrap_text(&to_one_line(text), width).join("\n")
}

/// Prints the summary of a survey.
pub fn print_summary(summary: &SurveySummary, seconds: f64, output: &mut Output) -> Result<(), Failure> {
    output.write_line("")?;
    let mut page = TextPage::new(output);
    page.begin_section("Summary")?;
    let all = &summary.all;
    let counts = format!(
        "{}: {} measured, {} skipped, {} failed, in {}",
        format_count(all.forms, "form"),
        all.measured,
        all.skipped,
        all.failed,
        format_duration(seconds)
    );
    page.print_row("forms", &counts)?;
    page.print_row("latencies", &format!("{} exact, {} sum, {} upper", all.exact, all.sum, all.upper))?;
    print_reasons(&mut page, "skipped", &summary.skipped_by_reason, |code| {
        SkipReason::ALL.iter().find(|(known, _)| *known == code).map(|(_, meaning)| *meaning)
    })?;
    print_reasons(&mut page, "failed", &summary.failed_by_reason, |_| None)?;
    if all.skipped == all.forms {
        print_note(&mut page, "Nothing was measured: no form can run here.")?;
    }
    if all.forms > 1 {
        print_parts(&mut page, "operands", &summary.by_operands)?;
        print_parts(&mut page, "features", &summary.by_isa)?;
    }
    Ok(())
}

/// Prints reasons, with the explanations that `meaning` knows.
fn print_reasons(
    page: &mut TextPage,
    label: &str,
    reasons: &[ReasonCount],
    meaning: impl Fn(&str) -> Option<&'static str>,
) -> Result<(), Failure> {
    let words = reasons.iter().map(|ReasonCount { reason, forms }| match meaning(reason) {
        Some(meaning) => format!("{forms} {reason} ({meaning})"),
        None => format!("{forms} {reason}"),
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { Ok(()) } else { page.print_row(label, &words.join(", ")) }
}

fn print_parts(page: &mut TextPage, heading: &str, parts: &[NamedTally]) -> Result<(), Failure> {
    let tried = |tally: &FormTally| tally.forms > tally.skipped;
    let untried: Vec<&NamedTally> = parts.iter().filter(|named| !tried(&named.tally)).collect();
    let mut rows = new_table(&[heading, "measured", "skipped", "failed", "exact", "sum", "upper"]);
    for NamedTally { name, tally } in parts.iter().filter(|named| tried(&named.tally)) {
        let numbers = [tally.measured, tally.skipped, tally.failed, tally.exact, tally.sum, tally.upper];
        let cells = std::iter::once(wrap_cell(&name.replace('+', " + "), INSTRUCTION_WIDTH));
        rows.add_row(cells.chain(numbers.map(|number| number.to_string())).collect::<Vec<_>>());
    }
    page.output.write_line("")?;
    if untried.len() < parts.len() {
        print_table(page, &rows)?;
    }
    if !untried.is_empty() {
        let names: Vec<String> =
            untried.iter().map(|named| format!("{} ({})", named.name, named.tally.forms)).collect();
        print_note(page, &format!("All forms skipped: {}", names.join(", ")))?;
    }
    Ok(())
}

fn format_duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.1} s"),
        s if s < 5400.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{:.1} hours", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_trailing_zeros() {
        assert_eq!([-0.001, 100.0, 0.25, 3.999, f64::NAN].map(format_short), ["0", "100", "0.25", "4", "-"]);
        assert_eq!([0.0001, 0.0101, 0.2, 5.0, f64::INFINITY].map(format_margin), ["0.01", "0.02", "0.2", "5", "?"]);
        assert_eq!([5.04, 100.0, 9000.0].map(format_duration), ["5.0 s", "2 minutes", "2.5 hours"]);
    }
}
