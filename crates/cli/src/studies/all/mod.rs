//! `cyclescope all`: everything that this machine can measure, into a directory of result files.
//!
//! Each step is a command of this program in a process of its own. Its lines go to a file that
//! appears when the command has completed; a command with `--out` writes its file itself and
//! resumes it. [`StepLedger`] records what was done, so that the same command continues.

mod archive;
mod measuring_step;
mod step_ledger;
mod step_run;

use crate::args::{AllArgs, CommonArgs};
use crate::output::directory::make_directory;
use crate::output::page::TextPage;
use crate::output::{Failure, Output};
use crate::process::interrupt;
use crate::studies::report::write_report;
use cyclescope::record::exit;
use measuring_step::STEPS;
use std::path::{Path, PathBuf};
use step_ledger::{StepLedger, StepOutcome, StepState};
use step_run::run_step;

/// The page of all results.
pub const PAGE_FILE: &str = "report.html";
const PAGE_TITLE: &str = "cyclescope report";

/// Runs the steps that are not done, and returns the exit code.
pub fn run_all(common: &CommonArgs, args: &AllArgs, output: &mut Output) -> Result<u8, Failure> {
    refuse_options(common)?;
    if let Some(pack) = &args.pack {
        archive::require_place(pack, &args.dir)?;
    }
    make_directory(&args.dir).map_err(|error| {
        let remedy = "name a new or existing directory inside a writable one";
        Failure::usage(format!("can't use {}: {error}", args.dir.display()), Some(remedy))
    })?;
    let mut ledger = StepLedger::open(&args.dir, common)?;
    interrupt::set_interrupt_text(Some("interrupted; repeat the same command to continue".to_string()));
    for step in STEPS {
        if ledger.is_done(step.name) {
            continue;
        }
        let outcome = run_step(step, common, &args.dir)?;
        ledger.record(outcome)?;
    }
    interrupt::set_interrupt_text(None);
    write_page(&args.dir, &ledger)?;
    if let Some(pack) = &args.pack {
        let page = Some(args.dir.join(PAGE_FILE)).filter(|page| page.exists());
        let files: Vec<PathBuf> = ledger.files().into_iter().chain(page).collect();
        archive::write_archive(pack, &args.dir, &files)?;
    }
    print_outcomes(&ledger, args, output)?;
    let has_failed = ledger.outcomes().any(|outcome| outcome.state == StepState::Failed);
    Ok(if has_failed { exit::INTERNAL } else { exit::DONE })
}

/// Writes the page of all results to the directory.
fn write_page(dir: &Path, ledger: &StepLedger) -> Result<(), Failure> {
    let done = ledger.outcomes().filter(|outcome| outcome.state == StepState::Done);
    let files: Vec<PathBuf> = done.filter_map(|outcome| Some(dir.join(outcome.file.as_ref()?))).collect();
    if files.is_empty() {
        return Ok(());
    }
    write_report(PAGE_TITLE, &files, &dir.join(PAGE_FILE)).map(drop)
}

/// Fails for options that the commands would understand differently.
fn refuse_options(common: &CommonArgs) -> Result<(), Failure> {
    let given = [
        ("--clock", !common.clock.is_empty()),
        ("--executor", !common.offer().is_default()),
        ("--evidence", common.evidence.is_some()),
        ("--beside", !common.beside.is_empty()),
        ("--beside-cpu", !common.beside_cpu.is_empty()),
        ("--force", common.force),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            let remedy = "leave it out, or run the commands one by one";
            Err(Failure::usage(format!("all does not take {option}"), Some(remedy)))
        }
        None => Ok(()),
    }
}

fn print_outcomes(ledger: &StepLedger, args: &AllArgs, output: &mut Output) -> Result<(), Failure> {
    if output.is_json() {
        return ledger.outcomes().try_for_each(|outcome| output.write_record("all", outcome));
    }
    let mut page = TextPage::new(output);
    page.begin_section(&format!("Results in {}", args.dir.display()))?;
    for outcome in ledger.outcomes() {
        page.print_row(outcome.name.as_str(), &describe_outcome(outcome))?;
    }
    if args.dir.join(PAGE_FILE).exists() {
        page.print_row("page", &format!("{PAGE_FILE}: open it in a browser"))?;
    }
    match &args.pack {
        Some(pack) => page.print_row("archive", &pack.display().to_string()),
        None => Ok(()),
    }
}

fn describe_outcome(outcome: &StepOutcome) -> String {
    let why = outcome.why.as_ref().map_or(String::new(), |why| format!(": {why}"));
    match (outcome.state, &outcome.file) {
        (StepState::Done, Some(file)) => format!("{file}, {:.0} s", outcome.seconds),
        (StepState::Done, None) => "done".to_string(),
        (StepState::LeftOut, _) => format!("left out{why}"),
        (StepState::Failed, _) => format!("failed{why}"),
    }
}
