//! The worker as its caller sees it: a child process, started, waited for and ended.

use super::areas::Areas;
use super::command::Status;
use super::options::UserOptions;
use super::regions::{Regions, view};
use super::setup::Setup;
use super::worker;
use super::{counter, faults, filter};
use crate::error::{RunError, Unavailable};
use rustix::io::Errno;
use rustix::process::Signal;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// A running worker. Dropping it ends and reaps it.
pub(super) struct Worker {
    pid: i32,
    pidfd: OwnedFd,
    /// The kernel kills the worker when the thread that made it ends, so another thread makes its own.
    pub(super) made_by: ThreadId,
    reaped: bool,
}

/// Outcome of waiting for a worker.
pub(super) enum Waited {
    Done,
    Late,
    Ended,
}

impl Worker {
    /// Makes a worker. Its first answer says whether it could be set up.
    pub(super) fn start(
        regions: &Regions,
        areas: &Areas,
        options: &UserOptions,
        sequence: u32,
    ) -> Result<Worker, RunError> {
        // The C library's own function takes no error into account.
        // SAFETY: takes no pointers.
        let caller = unsafe { libc::syscall(libc::SYS_getpid) } as i32;
        if caller < 0 {
            return Err(RunError::call(STARTING, "getpid", last_errno()));
        }
        let setup = Setup {
            view: regions.in_worker(0),
            pieces: regions.pieces(),
            areas: areas.setups().to_vec(),
            cpu: options.cpu,
            counter: options.counter.then(counter::attributes),
            caller,
            filter: filter::filter(options.heap.is_some()),
            data_limit: options.heap.map(|heap| data_limit(areas, heap)),
            files: files_limit(),
            foreign: foreign_mappings()?,
            avx: std::is_x86_feature_detected!("avx"),
            fsgsbase: has_fsgsbase(),
            sequence,
        };
        let mut pidfd: i32 = -1;
        let blocked = BlockedSignals::all();
        // No exit signal: the host program's SIGCHLD handler and its `wait` do not see the worker.
        // SAFETY: without CLONE_VM the child is a copy of this process, with a copy of this stack.
        let pid =
            unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_PIDFD, 0, &mut pidfd as *mut i32, 0, 0) };
        if pid == 0 {
            // SAFETY: this is the child, which has one thread.
            unsafe { worker::start(&setup) }
        }
        let errno = last_errno();
        drop(blocked);
        if pid < 0 {
            return Err(RunError::call(STARTING, "clone", errno));
        }
        if pidfd < 0 {
            // SAFETY: takes no pointers; the child is this process's own.
            unsafe { libc::kill(pid as i32, libc::SIGKILL) };
            let why = "the kernel gave it no process descriptor";
            return Err(RunError::machinery(STARTING, why, "Linux 5.4 or later is needed"));
        }
        // SAFETY: the kernel has made this descriptor for us.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        Ok(Worker { pid: pid as i32, pidfd, made_by: std::thread::current().id(), reaped: false })
    }

    /// The worker's process number.
    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Waits until the status is that of a command.
    pub(super) fn wait(&self, status: &Status, sequence: u32, spin: bool, until: Instant) -> Waited {
        let done = &status.done;
        if spin {
            for _ in 0..SPINS {
                if done.load(Ordering::Acquire) == sequence {
                    return Waited::Done;
                }
                std::hint::spin_loop();
            }
        }
        let mut slice = FIRST_SLICE;
        loop {
            let now = done.load(Ordering::Acquire);
            if now == sequence {
                return Waited::Done;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Waited::Late;
            }
            if futex_wait(done, now, left.min(slice)) {
                continue;
            }
            slice = (slice * 2).min(LAST_SLICE);
            if self.has_ended() {
                let done = done.load(Ordering::Acquire) == sequence;
                return if done { Waited::Done } else { Waited::Ended };
            }
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
        let fd = self.pidfd.as_raw_fd() as u32;
        // SAFETY: the structure lives through the call, which fills it if the child has ended.
        unsafe {
            let answer = libc::waitid(libc::P_PIDFD, fd, info.as_mut_ptr(), options);
            answer != 0 || info.assume_init().si_pid() != 0
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        // Some containers refuse the first. The second cannot meet another process, for the number is the
        // worker's until it is reaped.
        if rustix::process::pidfd_send_signal(&self.pidfd, signal) == Err(Errno::PERM) {
            // SAFETY: takes no pointers.
            unsafe { libc::kill(self.pid, signal.as_raw()) };
        }
    }

    /// Ends the worker if it still runs, reaps it, and says how it ended.
    pub(super) fn end(&mut self) -> End {
        self.signal(Signal::KILL);
        self.reaped = true;
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let fd = self.pidfd.as_raw_fd() as u32;
        loop {
            // SAFETY: the structure lives through the call, which fills it when the child has ended.
            let info = unsafe {
                let options = libc::WEXITED | libc::__WALL;
                if libc::waitid(libc::P_PIDFD, fd, info.as_mut_ptr(), options) != 0 {
                    match last_errno() {
                        libc::EINTR => continue,
                        errno => return End::Unknown(errno),
                    }
                }
                info.assume_init()
            };
            // SAFETY: these fields are set for a child that has ended.
            let status = unsafe { info.si_status() };
            return match info.si_code {
                libc::CLD_EXITED => End::Exited(status),
                _ => End::Killed(status),
            };
        }
    }
}

/// How a worker ended.
pub(super) enum End {
    /// By itself, with this status: before it has mapped its memory an error number.
    Exited(i32),
    /// By a signal.
    Killed(i32),
    /// The system did not say, with this error.
    Unknown(i32),
}

impl End {
    /// The error of a worker that was lost.
    pub(super) fn error(self) -> RunError {
        let how = match self {
            End::Exited(status) => format!("it exited with status {status}"),
            End::Killed(signal) => format!("it was killed by {} ({signal})", faults::signal_name(signal)),
            End::Unknown(libc::ECHILD) => "its end was taken by someone else".to_owned(),
            End::Unknown(errno) => return RunError::call("waiting for the worker", "waitid", errno),
        };
        RunError::WorkerLost { how }
    }

    /// The error of a worker that ended before its first answer.
    pub(super) fn of_setup(self) -> RunError {
        match self {
            End::Exited(errno) if errno != 0 => RunError::call("mapping the worker's memory", "mmap", errno),
            end => end.error(),
        }
    }
}

/// What a worker that could not be made was to do.
const STARTING: &str = "starting the worker";

/// The error number of the system call that failed last.
fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.reaped {
            self.end();
        }
    }
}

/// Iterations of active waiting, when the worker runs on another CPU: about 20 µs.
const SPINS: u32 = 500;
/// Intervals at which a sleeping caller checks whether the worker still lives: long, since each check may interrupt
/// the measured code.
const FIRST_SLICE: Duration = Duration::from_millis(2);
const LAST_SLICE: Duration = Duration::from_millis(64);

/// Waits on a shared word while it has a value; false after the timeout.
fn futex_wait(word: &AtomicU32, value: u32, timeout: Duration) -> bool {
    let timeout = libc::timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos() as i64 };
    // SAFETY: the word and the timeout live through the call.
    let answer =
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &timeout, 0, 0) };
    let errno = std::io::Error::last_os_error().raw_os_error();
    !(answer < 0 && errno == Some(libc::ETIMEDOUT))
}

/// Wakes the worker.
pub(super) fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word lives through the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1, 0, 0, 0) };
}

/// All signals blocked, so that no handler of the host program runs in a new worker.
struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    fn all() -> BlockedSignals {
        let mut before = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: both sets live through the calls.
        unsafe {
            let mut all = before;
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            BlockedSignals(before.assume_init())
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: restores the mask that was saved.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

/// Bytes of memory of its own (`RLIMIT_DATA`) that a worker may have, with a heap of this size: a copy of what this process
/// has, and the areas.
fn data_limit(areas: &Areas, heap: u64) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let here = status
        .lines()
        .find_map(|line| line.strip_prefix("VmData:")?.trim().strip_suffix(" kB")?.parse().ok());
    let areas: u64 = areas.setups().iter().map(|area| (area.bytes + area.source_bytes) as u64).sum();
    1024 * here.unwrap_or(0u64) + areas + view::LEN as u64 + heap
}

/// A number above those of all open files.
fn files_limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes to the structure alone. rustix panics where the call is refused.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
    let limit = if known { usize::try_from(limit.rlim_cur).unwrap_or(MOST_FILES) } else { MOST_FILES };
    limit.min(MOST_FILES)
}

/// Closing files one by one takes 0.1 µs for each number.
const MOST_FILES: usize = 1 << 16;

/// Whether user code may execute RDFSBASE and its kin: bit 1 of AT_HWCAP2 (Linux, x86 `hwcap2.h`).
pub(super) fn has_fsgsbase() -> bool {
    // SAFETY: reads a number from the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & 2 != 0 }
}

/// The host program's shared mappings, which a wild store in the worker would reach.
fn foreign_mappings() -> Result<Vec<(usize, usize)>, RunError> {
    let maps = std::fs::read_to_string("/proc/self/maps").map_err(|error| {
        RunError::Unavailable(Unavailable {
            what: "a sandboxed process".to_string(),
            why: format!("reading /proc/self/maps failed: {error}"),
            remedy: "mount the proc file system: `mount -t proc proc /proc`; containers have it unless told otherwise"
                .to_string(),
        })
    })?;
    let shared = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        if rest.as_bytes().get(3) != Some(&b's') {
            return None;
        }
        let (start, end) = range.split_once('-')?;
        let start = usize::from_str_radix(start, 16).ok()?;
        Some((start, usize::from_str_radix(end, 16).ok()? - start))
    };
    Ok(maps.lines().filter_map(shared).collect())
}
