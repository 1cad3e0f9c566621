//! 32-bit code in 64-bit processes: the segment that it runs through, and addresses that it reaches.
//!
//! Linux keeps a segment of 32-bit code in every CPU's table (`__USER32_CS`, Linux,
//! `arch/x86/include/asm/segment.h`), also where 32-bit programs are disabled. Code that enters it by
//! a far call needs no help of the kernel. The LAR instruction reads the kind of the segment.

use super::regions::{MemoryMapping, WorkerRegions, call_error, reserve_addresses};
use crate::capabilities::MissingCapability;
use crate::draw_secret;
use cyclescope_code::asm::CodeMode;
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_core::random::Random;
use cyclescope_platform::{error_code, processor};
use cyclescope_worker::view::{IMAGE_AT, VIEW_BYTES};
use std::io;

/// Selector of Linux' segment for 32-bit code: entry 4 of the table, privilege level 3.
const NARROW_SEGMENT: u16 = 0x23;

/// What a segment must be, in the access rights that LAR reads (Intel SDM vol. 2, LAR; vol. 3A,
/// 3.4.5): present, privilege level 3, code, 32-bit, not 64-bit.
const RIGHTS_MASK: u32 = 1 << 22 | 1 << 21 | 1 << 15 | 3 << 13 | 1 << 12 | 1 << 11;
const RIGHTS: u32 = 1 << 22 | 1 << 15 | 3 << 13 | 1 << 12 | 1 << 11;

/// Addresses that 32-bit code reaches, without those of small programs.
const LOWEST: u64 = 0x0100_0000;
const HIGHEST: u64 = 0xf000_0000;
/// Alignment of reserved addresses: a huge page.
const STEP: u64 = 2 << 20;
/// Distance from the worker's executable, which is not mapped in this process.
const IMAGE_DISTANCE: u64 = 16 << 20;
/// Places tried before the addresses count as taken.
const TRIES: u32 = 256;

/// The selector for code of a mode; 0 for 64-bit code, which needs none.
///
/// # Errors
///
/// Fails if the system has no such segment.
pub(super) fn find_code_segment(mode: CodeMode) -> Result<u16, Unavailable> {
    if mode == CodeMode::Bits64 { Ok(0) } else { find_narrow_segment() }
}

/// The selector of the system's segment for 32-bit code.
///
/// # Errors
///
/// Fails if the system has none.
pub fn find_narrow_segment() -> Result<u16, Unavailable> {
    let missing = |lack: MissingCapability| Unavailable {
        what: "32-bit code".to_string(),
        why: lack.why.to_string(),
        remedy: lack.remedy.to_string(),
    };
    check_code_segment().map(|()| NARROW_SEGMENT).map_err(missing)
}

/// Whether the system has the segment of 32-bit code.
pub(super) fn check_code_segment() -> Result<(), MissingCapability> {
    if let Some((why, remedy)) = processor::explain_refused_narrow_code() {
        return Err(MissingCapability { why, remedy });
    }
    match read_access_rights(NARROW_SEGMENT) {
        Some(rights) if rights & RIGHTS_MASK == RIGHTS => Ok(()),
        _ => Err(MissingCapability {
            why: "this system's segment 0x23 is not one of 32-bit code",
            remedy: "leave --bits 32 out, or measure on Linux without paravirtualised segments",
        }),
    }
}

/// The access rights of a segment; `None` if this privilege level can't see it.
fn read_access_rights(selector: u16) -> Option<u32> {
    let (rights, seen): (u32, u8);
    // SAFETY: LAR reads a descriptor and changes only its destination and ZF.
    unsafe {
        std::arch::asm!(
            "lar {rights:e}, {selector:e}",
            "setz {seen}",
            rights = out(reg) rights,
            selector = in(reg) u32::from(selector),
            seen = out(reg_byte) seen,
            options(nomem, nostack),
        );
    }
    (seen != 0).then_some(rights)
}

/// Reserves addresses that code of a mode reaches. Those of 32-bit code are drawn at random.
pub(super) fn reserve_reachable(mode: CodeMode, bytes: usize) -> io::Result<MemoryMapping> {
    if mode == CodeMode::Bits64 {
        return reserve_addresses(None, bytes);
    }
    let mut random = Random::new(draw_secret().map_err(|_| io::Error::from_raw_os_error(error_code::EIO))?);
    let places = (HIGHEST - LOWEST).saturating_sub(bytes as u64) / STEP;
    for _ in 0..TRIES {
        let at = LOWEST + STEP * random.below(places.max(1) as usize) as u64;
        let is_near_image = at < IMAGE_AT + IMAGE_DISTANCE && IMAGE_AT < at + bytes as u64 + IMAGE_DISTANCE;
        if is_near_image || at + bytes as u64 > HIGHEST {
            continue;
        }
        match reserve_addresses(Some(at), bytes) {
            Err(error) if error.raw_os_error() == Some(error_code::EEXIST) => {}
            reserved => return reserved,
        }
    }
    Err(io::Error::from_raw_os_error(error_code::ENOMEM))
}

/// Reserves addresses that 32-bit code reaches, in this process and in its copies, for good. Nothing
/// is accessible there yet.
pub fn reserve_narrow_addresses(bytes: usize) -> Result<u64, RunError> {
    let reserved = reserve_reachable(CodeMode::Bits32, bytes);
    let reserved = reserved.map_err(call_error("reserving addresses for 32-bit code", "mmap"))?;
    let start = reserved.start();
    std::mem::forget(reserved);
    Ok(start)
}

/// Makes the memory of workers that run code of a mode.
pub(super) fn create_regions(mode: CodeMode) -> Result<WorkerRegions, RunError> {
    let reserved = reserve_reachable(mode, VIEW_BYTES);
    WorkerRegions::new(reserved.map_err(call_error("reserving addresses for the worker", "mmap"))?)
}

/// Fails if code of a mode does not reach the end of an area at a fixed address.
pub(super) fn require_reachable(mode: CodeMode, end: u64) -> Result<(), RunError> {
    if mode == CodeMode::Bits64 || end <= 1 << 32 {
        return Ok(());
    }
    Err(RunError::Unavailable(Unavailable {
        what: "a memory area at this address".to_string(),
        why: format!("32-bit code reaches 4 GiB, and the area ends at {end:#x}"),
        remedy: "choose an address below 0x100000000".to_string(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_addresses_are_reachable() {
        for _ in 0..20 {
            let reserved = reserve_reachable(CodeMode::Bits32, 64 << 20).unwrap();
            assert!(reserved.start() + (64 << 20) <= 1 << 32);
        }
        assert!(require_reachable(CodeMode::Bits32, 1 << 33).is_err());
        assert!(require_reachable(CodeMode::Bits64, 1 << 33).is_ok());
    }
}
