//! Slot fillers: instructions that take one dispatch slot each, and no port or few.
//!
//! Among many of them, an instance costs the slots that it takes. All fillers are five bytes long,
//! because a core may deliver more short instructions to its dispatch than it dispatches, or fewer:
//! Zen 5 dispatches eight fillers of five bytes in a cycle, and six or seven shorter ones.

use super::register_allocator::RegisterAllocator;
use crate::forms::form_anatomy::{RegisterBank, encode_instructions};
use cyclescope_code::asm::{CodeMode, pad_with_prefixes};
use iced_x86::{Code, Instruction, MemoryOperand, Register};
use serde::{Deserialize, Serialize};

/// Length of a filler in bytes, where its encoding permits.
const FILLER_BYTES: usize = 5;
/// Displacements of the loads of fillers: instances use positive ones.
const LOAD_DISPLACEMENTS: [i64; 3] = [-64, -72, -80];

/// A kind of filler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotFiller {
    /// `xor r32, r32` of one register.
    ZeroIdiom,
    /// Additions of addresses, comparisons, loads, and shuffles or logic of vectors in turn: each
    /// unit has less work than it can do.
    Blend,
    /// `mov r64, r64`.
    Move,
    /// `pxor xmm, xmm` or `vpxor xmm, xmm, xmm` of one register.
    VectorZero,
    /// The five-byte NOP. Some cores pack NOPs into fewer slots; then they are faster than other
    /// fillers.
    Nop,
}

impl SlotFiller {
    /// All kinds, the most trusted first.
    pub(crate) const ALL: [SlotFiller; 5] =
        [SlotFiller::ZeroIdiom, SlotFiller::Blend, SlotFiller::Move, SlotFiller::VectorZero, SlotFiller::Nop];

    /// Its name in texts.
    pub fn describe(self) -> &'static str {
        match self {
            SlotFiller::ZeroIdiom => "zeroed registers",
            SlotFiller::Blend => "instructions of several units",
            SlotFiller::Move => "moves",
            SlotFiller::VectorZero => "zeroed vectors",
            SlotFiller::Nop => "NOPs",
        }
    }

    /// The instructions to put in turn between instances.
    fn list_instructions(self, registers: &FillerRegisters) -> Option<Vec<Instruction>> {
        let FillerRegisters { source, target, vectors: [from, to], base, vex, .. } = *registers;
        let low = |register: Register| Register::EAX + register.number() as u32;
        let load = |displacement: i64| {
            let place = MemoryOperand::with_base_displ(base, displacement);
            Instruction::with2(Code::Mov_r64_rm64, target, place)
        };
        let address = || Instruction::with2(Code::Lea_r64_m, target, MemoryOperand::with_base_displ(source, 8));
        let instructions = match self {
            SlotFiller::ZeroIdiom => vec![Instruction::with2(Code::Xor_r32_rm32, low(target), low(target))],
            SlotFiller::Move => vec![Instruction::with2(Code::Mov_r64_rm64, target, source)],
            SlotFiller::VectorZero if vex => vec![Instruction::with3(Code::VEX_Vpxor_xmm_xmm_xmmm128, to, to, to)],
            SlotFiller::VectorZero => vec![Instruction::with2(Code::Pxor_xmm_xmmm128, to, to)],
            SlotFiller::Nop => {
                let place = MemoryOperand::new(Register::RAX, Register::RAX, 1, 8, 1, false, Register::None);
                vec![Instruction::with1(Code::Nop_rm32, place)]
            }
            SlotFiller::Blend => {
                let vector = match vex {
                    true => Instruction::with3(Code::VEX_Vpand_xmm_xmm_xmmm128, to, from, from),
                    false => Instruction::with3(Code::Pshufd_xmm_xmmm128_imm8, to, from, 0),
                };
                let compare = Instruction::with2(Code::Cmp_rm64_r64, source, source);
                let [first, second, third] = LOAD_DISPLACEMENTS.map(load);
                vec![first, address(), vector, second, compare, address(), third, address()]
            }
        };
        instructions.into_iter().collect::<Result<Vec<Instruction>, _>>().ok()
    }

    /// The machine code of each filler in turn.
    pub(crate) fn encode_fillers(self, registers: &FillerRegisters) -> Option<Vec<Vec<u8>>> {
        let code = |one: Instruction| encode_instructions(registers.mode, &[one]);
        let encode = |one: Instruction| Some(pad_with_prefixes(&code(one)?, FILLER_BYTES));
        self.list_instructions(registers)?.into_iter().map(encode).collect()
    }
}

/// Registers of fillers, which no instance uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FillerRegisters {
    /// The mode of the code.
    mode: CodeMode,
    /// A general register that keeps its value.
    source: Register,
    /// A general register that fillers write.
    target: Register,
    /// A vector register that keeps its value, and one that fillers write.
    vectors: [Register; 2],
    /// The base of memory operands.
    base: Register,
    /// Whether vector instructions are VEX code. Legacy code stays without it.
    vex: bool,
}

impl FillerRegisters {
    /// Takes the registers that this kind of filler needs. `None` if too few are left.
    pub(crate) fn allocate(
        filler: SlotFiller,
        allocator: &mut RegisterAllocator,
        vex: bool,
    ) -> Option<FillerRegisters> {
        let mut registers = FillerRegisters {
            mode: allocator.mode(),
            source: Register::RAX,
            target: Register::RAX,
            vectors: [Register::XMM0; 2],
            base: Register::RAX + u32::from(allocator.claim_base()),
            vex,
        };
        let mut general = || Some(Register::RAX + u32::from(allocator.allocate_spare()?));
        if filler != SlotFiller::Nop && filler != SlotFiller::VectorZero {
            registers.target = general()?;
        }
        if matches!(filler, SlotFiller::Move | SlotFiller::Blend) {
            registers.source = general()?;
        }
        if matches!(filler, SlotFiller::VectorZero | SlotFiller::Blend) {
            // The lowest numbers left: VEX has sixteen.
            let left = allocator.allocate_rotation(RegisterBank::Vector, 2).filter(|left| left.len() == 2)?;
            if left.iter().any(|number| *number >= 16) {
                return None;
            }
            registers.vectors = [left[0], left[1]].map(|number| Register::XMM0 + u32::from(number));
        }
        Some(registers)
    }

    /// Registers for fillers alone.
    pub(crate) fn without_form(mode: CodeMode, vex: bool) -> FillerRegisters {
        let vectors = [Register::XMM0, Register::XMM1];
        FillerRegisters { mode, source: Register::RSI, target: Register::RDI, vectors, base: Register::R14, vex }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::asm::ALL_MODES;
    use iced_x86::{Decoder, DecoderOptions};

    #[test]
    fn every_filler_is_one_instruction_of_at_least_five_bytes() {
        let kinds = SlotFiller::ALL.into_iter().flat_map(|filler| [(filler, false), (filler, true)]);
        for (mode, (filler, vex)) in ALL_MODES.into_iter().flat_map(|mode| kinds.clone().map(move |kind| (mode, kind)))
        {
            let registers = FillerRegisters::without_form(mode, vex);
            let listed = filler.list_instructions(&registers).unwrap();
            let codes = filler.encode_fillers(&registers).unwrap();
            assert_eq!(listed.len(), codes.len());
            for (wanted, code) in listed.iter().zip(&codes) {
                let decoded = Decoder::new(mode.bits(), code, DecoderOptions::NONE).decode();
                let wanted = mode.counterpart(wanted.code());
                assert_eq!((decoded.code(), decoded.len()), (wanted, code.len()), "{filler:?}");
                assert!(code.len() >= FILLER_BYTES && code.len() <= FILLER_BYTES + 1, "{filler:?}: {}", code.len());
            }
        }
    }
}
