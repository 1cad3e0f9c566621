//! Prints the ports of forms, the classes, and which of them share ports.

use crate::output::page::{TextPage, new_table, print_table};
use crate::output::report_words::{format_count, format_quantity};
use crate::output::{Failure, Output};
use cyclescope::study::ports::classes_record::ClassesRecord;
use cyclescope::study::ports::deciding_mix::{DecidingMix, MixEvidence};
use cyclescope::study::ports::ports_row::{PortsRow, PortsVerdict};
use cyclescope::study::{TextColumn, TextTable};
use std::collections::BTreeMap;

/// Forms of a class that the table names.
const NAMED_FORMS: usize = 3;

/// The verdict in one word.
fn describe_verdict(verdict: PortsVerdict) -> &'static str {
    match verdict {
        PortsVerdict::Exact => "exact",
        PortsVerdict::Several => "several",
        PortsVerdict::Shared => "shared",
        PortsVerdict::Microcoded => "microcoded",
        PortsVerdict::Untold => "untold",
        PortsVerdict::Odd => "odd",
    }
}

/// Prints a row for each form, and the reasons of a few or, if requested, the mixes of all.
pub fn print_rows(rows: &[PortsRow], explains: bool, output: &mut Output) -> Result<(), Failure> {
    const EXPLAINED_MOST: usize = 12;
    let mut page = TextPage::new(output);
    page.begin_section("Ports")?;
    let has_names = rows.iter().any(|row| row.alias.is_some());
    let mut headings = vec!["instruction", "alone", "slots", "ports", "verdict"];
    if has_names {
        headings.insert(4, "published");
    }
    let mut table = new_table(&headings);
    for row in rows {
        let mut cells = vec![
            row.name(),
            format_quantity(&row.cycles),
            row.slots.as_ref().map_or("-".to_string(), |slots| slots.summarize()),
            row.ports.clone().unwrap_or("-".to_string()),
            describe_verdict(row.verdict).to_string(),
        ];
        if has_names {
            cells.insert(4, row.alias.clone().unwrap_or("-".to_string()));
        }
        table.add_row(cells);
    }
    print_table(&mut page, &table)?;
    let mut counts: BTreeMap<PortsVerdict, u64> = BTreeMap::new();
    rows.iter().for_each(|row| *counts.entry(row.verdict).or_default() += 1);
    let counts: Vec<String> =
        counts.iter().map(|(verdict, count)| format!("{count} {}", describe_verdict(*verdict))).collect();
    page.print_row(&format_count(rows.len() as u64, "form"), &counts.join(", "))?;
    if explains {
        rows.iter().try_for_each(|row| print_explanation(row, &mut page))?;
    } else if rows.len() <= EXPLAINED_MOST {
        page.begin_section("Why")?;
        for row in rows {
            page.print_row(&row.name(), &row.why)?;
        }
    }
    Ok(())
}

/// Says that a busy machine left this number of forms without a time.
pub fn print_untimed(untimed: usize, output: &mut Output) -> Result<(), Failure> {
    output.write_line("")?;
    let mut page = TextPage::new(output);
    page.begin_section("Note")?;
    let forms = format_count(untimed as u64, "form");
    page.print_row(
        "noisy",
        &format!("{forms} had no undisturbed round: measure again on a quiet machine, or see --cpu"),
    )
}

/// Prints the reason of a row, and the mixes that decided it.
fn print_explanation(row: &PortsRow, page: &mut TextPage) -> Result<(), Failure> {
    page.begin_section(&format!("{} ({}, {})", row.name(), row.code, row.encoding))?;
    page.print_row(describe_verdict(row.verdict), &row.why)?;
    for resource in &row.resources {
        page.print_row(&resource.set, &format!("{} port cycles of a copy", format_quantity(&resource.cycles)))?;
    }
    if row.mixes.is_empty() {
        return page.print_row("mixes", "no mix decided it");
    }
    for mix in &row.mixes {
        let evidence = match mix.evidence {
            MixEvidence::Proves => "proves",
            MixEvidence::Suggests => "suggests",
            MixEvidence::Untold => "untold",
        };
        page.print_row(evidence, &mix.shows)?;
        page.print_row("", &describe_mix(mix))?;
    }
    Ok(())
}

/// A mix, its time, and what limits it.
pub fn describe_mix(mix: &DecidingMix) -> String {
    let parts: Vec<String> = mix.parts.iter().map(|part| format!("{} × `{}`", part.count, part.form)).collect();
    format!(
        "{}: {} core cycles in order {} (worst {:.2}); {:.2} alone, {:.2} by slots",
        parts.join(" and "),
        format_quantity(&mix.cycles),
        mix.order,
        mix.worst,
        mix.alone,
        mix.slots
    )
}

/// Prints the classes and what they share.
pub fn print_classes(classes: &ClassesRecord, output: &mut Output) -> Result<(), Failure> {
    output.write_line("")?;
    let mut page = TextPage::new(output);
    let title = format!("Classes of one µop, of {:.2} slots per core cycle", classes.width);
    page.begin_section(&title)?;
    for class in &classes.classes {
        let named: Vec<&str> = class.forms.iter().take(NAMED_FORMS).map(String::as_str).collect();
        let more = class.forms.len().saturating_sub(NAMED_FORMS);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let ports = match (class.ports.is_empty(), &class.alias) {
            (true, _) => format!("{} of unknown name", class.count),
            (false, None) => class.ports.clone(),
            (false, Some(alias)) => format!("{} = {alias}", class.ports),
        };
        page.print_row(&ports, &format!("{}{more}", named.join(", ")))?;
    }
    Ok(())
}

/// All rows as a table.
pub fn tabulate_rows(rows: &[PortsRow]) -> TextTable {
    let mut table = TextTable::new([
        "code",
        "operands",
        "encoding",
        "cycles",
        "slots",
        "ports",
        "solutions",
        "verdict",
        "why",
        "alias",
    ]);
    for column in [3, 6] {
        table.columns[column] = TextColumn { is_number: true, ..table.columns[column].clone() };
    }
    let fields = |row: &PortsRow| {
        vec![
            row.code.clone(),
            row.operands.clone(),
            row.encoding.clone(),
            row.cycles.value.map_or(String::new(), |cycles| format!("{cycles:.4}")),
            row.slots.as_ref().map_or(String::new(), |slots| slots.summarize()),
            row.ports.clone().unwrap_or_default(),
            row.solutions.to_string(),
            describe_verdict(row.verdict).to_string(),
            row.why.clone(),
            row.alias.clone().unwrap_or_default(),
        ]
    };
    table.rows = rows.iter().map(fields).collect();
    table
}
