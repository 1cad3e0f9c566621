//! Compilers and assemblers: other programs, which must end, and end with this one.
//!
//! A tool runs in a session of its own, without input and without a terminal. When it has ended, or did not in time, or says
//! more than anybody reads, everything that is left of its group is killed: a process that it left behind would run beside
//! the measurement.

use crate::output::Failure;
use crate::process::interrupt::ProcessGroup;
use cyclescope::error::Unavailable;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What a tool may take.
#[derive(Debug, Clone, Copy)]
struct ToolLimits {
    /// Time until it is ended.
    wall: Duration,
    /// Seconds of CPU time of each of its processes.
    cpu_s: u64,
    /// Bytes of each file that it writes.
    file: u64,
    /// Bytes that it may say.
    said: usize,
}

/// The longest compilations take some ten seconds of CPU time; at half a CPU they have all of theirs.
const TOOL_LIMITS: ToolLimits =
    ToolLimits { wall: Duration::from_secs(120), cpu_s: 60, file: 256 << 20, said: 16 << 20 };
/// Seconds of CPU time after which the kernel ends what did not end at [`Limits::cpu_s`], with a signal that can't be caught.
const SPARE_CPU_S: u64 = 2;
/// Bytes of a tool's words that are kept.
const KEPT_BYTES: usize = 64 << 10;

/// Bytes that are taken from a pipe at once,
const READ_BYTES: usize = 16 << 10;
/// and how often they are as much as a pipe holds (`pipe(7)`).
const READS_PER_PIPE: usize = 4;

/// How a tool ended.
#[derive(Debug)]
enum ToolEnd {
    Exited(ExitStatus),
    /// It was killed when its time was over.
    Late,
    /// It was killed when it had said too much.
    Flood,
}

/// What a tool said at first, on standard output and on standard error.
type ToolOutput = [Vec<u8>; 2];

/// Runs a tool without input, and returns what it printed on standard output. An error is what it said, or why it could not
/// run.
pub fn run_tool(command: Command, called: &str, remedy: &str) -> Result<Vec<u8>, Failure> {
    run_within(command, called, remedy, TOOL_LIMITS)
}

fn run_within(mut command: Command, called: &str, remedy: &str, limits: ToolLimits) -> Result<Vec<u8>, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let (end, [printed, said]) = run_to_end(&mut command, limits).map_err(|error| {
        Failure::from(Unavailable { what: called.to_string(), why: error.to_string(), remedy: remedy.to_string() })
    })?;
    let endless = Some("check it for an endless repetition");
    let status = match end {
        ToolEnd::Late => {
            let text = format!("{name} did not end within {} s", limits.wall.as_secs_f64());
            return Err(Failure::usage(text, endless));
        }
        ToolEnd::Flood => {
            let text = format!("{name} said more than {} MiB", limits.said >> 20);
            return Err(Failure::usage(text, endless));
        }
        ToolEnd::Exited(status) if status.success() => return Ok(printed),
        ToolEnd::Exited(status) => status,
    };
    if status.signal() == Some(libc::SIGXCPU) {
        let text = format!("{name} did not end within {} s of CPU time", limits.cpu_s);
        return Err(Failure::usage(text, endless));
    }
    let said = String::from_utf8_lossy(&said);
    match said.trim_end() {
        "" => Err(Failure::usage(format!("{name} failed: {status}"), None)),
        said => Err(Failure::usage(format!("{name} failed:\n{said}"), None)),
    }
}

/// Runs a tool to its end, or to that of its limits, and ends what it left.
fn run_to_end(command: &mut Command, limits: ToolLimits) -> io::Result<(ToolEnd, ToolOutput)> {
    // SAFETY: `confine` calls only async-signal-safe functions, and allocates nothing.
    unsafe { command.pre_exec(move || confine_child(limits)) };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let group = ProcessGroup::from_leader(child.id());
    let mut listener = ToolListener::new(&mut child)?;
    let end = listener.listen_to_end(limits);
    // While it is not reaped, its number, and so that of its group, is nobody else's.
    group.kill();
    let status = child.wait();
    drop(group);
    // What was said last is in the pipes.
    (0..READS_PER_PIPE).try_for_each(|_| listener.drain())?;
    let said = listener.said;
    Ok((end?.map_or(ToolEnd::Exited(status?), |early| early), said))
}

/// Hears what a tool says, so that it never waits for a reader.
struct ToolListener {
    ended: std::os::fd::OwnedFd,
    pipes: [Option<Box<dyn ReadablePipe>>; 2],
    said: ToolOutput,
    /// Bytes that were said.
    bytes: usize,
}

/// The readable end of a pipe.
trait ReadablePipe: Read + AsFd {}
impl<T: Read + AsFd> ReadablePipe for T {}

impl ToolListener {
    fn new(child: &mut Child) -> io::Result<ToolListener> {
        let out = child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn ReadablePipe>);
        let err = child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn ReadablePipe>);
        let pipes = [out, err];
        for pipe in pipes.iter().flatten() {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        let pid = Pid::from_child(child);
        let ended = pidfd_open(pid, PidfdFlags::empty())?;
        Ok(ToolListener { ended, pipes, said: ToolOutput::default(), bytes: 0 })
    }

    /// Hears until the tool has ended; what it reached before that, if anything.
    fn listen_to_end(&mut self, limits: ToolLimits) -> io::Result<Option<ToolEnd>> {
        let until = Instant::now() + limits.wall;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Some(ToolEnd::Late));
            }
            if self.wait_for_event(left)? {
                return Ok(None);
            }
            self.drain()?;
            if self.bytes > limits.said {
                return Ok(Some(ToolEnd::Flood));
            }
        }
    }

    /// Waits until there is something to hear or the tool has ended, which it returns, or the time is over.
    fn wait_for_event(&self, time: Duration) -> io::Result<bool> {
        let pipes = self.pipes.iter().flatten().map(|pipe| PollFd::new(pipe, PollFlags::IN));
        let mut ready: Vec<PollFd> = [PollFd::new(&self.ended, PollFlags::IN)].into_iter().chain(pipes).collect();
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
        match poll(&mut ready, Some(&time)) {
            Ok(_) | Err(Errno::INTR) => Ok(ready[0].revents().contains(PollFlags::IN)),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Takes what is in the pipes now, and keeps the first of it.
    fn drain(&mut self) -> io::Result<()> {
        let mut buffer = [0; READ_BYTES];
        for (pipe, said) in self.pipes.iter_mut().zip(&mut self.said) {
            let Some(reader) = pipe else { continue };
            // A flood is heard in pieces, between which its length is looked at.
            match reader.read(&mut buffer) {
                Ok(0) => *pipe = None,
                Ok(count) => {
                    self.bytes += count;
                    let room = KEPT_BYTES.saturating_sub(said.len());
                    said.extend_from_slice(&buffer[..count.min(room)]);
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// In the new process: a session of its own, its limits, and an end with this program.
fn confine_child(limits: ToolLimits) -> io::Result<()> {
    let set = |what, soft, hard| {
        let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
        // SAFETY: the limit lives through the call. A tool that could not be limited runs without.
        unsafe { libc::setrlimit(what, &limit) };
    };
    // SAFETY: both take no pointers.
    unsafe {
        libc::setsid();
        // Not SIGKILL: compilers remove their own temporary files.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
    }
    // At the soft limit comes SIGXCPU, which tells why; at the hard one SIGKILL.
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

    /// Whether a process of this number runs.
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
    fn what_it_prints_and_says_is_heard() {
        assert_eq!(shell("echo out; echo err >&2", SHORT).expect("it ends well"), b"out\n");
        assert_eq!(refusal("echo out; echo err >&2; exit 3", SHORT), "sh failed:\nerr");
        assert_eq!(refusal("exit 3", SHORT), "sh failed: exit status: 3");
        let missing = run_within(Command::new("/none"), "compiler none", "install it", SHORT);
        assert!(missing.expect_err("there is none").text().contains("compiler none is not available"));
    }

    #[test]
    fn one_that_sleeps_is_ended_with_all_that_it_started() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("number");
        let script = format!("sleep 1000 & echo $! > {0}; trap '' TERM INT HUP; sleep 1000", file.display());
        assert!(refusal(&script, SHORT).contains("did not end within 2 s"));
        gone(std::fs::read_to_string(file).expect("a number").trim());
    }

    #[test]
    fn what_it_leaves_behind_is_ended_and_not_waited_for() {
        let begun = Instant::now();
        let left = shell("sleep 1000 & echo $!", TOOL_LIMITS).expect("it ends well");
        assert!(begun.elapsed() < Duration::from_secs(60));
        gone(String::from_utf8(left).expect("a number").trim());
    }

    #[test]
    fn one_that_floods_is_ended_and_not_kept() {
        for to in ["", " >&2"] {
            let limits = ToolLimits { wall: Duration::from_secs(60), said: 1 << 20, ..TOOL_LIMITS };
            assert!(refusal(&format!("yes{to}"), limits).contains("said more than 1 MiB"));
        }
        let long = shell("head -c 1000000 /dev/zero", TOOL_LIMITS).expect("it ends well");
        assert_eq!(long.len(), KEPT_BYTES);
    }

    #[test]
    fn one_that_computes_for_ever_is_told_of_its_limit() {
        let limits = ToolLimits { wall: Duration::from_secs(60), cpu_s: 1, ..TOOL_LIMITS };
        assert!(refusal("while :; do :; done", limits).contains("1 s of CPU time"));
        // Who catches the first signal meets the hard limit.
        let text = refusal("trap '' XCPU; while :; do :; done", limits);
        assert!(text.contains("SIGKILL"), "{text}");
    }

    #[test]
    fn it_has_no_input_no_terminal_and_no_large_files() {
        assert_eq!(shell("cat; (: < /dev/tty) 2> /dev/null || echo none", SHORT).expect("it ends"), b"none\n");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("large").display().to_string();
        refusal(&format!("head -c 2000000 /dev/zero > {file}"), ToolLimits { file: 1 << 20, ..SHORT });
        assert_eq!(std::fs::metadata(file).expect("a file").len(), 1 << 20);
    }
}
