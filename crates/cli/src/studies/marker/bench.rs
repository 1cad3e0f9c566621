//! What markers are measured with: one bench for each place where code can run.

use super::around::Loaded;
use super::choose::Choice;
use crate::output::Failure;
use cyclescope::clock::Clock;
use cyclescope::error::Unavailable;
use cyclescope::executor::kernel::markers::Markers;
use cyclescope::executor::user::UserOptions;
use cyclescope::machine::Machine;
use cyclescope::measure::Plan;
use cyclescope::study::marker::around::AROUND;
use cyclescope::study::marker::bench::{Bench, MarkerCase, Selected};
use cyclescope::study::marker::catalog::Catalog;
use cyclescope::study::marker::compiled::Compiled;
use cyclescope::study::marker::kernel::{self, KernelBench};
use cyclescope::study::marker::user::{Skipped, UserBench};

/// A bench, and what it can't measure.
pub struct Chosen {
    /// The bench.
    pub bench: Box<dyn Bench>,
    /// What was asked for and can't be.
    pub skipped: Vec<Skipped>,
    /// How many contexts it has.
    pub contexts: usize,
}

/// What a bench is made from.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// The markers.
    pub choice: &'a Choice,
    /// The machine.
    pub machine: &'a Machine,
    /// How to measure.
    pub plan: &'a Plan,
    /// What was compiled where the command runs.
    pub loaded: &'a Loaded,
}

type Make = fn(Wanted) -> Result<Chosen, Failure>;

/// Each executor's bench.
const BENCHES: &[(&str, Make)] = &[("user", user), ("kernel", ring_0)];

/// Makes the bench that was asked for.
pub fn choose(wanted: Wanted) -> Result<Chosen, Failure> {
    let executor = wanted.choice.catalog.executor;
    let (_, make) = BENCHES.iter().find(|(name, _)| *name == executor).expect("each catalog has a bench");
    make(wanted)
}

/// The timing method that markers are measured with, where none is named.
pub fn clock(named: Option<&'static Clock>, catalog: &Catalog) -> Result<Option<&'static Clock>, Failure> {
    match (catalog.clock, named) {
        (None, named) => Ok(named),
        (Some(own), None) => Ok(Clock::named(own)),
        (Some(own), Some(clock)) if clock.name == own => Ok(named),
        (Some(own), Some(clock)) => Err(Failure::from(Unavailable {
            what: format!("the clock {} for the module's markers", clock.name),
            why: format!("the module reads {own}"),
            remedy: "leave --clock out".to_string(),
        })),
    }
}

fn user(wanted: Wanted) -> Result<Chosen, Failure> {
    let Wanted { choice, machine, plan, loaded } = wanted;
    let cpu = machine.target_cpu() as usize;
    let options = UserOptions { cpu, counter: plan.clock.reads_counter(), ..UserOptions::default() };
    let mut designs = if choice.around { Vec::new() } else { Compiled::built() };
    designs.retain(|compiled| choice.designs.contains(&compiled.design));
    designs.extend(loaded.compiled.iter().cloned());
    let contexts: Vec<&str> = match choice.around {
        true => vec![AROUND],
        false => choice.contexts.iter().map(|context| context.name).collect(),
    };
    let caches = &machine.topology.caches;
    let (bench, mut skipped) =
        UserBench::new(&options, plan.clock, plan.step, &designs, &contexts, caches, plan.seed)?;
    let bench = Selected::new(bench, |case| choice.criteria.wants(case));
    skipped.retain(|(case, _)| choice.criteria.wants(case));
    Ok(Chosen { bench: Box::new(bench), skipped, contexts: contexts.len() })
}

fn ring_0(wanted: Wanted) -> Result<Chosen, Failure> {
    let Wanted { choice, machine, plan, .. } = wanted;
    let criteria = &choice.criteria;
    let arounds = match criteria.all {
        true => kernel::CONTEXTS.iter().map(|(_, around)| *around).collect(),
        false => {
            let named = choice.contexts.iter().map(|context| kernel::context(context.name));
            named.collect::<Result<Vec<_>, Unavailable>>()?
        }
    };
    let markers = Markers::open(machine.target_cpu() as usize, UserOptions::default().patience)?;
    let bench = KernelBench::new(markers, &arounds, plan.step, plan.seed)?;
    let wanted = |case: &MarkerCase| {
        choice.designs.iter().any(|design| design.name == case.design.name) && criteria.wants(case)
    };
    let bench = Selected::new(bench, wanted);
    Ok(Chosen { bench: Box::new(bench), skipped: Vec::new(), contexts: arounds.len() })
}
