//! The worker as its caller sees it: a child process that is waited for and ended.

use super::faults;
use super::time_limit::{StopCause, WaitResult};
use cyclescope_code::program::Program;
use cyclescope_core::error::RunError;
use cyclescope_core::process_state::ProcessState;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// A running worker. Dropping it ends and reaps it.
pub(super) struct WorkerProcess {
    pub(super) pid: i32,
    pidfd: OwnedFd,
    /// The kernel kills the worker when its creating thread ends, so another thread makes a new
    /// one.
    pub(super) made_by: ThreadId,
    reaped: bool,
}

/// Time limit for the set-up of a worker, in its own processor time.
pub(super) const SETUP_LIMIT: Duration = Duration::from_secs(10);
/// What [`SETUP_LIMIT`] counts, at the end of a sentence.
pub(super) const SETUP_LIMIT_COUNTS: &str = " of processor time";
/// Time in which a killed process ends. Freeing a copy of much memory takes long; only a frozen
/// control group takes forever.
const END_TIMEOUT: Duration = Duration::from_secs(5);

impl WorkerProcess {
    /// The worker with this number and descriptor, which is -1 if the kernel gave none.
    pub(super) fn from_descriptor(pid: i32, pidfd: i32) -> Result<WorkerProcess, RunError> {
        if pidfd < 0 {
            // SAFETY: takes no pointers; the child is this process's own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            let why = "the kernel gave it no process descriptor";
            return Err(RunError::from_harness(STARTING_WORKER, why, "Linux 5.4 or later is needed"));
        }
        // SAFETY: the kernel has made this descriptor for us.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        Ok(WorkerProcess { pid, pidfd, made_by: std::thread::current().id(), reaped: false })
    }

    /// Waits until this word is a command's number, or until a time.
    pub(super) fn sleep_until_answer(&self, done: &AtomicU32, sequence: u32, until: Instant) -> WaitResult {
        let mut slice = FIRST_SLICE;
        loop {
            let now = done.load(Ordering::Acquire);
            if now == sequence {
                return WaitResult::Done;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return WaitResult::Late;
            }
            match futex_wait(done, now, left.min(slice)) {
                Ok(true) => continue,
                Ok(false) => {}
                Err(errno) => return WaitResult::Refused("futex", errno),
            }
            slice = (slice * 2).min(LAST_SLICE);
            let ended = self.find_end();
            if ended != Ok(false) && done.load(Ordering::Acquire) == sequence {
                return WaitResult::Done;
            }
            match ended {
                Ok(false) => {}
                Ok(true) => return WaitResult::Ended,
                Err(errno) => return WaitResult::Refused("waitid", errno),
            }
        }
    }

    /// Whether it has ended, or the system does not tell it.
    pub(super) fn has_ended(&self) -> bool {
        self.find_end() != Ok(false)
    }

    /// Whether it has ended. The error is an error number.
    fn find_end(&self) -> Result<bool, i32> {
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
        let fd = self.pidfd.as_raw_fd() as u32;
        // SAFETY: the structure lives through the call, which fills it if the child has ended.
        let answer = unsafe { libc::waitid(libc::P_PIDFD, fd, info.as_mut_ptr(), options) };
        match last_errno() {
            // SAFETY: zeros and what the call fills in are valid.
            _ if answer == 0 => Ok(unsafe { info.assume_init().si_pid() } != 0),
            // Another waiter reaped it.
            libc::ECHILD => Ok(true),
            errno => Err(errno),
        }
    }

    /// Wakes it after the word with the command's number has changed.
    pub(super) fn wake(&self, word: &AtomicU32) -> Result<(), RunError> {
        // SAFETY: the word lives through the call.
        match unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1, 0, 0, 0) } {
            0.. => Ok(()),
            _ => Err(RunError::from_system_call("waking the worker", "futex", last_errno())),
        }
    }

    pub(super) fn send_signal(&self, signal: Signal) {
        // Some containers refuse the first call, with one error or another. The second can't hit
        // another process: the number stays the worker's until it is reaped.
        if !matches!(rustix::process::pidfd_send_signal(&self.pidfd, signal), Ok(()) | Err(Errno::SRCH)) {
            // SAFETY: takes no pointers.
            unsafe { libc::kill(self.pid, signal.as_raw()) };
        }
    }

    /// Ends the worker if it still runs, reaps it, and says how it ended.
    pub(super) fn kill_and_reap(&mut self) -> WorkerEnd {
        self.send_signal(Signal::KILL);
        self.reaped = true;
        if !self.wait_for_end(END_TIMEOUT) {
            return WorkerEnd::Stuck;
        }
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let fd = self.pidfd.as_raw_fd() as u32;
        // SAFETY: the structure lives through the call, which fills it because the child has ended.
        let info = unsafe {
            let options = libc::WEXITED | libc::WNOHANG | libc::__WALL;
            if libc::waitid(libc::P_PIDFD, fd, info.as_mut_ptr(), options) != 0 {
                return WorkerEnd::Unknown(last_errno());
            }
            info.assume_init()
        };
        // SAFETY: these fields are set for a child that has ended.
        let status = unsafe { info.si_status() };
        match info.si_code {
            libc::CLD_EXITED => WorkerEnd::Exited(status),
            _ => WorkerEnd::Killed(status),
        }
    }

    /// Whether the worker ends within this time. It is not reaped.
    fn wait_for_end(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now()).min(LAST_SLICE);
            let slice = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
            let waited = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&slice)) == Ok(0);
            if self.has_ended() {
                return true;
            }
            if left.is_zero() {
                return false;
            }
            // Kernels before 5.3 do not report the end, and a filter may refuse the call.
            if !waited {
                cyclescope_platform::time::sleep(Duration::from_micros(200));
            }
        }
    }
}

/// How a worker ended.
pub(super) enum WorkerEnd {
    /// By itself, with this status; before its memory is mapped, an error number.
    Exited(i32),
    /// By a signal.
    Killed(i32),
    /// Unknown: the system reported this error.
    Unknown(i32),
    /// Not yet, although it was killed.
    Stuck,
}

impl WorkerEnd {
    /// The error for a lost worker.
    pub(super) fn into_error(self) -> RunError {
        let how = match self {
            WorkerEnd::Exited(status) => format!("it exited with status {status}"),
            WorkerEnd::Killed(signal) => {
                format!("it was killed by {} ({signal})", faults::signal_name(signal))
            }
            WorkerEnd::Unknown(libc::ECHILD) => "another waiter reaped it".to_owned(),
            WorkerEnd::Stuck => return StopCause(ProcessState::Frozen).into_error(ENDING_WORKER),
            WorkerEnd::Unknown(errno) => {
                return RunError::from_system_call("waiting for the worker", "waitid", errno);
            }
        };
        RunError::WorkerLost { how }
    }

    /// The error for a worker that ended before its first answer.
    pub(super) fn into_setup_error(self) -> RunError {
        match self {
            WorkerEnd::Exited(errno) if errno != 0 => {
                RunError::from_system_call("mapping the worker's memory", "mmap", errno)
            }
            end => end.into_error(),
        }
    }
}

/// The step that fails if no worker could be made.
pub(super) const STARTING_WORKER: &str = "starting the worker";
const ENDING_WORKER: &str = "ending the worker";

/// The error number of the last failed system call.
pub(super) fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill_and_reap();
        }
    }
}

/// Interval at which a sleeping caller checks whether the worker still lives. It is long because
/// each check may interrupt the measured code.
const FIRST_SLICE: Duration = Duration::from_millis(2);
const LAST_SLICE: Duration = Duration::from_millis(64);

/// Waits on a shared word as long as it has a value; false after the timeout, and an error number if
/// the system refuses to wait.
fn futex_wait(word: &AtomicU32, value: u32, timeout: Duration) -> Result<bool, i32> {
    let timeout = libc::timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos() as i64 };
    // SAFETY: the word and the timeout live through the call.
    let answer = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &timeout, 0, 0) };
    match last_errno() {
        _ if answer >= 0 => Ok(true),
        libc::EAGAIN | libc::EINTR => Ok(true),
        libc::ETIMEDOUT => Ok(false),
        errno => Err(errno),
    }
}

/// Refuses code that the sandbox does not contain: the filter of system calls contains any.
pub(super) fn check_code(_programs: &[Program]) -> Result<(), RunError> {
    Ok(())
}

/// Addresses of the functions that programs call: `clock_gettime` and `memcpy`.
pub(super) fn called_functions() -> [u64; 2] {
    [libc::clock_gettime as *const () as u64, libc::memcpy as *const () as u64]
}

/// Memory of this process, as far as it is mapped.
pub(super) fn read_own_memory(address: u64, bytes: usize) -> Option<Vec<u8>> {
    let memory = std::fs::File::open("/proc/self/mem").ok()?;
    let mut read = vec![0; bytes];
    memory.read_exact_at(&mut read, address).ok().map(|()| read)
}

#[cfg(test)]
mod tests {
    use super::super::answer_wait::WaitFailure;
    use super::super::frozen_group::FrozenGroup;
    use super::*;
    use std::os::fd::IntoRawFd;

    /// A process that runs no worker's code, as a worker.
    fn sleeping_worker() -> WorkerProcess {
        // Whoever gets the worker reaps it.
        #[allow(clippy::zombie_processes)]
        let child = std::process::Command::new("sleep").arg("600").spawn().expect("it is installed");
        let pid = rustix::process::Pid::from_child(&child);
        let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).expect("Linux 5.3");
        let made = WorkerProcess::from_descriptor(child.id() as i32, pidfd.into_raw_fd());
        made.unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_worker_stopped_in_its_set_up_is_no_fault_of_the_snippet() {
        let mut worker = sleeping_worker();
        worker.send_signal(Signal::STOP);
        let begun = Instant::now();
        let failure = worker.wait_for_answer(&AtomicU32::new(1), 0, false, &mut worker.setup_limit());
        let error = failure.expect_err("it never answers").into_setup_error(&mut worker);
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
        assert_eq!(error.to_string(), "starting the worker failed: something stopped its process");
        assert!(error.is_harness_failure() && worker.has_ended());
    }

    #[test]
    fn a_worker_frozen_in_its_set_up_is_given_up() {
        let mut worker = sleeping_worker();
        let Some(group) = FrozenGroup::freeze(worker.pid()) else {
            return cyclescope_skipped::report_skipped("no freezer lets this process make a group");
        };
        let begun = Instant::now();
        let failure = worker.wait_for_answer(&AtomicU32::new(1), 0, false, &mut worker.setup_limit());
        let error = failure.expect_err("it can't run").into_setup_error(&mut worker);
        // 3 seconds until it counts as stopped, and 5 until it is given up.
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        assert_eq!(error.to_string(), "starting the worker failed: its control group is frozen");
        group.thaw_and_remove();
    }

    #[test]
    fn a_worker_whose_end_the_system_does_not_tell_is_not_lost() {
        let mut worker = sleeping_worker();
        // No descriptor of a process.
        let file = std::fs::File::open("/dev/null").expect("a file");
        let pidfd = std::mem::replace(&mut worker.pidfd, file.into());
        let failure = worker.wait_for_answer(&AtomicU32::new(1), 0, false, &mut worker.setup_limit());
        assert!(matches!(failure, Err(WaitFailure::Refused("waitid", libc::EBADF))), "{failure:?}");
        worker.pidfd = pidfd;
    }

    #[test]
    fn a_worker_that_ends_in_its_set_up_is_lost() {
        let mut worker = sleeping_worker();
        worker.send_signal(Signal::KILL);
        let failure = worker.wait_for_answer(&AtomicU32::new(1), 0, false, &mut worker.setup_limit());
        let error = failure.expect_err("it never answers").into_setup_error(&mut worker);
        assert!(matches!(error, RunError::WorkerLost { .. }), "{error}");
    }
}
