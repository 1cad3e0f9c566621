//! Runs a step of `all` in a process of its own.

use super::measuring_step::MeasuringStep;
use super::step_ledger::{StepOutcome, StepState};
use crate::args::CommonArgs;
use crate::output::directory::read_free_bytes;
use crate::output::{Failure, print_warning};
use crate::process::child_start::start_child;
use crate::process::child_watch::{ChildEvent, stopped_failure};
use crate::process::external_tool;
use crate::process::interrupt::{HeldSignals, ProcessGroup};
use cyclescope::input::{self, InputKind};
use cyclescope::record::exit;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, PipeReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longest run of a step.
const STEP_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// A disk with less room counts as full if a command failed: the others would measure and then fail.
const SPACE_LEAST: u64 = 1 << 20;

/// Runs a step. An error is one of the files; how the command ended is in the outcome.
pub fn run_step(step: &MeasuringStep, common: &CommonArgs, directory: &Path) -> Result<StepOutcome, Failure> {
    let file = directory.join(step.file_name());
    // Printed lines appear under the file's name when all are there.
    let printed = directory.join(format!("{}.part", step.file_name()));
    let failed = |error: &io::Error| {
        Failure::from_writing(
            format!("can't write {}", printed.display()),
            error,
            "free some space, and repeat the command",
        )
    };
    let mut command = build_command(step, common, &file)?;
    // A command that writes its file prints the same lines, of which only an error matters.
    let reader = if step.resumes {
        let pipe = io::pipe().map_err(|error| Failure::from_system("making a pipe failed", &error))?;
        command.stdout(pipe.1);
        Some(pipe.0)
    } else {
        command.stdout(std::fs::File::create(&printed).map_err(|error| failed(&error))?);
        None
    };
    command.stdin(Stdio::null());
    let begun = Instant::now();
    let (status, last_line) = run_to_end(command, reader, step.name)?;
    let code = status.code();
    let mut outcome = StepOutcome {
        name: step.name.to_string(),
        state: StepState::Done,
        exit: code,
        why: None,
        file: Some(step.file_name()),
        seconds: begun.elapsed().as_secs_f64(),
    };
    // Too noisy a figure is a result, and says so.
    let is_done = matches!(code, Some(code) if [exit::DONE, exit::FELL_SHORT].map(i32::from).contains(&code));
    if is_done {
        if !step.resumes {
            std::fs::rename(&printed, &file).map_err(|error| failed(&error))?;
        }
        return Ok(outcome);
    }
    let last_line = if step.resumes { last_line } else { read_last_line(&printed) };
    outcome.state = if code == Some(exit::UNAVAILABLE.into()) { StepState::LeftOut } else { StepState::Failed };
    let reason = last_line.as_deref().and_then(read_reason);
    outcome.why = Some(reason.unwrap_or_else(|| format!("{} ended with {status}", step.name)));
    // A file to resume stays, and the archive has what it holds.
    outcome.file = outcome.file.filter(|_| step.resumes && file.exists());
    // Before what the command printed is removed.
    let is_full = read_free_bytes(directory).is_some_and(|free| free < SPACE_LEAST);
    if !step.resumes {
        std::fs::remove_file(&printed).map_err(|error| failed(&error))?;
    }
    if outcome.state == StepState::Failed && is_full {
        let text = format!("{} failed, and the disk of {} is full", step.name, directory.display());
        return Err(Failure::internal(text).with_remedy("free some space, and repeat the same command to continue"));
    }
    if outcome.state == StepState::Failed {
        print_warning(&format!("{} failed; the other commands go on", step.name));
    }
    Ok(outcome)
}

fn build_command(step: &MeasuringStep, common: &CommonArgs, file: &Path) -> Result<Command, Failure> {
    let own = std::env::current_exe().map_err(|error| Failure::from_system("finding this program failed", &error))?;
    let mut command = Command::new(own);
    command.arg(step.name).arg("--json");
    match step.resumes {
        // Its options are in the file.
        true if file.metadata().is_ok_and(|file| file.len() > 0) => {
            command.arg("--resume").arg(file);
            return Ok(command);
        }
        true => {
            command.args(step.options).arg("--out").arg(file);
        }
        false => {
            command.args(step.options);
        }
    }
    if common.quick {
        command.arg("--quick");
    }
    for (option, number) in [("--cpu", common.cpu.map(u64::from)), ("--seed", common.seed)] {
        if let Some(number) = number {
            command.arg(option).arg(number.to_string());
        }
    }
    Ok(command)
}

/// Runs a command until it ends, and returns the last line that it printed to the pipe of this
/// reader. A signal that ends this program ends the command first, which then completes its file.
fn run_to_end(
    mut command: Command,
    reader: Option<PipeReader>,
    name: &str,
) -> Result<(ExitStatus, Option<Vec<u8>>), Failure> {
    let held = HeldSignals::new();
    let (parent, released) = (std::process::id(), held.unblock_in_child());
    // SAFETY: the closure only does what is allowed between fork and exec.
    unsafe {
        command.process_group(0).pre_exec(move || {
            ProcessGroup::die_with_parent(parent);
            released();
            Ok(())
        })
    };
    let remedy = "repeat the command";
    let explain = |error: &io::Error| external_tool::start_failure(error, &format!("the command {name}"), remedy);
    let mut watch = start_child(command).map_err(|error| error.into_failure(name, explain))?;
    let group = ProcessGroup::from_forked_leader(watch.pid());
    drop(held);
    let printed = reader.map(|reader| std::thread::spawn(move || keep_last_line(reader)));
    let event = watch.wait(Some(Instant::now() + STEP_LIMIT), &[]);
    // The child isn't reaped yet, so no other process can have its process group number.
    group.kill();
    let killed = watch.wait_for_killed();
    drop(group);
    killed.map_err(|error| Failure::from_system(format!("ending {name} failed"), &error))?;
    let status = watch.reap();
    let system = |error: io::Error| Failure::from_system(format!("waiting for {name} failed"), &error);
    match event.map_err(system)? {
        ChildEvent::Stopped(state) => Err(stopped_failure(name, state)),
        _ => Ok((status.map_err(system)?, printed.and_then(|printed| printed.join().ok().flatten()))),
    }
}

/// Reads to the end.
fn keep_last_line(printed: impl Read) -> Option<Vec<u8>> {
    BufReader::new(printed).split(b'\n').map_while(Result::ok).last()
}

/// The last line of a file.
fn read_last_line(printed: &Path) -> Option<Vec<u8>> {
    keep_last_line(&input::read_input(printed, InputKind::Results).ok()?[..])
}

/// The reason in the error line that a command printed last.
fn read_reason(line: &[u8]) -> Option<String> {
    let line: Value = serde_json::from_slice(line).ok()?;
    let is_error = line["kind"] == "error";
    let part = |name: &str| line[name].as_str().filter(|_| is_error);
    let remedy = part("remedy").map_or(String::new(), |remedy| format!(" ({remedy})"));
    Some(format!("{}{remedy}", part("text")?))
}
