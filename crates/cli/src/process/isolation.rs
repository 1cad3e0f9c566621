//! Loads a library in a separate process.
//!
//! Loading a library runs its constructors, which may do anything. A separate process loads and
//! measures it, and reports progress over a socket. A process that has loaded its library gets a
//! number that it must return with its exit code, so that a constructor can't report success.
//!
//! That process has its own session, without this program's input or terminal. While it loads
//! libraries, wall time, CPU time, memory and file sizes are limited. When it ends in any way, its
//! whole group is killed, which includes processes that a constructor started, unless they left the
//! group. All this guards against accidents only: a library has the user's rights.

use crate::output::Failure;
use crate::process::child_watch::{ChildEvent, ChildWatch, stopped_failure};
use crate::process::interrupt::{self, COPY_ENDED_EARLY, HeldSignals, ProcessGroup, ScratchFolder};
use cyclescope::error::RunError;
use cyclescope::executor::draw_secret;
use cyclescope::executor::user::signal_name;
use cyclescope::process_state::ProcessState;
use cyclescope::record::{ErrorRecord, exit};
use rustix::time::{ClockId, DynamicClockId};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

/// Time limit for the constructors of all copies of a library.
const LOADING_TIME_MOST: Duration = Duration::from_secs(10);
/// Time in which the process ends after its last message.
const EXIT_TIME_MOST: Duration = Duration::from_secs(3);

/// Time without any processor time after which the process counts as stuck. A measurement that waits
/// for its turn polls a lock.
const SLEEP_MOST: Duration = Duration::from_secs(60);

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
    let pair = UnixStream::pair().and_then(|(ours, theirs)| ours.set_nonblocking(true).map(|()| (ours, theirs)));
    let (mut ours, mut theirs) =
        pair.map_err(|error| Failure::from(RunError::from_io("making a pair of sockets", &error)))?;
    let parent = std::process::id();
    let held = HeldSignals::new();
    // SAFETY: this process has one thread, so the child may do everything that this process may.
    match unsafe { libc::fork() } {
        -1 => {
            let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
            Err(RunError::from_system_call("starting a process", "clone", errno).into())
        }
        0 => {
            drop(ours);
            ProcessGroup::become_leader();
            drop(held);
            ProcessGroup::die_with_parent(parent);
            detach_stdin();
            let limits = LoadingLimits::new(patience);
            let loaded = load();
            drop(limits);
            if theirs.write_all(&[LOADED_BYTE]).is_err() {
                interrupt::end_at_once()
            }
            let code = loaded.and_then(|loaded| work(&loaded)).unwrap_or_else(report);
            let mut number = [0; NUMBER_BYTES];
            let told = theirs.read_exact(&mut number).and_then(|()| theirs.write_all(&final_message(number, code)));
            if told.is_err() {
                interrupt::end_at_once()
            }
            // SAFETY: ends the process at once, so that a library's destructors don't run.
            unsafe { libc::_exit(code.into()) }
        }
        child => {
            drop(theirs);
            let group = ProcessGroup::from_forked_leader(child);
            drop(held);
            // Drawn now, so that the child's copy of this memory does not have it.
            let mut number = draw_secret();
            let mut watch = ChildWatch::new(child);
            let loaded = receive_message::<1>(&mut ours, &mut watch, Some(Instant::now() + patience));
            // The compiled files are loaded and can go.
            drop(folders);
            let has_loaded = matches!(loaded, ChildMessage::Bytes([LOADED_BYTE]));
            let last = match loaded {
                ChildMessage::Bytes(_) => {
                    number = number.and_then(|number| send_number(&mut ours, number));
                    match number {
                        Ok(_) => {
                            watch.limit_sleep(SLEEP_MOST);
                            receive_message::<{ NUMBER_BYTES + 1 }>(&mut ours, &mut watch, None)
                        }
                        // It would wait for its number.
                        Err(_) => {
                            group.kill();
                            ChildMessage::End
                        }
                    }
                }
                ChildMessage::End => ChildMessage::End,
                ChildMessage::Late => ChildMessage::Late,
                ChildMessage::Stopped(state) => ChildMessage::Stopped(state),
                ChildMessage::Refused(errno) => ChildMessage::Refused(errno),
            };
            if matches!(last, ChildMessage::Late | ChildMessage::Stopped(_) | ChildMessage::Refused(_)) {
                group.kill();
            }
            let _ = watch.wait(Some(Instant::now() + EXIT_TIME_MOST), &[]);
            // The process isn't reaped yet, so no other process can have its process group number.
            group.kill();
            let ended = watch.wait_for_killed();
            drop(group);
            ended.map_err(|_| stopped_failure("the library's process", ProcessState::Frozen))?;
            let reaped = watch.reap();
            let status = reaped
                .map_err(|error| Failure::from_system("waiting for the library's process failed", &error))?
                .into_raw();
            let number = number?.to_le_bytes();
            match last {
                ChildMessage::Bytes(message)
                    if has_loaded && message == final_message(number, message[NUMBER_BYTES]) =>
                {
                    Ok(message[NUMBER_BYTES])
                }
                ChildMessage::Bytes(_) => {
                    let text = "a constructor of the library reported a result, and there is none".to_string();
                    Err(library_failure("fault", text, CONSTRUCTOR_REMEDY))
                }
                ChildMessage::Stopped(state) => Err(stopped_failure("the library's process", state)),
                ChildMessage::Refused(errno) => {
                    let doing = "hearing from the library's process";
                    Err(RunError::from_system_call(doing, "recvfrom, poll or waitid", errno).into())
                }
                ChildMessage::Late => Err(library_failure(
                    "hang",
                    format!("loading the library took longer than {} s", patience.as_secs()),
                    CONSTRUCTOR_REMEDY,
                )),
                ChildMessage::End if status == i32::from(COPY_ENDED_EARLY) << 8 => {
                    let why = "it ended before it could tell its result";
                    let remedy = "allow more memory, and the system calls sendto and recvfrom if a filter refuses them";
                    Err(RunError::from_harness("working in the library's process", why, remedy).into())
                }
                ChildMessage::End => {
                    Err(library_failure("fault", describe_end(status), choose_remedy(status, has_loaded)))
                }
            }
        }
    }
}

/// Sends the process its number. A process that has ended reads nothing; its end is the answer.
fn send_number(to: &mut UnixStream, number: u64) -> Result<u64, RunError> {
    match to.write_all(&number.to_le_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let errno = error.raw_os_error().unwrap_or(0);
            Err(RunError::from_system_call("answering the library's process", "sendto", errno))
        }
        _ => Ok(number),
    }
}

/// Sent by the process when it has loaded its library.
const LOADED_BYTE: u8 = b'L';
/// Bytes of the number that the process returns with its exit code.
const NUMBER_BYTES: usize = 8;

/// The last message of the process: the number that it got, and its exit code.
fn final_message(number: [u8; NUMBER_BYTES], code: u8) -> [u8; NUMBER_BYTES + 1] {
    std::array::from_fn(|at| number.get(at).copied().unwrap_or(code))
}

/// A message of the process.
#[derive(Debug, Clone, Copy)]
enum ChildMessage<const N: usize> {
    Bytes([u8; N]),
    /// It has ended, or closed its side.
    End,
    /// The time is over.
    Late,
    /// Something stopped it.
    Stopped(ProcessState),
    /// The system refuses to receive it, with this error.
    Refused(i32),
}

/// Receives a message of this length.
fn receive_message<const N: usize>(
    from: &mut UnixStream,
    watch: &mut ChildWatch,
    until: Option<Instant>,
) -> ChildMessage<N> {
    let (mut bytes, mut length) = ([0; N], 0);
    while length < N {
        let event = watch.wait(until, &[from.as_fd()]);
        match event {
            Ok(ChildEvent::Late) => return ChildMessage::Late,
            Ok(ChildEvent::Stopped(state)) => return ChildMessage::Stopped(state),
            Ok(ChildEvent::Ready | ChildEvent::Ended) => {}
            Err(error) => return ChildMessage::Refused(error.raw_os_error().unwrap_or(0)),
        }
        match from.read(&mut bytes[length..]) {
            Ok(0) => return ChildMessage::End,
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock && !matches!(event, Ok(ChildEvent::Ended)) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionReset) => {
                return ChildMessage::End;
            }
            Err(error) => return ChildMessage::Refused(error.raw_os_error().unwrap_or(0)),
        }
    }
    ChildMessage::Bytes(bytes)
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
        // A process that was just forked has used none.
        let used = rustix::time::clock_gettime_dynamic(DynamicClockId::Known(ClockId::ProcessCPUTime));
        let used = used.map_or(0, |used| used.tv_sec as u64);
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
