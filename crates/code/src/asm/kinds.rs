//! Operands that a slot of an instruction accepts, in the few classes that the text distinguishes.

use iced_x86::{Code, OpCodeOperandKind as Kind, Register};

/// A set of registers that share an operand slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Class {
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

impl Class {
    const NAMES: [(Class, &'static str); 16] = [
        (Class::Gpr8, "r8"),
        (Class::Gpr16, "r16"),
        (Class::Gpr32, "r32"),
        (Class::Gpr64, "r64"),
        (Class::Mmx, "mm"),
        (Class::Xmm, "xmm"),
        (Class::Ymm, "ymm"),
        (Class::Zmm, "zmm"),
        (Class::Mask, "k"),
        (Class::Bound, "bnd"),
        (Class::Segment, "sreg"),
        (Class::Control, "cr"),
        (Class::Debug, "dr"),
        (Class::Test, "tr"),
        (Class::St, "st"),
        (Class::Tile, "tmm"),
    ];

    /// The name as published instruction tables write it.
    pub(super) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(class, _)| *class == self).map_or("", |(_, name)| name)
    }

    pub(super) fn of(register: Register) -> Option<Class> {
        let class = match register {
            r if r.is_gpr8() => Class::Gpr8,
            r if r.is_gpr16() => Class::Gpr16,
            r if r.is_gpr32() => Class::Gpr32,
            r if r.is_gpr64() => Class::Gpr64,
            r if r.is_mm() => Class::Mmx,
            r if r.is_xmm() => Class::Xmm,
            r if r.is_ymm() => Class::Ymm,
            r if r.is_zmm() => Class::Zmm,
            r if r.is_k() => Class::Mask,
            r if r.is_bnd() => Class::Bound,
            r if r.is_segment_register() => Class::Segment,
            r if r.is_cr() => Class::Control,
            r if r.is_dr() => Class::Debug,
            r if r.is_tr() => Class::Test,
            r if r.is_st() => Class::St,
            r if r.is_tmm() => Class::Tile,
            _ => return None,
        };
        Some(class)
    }

    /// The register of this class with that number; `Gpr8` counts the byte registers without ah to bh.
    pub(super) fn register(self, number: u32) -> Register {
        let first = match self {
            Class::Gpr8 if number >= 4 => return Register::SPL + (number - 4),
            Class::Gpr8 => Register::AL,
            Class::Gpr16 => Register::AX,
            Class::Gpr32 => Register::EAX,
            Class::Gpr64 => Register::RAX,
            Class::Mmx => Register::MM0,
            Class::Xmm => Register::XMM0,
            Class::Ymm => Register::YMM0,
            Class::Zmm => Register::ZMM0,
            Class::Mask => Register::K0,
            Class::Bound => Register::BND0,
            Class::Segment => Register::ES,
            Class::Control => Register::CR0,
            Class::Debug => Register::DR0,
            Class::Test => Register::TR0,
            Class::St => Register::ST0,
            Class::Tile => Register::TMM0,
        };
        first + number
    }
}

/// Encoding of an immediate slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Imm {
    /// 4 bits that share a byte with a register.
    Nibble,
    /// The constant 1 of a shift.
    One,
    /// A byte as it is.
    Byte,
    /// A byte that is sign-extended to this number of bits.
    ByteTo(u32),
    /// This number of bits as they are.
    Bits(u32),
    /// 32 bits that are sign-extended to 64.
    DwordTo64,
}

impl Imm {
    /// Bits that the operation sees.
    pub(super) fn width(self) -> u32 {
        match self {
            Imm::Nibble => 4,
            Imm::One | Imm::Byte => 8,
            Imm::ByteTo(bits) | Imm::Bits(bits) => bits,
            Imm::DwordTo64 => 64,
        }
    }

    /// Bits that the encoding stores.
    pub(super) fn stored(self) -> u32 {
        match self {
            Imm::Nibble => 4,
            Imm::One | Imm::Byte | Imm::ByteTo(_) => 8,
            Imm::Bits(bits) => bits,
            Imm::DwordTo64 => 32,
        }
    }

    /// The value as the encoding has to store it (sign-extended); `None` if it does not fit.
    pub(super) fn fit(self, value: i128) -> Option<i64> {
        let (width, stored) = (self.width(), self.stored());
        if self == Imm::One {
            return (value == 1).then_some(1);
        }
        if self == Imm::Nibble {
            return (0..16).contains(&value).then_some(value as i64);
        }
        if value < -(1i128 << (width - 1)) || value >= 1i128 << width {
            return None;
        }
        // Truncating is the point: `add eax, 0xffffff80` contains the byte 0x80.
        let seen = ((value as i64) << (64 - width)) >> (64 - width);
        let kept = (seen << (64 - stored)) >> (64 - stored);
        (kept == seen).then_some(seen)
    }
}

/// Operands that a slot accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// Nothing that exists in 64-bit mode.
    Unusable,
    /// A register of a class.
    Reg(Class),
    /// The first of four (or two) consecutive registers.
    Group(Class, u32),
    /// A register of a class or memory.
    RegMem(Class),
    /// One register only.
    Fixed(Register),
    /// Memory.
    Mem,
    /// Memory with a vector of indices: its class and the bits of an index.
    Vsib(Class, u32),
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
    Imm(Imm),
    /// A branch target with a displacement of this number of bits.
    Branch(u32),
}

/// The slot behind an operand kind of the instruction database.
pub(super) fn slot(kind: Kind) -> Slot {
    match kind {
        Kind::mem | Kind::mem_mpx | Kind::mem_mib | Kind::sibmem => Slot::Mem,
        Kind::mem_offs => Slot::Absolute,
        Kind::mem_vsib32x => Slot::Vsib(Class::Xmm, 32),
        Kind::mem_vsib64x => Slot::Vsib(Class::Xmm, 64),
        Kind::mem_vsib32y => Slot::Vsib(Class::Ymm, 32),
        Kind::mem_vsib64y => Slot::Vsib(Class::Ymm, 64),
        Kind::mem_vsib32z => Slot::Vsib(Class::Zmm, 32),
        Kind::mem_vsib64z => Slot::Vsib(Class::Zmm, 64),
        Kind::es => Slot::Fixed(Register::ES),
        Kind::cs => Slot::Fixed(Register::CS),
        Kind::ss => Slot::Fixed(Register::SS),
        Kind::ds => Slot::Fixed(Register::DS),
        Kind::fs => Slot::Fixed(Register::FS),
        Kind::gs => Slot::Fixed(Register::GS),
        Kind::al => Slot::Fixed(Register::AL),
        Kind::cl => Slot::Fixed(Register::CL),
        Kind::ax => Slot::Fixed(Register::AX),
        Kind::dx => Slot::Fixed(Register::DX),
        Kind::eax => Slot::Fixed(Register::EAX),
        Kind::rax => Slot::Fixed(Register::RAX),
        Kind::st0 => Slot::Fixed(Register::ST0),
        Kind::seg_rSI => Slot::Source,
        Kind::es_rDI => Slot::Destination,
        Kind::seg_rDI => Slot::MaskedStore,
        Kind::seg_rBX_al => Slot::Table,
        Kind::br64_1 => Slot::Branch(8),
        Kind::br64_4 | Kind::xbegin_4 => Slot::Branch(32),
        _ => register_slot(kind).or_else(|| immediate_slot(kind)).unwrap_or(Slot::Unusable),
    }
}

fn register_slot(kind: Kind) -> Option<Slot> {
    Some(match kind {
        Kind::r8_or_mem => Slot::RegMem(Class::Gpr8),
        Kind::r16_or_mem => Slot::RegMem(Class::Gpr16),
        Kind::r32_or_mem | Kind::r32_or_mem_mpx => Slot::RegMem(Class::Gpr32),
        Kind::r64_or_mem | Kind::r64_or_mem_mpx => Slot::RegMem(Class::Gpr64),
        Kind::mm_or_mem => Slot::RegMem(Class::Mmx),
        Kind::xmm_or_mem => Slot::RegMem(Class::Xmm),
        Kind::ymm_or_mem => Slot::RegMem(Class::Ymm),
        Kind::zmm_or_mem => Slot::RegMem(Class::Zmm),
        Kind::bnd_or_mem_mpx => Slot::RegMem(Class::Bound),
        Kind::k_or_mem => Slot::RegMem(Class::Mask),
        Kind::r8_reg | Kind::r8_opcode => Slot::Reg(Class::Gpr8),
        Kind::r16_reg | Kind::r16_reg_mem | Kind::r16_rm | Kind::r16_opcode => Slot::Reg(Class::Gpr16),
        Kind::r32_reg | Kind::r32_reg_mem | Kind::r32_rm | Kind::r32_opcode | Kind::r32_vvvv => {
            Slot::Reg(Class::Gpr32)
        }
        Kind::r64_reg | Kind::r64_reg_mem | Kind::r64_rm | Kind::r64_opcode | Kind::r64_vvvv => {
            Slot::Reg(Class::Gpr64)
        }
        Kind::seg_reg => Slot::Reg(Class::Segment),
        Kind::k_reg | Kind::k_rm | Kind::k_vvvv => Slot::Reg(Class::Mask),
        Kind::kp1_reg => Slot::Group(Class::Mask, 2),
        Kind::mm_reg | Kind::mm_rm => Slot::Reg(Class::Mmx),
        Kind::xmm_reg | Kind::xmm_rm | Kind::xmm_vvvv | Kind::xmm_is4 | Kind::xmm_is5 => {
            Slot::Reg(Class::Xmm)
        }
        Kind::ymm_reg | Kind::ymm_rm | Kind::ymm_vvvv | Kind::ymm_is4 | Kind::ymm_is5 => {
            Slot::Reg(Class::Ymm)
        }
        Kind::zmm_reg | Kind::zmm_rm | Kind::zmm_vvvv => Slot::Reg(Class::Zmm),
        Kind::xmmp3_vvvv => Slot::Group(Class::Xmm, 4),
        Kind::zmmp3_vvvv => Slot::Group(Class::Zmm, 4),
        Kind::cr_reg => Slot::Reg(Class::Control),
        Kind::dr_reg => Slot::Reg(Class::Debug),
        Kind::tr_reg => Slot::Reg(Class::Test),
        Kind::bnd_reg => Slot::Reg(Class::Bound),
        Kind::sti_opcode => Slot::Reg(Class::St),
        Kind::tmm_reg | Kind::tmm_rm | Kind::tmm_vvvv => Slot::Reg(Class::Tile),
        _ => return None,
    })
}

fn immediate_slot(kind: Kind) -> Option<Slot> {
    Some(Slot::Imm(match kind {
        Kind::imm4_m2z => Imm::Nibble,
        Kind::imm8 => Imm::Byte,
        Kind::imm8_const_1 => Imm::One,
        Kind::imm8sex16 => Imm::ByteTo(16),
        Kind::imm8sex32 => Imm::ByteTo(32),
        Kind::imm8sex64 => Imm::ByteTo(64),
        Kind::imm16 => Imm::Bits(16),
        Kind::imm32 => Imm::Bits(32),
        Kind::imm32sex64 => Imm::DwordTo64,
        Kind::imm64 => Imm::Bits(64),
        _ => return None,
    }))
}

/// The slots of a Code.
pub(super) fn slots(code: Code) -> impl Iterator<Item = Slot> {
    code.op_code().op_kinds().iter().map(|kind| slot(*kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn immediates_are_taken_by_the_width_that_the_operation_sees() {
        assert_eq!(Imm::ByteTo(32).fit(0xffff_ff80), Some(-128));
        assert_eq!(Imm::ByteTo(32).fit(0x80), None);
        assert_eq!(Imm::Byte.fit(255), Some(-1));
        assert_eq!(Imm::Byte.fit(256), None);
        assert_eq!(Imm::DwordTo64.fit(0xffff_ffff), None);
        assert_eq!(Imm::DwordTo64.fit(0xffff_ffff_ffff_ffff), Some(-1));
        assert_eq!(Imm::Bits(64).fit(u64::MAX.into()), Some(-1));
        assert_eq!(Imm::Bits(16).fit(-32769), None);
        assert_eq!(Imm::Nibble.fit(16), None);
    }
}
