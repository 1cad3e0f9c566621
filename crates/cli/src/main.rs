//! The cyclescope command line: parses arguments, runs the command, prints the result and returns
//! the exit code.
//!
//! `args` parses the command line and `input` reads the code to measure. `studies` has the
//! commands, `session` measures and saves results, and `output` prints them. `process` handles
//! signals and other programs.

mod args;
mod input;
mod output;
mod process;
mod session;
mod studies;

use args::Invocation;
use output::Output;
use process::last_words::ReportingAllocator;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: ReportingAllocator = ReportingAllocator;

fn main() -> ExitCode {
    process::interrupt::install_handlers();
    process::last_words::install_panic_hook();
    if let Err(small) = process::start_limits::make_room() {
        return ExitCode::from(small.report(false));
    }
    let invocation = match Invocation::parse(std::env::args_os().collect()) {
        Ok(invocation) => invocation,
        Err(refusal) => return ExitCode::from(refusal.report()),
    };
    let json = invocation.common().json;
    let mut output = match Output::open_stdout(json) {
        Ok(output) => output,
        Err(closed) => return ExitCode::from(closed.report(false)),
    };
    let result = studies::run_command(&invocation, &mut output);
    match result.and_then(|code| output.flush().map(|()| code)) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => ExitCode::from(failure.report(json)),
    }
}
