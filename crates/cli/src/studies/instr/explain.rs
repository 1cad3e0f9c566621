//! `--explain`: every program that was timed for a form, and how its row follows from them.

use super::tables::{self, name, sign};
use crate::output::page::Page;
use crate::output::words::{one_line, quantity};
use crate::output::{Failure, Output, WIDTH, wrapped};
use cyclescope::error::RunError;
use cyclescope::executor::Executor;
use cyclescope::study::instr::rows::explanation::{Length, Spread, Trial, explain};
use cyclescope::study::instr::rows::row::{Regimes, Row};
use cyclescope::study::instr::survey::{Outcome, Survey};
use serde::Serialize;

/// Forms that are explained at once at most.
pub const MOST: usize = 16;

/// A row explained, kind `instr.explain`.
#[derive(Serialize)]
struct Explanation<'a> {
    row: &'a Row,
    programs: &'a [Trial],
}

/// Measures each form in all passes and explains it.
pub fn explain_all(
    survey: &Survey,
    executor: &mut dyn Executor,
    repro: &dyn Fn(&Row) -> String,
    output: &mut Output,
) -> Result<(), Failure> {
    for form in 0..survey.forms.len() {
        let (mut row, trials) = measure(survey, executor, form)?;
        row.repro = repro(&row);
        if output.is_json() {
            output.record("instr.explain", &Explanation { row: &row, programs: &trials })?;
            continue;
        }
        if form > 0 {
            output.line("")?;
        }
        print(&row, &trials, output)?;
    }
    Ok(())
}

fn measure(survey: &Survey, executor: &mut dyn Executor, form: usize) -> Result<(Row, Vec<Trial>), RunError> {
    let (row, outcomes) = survey.settle(executor, form)?;
    let passes: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Measured(readings) => Some(readings.clone()),
            _ => None,
        })
        .collect();
    let trials = match survey.plan(form) {
        Ok(plan) => explain(&row, &plan, &survey.gauge, &passes, survey.confidence),
        Err(_) => Vec::new(),
    };
    Ok((row, trials))
}

fn print(row: &Row, trials: &[Trial], output: &mut Output) -> Result<(), Failure> {
    let mut page = Page::new(output);
    page.section(&format!("{} ({}, {}, {})", name(row), row.code, row.encoding, row.isa))?;
    if let Some(reason) = &row.reason {
        page.row(word(row), reason)?;
    }
    if let Some(throughput) = &row.throughput {
        let fraction = throughput.fraction.as_ref().map_or(String::new(), |fraction| format!(", {fraction}"));
        page.row("rthroughput", &format!("{} core cycles{fraction}", quantity(&throughput.cost)))?;
    }
    for latency in &row.latency {
        let variant = latency.variant.as_ref().map_or(String::new(), |variant| format!(", {variant}"));
        let cost = format!("{}{}", sign(latency.bound), quantity(&latency.cost));
        page.row("latency", &format!("{}→{} {cost} core cycles{variant}", latency.from, latency.to))?;
        if let Some(Regimes { fresh, saturated, knee }) = &latency.regimes {
            let text = format!(
                "{} in a short chain, {} in a long one, from {} instructions on",
                quantity(fresh),
                quantity(saturated),
                quantity(knee)
            );
            page.row("", &text)?;
        }
    }
    if let Some(throughput) = &row.throughput {
        for variant in throughput.variants.iter().filter(|variant| row.tried.contains(&variant.variant)) {
            page.row(
                "rthroughput",
                &format!("{} core cycles, {}", quantity(&variant.cost), variant.variant),
            )?;
        }
    }
    if !row.tried.is_empty() {
        page.row("tried with", &tables::alike(row))?;
    }
    if !row.tags.is_empty() {
        page.row("tags", &row.tags.join(", "))?;
    }
    for caveat in &row.caveats {
        page.painted_row("caveat", &caveat.text, Output::yellow)?;
    }
    page.command("again", &row.repro)?;
    trials.iter().try_for_each(|trial| print_trial(trial, &mut page))
}

fn word(row: &Row) -> &'static str {
    use cyclescope::study::instr::rows::row::Status;
    match row.status {
        Status::Measured => "measured",
        Status::Skipped => "skipped",
        Status::Failed => "failed",
    }
}

fn print_trial(trial: &Trial, page: &mut Page) -> Result<(), Failure> {
    page.output.line("")?;
    let mark = if trial.taken { "*" } else { " " };
    for (index, line) in wrapped(&title(trial), WIDTH - 4).into_iter().enumerate() {
        let line = if trial.taken { page.output.bold(&line) } else { line };
        page.output.line(format!(" {} {line}", if index == 0 { mark } else { " " }))?;
    }
    if !trial.recipe.is_empty() && trial.question != "throughput" {
        page.row("  program", &trial.recipe)?;
    }
    code(page, if trial.question == "latency" { "  one turn" } else { "  one period" }, &trial.assembly)?;
    code(page, "  before", &trial.init)?;
    page.row("  copies", &format!("{} in the body of a loop", trial.copies))?;
    for link in &trial.links {
        let cycles = link.cycles.map_or("not known".to_string(), |cycles| format!("{cycles:.3} core cycles"));
        let certain = if link.certain { ", certain" } else { ", by convention" };
        page.row("  link", &format!("{}: {cycles}{certain}", link.name))?;
    }
    for (pass, spread) in trial.passes.iter().enumerate() {
        page.row(&format!("  pass {}", pass + 1), &spread_text(spread))?;
    }
    if trial.bent + trial.void > 0 {
        let text = format!(
            "{} layouts not proportional to the number of instances, {} without a usable round",
            trial.bent, trial.void
        );
        page.row("  left out", &text)?;
    }
    if !trial.curve.is_empty() {
        let one = |length: &Length| format!("{} {:.1}", length.instructions, length.cycles);
        let lengths: Vec<String> = trial.curve.iter().map(one).collect();
        let text = format!("core cycles by instructions: {}", lengths.join(", "));
        page.row("  behind a fence", &text)?;
    }
    page.row(if trial.taken { "  taken" } else { "  not taken" }, &trial.why)
}

fn title(trial: &Trial) -> String {
    let cost = trial.cost.map_or("no number".to_string(), |cost| format!("{cost:.3}"));
    let variant = trial.variant.as_ref().map_or(String::new(), |variant| format!(", {variant}"));
    let what = match (&trial.from, &trial.to) {
        (Some(from), Some(to)) => format!("latency {from}→{to}{variant}"),
        _ if trial.question == "throughput" => format!("throughput, {}", trial.recipe),
        _ => trial.question.replace('_', " "),
    };
    one_line(&format!("{what}: {cost}"))
}

/// Assembly in one paragraph.
fn code(page: &mut Page, label: &str, text: &str) -> Result<(), Failure> {
    if text.is_empty() {
        return Ok(());
    }
    let lines: Vec<&str> = text.lines().collect();
    let one = |row: &[&str]| match row.len() {
        1 | 2 => row.join("; "),
        count => format!("{} ({count} times)", row[0]),
    };
    page.row(label, &lines.chunk_by(|a, b| a == b).map(one).collect::<Vec<_>>().join("; "))
}

fn spread_text(spread: &Spread) -> String {
    format!(
        "{:.3} in the median of {} layouts, {:.3} to {:.3}",
        spread.median, spread.layouts, spread.min, spread.max
    )
}
