//! Runs a compared program once, with a time limit, and reads its CPU time.
//!
//! A program runs in its own process group, without input. When it has ended, the rest of its group
//! is killed, because it would disturb the next run. The program inherits the CPU of this process,
//! which waits meanwhile.

use super::failed_runs::RunFailure;
use super::shell_syntax::ShellSyntax;
use crate::output::{Failure, print_warning};
use crate::process::child_environment::set_environment;
use crate::process::child_start::start_child;
use crate::process::child_watch::{ChildEvent, stopped_failure};
use crate::process::external_tool;
use crate::process::interrupt::{HeldSignals, ProcessGroup};
use cyclescope::executor::user::signal_name;
use cyclescope::process_state::ProcessState;
use cyclescope::record::{ErrorRecord, exit};
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Environment variables: the file for samples, the time per benchmark, and padding whose length
/// moves the stack.
const SAMPLES_VARIABLE: &str = "CYCLESCOPE_AB";
const BENCHMARK_MS_VARIABLE: &str = "CYCLESCOPE_AB_MS";
const LAYOUT_VARIABLE: &str = "CYCLESCOPE_AB_LAYOUT";
/// Milliseconds that a benchmark should take per run: much longer than an interrupt, and a tenth of
/// a second for a pair of runs of five benchmarks.
const BENCHMARK_MS: &str = "10";
/// Maximum growth of the environment: a page, so that the stack can begin anywhere in one.
pub const LAYOUT_BYTES_MOST: usize = 4096;

/// Placeholder for the number of a build.
const BUILD_PLACEHOLDER: &str = "{build}";

/// A program and its arguments, for each of its builds.
#[derive(Debug, Clone)]
pub struct ComparedProgram {
    /// The argument as given.
    pub text: String,
    builds: Vec<Vec<String>>,
}

/// Settings that all runs share.
#[derive(Debug)]
pub struct RunSurroundings {
    /// The file for samples, if programs should write some.
    pub samples: Option<PathBuf>,
    /// The file for the programs' output.
    pub output: Option<File>,
    /// Time before a run is stopped.
    pub timeout: Duration,
    /// Whether the user knows that a program leaves processes behind.
    pub warned: Cell<bool>,
}

/// Makes this process the parent of all processes that the programs leave behind, so that it
/// notices them (prctl(2), PR_SET_CHILD_SUBREAPER). Without that, it does not.
pub fn adopt_orphans() {
    // SAFETY: takes no pointers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// A process that a program left behind, if there is one. Reaps those that have ended.
fn find_left_behind() -> Option<i32> {
    loop {
        // SAFETY: the call takes no pointer. All children that this process waits for are reaped.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } {
            0 => break,
            1.. => {}
            _ => return None,
        }
    }
    let children = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    children.split(' ').next()?.parse().ok()
}

/// The time that a run took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunTime {
    /// CPU time in user mode.
    pub user: Duration,
    /// CPU time in the system.
    pub system: Duration,
    /// Elapsed time, from before its start until after its end.
    pub elapsed: Duration,
}

impl RunTime {
    /// CPU time in user mode and in the system together.
    pub fn total(&self) -> Duration {
        self.user + self.system
    }
}

impl ComparedProgram {
    /// Parses a program from an argument, which is split into words like a shell does. All else
    /// that a shell would do is refused.
    pub fn parse(text: &str, builds: Option<usize>) -> Result<ComparedProgram, Failure> {
        if let Some(syntax) = ShellSyntax::find_first(text) {
            return Err(shell_failure(text, &syntax));
        }
        if builds.is_some() && !text.contains(BUILD_PLACEHOLDER) {
            let text = format!("`{text}` has no {BUILD_PLACEHOLDER}, so all of its builds are the same");
            let remedy = "write {build} where the build's number belongs, as in './sort-{build}'";
            return Err(Failure::usage(text, Some(remedy)));
        }
        let remedy = "name a program and its arguments, such as 'sort -n numbers.txt', with balanced quotes";
        let words = |number: usize| {
            let text = if builds.is_some() { &text.replace(BUILD_PLACEHOLDER, &number.to_string()) } else { text };
            let words = shlex::split(text).filter(|words| words.first().is_some_and(|word| !word.is_empty()));
            words.ok_or_else(|| Failure::usage(format!("`{text}` does not name a program"), Some(remedy)))
        };
        let builds = (1..=builds.unwrap_or(1)).map(words).collect::<Result<_, _>>()?;
        Ok(ComparedProgram { text: text.to_string(), builds })
    }

    /// Number of builds.
    pub fn build_count(&self) -> usize {
        self.builds.len()
    }

    /// Runs one build to its end, with an environment that is larger by `layout` bytes.
    pub fn run_build(&self, build: usize, around: &RunSurroundings, layout: usize) -> Result<RunTime, RunFailure> {
        let words = &self.builds[build];
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).process_group(0).stdin(Stdio::null());
        let samples = around.samples.as_ref();
        let changes = [
            (LAYOUT_VARIABLE, Some("x".repeat(layout).into())),
            (SAMPLES_VARIABLE, samples.map(|path| path.clone().into_os_string())),
            (BENCHMARK_MS_VARIABLE, samples.map(|_| BENCHMARK_MS.into())),
        ];
        set_environment(&mut command, &changes)
            .map_err(|error| Failure::from_system("setting the environment of a program failed", &error))?;
        for stream in [Command::stdout, Command::stderr] {
            let to = around.output.as_ref().map(File::try_clone).transpose();
            let to = to.map_err(|error| Failure::from_system("can't use the file of --output", &error))?;
            stream(&mut command, to.map_or_else(Stdio::null, Stdio::from));
        }
        let held = HeldSignals::new();
        let (parent, released) = (std::process::id(), held.unblock_in_child());
        // SAFETY: the closure only does what is allowed between fork and exec.
        unsafe {
            command.pre_exec(move || {
                ProcessGroup::die_with_parent(parent);
                released();
                Ok(())
            })
        };
        let begun = Instant::now();
        let explain = |error: &io::Error| start_failure(&words[0], error);
        let quoted = format!("`{}`", self.text);
        let mut watch = start_child(command).map_err(|error| error.into_failure(&quoted, explain))?;
        let group = ProcessGroup::from_leader(watch.pid());
        drop(held);
        let event = watch.wait(Some(begun + around.timeout), &[]);
        // The child isn't reaped yet, so no other process can have its process group number.
        group.kill();
        let killed = watch.wait_for_killed();
        drop(group);
        killed.map_err(|_| stopped_failure(&self.text, ProcessState::Frozen))?;
        let reaped = event.and_then(|event| Ok((event, reap_child(watch.pid(), begun)?)));
        let (event, (status, time)) =
            reaped.map_err(|error| Failure::from_system("can't wait for a program", &error))?;
        self.warn_if_left_behind(around);
        if let ChildEvent::Stopped(state) = event {
            return Err(stopped_failure(&quoted, state).into());
        }
        if event == ChildEvent::Late {
            let text = format!("`{}` did not end within {} s", self.text, around.timeout.as_secs_f64());
            let remedy = "give it less work, because short runs measure better, or raise --timeout";
            return Err(RunFailure::repeatable(run_failure("hang", text, None, remedy)));
        }
        if status.success() { Ok(time) } else { Err(RunFailure::repeatable(self.exit_failure(status))) }
    }

    /// Warns once if a process of this program still runs.
    fn warn_if_left_behind(&self, around: &RunSurroundings) {
        let Some(pid) = find_left_behind().filter(|_| !around.warned.get()) else { return };
        around.warned.set(true);
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        print_warning(&format!(
            "`{}` left process {pid} ({}) behind, which may disturb the runs; end it, or compare without it",
            self.text,
            name.trim_end()
        ));
    }

    fn exit_failure(&self, status: ExitStatus) -> Failure {
        let signal = status.signal().map(signal_name);
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("with exit code {code}"),
            (None, number) => format!("by signal {}", number.unwrap_or_default()),
        };
        let remedy = "run it alone, or see its messages with --output";
        run_failure("program", format!("`{}` ended {how}", self.text), signal, remedy)
    }
}

fn shell_failure(text: &str, ShellSyntax { text: found, kind, shell }: &ShellSyntax) -> Failure {
    let text = text.trim();
    // Quoted once for this program, and once for the user's shell. No argument has a NUL.
    let program = shlex::try_join([shell, "-c", text]).unwrap_or_default();
    let program = shlex::try_quote(&program).unwrap_or_default();
    let remedy = format!(
        "write {program} to run it by a shell; to pass the characters to the program, put them in single quotes"
    );
    Failure::usage(format!("`{found}` in `{text}` is {} of a shell, and no shell runs it", kind.name()), Some(&remedy))
}

fn start_failure(program: &str, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied if error.raw_os_error() != Some(libc::EPERM) => {
            let remedy = "name a program by its path, or one in $PATH";
            Failure::usage(format!("can't start `{program}`: {error}"), Some(remedy))
        }
        _ => external_tool::start_failure(error, &format!("program `{program}`"), "run it alone to see why"),
    }
}

/// The failure for a run that failed.
pub fn run_failure(code: &'static str, text: String, signal: Option<&'static str>, remedy: &str) -> Failure {
    let remedy = Some(remedy.to_string());
    Failure::Error(Box::new(ErrorRecord { code, exit: exit::FAULT, text, remedy, signal, ..ErrorRecord::default() }))
}

/// Reaps a child that has ended; returns its status, and the time since it began. The CPU time is
/// that of the child and of the children that it waited for.
fn reap_child(child: libc::pid_t, begun: Instant) -> io::Result<(ExitStatus, RunTime)> {
    let elapsed = begun.elapsed();
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: both outlive the call, and zeros are a valid value of the structure.
    let (reaped, usage) = unsafe {
        let reaped = libc::wait4(child, &mut status, 0, usage.as_mut_ptr());
        (reaped, usage.assume_init())
    };
    if reaped < 0 {
        return Err(io::Error::last_os_error());
    }
    let time =
        |time: libc::timeval| Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64);
    Ok((ExitStatus::from_raw(status), RunTime { user: time(usage.ru_utime), system: time(usage.ru_stime), elapsed }))
}
