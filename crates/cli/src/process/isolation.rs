//! A separate process for a library.
//!
//! The library's constructors run when it is loaded, and may do anything. So it is loaded and measured in a
//! separate process, which reports its progress to this one over a pipe.
//!
//! The process has a session of its own, and neither this program's input nor its terminal. While libraries are loaded, time,
//! CPU time, memory and the length of files are limited. At its end, however it comes, everything of its group is killed: the
//! processes that a constructor has started too, unless they left the group. All that is against accidents: a library has the
//! user's rights.

use crate::output::Failure;
use crate::process::interrupt::{HeldSignals, ProcessGroup, ScratchFolder};
use cyclescope::executor::user::signal_name;
use cyclescope::record::{ErrorRecord, exit};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Time limit for a library's constructors, those of all its copies.
const LOADING_TIME_MOST: Duration = Duration::from_secs(10);

/// Loads libraries and works with them in a separate process; returns its exit code. The
/// folders that they were compiled in go as soon as they are loaded.
pub fn run_isolated<Loaded>(
    load: impl FnOnce() -> Result<Loaded, Failure>,
    folders: impl IntoIterator<Item = ScratchFolder>,
    work: impl FnOnce(&Loaded) -> Result<u8, Failure>,
    report: impl FnOnce(Failure) -> u8,
) -> Result<u8, Failure> {
    let folders: Vec<ScratchFolder> = folders.into_iter().collect();
    let patience = LOADING_TIME_MOST * folders.len().max(1) as u32;
    let (reader, writer) = open_pipe()?;
    let parent = std::process::id();
    let held = HeldSignals::new();
    // SAFETY: this process has one thread, so that the child may do all that this one may.
    match unsafe { libc::fork() } {
        -1 => Err(Failure::internal(format!("fork failed: {}", std::io::Error::last_os_error()))),
        0 => {
            drop(reader);
            ProcessGroup::become_leader();
            drop(held);
            ProcessGroup::die_with_parent(parent);
            detach_stdin();
            let limits = LoadingLimits::new(patience);
            let loaded = load();
            drop(limits);
            send_byte(&writer, LOADED_BYTE);
            let code = loaded.and_then(|loaded| work(&loaded)).unwrap_or_else(report);
            send_byte(&writer, code);
            // SAFETY: ends the process at once: a library's destructors shall not run.
            unsafe { libc::_exit(code.into()) }
        }
        child => {
            drop(writer);
            let group = ProcessGroup::from_forked_leader(child);
            drop(held);
            let loaded = receive_byte(&reader, Some(patience));
            // The compiled files are no longer needed.
            drop(folders);
            let has_loaded = loaded == PipeMessage::Byte(LOADED_BYTE);
            let code = if has_loaded { receive_byte(&reader, None) } else { loaded };
            if code == PipeMessage::Nothing {
                group.kill();
            }
            await_child(child)?;
            // While it is not reaped, its number, and so that of its group, is nobody else's.
            group.kill();
            drop(group);
            let status = reap_child(child)?;
            match code {
                PipeMessage::Byte(code) => Ok(code),
                PipeMessage::Nothing => Err(library_failure(
                    "hang",
                    format!("loading the library did not end within {} s", patience.as_secs()),
                    CONSTRUCTOR_REMEDY,
                )),
                PipeMessage::End => {
                    Err(library_failure("fault", describe_end(status), choose_remedy(status, has_loaded)))
                }
            }
        }
    }
}

/// What a process sends when it has loaded its library.
const LOADED_BYTE: u8 = b'L';

/// What came through a pipe.
#[derive(Debug, PartialEq, Eq)]
enum PipeMessage {
    Byte(u8),
    /// The other side has ended.
    End,
    /// The time is over.
    Nothing,
}

fn open_pipe() -> Result<(OwnedFd, OwnedFd), Failure> {
    let mut ends = [-1; 2];
    // SAFETY: fills two descriptors, which nothing else owns.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(Failure::internal(format!("pipe failed: {}", std::io::Error::last_os_error())));
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

fn send_byte(writer: &OwnedFd, byte: u8) {
    // SAFETY: writes one byte of a live variable. Where nobody listens any more, nothing is lost.
    unsafe { libc::write(writer.as_raw_fd(), (&raw const byte).cast(), 1) };
}

fn receive_byte(reader: &OwnedFd, patience: Option<Duration>) -> PipeMessage {
    let mut ready = libc::pollfd { fd: reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let patience = patience.map_or(-1, |patience| patience.as_millis() as libc::c_int);
    let mut byte = 0u8;
    // SAFETY: both variables live through their calls.
    unsafe {
        match libc::poll(&mut ready, 1, patience) {
            0 => PipeMessage::Nothing,
            _ if libc::read(reader.as_raw_fd(), (&raw mut byte).cast(), 1) == 1 => PipeMessage::Byte(byte),
            _ => PipeMessage::End,
        }
    }
}

/// Gives this process /dev/null as its input: what a library reads is not the user's.
fn detach_stdin() {
    // SAFETY: takes and makes file descriptors of this process. Where there is no /dev/null, the input stays.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if null >= 0 {
            libc::dup2(null, libc::STDIN_FILENO);
            libc::close(null);
        }
    }
}

/// Limits of this process until it is dropped. They are the soft ones: the measurement after them needs more.
struct LoadingLimits([(libc::__rlimit_resource_t, libc::rlimit); 3]);

/// Bytes of memory that libraries may fill while they are loaded, all copies together.
const MEMORY_BYTES_MOST: u64 = 8 << 30;
/// Bytes of a file that they may write.
const FILE_BYTES_MOST: u64 = 256 << 20;

impl LoadingLimits {
    /// CPU time of this length from now on, memory and files.
    fn new(cpu: Duration) -> LoadingLimits {
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).tv_sec as u64;
        let most = [
            (libc::RLIMIT_CPU, used + cpu.as_secs() + 1),
            (libc::RLIMIT_DATA, MEMORY_BYTES_MOST),
            (libc::RLIMIT_FSIZE, FILE_BYTES_MOST),
        ];
        LoadingLimits(most.map(|(what, most)| {
            let mut before = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
            // SAFETY: both limits live through their calls. What can't be limited is not.
            unsafe {
                if libc::getrlimit(what, &mut before) == 0 {
                    let soft = most.min(before.rlim_cur);
                    libc::setrlimit(what, &libc::rlimit { rlim_cur: soft, ..before });
                }
            }
            (what, before)
        }))
    }
}

impl Drop for LoadingLimits {
    fn drop(&mut self) {
        for (what, before) in &self.0 {
            // SAFETY: the limit lives through the call, and is what it was.
            unsafe { libc::setrlimit(*what, before) };
        }
    }
}

/// Waits until a child has ended, and does not reap it.
fn await_child(child: libc::pid_t) -> Result<(), Failure> {
    let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOWAIT;
    // SAFETY: fills the structure, which lives through the call.
    while unsafe { libc::waitid(libc::P_PID, child as libc::id_t, info.as_mut_ptr(), options) } == -1 {
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(Failure::internal(format!("waiting for the library's process failed: {error}")));
        }
    }
    Ok(())
}

fn reap_child(child: libc::pid_t) -> Result<libc::c_int, Failure> {
    let mut status = 0;
    // SAFETY: fills the status of a child of this process.
    while unsafe { libc::waitpid(child, &mut status, 0) } == -1 {
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(Failure::internal(format!("waiting for the library's process failed: {error}")));
        }
    }
    Ok(status)
}

fn describe_end(status: libc::c_int) -> String {
    match libc::WIFEXITED(status) {
        true => format!("the library ended the program, with exit status {}", libc::WEXITSTATUS(status)),
        false => format!("the library's process was ended by {}", signal_name(libc::WTERMSIG(status))),
    }
}

const CONSTRUCTOR_REMEDY: &str = "check the library's constructors";

/// What helps where the library's process ended without a result.
fn choose_remedy(status: libc::c_int, has_loaded: bool) -> &'static str {
    match libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL {
        true => "something outside ended it (kill, or the kernel where memory is used up: see `dmesg`); run it again",
        false if has_loaded => "check what the library starts beside its functions, such as threads",
        false => CONSTRUCTOR_REMEDY,
    }
}

fn library_failure(code: &'static str, text: String, remedy: &str) -> Failure {
    Failure::Error(Box::new(ErrorRecord {
        code,
        exit: exit::FAULT,
        text,
        remedy: Some(remedy.to_string()),
        ..ErrorRecord::default()
    }))
}
