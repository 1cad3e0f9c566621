//! A survey of markers on one screen: designs × states in the first loop, then a line for each
//! further question.

use super::tables::{self, CONTROL_DESIGN, STORES_STATE, context_names};
use crate::output::page::{TextPage, new_table, print_note, print_table};
use crate::output::report_words::{interval_reach, shorten_text};
use crate::output::{Failure, Output, WIDTH, wrap_text};
use comfy_table::CellAlignment;
use cyclescope::caveat::{Caveat, CaveatKind};
use cyclescope::statistics::median;
use cyclescope::study::marker::marker_findings::MarkerFindings;
use cyclescope::study::marker::record::MarkerRecord;

/// States that have a column of their own.
const COLUMNS_MOST: usize = 5;
/// Width of the column with the other states.
const OTHERS_WIDTH: usize = 24;
/// Prefix of states whose call of the probe is guarded.
const GUARDED: &str = "guarded-";
/// A cost is marked if its interval reaches farther than this share of it and this many cycles.
const WIDE_SHARE: f64 = 0.1;
const WIDE_CYCLES: f64 = 0.5;

/// Prints the screen.
pub fn print_summary(page: &mut TextPage, found: &MarkerFindings) -> Result<(), Failure> {
    let records = &found.records;
    let Some(first) = records.first() else { return tables::print_skipped(page, &found.skipped) };
    let code = if first.bits.is_default() { String::new() } else { format!(" in {}-bit code", first.bits.bits()) };
    let place = format!("{}, CPU {}", first.cpu_model, first.cpu);
    let title = format!("Markers{code} on {place}: core cycles in {}", describe_loop(first));
    page.begin_section(&shorten_text(&title, WIDTH))?;
    print_states(page, records, &first.context)?;
    print_control(page, records, &first.context)?;
    print_guarded(page, records, &first.context)?;
    for context in context_names(records).into_iter().skip(1) {
        print_context(page, records, context)?;
    }
    print_skipped(page, found)?;
    print_calls(page, records)?;
    print_conclusions(page, found)?;
    if first.caveats.iter().any(|caveat| caveat.code == CaveatKind::Emulated) {
        page.print_painted_row("caveat", &Caveat::emulated_machine().text, Output::yellow)?;
    }
    print_note(page, "~: wide interval; *: another caveat. --why prints all, with intervals.")
}

/// The loop around the markers, with its cost.
fn describe_loop(record: &MarkerRecord) -> String {
    match record.base.value {
        Some(base) => format!("loop {} of {}", record.context, format_cycles(base)),
        None => format!("loop {}", record.context),
    }
}

/// Whether a record is of a marker, and not of a control.
fn is_marker(record: &MarkerRecord) -> bool {
    record.design != CONTROL_DESIGN && record.state != STORES_STATE
}

/// Prints a row for each design.
fn print_states(page: &mut TextPage, records: &[MarkerRecord], context: &str) -> Result<(), Failure> {
    let of = || {
        let of = records.iter().filter(|record| record.context == context && is_marker(record));
        of.filter(|record| !record.state.starts_with(GUARDED))
    };
    let states = common_states(of());
    let heading: Vec<&str> = ["marker"].into_iter().chain(states.iter().copied()).chain(["others"]).collect();
    let mut rows = new_table(&heading);
    rows.column_mut(heading.len() - 1).expect("it has a heading").set_cell_alignment(CellAlignment::Left);
    let mut designs: Vec<&str> = of().map(|record| record.design).collect();
    designs.dedup();
    for design in designs {
        let of_design = || of().filter(|record| record.design == design);
        let cell =
            |state: &&str| of_design().find(|record| record.state == *state).map_or("-".to_string(), format_cost);
        let others = of_design().filter(|record| !states.contains(&record.state.as_str()));
        let others: Vec<String> = others.map(|record| format!("{} {}", record.state, format_cost(record))).collect();
        let others = wrap_text(&others.join(", "), OTHERS_WIDTH).join("\n");
        let cells = [design.to_string()].into_iter().chain(states.iter().map(cell)).chain([others]);
        rows.add_row(cells.collect::<Vec<String>>());
    }
    print_table(page, &rows)
}

/// The states that most designs have, in their order.
fn common_states<'a>(records: impl Iterator<Item = &'a MarkerRecord>) -> Vec<&'a str> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for record in records {
        match counts.iter_mut().find(|(state, _)| *state == record.state) {
            Some((_, count)) => *count += 1,
            None => counts.push((&record.state, 1)),
        }
    }
    let mut most: Vec<usize> = (0..counts.len()).collect();
    most.sort_by_key(|at| std::cmp::Reverse(counts[*at].1));
    most.truncate(COLUMNS_MOST);
    most.sort_unstable();
    most.into_iter().map(|at| counts[at].0).collect()
}

/// Prints the error of the measurement.
fn print_control(page: &mut TextPage, records: &[MarkerRecord], context: &str) -> Result<(), Failure> {
    let control = records.iter().find(|record| record.context == context && record.design == CONTROL_DESIGN);
    control.map_or(Ok(()), |control| {
        page.print_row("no marker", &format!("{}: the error of the measurement", format_cost(control)))
    })
}

/// Prints what guards add.
fn print_guarded(page: &mut TextPage, records: &[MarkerRecord], context: &str) -> Result<(), Failure> {
    let of = |design: &str, state: &str| {
        let mut of = records.iter().filter(|record| record.context == context && record.design == design);
        of.find(|record| record.state == state)?.cost.value
    };
    let guarded = records.iter().filter(|record| record.context == context);
    let mut added: Vec<f64> = guarded
        .filter_map(|record| Some(record.cost.value? - of(record.design, record.state.strip_prefix(GUARDED)?)?))
        .collect();
    match describe_range(&added) {
        Some(range) => {
            let middle = format_cycles(median(&mut added));
            page.print_row("a guard adds", &format!("{middle} to a call; {range} in {} pairs of states", added.len()))
        }
        None => Ok(()),
    }
}

/// Prints the costs in a further loop.
fn print_context(page: &mut TextPage, records: &[MarkerRecord], context: &str) -> Result<(), Failure> {
    let of = || records.iter().filter(|record| record.context == context && is_marker(record));
    let costs = |dormant: bool| {
        let of = of().filter(|record| record.state.starts_with("dormant") == dormant);
        describe_range(&of.filter_map(|record| record.cost.value).collect::<Vec<f64>>())
    };
    let parts = [("dormant", costs(true)), ("enabled", costs(false))];
    let mut parts: Vec<String> =
        parts.into_iter().filter_map(|(name, range)| Some(format!("{name} {}", range?))).collect();
    match of().filter(|record| is_caveated(record)).count() {
        0 => (),
        marked => parts.push(format!("{marked} with *")),
    }
    page.print_row(&format!("loop {context}"), &parts.join("; "))
}

/// Prints which designs are missing.
fn print_skipped(page: &mut TextPage, found: &MarkerFindings) -> Result<(), Failure> {
    let mut designs: Vec<&str> = found.skipped.iter().map(|skipped| skipped.design.as_str()).collect();
    designs.dedup();
    if designs.is_empty() { Ok(()) } else { page.print_row("not measured", &designs.join(", ")) }
}

/// Prints that the calls were as the states say, or each violation.
fn print_calls(page: &mut TextPage, records: &[MarkerRecord]) -> Result<(), Failure> {
    let proofs = || records.iter().filter_map(|record| record.calls);
    if proofs().next().is_none() || !proofs().all(|calls| calls.holds()) {
        return tables::print_call_proof(page, records);
    }
    let silent = proofs().filter(|calls| calls.expected == Some(0)).count();
    let calling = proofs().filter(|calls| calls.expected.is_some_and(|expected| expected > 0)).count();
    page.print_row("proved", &format!("{silent} called nothing while dormant, {calling} called each time"))
}

/// Prints how many of the document's conclusions hold.
fn print_conclusions(page: &mut TextPage, found: &MarkerFindings) -> Result<(), Failure> {
    let measured = || found.published.conclusions.iter().filter(|conclusion| conclusion.measured);
    if measured().next().is_none() {
        return Ok(());
    }
    let [holds, fails, open] = [Some(true), Some(false), None]
        .map(|verdict| measured().filter(|conclusion| conclusion.holds == verdict).count());
    page.print_row("conclusions", &format!("of the note on markers: {holds} hold here, {fails} do not, {open} open"))
}

/// Least and greatest; `None` without values.
fn describe_range(values: &[f64]) -> Option<String> {
    let least = values.iter().copied().reduce(f64::min)?;
    let most = values.iter().copied().reduce(f64::max)?;
    Some(format!("{} to {}", format_cycles(least), format_cycles(most)))
}

/// Formats the cost with its mark.
fn format_cost(record: &MarkerRecord) -> String {
    let Some(value) = record.cost.value else { return "-".to_string() };
    let wide = interval_reach(&record.cost) > WIDE_CYCLES.max(WIDE_SHARE * value.abs());
    let mark = if is_caveated(record) {
        "*"
    } else if wide {
        "~"
    } else {
        ""
    };
    format!("{}{mark}", format_cycles(value))
}

/// Whether a caveat is not about the width of the interval.
fn is_caveated(record: &MarkerRecord) -> bool {
    let of_width = [CaveatKind::IntervalNotReached, CaveatKind::LayoutDependent, CaveatKind::TwoModes];
    record.caveats.iter().any(|caveat| !of_width.contains(&caveat.code))
}

fn format_cycles(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 999.5 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    if text == "-0.00" { "0.00".to_string() } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::simulated_records::simulated_record;
    use super::*;
    use cyclescope::asm::CodeMode;
    use cyclescope::study::marker::marker_findings::{PublishedRecord, SkippedRecord};
    use cyclescope::study::marker::source::design;

    #[test]
    fn all_designs_fit_a_screen() {
        let own = |design: &str| match design {
            "none" => vec!["base"],
            "tracing" => vec!["dormant", "dormant-filtered", "empty", "fields", "sink"],
            "log" => vec!["dormant", "empty", "sink"],
            _ if design.starts_with("stores") => vec!["control"],
            _ if design.contains("sdt") => vec!["dormant", "attached"],
            _ => vec!["dormant", "empty", "direct", "varargs", "format", "guarded-empty", "guarded-format"],
        };
        let of = |context: &'static str| {
            design::ALL.iter().flat_map(move |design| {
                let cost = |state: &str| if state.starts_with("dormant") { -0.001 } else { -1234.5 };
                let record = move |state: &str| MarkerRecord {
                    context: context.to_string(),
                    ..simulated_record(design.name, state, cost(state), None)
                };
                own(design.name).into_iter().map(record)
            })
        };
        let mut records: Vec<MarkerRecord> = of("empty").chain(of("memcpy")).collect();
        records[1].caveats.push(Caveat { code: CaveatKind::OtherSpeed, text: String::new() });
        let missing = SkippedRecord::from_design(&design::ALL[0], "no header".to_string(), None);
        let published = PublishedRecord { source: "", machine: "", figures: Vec::new(), conclusions: Vec::new() };
        let found = MarkerFindings { records, skipped: vec![missing], published };
        let printed = Output::capture(false, |output| print_summary(&mut TextPage::new(output), &found));
        let printed = String::from_utf8(printed).unwrap();
        let lines: Vec<&str> = printed.lines().collect();
        assert!(lines.len() <= 24 && lines.iter().all(|line| line.chars().count() <= WIDTH), "{printed}");
        let row = lines.iter().find(|line| line.trim_start().starts_with("flag")).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["flag", "0.00", "-1234*", "-1234", "-1234", "-1234"]);
        for part in [
            "not measured      flag",
            "a guard adds      0.00 to a call; 0.00 to 0.00",
            "loop memcpy       dormant 0.00",
            "sink -1234",
        ] {
            assert!(printed.contains(part), "{part}: {printed}");
        }
    }

    #[test]
    fn the_title_names_32_bit_code() {
        let title = |bits| {
            let records = vec![MarkerRecord { bits, ..simulated_record("flag", "dormant", 0.0, None) }];
            let published = PublishedRecord { source: "", machine: "", figures: Vec::new(), conclusions: Vec::new() };
            let found = MarkerFindings { records, skipped: Vec::new(), published };
            let printed = Output::capture(false, |output| print_summary(&mut TextPage::new(output), &found));
            String::from_utf8(printed).unwrap().trim_start().lines().next().unwrap_or_default().to_string()
        };
        assert!(title(CodeMode::Bits64).starts_with("Markers on a machine, CPU 1"), "{}", title(CodeMode::Bits64));
        assert!(title(CodeMode::Bits32).starts_with("Markers in 32-bit code on a machine, CPU 1"));
    }
}
