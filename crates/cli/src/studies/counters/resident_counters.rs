//! `counters start`, `status` and `stop`: a small process holds the events of each CPU, and answers on
//! a socket.
//!
//! The kernel keeps an event as long as a process has it open. Limits: the counts are of all programs
//! on the CPUs, and only this command reads them; a program that reads its own counters opens them
//! itself.

use crate::args::CommonArgs;
use crate::input::event_request::{explain_refusal, parse_events};
use crate::output::terminal::escape_controls;
use crate::output::{Failure, Output};
use cyclescope::events::EventGroup;
use cyclescope::machine::Machine;
use cyclescope::record::exit;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long the process may take to start.
const START_LIMIT: Duration = Duration::from_secs(20);
/// How long a request may take to arrive.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);

/// What the process answers.
#[derive(Debug, Serialize, Deserialize)]
struct ResidentAnswer {
    /// Its number, so that one that starts it recognizes it.
    process: u32,
    counts: Vec<CpuCount>,
}

/// The count of an event on a CPU, kind `counters.count`.
#[derive(Debug, Serialize, Deserialize)]
struct CpuCount {
    counter: String,
    cpu: u32,
    /// Null if the event has lost its counter.
    value: Option<u64>,
}

/// Events that are open on a CPU.
struct OpenCounter {
    counter: String,
    cpu: u32,
    group: EventGroup,
}

/// The socket: one for each user.
fn socket_path() -> Result<PathBuf, Failure> {
    let directory = match rustix::process::geteuid().is_root() {
        true => PathBuf::from("/run/cyclescope"),
        false => std::env::var_os("XDG_RUNTIME_DIR")
            .map(PathBuf::from)
            .filter(|directory| directory.is_absolute())
            .ok_or_else(|| {
                let remedy = "set XDG_RUNTIME_DIR to a directory of yours, or run it as root";
                Failure::usage("there is no directory for the socket of the counters", Some(remedy))
            })?
            .join("cyclescope"),
    };
    match std::fs::DirBuilder::new().recursive(true).mode(0o755).create(&directory) {
        Ok(()) => Ok(directory.join("counters.sock")),
        Err(error) => Err(Failure::from_system(format!("making {}", directory.display()), &error)),
    }
}

/// Opens the events on each CPU, or on that of `--cpu`.
fn open_counters(common: &CommonArgs, list: &str, file: Option<&Path>) -> Result<Vec<OpenCounter>, Failure> {
    let machine = common.detect_machine()?;
    let request = parse_events(list, file, &machine)?;
    let mut open = Vec::new();
    for event in &request.events {
        for cpu in chosen_cpus(common, &machine) {
            let group = EventGroup::open_on_cpu(&[event.code], cpu, &machine);
            let group = group.and_then(|group| group.read_counts().map(|_| group));
            let group = group.map_err(|refusal| explain_refusal(refusal.of_event(&event.name)))?;
            open.push(OpenCounter { counter: event.name.clone(), cpu, group });
        }
    }
    Ok(open)
}

fn chosen_cpus(common: &CommonArgs, machine: &Machine) -> Vec<u32> {
    match common.cpu {
        Some(cpu) => vec![cpu],
        None => machine.topology.allowed.known().cloned().unwrap_or_else(|| vec![machine.target_cpu()]),
    }
}

/// Starts the process that holds the events.
pub(super) fn start_counting(
    common: &CommonArgs,
    list: &str,
    file: Option<&Path>,
    output: &mut Output,
) -> Result<u8, Failure> {
    let path = socket_path()?;
    if ask_resident(&path, "status").is_ok() {
        return Err(already_counting());
    }
    // What the process could not open, this one reports.
    let opened = open_counters(common, list, file)?.len();
    let program = std::env::current_exe().map_err(|error| Failure::from_system("finding this program", &error))?;
    let mut command = Command::new(program);
    command.args(["counters", "start", list, "--resident"]).stdin(Stdio::null()).stdout(Stdio::null());
    if let Some(file) = file {
        command.arg("--events").arg(file);
    }
    if let Some(cpu) = common.cpu {
        command.args(["--cpu", &cpu.to_string()]);
    }
    let mut child = command
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| Failure::from_system("starting the process that holds the counters", &error))?;
    let begun = Instant::now();
    loop {
        if ask_resident(&path, "status").is_ok_and(|answer| answer.process == child.id()) {
            break;
        }
        let ended = child.try_wait().map_err(|error| Failure::from_system("waiting for it", &error))?;
        // Another start was first, and has the lock.
        if ended.is_some_and(|status| status.code() == Some(i32::from(exit::USAGE))) {
            return Err(already_counting());
        }
        if ended.is_some() || begun.elapsed() > START_LIMIT {
            let _ = child.kill();
            let remedy = "run it again; `cyclescope counters list` tells which events count";
            return Err(Failure::internal("the process that holds the counters did not start").with_remedy(remedy));
        }
        cyclescope_platform::time::sleep(Duration::from_millis(5));
    }
    if !output.is_json() {
        output.write_line(format!("{opened} counters count until `cyclescope counters stop`"))?;
        return Ok(exit::DONE);
    }
    print_counts("status", output)
}

fn already_counting() -> Failure {
    Failure::usage("counters are counting already", Some("end them first: cyclescope counters stop"))
}

/// Takes the lock that one process has as long as it lives, however it ends. One that is about to
/// end still has it for a moment, and answers no more.
fn lock_for_resident(socket: &Path) -> Result<File, Failure> {
    let path = socket.with_extension("lock");
    let failed = |error: &io::Error| Failure::from_system(format!("locking {}", path.display()), error);
    let file = File::options().write(true).create(true).truncate(false).open(&path).map_err(|error| failed(&error))?;
    let begun = Instant::now();
    loop {
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                if ask_resident(socket, "status").is_ok() || begun.elapsed() > REQUEST_LIMIT {
                    return Err(already_counting());
                }
                cyclescope_platform::time::sleep(Duration::from_millis(5));
            }
            Err(errno) => return Err(failed(&errno.into())),
        }
    }
}

/// Holds the events until it is asked to stop.
pub(super) fn hold_counters(common: &CommonArgs, list: &str, file: Option<&Path>) -> Result<u8, Failure> {
    let path = socket_path()?;
    let _lock = lock_for_resident(&path)?;
    let open = open_counters(common, list, file)?;
    // A terminal that closes ends no other session.
    let _ = rustix::process::setsid();
    // The socket of a process that was killed.
    let _ = std::fs::remove_file(&path);
    let failed = |error: &io::Error| Failure::from_system(format!("answering on {}", path.display()), error);
    let listener = UnixListener::bind(&path).map_err(|error| failed(&error))?;
    loop {
        let (stream, _) = listener.accept().map_err(|error| failed(&error))?;
        // A client that goes away changes nothing.
        if answer_client(stream, &open).unwrap_or(false) {
            let _ = std::fs::remove_file(&path);
            return Ok(exit::DONE);
        }
    }
}

/// Answers one request. Returns whether to stop.
fn answer_client(mut stream: UnixStream, open: &[OpenCounter]) -> io::Result<bool> {
    stream.set_read_timeout(Some(REQUEST_LIMIT))?;
    stream.set_write_timeout(Some(REQUEST_LIMIT))?;
    let mut request = String::new();
    Read::by_ref(&mut stream).take(64).read_to_string(&mut request)?;
    let count = |one: &OpenCounter| CpuCount {
        counter: one.counter.clone(),
        cpu: one.cpu,
        value: one.group.read_counts().ok().map(|counts| counts[0]),
    };
    let counts: Vec<CpuCount> = open.iter().map(count).collect();
    stream.write_all(&serde_json::to_vec(&ResidentAnswer { process: std::process::id(), counts })?)?;
    Ok(request == "stop")
}

/// Sends a request and returns the answer.
fn ask_resident(path: &Path, request: &str) -> io::Result<ResidentAnswer> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(REQUEST_LIMIT))?;
    stream.write_all(request.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    stream.take(1 << 20).read_to_end(&mut answer)?;
    Ok(serde_json::from_slice(&answer)?)
}

/// Prints the counts since `start`; `stop` ends the counting.
pub(super) fn print_counts(request: &str, output: &mut Output) -> Result<u8, Failure> {
    let ResidentAnswer { counts, .. } = ask_resident(&socket_path()?, request).map_err(|_| {
        let remedy = "start them: cyclescope counters start cycles,instructions";
        Failure::usage("no counters are counting", Some(remedy))
    })?;
    if output.is_json() {
        counts.iter().try_for_each(|count| output.write_record("counters.count", count))?;
        return Ok(exit::DONE);
    }
    let widest = counts.iter().map(|count| count.counter.chars().count()).max().unwrap_or(0);
    for CpuCount { counter, cpu, value } in &counts {
        let value = value.map_or("lost its counter".to_string(), |value| value.to_string());
        output.write_line(format!("{:widest$}  CPU {cpu:<4} {value:>20}", escape_controls(counter)))?;
    }
    Ok(exit::DONE)
}
