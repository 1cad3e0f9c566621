//! `--explain`: prints every program that was timed for a form, and how its row follows from them.

use super::tables::{self, bound_sign, row_name};
use crate::output::page::TextPage;
use crate::output::report_words::{format_quantity, to_one_line};
use crate::output::{Failure, Output, WIDTH, wrap_text};
use cyclescope::error::RunError;
use cyclescope::executor::Executor;
use cyclescope::study::instr::form_pass::FormOutcome;
use cyclescope::study::instr::rows::explanation::{explain_row, explain_slots};
use cyclescope::study::instr::rows::instr_row::{InstrRow, LatencyRegimes};
use cyclescope::study::instr::rows::program_trial::{PassSpread, ProgramTrial, ShortChainCost};
use cyclescope::study::instr::survey::FormSurvey;
use serde::Serialize;

/// Maximum number of forms that are explained at once.
pub const EXPLAINED_MOST: usize = 16;

/// An explained row, kind `instr.explain`.
#[derive(Serialize)]
struct ExplanationRecord<'a> {
    row: &'a InstrRow,
    programs: &'a [ProgramTrial],
}

/// Measures each form in all passes and explains it.
pub fn explain_all(
    survey: &FormSurvey,
    executor: &mut dyn Executor,
    repro: &dyn Fn(&InstrRow) -> String,
    output: &mut Output,
) -> Result<(), Failure> {
    for form in 0..survey.forms.len() {
        let (mut row, trials) = measure_form(survey, executor, form)?;
        row.repro = repro(&row);
        if output.is_json() {
            output.write_record("instr.explain", &ExplanationRecord { row: &row, programs: &trials })?;
            continue;
        }
        if form > 0 {
            output.write_line("")?;
        }
        print_explanation(&row, &trials, output)?;
    }
    Ok(())
}

fn measure_form(
    survey: &FormSurvey,
    executor: &mut dyn Executor,
    form: usize,
) -> Result<(InstrRow, Vec<ProgramTrial>), RunError> {
    let (row, outcomes) = survey.settle_form(executor, form)?;
    let passes: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            FormOutcome::Measured(readings) => Some(readings.clone()),
            _ => None,
        })
        .collect();
    let trials = match survey.plan_form(form) {
        Ok(plan) => {
            let mut trials = explain_row(&row, &plan, &survey.link_costs, &passes, survey.confidence);
            trials.extend(explain_slots(&row, &plan, &survey.filler_curves, &passes));
            trials
        }
        Err(_) => Vec::new(),
    };
    Ok((row, trials))
}

fn print_explanation(row: &InstrRow, trials: &[ProgramTrial], output: &mut Output) -> Result<(), Failure> {
    let mut page = TextPage::new(output);
    page.begin_section(&format!("{} ({}, {}, {})", row_name(row), row.code, row.encoding, row.isa))?;
    if let Some(reason) = &row.reason {
        page.print_row(status_word(row), reason)?;
    }
    if let Some(throughput) = &row.throughput {
        let fraction = throughput.fraction.as_ref().map_or(String::new(), |fraction| format!(", {fraction}"));
        page.print_row("rthroughput", &format!("{} core cycles{fraction}", format_quantity(&throughput.cost)))?;
        if let Some(typical) = throughput.typical {
            let modes = throughput.typical_modes.iter();
            let modes: Vec<String> =
                modes.map(|mode| format!("{} ({:.0} %)", mode.cycles, 100.0 * mode.share)).collect();
            page.print_row("typical", &format!("{typical} core cycles; rounds by rate: {}", modes.join(", ")))?;
        }
    }
    if let Some(slots) = &row.slots {
        let why = slots.why.as_ref().map_or(String::new(), |why| format!(": {why}"));
        let measured = format_quantity(&slots.count);
        page.print_row("slots", &format!("{}, measured {measured}{why}", slots.summarize()))?;
    }
    for latency in &row.latency {
        let variant = latency.variant.as_ref().map_or(String::new(), |variant| format!(", {variant}"));
        let cost = format!("{}{}", bound_sign(latency.bound), format_quantity(&latency.cost));
        page.print_row("latency", &format!("{}→{} {cost} core cycles{variant}", latency.from, latency.to))?;
        if let Some(LatencyRegimes { fresh, saturated, knee }) = &latency.regimes {
            let text = format!(
                "{} in a short chain, {} in a chain of {} or more instructions",
                format_quantity(fresh),
                format_quantity(saturated),
                format_quantity(knee)
            );
            page.print_row("", &text)?;
        }
    }
    if let Some(throughput) = &row.throughput {
        for variant in throughput.variants.iter().filter(|variant| row.tried.contains(&variant.variant)) {
            page.print_row(
                "rthroughput",
                &format!("{} core cycles, {}", format_quantity(&variant.cost), variant.variant),
            )?;
        }
    }
    if !row.tried.is_empty() {
        page.print_row("tried with", &tables::describe_tried(row))?;
    }
    if !row.tags.is_empty() {
        page.print_row("tags", &row.tags.join(", "))?;
    }
    for caveat in &row.caveats {
        page.print_painted_row("caveat", &caveat.text, Output::yellow)?;
    }
    page.print_command("again", &row.repro)?;
    trials.iter().try_for_each(|trial| print_trial(trial, &mut page))
}

fn status_word(row: &InstrRow) -> &'static str {
    use cyclescope::study::instr::rows::instr_row::RowStatus;
    match row.status {
        RowStatus::Measured => "measured",
        RowStatus::Skipped => "skipped",
        RowStatus::Failed => "failed",
    }
}

fn print_trial(trial: &ProgramTrial, page: &mut TextPage) -> Result<(), Failure> {
    page.output.write_line("")?;
    let mark = if trial.taken { "*" } else { " " };
    for (index, line) in wrap_text(&trial_title(trial), WIDTH - 4).into_iter().enumerate() {
        let line = if trial.taken { page.output.bold(&line) } else { line };
        page.output.write_line(format!(" {} {line}", if index == 0 { mark } else { " " }))?;
    }
    if !trial.recipe.is_empty() && trial.question != "throughput" {
        page.print_row("  program", &trial.recipe)?;
    }
    print_assembly(page, if trial.question == "latency" { "  one turn" } else { "  one period" }, &trial.assembly)?;
    print_assembly(page, "  before", &trial.init)?;
    page.print_row("  copies", &format!("{} in the body of a loop", trial.copies))?;
    for link in &trial.links {
        let cycles = link.cycles.map_or("unknown".to_string(), |cycles| format!("{cycles:.3} core cycles"));
        let certain = if link.certain { ", certain" } else { ", by convention" };
        page.print_row("  link", &format!("{}: {cycles}{certain}", link.name))?;
    }
    for (pass, spread) in trial.passes.iter().enumerate() {
        page.print_row(&format!("  pass {}", pass + 1), &describe_spread(spread))?;
    }
    if trial.bent + trial.void > 0 {
        let text = format!(
            "{} layouts not proportional to the number of instances, {} without a usable round",
            trial.bent, trial.void
        );
        page.print_row("  left out", &text)?;
    }
    if !trial.curve.is_empty() {
        let one = |length: &ShortChainCost| format!("{} {:.1}", length.instructions, length.cycles);
        let lengths: Vec<String> = trial.curve.iter().map(one).collect();
        let text = format!("core cycles by instructions: {}", lengths.join(", "));
        page.print_row("  behind a fence", &text)?;
    }
    page.print_row(if trial.taken { "  taken" } else { "  not taken" }, &trial.why)
}

fn trial_title(trial: &ProgramTrial) -> String {
    let cost = trial.cost.map_or("no number".to_string(), |cost| format!("{cost:.3}"));
    let variant = trial.variant.as_ref().map_or(String::new(), |variant| format!(", {variant}"));
    let what = match (&trial.from, &trial.to) {
        (Some(from), Some(to)) => format!("latency {from}→{to}{variant}"),
        _ if trial.question == "throughput" => format!("throughput, {}", trial.recipe),
        _ => trial.question.replace('_', " "),
    };
    to_one_line(&format!("{what}: {cost}"))
}

/// Prints assembly in one paragraph.
fn print_assembly(page: &mut TextPage, label: &str, text: &str) -> Result<(), Failure> {
    if text.is_empty() {
        return Ok(());
    }
    let lines: Vec<&str> = text.lines().collect();
    let one = |row: &[&str]| match row.len() {
        1 | 2 => row.join("; "),
        count => format!("{} ({count} times)", row[0]),
    };
    page.print_row(label, &lines.chunk_by(|a, b| a == b).map(one).collect::<Vec<_>>().join("; "))
}

fn describe_spread(spread: &PassSpread) -> String {
    format!("median {:.3} over {} layouts, {:.3} to {:.3}", spread.median, spread.layouts, spread.min, spread.max)
}
