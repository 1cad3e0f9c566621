//! The worker as its caller sees it: a child process, started, waited for and ended.

use super::areas::Areas;
use super::faults;
use super::options::UserOptions;
use super::regions::Regions;
use super::setup::{self, Origin};
use cyclescope_core::error::RunError;
use cyclescope_worker::area::Backing;
use cyclescope_worker::image::{self, SEGMENTS};
use rustix::io::Errno;
use rustix::process::Signal;
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
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
        regions: &mut Regions,
        areas: &Areas,
        options: &UserOptions,
        origin: Origin,
        sequence: u32,
    ) -> Result<Worker, NotStarted> {
        setup::write(regions, areas, options, origin, sequence).map_err(NotStarted::Failed)?;
        let blocked = BlockedSignals::all();
        let made = match origin {
            Origin::Own => own(regions, areas),
            Origin::Copy => copy(regions),
        };
        drop(blocked);
        let (pid, pidfd) = made?;
        if pidfd < 0 {
            // SAFETY: takes no pointers; the child is this process's own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            let why = "the kernel gave it no process descriptor";
            let error = RunError::machinery(STARTING, why, "Linux 5.4 or later is needed");
            return Err(NotStarted::Failed(error));
        }
        // SAFETY: the kernel has made this descriptor for us.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        let worker = Worker { pid, pidfd, made_by: std::thread::current().id(), reaped: false };
        Ok(worker)
    }

    /// The worker's process number.
    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Waits until this word is a command's number.
    pub(super) fn wait(&self, done: &AtomicU32, sequence: u32, spin: bool, until: Instant) -> Waited {
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

/// Why there is no worker.
pub(super) enum NotStarted {
    /// The system runs no executable from memory, with this error.
    NotExecuted(i32),
    /// Anything else.
    Failed(RunError),
}

/// Process number and descriptor; the descriptor is -1 where the kernel gave none.
type Made = Result<(i32, i32), NotStarted>;

fn not_cloned() -> NotStarted {
    NotStarted::Failed(RunError::call(STARTING, "clone", last_errno()))
}

/// The worker's arguments: a name for lists of processes, and the number of the shared file's descriptor.
fn arguments(regions: &Regions) -> [CString; 2] {
    let shared = regions.files()[0].to_string();
    [c"cyclescope-worker".to_owned(), CString::new(shared).expect("digits")]
}

/// What the child of [`own`] needs, in memory that it shares with the thread that made it, which waits.
struct Launch<'a> {
    image: i32,
    files: &'a [i32],
    arguments: [*const libc::c_char; 3],
    /// Why the executable was not run.
    errno: i32,
}

/// A process that runs the worker's executable and has the shared files open. It is made in the same time whatever memory
/// this process uses.
fn own(regions: &Regions, areas: &Areas) -> Made {
    let mut files = regions.files().to_vec();
    for area in areas.setups() {
        files.push(area.source);
        if let Backing::Repeated { fd, .. } = area.backing {
            files.push(fd);
        }
    }
    let [name, shared] = arguments(regions);
    let arguments = [name.as_ptr(), shared.as_ptr(), ptr::null()];
    let mut launch = Launch { image: regions.image(), files: &files, arguments, errno: 0 };
    let mut stack = vec![0u128; 4096];
    let mut pidfd: i32 = -1;
    // No exit signal: the host program's SIGCHLD handler and its `wait` do not see the worker.
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD;
    // SAFETY: this thread waits until the child has run the executable or ended, so that the child may use this
    // thread's memory, on a stack of its own.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(stack.len()).cast();
        libc::clone(run_executable, top, flags, ptr::from_mut(&mut launch).cast(), &raw mut pidfd)
    };
    if pid < 0 {
        return Err(not_cloned());
    }
    if launch.errno != 0 {
        // SAFETY: takes no pointers but one that may be null; the child has ended.
        unsafe {
            libc::waitpid(pid, ptr::null_mut(), libc::__WALL);
            libc::close(pidfd);
        }
        return Err(NotStarted::NotExecuted(launch.errno));
    }
    Ok((pid, pidfd))
}

/// The child of [`own`]. It must not do anything that its parent would notice: no allocation, no lock.
extern "C" fn run_executable(launch: *mut libc::c_void) -> libc::c_int {
    let environment: [*const libc::c_char; 1] = [ptr::null()];
    // SAFETY: the parent's structure, which it does not use now. Descriptors are those of this process alone.
    unsafe {
        let launch = &mut *launch.cast::<Launch>();
        for file in launch.files {
            libc::syscall(libc::SYS_fcntl, *file, libc::F_SETFD, 0);
        }
        let name: &CStr = c"";
        let arguments = launch.arguments.as_ptr();
        let whole = libc::AT_EMPTY_PATH;
        libc::syscall(
            libc::SYS_execveat,
            launch.image,
            name.as_ptr(),
            arguments,
            environment.as_ptr(),
            whole,
        );
        launch.errno = last_errno();
        libc::_exit(1)
    }
}

/// A copy of this process that maps the worker's executable and goes on there.
fn copy(regions: &Regions) -> Made {
    let [name, shared] = arguments(regions);
    let segments = image::segments();
    let stack = [2, name.as_ptr() as usize, shared.as_ptr() as usize, 0, 0];
    let mut pidfd: i32 = -1;
    // No exit signal, as in `own`.
    // SAFETY: without CLONE_VM the child is a copy of this process, with a copy of this stack and one thread.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_PIDFD, 0, &raw mut pidfd, 0, 0) } as i32;
    match pid {
        // SAFETY: this is the child.
        0 => unsafe { become_worker(regions.image(), &segments, &stack) },
        ..0 => Err(not_cloned()),
        _ => Ok((pid, pidfd)),
    }
}

/// The child of [`copy`]: any lock may be held in it.
unsafe fn become_worker(file: i32, segments: &[image::Segment; SEGMENTS], stack: &[usize; 5]) -> ! {
    let read = libc::PROT_READ;
    for segment in segments {
        let (protection, kind, fd) = match segment.in_file {
            true => (read | libc::PROT_EXEC, libc::MAP_PRIVATE, file),
            false => (read | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
        };
        let (address, bytes, offset) = (segment.address, segment.bytes, segment.offset);
        // SAFETY: replaces nothing. The process ends where something is there: a worker that ends so is reported.
        unsafe {
            let flags = kind | libc::MAP_FIXED_NOREPLACE;
            let answer = libc::syscall(libc::SYS_mmap, address, bytes, protection, flags, fd, offset);
            if answer as u64 != address {
                libc::_exit(if answer < 0 { last_errno() } else { libc::EEXIST })
            }
        }
    }
    // SAFETY: the executable begins as if the kernel had made this process, with these arguments on the stack.
    unsafe {
        std::arch::asm!(
            "mov rsp, {stack}",
            "xor ebp, ebp",
            "jmp {entry}",
            stack = in(reg) stack.as_ptr(),
            entry = in(reg) image::entry(),
            options(noreturn),
        )
    }
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
