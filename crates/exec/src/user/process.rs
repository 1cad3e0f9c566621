//! The worker as its caller sees it: a child process, started, waited for and ended.

use super::areas::UserAreas;
use super::faults;
use super::options::UserOptions;
use super::regions::WorkerRegions;
use super::setup::{self, WorkerOrigin};
use cyclescope_core::error::RunError;
use cyclescope_worker::area::AreaBacking;
use cyclescope_worker::image::{self, SEGMENT_COUNT};
use rustix::io::Errno;
use rustix::process::Signal;
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// A running worker. Dropping it ends and reaps it.
pub(super) struct WorkerProcess {
    pid: i32,
    pidfd: OwnedFd,
    /// The kernel kills the worker when its creating thread ends, so another thread makes a new
    /// one.
    pub(super) made_by: ThreadId,
    reaped: bool,
}

/// Outcome of waiting for a worker.
pub(super) enum WaitResult {
    Done,
    Late,
    Ended,
}

impl WorkerProcess {
    /// Makes a worker. Its first answer says whether its set-up succeeded.
    pub(super) fn start(
        regions: &mut WorkerRegions,
        areas: &UserAreas,
        options: &UserOptions,
        origin: WorkerOrigin,
        sequence: u32,
    ) -> Result<WorkerProcess, StartFailure> {
        setup::write_setup(regions, areas, options, origin, sequence).map_err(StartFailure::Failed)?;
        let blocked = BlockedSignals::block_all();
        let made = match origin {
            WorkerOrigin::Own => start_executable(regions, areas),
            WorkerOrigin::Copy => start_copy(regions),
        };
        drop(blocked);
        let (pid, pidfd) = made?;
        if pidfd < 0 {
            // SAFETY: takes no pointers; the child is this process's own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            let why = "the kernel gave it no process descriptor";
            let error = RunError::from_harness(STARTING_WORKER, why, "Linux 5.4 or later is needed");
            return Err(StartFailure::Failed(error));
        }
        // SAFETY: the kernel has made this descriptor for us.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        let worker = WorkerProcess { pid, pidfd, made_by: std::thread::current().id(), reaped: false };
        Ok(worker)
    }

    /// The worker's process number.
    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Waits until this word is a command's number.
    pub(super) fn wait(&self, done: &AtomicU32, sequence: u32, spin: bool, until: Instant) -> WaitResult {
        if spin {
            for _ in 0..SPIN_ITERATIONS {
                if done.load(Ordering::Acquire) == sequence {
                    return WaitResult::Done;
                }
                std::hint::spin_loop();
            }
        }
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
            if futex_wait(done, now, left.min(slice)) {
                continue;
            }
            slice = (slice * 2).min(LAST_SLICE);
            if self.has_ended() {
                let done = done.load(Ordering::Acquire) == sequence;
                return if done { WaitResult::Done } else { WaitResult::Ended };
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

    pub(super) fn send_signal(&self, signal: Signal) {
        // Some containers refuse the first call. The second can't hit another process: the number
        // stays the worker's until it is reaped.
        if rustix::process::pidfd_send_signal(&self.pidfd, signal) == Err(Errno::PERM) {
            // SAFETY: takes no pointers.
            unsafe { libc::kill(self.pid, signal.as_raw()) };
        }
    }

    /// Ends the worker if it still runs, reaps it, and says how it ended.
    pub(super) fn kill_and_reap(&mut self) -> WorkerEnd {
        self.send_signal(Signal::KILL);
        self.reaped = true;
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let fd = self.pidfd.as_raw_fd() as u32;
        loop {
            // SAFETY: the structure lives through the call, which fills it when the child has
            // ended.
            let info = unsafe {
                let options = libc::WEXITED | libc::__WALL;
                if libc::waitid(libc::P_PIDFD, fd, info.as_mut_ptr(), options) != 0 {
                    match last_errno() {
                        libc::EINTR => continue,
                        errno => return WorkerEnd::Unknown(errno),
                    }
                }
                info.assume_init()
            };
            // SAFETY: these fields are set for a child that has ended.
            let status = unsafe { info.si_status() };
            return match info.si_code {
                libc::CLD_EXITED => WorkerEnd::Exited(status),
                _ => WorkerEnd::Killed(status),
            };
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
const STARTING_WORKER: &str = "starting the worker";

/// The error number of the last failed system call.
fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill_and_reap();
        }
    }
}

/// Iterations of active waiting if the worker runs on another CPU: about 20 µs.
const SPIN_ITERATIONS: u32 = 500;
/// Interval at which a sleeping caller checks whether the worker still lives. It is long because
/// each check may interrupt the measured code.
const FIRST_SLICE: Duration = Duration::from_millis(2);
const LAST_SLICE: Duration = Duration::from_millis(64);

/// Waits on a shared word as long as it has a value; false after the timeout.
fn futex_wait(word: &AtomicU32, value: u32, timeout: Duration) -> bool {
    let timeout = libc::timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos() as i64 };
    // SAFETY: the word and the timeout live through the call.
    let answer = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &timeout, 0, 0) };
    let errno = std::io::Error::last_os_error().raw_os_error();
    !(answer < 0 && errno == Some(libc::ETIMEDOUT))
}

/// Wakes the worker.
pub(super) fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word lives through the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1, 0, 0, 0) };
}

/// Why there is no worker.
pub(super) enum StartFailure {
    /// The system runs no executable from memory, with this error.
    NotExecuted(i32),
    /// Anything else.
    Failed(RunError),
}

/// Process number and descriptor; the descriptor is -1 if the kernel gave none.
type StartResult = Result<(i32, i32), StartFailure>;

fn clone_error() -> StartFailure {
    StartFailure::Failed(RunError::from_system_call(STARTING_WORKER, "clone", last_errno()))
}

/// The worker's arguments: a name for lists of processes, and the number of the shared file's
/// descriptor.
fn worker_arguments(regions: &WorkerRegions) -> [CString; 2] {
    let shared = regions.shared_fds()[0].to_string();
    [c"cyclescope-worker".to_owned(), CString::new(shared).expect("digits")]
}

/// Arguments of the child of [`start_executable`], in memory that it shares with its creating
/// thread, which waits.
struct WorkerLaunch<'a> {
    image: i32,
    files: &'a [i32],
    arguments: [*const libc::c_char; 3],
    /// Why the executable was not run.
    errno: i32,
}

/// Starts a process that runs the worker's executable and has the shared files open. The time does
/// not depend on the memory of this process.
fn start_executable(regions: &WorkerRegions, areas: &UserAreas) -> StartResult {
    let mut files = regions.shared_fds().to_vec();
    for area in areas.area_setups() {
        files.push(area.source);
        if let AreaBacking::Repeated { fd, .. } = area.backing {
            files.push(fd);
        }
    }
    let [name, shared] = worker_arguments(regions);
    let arguments = [name.as_ptr(), shared.as_ptr(), ptr::null()];
    let mut launch = WorkerLaunch { image: regions.image_fd(), files: &files, arguments, errno: 0 };
    let mut stack = vec![0u128; 4096];
    let mut pidfd: i32 = -1;
    // No exit signal: the host program's SIGCHLD handler and its `wait` do not see the worker.
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD;
    // SAFETY: this thread waits until the child has run the executable or ended, so that the child
    // may use this thread's memory, on a stack of its own.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(stack.len()).cast();
        libc::clone(run_executable, top, flags, ptr::from_mut(&mut launch).cast(), &raw mut pidfd)
    };
    if pid < 0 {
        return Err(clone_error());
    }
    if launch.errno != 0 {
        // SAFETY: takes no pointers but one that may be null; the child has ended.
        unsafe {
            libc::waitpid(pid, ptr::null_mut(), libc::__WALL);
            libc::close(pidfd);
        }
        return Err(StartFailure::NotExecuted(launch.errno));
    }
    Ok((pid, pidfd))
}

/// The child of [`start_executable`]. Its parent must not notice anything: no allocation, no lock.
extern "C" fn run_executable(launch: *mut libc::c_void) -> libc::c_int {
    let environment: [*const libc::c_char; 1] = [ptr::null()];
    // SAFETY: the parent's structure, which it does not use now. Descriptors are those of this
    // process alone.
    unsafe {
        let launch = &mut *launch.cast::<WorkerLaunch>();
        for file in launch.files {
            libc::syscall(libc::SYS_fcntl, *file, libc::F_SETFD, 0);
        }
        let name: &CStr = c"";
        let arguments = launch.arguments.as_ptr();
        let whole = libc::AT_EMPTY_PATH;
        libc::syscall(libc::SYS_execveat, launch.image, name.as_ptr(), arguments, environment.as_ptr(), whole);
        launch.errno = last_errno();
        libc::_exit(1)
    }
}

/// A copy of this process that maps the worker's executable and continues there.
fn start_copy(regions: &WorkerRegions) -> StartResult {
    let [name, shared] = worker_arguments(regions);
    let segments = image::read_segments();
    let stack = [2, name.as_ptr() as usize, shared.as_ptr() as usize, 0, 0];
    let mut pidfd: i32 = -1;
    // No exit signal, as in [`start_executable`].
    // SAFETY: without CLONE_VM the child is a copy of this process, with a copy of this stack and
    // one thread.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_PIDFD, 0, &raw mut pidfd, 0, 0) } as i32;
    match pid {
        // SAFETY: this is the child.
        0 => unsafe { become_worker(regions.image_fd(), &segments, &stack) },
        ..0 => Err(clone_error()),
        _ => Ok((pid, pidfd)),
    }
}

/// The child of [`start_copy`]: any lock may be held in it.
unsafe fn become_worker(file: i32, segments: &[image::ImageSegment; SEGMENT_COUNT], stack: &[usize; 5]) -> ! {
    let read = libc::PROT_READ;
    for segment in segments {
        let (protection, kind, fd) = match segment.in_file {
            true => (read | libc::PROT_EXEC, libc::MAP_PRIVATE, file),
            false => (read | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
        };
        let (address, bytes, offset) = (segment.address, segment.bytes, segment.offset);
        // SAFETY: replaces nothing. If a place is taken the process ends, which is reported as an
        // early end of the worker.
        unsafe {
            let flags = kind | libc::MAP_FIXED_NOREPLACE;
            let answer = libc::syscall(libc::SYS_mmap, address, bytes, protection, flags, fd, offset);
            if answer as u64 != address {
                libc::_exit(if answer < 0 { last_errno() } else { libc::EEXIST })
            }
        }
    }
    // SAFETY: the executable begins as if the kernel had made this process, with these arguments on
    // the stack.
    unsafe {
        std::arch::asm!(
            "mov rsp, {stack}",
            "xor ebp, ebp",
            "jmp {entry}",
            stack = in(reg) stack.as_ptr(),
            entry = in(reg) image::entry_address(),
            options(noreturn),
        )
    }
}

/// Blocks all signals, so that no handler of the host program runs in a new worker.
struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    fn block_all() -> BlockedSignals {
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
