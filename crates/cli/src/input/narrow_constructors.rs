//! Calls functions of 32-bit code in this process: constructors of libraries, and functions that
//! choose another one.
//!
//! Measured code never runs here. These functions run with the rights of this process, as
//! constructors do for the system's loader.

use crate::output::Failure;
use cyclescope::executor::user::{find_narrow_segment, reserve_narrow_addresses};

/// Stack of these functions.
const STACK_BYTES: usize = 256 << 10;
/// Bytes at the top of the stack for the code that calls the function.
const CODE_BYTES: usize = 4096;

/// A far pointer to 32-bit code.
#[repr(C)]
struct FarPointer {
    offset: u32,
    selector: u16,
}

/// Calls a function without arguments and returns its result.
pub fn call_function(function: u32) -> Result<u32, Failure> {
    let selector = find_narrow_segment().map_err(Failure::from)?;
    let bytes = STACK_BYTES + CODE_BYTES;
    let start = reserve_narrow_addresses(bytes)?;
    // `mov eax, function; call eax; retf`
    let code = [&[0xb8][..], &function.to_le_bytes(), &[0xff, 0xd0, 0xcb]].concat();
    let top = start + STACK_BYTES as u64;
    let failed = || Failure::from_system("mapping memory failed", &std::io::Error::last_os_error());
    // SAFETY: the addresses are reserved for this call alone, which gives them back. The code returns
    // by a far return to where it was called from, and keeps what a function of 64-bit code keeps.
    unsafe {
        let (pages, write) = (start as *mut libc::c_void, libc::PROT_READ | libc::PROT_WRITE);
        if libc::mprotect(pages, bytes, write) != 0 {
            return Err(failed());
        }
        (top as *mut u8).copy_from_nonoverlapping(code.as_ptr(), code.len());
        if libc::mprotect(top as *mut libc::c_void, CODE_BYTES, libc::PROT_READ | libc::PROT_EXEC) != 0 {
            return Err(failed());
        }
        // At a far call, the stack of the function begins a return address below 16 bytes.
        let result = call_on_stack(&FarPointer { offset: top as u32, selector }, top - 8);
        libc::munmap(pages, bytes);
        Ok(result)
    }
}

/// Calls 32-bit code on another stack below 4 GiB. It keeps none of R8 to R15's halves, but R15 as a
/// whole; DS and ES are empty in 64-bit code.
#[unsafe(naked)]
unsafe extern "C" fn call_on_stack(far: *const FarPointer, stack: u64) -> u32 {
    core::arch::naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov r15, rsp",
        "mov rsp, rsi",
        "mov eax, ss",
        "mov ds, eax",
        "mov es, eax",
        // call fword ptr [rdi]
        ".byte 0xff, 0x1f",
        "mov rsp, r15",
        "cld",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
    )
}
