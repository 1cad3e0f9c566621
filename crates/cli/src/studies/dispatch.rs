//! From what was asked for to the command that does it.

use super::{ab, clocks, compare, doctor, evaluate, generic_study, instr, marker, points, replay, run};
use crate::args::{Command, Invocation};
use crate::output::{Failure, Output};

/// Runs the command and returns the exit code.
pub fn run_command(invocation: &Invocation, output: &mut Output) -> Result<u8, Failure> {
    let common = invocation.common();
    if common.clock.iter().any(|name| name == "list") {
        return clocks::list(common, output);
    }
    invocation.require_effect()?;
    let command = match invocation {
        Invocation::Own(cli) => &cli.command,
        Invocation::Generic(chosen) => {
            let (info, common, args) = &**chosen;
            return generic_study::generic_study(info, common, args, output);
        }
    };
    match command {
        None => Err(Failure::usage(
            "no command was given",
            Some("cyclescope run 'mulsd xmm0, xmm1', or cyclescope --help"),
        )),
        Some(Command::Doctor) => doctor::doctor(common, output),
        Some(Command::Run(args)) if args.points.is_given() => points::points(common, args, output),
        Some(Command::Run(args)) => run::run(common, args, output),
        Some(Command::Evaluate(args)) => evaluate::evaluate(common, args, output),
        Some(Command::Instr(args)) => instr::instr(common, args, output),
        Some(Command::Marker(args)) => marker::marker(common, args, output),
        Some(Command::Clock(args)) => clocks::clock(common, args, output),
        Some(Command::Compare(args)) => compare::compare(common, args, output),
        Some(Command::Replay(args)) => replay::replay(common, args, output),
        Some(Command::Ab(args)) => ab::ab(common, args, output),
    }
}
