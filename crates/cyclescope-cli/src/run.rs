//! `cyclescope run`: what a snippet costs.

use crate::args::{self, Common, RunArgs};
use crate::evidence::{Place, recorded, unwritten};
use crate::executor;
use crate::failure::Failure;
use crate::function::{self, Function, Library};
use crate::isolated::isolated;
use crate::output::Output;
use crate::report::report;
use crate::{repro, source};
use cyclescope::clock::{self, Clock};
use cyclescope::error::{RunError, Unavailable};
use cyclescope::evidence::{Replay, RunFacts, STUDY};
use cyclescope::executor::Executor;
use cyclescope::machine::Machine;
use cyclescope::measure::{Plan, most_copies};
use cyclescope::program::Cold;
use cyclescope::record::{RunRecord, exit};
use cyclescope::result::container::Evidence;
use cyclescope::result::recording::ExecutorFacts;
use cyclescope::run::{Facts, Request, Run, run as measure};
use cyclescope::snippet::Snippet;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Runs the command and returns the exit code.
pub fn run(common: &Common, args: &RunArgs, output: &mut Output) -> Result<u8, Failure> {
    let request = request(common, args)?;
    if let Some(mut library) = Library::find(args)? {
        if executor::capabilities(common, &machine(common)?).library.is_err() {
            return Err(Failure::from(Unavailable {
                what: format!("a function in {}", common.offer().place),
                why: "it is in a library of a process, and nothing of a process is mapped there".to_string(),
                remedy: "measure it in user mode, or its code as a snippet with --hex".to_string(),
            }));
        }
        let place = Place::prepare(common)?;
        let json = common.json;
        let folder = library.folder.take();
        return isolated(
            || library.load(),
            folder,
            |function| call((common, args), function, &request, place.as_ref(), output),
            |failure| failure.report(json),
        );
    }
    let text = source::read(args)?;
    let (snippet, machine) = source::snippet(args, text.as_ref(), || machine(common))?;
    let stdin = text.as_ref().filter(|text| text.from_stdin).map(|text| text.text.as_str());
    let repro = repro::run(common, args, stdin, request.seed);
    answer(common, &machine, &snippet, &request, repro, output)
}

/// Measures a function: a call of it less a call of an empty one.
fn call(
    (common, args): (&Common, &RunArgs),
    function: &Function,
    request: &Request,
    place: Option<&Place>,
    output: &mut Output,
) -> Result<u8, Failure> {
    let machine = machine(common)?;
    let plan = request.plan(&executor::capabilities(common, &machine), &machine)?;
    let executor = executor::open(common, &machine, plan.clock.reads_counter())?;
    let repro = repro::run(common, args, None, plan.seed);
    let evidence = place.map(|place| place.begin(STUDY, &repro, &machine)).transpose()?;
    let mut executor = recorded(executor, evidence.as_ref());
    let mut facts = RunFacts::new(&machine, ExecutorFacts::of(executor.as_ref()), request.asked());
    let mut measure = |snippet: Snippet| {
        check_unroll(&plan, &snippet, executor.as_ref())?;
        let answer = Answer::measure(executor.as_mut(), &snippet, &plan, request)
            .map_err(|error| Failure::from(function::located(error, executor.last_fault())))?;
        facts.add(&snippet, &plan, &answer.run);
        Ok::<RunRecord, Failure>(answer.record)
    };
    let called = measure(function.snippet())?;
    let empty = measure(function.empty_snippet())?;
    executor::warn_of_neighbours(executor.as_ref(), machine.target_cpu());
    let record = RunRecord { repro, ..called.less_call(&empty, request.asked()) };
    finish(&record, &facts, evidence.as_deref(), output)?;
    output.finish()?;
    Ok(exit_code(&record))
}

/// Prints a result, then ends its evidence: the result must not be lost where that can't be written.
fn finish(
    record: &RunRecord,
    facts: &RunFacts,
    evidence: Option<&Evidence>,
    output: &mut Output,
) -> Result<(), Failure> {
    print(record, output)?;
    let Some(evidence) = evidence else { return Ok(()) };
    evidence.keep(|writer| {
        writer.set_facts(facts)?;
        writer.record("run", record)
    });
    evidence.finish().map_err(unwritten)
}

/// A measurement and its record.
struct Answer {
    run: Run,
    record: RunRecord,
}

impl Answer {
    fn measure(
        executor: &mut dyn Executor,
        snippet: &Snippet,
        plan: &Plan,
        request: &Request,
    ) -> Result<Answer, RunError> {
        let run = measure(executor, snippet, plan, request.asked())?;
        let machine = executor.machine();
        let record = run.record(&Facts {
            snippet,
            clock: plan.clock,
            confidence: plan.confidence,
            loop_count: plan.loop_count,
            cold: plan.cold,
            seed: plan.seed,
            executor: executor.name(),
            cpu: machine.target_cpu(),
            cpu_model: &machine.cpu.name(),
        });
        Ok(Answer { run, record })
    }
}

/// The exit code of a result.
pub fn exit_code(record: &RunRecord) -> u8 {
    if record.is_noisy() { exit::NOISY } else { exit::DONE }
}

/// Prints a result, as JSON or as text.
pub fn print(record: &RunRecord, output: &mut Output) -> Result<(), Failure> {
    if output.is_json() { output.record("run", record) } else { report(record, output) }
}

/// Measures again from evidence on this machine, and returns the exit code.
pub fn again(common: &Common, directory: &Path, replay: &Replay, output: &mut Output) -> Result<u8, Failure> {
    let (plan, snippet) = (replay.plan(), replay.snippet()?);
    let clock = one_clock(common)?;
    let request = Request {
        clock: Some(clock.unwrap_or(plan.clock)),
        unroll: plan.unit,
        loop_count: plan.loop_count,
        cold: plan.cold,
        warm_up: plan.warm_up,
        samples: Some(plan.rounds),
        layouts: Some(plan.layouts),
        precision: Some(replay.asked()),
        aim: Some(plan.precision),
        confidence: Some(plan.confidence),
        budget: Some(plan.budget.min(Duration::from_secs(86_400))),
        seed: common.seed.unwrap_or(plan.seed),
        quick: common.quick,
    };
    let machine = machine(common)?;
    source::check(&snippet, &machine)?;
    let repro = repro::replay(common, directory, request.seed);
    answer(common, &machine, &snippet, &request, repro, output)
}

/// Measures, keeps the evidence, reports.
fn answer(
    common: &Common,
    machine: &Machine,
    snippet: &Snippet,
    request: &Request,
    repro: String,
    output: &mut Output,
) -> Result<u8, Failure> {
    executor::judge(common, snippet, request.loop_count.is_some())?;
    let plan = request.plan(&executor::capabilities(common, machine), machine)?;
    let place = Place::prepare(common)?;
    let executor = executor::open(common, machine, plan.clock.reads_counter())?;
    check_unroll(&plan, snippet, executor.as_ref())?;
    let evidence = place.as_ref().map(|place| place.begin(STUDY, &repro, machine)).transpose()?;
    let mut executor = recorded(executor, evidence.as_ref());
    let mut facts = RunFacts::new(machine, ExecutorFacts::of(executor.as_ref()), request.asked());
    let Answer { run, record } = Answer::measure(executor.as_mut(), snippet, &plan, request)?;
    executor::warn_of_neighbours(executor.as_ref(), machine.target_cpu());
    facts.add(snippet, &plan, &run);
    let record = RunRecord { repro, ..record };
    finish(&record, &facts, evidence.as_deref(), output)?;
    Ok(exit_code(&record))
}

/// Fails where the bodies that were asked for do not fit the memory for code.
fn check_unroll(plan: &Plan, snippet: &Snippet, executor: &dyn Executor) -> Result<(), Failure> {
    let most = most_copies(executor.arena_len(), snippet);
    match plan.unit {
        Some(copies) if copies > most => {
            let text = format!("{copies} copies of this snippet are too many for the memory for code");
            Err(Failure::usage(text, Some(&format!("give --unroll at most {most}, or use --loop"))))
        }
        _ => Ok(()),
    }
}

fn request(common: &Common, args: &RunArgs) -> Result<Request, Failure> {
    Ok(Request {
        clock: one_clock(common)?,
        unroll: args.unroll.map(|copies| copies as usize),
        loop_count: args.loop_count,
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
