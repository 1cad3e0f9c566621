//! The worker as its caller sees it: a child process, started, waited for and ended.

use super::areas::UserAreas;
use super::faults;
use super::options::UserOptions;
use super::regions::WorkerRegions;
use super::setup::{self, WorkerOrigin};
use super::time_limit::{OvertimeVerdict, StopCause, WorkerTimeLimit};
use cyclescope_core::error::RunError;
use cyclescope_core::process_state::ProcessState;
use cyclescope_worker::area::AreaBacking;
use cyclescope_worker::image::{self, SEGMENT_COUNT};
use cyclescope_worker::rights;
use cyclescope_worker::setup::CallerTie;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
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

/// What a new worker is kept in.
#[derive(Debug, Clone, Copy)]
pub(super) struct WorkerConfinement {
    /// Flags of clone(2) for its namespaces.
    pub(super) namespaces: i32,
    /// The descriptor of its control group.
    pub(super) group: Option<i32>,
}

/// Outcome of waiting for a worker.
enum WaitResult {
    Done,
    Late,
    Ended,
    /// The system refuses to wait, with this error.
    Refused(i32),
}

/// Why a worker did not answer.
#[derive(Debug)]
pub(super) enum WaitFailure {
    /// It has ended.
    Ended,
    /// It used up its time.
    Hung,
    /// It does not run, for this reason.
    Stopped(StopCause),
    /// The system refuses to wait for it, with this error.
    Refused(i32),
}

/// Time limit for the set-up of a worker, in its own processor time.
const SETUP_LIMIT: Duration = Duration::from_secs(10);
/// Time in which a killed process ends. Freeing a copy of much memory takes long; only a frozen
/// control group takes forever.
const END_TIMEOUT: Duration = Duration::from_secs(5);

impl WorkerProcess {
    /// Makes a worker. Its first answer, in the word `done`, says whether its set-up succeeded.
    pub(super) fn start(
        regions: &mut WorkerRegions,
        areas: &UserAreas,
        options: &UserOptions,
        origin: WorkerOrigin,
        confinement: WorkerConfinement,
        sequence: u32,
    ) -> Result<WorkerProcess, StartFailure> {
        let pid = setup::read_own_pid().map_err(StartFailure::Failed)?;
        // The worker has a copy of the descriptor. It needs none if it sees the number.
        let own_descriptor = match confinement.namespaces & libc::CLONE_NEWPID {
            0 => None,
            _ => Some(open_own_process(pid).map_err(StartFailure::Refused)?),
        };
        let caller = CallerTie { pid, descriptor: own_descriptor.as_ref().map_or(-1, AsRawFd::as_raw_fd) };
        let written = setup::write_setup(regions, areas, options, origin, caller, sequence);
        written.map_err(StartFailure::Failed)?;
        let blocked = BlockedSignals::block_all();
        let made = match origin {
            WorkerOrigin::Own => start_executable(regions, areas, caller, confinement),
            WorkerOrigin::Copy => start_copy(regions, caller, confinement),
        };
        drop(blocked);
        made
    }

    /// The worker with this number and descriptor, which is -1 if the kernel gave none.
    fn from_descriptor(pid: i32, pidfd: i32) -> Result<WorkerProcess, StartFailure> {
        if pidfd < 0 {
            // SAFETY: takes no pointers; the child is this process's own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            let why = "the kernel gave it no process descriptor";
            let error = RunError::from_harness(STARTING_WORKER, why, "Linux 5.4 or later is needed");
            return Err(StartFailure::Failed(error));
        }
        // SAFETY: the kernel has made this descriptor for us.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        Ok(WorkerProcess { pid, pidfd, made_by: std::thread::current().id(), reaped: false })
    }

    /// The worker's process number.
    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Waits until this word is a command's number, within a limit.
    pub(super) fn wait_for_answer(
        &self,
        done: &AtomicU32,
        sequence: u32,
        spin: bool,
        limit: &mut WorkerTimeLimit,
    ) -> Result<(), WaitFailure> {
        loop {
            match self.wait(done, sequence, spin, limit.next_check()) {
                WaitResult::Done => return Ok(()),
                WaitResult::Ended => return Err(WaitFailure::Ended),
                WaitResult::Refused(errno) => return Err(WaitFailure::Refused(errno)),
                WaitResult::Late => match limit.check_overtime() {
                    OvertimeVerdict::Busy => {}
                    OvertimeVerdict::Hung => return Err(WaitFailure::Hung),
                    OvertimeVerdict::Stopped(cause) => return Err(WaitFailure::Stopped(cause)),
                },
            }
        }
    }

    /// The limit of the worker's set-up, which begins now.
    pub(super) fn setup_limit(&self) -> WorkerTimeLimit {
        WorkerTimeLimit::new(self.pid, SETUP_LIMIT)
    }

    fn wait(&self, done: &AtomicU32, sequence: u32, spin: bool, until: Instant) -> WaitResult {
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
            match futex_wait(done, now, left.min(slice)) {
                Ok(true) => continue,
                Ok(false) => {}
                Err(errno) => return WaitResult::Refused(errno),
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
                std::thread::sleep(Duration::from_micros(200));
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

impl WaitFailure {
    /// Ends a worker that did not complete its set-up; the error for it.
    pub(super) fn into_setup_error(self, worker: &mut WorkerProcess) -> RunError {
        let end = worker.kill_and_reap();
        match self {
            WaitFailure::Ended => end.into_setup_error(),
            WaitFailure::Hung => {
                let why = format!("it took more than {} s of processor time", SETUP_LIMIT.as_secs());
                RunError::from_harness(STARTING_WORKER, why, "run it again on a quieter machine")
            }
            WaitFailure::Stopped(cause) => cause.into_error(STARTING_WORKER),
            WaitFailure::Refused(errno) => RunError::from_system_call(STARTING_WORKER, "futex", errno),
        }
    }
}

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

/// Wakes the worker.
pub(super) fn futex_wake(word: &AtomicU32) -> Result<(), RunError> {
    // SAFETY: the word lives through the call.
    match unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1, 0, 0, 0) } {
        0.. => Ok(()),
        _ => Err(RunError::from_system_call("waking the worker", "futex", last_errno())),
    }
}

/// Why there is no worker.
pub(super) enum StartFailure {
    /// The worker's executable could not be run from memory, with this error.
    NotExecuted(i32),
    /// The system may refuse its namespaces or its control group, with this error.
    Refused(i32),
    /// Anything else.
    Failed(RunError),
}

type StartResult = Result<WorkerProcess, StartFailure>;

fn clone_error(confinement: WorkerConfinement, errno: i32) -> StartFailure {
    match confinement {
        WorkerConfinement { namespaces: 0, group: None } => {
            StartFailure::Failed(RunError::from_system_call(STARTING_WORKER, "clone", errno))
        }
        _ => StartFailure::Refused(errno),
    }
}

/// A descriptor of this process. The error is an error number.
fn open_own_process(pid: i32) -> Result<OwnedFd, i32> {
    let pid = Pid::from_raw(pid).ok_or(libc::ESRCH)?;
    pidfd_open(pid, PidfdFlags::empty()).map_err(Errno::raw_os_error)
}

/// Flag of clone3(2): the new process begins in another control group.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Makes a process in a control group. Without a function, it continues here, with the answer 0.
/// The answer is that of the kernel.
///
/// # Safety
///
/// The arguments are those of clone3(2). With a function, they name a stack that it may use, and it
/// does not return.
unsafe fn clone_into_group(
    arguments: &libc::clone_args,
    function: Option<extern "C" fn(*mut libc::c_void) -> libc::c_int>,
    argument: *mut libc::c_void,
) -> isize {
    let function = function.map_or(0, |function| function as *const () as usize);
    let answer: isize;
    // SAFETY: as the caller promises. The new process leaves at once for its function, if it has one.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "test r13, r13",
            "jz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 as isize => answer,
            in("rdi") ptr::from_ref(arguments),
            in("rsi") size_of::<libc::clone_args>(),
            in("r12") argument,
            in("r13") function,
            out("rcx") _, out("r11") _,
        );
    }
    answer
}

/// The worker's arguments: a name for lists of processes, and the number of the shared file's
/// descriptor.
fn worker_arguments(regions: &WorkerRegions) -> [CString; 2] {
    let shared = regions.shared_fds()[0].to_string();
    [c"cyclescope-worker".to_owned(), CString::new(shared).expect("digits")]
}

/// Everything that the child of [`start_executable`] uses, in memory that it shares with this
/// process until it runs the executable.
struct WorkerLaunch {
    image: i32,
    files: Vec<i32>,
    arguments: [*const libc::c_char; 3],
    /// What the arguments point to.
    _names: [CString; 2],
    /// The process that starts it.
    caller: CallerTie,
    /// Whether it begins in a new user namespace.
    new_user: bool,
    stack: Vec<u128>,
    /// Why the executable was not run.
    errno: AtomicI32,
    /// 1 until the child no longer uses this memory; then the kernel writes 0 and wakes a waiter
    /// (clone(2), CLONE_CHILD_CLEARTID).
    is_used: AtomicU32,
}

/// Starts a process that runs the worker's executable and has the shared files open. The time does
/// not depend on the memory of this process.
///
/// The child borrows this process's memory until then. With `CLONE_VFORK` the kernel would let this
/// thread wait for it without a limit, deaf to signals, even if something stops the child.
fn start_executable(
    regions: &WorkerRegions,
    areas: &UserAreas,
    caller: CallerTie,
    confinement: WorkerConfinement,
) -> StartResult {
    let mut files = regions.shared_fds().to_vec();
    files.extend(Some(caller.descriptor).filter(|descriptor| *descriptor >= 0));
    for area in areas.area_setups() {
        files.push(area.source);
        if let AreaBacking::Repeated { fd, .. } = area.backing {
            files.push(fd);
        }
    }
    let names = worker_arguments(regions);
    let mut launch = Box::new(WorkerLaunch {
        image: regions.image_fd(),
        files,
        arguments: [names[0].as_ptr(), names[1].as_ptr(), ptr::null()],
        _names: names,
        caller,
        new_user: confinement.namespaces & libc::CLONE_NEWUSER != 0,
        stack: vec![0u128; 4096],
        errno: AtomicI32::new(0),
        is_used: AtomicU32::new(1),
    });
    let mut pidfd: i32 = -1;
    // No exit signal: the host program's SIGCHLD handler and its `wait` do not see the worker.
    let flags = libc::CLONE_VM | libc::CLONE_PIDFD | libc::CLONE_CHILD_CLEARTID | confinement.namespaces;
    // SAFETY: the child uses only the structure, on the stack in it. Both stay until it no longer
    // uses them.
    let pid = unsafe {
        let argument = ptr::from_ref(launch.as_ref()).cast_mut().cast();
        let (stack, length) = (launch.stack.as_mut_ptr(), launch.stack.len());
        match confinement.group {
            None => {
                let (top, thread): (_, *mut libc::c_void) = (stack.add(length).cast(), ptr::null_mut());
                let used = launch.is_used.as_ptr();
                match libc::clone(run_executable, top, flags, argument, &raw mut pidfd, thread, used) {
                    -1 => -last_errno(),
                    pid => pid,
                }
            }
            Some(group) => {
                let arguments = libc::clone_args {
                    child_tid: launch.is_used.as_ptr() as u64,
                    stack: stack as u64,
                    stack_size: (length * size_of::<u128>()) as u64,
                    ..group_arguments(flags, group, &raw mut pidfd)
                };
                clone_into_group(&arguments, Some(run_executable), argument) as i32
            }
        }
    };
    if pid < 0 {
        return Err(clone_error(confinement, -pid));
    }
    let worker = WorkerProcess::from_descriptor(pid, pidfd);
    let launched = worker.and_then(|mut worker| {
        let mut limit = worker.setup_limit();
        match worker.wait_for_answer(&launch.is_used, 0, false, &mut limit) {
            // The kernel may not have written the word of a process that was killed.
            Ok(()) | Err(WaitFailure::Ended) => Ok(worker),
            Err(failure) => Err(StartFailure::Failed(failure.into_setup_error(&mut worker))),
        }
    });
    let errno = launch.errno.load(Ordering::Acquire);
    if launch.is_used.load(Ordering::Acquire) != 0 && !launched.as_ref().is_ok_and(WorkerProcess::has_ended) {
        // The child lives on and may still use it.
        std::mem::forget(launch);
    }
    match launched {
        Ok(mut worker) if errno != 0 => {
            worker.kill_and_reap();
            Err(StartFailure::NotExecuted(errno))
        }
        launched => launched,
    }
}

/// A system call that leaves the thread-local storage alone, where the C library keeps `errno`.
///
/// # Safety
///
/// That of the system call.
unsafe fn call_kernel(number: libc::c_long, arguments: [usize; 5]) -> isize {
    let [a, b, c, d, e] = arguments;
    let answer: isize;
    // SAFETY: as the caller promises; the kernel changes RAX, RCX and R11 alone.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e,
            out("rcx") _, out("r11") _,
            options(nostack),
        );
    }
    answer
}

/// Makes a new worker end with the process that starts it. It may have ended already.
///
/// # Safety
///
/// Only in a new worker.
unsafe fn die_with_caller(caller: CallerTie) {
    // SAFETY: the worker has a copy of the descriptor. It reports a refused call later.
    unsafe {
        if caller.tie() == Ok(false) {
            call_kernel(libc::SYS_exit_group, [1, 0, 0, 0, 0]);
        }
    }
}

/// The child of [`start_executable`]. It runs beside its parent, in the same memory and with the
/// same thread-local storage: no allocation, no lock, no `errno`.
extern "C" fn run_executable(launch: *mut libc::c_void) -> libc::c_int {
    let environment: [*const libc::c_char; 1] = [ptr::null()];
    // SAFETY: the parent's structure, which it keeps. Descriptors are those of this process alone.
    unsafe {
        let launch = &*launch.cast::<WorkerLaunch>();
        die_with_caller(launch.caller);
        if launch.new_user {
            // Without it, the worker keeps its root directory.
            let _ = rights::keep_root_change();
        }
        for file in &launch.files {
            let answer = call_kernel(libc::SYS_fcntl, [*file as usize, libc::F_SETFD as usize, 0, 0, 0]);
            if answer < 0 {
                end_unexecuted(launch, answer);
            }
        }
        let name = c"".as_ptr() as usize;
        let (arguments, environment) = (launch.arguments.as_ptr() as usize, environment.as_ptr() as usize);
        let whole = libc::AT_EMPTY_PATH as usize;
        let answer = call_kernel(libc::SYS_execveat, [launch.image as usize, name, arguments, environment, whole]);
        end_unexecuted(launch, answer)
    }
}

/// Ends the child of [`start_executable`], and leaves the kernel's answer for its parent.
///
/// # Safety
///
/// Only in that child.
unsafe fn end_unexecuted(launch: &WorkerLaunch, answer: isize) -> ! {
    launch.errno.store(-answer as i32, Ordering::Release);
    loop {
        // SAFETY: plain numbers.
        unsafe { call_kernel(libc::SYS_exit_group, [1, 0, 0, 0, 0]) };
    }
}

/// A copy of this process that maps the worker's executable and continues there.
fn start_copy(regions: &WorkerRegions, caller: CallerTie, confinement: WorkerConfinement) -> StartResult {
    let [name, shared] = worker_arguments(regions);
    let segments = image::read_segments();
    let stack = [2, name.as_ptr() as usize, shared.as_ptr() as usize, 0, 0];
    let mut pidfd: i32 = -1;
    // No exit signal, as in [`start_executable`].
    let flags = libc::CLONE_PIDFD | confinement.namespaces;
    // SAFETY: without CLONE_VM the child is a copy of this process, with a copy of this stack and
    // one thread.
    let pid = unsafe {
        match confinement.group {
            None => call_kernel(libc::SYS_clone, [flags as usize, 0, &raw mut pidfd as usize, 0, 0]),
            Some(group) => clone_into_group(&group_arguments(flags, group, &raw mut pidfd), None, ptr::null_mut()),
        }
    } as i32;
    match pid {
        // SAFETY: this is the child.
        0 => unsafe {
            die_with_caller(caller);
            become_worker(regions.image_fd(), &segments, &stack)
        },
        ..0 => Err(clone_error(confinement, -pid)),
        _ => WorkerProcess::from_descriptor(pid, pidfd),
    }
}

/// The arguments of clone3(2) for a process in a control group.
fn group_arguments(flags: i32, group: i32, pidfd: *mut i32) -> libc::clone_args {
    // SAFETY: all fields are numbers.
    let none: libc::clone_args = unsafe { std::mem::zeroed() };
    libc::clone_args {
        flags: u64::from(flags as u32) | CLONE_INTO_CGROUP,
        pidfd: pidfd as u64,
        cgroup: group as u64,
        ..none
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

#[cfg(test)]
mod tests {
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
        made.ok().expect("it has a descriptor")
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
    fn a_worker_that_ends_in_its_set_up_is_lost() {
        let mut worker = sleeping_worker();
        worker.send_signal(Signal::KILL);
        let failure = worker.wait_for_answer(&AtomicU32::new(1), 0, false, &mut worker.setup_limit());
        let error = failure.expect_err("it never answers").into_setup_error(&mut worker);
        assert!(matches!(error, RunError::WorkerLost { .. }), "{error}");
    }
}
