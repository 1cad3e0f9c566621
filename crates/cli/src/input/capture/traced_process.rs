//! A run of an executable under ptrace, with its threads and child processes.
//!
//! Everything that it starts is killed when this value is dropped, or when this program ends in any
//! way.

use super::executable_file::ExecutableFile;
use super::stopped_task::{
    ProgramEnd, StepEnd, StoppedTask, TaskNumber, request, resume, trace_this_process, wait_for, wait_for_any,
};
use crate::output::Failure;
use crate::process::child_start::start_child;
use crate::process::interrupt::{HeldSignals, ProcessGroup};
use cyclescope::error::Unavailable;
use cyclescope::record::{ErrorRecord, exit};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The breakpoint instruction, INT3.
const BREAKPOINT: u8 = 0xcc;
/// Entry of the auxiliary vector with the program's first instruction (Linux, `auxvec.h`).
const AUXILIARY_ENTRY: u64 = 9;
/// Time for killed tasks to end.
const ENDING_MOST: Duration = Duration::from_secs(5);

/// A running program.
pub struct TracedProcess {
    leader: TaskNumber,
    group: ProcessGroup,
    /// Difference between addresses in memory and in the file.
    bias: u64,
}

/// Why the run stopped.
pub enum RunStop {
    /// A task arrived at the breakpoint for the given time.
    Arrived(StoppedTask),
    /// The program ended. Number of arrivals, and how it ended.
    Ended { arrivals: u64, how: ProgramEnd },
    /// The time is over. Number of arrivals.
    TimeOver { arrivals: u64 },
}

/// A breakpoint, and the byte that it replaces.
struct Breakpoint {
    at: u64,
    replaced: u8,
}

impl TracedProcess {
    /// Starts an executable with these arguments, and stops it before its first instruction. Its
    /// output goes to standard error.
    pub fn start(file: &ExecutableFile, arguments: &[String], deadline: Instant) -> Result<TracedProcess, Failure> {
        // A path without a slash would be searched in other folders.
        let path = std::path::absolute(file.path()).unwrap_or_else(|_| file.path().to_path_buf());
        let mut command = Command::new(path);
        command.args(arguments);
        // Otherwise the region's first call of a library function would search for it, each time.
        command.env("LD_BIND_NOW", "1");
        let output = io::stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from);
        command.stdout(output).process_group(0);
        let held = HeldSignals::new();
        let unblock = held.unblock_in_child();
        let parent = std::process::id();
        let begin = move || {
            unblock();
            ProcessGroup::die_with_parent(parent);
            trace_this_process()
        };
        // SAFETY: `begin` makes only system calls that are allowed between fork and exec.
        unsafe { command.pre_exec(begin) };
        let name = file.path().display().to_string();
        let child =
            start_child(command).map_err(|error| error.into_failure(&name, |error| explain_start(file, error)))?;
        let leader: TaskNumber = child.pid();
        let group = ProcessGroup::from_leader(leader);
        drop(held);
        let mut process = TracedProcess { leader, group, bias: 0 };
        let stopped = wait_for(leader, deadline).map_err(|error| tracing_failure("waiting for the program", &error))?;
        if stopped.is_none() {
            return Err(explain_late_start(file));
        }
        process.set_options()?;
        process.bias = process.read_entry()?.wrapping_sub(file.entry());
        Ok(process)
    }

    fn set_options(&self) -> Result<(), Failure> {
        let options = libc::PTRACE_O_EXITKILL
            | libc::PTRACE_O_TRACECLONE
            | libc::PTRACE_O_TRACEFORK
            | libc::PTRACE_O_TRACEVFORK
            | libc::PTRACE_O_TRACEEXEC;
        request(libc::PTRACE_SETOPTIONS, self.leader, 0, options as usize)
            .map_err(|error| tracing_failure("tracing the program", &error))
    }

    /// The address in memory of an address in the file.
    pub fn loaded_address(&self, address: u64) -> u64 {
        address.wrapping_add(self.bias)
    }

    /// The address in the file of an address in memory.
    pub fn file_address(&self, address: u64) -> u64 {
        address.wrapping_sub(self.bias)
    }

    /// The address at which the program starts, from its auxiliary vector (proc(5)).
    fn read_entry(&self) -> Result<u64, Failure> {
        let path = format!("/proc/{}/auxv", self.leader);
        let bytes = std::fs::read(path).map_err(|error| tracing_failure("reading the program's addresses", &error))?;
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
        let mut entries = bytes.chunks_exact(16).map(|entry| (word(&entry[..8]), word(&entry[8..])));
        let entry = entries.find(|(kind, _)| *kind == AUXILIARY_ENTRY).map(|(_, value)| value);
        entry.ok_or_else(|| Failure::internal("the program's auxiliary vector has no entry point"))
    }

    /// An address in memory as a place in the executable, or else in another file.
    pub fn name_address(&self, file: &ExecutableFile, address: u64) -> String {
        let own = self.file_address(address);
        if file.contains(own) {
            return file.name_address(own);
        }
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.leader)).unwrap_or_default();
        let place = maps.lines().find_map(|line| describe_place(line, address));
        place.unwrap_or_else(|| format!("{address:#x}"))
    }

    /// Runs until a task arrives at an address of the file for the given time, counted from 1.
    pub fn run_to(&mut self, address: u64, hit: u64, deadline: Instant) -> Result<RunStop, Failure> {
        self.run_to_breakpoint(self.loaded_address(address), hit, deadline)
            .map_err(|error| tracing_failure("running the program", &error))
    }

    fn run_to_breakpoint(&self, at: u64, hit: u64, deadline: Instant) -> io::Result<RunStop> {
        let leader = StoppedTask::open(self.leader)?;
        let breakpoint = Breakpoint { at, replaced: leader.replace_byte(at, BREAKPOINT)? };
        resume(self.leader, 0)?;
        let mut arrivals = 0;
        let mut known = vec![self.leader];
        loop {
            let Some((task, status)) = wait_for_any(deadline)? else { return Ok(RunStop::TimeOver { arrivals }) };
            if let Some(how) = status.end() {
                if task == self.leader {
                    return Ok(RunStop::Ended { arrivals, how });
                }
                continue;
            }
            let is_new = !known.contains(&task);
            if is_new {
                known.push(task);
            }
            let handled = match (status.signal(), status.event()) {
                (libc::SIGTRAP, 0) => self.handle_trap(task, &breakpoint, hit, &mut arrivals, deadline),
                // New tasks begin with this signal.
                (libc::SIGSTOP, 0) if is_new => resume(task, 0).map(|()| None),
                (signal, 0) => resume(task, signal).map(|()| None),
                _ => resume(task, 0).map(|()| None),
            };
            match handled {
                Ok(Some(arrived)) => return Ok(RunStop::Arrived(arrived)),
                Ok(None) => {}
                // It ended in the meantime, and is reported next.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENOENT)) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(RunStop::TimeOver { arrivals }),
                Err(error) => return Err(error),
            }
        }
    }

    /// Handles a trap: returns the task at its last arrival, and lets it go on otherwise.
    fn handle_trap(
        &self,
        task: TaskNumber,
        breakpoint: &Breakpoint,
        hit: u64,
        arrivals: &mut u64,
        deadline: Instant,
    ) -> io::Result<Option<StoppedTask>> {
        let stopped = StoppedTask::open(task)?;
        let mut registers = stopped.registers()?;
        if registers.rip != breakpoint.at + 1 {
            return resume(task, libc::SIGTRAP).map(|()| None);
        }
        registers.rip = breakpoint.at;
        stopped.set_registers(&registers)?;
        stopped.replace_byte(breakpoint.at, breakpoint.replaced)?;
        *arrivals += 1;
        if *arrivals == hit {
            return Ok(Some(stopped));
        }
        let signal = match stopped.step(deadline)? {
            StepEnd::Done => 0,
            StepEnd::Fault(signal) => signal,
            StepEnd::Ended => return Ok(None),
        };
        stopped.replace_byte(breakpoint.at, BREAKPOINT)?;
        resume(task, signal).map(|()| None)
    }
}

impl Drop for TracedProcess {
    fn drop(&mut self) {
        self.group.kill();
        // SAFETY: takes no pointers. The leader isn't reaped yet, so its number is its own.
        unsafe { libc::kill(self.leader, libc::SIGKILL) };
        let deadline = Instant::now() + ENDING_MOST;
        // The leader's end is reported after that of its threads.
        while let Ok(Some((task, status))) = wait_for_any(deadline) {
            if task == self.leader && status.end().is_some() {
                break;
            }
            // A task that stopped before the signal reached it.
            let _ = resume(task, 0);
        }
    }
}

/// The place of an address in the file of a mapping, from the mapping's line (proc(5)).
fn describe_place(line: &str, address: u64) -> Option<String> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let start = number(start)?;
    let offset = number(words.nth(1)?)?;
    let name = words.nth(2)?.rsplit('/').next()?;
    (start..number(end)?).contains(&address).then(|| format!("{name}+{:#x}", address - start + offset))
}

/// The failure of a system call on the traced program.
pub fn tracing_failure(doing: &str, error: &io::Error) -> Failure {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => refused_tracing(error),
        _ => Failure::from_system(format!("{doing} failed"), error),
    }
}

fn refused_tracing(error: &io::Error) -> Failure {
    let level = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let remedy = match level.trim() {
        "2" | "3" => format!(
            "run as root, or allow it: sysctl -w kernel.yama.ptrace_scope=1 (it is {}; 3 needs a reboot)",
            level.trim()
        ),
        _ => "allow the system call ptrace, in a container with --cap-add=SYS_PTRACE or another seccomp profile"
            .to_string(),
    };
    let what = "a region of a running program".to_string();
    Failure::from(Unavailable { what, why: format!("tracing a program was refused: {error}"), remedy })
}

fn explain_late_start(file: &ExecutableFile) -> Failure {
    Failure::Error(Box::new(ErrorRecord {
        code: "hang",
        exit: exit::FAULT,
        text: format!("{} did not start in time", file.path().display()),
        remedy: Some("allow it more time with --timeout, or run it by itself to see what it waits for".to_string()),
        ..ErrorRecord::default()
    }))
}

fn explain_start(file: &ExecutableFile, error: &io::Error) -> Failure {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::ENOSYS) => refused_tracing(error),
        _ => {
            let text = format!("{} can't be started: {error}", file.path().display());
            Failure::usage(text, Some("name a program that you may run"))
        }
    }
}
