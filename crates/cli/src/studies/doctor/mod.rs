//! `cyclescope doctor`: what this machine can measure with, and what to change.

mod executors;
mod ring_0;
pub mod sections;

use crate::args::Common;
use crate::args::repro;
use crate::output::page::Page;
use crate::output::{Failure, Output};
use cyclescope::doctor::{Diagnosis, DoctorRecord, Effort, Means, examine};
use cyclescope::error::RunError;
use cyclescope::executor::user::{User, UserOptions};
use cyclescope::executor::{DEFAULT, Executor};
use cyclescope::machine::Machine;
use cyclescope::record::exit;
use std::time::Duration;

/// Time that each of some dozen batches waits for another cyclescope on its CPU.
const PATIENCE: Duration = Duration::from_millis(20);

/// Runs the command and returns the exit code: a diagnosis that completes is done, with any findings.
pub fn doctor(common: &Common, output: &mut Output) -> Result<u8, Failure> {
    if common.evidence.is_some() {
        let remedy = "leave --evidence out; --json prints every fact and figure";
        return Err(Failure::usage("doctor keeps no evidence", Some(remedy)));
    }
    let clock = common.one_clock()?;
    let machine = common.machine()?;
    let capabilities = (DEFAULT.capabilities)(&machine);
    clock.map_or(Ok(()), |clock| capabilities.require(clock, &machine))?;
    let cpu = machine.target_cpu();
    let readable = machine.tsc.require();
    // Where the TSC is forbidden, so is the system's clock, which seeds and executors need.
    let mut executor = match &readable {
        Ok(()) => spawn(cpu).map_err(|error| error.to_string()),
        Err(refused) => Err(refused.why.clone()),
    };
    let seed = if readable.is_ok() { common.chosen_seed() } else { common.seed.unwrap_or_default() };
    let diagnosis = examine(
        &machine,
        Means {
            executor: executor.as_mut().map(|user| user as &mut dyn Executor).map_err(|why| why.clone()),
            others: &|cpu| Ok(Box::new(spawn(cpu)?)),
            clock,
            capabilities: &capabilities,
            effort: if common.quick { Effort::QUICK } else { Effort::FULL },
            seed,
        },
    );
    if output.is_json() {
        output.record("machine", &machine)?;
        let repro = repro::command("doctor", &(), common, seed);
        output.record("doctor", &DoctorRecord::new(&machine, &diagnosis, "user", seed, repro))?;
    } else {
        print(&machine, &diagnosis, common, output)?;
    }
    Ok(if readable.is_ok() { exit::DONE } else { exit::UNAVAILABLE })
}

fn spawn(cpu: u32) -> Result<User, RunError> {
    User::spawn(&UserOptions { cpu: cpu as usize, patience: PATIENCE, ..UserOptions::default() })
}

fn print(
    machine: &Machine,
    diagnosis: &Diagnosis,
    common: &Common,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut page = Page::new(output);
    sections::processor(&mut page, machine, common)?;
    let Diagnosis { tsc: study, phases, .. } = diagnosis;
    let (told, lfence) = (&machine.tsc, machine.features.lfence());
    sections::tsc(&mut page, &sections::Tsc { told, lfence, study, phases })?;
    sections::core(&mut page, diagnosis)?;
    sections::counters(&mut page, diagnosis)?;
    executors::section(&mut page, diagnosis)?;
    ring_0::section(&mut page, machine, diagnosis)?;
    sections::surroundings(&mut page, machine, diagnosis)?;
    sections::findings(&mut page, diagnosis)
}
