//! `cyclescope run`: what a snippet costs.

use crate::args::{self, Common, ExecutorName, RunArgs};
use crate::failure::Failure;
use crate::function::{self, Function};
use crate::output::Output;
use crate::{repro, source};
use cyclescope::clock::{self, Clock};
use cyclescope::error::Unavailable;
use cyclescope::evidence::{self, Replay};
use cyclescope::executor::user::{User, UserOptions};
use cyclescope::machine::Machine;
use cyclescope::measure::Plan;
use cyclescope::program::Cold;
use cyclescope::record::{Quantity, RunRecord, exit};
use cyclescope::run::{Facts, Request, Run, run as measure};
use cyclescope::snippet::Snippet;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Runs the command and returns the exit code.
pub fn run(common: &Common, args: &RunArgs, output: &mut Output) -> Result<u8, Failure> {
    let request = request(common, args)?;
    prepare_evidence(common)?;
    if args.source.c.is_none() && args.source.lib.is_none() {
        let machine = machine(common)?;
        let snippet = source::snippet(args, &machine)?;
        let repro = repro::run(common, args, request.seed);
        return answer(common, &machine, &snippet, &request, repro, output);
    }
    function::isolated(|| {
        let done = call(common, args, &request, output).and_then(|code| output.finish().map(|()| code));
        done.unwrap_or_else(|failure| failure.report(common.json))
    })
}

/// Measures a function: a call of it less a call of an empty one.
fn call(common: &Common, args: &RunArgs, request: &Request, output: &mut Output) -> Result<u8, Failure> {
    let Some(function) = Function::load(args)? else {
        return Err(Failure::internal("there is no function to call"));
    };
    let machine = machine(common)?;
    let plan = request.plan(&machine)?;
    let mut executor = executor(common, &machine, &plan)?;
    let called = Answer::measure(&machine, &mut executor, function.snippet(), &plan, request)?;
    let empty = Answer::measure(&machine, &mut executor, function.empty_snippet(), &plan, request)?;
    let mut record = called.record.clone().less_call(&empty.record, request.asked());
    record.repro = repro::run(common, args, plan.seed);
    if let Some(directory) = &common.evidence {
        called.write(directory, &machine, &plan, request)?;
        empty.write(&directory.join(evidence::EMPTY_CALL), &machine, &plan, request)?;
    }
    print(&record, output)?;
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
        machine: &Machine,
        executor: &mut User,
        snippet: Snippet,
        plan: &Plan,
        request: &Request,
    ) -> Result<Answer, Failure> {
        let run = measure(machine, executor, &snippet, plan, request.asked())?;
        let record = run.record(&Facts {
            snippet: &snippet,
            clock: plan.clock,
            confidence: plan.confidence,
            loop_count: plan.loop_count,
            cold: plan.cold,
            seed: plan.seed,
            executor: "user",
            cpu: target(machine),
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
        evidence::prepare(directory)
            .and_then(|()| {
                evidence::write(
                    directory,
                    machine,
                    &self.snippet,
                    plan,
                    &self.run,
                    &self.record,
                    request.asked(),
                )
            })
            .map_err(|error| Failure::internal(format!("writing evidence failed: {error}")))
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

/// Measures what evidence holds again, here and now, and returns the exit code.
pub fn again(common: &Common, replay: &Replay, output: &mut Output) -> Result<u8, Failure> {
    let plan = &replay.plan;
    let request = Request {
        clock: Some(replay.clock),
        unroll: plan.unit_fixed.then_some(plan.unit),
        loop_count: plan.loop_count,
        cold: plan.cold,
        samples: Some(plan.rounds),
        precision: Some(plan.asked),
        confidence: Some(plan.confidence),
        seed: common.seed.unwrap_or(plan.seed),
        quick: common.quick,
        keep_evidence: common.evidence.is_some(),
        ..Request::default()
    };
    prepare_evidence(common)?;
    let machine = machine(common)?;
    source::check(&replay.snippet, &machine)?;
    answer(common, &machine, &replay.snippet, &request, String::new(), output)
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
    let plan = request.plan(machine)?;
    let mut executor = executor(common, machine, &plan)?;
    let mut answer = Answer::measure(machine, &mut executor, snippet.clone(), &plan, request)?;
    answer.record.repro = repro;
    if let Some(directory) = &common.evidence {
        answer.write(directory, machine, &plan, request)?;
    }
    print(&answer.record, output)?;
    Ok(exit_code(&answer.record))
}

fn prepare_evidence(common: &Common) -> Result<(), Failure> {
    let Some(directory) = &common.evidence else { return Ok(()) };
    evidence::prepare(directory).map_err(|error| {
        let remedy = "name a new or an empty directory";
        Failure::usage(format!("no evidence can go to {}: {error}", directory.display()), Some(remedy))
    })
}

fn request(common: &Common, args: &RunArgs) -> Result<Request, Failure> {
    Ok(Request {
        clock: common.clock.as_deref().map(find_clock).transpose()?,
        unroll: args.unroll.map(|copies| copies as usize),
        loop_count: args.loop_count,
        cold: cold(args)?,
        warm_up: args.warm_up,
        samples: args.samples,
        layouts: args.layouts.map(|layouts| layouts as usize),
        precision: args.interval,
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
        return Err(Failure::usage(
            "a first run is one run: --cold goes with neither --unroll nor --loop",
            None,
        ));
    }
    Ok(cold)
}

/// A seed from the time: any will do, it only has to be told.
pub fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // 53 bits survive every JSON reader.
    now.as_nanos() as u64 & ((1 << 53) - 1)
}

/// The timing method of this name.
pub fn find_clock(name: &str) -> Result<&'static Clock, Failure> {
    Clock::named(name).ok_or_else(|| {
        let names = clock::ALL.iter().map(|clock| clock.name);
        let nearest = cyclescope::asm::nearest(name, names);
        let remedy = match nearest.first() {
            Some(nearest) => format!("did you mean {nearest}? `--clock list` shows all"),
            None => "`--clock list` shows all".to_string(),
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

/// Fails where another executor than user mode is asked for.
pub fn require_user_mode(common: &Common) -> Result<(), Failure> {
    if common.executor == ExecutorName::Kernel {
        return Err(Failure::from(Unavailable {
            what: "executor kernel".to_string(),
            why: "this version has no kernel module".to_string(),
            remedy: "leave --executor out to measure in user mode".to_string(),
        }));
    }
    Ok(())
}

fn executor(common: &Common, machine: &Machine, plan: &Plan) -> Result<User, Failure> {
    require_user_mode(common)?;
    let cpu = target(machine) as usize;
    Ok(User::spawn(&UserOptions { cpu, counter: plan.clock.reads_counter(), ..UserOptions::default() })?)
}

/// The CPU to measure on; the first where the system does not tell which are allowed.
fn target(machine: &Machine) -> u32 {
    machine.target.as_ref().map_or(0, |target| target.cpu)
}

fn report(record: &RunRecord, output: &mut Output) -> Result<(), Failure> {
    output.line(&record.snippet)?;
    output.line("")?;
    output.line(format!("  {}", headline(record, output)))?;
    for mode in &record.modes {
        let share = format!("{:.0} % of the layouts", 100.0 * mode.share);
        output.line(format!("    {:<28} {share}", plus_minus(&mode.cost, "core cycles")))?;
    }
    output.line("")?;
    if let Some(call) = &record.empty_call {
        let text = format!(
            "the cost of calling an empty function, {}, is excluded",
            plus_minus(call, "core cycles")
        );
        output.line(format!("  {}", output.faint(&text)))?;
    }
    for line in details(record) {
        output.line(format!("  {}", output.faint(&line)))?;
    }
    for caveat in &record.caveats {
        let code = serde_json::to_value(caveat.code).expect("codes are strings");
        let code = code.as_str().unwrap_or_default();
        output.line(format!("  {} {}", output.yellow(&format!("{code}:")), caveat.text))?;
    }
    Ok(())
}

/// `3.000 ± 0.002 core cycles   2.300 TSC ticks   1.000 ns`
fn headline(record: &RunRecord, output: &Output) -> String {
    let mut text = match record.cost.value {
        Some(_) => output.bold(&plus_minus(&record.cost, "core cycles")),
        None => output.bold("no number: see below"),
    };
    for (quantity, unit) in [(&record.ticks, "TSC ticks"), (&record.time, "ns")] {
        if let Some(value) = quantity.value {
            text.push_str(&format!("   {value:.3} {unit}"));
        }
    }
    text
}

/// A value with as many digits as its interval supports.
fn plus_minus(quantity: &Quantity, unit: &str) -> String {
    let (Some(value), Some(low), Some(high)) = (quantity.value, quantity.low, quantity.high) else {
        return "no interval".to_string();
    };
    let half = (high - low) / 2.0;
    // One digit beyond the interval's first, but never fewer than two.
    let digits = if half > 0.0 { (1.0 - half.log10().floor()).clamp(2.0, 6.0) as usize } else { 4 };
    format!("{value:.digits$} ± {half:.digits$} {unit}")
}

fn details(record: &RunRecord) -> Vec<String> {
    let mut lines = vec![format!(
        "{} % interval over {} layouts of {} rounds in all, {} dropped",
        100.0 * record.confidence,
        record.layouts,
        record.samples + record.dropped,
        record.dropped
    )];
    let looped = record.loop_count.map_or(String::new(), |count| format!(", looped {count} times"));
    if record.cold.is_any() {
        lines.push(format!("clock {}, one first run of the snippet against none", record.clock));
    } else {
        lines.push(format!(
            "clock {}, {} copies and two and four times as many{looped}",
            record.clock, record.unroll
        ));
    }
    lines.push(format!("CPU {}, {}, seed {}", record.cpu, record.cpu_model, record.seed));
    if let Some(ruler) = &record.ruler {
        let clock = ruler.core_mhz.map_or(String::new(), |[low, mean, high]| {
            format!("; core clock {mean:.0} MHz ({low:.0} to {high:.0})")
        });
        let link = ruler.add_link.value.unwrap_or(f64::NAN);
        lines.push(format!("ruler: an add takes {link:.3} cycles{clock}"));
    }
    lines
}
