//! Prints the result as text and as Markdown.

use super::record::{AbRow, AbSessionRecord};
use super::report_notes::{ReportNotes, about_row};
use crate::output::page::{TextPage, new_table, print_note, print_table};
use crate::output::{Failure, Output};
use cyclescope::study::ab::ChangeVerdict;

/// Width of a name in a table; longer names are shortened in the middle.
const NAME_WIDTH: usize = 22;

/// The limits of a comparison with recorded runs.
const RECORDED_WARNING: &str = "The old runs were recorded earlier. Other things may have changed since then: the \
    machine or CPU, its firmware and kernel, other tenants, files, the compiler's layout of the code. To isolate the \
    program's change, run OLD and NEW in turn on one machine.";

/// Prints the result as text.
pub fn print_text(
    rows: &[AbRow],
    session: &AbSessionRecord,
    old: &str,
    notes: &ReportNotes,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut page = TextPage::new(output);
    page.begin_section("Compared")?;
    page.print_row("old", old)?;
    page.print_row("new", session.programs.last().map_or("", String::as_str))?;
    page.print_row("CPU", &format!("{} of {}", session.cpu, session.core))?;
    page.begin_section("Result")?;
    let mut lines = new_table(&["benchmark", "verdict", "change", "95 % interval", "old", "new", "pairs"]);
    for row in rows {
        let verdict = verdict_word(row.verdict).to_string();
        let cells = [
            shorten_name(&row.name),
            verdict,
            format_change(row),
            format_interval(row),
            format_cycles(row.old),
            format_cycles(row.new),
            format_pairs(row),
        ];
        lines.add_row(cells);
    }
    print_table(&mut page, &lines)?;
    page.output.write_line("")?;
    let heading = summarize_verdicts(rows);
    print_note(&mut page, &heading)?;
    for row in rows {
        if let [Some(user), Some(system)] = [row.user_us, row.system_us] {
            print_note(
                &mut page,
                &format!(
                    "Milliseconds of CPU time, old and new: user {}, system {}.",
                    format_both(user),
                    format_both(system)
                ),
            )?;
        }
        for note in about_row(row) {
            print_note(&mut page, &format!("{}: {note}.", row.name))?;
        }
    }
    notes.about_runs(str::to_string).iter().try_for_each(|note| print_note(&mut page, note))?;
    if rows.iter().any(|row| !row.interleaved) {
        print_note(&mut page, RECORDED_WARNING)?;
    }
    Ok(())
}

/// Prints the result as Markdown.
pub fn print_markdown(
    rows: &[AbRow],
    session: &AbSessionRecord,
    old: &str,
    notes: &ReportNotes,
    output: &mut Output,
) -> Result<(), Failure> {
    let new = session.programs.last().map_or("", String::as_str);
    output.write_line(format!("**{}**", summarize_verdicts(rows)))?;
    output.write_line("")?;
    output.write_line("| benchmark | verdict | change | 95 % interval | old | new |")?;
    output.write_line("|---|---|--:|---|--:|--:|")?;
    for row in rows {
        let cells = [
            quote_code(&row.name),
            mark_verdict(row.verdict),
            format_change(row),
            format_interval(row),
            format_cycles(row.old),
            format_cycles(row.new),
        ];
        output.write_line(format!("| {} |", cells.join(" | ")))?;
    }
    output.write_line("")?;
    output.write_line(format!(
        "Core cycles; old: {}, new: {}, on CPU {} of {}.",
        quote_code(old),
        quote_code(new),
        session.cpu,
        session.core
    ))?;
    print_markdown_notes(rows, notes, output)?;
    if rows.iter().any(|row| !row.interleaved) {
        output.write_line("")?;
        output.write_line(RECORDED_WARNING)?;
    }
    Ok(())
}

/// Prints the notes as a list in Markdown.
pub(super) fn print_markdown_notes(rows: &[AbRow], notes: &ReportNotes, output: &mut Output) -> Result<(), Failure> {
    let of_row = |row: &AbRow| {
        let name = quote_code(&row.name);
        about_row(row).into_iter().map(move |note| format!("{name}: {note}."))
    };
    let lines: Vec<String> = rows.iter().flat_map(of_row).chain(notes.about_runs(quote_code)).collect();
    if !lines.is_empty() {
        output.write_line("")?;
    }
    lines.iter().try_for_each(|line| output.write_line(format!("- {line}")))
}

/// A verdict in Markdown, a difference in bold.
pub(super) fn mark_verdict(verdict: ChangeVerdict) -> String {
    match verdict {
        ChangeVerdict::Same | ChangeVerdict::Unclear => verdict_word(verdict).to_string(),
        _ => format!("**{}**", verdict_word(verdict)),
    }
}

/// Counts the benchmarks by verdict.
pub(super) fn summarize_verdicts(rows: &[AbRow]) -> String {
    let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let within = rows.first().map_or(0.0, |row| 100.0 * row.within);
    let [slower, faster, same, unclear] =
        [ChangeVerdict::Slower, ChangeVerdict::Faster, ChangeVerdict::Same, ChangeVerdict::Unclear].map(count);
    let mut text = format!("{slower} slower, {faster} faster, {same} the same within {within} %, {unclear} unclear");
    for verdict in [ChangeVerdict::OnlyOld, ChangeVerdict::OnlyNew] {
        if count(verdict) > 0 {
            text.push_str(&format!(", {} {}", count(verdict), verdict_word(verdict)));
        }
    }
    text
}

/// Formats the pairs of both batches.
pub(super) fn format_pairs(row: &AbRow) -> String {
    let [first, second] = row.pairs;
    if second > 0 { format!("{first}+{second}") } else { first.to_string() }
}

pub(super) fn verdict_word(verdict: ChangeVerdict) -> &'static str {
    match verdict {
        ChangeVerdict::Slower => "slower",
        ChangeVerdict::Faster => "faster",
        ChangeVerdict::Same => "same",
        ChangeVerdict::Unclear => "unclear",
        ChangeVerdict::OnlyOld => "only old",
        ChangeVerdict::OnlyNew => "only new",
    }
}

pub(super) fn format_change(row: &AbRow) -> String {
    row.change.value.map_or("-".to_string(), format_percent)
}

pub(super) fn format_interval(row: &AbRow) -> String {
    match (row.change.low, row.change.high) {
        (Some(low), Some(high)) => format!("{} to {}", format_percent(low), format_percent(high)),
        _ => "-".to_string(),
    }
}

fn format_percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent.abs() < 10.0 { format!("{percent:+.2} %") } else { format!("{percent:+.0} %") }
}

/// Formats core cycles with four digits.
pub(super) fn format_cycles(cycles: Option<f64>) -> String {
    match cycles {
        None => "-".to_string(),
        Some(cycles @ ..1e3) => format!("{cycles:.1}"),
        Some(cycles @ ..1e5) => format!("{cycles:.0}"),
        Some(cycles) => format!("{cycles:.3e}"),
    }
}

fn format_both([old, new]: [f64; 2]) -> String {
    format!("{:.2} and {:.2}", old / 1000.0, new / 1000.0)
}

pub(super) fn shorten_name(name: &str) -> String {
    let characters: Vec<char> = name.chars().collect();
    if characters.len() <= NAME_WIDTH {
        return name.to_string();
    }
    let (start, end) = (&characters[..NAME_WIDTH / 2 - 1], &characters[characters.len() - NAME_WIDTH / 2..]);
    start.iter().chain(&['…']).chain(end).collect()
}

/// Quotes foreign text as code in a table cell, so that no bar ends the cell and no backtick the
/// code.
pub(super) fn quote_code(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|c| {
            if c == '`' {
                '\''
            } else if c.is_control() {
                ' '
            } else {
                c
            }
        })
        .collect();
    // A backslash would make the bar's own one plain.
    format!("`{}`", text.replace("\\|", "\\ |").replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_significant_digits() {
        assert_eq!([0.0123, -0.25, 0.0].map(format_percent), ["+1.23 %", "-25 %", "+0.00 %"]);
        assert_eq!(
            [Some(149.61), Some(12_345.6), Some(4.1e7), None].map(format_cycles),
            ["149.6", "12346", "4.100e7", "-"]
        );
    }

    #[test]
    fn foreign_names_stay_in_their_cell() {
        assert_eq!(quote_code("a|b`c`\n"), "`a\\|b'c' `");
        assert_eq!(quote_code(r"a\|b"), r"`a\ \|b`");
        assert_eq!(shorten_name("short"), "short");
        assert_eq!(shorten_name("a/very/long/name/of_a_benchmark").chars().count(), NAME_WIDTH);
    }
}
