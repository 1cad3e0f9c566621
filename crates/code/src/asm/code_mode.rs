//! The processor's mode that code runs in: 64-bit mode, or 32-bit code of a 64-bit system
//! (compatibility mode).
//!
//! The library writes its own instructions once, for 64-bit mode. [`CodeMode::convert_own`] turns
//! each into its counterpart for 32-bit code: the same operation on 32 bits, with a register that
//! exists there. R14 becomes EBX and R15 becomes EBP; R8 to R13 have no counterpart.

use iced_x86::{Code, CodeSize, Instruction, OpKind, Register};
use serde::{Deserialize, Serialize};

/// The mode that code runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(into = "u32", try_from = "u32")]
pub enum CodeMode {
    /// 64-bit mode.
    #[default]
    Bits64,
    /// 32-bit code: compatibility mode.
    Bits32,
}

/// All modes.
pub const ALL_MODES: [CodeMode; 2] = [CodeMode::Bits64, CodeMode::Bits32];

impl From<CodeMode> for u32 {
    fn from(mode: CodeMode) -> u32 {
        mode.bits()
    }
}

impl TryFrom<u32> for CodeMode {
    type Error = String;

    fn try_from(bits: u32) -> Result<CodeMode, String> {
        let found = ALL_MODES.into_iter().find(|mode| mode.bits() == bits);
        found.ok_or_else(|| format!("there is no code of {bits} bits here: 64 or 32"))
    }
}

/// Counterparts in 32-bit code of the library's own instructions. All others are the same.
const COUNTERPARTS: [(Code, Code); 42] = [
    (Code::Mov_rm64_r64, Code::Mov_rm32_r32),
    (Code::Mov_r64_rm64, Code::Mov_r32_rm32),
    (Code::Mov_rm64_imm32, Code::Mov_rm32_imm32),
    (Code::Test_rm64_r64, Code::Test_rm32_r32),
    (Code::Lea_r64_m, Code::Lea_r32_m),
    (Code::Dec_rm64, Code::Dec_rm32),
    (Code::Push_r64, Code::Push_r32),
    (Code::Pop_r64, Code::Pop_r32),
    (Code::Jne_rel8_64, Code::Jne_rel8_32),
    (Code::Jne_rel32_64, Code::Jne_rel32_32),
    (Code::Jmp_rel32_64, Code::Jmp_rel32_32),
    (Code::Call_rel32_64, Code::Call_rel32_32),
    (Code::Loop_rel8_64_RCX, Code::Loop_rel8_32_ECX),
    (Code::Jrcxz_rel8_64, Code::Jecxz_rel8_32),
    // Code of another width called it: see `Program`.
    (Code::Retnq, Code::Retfd),
    (Code::Xchg_rm64_r64, Code::Xchg_rm32_r32),
    (Code::Mov_r64_cr, Code::Mov_r32_cr),
    (Code::Mov_cr_r64, Code::Mov_cr_r32),
    (Code::Or_r64_rm64, Code::Or_r32_rm32),
    (Code::And_r64_rm64, Code::And_r32_rm32),
    (Code::Xor_r64_rm64, Code::Xor_r32_rm32),
    (Code::Cmp_r64_rm64, Code::Cmp_r32_rm32),
    (Code::Cmp_rm64_r64, Code::Cmp_rm32_r32),
    (Code::Sbb_r64_rm64, Code::Sbb_r32_rm32),
    (Code::Cmovb_r64_rm64, Code::Cmovb_r32_rm32),
    (Code::Cmove_r64_rm64, Code::Cmove_r32_rm32),
    (Code::Cmovs_r64_rm64, Code::Cmovs_r32_rm32),
    (Code::Cmovo_r64_rm64, Code::Cmovo_r32_rm32),
    (Code::Cmovp_r64_rm64, Code::Cmovp_r32_rm32),
    // 32-bit registers have no wider ones. The low half of one depends on all of it.
    (Code::Movsxd_r64_rm32, Code::Movsx_r32_rm16),
    (Code::Movsx_r64_rm16, Code::Movsx_r32_rm16),
    (Code::Movsx_r64_rm8, Code::Movsx_r32_rm8),
    (Code::Movq_xmm_rm64, Code::Movd_xmm_rm32),
    (Code::Movq_rm64_xmm, Code::Movd_rm32_xmm),
    (Code::VEX_Vmovq_xmm_rm64, Code::VEX_Vmovd_xmm_rm32),
    (Code::VEX_Vmovq_rm64_xmm, Code::VEX_Vmovd_rm32_xmm),
    (Code::VEX_Kmovq_kr_r64, Code::VEX_Kmovd_kr_r32),
    (Code::VEX_Kmovq_r64_kr, Code::VEX_Kmovd_r32_kr),
    (Code::Movq_mm_rm64, Code::Movd_mm_rm32),
    (Code::Movq_rm64_mm, Code::Movd_rm32_mm),
    (Code::Nop_rm64, Code::Nop_rm32),
    (Code::Je_rel32_64, Code::Je_rel32_32),
];

impl CodeMode {
    /// Bits of an address: 64 or 32.
    pub const fn bits(self) -> u32 {
        match self {
            CodeMode::Bits64 => 64,
            CodeMode::Bits32 => 32,
        }
    }

    /// The value for this mode, from those of 64-bit mode and of 32-bit code.
    pub const fn choose<T: Copy>(self, [wide, narrow]: [T; 2]) -> T {
        match self {
            CodeMode::Bits64 => wide,
            CodeMode::Bits32 => narrow,
        }
    }

    /// The mode that an instruction was decoded or built for.
    pub fn from_instruction(instruction: &Instruction) -> CodeMode {
        match instruction.code_size() {
            CodeSize::Code32 => CodeMode::Bits32,
            _ => CodeMode::Bits64,
        }
    }

    /// The instruction that does in this mode what one that the library wrote does in 64-bit mode.
    pub fn counterpart(self, code: Code) -> Code {
        match self {
            CodeMode::Bits64 => code,
            CodeMode::Bits32 => {
                COUNTERPARTS.iter().find(|(own, _)| *own == code).map_or(code, |(_, counterpart)| *counterpart)
            }
        }
    }

    /// Whether an instruction exists in this mode.
    pub fn has_code(self, code: Code) -> bool {
        match self {
            CodeMode::Bits64 => code.op_code().mode64(),
            CodeMode::Bits32 => code.op_code().mode32(),
        }
    }

    /// Whether instructions can name a register in this mode.
    pub fn has_register(self, register: Register) -> bool {
        let is_wide = register.is_gpr64() || register.is_ip() || register.is_tmm();
        let is_rex_byte = register.is_gpr8() && register >= Register::SPL;
        let is_numbered = register.is_gpr() || register.is_vector_register() || register.is_cr() || register.is_dr();
        let is_high = is_numbered && !register.is_gpr8() && register.number() >= self.general_registers();
        self == CodeMode::Bits64 || !(is_wide || is_rex_byte || is_high)
    }

    /// Whether this is 64-bit mode, which records leave out.
    pub fn is_default(&self) -> bool {
        *self == CodeMode::default()
    }

    /// Number of general registers.
    pub const fn general_registers(self) -> usize {
        match self {
            CodeMode::Bits64 => 16,
            CodeMode::Bits32 => 8,
        }
    }

    /// Number of vector registers without EVEX.
    pub const fn vector_registers(self) -> u32 {
        match self {
            CodeMode::Bits64 => 16,
            CodeMode::Bits32 => 8,
        }
    }

    /// Number of vector registers with EVEX.
    pub const fn evex_registers(self) -> u32 {
        match self {
            CodeMode::Bits64 => 32,
            CodeMode::Bits32 => 8,
        }
    }

    /// The general register with the role that this one has in 64-bit mode, by encoding numbers.
    /// Registers 8 to 13 have no counterpart in 32-bit code.
    pub const fn general_number(self, number: usize) -> Option<usize> {
        match (self, number) {
            (CodeMode::Bits32, 14) => Some(3),
            (CodeMode::Bits32, 15) => Some(5),
            (CodeMode::Bits32, 8..) => None,
            _ => Some(number),
        }
    }

    /// The widest general register with this encoding number.
    pub(crate) fn general_register(self, number: usize) -> Register {
        let first = match self {
            CodeMode::Bits64 => Register::RAX,
            CodeMode::Bits32 => Register::EAX,
        };
        first + number as u32
    }

    /// The register with the role that this one has in 64-bit mode.
    ///
    /// # Panics
    ///
    /// If 32-bit code has no such register.
    pub fn register(self, register: Register) -> Register {
        if self == CodeMode::Bits64 || !(register.is_gpr64() || register.is_gpr32()) {
            return register;
        }
        Register::EAX + self.general_number(register.number()).expect("the role exists in both modes") as u32
    }

    /// A displacement as instructions of this mode hold it.
    pub(crate) fn truncate(self, displacement: i64) -> u64 {
        match self {
            CodeMode::Bits64 => displacement as u64,
            CodeMode::Bits32 => u64::from(displacement as u32),
        }
    }

    /// Size of code in instructions.
    pub fn code_size(self) -> CodeSize {
        match self {
            CodeMode::Bits64 => CodeSize::Code64,
            CodeMode::Bits32 => CodeSize::Code32,
        }
    }

    /// Kind of a near branch's operand.
    pub fn branch_kind(self) -> OpKind {
        match self {
            CodeMode::Bits64 => OpKind::NearBranch64,
            CodeMode::Bits32 => OpKind::NearBranch32,
        }
    }

    /// Kind of a string instruction's source, `[rsi]`.
    pub(crate) fn source_kind(self) -> OpKind {
        match self {
            CodeMode::Bits64 => OpKind::MemorySegRSI,
            CodeMode::Bits32 => OpKind::MemorySegESI,
        }
    }

    /// Kind of a string instruction's destination, `es:[rdi]`.
    pub(crate) fn destination_kind(self) -> OpKind {
        match self {
            CodeMode::Bits64 => OpKind::MemoryESRDI,
            CodeMode::Bits32 => OpKind::MemoryESEDI,
        }
    }

    /// Kind of a masked move's destination, `[rdi]`.
    pub(crate) fn masked_store_kind(self) -> OpKind {
        match self {
            CodeMode::Bits64 => OpKind::MemorySegRDI,
            CodeMode::Bits32 => OpKind::MemorySegEDI,
        }
    }

    /// The counterpart in this mode of an instruction that the library wrote for 64-bit mode.
    /// RIP-relative operands become absolute ones.
    pub fn convert_own(self, instruction: &Instruction) -> Instruction {
        let mut converted = *instruction;
        if self == CodeMode::Bits64 {
            return converted;
        }
        converted.set_code(self.counterpart(instruction.code()));
        converted.set_code_size(self.code_size());
        for operand in 0..instruction.op_count() {
            match instruction.op_kind(operand) {
                OpKind::Register => converted.set_op_register(operand, self.register(instruction.op_register(operand))),
                OpKind::NearBranch64 => {
                    converted.set_op_kind(operand, OpKind::NearBranch32);
                    converted.set_near_branch32(instruction.near_branch_target() as u32);
                }
                OpKind::Immediate32to64 => {
                    converted.set_op_kind(operand, OpKind::Immediate32);
                    converted.set_immediate32(instruction.immediate32to64() as u32);
                }
                OpKind::Memory => self.convert_address(instruction, &mut converted),
                _ => {}
            }
        }
        converted
    }

    fn convert_address(self, instruction: &Instruction, converted: &mut Instruction) {
        let base = instruction.memory_base();
        if base == Register::RIP {
            let address = instruction.ip_rel_memory_address();
            converted.set_memory_base(Register::None);
            converted.set_memory_displ_size(4);
            converted.set_memory_displacement64(address as u32 as u64);
        } else {
            converted.set_memory_base(self.register(base));
            converted.set_memory_index(self.register(instruction.memory_index()));
            converted.set_memory_displ_size(instruction.memory_displ_size().min(4));
            converted.set_memory_displacement64(instruction.memory_displacement64() as u32 as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Encoder, MemoryOperand};

    /// The counterpart of an instruction, as its machine code decodes.
    fn convert(instruction: Result<Instruction, iced_x86::IcedError>) -> String {
        let converted = CodeMode::Bits32.convert_own(&instruction.unwrap());
        let mut encoder = Encoder::new(32);
        encoder.encode(&converted, 0).unwrap();
        let decoded = Decoder::new(32, &encoder.take_buffer(), DecoderOptions::NONE).decode();
        assert_eq!(decoded.code(), converted.code());
        super::super::format_instruction(&decoded)
    }

    #[test]
    fn own_instructions_have_counterparts() {
        let field = MemoryOperand::with_base_displ(Register::RIP, 0x1234_5678);
        assert_eq!(
            convert(Instruction::with2(Code::Mov_r64_rm64, Register::R14, field)),
            "mov ebx, dword ptr [0x12345678]"
        );
        assert_eq!(convert(Instruction::with1(Code::Dec_rm64, Register::R15)), "dec ebp");
        assert_eq!(
            convert(Instruction::with2(Code::Mov_rm64_imm32, field, -1)),
            "mov dword ptr [0x12345678], 0xffffffff"
        );
        let below = MemoryOperand::with_base_displ(Register::RAX, -4096);
        assert_eq!(convert(Instruction::with2(Code::Lea_r64_m, Register::RAX, below)), "lea eax, [eax-0x1000]");
    }

    #[test]
    fn a_mode_is_stored_as_its_bits() {
        for mode in ALL_MODES {
            let text = serde_json::to_string(&mode).unwrap();
            assert_eq!(text, mode.bits().to_string());
            assert_eq!(serde_json::from_str::<CodeMode>(&text).unwrap(), mode);
        }
        assert!(serde_json::from_str::<CodeMode>("16").is_err());
    }
}
