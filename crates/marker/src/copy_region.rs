//! Copies of compiled functions at chosen addresses, with dormant or enabled markers.
//!
//! Each compiled function has a dormant copy at each placement. If enabling patches the code, it
//! also has an enabled copy. A copy differs from the compiler's bytes only in two respects:
//! displacements to targets outside the function, and patches.

use super::compiled_design::{CompiledFunction, PatchSite};
use super::source::design::Enabling;
use cyclescope_code::asm::CodeMode;
use cyclescope_core::error::{RunError, Unavailable};
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use std::fmt;
use std::os::fd::OwnedFd;

/// The NOPs that static keys begin as (Linux: arch/x86/include/asm/nops.h); also Intel SDM vol. 2,
/// NOP.
const NOP_2: [u8; 2] = [0x66, 0x90];
/// Five-byte variant of [`NOP_2`].
const NOP_5: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];
/// The compiler's filler for a NOP of five bytes at a function's entry.
const ENTRY_NOPS: [u8; 5] = [0x90; 5];
/// The immediates of a dormant and an enabled marker.
const IMMEDIATES: [u8; 2] = [0, 1];
/// The opcodes of a call and of jumps (Intel SDM vol. 2, CALL and JMP).
const CALL_REL32: u8 = 0xe8;
const JMP_REL32: u8 = 0xe9;
const JMP_REL8: u8 = 0xeb;

/// The reason that a copy is impossible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyMisfit {
    /// The target of a jump is out of its reach.
    TooFar {
        /// Length of the jump.
        bytes: usize,
        /// Distance from the end of the jump.
        distance: i64,
    },
    /// A place to patch contains unexpected bytes.
    Unexpected {
        /// Offset of the place in the function.
        place: usize,
    },
    /// No tracer is available for it.
    Untraced {
        /// The reason.
        why: Unavailable,
    },
    /// The function contains a reference that cannot be relocated.
    Immovable {
        /// The instruction.
        instruction: String,
    },
}

impl fmt::Display for CopyMisfit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CopyMisfit::TooFar { bytes, distance } => {
                write!(out, "a jump of {bytes} bytes does not reach the enabled path, {distance} bytes away")
            }
            CopyMisfit::Unexpected { place } => {
                write!(out, "at +{place:#x} the compiler's code is not what patching expects")
            }
            CopyMisfit::Untraced { why } => write!(out, "{}: {}", why.what, why.why),
            CopyMisfit::Immovable { instruction } => write!(out, "`{instruction}` can't be relocated"),
        }
    }
}

/// Relocates a function's bytes to another address.
pub(crate) fn copy_bytes(
    code: &CompiledFunction,
    at: u64,
    enabling: Enabling,
    enabled: bool,
) -> Result<Vec<u8>, CopyMisfit> {
    let mut bytes = relocate_bytes(code, at)?;
    for site in &code.sites {
        patch_site(code, site, &mut bytes, at, enabling, enabled)?;
    }
    Ok(bytes)
}

fn relocate_bytes(code: &CompiledFunction, at: u64) -> Result<Vec<u8>, CopyMisfit> {
    let mut bytes = code.bytes.to_vec();
    let inside = code.start..code.start + bytes.len() as u64;
    let mut decoder = Decoder::with_ip(code.mode.bits(), code.bytes, code.start, DecoderOptions::NONE);
    while decoder.can_decode() {
        let start = decoder.position();
        let instruction = decoder.decode();
        let constants = decoder.get_constant_offsets(&instruction);
        let near = matches!(
            instruction.flow_control(),
            FlowControl::Call | FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
        );
        let immovable = || CopyMisfit::Immovable { instruction: instruction.to_string() };
        let (target, field, size) = if instruction.is_ip_rel_memory_operand() {
            let target = instruction.ip_rel_memory_address();
            (target, constants.displacement_offset(), constants.displacement_size())
        } else if near {
            (instruction.near_branch_target(), constants.immediate_offset(), constants.immediate_size())
        } else if instruction.flow_control() == FlowControl::IndirectBranch {
            // A jump table, which would lead back to the original function.
            return Err(immovable());
        } else {
            continue;
        };
        if inside.contains(&target) {
            continue;
        }
        if size != 4 {
            return Err(immovable());
        }
        let field: &mut [u8; 4] = (&mut bytes[start + field..][..4]).try_into().expect("a slice of four bytes");
        let distance = i64::from(i32::from_le_bytes(*field)) + code.start.wrapping_sub(at) as i64;
        // In 32-bit code distances wrap around.
        let distance = match code.mode {
            CodeMode::Bits64 => i32::try_from(distance).map_err(|_| immovable())?,
            CodeMode::Bits32 => distance as i32,
        };
        *field = distance.to_le_bytes();
    }
    Ok(bytes)
}

fn patch_site(
    code: &CompiledFunction,
    site: &PatchSite,
    bytes: &mut [u8],
    at: u64,
    enabling: Enabling,
    enabled: bool,
) -> Result<(), CopyMisfit> {
    let inside = code.start..code.start + bytes.len() as u64;
    let target = if inside.contains(&site.target) { site.target - code.start + at } else { site.target };
    let unexpected = Err(CopyMisfit::Unexpected { place: site.place });
    let distance = |length: usize| target.wrapping_sub(at + (site.place + length) as u64) as i64;
    let place = &mut bytes[site.place..];
    let branch = |opcode: u8, place: &mut [u8]| {
        let distance = distance(5);
        let short = i32::try_from(distance).map_err(|_| CopyMisfit::TooFar { bytes: 5, distance })?;
        place[0] = opcode;
        place[1..5].copy_from_slice(&short.to_le_bytes());
        Ok(())
    };
    match enabling {
        Enabling::Immediate if place[0] == IMMEDIATES[0] => {
            place[0] = IMMEDIATES[usize::from(enabled)];
            Ok(())
        }
        Enabling::Jump if place.starts_with(&NOP_2) => {
            if enabled {
                let distance = distance(2);
                let short = i8::try_from(distance).map_err(|_| CopyMisfit::TooFar { bytes: 2, distance })?;
                place[..2].copy_from_slice(&[JMP_REL8, short as u8]);
            }
            Ok(())
        }
        Enabling::Jump if place.starts_with(&NOP_5) => {
            if enabled {
                branch(JMP_REL32, place)
            } else {
                Ok(())
            }
        }
        Enabling::Entry if place.starts_with(&ENTRY_NOPS) => {
            place[..5].copy_from_slice(&NOP_5);
            if enabled { branch(CALL_REL32, place) } else { Ok(()) }
        }
        Enabling::Tracer => Ok(()),
        _ => unexpected,
    }
}

/// Memory for copies, within reach of the original functions. It is never mapped for writing, and
/// stays mapped until the process ends.
#[derive(Debug)]
pub(crate) struct CopyRegion {
    /// The mapped file: a tracer identifies code by its file.
    file: OwnedFd,
    start: u64,
    bytes: usize,
    used: usize,
}

/// Distance between candidate addresses, and number of candidates on each side. All lie within the
/// 2 GiB that displacements reach.
const SEARCH_STRIDE: u64 = 4 << 20;
const SEARCH_TRIES: u64 = 400;
/// The end of the addresses that 32-bit code reaches.
const NARROW_END: u64 = 1 << 32;
const PAGE: usize = 4096;
const CACHE_LINE: usize = 64;

impl CopyRegion {
    /// Maps `bytes` bytes near an address, below 4 GiB if the address is.
    pub(crate) fn map_near(address: u64, bytes: usize) -> Result<CopyRegion, RunError> {
        let bytes = bytes.next_multiple_of(PAGE);
        let failed = |errno: Errno| RunError::System {
            doing: "mapping memory for copies of markers",
            errno: errno.raw_os_error(),
        };
        // Kernels before 6.3 neither know nor need the flag.
        let file = memfd_create("cyclescope-markers", MemfdFlags::CLOEXEC | MemfdFlags::EXEC)
            .or_else(|_| memfd_create("cyclescope-markers", MemfdFlags::CLOEXEC))
            .map_err(failed)?;
        rustix::fs::ftruncate(&file, bytes as u64).map_err(failed)?;
        let page = address & !(PAGE as u64 - 1);
        let above = (1..SEARCH_TRIES).map(|step| page + step * SEARCH_STRIDE);
        let below = (1..SEARCH_TRIES).filter_map(|step| page.checked_sub(step * SEARCH_STRIDE + bytes as u64));
        let reached = if address < NARROW_END { NARROW_END } else { u64::MAX };
        let in_reach = |start: &u64| *start <= reached - bytes as u64;
        let start = above.chain(below).filter(in_reach).find(|start| map_at(*start, bytes, &file));
        let crowded = || {
            let why = format!("no free range of {bytes} bytes near address {address:#x}");
            RunError::from_harness("mapping memory for copies of markers", why, "")
        };
        Ok(CopyRegion { file, start: start.ok_or_else(crowded)?, bytes, used: 0 })
    }

    /// The address for a function `offset` bytes after the start of a cache line.
    pub(crate) fn next_address(&self, offset: usize) -> u64 {
        self.start + (self.used.next_multiple_of(CACHE_LINE) + offset) as u64
    }

    /// Writes a function's bytes to the address from [`CopyRegion::next_address`].
    ///
    /// # Panics
    ///
    /// If the region is full.
    pub(crate) fn write_copy(&mut self, at: u64, bytes: &[u8]) -> Result<(), RunError> {
        let offset = (at - self.start) as usize;
        assert!(self.used <= offset && offset + bytes.len() <= self.bytes, "the region has room");
        self.used = offset + bytes.len();
        let doing = "writing copies of markers";
        match rustix::io::pwrite(&self.file, bytes, offset as u64) {
            Ok(written) if written == bytes.len() => Ok(()),
            Ok(_) => Err(RunError::from_harness(doing, "their file accepted only a part", "")),
            Err(errno) => Err(RunError::System { doing, errno: errno.raw_os_error() }),
        }
    }

    /// The mapped file, and the address's offset in it; `None` if the address is not in this
    /// region.
    pub(crate) fn locate_in_file(&self, address: u64) -> Option<(&OwnedFd, u64)> {
        let inside = (self.start..self.start + self.bytes as u64).contains(&address);
        inside.then(|| (&self.file, address - self.start))
    }
}

fn map_at(start: u64, bytes: usize, file: &OwnedFd) -> bool {
    let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE;
    let address_hint = start as *mut std::ffi::c_void;
    // SAFETY: replaces no mapping.
    let mapped = unsafe { rustix::mm::mmap(address_hint, bytes, ProtFlags::READ | ProtFlags::EXEC, flags, file, 0) };
    match mapped {
        Ok(at) if at == address_hint => true,
        Ok(at) => {
            // Kernels before 4.17 treat the address as a hint. SAFETY: the mapping was made just
            // now.
            let _ = unsafe { rustix::mm::munmap(at, bytes) };
            false
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled_design::CompiledDesign;
    use iced_x86::Instruction;

    fn all() -> impl Iterator<Item = (Enabling, CompiledFunction)> {
        CompiledDesign::list_built().into_iter().flat_map(|compiled| {
            let enabling = compiled.design.enabling;
            compiled.codes.into_iter().map(move |code| (enabling, code))
        })
    }

    fn decoded(bytes: &[u8], at: u64) -> Vec<Instruction> {
        Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).into_iter().collect()
    }

    /// The target of an instruction: its offset if inside the function, otherwise an address.
    fn target(instruction: &Instruction, at: u64, len: usize) -> Option<(bool, u64)> {
        let target = match instruction.flow_control() {
            _ if instruction.is_ip_rel_memory_operand() => instruction.ip_rel_memory_address(),
            FlowControl::Call | FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                instruction.near_branch_target()
            }
            _ => return None,
        };
        let inside = (at..at + len as u64).contains(&target);
        Some((inside, if inside { target - at } else { target }))
    }

    #[test]
    fn copies_keep_the_targets_of_the_compilers_code() {
        for (enabling, code) in all() {
            for at in [code.start + 0x1_2344, code.start - 0x4_0000, code.start + (1 << 30)] {
                let bytes = relocate_bytes(&code, at).unwrap();
                let (old, new) = (decoded(code.bytes, code.start), decoded(&bytes, at));
                assert_eq!(old.len(), new.len(), "{enabling:?}");
                for (old, new) in old.iter().zip(&new) {
                    assert!(!old.is_invalid() && old.code() == new.code() && old.len() == new.len());
                    let len = bytes.len();
                    assert_eq!(target(old, code.start, len), target(new, at, len), "{old} {new}");
                }
            }
        }
    }

    #[test]
    fn patching_replaces_the_compilers_instruction_at_the_site() {
        for (enabling, code) in all() {
            let at = code.start + 0x10_0000;
            let [dormant, enabled] = [false, true].map(|enabled| copy_bytes(&code, at, enabling, enabled).unwrap());
            let differ: Vec<usize> = (0..dormant.len()).filter(|at| dormant[*at] != enabled[*at]).collect();
            let tracer = enabling == Enabling::Tracer;
            let Some(site) = code.sites.first().filter(|_| !tracer) else {
                assert!(differ.is_empty(), "{enabling:?}");
                continue;
            };
            let find = |bytes: &[u8]| {
                let mut instructions = decoded(bytes, at).into_iter();
                instructions.rfind(|instruction| instruction.ip() <= at + site.place as u64).unwrap()
            };
            let (before, after) = (find(&dormant), find(&enabled));
            let end = (before.ip() - at) as usize + before.len();
            assert!(differ.iter().all(|at| (site.place..end).contains(at)), "{before} {after} {differ:?}");
            match enabling {
                Enabling::Immediate => {
                    assert_eq!(before.ip() + 1, at + site.place as u64);
                    assert_eq!((before.immediate(1), after.immediate(1)), (0, 1));
                }
                Enabling::Jump | Enabling::Entry => {
                    assert_eq!(before.ip(), at + site.place as u64);
                    assert!(before.to_string().contains("nop") || before.len() == 2, "{before}");
                    assert_eq!(before.len(), after.len());
                    let shift = if (code.start..code.start + code.bytes.len() as u64).contains(&site.target) {
                        at - code.start
                    } else {
                        0
                    };
                    assert_eq!(after.near_branch_target(), site.target + shift);
                }
                _ => unreachable!("no other design is patched"),
            }
        }
    }

    /// Other targets would also run without an error, so the enabled path must be checked.
    #[test]
    fn jumps_lead_to_otherwise_unreachable_code() {
        for (_, code) in all().filter(|(enabling, code)| *enabling == Enabling::Jump && !code.sites.is_empty()) {
            let instructions = decoded(code.bytes, code.start);
            let at = instructions.iter().position(|one| one.ip() == code.sites[0].target).expect("a start");
            let aligns = |one: &&Instruction| {
                let nop = one.to_string().contains("nop") || one.to_string() == "xchg ax,ax";
                nop && one.ip() != code.start + code.sites[0].place as u64
            };
            let before = instructions[..at].iter().rfind(|one| !aligns(one)).unwrap();
            let ends = matches!(before.flow_control(), FlowControl::Return | FlowControl::UnconditionalBranch);
            assert!(ends, "{before} before {}", instructions[at]);
        }
    }

    #[test]
    fn a_jump_table_is_rejected() {
        let (_, code) = all().next().unwrap();
        // jmp rax
        let table = CompiledFunction { bytes: &[0xff, 0xe0], sites: Vec::new(), ..code };
        assert!(matches!(relocate_bytes(&table, table.start + 64), Err(CopyMisfit::Immovable { .. })));
    }

    #[test]
    fn a_jump_out_of_reach_is_rejected() {
        let (enabling, code) = all()
            .find(|(_, code)| code.bytes[code.sites.first().map_or(0, |site| site.place)..].starts_with(&NOP_2))
            .unwrap();
        let far = CompiledFunction {
            sites: vec![PatchSite { target: code.start + 0x1000, ..code.sites[0] }],
            ..code.clone()
        };
        assert!(matches!(copy_bytes(&far, code.start, enabling, true), Err(CopyMisfit::TooFar { bytes: 2, .. })));
        assert!(copy_bytes(&far, code.start, enabling, false).is_ok());
        let wrong = CompiledFunction { sites: vec![PatchSite { place: 0, ..code.sites[0] }], ..code };
        assert_eq!(copy_bytes(&wrong, wrong.start, enabling, true), Err(CopyMisfit::Unexpected { place: 0 }));
    }
}
