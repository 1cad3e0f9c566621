//! The result as text and as Markdown.

use super::record::{Row, SessionRecord, reason};
use crate::output::page::{Page, note, print, table};
use crate::output::{Failure, Output};
use cyclescope::study::ab::Verdict;

/// Characters of a name in a table; longer ones are cut in the middle.
const NAME: usize = 22;

/// What a recorded comparison can't know.
const NOT_KNOWN: &str = "The old runs were recorded before. What changed since then besides the program is not known: another \
    machine or CPU, its firmware and kernel, other tenants, files, the compiler's layout of the code. Only OLD and NEW in \
    turn on one machine tell a change of the program.";

/// Prints the result as text.
pub fn text(rows: &[Row], session: &SessionRecord, old: &str, output: &mut Output) -> Result<(), Failure> {
    let mut page = Page::new(output);
    page.section("Compared")?;
    page.row("old", old)?;
    page.row("new", session.programs.last().map_or("", String::as_str))?;
    page.row("CPU", &format!("{} of {}", session.cpu, session.core))?;
    page.section("Result")?;
    let mut lines = table(&["benchmark", "verdict", "change", "95 % interval", "old", "new", "pairs"]);
    for row in rows {
        let [first, second] = row.pairs;
        let pairs = if second > 0 { format!("{first}+{second}") } else { first.to_string() };
        let verdict = word(row.verdict).to_string();
        let cells = [
            shortened(&row.name),
            verdict,
            value(row),
            interval(row),
            cycles(row.old),
            cycles(row.new),
            pairs,
        ];
        lines.add_row(cells);
    }
    print(&mut page, &lines)?;
    page.output.line("")?;
    let heading = summary(rows);
    note(&mut page, &heading)?;
    for row in rows {
        if let [Some(user), Some(system)] = [row.user_us, row.system_us] {
            note(
                &mut page,
                &format!(
                    "Milliseconds of CPU time, old and new: user {}, system {}.",
                    both(user),
                    both(system)
                ),
            )?;
        }
        if let Some(why) = row.why {
            note(&mut page, &format!("{}: {}.", row.name, reason(why)))?;
        }
    }
    if rows.iter().any(|row| !row.interleaved) {
        note(&mut page, NOT_KNOWN)?;
    }
    Ok(())
}

/// Prints the result as Markdown.
pub fn markdown(
    rows: &[Row],
    session: &SessionRecord,
    old: &str,
    output: &mut Output,
) -> Result<(), Failure> {
    let new = session.programs.last().map_or("", String::as_str);
    output.line(format!("**{}**", summary(rows)))?;
    output.line("")?;
    output.line("| benchmark | verdict | change | 95 % interval | old | new |")?;
    output.line("|---|---|--:|---|--:|--:|")?;
    for row in rows {
        let verdict = match row.verdict {
            Verdict::Slower | Verdict::Faster => format!("**{}**", word(row.verdict)),
            Verdict::Same | Verdict::Unclear => word(row.verdict).to_string(),
        };
        let cells = [code(&row.name), verdict, value(row), interval(row), cycles(row.old), cycles(row.new)];
        output.line(format!("| {} |", cells.join(" | ")))?;
    }
    output.line("")?;
    output.line(format!(
        "Core cycles; old: {}, new: {}, on CPU {} of {}.",
        code(old),
        code(new),
        session.cpu,
        session.core
    ))?;
    if rows.iter().any(|row| !row.interleaved) {
        output.line("")?;
        output.line(NOT_KNOWN)?;
    }
    Ok(())
}

/// How many have which verdict.
fn summary(rows: &[Row]) -> String {
    let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let within = rows.first().map_or(0.0, |row| 100.0 * row.within);
    let [slower, faster, same, unclear] =
        [Verdict::Slower, Verdict::Faster, Verdict::Same, Verdict::Unclear].map(count);
    format!("{slower} slower, {faster} faster, {same} the same within {within} %, {unclear} unclear")
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Slower => "slower",
        Verdict::Faster => "faster",
        Verdict::Same => "same",
        Verdict::Unclear => "unclear",
    }
}

fn value(row: &Row) -> String {
    row.change.value.map_or("-".to_string(), percent)
}

fn interval(row: &Row) -> String {
    match (row.change.low, row.change.high) {
        (Some(low), Some(high)) => format!("{} to {}", percent(low), percent(high)),
        _ => "-".to_string(),
    }
}

fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent.abs() < 10.0 { format!("{percent:+.2} %") } else { format!("{percent:+.0} %") }
}

/// Core cycles with four digits.
fn cycles(cycles: Option<f64>) -> String {
    match cycles {
        None => "-".to_string(),
        Some(cycles @ ..1e3) => format!("{cycles:.1}"),
        Some(cycles @ ..1e5) => format!("{cycles:.0}"),
        Some(cycles) => format!("{cycles:.3e}"),
    }
}

fn both([old, new]: [f64; 2]) -> String {
    format!("{:.2} and {:.2}", old / 1000.0, new / 1000.0)
}

fn shortened(name: &str) -> String {
    let characters: Vec<char> = name.chars().collect();
    if characters.len() <= NAME {
        return name.to_string();
    }
    let (start, end) = (&characters[..NAME / 2 - 1], &characters[characters.len() - NAME / 2..]);
    start.iter().chain(&['…']).chain(end).collect()
}

/// A text that others wrote, as code in a cell of a table: no bar ends the cell, and no backtick the code.
fn code(text: &str) -> String {
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
    format!("`{}`", text.replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_say_something() {
        assert_eq!([0.0123, -0.25, 0.0].map(percent), ["+1.23 %", "-25 %", "+0.00 %"]);
        assert_eq!(
            [Some(149.61), Some(12_345.6), Some(4.1e7), None].map(cycles),
            ["149.6", "12346", "4.100e7", "-"]
        );
    }

    #[test]
    fn names_of_others_stay_in_their_cell() {
        assert_eq!(code("a|b`c`\n"), "`a\\|b'c' `");
        assert_eq!(shortened("short"), "short");
        assert_eq!(shortened("a/very/long/name/of_a_benchmark").chars().count(), NAME);
    }
}
