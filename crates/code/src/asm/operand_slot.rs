//! Operands that an instruction slot accepts, in the few classes that the text distinguishes.

use iced_x86::{Code, OpCodeOperandKind as Kind, Register};

/// Set of registers that share an operand slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum RegisterClass {
    Gpr8,
    Gpr16,
    Gpr32,
    Gpr64,
    Mmx,
    Xmm,
    Ymm,
    Zmm,
    Mask,
    Bound,
    Segment,
    Control,
    Debug,
    Test,
    St,
    Tile,
}

impl RegisterClass {
    const CLASS_NAMES: [(RegisterClass, &'static str); 16] = [
        (RegisterClass::Gpr8, "r8"),
        (RegisterClass::Gpr16, "r16"),
        (RegisterClass::Gpr32, "r32"),
        (RegisterClass::Gpr64, "r64"),
        (RegisterClass::Mmx, "mm"),
        (RegisterClass::Xmm, "xmm"),
        (RegisterClass::Ymm, "ymm"),
        (RegisterClass::Zmm, "zmm"),
        (RegisterClass::Mask, "k"),
        (RegisterClass::Bound, "bnd"),
        (RegisterClass::Segment, "sreg"),
        (RegisterClass::Control, "cr"),
        (RegisterClass::Debug, "dr"),
        (RegisterClass::Test, "tr"),
        (RegisterClass::St, "st"),
        (RegisterClass::Tile, "tmm"),
    ];

    /// Name as in published instruction tables.
    pub(super) fn name(self) -> &'static str {
        Self::CLASS_NAMES.iter().find(|(class, _)| *class == self).map_or("", |(_, name)| name)
    }

    pub(super) fn from_register(register: Register) -> Option<RegisterClass> {
        let class = match register {
            r if r.is_gpr8() => RegisterClass::Gpr8,
            r if r.is_gpr16() => RegisterClass::Gpr16,
            r if r.is_gpr32() => RegisterClass::Gpr32,
            r if r.is_gpr64() => RegisterClass::Gpr64,
            r if r.is_mm() => RegisterClass::Mmx,
            r if r.is_xmm() => RegisterClass::Xmm,
            r if r.is_ymm() => RegisterClass::Ymm,
            r if r.is_zmm() => RegisterClass::Zmm,
            r if r.is_k() => RegisterClass::Mask,
            r if r.is_bnd() => RegisterClass::Bound,
            r if r.is_segment_register() => RegisterClass::Segment,
            r if r.is_cr() => RegisterClass::Control,
            r if r.is_dr() => RegisterClass::Debug,
            r if r.is_tr() => RegisterClass::Test,
            r if r.is_st() => RegisterClass::St,
            r if r.is_tmm() => RegisterClass::Tile,
            _ => return None,
        };
        Some(class)
    }

    /// Register of this class with that number; `Gpr8` counts the byte registers without ah to bh.
    pub(super) fn nth_register(self, number: u32) -> Register {
        let first = match self {
            RegisterClass::Gpr8 if number >= 4 => return Register::SPL + (number - 4),
            RegisterClass::Gpr8 => Register::AL,
            RegisterClass::Gpr16 => Register::AX,
            RegisterClass::Gpr32 => Register::EAX,
            RegisterClass::Gpr64 => Register::RAX,
            RegisterClass::Mmx => Register::MM0,
            RegisterClass::Xmm => Register::XMM0,
            RegisterClass::Ymm => Register::YMM0,
            RegisterClass::Zmm => Register::ZMM0,
            RegisterClass::Mask => Register::K0,
            RegisterClass::Bound => Register::BND0,
            RegisterClass::Segment => Register::ES,
            RegisterClass::Control => Register::CR0,
            RegisterClass::Debug => Register::DR0,
            RegisterClass::Test => Register::TR0,
            RegisterClass::St => Register::ST0,
            RegisterClass::Tile => Register::TMM0,
        };
        first + number
    }
}

/// Encoding of an immediate slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImmediateEncoding {
    /// 4 bits that share a byte with a register.
    Nibble,
    /// The constant 1 of a shift.
    One,
    /// One byte.
    Byte,
    /// A byte, sign-extended to this number of bits.
    ByteTo(u32),
    /// This number of bits.
    Bits(u32),
    /// 32 bits, sign-extended to 64.
    DwordTo64,
}

impl ImmediateEncoding {
    /// Number of bits that the operation sees.
    pub(super) fn width(self) -> u32 {
        match self {
            ImmediateEncoding::Nibble => 4,
            ImmediateEncoding::One | ImmediateEncoding::Byte => 8,
            ImmediateEncoding::ByteTo(bits) | ImmediateEncoding::Bits(bits) => bits,
            ImmediateEncoding::DwordTo64 => 64,
        }
    }

    /// Number of bits that the encoding stores.
    pub(super) fn stored_bits(self) -> u32 {
        match self {
            ImmediateEncoding::Nibble => 4,
            ImmediateEncoding::One | ImmediateEncoding::Byte | ImmediateEncoding::ByteTo(_) => 8,
            ImmediateEncoding::Bits(bits) => bits,
            ImmediateEncoding::DwordTo64 => 32,
        }
    }

    /// The value as stored by the encoding (sign-extended); `None` if it does not fit.
    pub(super) fn encode_value(self, value: i128) -> Option<i64> {
        let (width, stored) = (self.width(), self.stored_bits());
        if self == ImmediateEncoding::One {
            return (value == 1).then_some(1);
        }
        if self == ImmediateEncoding::Nibble {
            return (0..16).contains(&value).then_some(value as i64);
        }
        if value < -(1i128 << (width - 1)) || value >= 1i128 << width {
            return None;
        }
        // Truncation is intended: `add eax, 0xffffff80` contains the byte 0x80.
        let seen = ((value as i64) << (64 - width)) >> (64 - width);
        let kept = (seen << (64 - stored)) >> (64 - stored);
        (kept == seen).then_some(seen)
    }
}

/// Operands that a slot accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperandSlot {
    /// Nothing that text can name.
    Unusable,
    /// A register of a class.
    Reg(RegisterClass),
    /// The first of four (or two) consecutive registers.
    Group(RegisterClass, u32),
    /// A register of a class or memory.
    RegMem(RegisterClass),
    /// One fixed register.
    Fixed(Register),
    /// Memory.
    Mem,
    /// Memory with a vector of indices: its class and the bits of an index.
    Vsib(RegisterClass, u32),
    /// Memory at an absolute 64-bit address.
    Absolute,
    /// `[rsi]` of a string instruction.
    Source,
    /// `es:[rdi]` of a string instruction.
    Destination,
    /// `[rdi]` of a masked move.
    MaskedStore,
    /// `[rbx+al]`.
    Table,
    /// An immediate.
    Imm(ImmediateEncoding),
    /// A branch target with a displacement of this number of bits.
    Branch(u32),
}

/// Slot of an operand kind in the instruction database.
pub(super) fn classify_operand(kind: Kind) -> OperandSlot {
    match kind {
        Kind::mem | Kind::mem_mpx | Kind::mem_mib | Kind::sibmem => OperandSlot::Mem,
        Kind::mem_offs => OperandSlot::Absolute,
        Kind::mem_vsib32x => OperandSlot::Vsib(RegisterClass::Xmm, 32),
        Kind::mem_vsib64x => OperandSlot::Vsib(RegisterClass::Xmm, 64),
        Kind::mem_vsib32y => OperandSlot::Vsib(RegisterClass::Ymm, 32),
        Kind::mem_vsib64y => OperandSlot::Vsib(RegisterClass::Ymm, 64),
        Kind::mem_vsib32z => OperandSlot::Vsib(RegisterClass::Zmm, 32),
        Kind::mem_vsib64z => OperandSlot::Vsib(RegisterClass::Zmm, 64),
        Kind::es => OperandSlot::Fixed(Register::ES),
        Kind::cs => OperandSlot::Fixed(Register::CS),
        Kind::ss => OperandSlot::Fixed(Register::SS),
        Kind::ds => OperandSlot::Fixed(Register::DS),
        Kind::fs => OperandSlot::Fixed(Register::FS),
        Kind::gs => OperandSlot::Fixed(Register::GS),
        Kind::al => OperandSlot::Fixed(Register::AL),
        Kind::cl => OperandSlot::Fixed(Register::CL),
        Kind::ax => OperandSlot::Fixed(Register::AX),
        Kind::dx => OperandSlot::Fixed(Register::DX),
        Kind::eax => OperandSlot::Fixed(Register::EAX),
        Kind::rax => OperandSlot::Fixed(Register::RAX),
        Kind::st0 => OperandSlot::Fixed(Register::ST0),
        Kind::seg_rSI => OperandSlot::Source,
        Kind::es_rDI => OperandSlot::Destination,
        Kind::seg_rDI => OperandSlot::MaskedStore,
        Kind::seg_rBX_al => OperandSlot::Table,
        Kind::br64_1 | Kind::br32_1 => OperandSlot::Branch(8),
        Kind::br64_4 | Kind::br32_4 | Kind::xbegin_4 => OperandSlot::Branch(32),
        _ => register_slot(kind).or_else(|| immediate_slot(kind)).unwrap_or(OperandSlot::Unusable),
    }
}

fn register_slot(kind: Kind) -> Option<OperandSlot> {
    Some(match kind {
        Kind::r8_or_mem => OperandSlot::RegMem(RegisterClass::Gpr8),
        Kind::r16_or_mem => OperandSlot::RegMem(RegisterClass::Gpr16),
        Kind::r32_or_mem | Kind::r32_or_mem_mpx => OperandSlot::RegMem(RegisterClass::Gpr32),
        Kind::r64_or_mem | Kind::r64_or_mem_mpx => OperandSlot::RegMem(RegisterClass::Gpr64),
        Kind::mm_or_mem => OperandSlot::RegMem(RegisterClass::Mmx),
        Kind::xmm_or_mem => OperandSlot::RegMem(RegisterClass::Xmm),
        Kind::ymm_or_mem => OperandSlot::RegMem(RegisterClass::Ymm),
        Kind::zmm_or_mem => OperandSlot::RegMem(RegisterClass::Zmm),
        Kind::bnd_or_mem_mpx => OperandSlot::RegMem(RegisterClass::Bound),
        Kind::k_or_mem => OperandSlot::RegMem(RegisterClass::Mask),
        Kind::r8_reg | Kind::r8_opcode => OperandSlot::Reg(RegisterClass::Gpr8),
        Kind::r16_reg | Kind::r16_reg_mem | Kind::r16_rm | Kind::r16_opcode => OperandSlot::Reg(RegisterClass::Gpr16),
        Kind::r32_reg | Kind::r32_reg_mem | Kind::r32_rm | Kind::r32_opcode | Kind::r32_vvvv => {
            OperandSlot::Reg(RegisterClass::Gpr32)
        }
        Kind::r64_reg | Kind::r64_reg_mem | Kind::r64_rm | Kind::r64_opcode | Kind::r64_vvvv => {
            OperandSlot::Reg(RegisterClass::Gpr64)
        }
        Kind::seg_reg => OperandSlot::Reg(RegisterClass::Segment),
        Kind::k_reg | Kind::k_rm | Kind::k_vvvv => OperandSlot::Reg(RegisterClass::Mask),
        Kind::kp1_reg => OperandSlot::Group(RegisterClass::Mask, 2),
        Kind::mm_reg | Kind::mm_rm => OperandSlot::Reg(RegisterClass::Mmx),
        Kind::xmm_reg | Kind::xmm_rm | Kind::xmm_vvvv | Kind::xmm_is4 | Kind::xmm_is5 => {
            OperandSlot::Reg(RegisterClass::Xmm)
        }
        Kind::ymm_reg | Kind::ymm_rm | Kind::ymm_vvvv | Kind::ymm_is4 | Kind::ymm_is5 => {
            OperandSlot::Reg(RegisterClass::Ymm)
        }
        Kind::zmm_reg | Kind::zmm_rm | Kind::zmm_vvvv => OperandSlot::Reg(RegisterClass::Zmm),
        Kind::xmmp3_vvvv => OperandSlot::Group(RegisterClass::Xmm, 4),
        Kind::zmmp3_vvvv => OperandSlot::Group(RegisterClass::Zmm, 4),
        Kind::cr_reg => OperandSlot::Reg(RegisterClass::Control),
        Kind::dr_reg => OperandSlot::Reg(RegisterClass::Debug),
        Kind::tr_reg => OperandSlot::Reg(RegisterClass::Test),
        Kind::bnd_reg => OperandSlot::Reg(RegisterClass::Bound),
        Kind::sti_opcode => OperandSlot::Reg(RegisterClass::St),
        Kind::tmm_reg | Kind::tmm_rm | Kind::tmm_vvvv => OperandSlot::Reg(RegisterClass::Tile),
        _ => return None,
    })
}

fn immediate_slot(kind: Kind) -> Option<OperandSlot> {
    Some(OperandSlot::Imm(match kind {
        Kind::imm4_m2z => ImmediateEncoding::Nibble,
        Kind::imm8 => ImmediateEncoding::Byte,
        Kind::imm8_const_1 => ImmediateEncoding::One,
        Kind::imm8sex16 => ImmediateEncoding::ByteTo(16),
        Kind::imm8sex32 => ImmediateEncoding::ByteTo(32),
        Kind::imm8sex64 => ImmediateEncoding::ByteTo(64),
        Kind::imm16 => ImmediateEncoding::Bits(16),
        Kind::imm32 => ImmediateEncoding::Bits(32),
        Kind::imm32sex64 => ImmediateEncoding::DwordTo64,
        Kind::imm64 => ImmediateEncoding::Bits(64),
        _ => return None,
    }))
}

/// Slots of a Code.
pub(super) fn list_slots(code: Code) -> impl Iterator<Item = OperandSlot> {
    code.op_code().op_kinds().iter().map(|kind| classify_operand(*kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn immediates_are_checked_at_the_width_of_the_operation() {
        assert_eq!(ImmediateEncoding::ByteTo(32).encode_value(0xffff_ff80), Some(-128));
        assert_eq!(ImmediateEncoding::ByteTo(32).encode_value(0x80), None);
        assert_eq!(ImmediateEncoding::Byte.encode_value(255), Some(-1));
        assert_eq!(ImmediateEncoding::Byte.encode_value(256), None);
        assert_eq!(ImmediateEncoding::DwordTo64.encode_value(0xffff_ffff), None);
        assert_eq!(ImmediateEncoding::DwordTo64.encode_value(0xffff_ffff_ffff_ffff), Some(-1));
        assert_eq!(ImmediateEncoding::Bits(64).encode_value(u64::MAX.into()), Some(-1));
        assert_eq!(ImmediateEncoding::Bits(16).encode_value(-32769), None);
        assert_eq!(ImmediateEncoding::Nibble.encode_value(16), None);
    }
}
