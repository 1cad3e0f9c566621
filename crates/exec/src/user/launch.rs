//! Starts the process of a worker: one that runs the worker's executable, or a copy of this process.

use super::answer_wait::WaitFailure;
use super::areas::UserAreas;
use super::confinement::ConfinementArguments;
use super::options::UserOptions;
use super::process::{STARTING_WORKER, WorkerProcess, last_errno};
use super::regions::WorkerRegions;
use super::setup::{self, WorkerOrigin, WorkerStart};
use super::worker_events::WorkerEvents;
use cyclescope_core::error::RunError;
use cyclescope_worker::area::AreaBacking;
use cyclescope_worker::image::{self, SEGMENT_COUNT};
use cyclescope_worker::setup::CallerTie;
use cyclescope_worker::{rights, stub};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

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

/// Makes a worker. Its first answer, in the word `done`, says whether its set-up succeeded.
pub(super) fn launch_worker(
    regions: &mut WorkerRegions,
    areas: &UserAreas,
    options: &UserOptions,
    events: &WorkerEvents,
    start: WorkerStart,
    confinement: ConfinementArguments,
) -> Result<WorkerProcess, StartFailure> {
    let pid = setup::read_own_pid().map_err(StartFailure::Failed)?;
    // The worker has a copy of the descriptor. It needs none if it sees the number.
    let own_descriptor = match confinement.namespaces & libc::CLONE_NEWPID {
        0 => None,
        _ => Some(open_own_process(pid).map_err(StartFailure::Refused)?),
    };
    let caller = CallerTie { pid, descriptor: own_descriptor.as_ref().map_or(-1, AsRawFd::as_raw_fd) };
    let written = setup::write_setup(regions, areas, options, events, start, caller);
    written.map_err(StartFailure::Failed)?;
    let blocked = BlockedSignals::block_all();
    let made = match start.origin {
        WorkerOrigin::Own => start_executable(regions, areas, events, caller, confinement),
        WorkerOrigin::Copy => start_copy(regions, caller, confinement),
    };
    drop(blocked);
    made
}

fn clone_error(confinement: ConfinementArguments, errno: i32) -> StartFailure {
    match confinement {
        ConfinementArguments { namespaces: 0, group: None } => {
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
    events: &WorkerEvents,
    caller: CallerTie,
    confinement: ConfinementArguments,
) -> StartResult {
    let mut files = regions.shared_fds().to_vec();
    files.extend(events.worker_socket());
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
    let worker = WorkerProcess::from_descriptor(pid, pidfd).map_err(StartFailure::Failed);
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

/// Makes a new worker end with the process that starts it. It may have ended already.
///
/// # Safety
///
/// Only in a new worker.
unsafe fn die_with_caller(caller: CallerTie) {
    // SAFETY: the worker has a copy of the descriptor. It reports a refused call later.
    unsafe {
        if caller.tie() == Ok(false) {
            stub::syscall(libc::SYS_exit_group, 1, 0, 0, 0, 0, 0);
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
            let answer = stub::syscall(libc::SYS_fcntl, *file as usize, libc::F_SETFD as usize, 0, 0, 0, 0);
            if answer < 0 {
                end_unexecuted(launch, answer);
            }
        }
        let name = c"".as_ptr() as usize;
        let (arguments, environment) = (launch.arguments.as_ptr() as usize, environment.as_ptr() as usize);
        let whole = libc::AT_EMPTY_PATH as usize;
        let answer = stub::syscall(libc::SYS_execveat, launch.image as usize, name, arguments, environment, whole, 0);
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
        unsafe { stub::syscall(libc::SYS_exit_group, 1, 0, 0, 0, 0, 0) };
    }
}

/// A copy of this process that maps the worker's executable and continues there.
fn start_copy(regions: &WorkerRegions, caller: CallerTie, confinement: ConfinementArguments) -> StartResult {
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
            None => stub::syscall(libc::SYS_clone, flags as usize, 0, &raw mut pidfd as usize, 0, 0, 0),
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
        _ => WorkerProcess::from_descriptor(pid, pidfd).map_err(StartFailure::Failed),
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
