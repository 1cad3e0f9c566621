//! `cyclescope run`: measures the cost of a snippet or a function.

mod cost_text;
mod mix_report;
pub mod option_needs;
pub mod ranking;
mod report;
mod timed_program;

use crate::args::repro;
use crate::args::{self, CommonArgs, ReplayArgs, RunArgs};
use crate::input::call_parameters::CallParameters;
use crate::input::event_request::read_request;
use crate::input::function_fault;
use crate::input::mix_source::MixTarget;
use crate::input::source;
use crate::input::target::{FoundTarget, FunctionLibraries, LoadedFunction, RunTarget};
use crate::output::{Failure, Output};
use crate::session::background_load::shared_memory;
use crate::session::driver::{StudyOrder, StudyView, drive_study};
use crate::session::executor::{self, CodeOrigin};
use crate::session::replay_study;
use cyclescope::asm::CodeMode;
use cyclescope::error::{Error, FaultCause, RunError};
use cyclescope::machine::Machine;
use cyclescope::measure::LengthenBy;
use cyclescope::program::ColdStart;
use cyclescope::record::{SerializedBy, exit};
use cyclescope::result::container::EvidenceContainer;
use cyclescope::run::RunRequest;
use cyclescope::snippet::Snippet;
use cyclescope::study::Study;
use cyclescope::study::run::RunStudy;
use option_needs::{CommandSubject, require_needs};
use report::print_report;
use std::path::Path;
use std::time::Duration;
use timed_program::TimedProgram;

pub use cyclescope::study::run::NAME;

/// Runs the command and returns the exit code.
pub fn measure_target(common: &CommonArgs, args: &RunArgs, output: &mut Output) -> Result<u8, Failure> {
    let request = build_request(common, args)?;
    let mut libraries = FunctionLibraries::default();
    let FoundTarget { target, names, machine } =
        RunTarget::find_target(common, args, request.seed, &mut libraries, || common.detect_machine())?;
    require_needs(common, args, CommandSubject { has_points: false, is_function: target.is_function() })?;
    require_runnable(common, &target)?;
    let counters = read_request(&args.events, &machine)?;
    let written = match (&args.write_elf, &target) {
        (Some(path), RunTarget::Snippets(snippets)) => {
            Some(TimedProgram::prepare(path, common, &snippets[0], &machine)?)
        }
        _ => None,
    };
    let repro = repro::format_repro(NAME, args, common, request.seed);
    // Everything is validated before the library's constructors run.
    let exports = args.points.exports.clone();
    let order = StudyOrder { exports, ..StudyOrder::new(common, args.code_mode.mode(), &machine, &repro)? };
    libraries.load_and_run(common.json, |loaded| {
        let study = build_study(common, &machine, (&target, loaded), &request, &repro)?;
        let study = study.with_variant_names(names).with_advice_texts(source::read_advice_texts(args));
        let study = study.with_raw_readings(args.counts).with_counters(counters.clone());
        let mut study = study.with_both_figures(args.source.mix.is_none());
        drive_study(&RunView { written, prints_orders: args.orders }, &mut study, order, output)
    })
}

/// How `run` presents its result.
#[derive(Default)]
struct RunView<'a> {
    /// The timed program to write as a file.
    written: Option<TimedProgram<'a>>,
    /// Whether the cost of each order of a mix is printed.
    prints_orders: bool,
}

impl StudyView for RunView<'_> {
    type Study = RunStudy;

    fn print_text(&self, study: &RunStudy, output: &mut Output) -> Result<(), Failure> {
        study.record.as_ref().map_or(Ok(()), |record| print_report(record, self.prints_orders, output))
    }

    fn prints_caveats(&self) -> bool {
        true
    }

    fn exit_code(&self, study: &RunStudy) -> u8 {
        let short = study.record.as_ref().is_some_and(|record| record.falls_short());
        if short { exit::FELL_SHORT } else { exit::DONE }
    }

    fn write_rest(&self, study: &RunStudy, output: &mut Output) -> Result<(), Failure> {
        match (&self.written, &study.record) {
            (Some(written), Some(record)) => written.write(record, output),
            _ => Ok(()),
        }
    }

    fn to_failure(&self, study: &RunStudy, error: Error) -> Failure {
        explain_failure(study, error)
    }
}

/// Remedy for a function after which nothing can run.
fn describe_kept_registers(mode: CodeMode) -> String {
    let registers = match mode {
        CodeMode::Bits64 => "RBX, RBP, RSP and R12 to R15",
        CodeMode::Bits32 => "EBX, EBP, ESI, EDI and ESP",
    };
    format!(
        "the function must keep {registers} as they were, and call only code that exists: save these registers, or list \
         them as clobbered in inline assembly"
    )
}

/// The failure for an error that ended a run.
pub fn explain_failure(study: &RunStudy, error: Error) -> Failure {
    match error {
        Error::Run(RunError::BadBatch(bad)) if bad.part == "snippet" => {
            let remedy = format!("use {}, and --loop to repeat them", bad.expected);
            Failure::usage(format!("{}: {}", bad.part, bad.what), Some(&remedy))
        }
        Error::Run(error @ (RunError::Fault { .. } | RunError::Hung { .. })) if study.region().is_some() => {
            let remedy = "the region does not do the same in each execution, so it can't be measured this way; choose \
                          another one, or another arrival with --hit";
            Failure::from(error).with_subject("the region did not end as in the run").with_remedy(remedy)
        }
        Error::Run(RunError::Fault { .. })
            if study.is_function_call()
                && let Some(failure) = study.fault.as_ref().and_then(function_fault::explain_end) =>
        {
            failure
        }
        Error::Run(error) if study.is_function_call() => {
            let mode = study.subjects().map_or(CodeMode::default(), |subjects| subjects[0].instances[0].mode());
            let kept_registers = describe_kept_registers(mode);
            let remedy = match (&error, &study.measurement_plan().memory) {
                (RunError::Fault { address, cause: FaultCause::Access, .. }, Some(memory)) => {
                    CallParameters::remedy_for_address(memory, *address, mode)
                }
                // The call's own code uses these registers after the function.
                (RunError::Fault { cause: FaultCause::Fetch, instruction: None, .. }, _) => Some(kept_registers),
                (RunError::Hung { .. }, _) => Some(format!("{}; {kept_registers}", error.remedy())),
                _ => None,
            };
            let failure = Failure::from(function_fault::locate_fault(error, study.fault.as_ref()));
            match remedy {
                Some(remedy) => failure.with_remedy(&remedy),
                None => failure,
            }
        }
        error => error.into(),
    }
}

/// Recomputes a run from its evidence.
pub fn replay_run(container: &EvidenceContainer, output: &mut Output) -> Result<u8, Failure> {
    replay_study::replay_study(&RunView::default(), container, output)
}

/// Measures again on this machine what evidence describes, and returns the exit code.
pub fn measure_again(
    common: &CommonArgs,
    directory: &Path,
    container: &EvidenceContainer,
    output: &mut Output,
) -> Result<u8, Failure> {
    let kept = RunStudy::restore(container)?;
    if kept.region().is_some() {
        let remedy = "run the command in its manifest.json";
        return Err(Failure::usage("the region is measured again in a new run of its program", Some(remedy)));
    }
    if kept.is_function_call() {
        let remedy = "run the command in its manifest.json";
        return Err(Failure::usage("the evidence does not contain the code of the library's function", Some(remedy)));
    }
    let (plan, subjects) = (kept.measurement_plan(), kept.subjects()?);
    let snippets: Vec<Snippet> = subjects.into_iter().flat_map(|subject| subject.instances).collect();
    let clock = common.one_clock()?;
    let request = RunRequest {
        clock: Some(clock.unwrap_or(plan.clock)),
        mode: snippets.first().map_or(CodeMode::default(), Snippet::mode),
        unroll: plan.unit,
        loop_count: plan.loop_count,
        lengthen: Some(plan.lengthen),
        memory: plan.memory.clone(),
        cold: plan.cold,
        warm_up: plan.warm_up,
        samples: Some(plan.rounds),
        layouts: Some(plan.layouts),
        required: Some(kept.required_precision()),
        aim: Some(plan.precision),
        confidence: Some(plan.confidence),
        budget: Some(plan.budget.min(Duration::from_secs(86_400))),
        seed: common.seed.unwrap_or(plan.seed),
        quick: common.quick,
    };
    let machine = common.detect_machine()?;
    snippets.iter().try_for_each(|snippet| source::check_machine_code(snippet, &machine))?;
    let again = ReplayArgs { dir: directory.to_path_buf(), measure: true };
    let repro = repro::format_repro("replay", &again, common, request.seed);
    let mode = snippets.first().map(Snippet::mode).unwrap_or_default();
    let target = match kept.mix() {
        Some(record) => RunTarget::Mix(MixTarget { snippets, record: record.clone() }),
        None => RunTarget::Snippets(snippets),
    };
    require_runnable(common, &target)?;
    let study = build_study(common, &machine, (&target, &[]), &request, &repro)?;
    let order = StudyOrder::new(common, mode, &machine, &repro)?;
    let study = study.with_variant_names(kept.variant_names().to_vec()).with_counters(kept.counters().cloned());
    let mut study = study.with_raw_readings(kept.wants_raw_readings()).with_both_figures(kept.wants_both_figures());
    drive_study(&RunView::default(), &mut study, order, output)
}

/// Fails if the executor can run this snippet on no machine.
pub fn require_runnable(common: &CommonArgs, target: &RunTarget) -> Result<(), Failure> {
    let (RunTarget::Snippets(snippets) | RunTarget::Mix(MixTarget { snippets, .. })) = target else { return Ok(()) };
    snippets.iter().try_for_each(|snippet| executor::require_runnable(common, snippet))
}

/// Builds the study of a target, whose functions are loaded.
pub fn build_study(
    common: &CommonArgs,
    machine: &Machine,
    (target, loaded): (&RunTarget, &[LoadedFunction]),
    request: &RunRequest,
    repro: &str,
) -> Result<RunStudy, Failure> {
    let call = target.called_functions().map(|called| &called.calling);
    let region = if let RunTarget::Region(region) = target { Some(region) } else { None };
    let memory = call.map(|with| with.program_memory()).or(region.map(|region| region.memory.clone()));
    let shared = match target {
        RunTarget::Snippets(snippets) if common.beside_shared => Some(shared_memory(&snippets[0], machine)),
        _ => None,
    };
    let shared = shared.map(|memory| RunRequest { memory: Some(memory), ..request.clone() });
    let called = memory.map(|memory| RunRequest {
        lengthen: Some(LengthenBy::Iterations),
        memory: Some(memory),
        ..request.clone()
    });
    let called = called.or(shared);
    let request = called.as_ref().unwrap_or(request);
    let plan = request.make_plan(&common.capabilities(machine), machine)?;
    let code = if call.is_some() { CodeOrigin::Functions } else { CodeOrigin::Snippets };
    let open = executor::executor_opener(common, machine, plan.clock.reads_counter(), code);
    let subjects = target.build_subjects(loaded);
    let study = RunStudy::new(&subjects[0], plan, request.required_precision(), machine, repro.to_string(), open);
    // A region begins and ends with a fence.
    let serialized = call.map_or(region.map(|_| SerializedBy::Fence), |with| with.serialized);
    let study =
        study.with_setup(call.and_then(|with| with.setup.clone())).with_call(call.map(|with| with.describe_call()));
    let study = study.with_region(region.map(|region| region.record.clone())).with_mix(target.mix().cloned());
    Ok(study
        .with_other_variants(&subjects[1..])
        .with_serialized(serialized, target.counterpart_subject(loaded).as_ref()))
}

/// Builds the request from the options.
pub fn build_request(common: &CommonArgs, args: &RunArgs) -> Result<RunRequest, Failure> {
    Ok(RunRequest {
        clock: common.one_clock()?,
        mode: args.code_mode.mode(),
        unroll: args.unroll.map(|copies| copies as usize),
        loop_count: args.loop_count,
        lengthen: None,
        memory: None,
        cold: parse_cold(args)?,
        warm_up: args.warm_up,
        samples: args.samples,
        layouts: args.layouts.map(|layouts| layouts as usize),
        required: args.interval,
        aim: None,
        confidence: args.confidence,
        budget: args.budget.map(Duration::from_secs_f64),
        seed: common.chosen_seed(),
        quick: common.quick,
    })
}

fn parse_cold(args: &RunArgs) -> Result<ColdStart, Failure> {
    let is = |what| args.cold.contains(&what);
    let cold = ColdStart {
        code: is(args::ColdPart::Code),
        data: is(args::ColdPart::Data),
        branches: is(args::ColdPart::Branches),
        tlb: is(args::ColdPart::Tlb),
    };
    if cold.is_any() && (args.unroll.is_some() || args.loop_count.is_some()) {
        let remedy = "leave out --unroll and --loop";
        return Err(Failure::usage("--cold measures only one run of the snippet", Some(remedy)));
    }
    Ok(cold)
}
