//! The worker's own side: a process of this program that measures instead of running `main`.
//!
//! The C library's start code calls [`begin_if_worker`] before `main`. In a worker it never returns:
//! it maps the memory, gives up rights, and runs commands until it is ended. A fault of measured code
//! reaches a vectored exception handler, which reports it and ends the process.
//!
//! Limits: the handler runs on the stack that the code left. If no stack is there, the system ends
//! the process, and the worker counts as lost.

use super::handle::handle_from_number;
use super::launch::WORKER_NAME;
use super::process::last_errno;
use super::protections::LOW_INTEGRITY;
use super::regions::{SETUP_IN_SECTION, SHARED_AT, SHARED_BYTES};
use super::setup::{LaunchSetup, SETUP_CALLS};
use super::worker_contents;
use cyclescope_platform::{cpus, error_code, time};
use cyclescope_worker::area::{AreaBacking, AreaSetup};
use cyclescope_worker::command::{WorkerAnswer, WorkerCommand, WorkerStatus, outcome};
use cyclescope_worker::kernel::{SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
use cyclescope_worker::sandbox;
use cyclescope_worker::setup::WorkerSetup;
use cyclescope_worker::stub::{self, RestoredState};
use cyclescope_worker::view::{self, ARENA_BYTES, COMMAND_BYTES, EVICTION_BYTES, SETUP_BYTES};
use cyclescope_worker::{command, serve};
use std::ffi::OsString;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use windows_sys::Win32::Foundation as status;
use windows_sys::Win32::Foundation::{CloseHandle, HANDLE, NTSTATUS};
use windows_sys::Win32::Security::{
    SECURITY_MANDATORY_LABEL_AUTHORITY, SID, SID_AND_ATTRIBUTES, SetTokenInformation, TOKEN_ADJUST_DEFAULT,
    TOKEN_MANDATORY_LABEL, TOKEN_QUERY, TokenIntegrityLevel,
};
use windows_sys::Win32::System::Diagnostics::Debug::{
    AddVectoredExceptionHandler, EXCEPTION_POINTERS, SEM_FAILCRITICALERRORS, SEM_NOGPFAULTERRORBOX, SetErrorMode,
};
use windows_sys::Win32::System::Memory::{
    FILE_MAP_EXECUTE, FILE_MAP_READ, FILE_MAP_WRITE, MEM_COMMIT, MEM_RESERVE, MapViewOfFileEx, PAGE_EXECUTE_READ,
    PAGE_EXECUTE_READWRITE, PAGE_NOACCESS, PAGE_READONLY, PAGE_READWRITE, VirtualAlloc, VirtualProtect,
};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, INFINITE, OpenProcessToken, SetEvent, TerminateProcess, WaitForSingleObject,
};

/// Called by the C library before `main`, as the constructors of C++ are.
#[used]
#[unsafe(link_section = ".CRT$XCU")]
static BEFORE_MAIN: unsafe extern "C" fn() = begin_if_worker;

/// Addresses of the functions that programs call: `clock_gettime` and `memcpy`. Their use of this
/// static keeps the entry above in every program.
pub(super) fn called_functions() -> [u64; 2] {
    std::hint::black_box(&BEFORE_MAIN);
    [read_clock as *const () as u64, copy_bytes as *const () as u64]
}

/// What programs call as `clock_gettime`.
unsafe extern "sysv64" fn read_clock(_clock: i32, into: *mut [i64; 2]) -> i32 {
    let now = time::read_steady_clock() as i64;
    // SAFETY: the program passes memory of its context.
    unsafe { into.write([now / 1_000_000_000, now % 1_000_000_000]) };
    0
}

/// What programs call as `memcpy`.
unsafe extern "sysv64" fn copy_bytes(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: as for the C library's function.
    unsafe { ptr::copy_nonoverlapping(from, to, bytes) };
    to
}

/// Becomes a worker, if the arguments say so.
unsafe extern "C" fn begin_if_worker() {
    let mut arguments = std::env::args_os();
    if arguments.next().is_none_or(|name| name != WORKER_NAME) {
        return;
    }
    let shared = arguments.next().and_then(|number| number.to_str()?.parse().ok());
    // SAFETY: this process is the worker, and runs nothing else.
    unsafe { begin(handle_from_number(shared.unwrap_or(0)), arguments) }
}

/// Ends this process at once.
fn end_process(code: u32) -> ! {
    loop {
        // SAFETY: takes no pointers.
        unsafe { TerminateProcess(GetCurrentProcess(), code) };
    }
}

/// The worker's status, and the event that announces it, for the exception handler.
static STATUS: AtomicPtr<WorkerStatus> = AtomicPtr::new(ptr::null_mut());
static COMMAND: AtomicPtr<WorkerCommand> = AtomicPtr::new(ptr::null_mut());
static DONE: AtomicI32 = AtomicI32::new(0);

/// A failed step: its number, the index of the call, and the error.
type StepFailure = (u32, usize, i32);

unsafe fn begin(shared: HANDLE, contents: impl Iterator<Item = OsString>) -> ! {
    // SAFETY: the caller has written a setup at this offset of the section.
    let setup = unsafe {
        // No dialogue appears when it ends.
        SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);
        if let Err(code) = worker_contents::load_contents(contents) {
            end_process(code as u32);
        }
        let at = map_section(shared, FILE_MAP_READ, SETUP_IN_SECTION, SETUP_BYTES, 0);
        &*at.unwrap_or_else(|errno| end_process(errno as u32)).cast::<LaunchSetup>()
    };
    if setup.functions != called_functions() {
        end_process(error_code::EEXIST as u32);
    }
    // SAFETY: as above.
    unsafe {
        if let Err(errno) = map_view(setup) {
            end_process(errno as u32);
        }
        serve_commands(setup)
    }
}

/// Maps a part of a section, at an address if it is not 0. The error is an error number.
unsafe fn map_section(section: HANDLE, access: u32, offset: usize, bytes: usize, at: u64) -> Result<*mut u8, i32> {
    let (high, low) = ((offset as u64 >> 32) as u32, offset as u32);
    // SAFETY: a new mapping replaces nothing.
    let start = unsafe { MapViewOfFileEx(section, access, high, low, bytes, at as *const _) }.Value;
    match start.is_null() {
        false => Ok(start.cast()),
        true if at != 0 && last_errno() == status::ERROR_INVALID_ADDRESS as i32 => Err(error_code::EEXIST),
        true => Err(last_errno()),
    }
}

/// Memory of this process alone, at an address.
unsafe fn allocate(at: u64, bytes: usize, protection: u32) -> Result<(), i32> {
    // SAFETY: new memory at free addresses replaces nothing.
    let start = unsafe { VirtualAlloc(at as *const _, bytes, MEM_RESERVE | MEM_COMMIT, protection) };
    match start.is_null() {
        false => Ok(()),
        true if last_errno() == status::ERROR_INVALID_ADDRESS as i32 => Err(error_code::EEXIST),
        true => Err(last_errno()),
    }
}

unsafe fn protect(start: *mut u8, bytes: usize, protection: u32) -> Result<(), i32> {
    let mut before = 0;
    // SAFETY: the pages belong to the view, and nothing refers to them.
    match unsafe { VirtualProtect(start.cast(), bytes, protection, &mut before) } {
        0 => Err(last_errno()),
        _ => Ok(()),
    }
}

/// Maps the view. The error is an error number.
unsafe fn map_view(setup: &LaunchSetup) -> Result<(), i32> {
    let worker = &setup.worker;
    let at = |offset: usize| worker.view + offset as u64;
    // SAFETY: the addresses are reserved for this view in the caller.
    unsafe {
        let code = handle_from_number(setup.code);
        map_section(code, FILE_MAP_READ | FILE_MAP_EXECUTE, 0, ARENA_BYTES, at(view::ARENA_AT))?;
        protect(worker.address_at(view::ARENA_AT), ARENA_BYTES, PAGE_EXECUTE_READ)?;
        map_section(handle_from_number(setup.shared), FILE_MAP_WRITE, 0, SHARED_BYTES, at(SHARED_AT))?;
        protect(worker.address_at(view::COMMAND_AT), COMMAND_BYTES, PAGE_READONLY)?;
        for region in [view::CONTEXT_AT, view::STATUS_AT, view::SAMPLES_AT] {
            protect(worker.address_at(region - view::GUARD_BYTES), view::GUARD_BYTES, PAGE_NOACCESS)?;
        }
        allocate(at(view::EVICTION_AT), EVICTION_BYTES, PAGE_READONLY)
    }
}

/// Maps the areas. The error is the call's index and an error number.
unsafe fn map_areas(worker: &WorkerSetup) -> Result<(), StepFailure> {
    for area in worker.areas() {
        // SAFETY: the caller has reserved the addresses.
        unsafe { map_area(area) }.map_err(|(call, errno)| (sandbox::AREAS, call, errno))?;
    }
    Ok(())
}

unsafe fn map_area(area: &AreaSetup) -> Result<(), (usize, i32)> {
    // SAFETY: as for `map_areas`.
    unsafe {
        let source = handle_from_number(area.source);
        let mapped = |result: Result<*mut u8, i32>| result.map(drop).map_err(|errno| (1, errno));
        mapped(map_section(source, FILE_MAP_READ, 0, area.source_bytes, area.source_at))?;
        match area.backing {
            AreaBacking::Repeated { fd, bytes } => {
                let frames = handle_from_number(fd);
                for offset in (0..area.bytes).step_by(bytes) {
                    let part = bytes.min(area.bytes - offset);
                    mapped(map_section(frames, FILE_MAP_WRITE, 0, part, area.address + offset as u64))?;
                }
            }
            AreaBacking::Copied | AreaBacking::Template => {
                let protection = if area.executable { PAGE_EXECUTE_READWRITE } else { PAGE_READWRITE };
                allocate(area.address, area.bytes, protection).map_err(|errno| (0, errno))?;
            }
        }
    }
    Ok(())
}

/// Lowers the integrity level of this process, so that it may not change what is the user's. The
/// answer is an error number, 0 if that is done.
fn lower_integrity() -> i32 {
    /// `SECURITY_MANDATORY_LOW_RID`, `SE_GROUP_INTEGRITY` (Windows SDK, `winnt.h`).
    const LOW: u32 = 0x1000;
    const IS_INTEGRITY: u32 = 0x20;
    let mut level = SID {
        Revision: 1,
        SubAuthorityCount: 1,
        IdentifierAuthority: SECURITY_MANDATORY_LABEL_AUTHORITY,
        SubAuthority: [LOW],
    };
    let label = SID_AND_ATTRIBUTES { Sid: ptr::from_mut(&mut level).cast(), Attributes: IS_INTEGRITY };
    let label = TOKEN_MANDATORY_LABEL { Label: label };
    let mut token = ptr::null_mut();
    // SAFETY: all structures live through the calls.
    unsafe {
        if OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_DEFAULT | TOKEN_QUERY, &mut token) == 0 {
            return last_errno();
        }
        let bytes = (size_of_val(&label) + size_of_val(&level)) as u32;
        let done = SetTokenInformation(token, TokenIntegrityLevel, ptr::from_ref(&label).cast(), bytes);
        let errno = last_errno();
        CloseHandle(token);
        if done == 0 { errno.max(1) } else { 0 }
    }
}

/// Prepares this process for foreign code.
unsafe fn prepare(setup: &LaunchSetup) -> Result<i32, StepFailure> {
    let worker = &setup.worker;
    // SAFETY: this process is the worker, set up once.
    unsafe {
        map_areas(worker)?;
        cpus::move_thread(worker.cpu as u32)
            .map_err(|error| (sandbox::PIN, 2, error.raw_os_error().unwrap_or(error_code::EINVAL)))?;
        if AddVectoredExceptionHandler(1, Some(report_fault)).is_null() {
            return Err((sandbox::HANDLERS, 3, last_errno()));
        }
    }
    Ok(lower_integrity())
}

unsafe fn serve_commands(setup: &LaunchSetup) -> ! {
    let worker = &setup.worker;
    let status = worker.shared_pointers().status_pointer();
    let command: *mut WorkerCommand = worker.address_at(view::COMMAND_AT).cast();
    STATUS.store(status, Ordering::Relaxed);
    COMMAND.store(command, Ordering::Relaxed);
    DONE.store(setup.done, Ordering::Relaxed);
    let mut last = worker.sequence;
    // SAFETY: the shared memory is mapped, and the caller writes no command while another is
    // running.
    unsafe {
        let answer = ptr::addr_of_mut!((*status).answer);
        match prepare(setup) {
            Ok(integrity) => {
                let mut barriers = [0; command::barrier::COUNT];
                barriers[LOW_INTEGRITY] = integrity;
                ptr::addr_of_mut!((*answer).barriers).write_volatile(barriers);
                ptr::addr_of_mut!((*answer).address).write_volatile(0);
                ptr::addr_of_mut!((*answer).outcome).write_volatile(outcome::DONE);
                finish_command(last);
            }
            Err((step, call, errno)) => {
                debug_assert!(call < SETUP_CALLS.len());
                ptr::addr_of_mut!((*answer).detail).write_volatile(step);
                ptr::addr_of_mut!((*answer).errno).write_volatile(errno);
                ptr::addr_of_mut!((*answer).address).write_volatile(call as u64);
                ptr::addr_of_mut!((*answer).outcome).write_volatile(outcome::SETUP);
                finish_command(last);
                end_process(0)
            }
        }
        let mut restored = RestoredState { fs_base: 0, gs_base: 0, avx: worker.avx, fsgsbase: worker.fsgsbase };
        if worker.fsgsbase {
            core::arch::asm!("rdfsbase {}", out(reg) restored.fs_base, options(nomem, nostack));
            core::arch::asm!("rdgsbase {}", out(reg) restored.gs_base, options(nomem, nostack));
        }
        loop {
            last = wait_for_command(command, last, handle_from_number(setup.wake));
            stub::serialise();
            let (result, detail) = match serve::run_command(worker, command, &restored) {
                Ok(()) => (outcome::DONE, 0),
                Err(fence) => (outcome::FENCE, fence),
            };
            ptr::addr_of_mut!((*answer).detail).write_volatile(detail);
            ptr::addr_of_mut!((*answer).outcome).write_volatile(result);
            finish_command(last);
        }
    }
}

/// Iterations of active waiting, some 300 µs.
const SPIN_ITERATIONS: u32 = 8000;

unsafe fn wait_for_command(command: *const WorkerCommand, last: u32, wake: HANDLE) -> u32 {
    // SAFETY: the command region stays mapped; its first word is accessed atomically on both sides.
    let (sequence, spin) = unsafe { (&(*command).sequence, (*command).spin) };
    if spin != 0 {
        for _ in 0..SPIN_ITERATIONS {
            let now = sequence.load(Ordering::Acquire);
            if now != last {
                return now;
            }
            core::hint::spin_loop();
        }
    }
    loop {
        let now = sequence.load(Ordering::Acquire);
        if now != last {
            return now;
        }
        // SAFETY: the handle stays open.
        unsafe { WaitForSingleObject(wake, INFINITE) };
    }
}

/// Publishes the status and wakes the caller.
fn finish_command(sequence: u32) {
    // SAFETY: mapped as long as this process lives; the word is accessed atomically on both sides.
    unsafe {
        (*STATUS.load(Ordering::Relaxed)).done.store(sequence, Ordering::Release);
        SetEvent(handle_from_number(DONE.load(Ordering::Relaxed)));
    }
}

/// `si_code` of a fault without an address of its own, of INT1, of a single step, and of an alignment
/// check: faults are reported as on Linux.
const SI_KERNEL: i32 = 0x80;
const TRAP_TRACE: i32 = 2;
const BUS_ADRALN: i32 = 1;
/// Bit of a page fault's error code: instruction fetch (Intel SDM vol. 3A, 4.7).
const FETCH: u32 = 1 << 4;
/// What `ExceptionInformation` says of a fetch (Windows SDK, EXCEPTION_RECORD).
const IS_FETCH: usize = 8;

/// A fault as Linux names it: signal, `si_code`, address, the processor's error code and exception.
fn name_fault(code: NTSTATUS, information: [usize; 2]) -> Option<(i32, i32, u64, u32, u32)> {
    Some(match code {
        // A non-canonical address, or an instruction of ring 0.
        status::STATUS_ACCESS_VIOLATION if information[1] == usize::MAX => (SIGSEGV, SI_KERNEL, 0, 0, 13),
        status::STATUS_ACCESS_VIOLATION | status::STATUS_IN_PAGE_ERROR | status::STATUS_GUARD_PAGE_VIOLATION => {
            let error = if information[0] == IS_FETCH { FETCH } else { 0 };
            (SIGSEGV, 1, information[1] as u64, error, 14)
        }
        status::STATUS_PRIVILEGED_INSTRUCTION => (SIGSEGV, SI_KERNEL, 0, 0, 13),
        status::STATUS_ILLEGAL_INSTRUCTION => (SIGILL, 2, 0, 0, 6),
        status::STATUS_DATATYPE_MISALIGNMENT => (SIGBUS, BUS_ADRALN, 0, 0, 17),
        status::STATUS_INTEGER_DIVIDE_BY_ZERO | status::STATUS_INTEGER_OVERFLOW => (SIGFPE, 1, 0, 0, 0),
        status::STATUS_FLOAT_DENORMAL_OPERAND
        | status::STATUS_FLOAT_DIVIDE_BY_ZERO
        | status::STATUS_FLOAT_INEXACT_RESULT
        | status::STATUS_FLOAT_INVALID_OPERATION
        | status::STATUS_FLOAT_MULTIPLE_FAULTS
        | status::STATUS_FLOAT_MULTIPLE_TRAPS
        | status::STATUS_FLOAT_OVERFLOW
        | status::STATUS_FLOAT_STACK_CHECK
        | status::STATUS_FLOAT_UNDERFLOW => (SIGFPE, 7, 0, 0, 19),
        status::STATUS_BREAKPOINT => (SIGTRAP, SI_KERNEL, 0, 0, 3),
        status::STATUS_SINGLE_STEP => (SIGTRAP, TRAP_TRACE, 0, 0, 1),
        status::STATUS_STACK_OVERFLOW | status::STATUS_ARRAY_BOUNDS_EXCEEDED => (SIGSEGV, SI_KERNEL, 0, 0, 5),
        _ => return None,
    })
}

/// Reports a fault and ends the process.
unsafe extern "system" fn report_fault(pointers: *mut EXCEPTION_POINTERS) -> i32 {
    /// `EXCEPTION_CONTINUE_SEARCH`: not a fault of code.
    const CONTINUE_SEARCH: i32 = 0;
    // SAFETY: the system passes both structures; the status is mapped before the handler is added.
    unsafe {
        let record = &*(*pointers).ExceptionRecord;
        let information = [record.ExceptionInformation[0], record.ExceptionInformation[1]];
        let Some((signal, code, address, error, vector)) = name_fault(record.ExceptionCode, information) else {
            return CONTINUE_SEARCH;
        };
        // For a breakpoint the record has the address of the instruction, and Linux that behind it.
        let rip = match record.ExceptionCode {
            status::STATUS_BREAKPOINT => record.ExceptionAddress as u64 + 1,
            _ => record.ExceptionAddress as u64,
        };
        let answer: *mut WorkerAnswer = ptr::addr_of_mut!((*STATUS.load(Ordering::Relaxed)).answer);
        ptr::addr_of_mut!((*answer).signal).write_volatile(signal);
        ptr::addr_of_mut!((*answer).code).write_volatile(code);
        ptr::addr_of_mut!((*answer).address).write_volatile(address);
        ptr::addr_of_mut!((*answer).rip).write_volatile(rip);
        ptr::addr_of_mut!((*answer).error).write_volatile(error);
        ptr::addr_of_mut!((*answer).vector).write_volatile(vector);
        ptr::addr_of_mut!((*answer).outcome).write_volatile(outcome::FAULT);
        finish_command((*COMMAND.load(Ordering::Relaxed)).sequence.load(Ordering::Acquire));
    }
    end_process(0)
}
