//! The cyclescope command line: parse, do, report, exit with a code that says how it went.

mod args;
mod assembler;
mod clocks;
mod doctor;
mod failure;
mod function;
mod output;
mod replay;
mod repro;
mod run;
mod source;

use args::{Cli, Command};
use clap::Parser;
use failure::Failure;
use output::Output;
use std::process::ExitCode;

fn main() -> ExitCode {
    exit_on_interrupt();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let mut output = Output::new(cli.common.json);
    let result = dispatch(&cli, &mut output).and_then(|code| output.finish().map(|()| code));
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => ExitCode::from(failure.report(cli.common.json)),
    }
}

fn dispatch(cli: &Cli, output: &mut Output) -> Result<u8, Failure> {
    if cli.common.clock.as_deref() == Some("list") {
        return clocks::list(&cli.common, output);
    }
    match &cli.command {
        Command::Doctor => doctor::doctor(&cli.common, output),
        Command::Run(args) => run::run(&cli.common, args, output),
        Command::Replay(args) => replay::replay(&cli.common, args, output),
    }
}

/// What clap has to say: help and version are no errors.
fn usage(error: &clap::Error) -> ExitCode {
    // The arguments could not be parsed, so this is all there is to tell the wish for JSON by.
    let json = std::env::args_os().any(|argument| argument == "--json");
    if error.use_stderr() && json {
        return ExitCode::from(Failure::usage(error.to_string().trim_end(), None).report(true));
    }
    match error.print() {
        Ok(()) => ExitCode::from(error.exit_code() as u8),
        Err(error) => ExitCode::from(Failure::from(error).report(false)),
    }
}

/// Ends the process with 130 on Ctrl-C. The worker dies with its parent, and what was written stays.
fn exit_on_interrupt() {
    extern "C" fn end(_: libc::c_int) {
        // SAFETY: `_exit` is async-signal-safe.
        unsafe { libc::_exit(130) };
    }
    let handler: extern "C" fn(libc::c_int) = end;
    // SAFETY: the handler calls nothing but an async-signal-safe function.
    unsafe { libc::signal(libc::SIGINT, handler as libc::sighandler_t) };
}
