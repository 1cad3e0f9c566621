//! Dispatches the command line to its command.

use super::{
    ab, all, clocks, compare, counters, doctor, evaluate, generic_study, instr, manual, marker, points, ports, replay,
    report, run, show,
};
use crate::args::{CliCommand, CommonArgs, Invocation, RunArgs};
use crate::input::source;
use crate::output::{Failure, Output};

/// Runs the command and returns the exit code.
pub fn run_command(invocation: &Invocation, output: &mut Output) -> Result<u8, Failure> {
    let common = invocation.common();
    if common.clock.iter().any(|name| name == "list") {
        return clocks::list_clocks(common, output);
    }
    invocation.require_effect()?;
    let command = match invocation {
        Invocation::Own(cli) => &cli.command,
        Invocation::Generic(chosen) => {
            let (info, common, args) = &**chosen;
            return generic_study::run_generic_study(info, common, args, output);
        }
    };
    match command {
        None => Err(Failure::usage(
            "no command was given",
            Some("try cyclescope run 'mulsd xmm0, xmm1', or see cyclescope --help"),
        )),
        Some(CliCommand::Doctor) => doctor::run_doctor(common, output),
        Some(CliCommand::Run(args)) => run_snippets(common, args, output),
        Some(CliCommand::Evaluate(args)) => evaluate::run_evaluate(common, args, output),
        Some(CliCommand::Instr(args)) => instr::run_instr(common, args, output),
        Some(CliCommand::Ports(args)) => ports::run_ports(common, args, output),
        Some(CliCommand::Marker(args)) => marker::run_marker(common, args, output),
        Some(CliCommand::Clock(args)) => clocks::run_clock(common, args, output),
        Some(CliCommand::Counters(args)) => counters::run_counters(common, args, output),
        Some(CliCommand::Compare(args)) => compare::run_compare(common, args, output),
        Some(CliCommand::Replay(args)) => replay::run_replay(common, args, output),
        Some(CliCommand::Ab(args)) => ab::run_ab(common, args, output),
        Some(CliCommand::Report(args)) => report::run_report(common, args, output),
        Some(CliCommand::All(args)) => all::run_all(common, args, output),
        Some(CliCommand::Manual(args)) => manual::run_manual(args, output),
    }
}

/// Measures one snippet or function, or several points: those of a sweep, a list, or a pasted text.
fn run_snippets(common: &CommonArgs, args: &RunArgs, output: &mut Output) -> Result<u8, Failure> {
    // A sweep inserts its values into the text.
    let read = if args.points.sweep.is_none() { Some(source::read_stdin(args)?) } else { None };
    let args = read.as_ref().unwrap_or(args);
    if args.show {
        return show::show_text(args, output);
    }
    match args.has_points() || source::read_regions(args)?.is_some() {
        true => points::run_points(common, args, output),
        false => run::measure_target(common, args, output),
    }
}
