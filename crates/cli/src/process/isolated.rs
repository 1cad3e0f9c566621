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
use crate::process::interrupt::{Group, Held, Scratch};
use cyclescope::executor::user::signal_name;
use cyclescope::record::{ErrorRecord, exit};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Time limit for a library's constructors, those of all its copies.
const LOADING: Duration = Duration::from_secs(10);

/// Loads libraries and works with them in a separate process; returns its exit code. The
/// folders that they were compiled in go as soon as they are loaded.
pub fn isolated<Loaded>(
    load: impl FnOnce() -> Result<Loaded, Failure>,
    folders: impl IntoIterator<Item = Scratch>,
    work: impl FnOnce(&Loaded) -> Result<u8, Failure>,
    report: impl FnOnce(Failure) -> u8,
) -> Result<u8, Failure> {
    let folders: Vec<Scratch> = folders.into_iter().collect();
    let patience = LOADING * folders.len().max(1) as u32;
    let (reader, writer) = pipe()?;
    let parent = std::process::id();
    let held = Held::new();
    // SAFETY: this process has one thread, so that the child may do all that this one may.
    match unsafe { libc::fork() } {
        -1 => Err(Failure::internal(format!("fork failed: {}", std::io::Error::last_os_error()))),
        0 => {
            drop(reader);
            Group::lead();
            drop(held);
            Group::tie(parent);
            without_input();
            let limits = Limited::new(patience);
            let loaded = load();
            drop(limits);
            tell(&writer, LOADED);
            let code = loaded.and_then(|loaded| work(&loaded)).unwrap_or_else(report);
            tell(&writer, code);
            // SAFETY: ends the process at once: a library's destructors shall not run.
            unsafe { libc::_exit(code.into()) }
        }
        child => {
            drop(writer);
            let group = Group::of_copy(child);
            drop(held);
            let loaded = hear(&reader, Some(patience));
            // The compiled files are no longer needed.
            drop(folders);
            let has_loaded = loaded == Heard::Byte(LOADED);
            let code = if has_loaded { hear(&reader, None) } else { loaded };
            if code == Heard::Nothing {
                group.kill();
            }
            await_end(child)?;
            // While it is not reaped, its number, and so that of its group, is nobody else's.
            group.kill();
            drop(group);
            let status = wait(child)?;
            match code {
                Heard::Byte(code) => Ok(code),
                Heard::Nothing => Err(broken(
                    "hang",
                    format!("loading the library did not end within {} s", patience.as_secs()),
                    CONSTRUCTORS,
                )),
                Heard::End => Err(broken("fault", ended(status), remedy(status, has_loaded))),
            }
        }
    }
}

/// What a process sends when it has loaded its library.
const LOADED: u8 = b'L';

/// What came through a pipe.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    Byte(u8),
    /// The other side has ended.
    End,
    /// The time is over.
    Nothing,
}

fn pipe() -> Result<(OwnedFd, OwnedFd), Failure> {
    let mut ends = [-1; 2];
    // SAFETY: fills two descriptors, which nothing else owns.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(Failure::internal(format!("pipe failed: {}", std::io::Error::last_os_error())));
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

fn tell(writer: &OwnedFd, byte: u8) {
    // SAFETY: writes one byte of a live variable. Where nobody listens any more, nothing is lost.
    unsafe { libc::write(writer.as_raw_fd(), (&raw const byte).cast(), 1) };
}

fn hear(reader: &OwnedFd, patience: Option<Duration>) -> Heard {
    let mut ready = libc::pollfd { fd: reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let patience = patience.map_or(-1, |patience| patience.as_millis() as libc::c_int);
    let mut byte = 0u8;
    // SAFETY: both variables live through their calls.
    unsafe {
        match libc::poll(&mut ready, 1, patience) {
            0 => Heard::Nothing,
            _ if libc::read(reader.as_raw_fd(), (&raw mut byte).cast(), 1) == 1 => Heard::Byte(byte),
            _ => Heard::End,
        }
    }
}

/// Gives this process /dev/null as its input: what a library reads is not the user's.
fn without_input() {
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
struct Limited([(libc::__rlimit_resource_t, libc::rlimit); 3]);

/// Bytes of memory that libraries may fill while they are loaded, all copies together.
const MEMORY: u64 = 8 << 30;
/// Bytes of a file that they may write.
const FILE: u64 = 256 << 20;

impl Limited {
    /// CPU time of this length from now on, memory and files.
    fn new(cpu: Duration) -> Limited {
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).tv_sec as u64;
        let most = [
            (libc::RLIMIT_CPU, used + cpu.as_secs() + 1),
            (libc::RLIMIT_DATA, MEMORY),
            (libc::RLIMIT_FSIZE, FILE),
        ];
        Limited(most.map(|(what, most)| {
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

impl Drop for Limited {
    fn drop(&mut self) {
        for (what, before) in &self.0 {
            // SAFETY: the limit lives through the call, and is what it was.
            unsafe { libc::setrlimit(*what, before) };
        }
    }
}

/// Waits until a child has ended, and does not reap it.
fn await_end(child: libc::pid_t) -> Result<(), Failure> {
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

fn wait(child: libc::pid_t) -> Result<libc::c_int, Failure> {
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

fn ended(status: libc::c_int) -> String {
    match libc::WIFEXITED(status) {
        true => format!("the library ended the program, with exit status {}", libc::WEXITSTATUS(status)),
        false => format!("the library's process was ended by {}", signal_name(libc::WTERMSIG(status))),
    }
}

const CONSTRUCTORS: &str = "check the library's constructors";

/// What helps where the library's process ended without a result.
fn remedy(status: libc::c_int, has_loaded: bool) -> &'static str {
    match libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL {
        true => {
            "something outside ended it (kill, or the kernel where memory is used up: see `dmesg`); run it again"
        }
        false if has_loaded => "check what the library starts beside its functions, such as threads",
        false => CONSTRUCTORS,
    }
}

fn broken(code: &'static str, text: String, remedy: &str) -> Failure {
    Failure::Error(Box::new(ErrorRecord {
        code,
        exit: exit::FAULT,
        text,
        remedy: Some(remedy.to_string()),
        ..ErrorRecord::default()
    }))
}
