//! `cyclescope run`: what a snippet costs.

use crate::args::{self, Common, RunArgs};
use crate::executor;
use crate::failure::Failure;
use crate::function::{self, Function, Library};
use crate::isolated::isolated;
use crate::output::Output;
use crate::report::report;
use crate::{repro, source};
use cyclescope::clock::{self, Clock};
use cyclescope::error::{RunError, Unavailable};
use cyclescope::evidence::{self, Replay};
use cyclescope::executor::Executor;
use cyclescope::machine::Machine;
use cyclescope::measure::{Plan, most_copies};
use cyclescope::program::Cold;
use cyclescope::record::{RunRecord, exit};
use cyclescope::run::{Facts, Request, Run, run as measure};
use cyclescope::snippet::Snippet;
use std::io;
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
        let _directory = prepare_evidence(common)?;
        let json = common.json;
        let folder = library.folder.take();
        return isolated(
            || library.load(),
            folder,
            |function| call(common, args, function, &request, output),
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
    common: &Common,
    args: &RunArgs,
    function: &Function,
    request: &Request,
    output: &mut Output,
) -> Result<u8, Failure> {
    let machine = machine(common)?;
    let plan = request.plan(&executor::capabilities(common, &machine), &machine)?;
    let mut executor = executor::open(common, &machine, plan.clock.reads_counter())?;
    let mut measure = |snippet: Snippet| {
        check_unroll(&plan, &snippet, executor.as_ref())?;
        let answer = Answer::measure(executor.as_mut(), snippet, &plan, request);
        answer.map_err(|error| Failure::from(function::located(error, executor.last_fault())))
    };
    let mut called = measure(function.snippet())?;
    let empty = measure(function.empty_snippet())?;
    executor::warn_of_neighbours(executor.as_ref(), machine.target_cpu());
    called.record.repro = repro::run(common, args, None, plan.seed);
    let record = called.record.clone().less_call(&empty.record, request.asked());
    print(&record, output)?;
    if let Some(directory) = &common.evidence {
        called.write(directory, &machine, &plan, request)?;
        let directory = directory.join(evidence::EMPTY_CALL);
        evidence::prepare(&directory).map_err(unwritten)?;
        empty.write(&directory, &machine, &plan, request)?;
    }
    output.finish()?;
    Ok(exit_code(&record))
}

/// A measurement and its record.
struct Answer {
    snippet: Snippet,
    run: Run,
    record: RunRecord,
}

impl Answer {
    fn measure(
        executor: &mut dyn Executor,
        snippet: Snippet,
        plan: &Plan,
        request: &Request,
    ) -> Result<Answer, RunError> {
        let run = measure(executor, &snippet, plan, request.asked())?;
        let machine = executor.machine();
        let record = run.record(&Facts {
            snippet: &snippet,
            clock: plan.clock,
            confidence: plan.confidence,
            loop_count: plan.loop_count,
            cold: plan.cold,
            seed: plan.seed,
            executor: executor.name(),
            cpu: machine.target_cpu(),
            cpu_model: &machine.cpu.name(),
        });
        Ok(Answer { snippet, run, record })
    }

    fn write(
        &self,
        directory: &Path,
        machine: &Machine,
        plan: &Plan,
        request: &Request,
    ) -> Result<(), Failure> {
        let Answer { snippet, run, record } = self;
        evidence::write(directory, machine, snippet, plan, run, record, request.asked()).map_err(unwritten)
    }
}

fn unwritten(error: io::Error) -> Failure {
    Failure::internal(format!("writing evidence failed: {error}"))
        .with_remedy("the result itself is complete")
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
    let plan = &replay.plan;
    let clock = one_clock(common)?;
    let request = Request {
        clock: Some(clock.unwrap_or(replay.clock)),
        unroll: plan.unit_fixed.then_some(plan.unit),
        loop_count: plan.loop_count,
        cold: plan.cold,
        warm_up: plan.warm_up_fixed.then_some(plan.warm_up),
        samples: Some(plan.rounds),
        layouts: Some(plan.first_layouts),
        precision: Some(plan.asked),
        aim: Some(plan.aim),
        confidence: Some(plan.confidence),
        budget: Some(Duration::from_secs_f64(plan.budget_s.clamp(0.0, 86_400.0))),
        seed: common.seed.unwrap_or(plan.seed),
        quick: common.quick,
        keep_evidence: common.evidence.is_some(),
    };
    let machine = machine(common)?;
    source::check(&replay.snippet, &machine)?;
    let repro = repro::replay(common, directory, request.seed);
    answer(common, &machine, &replay.snippet, &request, repro, output)
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
    let _directory = prepare_evidence(common)?;
    let mut executor = executor::open(common, machine, plan.clock.reads_counter())?;
    check_unroll(&plan, snippet, executor.as_ref())?;
    let mut answer = Answer::measure(executor.as_mut(), snippet.clone(), &plan, request)?;
    executor::warn_of_neighbours(executor.as_ref(), machine.target_cpu());
    answer.record.repro = repro;
    // First the result: it must not be lost where its evidence can't be written.
    print(&answer.record, output)?;
    if let Some(directory) = &common.evidence {
        answer.write(directory, machine, &plan, request)?;
    }
    Ok(exit_code(&answer.record))
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

/// A new directory for evidence, which goes again if it stays empty.
struct Prepared<'a> {
    directory: &'a Path,
    existed: bool,
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        if !self.existed {
            // Fails where evidence was written, as it should.
            let _ = std::fs::remove_dir(self.directory);
        }
    }
}

fn prepare_evidence(common: &Common) -> Result<Option<Prepared<'_>>, Failure> {
    let Some(directory) = &common.evidence else { return Ok(None) };
    let existed = directory.exists();
    evidence::prepare(directory).map_err(|error| {
        let remedy = "name a new or an empty directory, where you may write";
        Failure::usage(
            format!("no evidence can be written to {}: {error}", directory.display()),
            Some(remedy),
        )
    })?;
    Ok(Some(Prepared { directory, existed }))
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
        keep_evidence: common.evidence.is_some(),
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
