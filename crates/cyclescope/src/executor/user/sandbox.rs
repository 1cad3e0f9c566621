//! The rights and resources that the worker gives up before it runs foreign code.
//!
//! System calls that the filter refuses raise SIGSYS, and are reported like any other fault.

use super::regions::{SIGNAL_STACK, view};
use super::setup::Setup;
use super::stub;
use super::{ending, faults};
use std::ptr;

/// Signals that a snippet can raise.
pub(super) const FAULTS: [i32; 6] =
    [libc::SIGILL, libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];

/// What a failed set-up was doing, by the number that the worker reports.
pub(super) const STEPS: [&str; 12] = [
    "tying the worker to its caller",
    "pinning the worker to the CPU",
    "limiting the worker's resources",
    "closing the worker's files",
    "unmapping what the host program shares",
    "hiding the worker from other processes",
    "setting the worker's signal stack",
    "setting the worker's signal handlers",
    "setting the worker's signal mask",
    "closing the worker's sandbox (seccomp filters are needed)",
    "opening the core-cycles counter",
    "mapping the memory areas",
];

/// The last two of them, which are not part of [`close`].
pub(super) const STEP_COUNTER: u32 = 10;
/// The last step, see [`STEP_COUNTER`].
pub(super) const STEP_AREAS: u32 = 11;

/// A set-up that failed.
pub(super) struct Failed {
    /// Index in [`STEPS`].
    pub(super) step: u32,
    /// The number of the system call; -1 where it may be one of several.
    pub(super) call: i64,
    /// The system's error.
    pub(super) errno: i32,
}

/// The name of a system call of the set-up.
pub(super) fn call_name(number: i64) -> Option<&'static str> {
    const NAMES: [(i64, &str); 12] = [
        (libc::SYS_prctl, "prctl"),
        (libc::SYS_getppid, "getppid"),
        (libc::SYS_sched_setaffinity, "sched_setaffinity"),
        (libc::SYS_prlimit64, "prlimit64"),
        (libc::SYS_close_range, "close_range"),
        (libc::SYS_close, "close"),
        (libc::SYS_munmap, "munmap"),
        (libc::SYS_sigaltstack, "sigaltstack"),
        (libc::SYS_rt_sigaction, "rt_sigaction"),
        (libc::SYS_rt_sigprocmask, "rt_sigprocmask"),
        (libc::SYS_seccomp, "seccomp"),
        (libc::SYS_perf_event_open, "perf_event_open"),
    ];
    NAMES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// A system call, its arguments padded with zeros.
unsafe fn call(step: u32, number: i64, arguments: [usize; 5]) -> Result<isize, Failed> {
    let [a, b, c, d, e] = arguments;
    // SAFETY: the callers below pass what the system call asks for.
    match unsafe { stub::syscall(number, a, b, c, d, e, 0) } {
        answer @ -4095..=-1 => Err(Failed { step, call: number, errno: -answer as i32 }),
        answer => Ok(answer),
    }
}

/// Gives up all that the worker does not need.
///
/// # Safety
///
/// Only in the worker, once.
pub(super) unsafe fn close(setup: &Setup) -> Result<(), Failed> {
    // SAFETY: each function passes arguments that live long enough, to a call that changes this process.
    unsafe {
        tie_to_caller(setup)?;
        pin(setup)?;
        limit_resources(setup)?;
        close_files(setup)?;
        for (start, bytes) in &setup.foreign {
            call(4, libc::SYS_munmap, [*start, *bytes, 0, 0, 0])?;
        }
        call(5, libc::SYS_prctl, [libc::PR_SET_DUMPABLE as usize, 0, 0, 0, 0])?;
        take_signals(setup)?;
        close_filter(setup)
    }
}

unsafe fn tie_to_caller(setup: &Setup) -> Result<(), Failed> {
    // SAFETY: plain numbers, and a name that outlives the call.
    unsafe {
        let kill = libc::SIGKILL as usize;
        call(0, libc::SYS_prctl, [libc::PR_SET_PDEATHSIG as usize, kill, 0, 0, 0])?;
        // The caller may have died before the line above.
        if call(0, libc::SYS_getppid, [0; 5])? != setup.caller as isize {
            ending::exit(0);
        }
        let name = c"cyclescope-work".as_ptr() as usize;
        call(0, libc::SYS_prctl, [libc::PR_SET_NAME as usize, name, 0, 0, 0])?;
    }
    Ok(())
}

unsafe fn pin(setup: &Setup) -> Result<(), Failed> {
    let mut mask = [0u64; super::options::MAX_CPUS / 64];
    for (index, word) in mask.iter_mut().enumerate() {
        if index == setup.cpu / 64 {
            *word = 1 << (setup.cpu % 64);
        }
    }
    // SAFETY: the mask lives through the call.
    unsafe {
        call(1, libc::SYS_sched_setaffinity, [0, size_of_val(&mask), ptr::from_ref(&mask) as usize, 0, 0])?
    };
    Ok(())
}

unsafe fn close_files(setup: &Setup) -> Result<(), Failed> {
    // SAFETY: the worker uses no file any more.
    unsafe {
        // Older kernels do not have it, and older containers refuse it.
        if call(3, libc::SYS_close_range, [0, u32::MAX as usize, 0, 0, 0]).is_ok() {
            return Ok(());
        }
        for file in 0..setup.files {
            match call(3, libc::SYS_close, [file, 0, 0, 0, 0]) {
                Ok(_) | Err(Failed { errno: libc::EBADF, .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

unsafe fn limit_resources(setup: &Setup) -> Result<(), Failed> {
    let none = [
        libc::RLIMIT_CORE,
        libc::RLIMIT_FSIZE,
        libc::RLIMIT_NOFILE,
        libc::RLIMIT_NPROC,
        libc::RLIMIT_MEMLOCK,
    ];
    let heap = setup.data_limit.map(|bytes| (libc::RLIMIT_DATA, bytes));
    for (limit, most) in none.map(|limit| (limit, 0)).into_iter().chain(heap) {
        let most = [most; 2];
        let new = ptr::from_ref(&most) as usize;
        // SAFETY: the limits live through the call.
        unsafe { call(2, libc::SYS_prlimit64, [0, limit as usize, new, 0, 0])? };
    }
    Ok(())
}

/// `struct sigaction` as the kernel has it.
#[repr(C)]
struct KernelSigaction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// The kernel demands a restorer on x86-64; the handler never returns to it.
const SA_RESTORER: u64 = 0x0400_0000;
/// The alternate stack is used from its top for every value of RSP, inside that stack too.
const SS_AUTODISARM: i32 = 1 << 31;

unsafe fn take_signals(setup: &Setup) -> Result<(), Failed> {
    let stack = libc::stack_t {
        ss_sp: (setup.view + view::SIGNAL_STACK_AT as u64) as *mut libc::c_void,
        ss_flags: SS_AUTODISARM,
        ss_size: SIGNAL_STACK,
    };
    let entry = faults::signal_entry as *const () as usize;
    let flags = (libc::SA_SIGINFO | libc::SA_ONSTACK) as u64 | SA_RESTORER;
    let action = KernelSigaction { handler: entry, flags, restorer: entry, mask: u64::MAX };
    let mut mask = u64::MAX;
    // SAFETY: all structures live through their calls, and the handler through the process.
    unsafe {
        call(6, libc::SYS_sigaltstack, [ptr::from_ref(&stack) as usize, 0, 0, 0, 0])?;
        for signal in FAULTS {
            let new = ptr::from_ref(&action) as usize;
            call(7, libc::SYS_rt_sigaction, [signal as usize, new, 0, 8, 0])?;
            mask &= !(1 << (signal - 1));
        }
        // Everything else stays blocked: Ctrl-C is for the caller to handle.
        let new = ptr::from_ref(&mask) as usize;
        call(8, libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, new, 0, 8, 0])?;
    }
    Ok(())
}

unsafe fn close_filter(setup: &Setup) -> Result<(), Failed> {
    let program =
        libc::sock_fprog { len: setup.filter.len() as u16, filter: setup.filter.as_ptr().cast_mut() };
    let program = ptr::from_ref(&program) as usize;
    let mode = libc::SECCOMP_SET_MODE_FILTER as usize;
    // Without this flag kernels before 5.16 switch speculative store bypass off for the worker, which
    // changes what loads after stores cost.
    let keep_speculation = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW as usize;
    // SAFETY: the filter lives through the call.
    unsafe {
        call(9, libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0])?;
        call(9, libc::SYS_seccomp, [mode, keep_speculation, program, 0, 0])?;
    }
    Ok(())
}
