//! The worker's executable: its entry, and the functions that the compiler expects of every
//! program.
//!
//! It needs only the kernel: no C library, no dynamic linker, no allocator.

#![no_std]
#![no_main]

use core::arch::naked_asm;

/// Entry point of the process; the number of arguments lies at RSP.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn _start() -> ! {
    naked_asm!("mov rdi, rsp", "and rsp, -16", "xor ebp, ebp", "call {begin}", "ud2", begin = sym begin)
}

unsafe extern "C" fn begin(arguments: *const usize) -> ! {
    // SAFETY: the kernel, or the process's creator, has put the arguments there.
    unsafe { cyclescope_worker::serve::begin(arguments) }
}

/// Nothing in the worker panics.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: ends this process.
    unsafe { core::arch::asm!("ud2", options(noreturn)) }
}

/// Copies bytes; the compiler calls it by this name.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    naked_asm!("mov rax, rdi", "mov rcx, rdx", "rep movsb", "ret")
}

/// Sets bytes; the compiler calls it by this name.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8 {
    naked_asm!("mov r8, rdi", "mov eax, esi", "mov rcx, rdx", "rep stosb", "mov rax, r8", "ret")
}
