//! What markers are measured with: one bench for each place where code can run.

use super::choose::Choice;
use super::cpu;
use crate::args::Common;
use crate::executor;
use crate::failure::Failure;
use cyclescope::error::Unavailable;
use cyclescope::executor::Mode;
use cyclescope::executor::user::UserOptions;
use cyclescope::machine::Machine;
use cyclescope::measure::{self, Plan};
use cyclescope::study::marker::bench::Bench;
use cyclescope::study::marker::compiled::Compiled;
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
pub fn choose(common: &Common, choice: &Choice, machine: &Machine, plan: &Plan) -> Result<Chosen, Failure> {
    match common.mode() {
        Mode::User => user(choice, machine, plan),
        Mode::Kernel => Err(Failure::from(Unavailable {
            what: "the kernel executor for markers".to_string(),
            why: "the module's markers are not yet measured from here".to_string(),
            remedy: "leave --executor kernel out".to_string(),
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

fn user(choice: &Choice, machine: &Machine, plan: &Plan) -> Result<Chosen, Failure> {
    let cpu = cpu(machine) as usize;
    let options = UserOptions { cpu, counter: plan.clock.reads_counter(), ..UserOptions::default() };
    let mut designs = Compiled::built();
    designs.retain(|compiled| choice.designs.contains(&compiled.design));
    let contexts: Vec<&str> = choice.contexts.iter().map(|context| context.name).collect();
    let (mut bench, mut skipped) =
        UserBench::new(&options, (plan.clock, plan.step), &designs, &contexts, plan.seed)?;
    bench.retain(|subject| choice.criteria.wants(subject));
    skipped.retain(|(subject, _)| choice.criteria.wants(subject));
    Ok(Chosen { bench: Box::new(bench), skipped, contexts: contexts.len() })
}
