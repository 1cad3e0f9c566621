//! Loads a library in a separate process.
//!
//! Loading a library runs its constructors, which may do anything. A separate process loads and
//! measures it, and reports progress over a pipe.
//!
//! That process has its own session, without this program's input or terminal. While it loads
//! libraries, wall time, CPU time, memory and file sizes are limited. When it ends in any way, its
//! whole group is killed, which includes processes that a constructor started, unless they left the
//! group. All this guards against accidents only: a library has the user's rights.

use crate::output::Failure;
use crate::process::interrupt::{HeldSignals, ProcessGroup, ScratchFolder};
use cyclescope::executor::user::signal_name;
use cyclescope::record::{ErrorRecord, exit};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Time limit for the constructors of all copies of a library.
const LOADING_TIME_MOST: Duration = Duration::from_secs(10);

/// Loads libraries and works with them in a separate process; returns its exit code. The folders of
/// compiled libraries are removed once they are loaded.
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
    // SAFETY: this process has one thread, so the child may do everything that this process may.
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
            // SAFETY: ends the process at once, so that a library's destructors don't run.
            unsafe { libc::_exit(code.into()) }
        }
        child => {
            drop(writer);
            let group = ProcessGroup::from_forked_leader(child);
            drop(held);
            let loaded = receive_byte(&reader, Some(patience));
            // The compiled files are loaded and can go.
            drop(folders);
            let has_loaded = loaded == PipeMessage::Byte(LOADED_BYTE);
            let code = if has_loaded { receive_byte(&reader, None) } else { loaded };
            if code == PipeMessage::Nothing {
                group.kill();
            }
            await_child(child)?;
            // The process isn't reaped yet, so no other process can have its process group number.
            group.kill();
            drop(group);
            let status = reap_child(child)?;
            match code {
                PipeMessage::Byte(code) => Ok(code),
                PipeMessage::Nothing => Err(library_failure(
                    "hang",
                    format!("loading the library took longer than {} s", patience.as_secs()),
                    CONSTRUCTOR_REMEDY,
                )),
                PipeMessage::End => {
                    Err(library_failure("fault", describe_end(status), choose_remedy(status, has_loaded)))
                }
            }
        }
    }
}

/// Sent by the process when it has loaded its library.
const LOADED_BYTE: u8 = b'L';

/// The result of a read from the pipe.
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
    // SAFETY: fills two descriptors that nothing else owns.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(Failure::internal(format!("pipe failed: {}", std::io::Error::last_os_error())));
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

fn send_byte(writer: &OwnedFd, byte: u8) {
    // SAFETY: writes one byte of a live variable. Without a reader, nothing is lost.
    unsafe { libc::write(writer.as_raw_fd(), (&raw const byte).cast(), 1) };
}

fn receive_byte(reader: &OwnedFd, patience: Option<Duration>) -> PipeMessage {
    let mut ready = libc::pollfd { fd: reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let patience = patience.map_or(-1, |patience| patience.as_millis() as libc::c_int);
    let mut byte = 0u8;
    // SAFETY: both variables outlive their calls.
    unsafe {
        match libc::poll(&mut ready, 1, patience) {
            0 => PipeMessage::Nothing,
            _ if libc::read(reader.as_raw_fd(), (&raw mut byte).cast(), 1) == 1 => PipeMessage::Byte(byte),
            _ => PipeMessage::End,
        }
    }
}

/// Makes /dev/null this process's input, so that a library can't read the user's.
fn detach_stdin() {
    // SAFETY: opens and duplicates file descriptors of this process. Without /dev/null, the input
    // stays.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if null >= 0 {
            libc::dup2(null, libc::STDIN_FILENO);
            libc::close(null);
        }
    }
}

/// Limits on this process until it is dropped. They are soft limits, because the measurement
/// afterwards needs more.
struct LoadingLimits([(libc::__rlimit_resource_t, libc::rlimit); 3]);

/// Bytes of memory that all copies of a library together may allocate while they are loaded.
const MEMORY_BYTES_MOST: u64 = 8 << 30;
/// Bytes per file that a library may write while it is loaded.
const FILE_BYTES_MOST: u64 = 256 << 20;

impl LoadingLimits {
    /// Limits CPU time from now on to this length, and memory and file sizes.
    fn new(cpu: Duration) -> LoadingLimits {
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).tv_sec as u64;
        let most = [
            (libc::RLIMIT_CPU, used + cpu.as_secs() + 1),
            (libc::RLIMIT_DATA, MEMORY_BYTES_MOST),
            (libc::RLIMIT_FSIZE, FILE_BYTES_MOST),
        ];
        LoadingLimits(most.map(|(what, most)| {
            let mut before = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
            // SAFETY: both limits outlive their calls. If setting one fails, it doesn't apply.
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
            // SAFETY: the limit outlives the call and restores the previous value.
            unsafe { libc::setrlimit(*what, before) };
        }
    }
}

/// Waits for a child to end, without reaping it.
fn await_child(child: libc::pid_t) -> Result<(), Failure> {
    let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOWAIT;
    // SAFETY: fills the structure, which outlives the call.
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
        false => format!("the library's process was killed by {}", signal_name(libc::WTERMSIG(status))),
    }
}

const CONSTRUCTOR_REMEDY: &str = "check the library's constructors";

/// The remedy for a library process that ended without a result.
fn choose_remedy(status: libc::c_int, has_loaded: bool) -> &'static str {
    match libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL {
        true => "run it again; `kill` or the kernel's out-of-memory killer ended it (see `dmesg`)",
        false if has_loaded => "check what the library starts besides its functions, such as threads",
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
