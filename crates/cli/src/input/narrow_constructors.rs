//! Calls functions of 32-bit code in this process: constructors of libraries, and functions that
//! choose another one.
//!
//! Measured code never runs here. These functions run with the rights of this process, as
//! constructors do for the system's loader.
//!
//! The far call to 32-bit code lies below 4 GiB too: 32-bit code returns to an address of 32 bits.

use crate::output::Failure;
use cyclescope::asm::{CodeMode, parse_for_mode};
use cyclescope::executor::user::{NARROW_PAGE as PAGE, NarrowMemory, PageRights, find_narrow_segment};

/// Stack of these functions. The page above it has the code that calls them.
const STACK_BYTES: u64 = 256 << 10;
/// Where the part of that code begins that is 32-bit code.
const NARROW_CODE_AT: usize = PAGE as usize / 2;

/// A far pointer to 32-bit code.
#[repr(C)]
struct FarPointer {
    offset: u32,
    selector: u16,
}

/// The code around a far call of 32-bit code at the pointer in RDI, on the stack in RSI. That code
/// keeps R15 as a whole, and uses DS and ES, which are empty in 64-bit code.
const AROUND_CALL: [&str; 2] = [
    "push rbx; push rbp; push r12; push r13; push r14; push r15; mov r15, rsp; mov rsp, rsi; \
     mov ecx, ss; mov ds, ecx; mov es, ecx",
    "mov rsp, r15; cld; pop r15; pop r14; pop r13; pop r12; pop rbp; pop rbx; ret",
];
/// `call fword ptr [rdi]`
const FAR_CALL: [u8; 2] = [0xff, 0x1f];

/// The code of both modes that calls a function.
fn encode_call(function: u32) -> Vec<u8> {
    let assemble = |text: &str, mode| parse_for_mode(text, mode, None).expect("the text is right").bytes().to_vec();
    let [before, after] = AROUND_CALL.map(|text| assemble(text, CodeMode::Bits64));
    let mut code = [&before, &FAR_CALL[..], &after].concat();
    code.resize(NARROW_CODE_AT, 0xcc);
    code.extend(assemble(&format!("mov eax, {function}; call eax; retf"), CodeMode::Bits32));
    code
}

/// Calls a function without arguments and returns its result.
pub fn call_function(function: u32) -> Result<u32, Failure> {
    let selector = find_narrow_segment().map_err(Failure::from)?;
    let memory = NarrowMemory::reserve(STACK_BYTES + PAGE)?;
    let (code, top) = (encode_call(function), memory.start() + STACK_BYTES);
    memory.set_rights(memory.start(), STACK_BYTES + PAGE, PageRights::WRITE)?;
    // SAFETY: the page belongs to this call alone, and the code fits.
    unsafe { memory.write(top, &code) };
    memory.set_rights(top, PAGE, PageRights::EXECUTE)?;
    // SAFETY: the code is a function of this type that keeps what such a function keeps.
    unsafe {
        type FarCall = unsafe extern "C" fn(*const FarPointer, u64) -> u32;
        let far_call = std::mem::transmute::<*const u8, FarCall>(top as *const u8);
        let narrow = FarPointer { offset: top as u32 + NARROW_CODE_AT as u32, selector };
        // A far call and a call leave the stack as a call of the function finds it: 4 bytes below a
        // multiple of 16.
        Ok(far_call(&narrow, top - 8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_returns_its_result() {
        if let Err(error) = find_narrow_segment() {
            return cyclescope_skipped::report_skipped(error);
        }
        let memory = NarrowMemory::reserve(PAGE).expect("addresses");
        memory.set_rights(memory.start(), PAGE, PageRights { write: true, execute: true }).expect("memory");
        // mov eax, 0x12345678; ret
        let code = [0xb8, 0x78, 0x56, 0x34, 0x12, 0xc3];
        // SAFETY: the memory is writable, and belongs to this test.
        unsafe { memory.write(memory.start(), &code) };
        assert_eq!(call_function(memory.start() as u32).ok(), Some(0x1234_5678));
    }
}
