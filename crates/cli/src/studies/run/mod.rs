//! `cyclescope run`: what a snippet costs.

mod report;

use crate::args::repro;
use crate::args::{self, Common, ReplayArgs, RunArgs};
use crate::input::calling::Calling;
use crate::input::function;
use crate::input::source;
use crate::input::target::{Found, Libraries, Loaded, Target};
use crate::output::{Failure, Output};
use crate::session::driver::{Order, StudyView, drive};
use crate::session::executor::{self, Code};
use crate::session::replay_study;
use cyclescope::error::{Cause, Error, RunError};
use cyclescope::machine::Machine;
use cyclescope::measure::Lengthen;
use cyclescope::program::Cold;
use cyclescope::record::exit;
use cyclescope::result::container::Container;
use cyclescope::run::Request;
use cyclescope::snippet::Snippet;
use cyclescope::study::Study;
use cyclescope::study::run::RunStudy;
use report::report;
use std::path::Path;
use std::time::Duration;

pub use cyclescope::study::run::NAME;

/// Runs the command and returns the exit code.
pub fn run(common: &Common, args: &RunArgs, output: &mut Output) -> Result<u8, Failure> {
    let request = request(common, args)?;
    let mut libraries = Libraries::default();
    let Found { target, machine, stdin } =
        Target::find(common, args, request.seed, &mut libraries, || common.machine())?;
    judge(common, &target, &request)?;
    let repro = repro(common, args, stdin, request.seed);
    // What is refused is refused before the library's constructors run.
    let exports = args.points.exports.clone();
    let order = Order { exports, ..Order::new(common, &machine, &repro)? };
    libraries.with(common.json, |loaded| {
        let study = study(common, &machine, (&target, loaded), &request, &repro)?;
        drive(&Run, &mut study.with_counts(args.counts), order, output)
    })
}

/// The command that repeats a run. What was read from standard input is in it as text.
fn repro(common: &Common, args: &RunArgs, stdin: Option<String>, seed: u64) -> String {
    let mut args = args.clone();
    args.source.snippet = stdin.or(args.source.snippet);
    repro::command(NAME, &args, common, seed)
}

/// How `run` looks.
struct Run;

impl StudyView for Run {
    type Study = RunStudy;

    fn text(&self, study: &RunStudy, output: &mut Output) -> Result<(), Failure> {
        study.found.as_ref().map_or(Ok(()), |record| report(record, output))
    }

    fn exit(&self, study: &RunStudy) -> u8 {
        let noisy = study.found.as_ref().is_some_and(|record| record.is_noisy());
        if noisy { exit::NOISY } else { exit::DONE }
    }

    fn failure(&self, study: &RunStudy, error: Error) -> Failure {
        failure(study, error)
    }
}

/// The failure for an error that ended a run.
pub fn failure(study: &RunStudy, error: Error) -> Failure {
    match error {
        Error::Run(RunError::BadBatch(bad)) if bad.part == "snippet" => {
            let remedy = format!("{} fit; --loop repeats them", bad.expected);
            Failure::usage(format!("{}: {}", bad.part, bad.what), Some(&remedy))
        }
        Error::Run(error) if study.is_of_function() => {
            let remedy = match (&error, &study.how().memory) {
                (RunError::Fault { address, cause: Cause::Access, .. }, Some(memory)) => {
                    Calling::remedy(memory, *address)
                }
                _ => None,
            };
            let failure = Failure::from(function::located(error, study.fault.as_ref()));
            match remedy {
                Some(remedy) => failure.with_remedy(&remedy),
                None => failure,
            }
        }
        error => error.into(),
    }
}

/// Computes a run again from its evidence.
pub fn replay(container: &Container, output: &mut Output) -> Result<u8, Failure> {
    replay_study::replay(&Run, container, output)
}

/// Measures again from evidence on this machine, and returns the exit code.
pub fn again(
    common: &Common,
    directory: &Path,
    container: &Container,
    output: &mut Output,
) -> Result<u8, Failure> {
    let kept = RunStudy::restore(container)?;
    if kept.is_of_function() {
        let remedy = "run the command in its manifest.json again";
        return Err(Failure::usage(
            "the evidence is of a library's function, whose code it does not contain",
            Some(remedy),
        ));
    }
    let (plan, subjects) = (kept.how(), kept.subjects()?);
    let snippets: Vec<Snippet> = subjects.into_iter().flat_map(|subject| subject.instances).collect();
    let clock = common.one_clock()?;
    let request = Request {
        clock: Some(clock.unwrap_or(plan.clock)),
        unroll: plan.unit,
        loop_count: plan.loop_count,
        lengthen: plan.lengthen,
        memory: plan.memory.clone(),
        cold: plan.cold,
        warm_up: plan.warm_up,
        samples: Some(plan.rounds),
        layouts: Some(plan.layouts),
        precision: Some(kept.asked()),
        aim: Some(plan.precision),
        confidence: Some(plan.confidence),
        budget: Some(plan.budget.min(Duration::from_secs(86_400))),
        seed: common.seed.unwrap_or(plan.seed),
        quick: common.quick,
    };
    let machine = common.machine()?;
    snippets.iter().try_for_each(|snippet| source::check(snippet, &machine))?;
    let again = ReplayArgs { dir: directory.to_path_buf(), measure: true };
    let repro = repro::command("replay", &again, common, request.seed);
    let target = Target::Snippets(snippets);
    judge(common, &target, &request)?;
    let study = study(common, &machine, (&target, &[]), &request, &repro)?;
    let order = Order::new(common, &machine, &repro)?;
    drive(&Run, &mut study.with_counts(kept.has_counts()), order, output)
}

/// Fails where the executor runs a snippet on no machine.
pub fn judge(common: &Common, target: &Target, request: &Request) -> Result<(), Failure> {
    let Target::Snippets(snippets) = target else { return Ok(()) };
    snippets.iter().try_for_each(|snippet| executor::judge(common, snippet, request.loop_count.is_some()))
}

/// The study of what is target, whose functions are loaded.
pub fn study(
    common: &Common,
    machine: &Machine,
    (target, loaded): (&Target, &[Loaded]),
    request: &Request,
    repro: &str,
) -> Result<RunStudy, Failure> {
    let call = if let Target::Call(_, with) = target { Some(with) } else { None };
    let called = call.map(|with| {
        let memory = Some(with.memory());
        Request { lengthen: Lengthen::Iterations, memory, ..request.clone() }
    });
    let request = called.as_ref().unwrap_or(request);
    let plan = request.plan(&common.capabilities(machine), machine)?;
    let code = if call.is_some() { Code::Functions } else { Code::Snippets };
    let open = executor::opening(common, machine, plan.clock.reads_counter(), code);
    let subjects = target.subjects(loaded);
    let study = RunStudy::new(&subjects[0], plan, request.asked(), machine, repro.to_string(), open);
    let serialized = call.and_then(|with| with.serialized);
    let study = study.with_setup(call.and_then(|with| with.setup.clone()));
    Ok(study.versus(subjects.get(1)).with_serialized(serialized, target.beside(loaded).as_ref()))
}

/// What the options ask for.
pub fn request(common: &Common, args: &RunArgs) -> Result<Request, Failure> {
    Ok(Request {
        clock: common.one_clock()?,
        unroll: args.unroll.map(|copies| copies as usize),
        loop_count: args.loop_count,
        lengthen: Lengthen::Copies,
        memory: None,
        cold: cold(args)?,
        warm_up: args.warm_up,
        samples: args.samples,
        layouts: args.layouts.map(|layouts| layouts as usize),
        precision: args.interval,
        aim: None,
        confidence: args.confidence,
        budget: args.budget.map(Duration::from_secs_f64),
        seed: common.chosen_seed(),
        quick: common.quick,
    })
}

fn cold(args: &RunArgs) -> Result<Cold, Failure> {
    let is = |what| args.cold.contains(&what);
    let cold = Cold {
        code: is(args::Cold::Code),
        data: is(args::Cold::Data),
        branches: is(args::Cold::Branches),
        tlb: is(args::Cold::Tlb),
    };
    if cold.is_any() && (args.unroll.is_some() || args.loop_count.is_some()) {
        return Err(Failure::usage("--cold measures one run, so it excludes --unroll and --loop", None));
    }
    Ok(cold)
}
