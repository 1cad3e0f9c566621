//! `cyclescope doctor`: reports what this machine can measure, and what to change.

mod executors;
mod ring_0;
mod sandbox;
pub mod sections;

use crate::args::CommonArgs;
use crate::args::repro;
use crate::output::page::TextPage;
use crate::output::{Failure, Output};
use cyclescope::doctor::{Diagnosis, DoctorRecord, ExaminationEffort, ExaminationInputs, examine};
use cyclescope::error::RunError;
use cyclescope::executor::user::{UserExecutor, UserOptions};
use cyclescope::executor::{DEFAULT_OFFER, Executor};
use cyclescope::machine::Machine;
use cyclescope::record::exit;
use std::time::Duration;

/// Time that each of some dozen batches waits for another cyclescope on its CPU.
const LOCK_PATIENCE: Duration = Duration::from_millis(20);

/// Runs the command and returns the exit code. A completed diagnosis succeeds, whatever it finds.
pub fn run_doctor(common: &CommonArgs, output: &mut Output) -> Result<u8, Failure> {
    if common.evidence.is_some() {
        let remedy = "leave out --evidence; --json prints every fact and figure";
        return Err(Failure::usage("doctor has no evidence to keep", Some(remedy)));
    }
    let clock = common.one_clock()?;
    let machine = common.detect_machine()?;
    let capabilities = (DEFAULT_OFFER.capabilities)(&machine);
    clock.map_or(Ok(()), |clock| capabilities.require_clock(clock, &machine))?;
    let cpu = machine.target_cpu();
    let readable = machine.tsc.require();
    // If reading the TSC is forbidden, so is the system's clock, which seeds and executors need.
    let mut executor = match &readable {
        Ok(()) => spawn_executor(cpu).map_err(|error| error.to_string()),
        Err(refused) => Err(refused.why.clone()),
    };
    let seed = if readable.is_ok() { common.chosen_seed() } else { common.seed.unwrap_or_default() };
    let diagnosis = examine(
        &machine,
        ExaminationInputs {
            executor: executor.as_mut().map(|user| user as &mut dyn Executor).map_err(|why| why.clone()),
            others: &|cpu| Ok(Box::new(spawn_executor(cpu)?)),
            clock,
            capabilities: &capabilities,
            effort: if common.quick { ExaminationEffort::QUICK } else { ExaminationEffort::FULL },
            seed,
        },
    );
    if output.is_json() {
        output.write_record("machine", &machine)?;
        let repro = repro::format_repro("doctor", &(), common, seed);
        output.write_record("doctor", &DoctorRecord::new(&machine, &diagnosis, "user", seed, repro))?;
    } else {
        print_diagnosis(&machine, &diagnosis, common, output)?;
    }
    Ok(if readable.is_ok() { exit::DONE } else { exit::UNAVAILABLE })
}

fn spawn_executor(cpu: u32) -> Result<UserExecutor, RunError> {
    UserExecutor::spawn(&UserOptions { cpu: cpu as usize, patience: LOCK_PATIENCE, ..UserOptions::default() })
}

fn print_diagnosis(
    machine: &Machine,
    diagnosis: &Diagnosis,
    common: &CommonArgs,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut page = TextPage::new(output);
    sections::print_processor(&mut page, machine, common)?;
    let Diagnosis { tsc: study, phases, .. } = diagnosis;
    let (facts, lfence) = (&machine.tsc, machine.features.lfence_order());
    sections::print_tsc(&mut page, &sections::TscSection { facts, lfence, study, phases })?;
    sections::print_core(&mut page, diagnosis)?;
    sections::print_counters(&mut page, diagnosis)?;
    executors::print_executors(&mut page, diagnosis)?;
    sandbox::print_sandbox(&mut page, diagnosis)?;
    ring_0::print_kernel_module(&mut page, machine, diagnosis)?;
    sections::print_surroundings(&mut page, machine, diagnosis)?;
    sections::print_findings(&mut page, diagnosis)
}
