//! Runs compilers and assemblers, and makes sure that they end.
//!
//! A tool runs in its own session, without input or a terminal. When it ends, runs too long or
//! prints too much, its whole process group is killed. A process left behind would disturb the
//! measurement.

use crate::output::Failure;
use crate::process::child_start::{StartError, start_child};
use crate::process::child_watch::{ChildEvent, ChildWatch, stopped_failure};
use crate::process::interrupt::ProcessGroup;
use cyclescope::error::{RunError, Unavailable};
use cyclescope::process_state::ProcessState;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Limits for a tool.
#[derive(Debug, Clone, Copy)]
struct ToolLimits {
    /// Wall time before it is killed.
    wall: Duration,
    /// Seconds of CPU time per process.
    cpu_s: u64,
    /// Bytes per file that it writes.
    file: u64,
    /// Bytes that it may print.
    printed: usize,
}

/// The longest compilations take about ten seconds of CPU time. On half a CPU, they still get all
/// of it.
const TOOL_LIMITS: ToolLimits =
    ToolLimits { wall: Duration::from_secs(120), cpu_s: 60, file: 256 << 20, printed: 16 << 20 };
/// Extra seconds of CPU time after [`ToolLimits::cpu_s`], before the kernel sends a signal that
/// can't be caught.
const SPARE_CPU_S: u64 = 2;
/// Bytes of a tool's output that are kept.
const KEPT_BYTES: usize = 64 << 10;

/// Bytes per read from a pipe.
const READ_BYTES: usize = 16 << 10;
/// Reads that empty a full pipe (`pipe(7)`).
const READS_PER_PIPE: usize = 4;

/// How a tool ended.
#[derive(Debug)]
enum ToolEnd {
    Exited(ExitStatus),
    /// Killed because its time was over.
    Late,
    /// Killed because it printed too much.
    Flood,
    /// Killed because something had stopped it.
    Stopped(ProcessState),
}

/// The first bytes that a tool printed on standard output and on standard error.
type ToolOutput = [Vec<u8>; 2];

/// Runs a tool without input and returns its standard output. The error holds its messages, or why
/// it couldn't run.
pub fn run_tool(command: Command, called: &str, remedy: &str) -> Result<Vec<u8>, Failure> {
    run_within(command, called, remedy, TOOL_LIMITS)
}

fn run_within(command: Command, called: &str, remedy: &str, limits: ToolLimits) -> Result<Vec<u8>, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let (end, [stdout, stderr]) = run_to_end(command, limits).map_err(|error| start_failure(&error, called, remedy))?;
    let endless = Some("check the source for endless recursion or repetition");
    let status = match end {
        ToolEnd::Late => {
            let text = format!("{name} did not end within {} s", limits.wall.as_secs_f64());
            return Err(Failure::usage(text, endless));
        }
        ToolEnd::Stopped(state) => return Err(stopped_failure(&name, state)),
        ToolEnd::Flood => {
            let text = format!("{name} printed more than {} MiB", limits.printed >> 20);
            return Err(Failure::usage(text, endless));
        }
        ToolEnd::Exited(status) if status.success() => return Ok(stdout),
        ToolEnd::Exited(status) => status,
    };
    if status.signal() == Some(libc::SIGXCPU) {
        let text = format!("{name} did not end within {} s of CPU time", limits.cpu_s);
        return Err(Failure::usage(text, endless));
    }
    let messages = String::from_utf8_lossy(&stderr);
    match messages.trim_end() {
        "" => Err(Failure::usage(format!("{name} failed: {status}"), None)),
        messages => Err(Failure::usage(format!("{name} failed:\n{messages}"), None)),
    }
}

/// The failure for a program that could not be started. `remedy` is that for a missing program.
pub fn start_failure(error: &io::Error, called: &str, remedy: &str) -> Failure {
    let is_missing = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    match error.raw_os_error() {
        // The program exists, or nobody knows yet.
        Some(errno) if !is_missing && !matches!(errno, libc::EACCES | libc::ENOEXEC | libc::ELOOP) => {
            RunError::from_system_call("starting a program", "clone, pipe2, dup2, execve or waitid", errno).into()
        }
        _ => {
            let (what, why) = (called.to_string(), error.to_string());
            Failure::from(Unavailable { what, why, remedy: remedy.to_string() })
        }
    }
}

/// Runs a tool until it ends or exceeds a limit, and kills what remains of its group.
fn run_to_end(mut command: Command, limits: ToolLimits) -> io::Result<(ToolEnd, ToolOutput)> {
    // SAFETY: `confine_child` calls only async-signal-safe functions, and allocates nothing.
    unsafe { command.pre_exec(move || confine_child(limits)) };
    let (out, err) = (io::pipe()?, io::pipe()?);
    command.stdin(Stdio::null()).stdout(out.1).stderr(err.1);
    let watch = match start_child(command) {
        Ok(watch) => watch,
        Err(StartError::Refused(error)) => return Err(error),
        Err(StartError::Stopped(state)) => return Ok((ToolEnd::Stopped(state), ToolOutput::default())),
    };
    let group = ProcessGroup::from_leader(watch.pid());
    let mut listener = ToolListener::new(watch, [out.0, err.0])?;
    let end = listener.listen_to_end(limits);
    // The tool isn't reaped yet, so no other process can have its process group number.
    group.kill();
    let ended = listener.watch.wait_for_killed();
    drop(group);
    if ended.is_err() {
        return Ok((ToolEnd::Stopped(ProcessState::Frozen), ToolOutput::default()));
    }
    // The last output may still be in the pipes.
    let drained = (0..READS_PER_PIPE).try_for_each(|_| listener.drain());
    let status = listener.watch.reap();
    drained?;
    Ok((end?.map_or(ToolEnd::Exited(status?), |early| early), listener.output))
}

/// Reads a tool's output, so that the tool never blocks on a full pipe.
struct ToolListener {
    watch: ChildWatch,
    pipes: [Option<PipeReader>; 2],
    output: ToolOutput,
    /// Bytes read so far.
    bytes: usize,
}

impl ToolListener {
    fn new(watch: ChildWatch, pipes: [PipeReader; 2]) -> io::Result<ToolListener> {
        for pipe in &pipes {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        Ok(ToolListener { watch, pipes: pipes.map(Some), output: ToolOutput::default(), bytes: 0 })
    }

    /// Reads until the tool has ended. Returns the limit that it exceeded, if any.
    fn listen_to_end(&mut self, limits: ToolLimits) -> io::Result<Option<ToolEnd>> {
        let until = Some(Instant::now() + limits.wall);
        loop {
            let pipes: Vec<_> = self.pipes.iter().flatten().map(|pipe| pipe.as_fd()).collect();
            match self.watch.wait(until, &pipes)? {
                ChildEvent::Ended => return Ok(None),
                ChildEvent::Late => return Ok(Some(ToolEnd::Late)),
                ChildEvent::Stopped(state) => return Ok(Some(ToolEnd::Stopped(state))),
                ChildEvent::Ready => {}
            }
            self.drain()?;
            if self.bytes > limits.printed {
                return Ok(Some(ToolEnd::Flood));
            }
        }
    }

    /// Reads what is in the pipes now, and keeps the first bytes.
    fn drain(&mut self) -> io::Result<()> {
        let mut buffer = [0; READ_BYTES];
        for (pipe, kept) in self.pipes.iter_mut().zip(&mut self.output) {
            let Some(reader) = pipe else { continue };
            // A flood arrives in pieces; its length is checked between them.
            match reader.read(&mut buffer) {
                Ok(0) => *pipe = None,
                Ok(count) => {
                    self.bytes += count;
                    let room = KEPT_BYTES.saturating_sub(kept.len());
                    kept.extend_from_slice(&buffer[..count.min(room)]);
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Runs in the new process: gives it its own session, its limits, and a signal when this program
/// ends.
fn confine_child(limits: ToolLimits) -> io::Result<()> {
    let set = |what, soft, hard| {
        let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
        // SAFETY: the limit outlives the call. If setting it fails, the tool runs without it.
        unsafe { libc::setrlimit(what, &limit) };
    };
    // SAFETY: neither call takes pointers.
    unsafe {
        libc::setsid();
        // SIGTERM rather than SIGKILL lets compilers remove their temporary files.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
    }
    // The soft limit sends SIGXCPU, which shows the reason; the hard limit sends SIGKILL.
    set(libc::RLIMIT_CPU, limits.cpu_s, limits.cpu_s + SPARE_CPU_S);
    set(libc::RLIMIT_FSIZE, limits.file, limits.file);
    set(libc::RLIMIT_CORE, 0, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: ToolLimits = ToolLimits { wall: Duration::from_secs(2), ..TOOL_LIMITS };

    fn shell(script: &str, limits: ToolLimits) -> Result<Vec<u8>, Failure> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run_within(command, "compiler sh", "install it", limits)
    }

    fn refusal(script: &str, limits: ToolLimits) -> String {
        let begun = Instant::now();
        let failure = shell(script, limits).expect_err("it is refused");
        assert!(begun.elapsed() < Duration::from_secs(30), "{failure:?}");
        failure.text().to_string()
    }

    /// Whether a process with this number runs.
    fn runs(process: &str) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let state = status.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        !matches!(state, None | Some('Z' | 'X'))
    }

    fn gone(process: &str) {
        let until = Instant::now() + Duration::from_secs(20);
        while runs(process) {
            assert!(Instant::now() < until, "{process} lives on");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn captures_stdout_and_stderr() {
        assert_eq!(shell("echo out; echo err >&2", SHORT).expect("it ends well"), b"out\n");
        assert_eq!(refusal("echo out; echo err >&2; exit 3", SHORT), "sh failed:\nerr");
        assert_eq!(refusal("exit 3", SHORT), "sh failed: exit status: 3");
        let missing = run_within(Command::new("/none"), "compiler none", "install it", SHORT);
        assert!(missing.expect_err("there is none").text().contains("compiler none is not available"));
    }

    #[test]
    fn tool_that_is_stopped_before_it_runs_is_reported() {
        let mut command = Command::new("sh");
        let stop = || {
            // SAFETY: takes no pointers.
            unsafe { libc::raise(libc::SIGSTOP) };
            Ok(())
        };
        // SAFETY: `stop` makes one system call.
        unsafe { command.pre_exec(stop) };
        let failure = run_within(command, "compiler sh", "install it", TOOL_LIMITS).expect_err("it is killed");
        assert_eq!(failure.text(), "something stopped sh");
    }

    #[test]
    fn sleeping_tool_is_killed_with_its_children() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("number");
        let script = format!("sleep 1000 & echo $! > {0}; trap '' TERM INT HUP; sleep 1000", file.display());
        assert!(refusal(&script, SHORT).contains("did not end within 2 s"));
        gone(std::fs::read_to_string(file).expect("a number").trim());
    }

    #[test]
    fn leftover_children_are_killed_without_waiting() {
        let begun = Instant::now();
        let left = shell("sleep 1000 & echo $!", TOOL_LIMITS).expect("it ends well");
        assert!(begun.elapsed() < Duration::from_secs(60));
        gone(String::from_utf8(left).expect("a number").trim());
    }

    #[test]
    fn flooding_tool_is_killed_and_its_output_dropped() {
        for to in ["", " >&2"] {
            let limits = ToolLimits { wall: Duration::from_secs(60), printed: 1 << 20, ..TOOL_LIMITS };
            assert!(refusal(&format!("yes{to}"), limits).contains("printed more than 1 MiB"));
        }
        let long = shell("head -c 1000000 /dev/zero", TOOL_LIMITS).expect("it ends well");
        assert_eq!(long.len(), KEPT_BYTES);
    }

    #[test]
    fn endless_computation_reports_the_cpu_time_limit() {
        let limits = ToolLimits { wall: Duration::from_secs(60), cpu_s: 1, ..TOOL_LIMITS };
        assert!(refusal("while :; do :; done", limits).contains("1 s of CPU time"));
        // A tool that catches the soft limit's signal meets the hard limit.
        let text = refusal("trap '' XCPU; while :; do :; done", limits);
        assert!(text.contains("SIGKILL"), "{text}");
    }

    #[test]
    fn tool_has_no_input_no_terminal_and_no_large_files() {
        assert_eq!(shell("cat; (: < /dev/tty) 2> /dev/null || echo none", SHORT).expect("it ends"), b"none\n");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("large").display().to_string();
        refusal(&format!("head -c 2000000 /dev/zero > {file}"), ToolLimits { file: 1 << 20, ..SHORT });
        assert_eq!(std::fs::metadata(file).expect("a file").len(), 1 << 20);
    }
}
