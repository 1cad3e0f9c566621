//! What the worker gives up before it runs foreign code: rights, resources, files, signals, system
//! calls.
//!
//! System calls that the filter refuses raise SIGSYS, and are reported like any other fault.

use super::command::barrier;
use super::kernel::*;
use super::rights::{self, RefusedCall};
use super::setup::{UNLIMITED, WorkerSetup};
use super::view::{self, SIGNAL_STACK_BYTES};
use super::{ending, faults, stub};
use core::mem::size_of_val;
use core::ptr;

/// Signals that a snippet can raise.
pub const FAULT_SIGNALS: [i32; 6] = [SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP, SIGSYS];

/// The steps of a set-up, each with the number that the worker reports if it fails.
macro_rules! steps {
    ($($name:ident: $doing:literal;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Number { $($name),* }
        $(#[doc = $doing] pub const $name: u32 = Number::$name as u32;)*
        /// Description of each step.
        pub const STEPS: &[&str] = &[$($doing),*];
    };
}

steps! {
    COUNTER: "opening the core-cycles counter";
    EVENTS: "opening the performance events";
    AREAS: "mapping the memory areas";
    THREAD: "setting the worker's thread pointer";
    RIGHTS: "giving up the worker's rights";
    TIE: "tying the worker to its caller";
    PIN: "pinning the worker to the CPU";
    LIMITS: "limiting the worker's resources";
    FILES: "closing the worker's files";
    FOREIGN: "unmapping shared memory of the host program";
    HIDE: "hiding the worker from other processes";
    STACK: "setting the worker's signal stack";
    HANDLERS: "setting the worker's signal handlers";
    MASK: "setting the worker's signal mask";
    FILTER: "closing the worker's sandbox (seccomp filters are needed)";
}

/// A failed set-up.
pub struct SetupFailure {
    /// The step's number.
    pub step: u32,
    /// The number of the system call; -1 if it may be one of several.
    pub call: i64,
    /// The system's error.
    pub errno: i32,
}

/// A system call, its arguments padded with zeros.
unsafe fn call_kernel(step: u32, number: i64, arguments: [usize; 5]) -> Result<isize, SetupFailure> {
    let [a, b, c, d, e] = arguments;
    // SAFETY: the callers below pass the arguments that the system call needs.
    match unsafe { stub::syscall(number, a, b, c, d, e, 0) } {
        answer @ -4095..=-1 => Err(SetupFailure { step, call: number, errno: -answer as i32 }),
        answer => Ok(answer),
    }
}

/// Error numbers of barriers that the system may refuse, 0 for those that hold.
pub type BarrierErrors = [i32; barrier::COUNT];

/// Gives up all that the worker does not need. Returns which barriers the system has refused.
///
/// # Safety
///
/// Only in the worker, once.
pub unsafe fn close_sandbox(setup: &WorkerSetup) -> Result<BarrierErrors, SetupFailure> {
    let mut barriers = [0; barrier::COUNT];
    let error_number = |result: Result<(), RefusedCall>| result.map_or_else(|(_, errno)| errno, |()| 0);
    let refused = |(call, errno): RefusedCall| SetupFailure { step: RIGHTS, call, errno };
    // SAFETY: each function passes arguments that live long enough, to a call that changes this
    // process.
    unsafe {
        if !setup.copy {
            set_thread_pointer(setup)?;
        }
        rights::offer_to_end();
        rights::unregister_rseq(setup.rseq, setup.rseq_bytes);
        barriers[barrier::EMPTY_ROOT] = error_number(rights::enter_empty_root());
        rights::forbid_new_privileges().map_err(refused)?;
        barriers[barrier::LANDLOCK] = error_number(rights::restrict_with_landlock());
        rights::drop_rights().map_err(refused)?;
        // A change of the user would undo the next steps.
        tie_to_caller(setup)?;
        pin_to_cpu(setup)?;
        limit_resources(setup)?;
        close_files(setup)?;
        for foreign in setup.foreign_mappings() {
            call_kernel(FOREIGN, call::MUNMAP, [foreign.start, foreign.bytes, 0, 0, 0])?;
        }
        call_kernel(HIDE, call::PRCTL, [PR_SET_DUMPABLE, 0, 0, 0, 0])?;
        install_signal_handlers(setup)?;
        install_filter(setup)?;
    }
    Ok(barriers)
}

/// Compiled code reads two values at FS: its own address, and random numbers that guard the stack.
unsafe fn set_thread_pointer(setup: &WorkerSetup) -> Result<(), SetupFailure> {
    let thread = setup.address_at(view::THREAD_AT + view::THREAD_BYTES / 2).cast::<usize>();
    // SAFETY: the region is mapped, and nothing else uses it.
    unsafe {
        thread.write_volatile(thread as usize);
        call_kernel(THREAD, call::ARCH_PRCTL, [ARCH_SET_FS, thread as usize, 0, 0, 0])?;
    }
    Ok(())
}

unsafe fn tie_to_caller(setup: &WorkerSetup) -> Result<(), SetupFailure> {
    let failed = |(call, errno): RefusedCall| SetupFailure { step: TIE, call, errno };
    // SAFETY: the descriptor is still open; the name outlives the call.
    unsafe {
        if !setup.caller.tie().map_err(failed)? {
            ending::exit_process(0);
        }
        let name = c"cyclescope-work".as_ptr() as usize;
        call_kernel(TIE, call::PRCTL, [PR_SET_NAME, name, 0, 0, 0])?;
    }
    Ok(())
}

/// Bits of a set of CPUs.
pub const MOST_CPUS: usize = 1024;

unsafe fn pin_to_cpu(setup: &WorkerSetup) -> Result<(), SetupFailure> {
    let mut mask = [0u64; MOST_CPUS / 64];
    for (index, word) in mask.iter_mut().enumerate() {
        if index == setup.cpu / 64 {
            *word = 1 << (setup.cpu % 64);
        }
    }
    let address = ptr::from_ref(&mask) as usize;
    // SAFETY: the mask lives through the call.
    unsafe { call_kernel(PIN, call::SCHED_SETAFFINITY, [0, size_of_val(&mask), address, 0, 0]) }.map(drop)
}

unsafe fn close_files(setup: &WorkerSetup) -> Result<(), SetupFailure> {
    // SAFETY: the worker does not use files from here on.
    unsafe {
        // Older kernels lack it, and older containers refuse it.
        if call_kernel(FILES, call::CLOSE_RANGE, [0, u32::MAX as usize, 0, 0, 0]).is_ok() {
            return Ok(());
        }
        for file in 0..setup.files {
            match call_kernel(FILES, call::CLOSE, [file, 0, 0, 0, 0]) {
                Ok(_) | Err(SetupFailure { errno: EBADF, .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

unsafe fn limit_resources(setup: &WorkerSetup) -> Result<(), SetupFailure> {
    let none = [RLIMIT_CORE, RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_MEMLOCK];
    let heap = (setup.data_limit != UNLIMITED).then_some((RLIMIT_DATA, setup.data_limit));
    for (limit, most) in none.map(|limit| (limit, 0)).into_iter().chain(heap) {
        let most = [most; 2];
        let new = ptr::from_ref(&most) as usize;
        // SAFETY: the limits live through the call.
        unsafe { call_kernel(LIMITS, call::PRLIMIT64, [0, limit, new, 0, 0])? };
    }
    Ok(())
}

/// `struct sigaction` in the kernel's layout.
#[repr(C)]
struct KernelSigaction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// `stack_t`
#[repr(C)]
struct SignalStack {
    start: *mut u8,
    flags: i32,
    bytes: usize,
}

/// The handler gets details of the signal.
const SA_SIGINFO: u64 = 4;
/// It runs on the signal stack.
const SA_ONSTACK: u64 = 0x0800_0000;
/// The kernel demands a restorer on x86-64; the handler never returns to it.
const SA_RESTORER: u64 = 0x0400_0000;
/// The alternate stack is used from its top for every value of RSP, inside that stack too.
const SS_AUTODISARM: i32 = 1 << 31;

unsafe fn install_signal_handlers(setup: &WorkerSetup) -> Result<(), SetupFailure> {
    let stack =
        SignalStack { start: setup.address_at(view::SIGNAL_STACK_AT), flags: SS_AUTODISARM, bytes: SIGNAL_STACK_BYTES };
    let entry = faults::signal_entry as *const () as usize;
    let flags = SA_SIGINFO | SA_ONSTACK | SA_RESTORER;
    let action = KernelSigaction { handler: entry, flags, restorer: entry, mask: u64::MAX };
    let mut mask = u64::MAX;
    // SAFETY: all structures live through their calls, and the handler through the process.
    unsafe {
        call_kernel(STACK, call::SIGALTSTACK, [ptr::from_ref(&stack) as usize, 0, 0, 0, 0])?;
        for signal in FAULT_SIGNALS {
            let new = ptr::from_ref(&action) as usize;
            call_kernel(HANDLERS, call::RT_SIGACTION, [signal as usize, new, 0, 8, 0])?;
            mask &= !(1 << (signal - 1));
        }
        // All other signals stay blocked: Ctrl-C is for the caller to handle.
        let new = ptr::from_ref(&mask) as usize;
        call_kernel(MASK, call::RT_SIGPROCMASK, [SIG_SETMASK, new, 0, 8, 0]).map(drop)
    }
}

/// `struct sock_fprog`
#[repr(C)]
struct FilterProgram {
    steps: u16,
    filter: *const u64,
}

unsafe fn install_filter(setup: &WorkerSetup) -> Result<(), SetupFailure> {
    let program = FilterProgram { steps: setup.filter_steps as u16, filter: setup.filter.as_ptr() };
    let program = ptr::from_ref(&program) as usize;
    // Without this flag kernels before 5.16 switch speculative store bypass off for the worker,
    // which changes what loads after stores cost.
    let keep_speculation = SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    // SAFETY: the filter lives through the call.
    unsafe { call_kernel(FILTER, call::SECCOMP, [SECCOMP_SET_MODE_FILTER, keep_speculation, program, 0, 0]) }.map(drop)
}
