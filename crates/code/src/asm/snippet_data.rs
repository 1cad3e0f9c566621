//! Constants and variables of a snippet: their bytes, and the code that reaches them.
//!
//! Code is assembled as if its data began at [`DATA_BASE`]. [`SnippetData::place`] then turns
//! each address of data into a displacement from a register that the code does not use:
//! `[rip+x]` becomes `[rbp+x]`, `[x+rcx*4]` becomes `[rbp+rcx*4+x]`. Lengths do not change, so labels
//! and branches stay. Init code points the register into the memory around RBP and writes the data
//! there.
//!
//! Limits: an address of data with a base register, or as an immediate, is refused.

use super::CodeMode;
use super::lexer::TextPosition;
use super::listing::Listing;
use cyclescope_core::error::BadSnippet;
use iced_x86::{ConstantOffsets, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Register};
use std::collections::BTreeMap;

/// Address of the data while code is assembled. No snippet reaches this far.
pub const DATA_BASE: u64 = 0x4000_0000;
/// Distance from [`DATA_BASE`] within which an address means data: `[table-8+rcx*8]`.
const NEAR_DATA: u64 = 1 << 24;
/// Most bytes of data: its init code has 10 bytes for each 4.
pub const DATA_BYTES_MOST: usize = 16 << 10;
/// Largest alignment.
pub const ALIGNMENT_MOST: u64 = 4096;
/// Smallest alignment of the whole data: a cache line.
const LINE_BYTES: u64 = 64;
/// Distance of the data from the pointer in RBP. A multiple of the page size keeps the stagger of
/// the areas.
const DISTANCE_FROM_POINTER: i32 = 16 << 10;
/// Registers that may hold the address of the data: those whose number is encoded without a prefix
/// and without a SIB byte.
const BASE_REGISTERS: [Register; 7] =
    [Register::RBP, Register::RBX, Register::RSI, Register::RDI, Register::RDX, Register::RCX, Register::RAX];

/// Constants and variables of a snippet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnippetData {
    /// The mode of the code that uses it.
    pub mode: CodeMode,
    /// Initial bytes.
    pub bytes: Vec<u8>,
    /// Alignment of the first byte: a power of two.
    pub alignment: u64,
    /// Places of pointers to data, as long as addresses, with the offsets that they point to.
    pub pointers: Vec<(usize, i64)>,
    /// Offsets of the labels.
    pub labels: BTreeMap<String, usize>,
}

impl SnippetData {
    /// Address of a label while code is assembled.
    pub(super) fn find_address(&self, label: &str) -> Option<u64> {
        self.labels.get(label).map(|offset| DATA_BASE + *offset as u64)
    }

    /// Number of instructions of some code that use an address of data.
    pub fn count_uses(&self, code: &[u8]) -> usize {
        Decoder::new(self.mode.bits(), code, DecoderOptions::NONE)
            .iter()
            .filter(|one| find_target(one).is_some())
            .count()
    }

    /// Gives codes that run in one program a register with the address of the data, if one of them
    /// uses data. Returns the init code, which is empty otherwise.
    ///
    /// # Errors
    ///
    /// Fails if no register is free, or if an operand has no room for it.
    pub fn place(&self, codes: &mut [&mut Listing]) -> Result<Vec<u8>, BadSnippet> {
        let bytes: Vec<&[u8]> = codes.iter().map(|code| code.bytes()).collect();
        if bytes.iter().all(|code| self.count_uses(code) == 0) {
            return Ok(Vec::new());
        }
        let Some(register) = self.choose_register(&bytes) else {
            let what = "the code uses each register that could hold the address of its data";
            let names = BASE_REGISTERS.map(|register| format!("{:?}", self.mode.general_register(register.number())));
            let remedy = format!("leave one of {} to the data", names.join(", "));
            return Err(TextPosition { line: 1, column: 1 }.error_expecting(what, remedy));
        };
        for code in codes {
            **code = self.redirect_code(code, register)?;
        }
        Ok(self.init_code(register))
    }

    /// The register to hold the address of the data: one that none of these codes uses.
    fn choose_register(&self, codes: &[&[u8]]) -> Option<Register> {
        let mut factory = InstructionInfoFactory::new();
        let mut used = Vec::new();
        for code in codes {
            for instruction in Decoder::new(self.mode.bits(), code, DecoderOptions::NONE) {
                let registers = factory.info(&instruction).used_registers();
                used.extend(registers.iter().map(|used| used.register().full_register()));
            }
        }
        BASE_REGISTERS.into_iter().find(|register| !used.contains(register))
    }

    /// ```text
    /// lea reg, [rbp+16384]
    /// and reg, -alignment
    /// mov dword ptr [reg+x], bytes   ; every 4 bytes
    /// mov [reg+x], reg               ; every pointer
    /// add qword ptr [reg+x], offset
    /// ```
    ///
    /// In 32-bit code the same without REX prefixes.
    fn init_code(&self, register: Register) -> Vec<u8> {
        let wide: &[u8] = if self.mode == CodeMode::Bits64 { &[0x48] } else { &[] };
        let number = register.number() as u8;
        let mut code = [wide, &[0x8d, 0x85 | number << 3]].concat();
        code.extend(DISTANCE_FROM_POINTER.to_le_bytes());
        code.extend(wide);
        code.extend([0x81, 0xe0 | number]);
        code.extend((-(self.alignment.max(LINE_BYTES) as i32)).to_le_bytes());
        for (index, word) in self.bytes.chunks(4).enumerate() {
            let mut whole = [0; 4];
            whole[..word.len()].copy_from_slice(word);
            code.extend([0xc7, 0x80 | number]);
            code.extend((4 * index as u32).to_le_bytes());
            code.extend(whole);
        }
        for (offset, target) in &self.pointers {
            let place = (*offset as u32).to_le_bytes();
            code.extend(wide);
            code.extend([0x89, 0x80 | number << 3 | number]);
            code.extend(place);
            code.extend(wide);
            code.extend([0x81, 0x80 | number]);
            code.extend(place);
            code.extend((*target as i32).to_le_bytes());
        }
        code
    }

    /// Turns each address of data into a displacement from this register.
    ///
    /// # Errors
    ///
    /// Fails if an operand has no room for the register.
    fn redirect_code(&self, listing: &Listing, register: Register) -> Result<Listing, BadSnippet> {
        let mut bytes = listing.bytes().to_vec();
        for (index, instruction) in listing.instructions().iter().enumerate() {
            let Some(target) = find_target(instruction) else { continue };
            let start = instruction.ip() as usize;
            let code = &mut bytes[start..start + instruction.len()];
            let bits = self.mode.bits();
            let mut decoder = Decoder::with_ip(bits, code, instruction.ip(), DecoderOptions::NONE);
            let offsets = {
                let decoded = decoder.decode();
                decoder.get_constant_offsets(&decoded)
            };
            let displacement = target.wrapping_sub(DATA_BASE) as i64 as i32;
            replace_base(instruction, &offsets, code, register, displacement);
            let changed = Decoder::with_ip(bits, code, instruction.ip(), DecoderOptions::NONE).decode();
            let expected = self.mode.truncate(displacement.into());
            let base = self.mode.general_register(register.number());
            if changed.memory_base() != base || changed.memory_displacement64() != expected {
                let at = listing.position(index).unwrap_or(TextPosition { line: 1, column: 1 });
                let remedy = "load the address into a register, as in lea eax, [x], or lea rax, [rip+x] in 64-bit code";
                return Err(at.error_expecting("this address of data has no room for a base register", remedy));
            }
        }
        Ok(listing.replace_bytes(bytes))
    }
}

/// The address of data that an instruction's memory operand has, if any.
fn find_target(instruction: &Instruction) -> Option<u64> {
    let address_bytes = CodeMode::from_instruction(instruction).bits() / 8;
    let is_absolute = instruction.memory_base() == Register::None && instruction.memory_displ_size() == address_bytes;
    let has_memory =
        (0..instruction.op_count()).any(|operand| matches!(instruction.op_kind(operand), iced_x86::OpKind::Memory));
    if !has_memory || !(is_absolute || instruction.is_ip_rel_memory_operand()) {
        return None;
    }
    let target = instruction.memory_displacement64();
    (DATA_BASE - NEAR_DATA..DATA_BASE + NEAR_DATA).contains(&target).then_some(target)
}

/// Writes a base register and a displacement into an operand that has 32 bits for an address and no
/// base: Intel SDM vol. 2A, tables 2-2 and 2-3.
fn replace_base(
    instruction: &Instruction,
    offsets: &ConstantOffsets,
    code: &mut [u8],
    register: Register,
    displacement: i32,
) {
    let at = offsets.displacement_offset();
    if offsets.displacement_size() != 4 || at < 2 {
        return;
    }
    let number = register.number() as u8;
    // Mode 0 becomes mode 2, a base with 32 bits of displacement. The base, 5 for none, is in the
    // byte before the displacement: ModRM, or SIB behind it.
    let is_narrow = CodeMode::from_instruction(instruction) == CodeMode::Bits32;
    let has_sib = match is_narrow {
        true => instruction.memory_index() != Register::None,
        false => !instruction.is_ip_rel_memory_operand(),
    };
    let mode = if has_sib { at - 2 } else { at - 1 };
    code[mode] |= 0x80;
    code[at - 1] = code[at - 1] & !7 | number;
    code[at..at + 4].copy_from_slice(&displacement.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::{format_instruction, parse_with_data};

    fn redirect(text: &str) -> Vec<String> {
        let labels = [("x".to_string(), 0), ("y".to_string(), 16)].into();
        let data = SnippetData { bytes: vec![1; 32], alignment: 16, labels, ..SnippetData::default() };
        let listing = parse_with_data(text, None, &data).expect("assembly");
        let register = data.choose_register(&[listing.bytes()]).expect("a free register");
        let placed = data.redirect_code(&listing, register).expect("room for a base");
        assert_eq!(placed.bytes().len(), listing.bytes().len());
        assert_eq!(
            (data.count_uses(listing.bytes()), data.count_uses(placed.bytes())),
            (listing.instructions().len(), 0)
        );
        placed.instructions().iter().map(format_instruction).collect()
    }

    #[test]
    fn addresses_of_data_become_displacements_from_a_free_register() {
        for (text, expected) in [
            ("mov eax, [rip+y]", "mov eax, [rbp+0x10]"),
            ("mov eax, [x]", "mov eax, [rbp]"),
            ("mulsd xmm0, qword ptr y[rip]", "mulsd xmm0, [rbp+0x10]"),
            ("mov eax, [y+rcx*4-4]", "mov eax, [rbp+rcx*4+0xc]"),
            ("mov eax, [y+rcx]", "mov eax, [rbp+rcx+0x10]"),
            ("vaddps zmm31, zmm31, [rip+x]", "vaddps zmm31, zmm31, [rbp]"),
            ("cmp dword ptr [rip+y], 7", "cmp dword ptr [rbp+0x10], 7"),
            ("lea rbp, [rip+y]", "lea rbp, [rbx+0x10]"),
            ("addsd y(%rip), %xmm0", "addsd xmm0, [rbp+0x10]"),
            ("movl y(,%rcx,4), %eax", "mov eax, [rbp+rcx*4+0x10]"),
        ] {
            let redirected = redirect(text).join("; ").replace(" dword ptr [r", " [r").replace(" qword ptr", "");
            let expected = expected.replace(" dword ptr [r", " [r");
            let plain = |text: &str| text.replace("zmmword ptr ", "").replace("+0]", "]");
            assert_eq!(plain(&redirected), plain(&expected), "{text}");
        }
    }

    #[test]
    fn init_code_writes_bytes_and_pointers() {
        let data =
            SnippetData { bytes: vec![1, 2, 3, 4, 5], alignment: 1, pointers: vec![(8, 2)], ..SnippetData::default() };
        let text = Listing::from_bytes(&data.init_code(Register::RBP)).text();
        assert_eq!(
            text,
            "lea rbp, [rbp+0x4000]\nand rbp, 0xffffffffffffffc0\nmov dword ptr [rbp], 0x4030201\nmov dword ptr [rbp+4], 5\n\
             mov qword ptr [rbp+8], rbp\nadd qword ptr [rbp+8], 2"
        );
    }
}
