//! The key of an instruction form on the simulated machine.

use cyclescope_core::random::{Random, mix_seeds};
use iced_x86::{Code, Instruction, OpKind, Register};

/// The properties that distinguish forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FormKey {
    code: Code,
    /// Memory operands, as bits, and above them operands in ah to bh.
    operands: u16,
    masking: u8,
    /// Broadcast, lock, repeat, and whether all register operands are the same.
    bits: u8,
    /// Parts of LEA's address.
    address: u8,
    /// The class of the immediate.
    constant: ImmediateClass,
}

/// Classes of immediates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ImmediateClass {
    /// It is zero.
    Zero,
    /// It is one.
    One,
    /// All its bits are set.
    Ones,
    /// Any other value, or no immediate.
    Other,
}

impl ImmediateClass {
    fn from_instruction(instruction: &Instruction) -> ImmediateClass {
        let is_immediate = |operand: &u32| {
            use OpKind::{Immediate8, Immediate16, Immediate32, Immediate64};
            use OpKind::{Immediate8to16, Immediate8to32, Immediate8to64, Immediate32to64};
            matches!(
                instruction.op_kind(*operand),
                Immediate8
                    | Immediate16
                    | Immediate32
                    | Immediate64
                    | Immediate8to16
                    | Immediate8to32
                    | Immediate8to64
                    | Immediate32to64
            )
        };
        let Some(operand) = (0..instruction.op_count()).find(is_immediate) else {
            return ImmediateClass::Other;
        };
        match (instruction.immediate(operand), instruction.op_kind(operand)) {
            (0, _) => ImmediateClass::Zero,
            (1, _) => ImmediateClass::One,
            (u64::MAX, _) | (0xff, OpKind::Immediate8) => ImmediateClass::Ones,
            _ => ImmediateClass::Other,
        }
    }
}

impl FormKey {
    pub(super) fn from_instruction(instruction: &Instruction) -> FormKey {
        let mut operands = 0;
        for number in 0..instruction.op_count() {
            let memory =
                !matches!(instruction.op_kind(number), OpKind::Register) && is_memory_operand(instruction, number);
            let high =
                Register::AH <= instruction.op_register(number) && instruction.op_register(number) <= Register::BH;
            operands |= u16::from(memory) << number | u16::from(high) << (8 + number);
        }
        let masking = if instruction.has_op_mask() { 1 + u8::from(instruction.zeroing_masking()) } else { 0 };
        let repeated =
            instruction.is_string_instruction() && (instruction.has_rep_prefix() || instruction.has_repne_prefix());
        let bits =
            [instruction.is_broadcast(), instruction.has_lock_prefix(), repeated, has_equal_sources(instruction)];
        let bits = bits.iter().enumerate().fold(0, |all, (bit, set)| all | u8::from(*set) << bit);
        let lea = instruction.mnemonic() == iced_x86::Mnemonic::Lea;
        let address = if lea { find_address_parts(instruction) } else { 0 };
        let constant = ImmediateClass::from_instruction(instruction);
        FormKey { code: instruction.code(), operands, masking, bits, address, constant }
    }

    pub(super) fn constant(&self) -> ImmediateClass {
        self.constant
    }

    /// The same form with an ordinary constant.
    pub(super) fn with_ordinary_constant(&self) -> FormKey {
        FormKey { constant: ImmediateClass::Other, ..*self }
    }

    pub(super) fn has_equal_registers(&self) -> bool {
        self.bits & 8 != 0
    }

    pub(super) fn is_repeated(&self) -> bool {
        self.bits & 4 != 0
    }

    pub(super) fn is_locked(&self) -> bool {
        self.bits & 2 != 0
    }

    pub(super) fn address_parts(&self) -> u8 {
        self.address
    }

    /// Random numbers from a machine's seed and this form.
    pub(super) fn seeded_random(&self, seed: u64) -> Random {
        // The variant with equal registers has the figures of its form, except for deliberate
        // changes.
        let parts = [self.code as u64, self.operands.into(), self.masking.into(), u64::from(self.bits & !8)];
        Random::new(parts.into_iter().chain([self.address.into()]).fold(seed, mix_seeds))
    }
}

fn is_memory_operand(instruction: &Instruction, number: u32) -> bool {
    use OpKind::{
        Memory, MemoryESDI, MemoryESEDI, MemoryESRDI, MemorySegDI, MemorySegEDI, MemorySegESI, MemorySegRDI,
        MemorySegRSI, MemorySegSI,
    };
    matches!(
        instruction.op_kind(number),
        Memory
            | MemoryESDI
            | MemoryESEDI
            | MemoryESRDI
            | MemorySegDI
            | MemorySegEDI
            | MemorySegESI
            | MemorySegRDI
            | MemorySegRSI
            | MemorySegSI
    )
}

/// Whether the last two register operands are one register. With three operands these are the
/// sources.
fn has_equal_sources(instruction: &Instruction) -> bool {
    let kinds = (0..instruction.op_count()).filter(|number| instruction.op_kind(*number) == OpKind::Register);
    let registers: Vec<Register> = kinds.map(|number| instruction.op_register(number)).collect();
    let memory = (0..instruction.op_count()).any(|number| is_memory_operand(instruction, number));
    matches!(registers[..], [.., a, b] if a == b && !memory)
}

fn find_address_parts(instruction: &Instruction) -> u8 {
    let base = instruction.memory_base() != Register::None;
    let index = instruction.memory_index() != Register::None;
    let scaled = index && instruction.memory_index_scale() > 1;
    let displaced = instruction.memory_displacement64() != 0 && !instruction.is_ip_rel_memory_operand();
    [base, index, scaled, displaced].iter().enumerate().fold(0, |all, (bit, set)| all | u8::from(*set) << bit)
}
