//! Compilers and assemblers: other programs, which must end, and end with this one.

use crate::failure::Failure;
use crate::interrupt::Group;
use cyclescope::error::Unavailable;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};

/// Seconds of CPU time that a tool may take.
const MOST_SECONDS: u64 = 60;
/// Bytes that a tool may write to a file.
const MOST_BYTES: u64 = 256 << 20;

/// Runs a tool without input. An error is what it said, or why it could not run.
pub fn run(mut command: Command, called: &str, remedy: &str) -> Result<(), Failure> {
    // SAFETY: `set_limits` calls only async-signal-safe functions, and allocates nothing.
    unsafe { command.pre_exec(set_limits) };
    // A separate group, for a compiler starts others: one that outlived it made its temporary file after it had
    // removed them all.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = command.spawn().and_then(|child| {
        let _group = Group::of(child.id());
        child.wait_with_output()
    });
    let result = started.map_err(|error| {
        Failure::from(Unavailable {
            what: called.to_string(),
            why: error.to_string(),
            remedy: remedy.to_string(),
        })
    })?;
    if result.status.success() {
        return Ok(());
    }
    let name = command.get_program().to_string_lossy();
    if result.status.signal() == Some(libc::SIGXCPU) {
        let text = format!("{name} did not end within {MOST_SECONDS} s of CPU time");
        return Err(Failure::usage(text, Some("check it for an endless repetition")));
    }
    let said = String::from_utf8_lossy(&result.stderr);
    match said.trim_end() {
        "" => Err(Failure::usage(format!("{name} failed: {}", result.status), None)),
        said => Err(Failure::usage(format!("{name} failed:\n{said}"), None)),
    }
}

fn set_limits() -> std::io::Result<()> {
    let limit = |most| libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: both limits live through their calls. A tool that could not be limited runs without.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CPU, &limit(MOST_SECONDS));
        libc::setrlimit(libc::RLIMIT_FSIZE, &limit(MOST_BYTES));
        // Not SIGKILL: compilers remove their own temporary files.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
    }
    Ok(())
}
