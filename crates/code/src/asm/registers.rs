//! Registers by name, and the registers and vector state that instructions use.

use super::operand_slot::RegisterClass;
use iced_x86::{EncodingKind, Instruction, InstructionInfoFactory, OpAccess, Register};
use std::collections::HashMap;
use std::sync::LazyLock;

static REGISTERS_BY_NAME: LazyLock<HashMap<String, Register>> = LazyLock::new(|| {
    let mut names: HashMap<String, Register> = Register::values()
        .filter(|r| *r != Register::None && r.size() != 0)
        .map(|r| (format!("{r:?}").to_lowercase(), r))
        .collect();
    for number in 8..16 {
        names.insert(format!("r{number}b"), Register::R8L + (number - 8));
    }
    names.insert(String::from("st"), Register::ST0);
    names
});

/// Finds a register by name, in any case. The reader of expressions handles `st(1)`.
pub(crate) fn find_register(text: &str) -> Option<Register> {
    REGISTERS_BY_NAME.get(text.to_ascii_lowercase().as_str()).copied()
}

/// All register names.
pub(super) fn register_names() -> impl Iterator<Item = &'static str> {
    REGISTERS_BY_NAME.keys().map(String::as_str)
}

/// Register with that number in the class of another: with `like` EAX and number 3, EBX.
///
/// AH to BH have the numbers 0 to 3 in encoding order (AH, CH, DH, BH). Other byte registers count
/// AL, CL, DL, BL, SPL and so on. `None` for registers without a class, such as RIP.
pub fn nth_register_like(like: Register, number: u32) -> Option<Register> {
    if HIGH_BYTES.contains(&like) {
        return HIGH_BYTES.get(number as usize).copied();
    }
    RegisterClass::from_register(like).map(|class| class.nth_register(number))
}

/// The high-byte registers by encoding number.
pub const HIGH_BYTES: [Register; 4] = [Register::AH, Register::CH, Register::DH, Register::BH];

/// A set of full registers and flags: 16 general, 32 vector and 8 mask registers, 8 of MMX or x87,
/// and the flags.
///
/// A part of a register counts as the whole: `al`, `eax` and `rax` are one member. MMX and x87
/// registers with one number are one member too, although x87 names are relative to the top of the
/// stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RegisterSet(u128);

const FIRST_VECTOR_BIT: u32 = 16;
const FIRST_MASK_BIT: u32 = 48;
const FIRST_STACK_BIT: u32 = 56;
const FIRST_FLAG_BIT: u32 = 64;

impl RegisterSet {
    /// The empty set.
    pub const EMPTY: RegisterSet = RegisterSet(0);

    /// Set of all flags in a mask of iced's `RflagsBits`.
    pub(crate) fn from_flags(flags: u32) -> RegisterSet {
        RegisterSet(u128::from(flags) << FIRST_FLAG_BIT)
    }

    /// Flags in the set, as `RflagsBits`.
    pub fn flags(self) -> u32 {
        (self.0 >> FIRST_FLAG_BIT) as u32
    }

    /// Whether the set is empty.
    #[cfg(test)]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Adds a register. Registers that a set cannot hold (segment, control, tile) are ignored.
    pub fn insert(&mut self, register: Register) {
        if let Some(bit) = member_bit(register) {
            self.0 |= 1 << bit;
        }
    }

    /// Whether the set contains the register, or the one that it is part of.
    pub fn contains(self, register: Register) -> bool {
        member_bit(register).is_some_and(|bit| self.0 >> bit & 1 != 0)
    }

    /// Members of either set.
    pub fn union(self, other: RegisterSet) -> RegisterSet {
        RegisterSet(self.0 | other.0)
    }

    /// Members of both sets.
    pub fn intersection(self, other: RegisterSet) -> RegisterSet {
        RegisterSet(self.0 & other.0)
    }

    /// Members of this set that the other lacks.
    pub fn difference(self, other: RegisterSet) -> RegisterSet {
        RegisterSet(self.0 & !other.0)
    }

    /// Registers in the set by their widest names, without the flags. An x87 or MMX register is
    /// `ST0` to `ST7`.
    pub fn registers(self) -> impl Iterator<Item = Register> {
        (0..FIRST_FLAG_BIT).filter(move |bit| self.0 >> bit & 1 != 0).map(|bit| match bit {
            0..FIRST_VECTOR_BIT => Register::RAX + bit,
            FIRST_VECTOR_BIT..FIRST_MASK_BIT => Register::ZMM0 + (bit - FIRST_VECTOR_BIT),
            FIRST_MASK_BIT..FIRST_STACK_BIT => Register::K0 + (bit - FIRST_MASK_BIT),
            _ => Register::ST0 + (bit - FIRST_STACK_BIT),
        })
    }
}

fn member_bit(register: Register) -> Option<u32> {
    let full = register.full_register();
    let number = full.number() as u32;
    match full {
        r if r.is_gpr64() => Some(number),
        r if r.is_vector_register() => Some(FIRST_VECTOR_BIT + number),
        r if r.is_k() => Some(FIRST_MASK_BIT + number),
        r if r.is_st() || r.is_mm() => Some(FIRST_STACK_BIT + number),
        _ => None,
    }
}

/// Registers and flags that the instruction reads, including those in addresses.
///
/// Writing part of a register and keeping the rest does not count as a read.
pub fn registers_read(instruction: &Instruction) -> RegisterSet {
    collect_registers(instruction, |access| {
        matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
    })
    .union(RegisterSet::from_flags(instruction.rflags_read()))
}

/// Registers and flags that the instruction writes or may write; undefined flags count as written.
pub fn registers_written(instruction: &Instruction) -> RegisterSet {
    collect_registers(instruction, |access| {
        matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
    })
    .union(RegisterSet::from_flags(instruction.rflags_modified()))
}

/// Registers that the instruction keeps in whole or in part, so that it waits for their old value.
/// These are registers that it may not write (`cmovcc`, `bsf`), and those of which it writes 8 or
/// 16 bits.
pub fn registers_merged(instruction: &Instruction) -> RegisterSet {
    let mut set = RegisterSet::EMPTY;
    let mut factory = InstructionInfoFactory::new();
    for used in factory.info(instruction).used_registers() {
        let part = used.register().is_gpr() && used.register().size() < 4;
        let written = matches!(used.access(), OpAccess::Write | OpAccess::ReadWrite);
        if used.access() == OpAccess::CondWrite || part && written {
            set.insert(used.register());
        }
    }
    set
}

fn collect_registers(instruction: &Instruction, wanted: impl Fn(OpAccess) -> bool) -> RegisterSet {
    let mut set = RegisterSet::EMPTY;
    let mut factory = InstructionInfoFactory::new();
    for register in factory.info(instruction).used_registers().iter().filter(|r| wanted(r.access())) {
        set.insert(register.register());
    }
    set
}

/// Vector and floating-point state that code uses. Several kinds at once are possible and matter:
/// switching between legacy and VEX code, or between MMX and x87, has its own cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct VectorState {
    /// x87 registers.
    pub x87: bool,
    /// MMX registers.
    pub mmx: bool,
    /// xmm registers in legacy encodings, which keep the upper parts.
    pub legacy128: bool,
    /// xmm registers in VEX, EVEX or XOP encodings, which clear the upper parts.
    pub vex128: bool,
    /// ymm registers.
    pub bits256: bool,
    /// zmm registers.
    pub bits512: bool,
}

impl VectorState {
    /// Bits of the widest vector: 0, 64 for MMX, 128, 256 or 512.
    #[cfg(test)]
    pub(crate) fn widest_bits(self) -> u32 {
        match self {
            VectorState { bits512: true, .. } => 512,
            VectorState { bits256: true, .. } => 256,
            VectorState { legacy128: true, .. } | VectorState { vex128: true, .. } => 128,
            VectorState { mmx: true, .. } => 64,
            _ => 0,
        }
    }
}

/// Vector state that these instructions use.
pub fn vector_state(instructions: &[Instruction]) -> VectorState {
    let mut state = VectorState::default();
    let mut factory = InstructionInfoFactory::new();
    for instruction in instructions {
        let legacy = instruction.op_code().encoding() == EncodingKind::Legacy;
        state.x87 |= instruction.fpu_stack_increment_info().writes_top();
        let operands = (0..instruction.op_count()).map(|n| instruction.op_register(n));
        let index = instruction.memory_index();
        // A VEX write of xmm clears the whole register and is listed as a write of it, so the
        // operand decides.
        let named: Vec<Register> = operands.chain([index]).filter(|r| *r != Register::None).collect();
        let used = factory.info(instruction).used_registers().iter().map(|u| u.register());
        let implied: Vec<Register> =
            if named.iter().any(|r| r.is_vector_register()) { Vec::new() } else { used.collect() };
        for register in named.into_iter().chain(implied) {
            state.x87 |= register.is_st();
            state.mmx |= register.is_mm();
            state.legacy128 |= register.is_xmm() && legacy;
            state.vex128 |= register.is_xmm() && !legacy;
            state.bits256 |= register.is_ymm();
            state.bits512 |= register.is_zmm();
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::parse_assembly;
    use iced_x86::RflagsBits;

    fn instruction(text: &str) -> Instruction {
        parse_assembly(text).unwrap().instructions()[0]
    }

    #[test]
    fn registers_read_and_written_are_listed() {
        let add = instruction("add al, byte ptr [rcx+rdx*2]");
        let names = |set: RegisterSet| set.registers().collect::<Vec<_>>();
        assert_eq!(names(registers_read(&add)), [Register::RAX, Register::RCX, Register::RDX]);
        assert_eq!(names(registers_written(&add)), [Register::RAX]);
        assert_eq!(registers_read(&add).flags(), 0);
        assert!(registers_written(&add).flags() & RflagsBits::CF != 0);
        assert_eq!(registers_read(&instruction("adc eax, ebx")).flags(), RflagsBits::CF);
        let mul = instruction("mul rbx");
        assert_eq!(names(registers_written(&mul)), [Register::RAX, Register::RDX]);
        let masked = instruction("vaddps zmm31{k3}{z}, zmm1, zmm2");
        assert_eq!(names(registers_read(&masked)), [Register::ZMM1, Register::ZMM2, Register::K3]);
        assert!(
            registers_written(&masked).contains(Register::XMM31)
                && !registers_written(&masked).contains(Register::XMM30)
        );
    }

    #[test]
    fn sets_behave_like_sets() {
        let mut a = RegisterSet::EMPTY;
        a.insert(Register::AH);
        a.insert(Register::YMM3);
        a.insert(Register::CR0);
        let mut b = RegisterSet::EMPTY;
        b.insert(Register::RAX);
        assert_eq!(a.intersection(b), b);
        assert_eq!(a.difference(b).registers().collect::<Vec<_>>(), [Register::ZMM3]);
        assert_eq!(a.union(b), a);
        assert!(RegisterSet::EMPTY.is_empty() && !a.is_empty());
    }

    #[test]
    fn vector_state_depends_on_encoding_and_width() {
        let state = |text: &str| vector_state(parse_assembly(text).unwrap().instructions());
        assert_eq!(state("add rax, rax"), VectorState::default());
        assert_eq!(state("addps xmm0, xmm1"), VectorState { legacy128: true, ..Default::default() });
        assert_eq!(state("vaddps xmm0, xmm1, xmm2"), VectorState { vex128: true, ..Default::default() });
        assert_eq!(state("vpermq zmm0, zmm1, 1").widest_bits(), 512);
        assert_eq!(state("vaddps ymm0, ymm1, ymm2; addps xmm0, xmm1").widest_bits(), 256);
        assert!(state("fadd").x87 && state("fld1").x87 && state("paddb mm0, mm1").mmx);
        assert_eq!(state("paddb mm0, mm1").widest_bits(), 64);
    }
}
