//! What markers are measured with: one bench for each place where code can run.

use super::around::Loaded;
use super::choose::Choice;
use crate::args::Common;
use crate::executor;
use crate::failure::Failure;
use cyclescope::clock::Clock;
use cyclescope::error::Unavailable;
use cyclescope::executor::Mode;
use cyclescope::executor::kernel::markers::Markers;
use cyclescope::executor::user::UserOptions;
use cyclescope::machine::Machine;
use cyclescope::measure::{self, Plan};
use cyclescope::study::marker::around::AROUND;
use cyclescope::study::marker::bench::{Bench, Selected, Subject};
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

/// Makes the bench that was asked for.
pub fn choose(
    choice: &Choice,
    machine: &Machine,
    plan: &Plan,
    mode: Mode,
    loaded: &Loaded,
) -> Result<Chosen, Failure> {
    match mode {
        Mode::User => user(choice, machine, plan, loaded),
        Mode::Kernel => ring_0(choice, machine, plan),
    }
}

/// The timing method that markers are measured with, where none is named.
pub fn clock(named: Option<&'static Clock>, mode: Mode) -> Result<Option<&'static Clock>, Failure> {
    match (mode, named) {
        (Mode::User, named) => Ok(named),
        (Mode::Kernel, None) => Ok(Clock::named(kernel::CLOCK)),
        (Mode::Kernel, Some(clock)) if clock.name == kernel::CLOCK => Ok(named),
        (Mode::Kernel, Some(clock)) => Err(Failure::from(Unavailable {
            what: format!("the clock {} for the module's markers", clock.name),
            why: format!("the module reads {}", kernel::CLOCK),
            remedy: "leave --clock out".to_string(),
        })),
    }
}

/// The latency of `imul` in core cycles.
pub fn imul_latency(common: &Common, machine: &Machine, plan: &Plan) -> Result<f64, Failure> {
    match plan.imul_latency {
        Some(latency) => Ok(latency),
        None => {
            let mut executor = executor::spawn(common, cpu(machine), plan.clock.reads_counter())?;
            Ok(measure::imul_latency(executor.as_mut(), plan)?)
        }
    }
}

fn user(choice: &Choice, machine: &Machine, plan: &Plan, loaded: &Loaded) -> Result<Chosen, Failure> {
    let cpu = cpu(machine) as usize;
    let options = UserOptions { cpu, counter: plan.clock.reads_counter(), ..UserOptions::default() };
    let mut designs = if choice.around { Vec::new() } else { Compiled::built() };
    designs.retain(|compiled| choice.designs.contains(&compiled.design));
    designs.extend(loaded.compiled.iter().cloned());
    let contexts: Vec<&str> = match choice.around {
        true => vec![AROUND],
        false => choice.contexts.iter().map(|context| context.name).collect(),
    };
    let (bench, mut skipped) =
        UserBench::new(&options, (plan.clock, plan.step), &designs, &contexts, plan.seed)?;
    let bench = Selected::new(bench, |subject| choice.criteria.wants(subject));
    skipped.retain(|(subject, _)| choice.criteria.wants(subject));
    Ok(Chosen { bench: Box::new(bench), skipped, contexts: contexts.len() })
}

fn ring_0(choice: &Choice, machine: &Machine, plan: &Plan) -> Result<Chosen, Failure> {
    let criteria = &choice.criteria;
    let arounds = match criteria.all {
        true => kernel::CONTEXTS.iter().map(|(_, around)| *around).collect(),
        false => {
            let named = choice.contexts.iter().map(|context| kernel::context(context.name));
            named.collect::<Result<Vec<_>, Unavailable>>()?
        }
    };
    let markers = Markers::open(cpu(machine) as usize, UserOptions::default().patience)?;
    let bench = KernelBench::new(markers, &arounds, plan.step, plan.seed)?;
    let wanted = |subject: &Subject| {
        choice.designs.iter().any(|design| design.name == subject.design.name) && criteria.wants(subject)
    };
    let bench = Selected::new(bench, wanted);
    Ok(Chosen { bench: Box::new(bench), skipped: Vec::new(), contexts: arounds.len() })
}

/// The CPU to measure on; the first where the system does not tell which are allowed.
pub fn cpu(machine: &Machine) -> u32 {
    machine.target.as_ref().map_or(0, |target| target.cpu)
}
