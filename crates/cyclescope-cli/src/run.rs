//! `cyclescope run`: what a snippet costs.

use crate::args::{Common, ExecutorName, RunArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::{repro, source};
use cyclescope::clock::{self, Clock};
use cyclescope::error::Unavailable;
use cyclescope::executor::user::{User, UserOptions};
use cyclescope::machine::Machine;
use cyclescope::record::{Quantity, RunRecord, exit};
use cyclescope::run::{Request, run as measure};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Runs the command and returns the exit code.
pub fn run(common: &Common, args: &RunArgs, output: &mut Output) -> Result<u8, Failure> {
    let request = request(common, args)?;
    let machine = machine(common)?;
    let snippet = source::snippet(args, &machine)?;
    let plan = request.plan(&machine)?;
    let mut executor = executor(common, &machine)?;
    let result = measure(&machine, &mut executor, &snippet, &plan, request.asked())?;
    let mut record = result.record(&machine, &snippet, &plan, "user");
    record.repro = repro::run(common, args, plan.seed);
    if output.is_json() {
        output.record("run", &record)?;
    } else {
        report(&record, output)?;
    }
    Ok(if result.is_noisy() { exit::NOISY } else { exit::DONE })
}

fn request(common: &Common, args: &RunArgs) -> Result<Request, Failure> {
    Ok(Request {
        clock: common.clock.as_deref().map(find_clock).transpose()?,
        unroll: args.unroll.map(|copies| copies as usize),
        loop_count: args.loop_count,
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

fn executor(common: &Common, machine: &Machine) -> Result<User, Failure> {
    require_user_mode(common)?;
    let cpu = machine.target.as_ref().map_or(0, |target| target.cpu) as usize;
    Ok(User::spawn(&UserOptions { cpu, ..UserOptions::default() })?)
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
    lines.push(format!(
        "clock {}, {} copies and two and four times as many{looped}",
        record.clock, record.unroll
    ));
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
