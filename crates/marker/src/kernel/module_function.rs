//! The module's functions for the anatomy: their dormant bytes, and the places that change.

use super::super::anatomy::FunctionCode;
use super::super::compiled_design::PatchSite;
use cyclescope_code::asm::CodeMode;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

/// A function of the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModuleFunction {
    pub address: u64,
    pub dormant: Vec<u8>,
    pub sites: Vec<PatchSite>,
}

impl ModuleFunction {
    /// A function from its dormant and its enabled bytes.
    pub(crate) fn new(address: u64, dormant: Vec<u8>, enabled: &[u8]) -> ModuleFunction {
        let sites = find_sites(address, &dormant, enabled);
        ModuleFunction { address, dormant, sites }
    }

    pub(crate) fn to_function_code(&self) -> FunctionCode<'_> {
        FunctionCode {
            mode: CodeMode::default(),
            start: self.address,
            bytes: &self.dormant,
            entry: 0,
            sites: &self.sites,
        }
    }
}

/// The places that enabling patches: NOPs that become jumps, with their targets, and constants,
/// which are their own targets. Other changes enable nothing: a tracepoint's call leads to its only
/// listener.
fn find_sites(address: u64, dormant: &[u8], enabled: &[u8]) -> Vec<PatchSite> {
    let mut found = Vec::new();
    for before in Decoder::with_ip(64, dormant, address, DecoderOptions::NONE).iter() {
        let start = (before.ip() - address) as usize;
        let range = start..start + before.len();
        if enabled.get(range.clone()).is_none_or(|bytes| *bytes == dormant[range.clone()]) {
            continue;
        }
        let after = Decoder::with_ip(64, &enabled[start..], before.ip(), DecoderOptions::NONE).decode();
        let place = (start..range.end).find(|place| dormant[*place] != enabled[*place]).unwrap_or(start);
        if before.mnemonic() == Mnemonic::Nop && after.mnemonic() == Mnemonic::Jmp {
            found.push(PatchSite { place: start, target: after.near_branch_target() });
        } else if is_constant(&before) && is_constant(&after) {
            found.push(PatchSite { place, target: address + place as u64 });
        }
    }
    found
}

fn is_constant(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Mov && instruction.op1_kind() == OpKind::Immediate8
}

/// The compiler of the kernel and its modules, from `/proc/version`:
/// `Linux version 6.1.0 (who@where) (gcc-12 (Debian 12.2.0-14) 12.2.0, GNU ld (GNU Binutils) 2.40) #1 SMP ...`.
pub(super) fn parse_compiler(version: &str) -> Option<String> {
    let mut depth = 0;
    let mut groups: Vec<String> = Vec::new();
    for character in version.chars() {
        if character == ')' {
            depth -= 1;
        }
        if depth > 0 {
            groups.last_mut()?.push(character);
        }
        if character == '(' {
            depth += 1;
            if depth == 1 {
                groups.push(String::new());
            }
        }
        if depth < 0 {
            return None;
        }
    }
    let compiler = groups.get(1)?;
    let end = compiler.find(", GNU ld").or_else(|| compiler.find(", LLD")).unwrap_or(compiler.len());
    Some(compiler[..end].trim().to_string()).filter(|compiler| !compiler.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::asm;

    const AT: u64 = 0xffff_ffff_c000_1000;

    fn assembled(text: &str) -> Vec<u8> {
        asm::parse_assembly(text).unwrap().bytes().to_vec()
    }

    #[test]
    fn a_nop_that_becomes_a_jump_is_a_site_with_its_target() {
        let dormant = assembled("top: nop dword ptr [rax+rax+1]; dec edi; jne top; ret; on: jmp top");
        let mut enabled = dormant.clone();
        enabled[..5].copy_from_slice(&[0xe9, 5, 0, 0, 0]);
        assert_eq!(find_sites(AT, &dormant, &enabled), [PatchSite { place: 0, target: AT + 10 }]);
        let short = assembled("xchg ax, ax; dec edi; ret");
        let mut enabled = short.clone();
        enabled[..2].copy_from_slice(&[0xeb, 2]);
        assert_eq!(find_sites(AT, &short, &enabled), [PatchSite { place: 0, target: AT + 4 }]);
    }

    #[test]
    fn a_changed_constant_is_a_site_and_a_changed_call_target_is_not() {
        let text = |value, to| format!("push rbx; mov al, {value}; test al, al; call {to}; ret; one: ret; two: ret");
        let (dormant, enabled) = (assembled(&text(0, "one")), assembled(&text(1, "two")));
        assert_eq!(find_sites(AT, &dormant, &enabled), [PatchSite { place: 2, target: AT + 2 }]);
        assert_eq!(find_sites(AT, &dormant, &dormant), []);
    }

    #[test]
    fn the_kernels_compiler_is_parsed() {
        let debian = "Linux version 6.1.0-56-amd64 (debian-kernel@lists.debian.org) (gcc-12 (Debian \
                      12.2.0-14+deb12u1) 12.2.0, GNU ld (GNU Binutils for Debian) 2.40) #1 SMP Debian 6.1.192-2";
        assert_eq!(parse_compiler(debian).as_deref(), Some("gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0"));
        let clang = "Linux version 6.6.1 (me@here) (clang version 17.0.6, LLD 17.0.6) #1 SMP";
        assert_eq!(parse_compiler(clang).as_deref(), Some("clang version 17.0.6"));
        for strange in ["", "Linux version 6.1", "Linux (a) b", "a) (b) (c)"] {
            assert_eq!(parse_compiler(strange), None, "{strange}");
        }
    }
}
