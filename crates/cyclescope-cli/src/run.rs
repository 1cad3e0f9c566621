//! `cyclescope run`: what a snippet costs.

use crate::args::{self, CallArgs, Common, RunArgs};
use crate::calling::Calling;
use crate::driver::{Front, Order, drive};
use crate::executor;
use crate::failure::Failure;
use crate::function::{self, Function, Library};
use crate::isolated::isolated;
use crate::output::Output;
use crate::report::report;
use crate::{repro, source};
use cyclescope::clock::{self, Clock};
use cyclescope::error::{Cause, Error, RunError, Unavailable};
use cyclescope::machine::Machine;
use cyclescope::measure::Lengthen;
use cyclescope::program::Cold;
use cyclescope::record::exit;
use cyclescope::result::container::Container;
use cyclescope::run::Request;
use cyclescope::snippet::Snippet;
use cyclescope::study::Study;
use cyclescope::study::run::{RunStudy, Subject};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use cyclescope::study::run::NAME;

/// Runs the command and returns the exit code.
pub fn run(common: &Common, args: &RunArgs, output: &mut Output) -> Result<u8, Failure> {
    let request = request(common, args)?;
    if let Some((mut library, versus)) = Library::find(args)? {
        let calling = Calling::new(&args.call_with, request.seed)?;
        let folder = library.folder.take();
        if let Some(snippet) = library.region(args, folder.as_ref())? {
            require_call(&args.call_with)?;
            let other = versus.map(|versus| versus.region(args, folder.as_ref())).transpose()?;
            if other == Some(None) {
                let remedy = "mark the region to compare with CYCLESCOPE_BODY in both, or in neither";
                return Err(Failure::usage("only the first file marks a region", Some(remedy)));
            }
            let other = other.flatten();
            let machine = machine(common)?;
            for snippet in [Some(&snippet), other.as_ref()].into_iter().flatten() {
                source::require_loop_register(args, snippet)?;
                source::check(snippet, &machine)?;
            }
            let repro = repro::run(common, args, None, request.seed);
            let subjects = [Some(snippet), other].into_iter().flatten().collect();
            return answer(common, &machine, subjects, &request, args.counts, repro, output);
        }
        let machine = machine(common)?;
        if executor::capabilities(common, &machine).library.is_err() {
            return Err(Failure::from(Unavailable {
                what: format!("a function in {}", common.offer().place),
                why: "it is in a library of a process, and nothing of a process is mapped there".to_string(),
                remedy: "measure it in user mode, or its code as a snippet with --hex".to_string(),
            }));
        }
        let repro = repro::run(common, args, None, request.seed);
        // What is refused is refused before the library's constructors run.
        let order = Order::new(common, &machine, &repro)?;
        let json = common.json;
        return isolated(
            || {
                let load = |library: &Library| library.load(calling.setup.as_deref());
                Ok([Some(load(&library)?), versus.as_ref().map(load).transpose()?])
            },
            folder,
            |functions| call(common, (functions, &calling), &request, args.counts, order, output),
            |failure| failure.report(json),
        );
    }
    let text = source::read(args)?;
    let (snippet, machine) = source::snippet(args, text.as_ref(), || machine(common))?;
    let mut subjects = vec![snippet];
    if let Some(versus) = &args.versus {
        subjects.push(source::versus(args, versus, &machine)?);
    }
    let stdin = text.as_ref().filter(|text| text.from_stdin).map(|text| text.text.as_str());
    let repro = repro::run(common, args, stdin, request.seed);
    answer(common, &machine, subjects, &request, args.counts, repro, output)
}

/// Measures a function: a call of it less a call of an empty one; and another beside it.
fn call(
    common: &Common,
    (functions, with): (&[Option<Function>; 2], &Calling),
    request: &Request,
    counts: bool,
    order: Order,
    output: &mut Output,
) -> Result<u8, Failure> {
    let memory = Some(with.memory());
    let request = Request { lengthen: Lengthen::Iterations, memory, ..request.clone() };
    let subjects: Vec<Subject> = functions.iter().flatten().map(|function| function.subject(with)).collect();
    let study = study(common, order.machine, &subjects, &request, order.repro)?.with_counts(counts);
    drive(&Run, &mut study.with_serialized(with.serialized), order, output)
}

/// A region is no function.
fn require_call(args: &CallArgs) -> Result<(), Failure> {
    if !args.is_given() {
        return Ok(());
    }
    let remedy =
        "leave CYCLESCOPE_BODY out to measure the function, or the options on its arguments and memory";
    Err(Failure::usage("a region is measured, which is not called", Some(remedy)))
}

/// How `run` looks.
struct Run;

impl Front for Run {
    type Study = RunStudy;

    fn text(&self, study: &RunStudy, output: &mut Output) -> Result<(), Failure> {
        study.found.as_ref().map_or(Ok(()), |record| report(record, output))
    }

    fn exit(&self, study: &RunStudy) -> u8 {
        let noisy = study.found.as_ref().is_some_and(|record| record.is_noisy());
        if noisy { exit::NOISY } else { exit::DONE }
    }

    fn failure(&self, study: &RunStudy, error: Error) -> Failure {
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
}

/// Computes a run again from its evidence.
pub fn replay(container: &Container, output: &mut Output) -> Result<u8, Failure> {
    crate::again::again(&Run, container, output)
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
    let clock = one_clock(common)?;
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
    let machine = machine(common)?;
    snippets.iter().try_for_each(|snippet| source::check(snippet, &machine))?;
    let repro = repro::replay(common, directory, request.seed);
    answer(common, &machine, snippets, &request, kept.has_counts(), repro, output)
}

/// Measures, keeps the evidence, reports.
fn answer(
    common: &Common,
    machine: &Machine,
    snippets: Vec<Snippet>,
    request: &Request,
    counts: bool,
    repro: String,
    output: &mut Output,
) -> Result<u8, Failure> {
    for snippet in &snippets {
        executor::judge(common, snippet, request.loop_count.is_some())?;
    }
    let subjects: Vec<Subject> = snippets.into_iter().map(Subject::from).collect();
    let mut study = study(common, machine, &subjects, request, &repro)?.with_counts(counts);
    drive(&Run, &mut study, Order::new(common, machine, &repro)?, output)
}

fn study(
    common: &Common,
    machine: &Machine,
    subjects: &[Subject],
    request: &Request,
    repro: &str,
) -> Result<RunStudy, Failure> {
    let plan = request.plan(&executor::capabilities(common, machine), machine)?;
    let opening = if plan.memory.is_some() { executor::opening_with_heap } else { executor::opening };
    let open = opening(common, machine, plan.clock.reads_counter());
    let study = RunStudy::new(&subjects[0], plan, request.asked(), machine, repro.to_string(), open);
    Ok(study.versus(subjects.get(1)))
}

fn request(common: &Common, args: &RunArgs) -> Result<Request, Failure> {
    Ok(Request {
        clock: one_clock(common)?,
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
        seed: common.seed.unwrap_or_else(seed),
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

/// A seed from the time; any is good, as long as the result shows it.
pub fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // 53 bits survive every JSON reader.
    now.as_nanos() as u64 & ((1 << 53) - 1)
}

/// The timing method that was asked for, where only one can be.
pub fn one_clock(common: &Common) -> Result<Option<&'static Clock>, Failure> {
    match common.clock.as_slice() {
        [] => Ok(None),
        [name] => find_clock(name).map(Some),
        _ => Err(Failure::usage("this command takes one clock", Some("`cyclescope evaluate` takes several"))),
    }
}

/// The timing method of this name.
pub fn find_clock(name: &str) -> Result<&'static Clock, Failure> {
    Clock::named(name).ok_or_else(|| {
        let names = clock::ALL.iter().map(|clock| clock.name);
        let nearest = cyclescope::asm::nearest(&name.to_lowercase(), names);
        let remedy = match nearest.first() {
            Some(nearest) => format!("did you mean {nearest}? `cyclescope --clock list` shows all"),
            None => "`cyclescope --clock list` shows all".to_string(),
        };
        Failure::usage(format!("there is no clock {name}"), Some(&remedy))
    })
}

/// The machine's facts, for the CPU that was asked for.
pub fn machine(common: &Common) -> Result<Machine, Failure> {
    Ok(match common.cpu {
        Some(cpu) => Machine::detect_on(cpu)?,
        None => Machine::detect(),
    })
}
