//! `cyclescope evaluate`: how good each timing method is here.

mod graphs;
mod parts;
mod rows;
mod sections;
mod stairs;
mod tables;

use crate::args::repro;
use crate::args::{Common, EvaluateArgs, find_clock};
use crate::output::page::Page;
use crate::output::report::Picture;
use crate::output::{Failure, Output};
use crate::session::driver::{Order, StudyView, drive};
use crate::session::replay_study;
use cyclescope::clock::{self, Clock};
use cyclescope::executor::{Capabilities, DEFAULT, OpenOptions};
use cyclescope::machine::Machine;
use cyclescope::result::container::Container;
use cyclescope::study::evaluate::plan::{self, EvaluatePlan, NotRun, Times};
use cyclescope::study::evaluate::reader::Size;
use cyclescope::study::evaluate::{Candidate, Evaluate};
use std::time::Duration;

pub use cyclescope::study::evaluate::NAME;

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
    let machine = common.machine()?;
    machine.tsc.require()?;
    let (candidates, not_run) = candidates(named, common, &machine)?;
    // Before anything is made: where no code runs, nothing shall stay behind.
    [DEFAULT, common.offer()].into_iter().try_for_each(|offer| (offer.check)(&machine))?;
    let plan = plan(common, args, candidates, not_run);
    let repro = repro::command(NAME, args, common, plan.seed);
    let options = OpenOptions { force: common.force, own_code: true, ..OpenOptions::default() };
    let mut study = Evaluate::new(machine.clone(), plan, options, repro.clone());
    let exports = args.exports.clone();
    let view = EvaluateView { draws: exports.has(&["plots"]) };
    let order = Order { exports, ..Order::new(common, &machine, &repro)? };
    drive(&view, &mut study, order, output)
}

/// How `evaluate` looks.
struct EvaluateView {
    /// Whether graphs are drawn.
    draws: bool,
}

impl StudyView for EvaluateView {
    type Study = Evaluate;

    fn text(&self, study: &Evaluate, output: &mut Output) -> Result<(), Failure> {
        let Some(found) = &study.found else { return Ok(()) };
        let (mut page, not_run) = (Page::new(output), &study.plan.not_run);
        // Of one that ended early there is nothing to compare.
        if !found.complete {
            return tables::samples(&mut page, found, not_run);
        }
        sections::machine(&mut page, found, &study.around)?;
        tables::samples(&mut page, found, not_run)?;
        tables::published(&mut page, found)?;
        tables::resolution(&mut page, found)?;
        stairs::stairs(&mut page, found)?;
        tables::contamination(&mut page, found, not_run)?;
        parts::parts(&mut page, found)?;
        sections::claims(&mut page, &found.claims)?;
        sections::verdicts(&mut page, found)?;
        if self.draws {
            let count = graphs::pictures(study).len();
            page.row("graphs", &format!("{count} in the directory of --plots"))?;
        }
        Ok(())
    }

    fn pictures(&self, study: &Evaluate, _machine: &str) -> Vec<Picture> {
        graphs::pictures(study)
    }
}

/// Computes an evaluation again from its evidence.
pub fn replay(container: &Container, output: &mut Output) -> Result<u8, Failure> {
    replay_study::replay(&EvaluateView { draws: false }, container, output)
}

/// The timing methods of these names, each once; none for all of them.
fn named(names: &[&str]) -> Result<Option<Vec<&'static Clock>>, Failure> {
    if names.is_empty() || names.contains(&"all") {
        return Ok(None);
    }
    let mut clocks: Vec<&'static Clock> = Vec::new();
    for name in names {
        let clock = find_clock(name)?;
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
    let asked = common.capabilities(machine);
    for clock in named.iter().flatten() {
        asked.require(clock, machine)?;
    }
    let mut executors: Vec<Capabilities> = vec![(DEFAULT.capabilities)(machine)];
    executors.extend(Some(asked).filter(|_| !common.offer().is_default()));
    let clocks = named.unwrap_or_else(|| clock::ALL.iter().collect());
    Ok(plan::candidates(clocks, machine, &executors))
}

fn plan(
    common: &Common,
    args: &EvaluateArgs,
    candidates: Vec<Candidate>,
    not_run: Vec<NotRun>,
) -> EvaluatePlan {
    let (size, usual, slow, times) = match common.quick {
        true => (plan::SIZE_QUICK, plan::BUDGET_QUICK, plan::SLOW_QUICK, Times::QUICK),
        false => (Size::PAPER, plan::BUDGET, plan::SLOW, Times::FULL),
    };
    let own_size = args.ensembles.is_some() || args.samples.is_some() || args.resolution_samples.is_some();
    let budget = match args.budget {
        Some(seconds) => Duration::from_secs_f64(seconds),
        // Who says how many samples to take waits for them, but for those of slow methods.
        None if own_size => A_DAY,
        None => usual,
    };
    EvaluatePlan {
        candidates,
        not_run,
        size: Size {
            ensembles: args.ensembles.unwrap_or(size.ensembles),
            samples: args.samples.unwrap_or(size.samples),
        },
        budget,
        slow: args.budget.is_none().then_some(slow),
        times: times.within(budget, usual),
        resolution_samples: args.resolution_samples,
        seed: common.chosen_seed(),
        series: args.series,
    }
}

/// As good as no budget.
const A_DAY: Duration = Duration::from_secs(86_400);
