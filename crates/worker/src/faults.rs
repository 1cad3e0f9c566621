//! Faults of measured code, as the worker's signal handler reports them.
//!
//! A worker that faulted ends. Its registers could be restored, but not the memory that the snippet
//! may have overwritten, and a new worker takes well under a millisecond.

use super::command::outcome;
use super::ending;
use super::kernel::SIGSYS;
use core::arch::naked_asm;
use core::ptr;

/// Entry of the signal handler. It clears AC, which the kernel leaves set: otherwise the first
/// misaligned access would fault again, endlessly.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn signal_entry() {
    naked_asm!(
        "push 0x202",
        "popfq",
        "sub rsp, 8",
        "call {handler}",
        "ud2",
        handler = sym report,
    )
}

/// The start of `siginfo_t` (Linux, `siginfo.h`).
#[repr(C)]
struct SignalInfo {
    signal: i32,
    errno: i32,
    code: i32,
    padding: i32,
    /// With SIGSYS, the address of the system call.
    address: u64,
    /// With SIGSYS, the number of the system call.
    number: i32,
}

/// The start of `struct ucontext` (Linux, `arch/x86/include/uapi/asm/sigcontext.h`).
#[repr(C)]
struct SignalContext {
    before: [u64; 5],
    general: [u64; 23],
}

/// Numbers of [`SignalContext::general`].
const RIP: usize = 16;
const ERROR: usize = 19;
const VECTOR: usize = 20;

/// Runs on the signal stack, after [`signal_entry`].
unsafe extern "C" fn report(signal: i32, info: *const SignalInfo, registers: *const SignalContext) -> ! {
    // SAFETY: the kernel passes both structures on the signal stack.
    let (code, address, rip, error, vector) = unsafe {
        let address = if signal == SIGSYS { (*info).number as u64 } else { (*info).address };
        let registers = &(*registers).general;
        ((*info).code, address, registers[RIP], registers[ERROR] as u32, registers[VECTOR] as u32)
    };
    // SAFETY: handlers are installed after the shared memory was mapped.
    unsafe {
        ending::report_failure(outcome::FAULT, |status| {
            ptr::addr_of_mut!((*status).answer.signal).write_volatile(signal);
            ptr::addr_of_mut!((*status).answer.code).write_volatile(code);
            ptr::addr_of_mut!((*status).answer.address).write_volatile(address);
            ptr::addr_of_mut!((*status).answer.rip).write_volatile(rip);
            ptr::addr_of_mut!((*status).answer.error).write_volatile(error);
            ptr::addr_of_mut!((*status).answer.vector).write_volatile(vector);
        })
    }
}
