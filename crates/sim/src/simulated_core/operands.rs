//! Inputs and outputs of an instruction, with the names of an instruction table.
//!
//! The database is queried for an instance with registers that differ from each other and from all
//! implied ones. Otherwise `add rax, rax` would have one operand, and `mul rax` only the implied
//! ones.

use iced_x86::{
    Instruction, InstructionInfoFactory, OpAccess, OpCodeOperandKind as Kind, OpKind, Register, RflagsBits,
};

/// An input or an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SimulatedSlot {
    /// An explicit register operand, counted from 0.
    Operand(u8),
    /// A register that the instruction implies.
    Implicit(Register),
    Flags,
    /// The mask of an EVEX instruction.
    Mask,
    /// The registers of an address.
    Address,
    /// The contents of memory.
    Memory,
}

impl SimulatedSlot {
    pub(super) fn name(self) -> String {
        match self {
            SimulatedSlot::Operand(number) => format!("op{}", number + 1),
            // All implied vectors are xmm.
            SimulatedSlot::Implicit(vector) if vector.is_zmm() => format!("xmm{}", vector.number()),
            SimulatedSlot::Implicit(register) => format!("{register:?}").to_lowercase(),
            SimulatedSlot::Flags => String::from("flags"),
            SimulatedSlot::Mask => String::from("mask"),
            SimulatedSlot::Address => String::from("mem_addr"),
            SimulatedSlot::Memory => String::from("mem_data"),
        }
    }
}

/// The condition codes of x87, without the one that reports stack faults.
const X87_CONDITIONS: u32 = RflagsBits::C0 | RflagsBits::C2 | RflagsBits::C3;

/// Flags that are renamed together.
pub(super) const FLAG_GROUPS: [u32; 4] =
    [RflagsBits::CF, RflagsBits::OF, RflagsBits::ZF | RflagsBits::SF | RflagsBits::PF | RflagsBits::AF, X87_CONDITIONS];

/// Inputs and outputs of an instruction.
#[derive(Debug, Clone, Default)]
pub(super) struct SimulatedOperands {
    pub(super) inputs: Vec<SimulatedSlot>,
    pub(super) outputs: Vec<SimulatedSlot>,
    /// Implied address registers that the instruction advances: they depend on nothing else.
    pub(super) updates: Vec<Register>,
    pub(super) loads: usize,
    pub(super) stores: usize,
    /// Groups of flags, as bits.
    pub(super) flags_read: u8,
    pub(super) flags_written: u8,
    /// Whether it touches registers other than the general ones.
    pub(super) vector: bool,
}

impl SimulatedOperands {
    pub(super) fn from_instruction(instruction: &Instruction) -> SimulatedOperands {
        let plain = with_distinct_registers(instruction);
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(&plain);
        let mut found = SimulatedOperands {
            loads: info.used_memory().iter().filter(|memory| reads_memory(memory.access())).count(),
            stores: info.used_memory().iter().filter(|memory| is_write(memory.access())).count(),
            flags_read: flag_groups(plain.rflags_read()),
            // All x87 arithmetic leaves its conditions undefined, and no core is known to wait for
            // them.
            flags_written: flag_groups(plain.rflags_modified() & !(plain.rflags_undefined() & X87_CONDITIONS)),
            ..SimulatedOperands::default()
        };
        let mut named: Vec<Register> =
            [plain.memory_base(), plain.memory_index(), plain.op_mask()].map(Register::full_register).into();
        for number in 0..plain.op_count() {
            let register = plain.op_register(number);
            if plain.op_kind(number) == OpKind::Register {
                named.push(register.full_register());
                found.add_register(SimulatedSlot::Operand(number as u8), register, info.op_access(number));
            }
        }
        let bases: Vec<Register> = info.used_memory().iter().map(|memory| memory.base()).collect();
        for used in info.used_registers() {
            let (register, full) = (used.register(), used.register().full_register());
            if full == plain.op_mask().full_register() && plain.has_op_mask() {
                found.add_register(SimulatedSlot::Mask, register, used.access());
            } else if !named.contains(&full) && !register.is_segment_register() && !register.is_ip() {
                found.add_register(SimulatedSlot::Implicit(full), register, used.access());
                if bases.contains(&full) && is_write(used.access()) && !found.updates.contains(&full) {
                    found.updates.push(full);
                }
            }
        }
        if plain.fpu_stack_increment_info().increment() < 0 {
            // The database leaves out the pushed register.
            found.add_register(SimulatedSlot::Implicit(Register::ST0), Register::ST0, OpAccess::Write);
        }
        found.add_flags_and_memory(&plain);
        found
    }

    fn add_register(&mut self, slot: SimulatedSlot, register: Register, access: OpAccess) {
        let partial = register.is_gpr8() || register.is_gpr16();
        let keeps_rest = partial && is_write(access);
        if (is_read(access) || keeps_rest) && !self.inputs.contains(&slot) {
            self.inputs.push(slot);
        }
        if is_write(access) && !self.outputs.contains(&slot) {
            self.outputs.push(slot);
        }
        self.vector |= !register.is_gpr();
    }

    fn add_flags_and_memory(&mut self, instruction: &Instruction) {
        if self.flags_read != 0 {
            self.inputs.push(SimulatedSlot::Flags);
        }
        if self.flags_written != 0 {
            self.outputs.push(SimulatedSlot::Flags);
        }
        let registers = [instruction.memory_base(), instruction.memory_index()];
        let named = registers.iter().any(|register| *register != Register::None && !register.is_ip());
        if named || self.loads + self.stores > 0 {
            self.inputs.push(SimulatedSlot::Address);
        }
        if self.loads > 0 {
            self.inputs.push(SimulatedSlot::Memory);
        }
        if self.stores > 0 {
            self.outputs.push(SimulatedSlot::Memory);
        }
    }
}

pub(super) fn reads_memory(access: OpAccess) -> bool {
    is_read(access) && access != OpAccess::CondWrite
}

/// A conditionally written register keeps its old value otherwise, which counts as a read.
fn is_read(access: OpAccess) -> bool {
    !matches!(access, OpAccess::Write | OpAccess::None | OpAccess::NoMemAccess)
}

pub(super) fn is_write(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

fn flag_groups(flags: u32) -> u8 {
    FLAG_GROUPS.iter().enumerate().fold(0, |bits, (bit, group)| bits | u8::from(flags & group != 0) << bit)
}

/// The same form with other registers.
fn with_distinct_registers(instruction: &Instruction) -> Instruction {
    let mut plain = *instruction;
    let info = instruction.op_code();
    for number in 0..instruction.op_count() {
        if instruction.op_kind(number) == OpKind::Register && !is_fixed_register(info.op_kind(number)) {
            plain.set_op_register(number, distinct_register(instruction.op_register(number), number));
        }
    }
    let base = instruction.memory_base();
    if base.is_gpr64() || base.is_gpr32() {
        plain.set_memory_base(Register::R13);
    }
    let index = instruction.memory_index();
    if index.is_gpr64() || index.is_gpr32() {
        plain.set_memory_index(Register::R14);
    } else if index.is_vector_register() {
        plain.set_memory_index(distinct_register(index, 7));
    }
    if instruction.has_op_mask() {
        plain.set_op_mask(Register::K7);
    }
    plain
}

fn distinct_register(register: Register, number: u32) -> Register {
    let first = match register {
        r if r.is_gpr8() => Register::R8L,
        r if r.is_gpr16() => Register::R8W,
        r if r.is_gpr32() => Register::R8D,
        r if r.is_gpr64() => Register::R8,
        r if r.is_xmm() => Register::XMM8,
        r if r.is_ymm() => Register::YMM8,
        r if r.is_zmm() => Register::ZMM8,
        r if r.is_k() => Register::K2,
        r if r.is_mm() => Register::MM3,
        r if r.is_st() => Register::ST3,
        r if r.is_tmm() => Register::TMM2,
        other => return other,
    };
    first + number
}

/// Operands that allow one register only, or the first of a group.
fn is_fixed_register(kind: Kind) -> bool {
    use Kind::{al, ax, cl, cs, ds, dx, eax, es, fs, gs, kp1_reg, rax, ss, st0, xmmp3_vvvv, zmmp3_vvvv};
    matches!(
        kind,
        al | ax | cl | cs | ds | dx | eax | es | fs | gs | kp1_reg | rax | ss | st0 | xmmp3_vvvv | zmmp3_vvvv
    )
}
