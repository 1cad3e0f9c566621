//! Facts about register values that hold before the code runs, on every path.

use super::decode::DecodedInstruction;
use iced_x86::{Code, OpKind, Register};

/// Known facts about the value of one register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum RegisterFact {
    /// Nothing.
    #[default]
    Unknown,
    /// Its lower 32 bits.
    Constant(u32),
    /// It was read from CR0.
    Cr0,
    /// It is the lower half of XCR0.
    Xcr0Low,
    /// It is the upper half of XCR0.
    Xcr0High,
}

/// Known facts about the 16 general registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RegisterFacts([RegisterFact; 16]);

const EAX: usize = 0;
const ECX: usize = 1;
const EDX: usize = 2;

impl RegisterFacts {
    /// Drops the facts that another path does not confirm. Returns whether any were dropped.
    pub(crate) fn intersect(&mut self, other: &RegisterFacts) -> bool {
        let before = *self;
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            if own != other {
                *own = RegisterFact::Unknown;
            }
        }
        *self != before
    }

    /// Forgets one register.
    pub(crate) fn forget_register(&mut self, register: usize) {
        self.0[register] = RegisterFact::Unknown;
    }

    /// ECX, if it is a known constant.
    pub(crate) fn known_ecx(&self) -> Option<u32> {
        match self.0[ECX] {
            RegisterFact::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Whether a register holds a value read from CR0.
    pub(crate) fn holds_cr0(&self, register: Register) -> bool {
        register.is_gpr64() && self.0[register.number()] == RegisterFact::Cr0
    }

    /// Whether XSETBV would write the current value.
    pub(crate) fn holds_xcr0(&self) -> bool {
        self.known_ecx() == Some(0) && self.0[EAX] == RegisterFact::Xcr0Low && self.0[EDX] == RegisterFact::Xcr0High
    }

    /// The facts after an instruction.
    pub(crate) fn facts_after(&self, decoded: &DecodedInstruction) -> RegisterFacts {
        if !decoded.sure {
            return RegisterFacts::default();
        }
        let mut after = *self;
        for register in (0..16).filter(|register| decoded.writes & (1 << register) != 0) {
            after.forget_register(register);
        }
        let instruction = &decoded.instruction;
        let (to, from) = (instruction.op0_register(), instruction.op1_register());
        let to_register = instruction.op0_kind() == OpKind::Register;
        match instruction.code() {
            Code::Mov_r32_imm32 | Code::Mov_r64_imm64 | Code::Mov_rm64_imm32 | Code::Mov_rm32_imm32 if to_register => {
                after.0[to.number()] = RegisterFact::Constant(instruction.immediate(1) as u32);
            }
            Code::Xor_r32_rm32 | Code::Xor_rm32_r32 | Code::Xor_r64_rm64 | Code::Xor_rm64_r64
                if to_register && to == from =>
            {
                after.0[to.number()] = RegisterFact::Constant(0);
            }
            // On some processors a LOCK prefix turns it into CR8.
            Code::Mov_r64_cr if from == Register::CR0 && !decoded.locked => {
                after.0[to.number()] = RegisterFact::Cr0;
            }
            Code::Xgetbv if self.known_ecx() == Some(0) => {
                after.0[EAX] = RegisterFact::Xcr0Low;
                after.0[EDX] = RegisterFact::Xcr0High;
            }
            _ => {}
        }
        after
    }
}
