//! Prints the ranking of more than two programs as text and as Markdown.

use super::record::{AbRow, AbSessionRecord, RankedProgram};
use super::report::{
    format_change, format_cycles, format_interval, format_pairs, mark_verdict, print_markdown_notes, quote_code,
    summarize_verdicts, verdict_word,
};
use super::report_notes::{ReportNotes, about_row};
use crate::output::page::{TextPage, new_table, print_note, print_table};
use crate::output::{Failure, Output};

/// What a rank says.
const RANK_MEANING: &str = "A rank is one more than the number of programs that are found to be faster. Programs of \
    one rank are not told apart. The levels allow for the number of pairs of programs (Holm).";

/// A row of the table: a program of a benchmark.
struct RankedRow<'a> {
    /// `None` without this benchmark.
    rank: Option<usize>,
    /// The program's number, from 1, as it is printed.
    program: usize,
    /// Median core cycles.
    cycles: Option<f64>,
    /// The comparison with the first program; `None` for the first program itself.
    compared: Option<&'a AbRow>,
}

/// The rows of each benchmark, the best rank first.
fn rank_benchmarks(rows: &[AbRow]) -> impl Iterator<Item = (&str, Vec<RankedRow<'_>>)> {
    rows.chunk_by(|one, other| one.name == other.name).map(|rows| {
        let unranked = RankedProgram { program: 1, old_rank: None, new_rank: None };
        let ranks = |row: &AbRow| row.ranked.unwrap_or(unranked);
        let first = &rows[0];
        let mut ranked = vec![RankedRow { rank: ranks(first).old_rank, program: 1, cycles: first.old, compared: None }];
        ranked.extend(rows.iter().map(|row| {
            let RankedProgram { program, new_rank, .. } = ranks(row);
            RankedRow { rank: new_rank, program: program + 1, cycles: row.new, compared: Some(row) }
        }));
        ranked.sort_by(|one, other| {
            let rank = |row: &RankedRow| row.rank.unwrap_or(usize::MAX);
            rank(one).cmp(&rank(other)).then(one.cycles.unwrap_or(0.0).total_cmp(&other.cycles.unwrap_or(0.0)))
        });
        (first.name.as_str(), ranked)
    })
}

impl RankedRow<'_> {
    fn format_rank(&self) -> String {
        self.rank.map_or("-".to_string(), |rank| rank.to_string())
    }

    /// The verdict, the change and its interval.
    fn format_comparison(&self, verdict: impl Fn(&AbRow) -> String) -> [String; 3] {
        match self.compared {
            None => ["first".to_string(), "-".to_string(), "-".to_string()],
            Some(row) => [verdict(row), format_change(row), format_interval(row)],
        }
    }
}

/// Prints the ranking as text.
pub fn print_text(
    rows: &[AbRow],
    session: &AbSessionRecord,
    notes: &ReportNotes,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut page = TextPage::new(output);
    page.begin_section("Compared")?;
    for (index, program) in session.programs.iter().enumerate() {
        page.print_row(&format!("program {}", index + 1), program)?;
    }
    page.print_row("CPU", &format!("{} of {}", session.cpu, session.core))?;
    for (name, ranked) in rank_benchmarks(rows) {
        page.begin_section(name)?;
        let mut lines = new_table(&["rank", "program", "verdict", "change", "95 % interval", "core cycles", "pairs"]);
        for row in &ranked {
            let [verdict, change, interval] = row.format_comparison(|row| verdict_word(row.verdict).to_string());
            let pairs = row.compared.map_or("-".to_string(), format_pairs);
            let cells = [row.format_rank(), row.program.to_string(), verdict, change, interval];
            lines.add_row(cells.into_iter().chain([format_cycles(row.cycles), pairs]));
        }
        print_table(&mut page, &lines)?;
        for row in &ranked {
            for note in row.compared.map(about_row).unwrap_or_default() {
                print_note(&mut page, &format!("program {}: {note}.", row.program))?;
            }
        }
    }
    page.output.write_line("")?;
    print_note(&mut page, &format!("Compared with program 1: {}.", summarize_verdicts(rows)))?;
    notes.about_runs(str::to_string).iter().try_for_each(|note| print_note(&mut page, note))?;
    print_note(&mut page, RANK_MEANING)
}

/// Prints the ranking as Markdown.
pub fn print_markdown(
    rows: &[AbRow],
    session: &AbSessionRecord,
    notes: &ReportNotes,
    output: &mut Output,
) -> Result<(), Failure> {
    output.write_line(format!("**{}**", summarize_verdicts(rows)))?;
    output.write_line("")?;
    output.write_line("| benchmark | rank | program | verdict | change | 95 % interval | core cycles |")?;
    output.write_line("|---|--:|--:|---|--:|---|--:|")?;
    for (name, ranked) in rank_benchmarks(rows) {
        for row in ranked {
            let [verdict, change, interval] = row.format_comparison(|row| mark_verdict(row.verdict));
            let cells = [quote_code(name), row.format_rank(), row.program.to_string(), verdict, change, interval];
            output.write_line(format!("| {} | {} |", cells.join(" | "), format_cycles(row.cycles)))?;
        }
    }
    output.write_line("")?;
    let programs = session.programs.iter().enumerate();
    let programs: Vec<String> =
        programs.map(|(index, program)| format!("{}: {}", index + 1, quote_code(program))).collect();
    output.write_line(format!(
        "Compared with program 1, on CPU {} of {}; {}.",
        session.cpu,
        session.core,
        programs.join(", ")
    ))?;
    print_markdown_notes(rows, notes, output)?;
    output.write_line("")?;
    output.write_line(RANK_MEANING)
}
