//! `cyclescope marker`: measures the cost of instrumentation when it is off, and when it is on.

mod assembly;
mod bench;
mod document_comparison;
mod listing;
mod marker_choice;
mod marker_libraries;
mod plots;
#[cfg(test)]
mod simulated_records;
mod summary;
mod tables;

use crate::args::repro;
use crate::args::{CommonArgs, MarkerArgs};
use crate::input::event_request::read_request;
use crate::output::page::TextPage;
use crate::output::report::Picture;
use crate::output::{Failure, Output};
use crate::process::isolation::run_isolated;
use crate::session::driver::{StudyOrder, StudyView, drive_study};
use crate::session::evidence::evidence_failure;
use crate::session::executor::{self, CodeOrigin};
use crate::session::replay_study;
use bench::{BenchRequest, ChosenBench};
use cyclescope::asm::CodeMode;
use cyclescope::clock::Clock;
use cyclescope::error::{Error, Unavailable};
use cyclescope::machine::Machine;
use cyclescope::record::{Quantity, exit};
use cyclescope::result::container::{EvidenceContainer, to_json_value};
use cyclescope::run::RunRequest;
use cyclescope::study::marker::catalog::MarkerCatalog;
use cyclescope::study::marker::marker_findings::{MarkerFindings, SkippedRecord};
use cyclescope::study::marker::record::{MarkerRecord, read_codes};
use cyclescope::study::marker::source::context::LoopContext;
use cyclescope::study::marker::source::design::SiteDesign;
use cyclescope::study::marker::{MarkerPlan, MarkerStudy};
use marker_choice::MarkerChoice;
use marker_libraries::{LoadedMarkers, MarkerLibraries, UserLoop};
use serde::Serialize;

pub use cyclescope::study::marker::NAME;

/// Runs the command and returns the exit code. A completed table succeeds, unless a marker didn't
/// behave as its state says.
pub fn run_marker(common: &CommonArgs, args: &MarkerArgs, output: &mut Output) -> Result<u8, Failure> {
    let catalog = MarkerCatalog::for_executor(common.offer().name)?;
    let clock = bench::choose_clock(common.one_clock()?, catalog)?;
    let mut choice = MarkerChoice::new(args, catalog)?;
    if args.list {
        choice.designs.retain(|design| choice.mode.is_default() || design.narrow_obstacle().is_none());
        listing::list_markers(&choice, output)?;
        return Ok(exit::DONE);
    }
    let machine = common.detect_machine()?;
    machine.tsc.require()?;
    common.capabilities(&machine).require_mode(choice.mode)?;
    let mut libraries = compile_libraries(args, &choice, &machine)?;
    let seed = common.chosen_seed();
    let ask = MarkerRunner { common, args, clock, choice: &choice, machine: &machine, seed };
    let mut answer = |loaded: &LoadedMarkers| match args.assembly {
        true => ask.print_code(loaded, output),
        false => ask.measure_and_report(loaded, output),
    };
    match libraries.folder.take() {
        None => answer(&libraries.load_markers()?),
        folder => run_isolated(|| libraries.load_markers(), folder, answer, |failure| failure.report(common.json)),
    }
}

/// Compiles what the build lacks: the user's loops, and designs of packages.
fn compile_libraries(args: &MarkerArgs, choice: &MarkerChoice, machine: &Machine) -> Result<MarkerLibraries, Failure> {
    let around = match (&args.around, &args.around_snippet) {
        (Some(file), _) => Some(UserLoop::File(file)),
        (None, Some(text)) => Some(UserLoop::Snippet(text)),
        (None, None) => None,
    };
    // The user's loops are compiled into this process.
    if choice.catalog.contexts.is_some() {
        return match around {
            None => Ok(MarkerLibraries::new_empty()),
            Some(_) => Err(Failure::from(Unavailable {
                what: "your own loop in ring 0".to_string(),
                why: "the module contains only markers compiled in its own loops".to_string(),
                remedy: "leave out --executor kernel".to_string(),
            })),
        };
    }
    let contexts: Vec<LoopContext> = choice.contexts.iter().map(|context| **context).collect();
    let cflags = args.cflags.as_deref();
    let request = marker_libraries::CompileRequest { designs: &choice.designs, contexts: &contexts, around, cflags };
    match choice.mode {
        CodeMode::Bits64 => MarkerLibraries::compile_requested(&request, machine),
        CodeMode::Bits32 => MarkerLibraries::compile_narrow(&request),
    }
}

/// Measures the requested markers.
struct MarkerRunner<'a> {
    common: &'a CommonArgs,
    args: &'a MarkerArgs,
    clock: Option<&'static Clock>,
    choice: &'a MarkerChoice,
    machine: &'a Machine,
    seed: u64,
}

impl MarkerRunner<'_> {
    /// Measures and reports.
    fn measure_and_report(&self, loaded: &LoadedMarkers, output: &mut Output) -> Result<u8, Failure> {
        let MarkerRunner { common, args, machine, .. } = *self;
        let repro = repro::format_repro(NAME, args, common, self.seed);
        let order = StudyOrder {
            exports: args.exports.clone(),
            ..StudyOrder::new(common, args.code_mode.mode(), machine, &repro)?
        };
        let mut study = self.build_study(loaded, &repro)?;
        drive_study(&MarkerView { prints_all: args.why }, &mut study, order, output)
    }

    /// Prints the code of the markers, and measures nothing.
    fn print_code(&self, loaded: &LoadedMarkers, output: &mut Output) -> Result<u8, Failure> {
        let MarkerRunner { common, clock, choice, machine, seed, .. } = *self;
        let request = RunRequest { clock, mode: choice.mode, quick: common.quick, seed, ..RunRequest::default() };
        let plan = request.make_plan(&common.capabilities(machine), machine)?;
        let ChosenBench { bench, skipped, .. } =
            bench::make_bench(BenchRequest { choice, machine, plan: &plan, loaded })?;
        let skipped: Vec<SkippedRecord> =
            skipped.into_iter().map(SkippedRecord::from).chain(loaded.absent.iter().cloned()).collect();
        let codes = read_codes(&*bench, choice.mode).map_err(Error::from)?;
        if output.is_json() {
            skipped.iter().try_for_each(|record| output.write_record("marker.skipped", record))?;
            codes.iter().try_for_each(|code| output.write_record("marker.code", code))?;
        } else {
            let mut page = TextPage::new(output);
            assembly::print_assembly(&mut page, &codes)?;
            tables::print_skipped(&mut page, &skipped)?;
        }
        Ok(if codes.is_empty() && !skipped.is_empty() { exit::UNAVAILABLE } else { exit::DONE })
    }

    fn build_study(&self, loaded: &LoadedMarkers, repro: &str) -> Result<MarkerStudy, Failure> {
        let MarkerRunner { common, args, clock, choice, machine, seed, .. } = *self;
        let request = RunRequest { clock, mode: choice.mode, quick: common.quick, seed, ..RunRequest::default() };
        let plan = request.make_plan(&common.capabilities(machine), machine)?;
        let ChosenBench { bench, skipped, contexts } =
            bench::make_bench(BenchRequest { choice, machine, plan: &plan, loaded })?;
        let skipped = skipped.into_iter().map(SkippedRecord::from);
        let open = executor::executor_opener(common, machine, plan.clock.reads_counter(), CodeOrigin::Own);
        let plan = MarkerPlan {
            mode: choice.mode,
            executor: choice.catalog.executor.to_string(),
            plan,
            quick: common.quick,
            contexts,
            emulated: machine.is_emulated(),
            cpu: machine.target_cpu(),
            cpu_model: machine.cpu.name(),
            skipped: skipped.chain(loaded.absent.iter().cloned()).collect(),
            counters: read_request(&args.events, machine)?,
        };
        let facts = to_json_value(machine).map_err(evidence_failure)?;
        Ok(MarkerStudy::new(plan, facts, repro.to_string(), bench, open))
    }
}

/// How `marker` presents its result.
struct MarkerView {
    /// Whether it prints all tables, however many designs were measured.
    prints_all: bool,
}

impl StudyView for MarkerView {
    type Study = MarkerStudy;

    fn print_text(&self, study: &MarkerStudy, output: &mut Output) -> Result<(), Failure> {
        let Some(found) = &study.found else { return Ok(()) };
        let records = &found.records;
        let mut page = TextPage::new(output);
        let designs = || MarkerCatalog::for_executor(records.first()?.executor).ok().map(|catalog| catalog.designs);
        let is_measured = |design: &&SiteDesign| records.iter().any(|record| record.design == design.name);
        // Few designs are explained, many are summed up.
        let many = designs().is_some_and(|all| 2 * all.iter().filter(is_measured).count() > all.len());
        if many && !self.prints_all {
            summary::print_summary(&mut page, found)?;
            return tables::print_events(&mut page, records);
        }
        print_details(&mut page, found)
    }

    fn pictures(&self, study: &MarkerStudy, machine: &str) -> Vec<Picture> {
        study.found.as_ref().map_or(Vec::new(), |found| plots::draw_contexts(&found.records, machine))
    }

    fn exit_code(&self, study: &MarkerStudy) -> u8 {
        let Some(MarkerFindings { records, skipped, .. }) = &study.found else { return exit::DONE };
        let refuted = |record: &MarkerRecord| record.calls.is_some_and(|calls| !calls.holds());
        match records.is_empty() {
            // None of the requested markers is available here.
            true if !skipped.is_empty() => exit::UNAVAILABLE,
            _ if records.iter().any(refuted) => exit::INTERNAL,
            _ => exit::DONE,
        }
    }

    fn print_replay_lines(&self, study: &MarkerStudy, output: &mut Output) -> Result<(), Failure> {
        let records = study.found.iter().flat_map(|found| &found.records);
        records.map(ReplayedCost::from).try_for_each(|replayed| output.write_record("marker.replay", &replayed))
    }
}

/// Prints a table for each context, and compares the document's figures and conclusions.
fn print_details(page: &mut TextPage, found: &MarkerFindings) -> Result<(), Failure> {
    let MarkerFindings { records, skipped, published } = found;
    tables::print_head(page, records)?;
    tables::print_contexts(page, records)?;
    tables::print_events(page, records)?;
    tables::print_skipped(page, skipped)?;
    tables::print_calls(page, records)?;
    let executor = records.first().map_or("user", |record| record.executor);
    document_comparison::print_figures(page, published, executor)?;
    document_comparison::print_conclusions(page, &published.conclusions)
}

/// Recomputes a survey from its evidence.
pub fn replay_marker(container: &EvidenceContainer, output: &mut Output) -> Result<u8, Failure> {
    replay_study::replay_study(&MarkerView { prints_all: false }, container, output)
}

/// A recomputed cost, kind `marker.replay`.
#[derive(Serialize)]
struct ReplayedCost<'a> {
    design: &'a str,
    state: &'a str,
    context: &'a str,
    cost: Quantity,
    visits: usize,
}

impl<'a> From<&'a MarkerRecord> for ReplayedCost<'a> {
    fn from(record: &'a MarkerRecord) -> ReplayedCost<'a> {
        let MarkerRecord { design, state, context, cost, visits, .. } = record;
        ReplayedCost { design, state, context, cost: *cost, visits: *visits }
    }
}
