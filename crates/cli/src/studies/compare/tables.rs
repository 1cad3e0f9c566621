//! Prints a comparison as tables.

use super::compare_input::{CompareInput, InputContent};
use crate::output::page::{TextPage, new_table, print_note, print_table};
use crate::output::report_words::{shorten_text, to_one_line};
use crate::output::{Failure, Output};
use comfy_table::CellAlignment;
use cyclescope::executor::ExecutorOffer;
use cyclescope::study::instr::rows::instr_row::LatencyBound;
use cyclescope::study::instr::tables::compare::{
    ComparedSide, QuantityDifference, QuantityKind, QuantityTally, TableComparison, Tolerance,
};

/// Widths of an instruction, a pair of operands and a number. With the other columns, they fill a
/// line.
const INSTRUCTION_WIDTH: usize = 29;
const PAIR_WIDTH: usize = 13;
const NUMBER_WIDTH: usize = 8;

/// Prints what was compared, how many quantities agree, and the largest differences.
pub fn print_comparison(
    inputs: &[&CompareInput; 2],
    comparison: &TableComparison,
    shown: usize,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut page = TextPage::new(output);
    page.begin_section("Compared")?;
    print_sources(&mut page, inputs)?;
    let forms = comparison.forms;
    let found = format!("{} in both, {} only in A, {} only in B", forms.both, forms.only_a, forms.only_b);
    page.print_row("forms", &found)?;
    page.print_row("the same within", &describe_tolerance(comparison.tolerance))?;
    if let Some(rate) = comparison.false_discovery_rate {
        let text = format!("beyond that and beyond chance; on average, at most {} % of them are false", 100.0 * rate);
        page.print_row("different", &text)?;
    }
    print_counts(&mut page, &comparison.quantities)?;
    if comparison.differences.is_empty() {
        return Ok(());
    }
    let all = comparison.differences.len();
    let title = match all {
        _ if shown < all => format!("The {shown} largest of {all} differences, in core cycles"),
        1 => "The difference, in core cycles".to_string(),
        _ => format!("All {all} differences, in core cycles"),
    };
    page.begin_section(&title)?;
    print_differences(&mut page, &comparison.differences[..shown])
}

/// Prints what the two files contain.
pub fn print_sources(page: &mut TextPage, inputs: &[&CompareInput; 2]) -> Result<(), Failure> {
    ["A", "B"].iter().zip(inputs).try_for_each(|(letter, input)| page.print_row(letter, &describe_input(input)))
}

fn describe_input(input: &CompareInput) -> String {
    let (count, what) = match &input.content {
        InputContent::Results(table) => (table.rows.len(), "forms"),
        InputContent::Reference(reference) => (reference.entries.len(), "lines of a published table"),
        InputContent::Core { records, .. } => (records.len(), "numbers of a core"),
        InputContent::Ports { ports, .. } => (ports.rows.len(), "forms with ports"),
    };
    let processor = input.processor().map_or(String::new(), |name| format!(", {name}"));
    let offer = input.executor().and_then(ExecutorOffer::find_by_name).filter(|offer| !offer.is_default());
    let place = offer.map_or(String::new(), |offer| format!(", in {}", offer.place));
    let narrow = match &input.content {
        InputContent::Results(table) if table.rows.iter().any(|row| !row.bits.is_default()) => " of 32-bit code",
        _ => "",
    };
    to_one_line(&format!("{}: {count} {what}{narrow}{processor}{place}", input.path))
}

/// Describes a tolerance in words.
fn describe_tolerance(tolerance: Tolerance) -> String {
    let share = match tolerance.share > 0.0 {
        // Rounded, because 100 × 0.07 is 7.000000000000001.
        true => format!(" or {} %", (1e6 * tolerance.share).round() / 1e4),
        false => String::new(),
    };
    let below = match tolerance.cycles_below_one == tolerance.cycles {
        true => String::new(),
        false => format!("; below one cycle {}{share}", tolerance.cycles_below_one),
    };
    format!("{} core cycles{share}{below}", tolerance.cycles)
}

fn print_counts(page: &mut TextPage, tallies: &[QuantityTally]) -> Result<(), Failure> {
    page.begin_section("Quantities")?;
    let intervals = tallies.iter().any(|tally| tally.intervals > 0);
    let heading = ["", "agree", "", "differ", "", "unclear", "only A", "only B", "overlap"];
    let mut rows = new_table(&heading[..if intervals { 9 } else { 8 }]);
    let sum = |of: fn(&QuantityTally) -> u64| tallies.iter().map(of).sum::<u64>();
    let all = QuantityTally {
        kind: QuantityKind::Throughput,
        agree: sum(|tally| tally.agree),
        differ: sum(|tally| tally.differ),
        unclear: sum(|tally| tally.unclear),
        only_a: sum(|tally| tally.only_a),
        only_b: sum(|tally| tally.only_b),
        intervals: sum(|tally| tally.intervals),
        overlap: sum(|tally| tally.overlap),
    };
    let named = tallies.iter().map(|tally| (kind_name(tally.kind), tally)).chain([("all", &all)]);
    for (name, tally) in named {
        let both = tally.agree + tally.differ + tally.unclear;
        let mut cells = vec![
            name.to_string(),
            tally.agree.to_string(),
            format_share(tally.agree, both),
            tally.differ.to_string(),
            format_share(tally.differ, both),
            tally.unclear.to_string(),
            tally.only_a.to_string(),
            tally.only_b.to_string(),
        ];
        if intervals {
            cells.push(format_share(tally.overlap, tally.intervals));
        }
        rows.add_row(cells);
    }
    print_table(page, &rows)?;
    let overlap = if intervals { " overlap: of the 95 % intervals." } else { "" };
    let text = "Shares refer to the quantities that both files have. sum: one file has only the sum of two latencies. \
                upper: one file has an upper bound, which agrees with every figure up to it. unclear: beyond the \
                tolerance, but chance may explain it.";
    print_note(page, &format!("{text}{overlap}"))
}

fn kind_name(kind: QuantityKind) -> &'static str {
    match kind {
        QuantityKind::LatencyExact => "latency, exact",
        QuantityKind::LatencySum => "latency, sum",
        QuantityKind::LatencyUpper => "latency, upper",
        QuantityKind::Throughput => "rthroughput",
        QuantityKind::Slots => "slots",
    }
}

fn format_share(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_string() } else { format!("{:.1} %", 100.0 * part as f64 / whole as f64) }
}

fn print_differences(page: &mut TextPage, differences: &[QuantityDifference]) -> Result<(), Failure> {
    let mut rows = new_table(&["instruction", "", "", "A", "B", "differ"]);
    for column in 1..3 {
        rows.column_mut(column).expect("there are six").set_cell_alignment(CellAlignment::Left);
    }
    for difference in differences {
        rows.add_row([
            shorten_text(&instruction_text(difference), INSTRUCTION_WIDTH),
            shorten_text(&to_one_line(&difference.encoding), 6),
            shorten_text(&quantity_text(difference), PAIR_WIDTH),
            shorten_text(&side_number(&difference.a), NUMBER_WIDTH),
            shorten_text(&side_number(&difference.b), NUMBER_WIDTH),
            format_relative(difference.relative),
        ]);
    }
    print_table(page, &rows)
}

/// The instruction with its operands.
pub fn instruction_text(difference: &QuantityDifference) -> String {
    to_one_line(format!("{} {}", difference.mnemonic, difference.operands).trim())
}

/// A short name of the quantity that differs.
pub fn quantity_text(difference: &QuantityDifference) -> String {
    match (&difference.from, &difference.to) {
        (Some(from), Some(to)) => to_one_line(&format!("{from}→{to}")),
        _ if difference.encoding == "run" => "cost".to_string(),
        _ => "rthroughput".to_string(),
    }
}

/// The number of one side.
pub fn side_number(side: &ComparedSide) -> String {
    if let Some(written) = &side.written {
        return to_one_line(written);
    }
    let sign = if side.bound == Some(LatencyBound::Upper) { "≤" } else { "" };
    side.cost.value.map_or("-".to_string(), |value| format!("{sign}{}", format_cycles(value)))
}

/// Formats core cycles in at most seven characters below a million.
pub fn format_cycles(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// Formats a relative difference in at most eight characters.
fn format_relative(share: f64) -> String {
    match share.abs() {
        size if size >= 100.0 => format!("{}>9999 %", if share > 0.0 { "" } else { "-" }),
        size if size >= 10.0 => format!("{:+.0} %", 100.0 * share),
        _ => format!("{:+.1} %", 100.0 * share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_their_column() {
        assert_eq!([0.25, 99.999, 123.44, 12345.6].map(format_cycles), ["0.250", "99.999", "123.4", "12346"]);
        let texts = ["+2.5 %", "-50.0 %", "+999.9 %", "+1234 %", ">9999 %", "->9999 %"];
        assert_eq!([0.025, -0.5, 9.999, 12.34, 100.0, -1e6].map(format_relative), texts);
        assert!(texts.iter().all(|text| text.chars().count() <= 8));
    }

    #[test]
    fn tolerance_is_described_in_words() {
        let published = describe_tolerance(Tolerance::PUBLISHED);
        assert_eq!(published, "0.05 core cycles or 3 %; below one cycle 0.01 or 3 %");
        let plain = Tolerance { cycles: 0.5, cycles_below_one: 0.5, share: 0.0 };
        assert_eq!(describe_tolerance(plain), "0.5 core cycles");
        assert_eq!(describe_tolerance(Tolerance { share: 0.07, ..plain }), "0.5 core cycles or 7 %");
    }
}
