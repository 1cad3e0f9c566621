//! `cyclescope evaluate`: how good each timing method is here.

mod evidence;
mod follower;
mod plots;
mod replay;
mod rows;
mod sections;
mod tables;

pub use cyclescope::study::evaluate::evidence::STUDY as NAME;
pub use replay::replay;

use crate::args::{Common, EvaluateArgs};
use crate::evidence::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::plots::Plots;
use crate::{repro, run};
use cyclescope::clock::{self, Clock};
use cyclescope::error::RunError;
use cyclescope::executor::user::{User, UserOptions};
use cyclescope::executor::{Capabilities, DEFAULT, Executor, LockState};
use cyclescope::machine::Machine;
use cyclescope::record::exit;
use cyclescope::study::evaluate::Candidate;
use cyclescope::study::evaluate::evaluation::{Executors, evaluate as measure};
use cyclescope::study::evaluate::plan::{self, NotRun, Plan, Times};
use cyclescope::study::evaluate::reader::Size;
use cyclescope::study::evaluate::record::Surroundings;
use evidence::Evidence;
use follower::Follower;
use std::time::Duration;

/// Runs the command and returns the exit code: an evaluation that completes is done, whatever its verdict.
pub fn evaluate(common: &Common, args: &EvaluateArgs, output: &mut Output) -> Result<u8, Failure> {
    if args.series && !common.json {
        return Err(Failure::usage("--series prints JSON lines", Some("add --json")));
    }
    let names = common.clock.iter().chain(&args.clocks).flat_map(|names| names.split(','));
    let names: Vec<&str> = names.map(str::trim).filter(|name| !name.is_empty()).collect();
    if names.is_empty() && !(common.clock.is_empty() && args.clocks.is_empty()) {
        return Err(Failure::usage("no clock is named", Some("`cyclescope --clock list` shows all")));
    }
    let named = named(&names)?;
    let machine = run::machine(common)?;
    machine.tsc.require()?;
    let (candidates, not_run) = candidates(named, common, &machine)?;
    let plan = plan(common, args, candidates);
    // Before anything is made: where no code runs, nothing shall stay behind.
    let cpu = machine.target_cpu();
    let mut further = match common.offer().is_default() {
        true => None,
        false => Some(crate::executor::opening(common, &machine, false)()?),
    };
    let mut executor = spawn(cpu, false)?;
    let plots = args.plots.as_deref();
    let mut plots = plots.map(|directory| Plots::new(directory, &machine.cpu.name())).transpose()?;
    let repro = repro::evaluate(common, args, plan.seed);
    let place = Place::prepare(common)?;
    let evidence = place.as_ref().zip(common.evidence.as_deref());
    let evidence =
        evidence.map(|(place, directory)| Evidence::new(place, directory, &machine, &repro)).transpose()?;
    let around = Surroundings::new(&machine, plan.seed, repro);
    let mut follower =
        Follower::new(&machine, &around, (args.series, &not_run), evidence, plots.as_mut(), output);
    let executors = Executors {
        plain: &mut executor,
        further: further.iter_mut().map(|further| &mut **further as &mut dyn Executor).collect(),
        counting: &|| Ok(Box::new(spawn(cpu, true)?)),
        others: &|cpu| Ok(Box::new(spawn(cpu, false)?)),
        made: None,
    };
    let result = measure(executors, &plan, &not_run, &mut |event| follower.take(event));
    follower.finish(result?)?;
    let disturbed = further.as_deref().filter(|further| further.lock_state() != Some(&LockState::Taken));
    if let Some(lock) = disturbed.unwrap_or(&executor).lock_state() {
        crate::executor::warn_of_neighbours(lock, cpu);
    }
    Ok(exit::DONE)
}

fn spawn(cpu: u32, counter: bool) -> Result<User, RunError> {
    User::spawn(&UserOptions { cpu: cpu as usize, counter, ..UserOptions::default() })
}

/// The timing methods of these names, each once; none for all of them.
fn named(names: &[&str]) -> Result<Option<Vec<&'static Clock>>, Failure> {
    if names.is_empty() || names.contains(&"all") {
        return Ok(None);
    }
    let mut clocks: Vec<&'static Clock> = Vec::new();
    for name in names {
        let clock = run::find_clock(name)?;
        if clocks.iter().all(|other| other.name != clock.name) {
            clocks.push(clock);
        }
    }
    Ok(Some(clocks))
}

/// The methods to evaluate, and those that can't be. What was named and can't run where that was asked for is an error.
/// Beside another executor they run on the default one, too, so that the two can be compared.
fn candidates(
    named: Option<Vec<&'static Clock>>,
    common: &Common,
    machine: &Machine,
) -> Result<(Vec<Candidate>, Vec<NotRun>), Failure> {
    let asked = crate::executor::capabilities(common, machine);
    for clock in named.iter().flatten() {
        asked.require(clock, machine)?;
    }
    let mut executors: Vec<Capabilities> = vec![(DEFAULT.capabilities)(machine)];
    executors.extend(Some(asked).filter(|_| !common.offer().is_default()));
    let clocks = named.unwrap_or_else(|| clock::ALL.iter().collect());
    Ok(plan::candidates(clocks, machine, &executors))
}

fn plan(common: &Common, args: &EvaluateArgs, candidates: Vec<Candidate>) -> Plan {
    let (size, usual, slow, times) = match common.quick {
        true => (plan::SIZE_QUICK, plan::BUDGET_QUICK, plan::SLOW_QUICK, Times::QUICK),
        false => (Size::PAPER, plan::BUDGET, plan::SLOW, Times::FULL),
    };
    let own_size = args.ensembles.is_some() || args.samples.is_some();
    let budget = match args.budget {
        Some(seconds) => Duration::from_secs_f64(seconds),
        // Who says how many samples to take waits for them, but for those of slow methods.
        None if own_size => A_DAY,
        None => usual,
    };
    Plan {
        candidates,
        size: Size {
            ensembles: args.ensembles.unwrap_or(size.ensembles),
            samples: args.samples.unwrap_or(size.samples),
        },
        budget,
        slow: args.budget.is_none().then_some(slow),
        times: times.within(budget, usual),
        seed: common.seed.unwrap_or_else(run::seed),
    }
}

/// As good as no budget.
const A_DAY: Duration = Duration::from_secs(86_400);
