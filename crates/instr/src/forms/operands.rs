//! What a form reads and writes, by operand: the places between which it has a latency.
//!
//! All of it follows from the instruction database. A register operand that can be any of its class is a *slot*; a
//! register that the form implies, or names without choice (`cl`), is *fixed*.

use super::constants::{self, Constant};
use super::settings;
use cyclescope_code::asm::forms::{Choice, Form};
use cyclescope_code::asm::registers::{HIGH_BYTES, numbered};
use iced_x86::{
    Code, Encoder, EncodingKind, Instruction, InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess,
    OpCodeOperandKind as Kind, OpKind, Register, RflagsBits,
};

/// Registers that a value can move between with one instruction of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bank {
    /// General purpose registers of any width but the high bytes.
    General,
    /// AH, CH, DH and BH.
    HighByte,
    /// XMM, YMM and ZMM registers.
    Vector,
    /// Mask registers.
    Mask,
    /// MMX registers.
    Mmx,
    /// x87 registers below the top of the stack.
    X87,
    /// The status flags.
    Flags,
    /// Memory.
    Memory,
    /// Anything else: segment, bound, control registers.
    Other,
}

impl Bank {
    /// The bank of a register.
    pub(crate) fn of(register: Register) -> Bank {
        match register {
            r if HIGH_BYTES.contains(&r) => Bank::HighByte,
            r if r.is_gpr() => Bank::General,
            r if r.is_vector_register() => Bank::Vector,
            r if r.is_k() => Bank::Mask,
            r if r.is_mm() => Bank::Mmx,
            r if r.is_st() => Bank::X87,
            _ => Bank::Other,
        }
    }
}

/// A register that can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slot {
    /// An explicit operand, from 0.
    Operand(u32),
    /// The mask of an EVEX form.
    Mask,
    /// The base of the address.
    Base,
    /// The index of the address.
    Index,
}

impl Slot {
    const COUNT: usize = 8;

    fn index(self) -> usize {
        match self {
            Slot::Operand(operand) => operand as usize,
            Slot::Mask => 5,
            Slot::Base => 6,
            Slot::Index => 7,
        }
    }
}

/// Where an input is read or an output is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// A register that can be chosen.
    Slot(Slot),
    /// This register, and no other.
    Fixed(Register),
    /// These flags, as iced's `RflagsBits`.
    Flags(u32),
    /// The memory operand's data.
    Memory,
}

/// An input or an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// `op1` to `op5`, `flags`, `mask`, `mem_addr`, `mem_data`, or an implicit register's name.
    pub name: String,
    /// Where it is.
    pub place: Place,
    /// What is special about it, where a name has several ports.
    pub variant: Option<&'static str>,
}

/// A form, taken apart.
#[derive(Debug, Clone)]
pub struct Anatomy {
    /// The form.
    pub form: Form,
    /// One instance of it, with distinct registers.
    pub sample: Instruction,
    /// The constant that the sample has, and after it others to try; empty where there is no choice.
    pub constants: Vec<Constant>,
    /// The sample with the constant that the form is measured with: a shift by zero changes no flags, but shifts do.
    usual: Instruction,
    /// What it reads.
    pub inputs: Vec<Port>,
    /// What it writes.
    pub outputs: Vec<Port>,
    /// Implicit registers, by name.
    pub implicit: Vec<String>,
    /// Bytes of its memory operand, 0 without.
    pub memory_bytes: usize,
}

/// Registers chosen for the slots of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Assignment {
    numbers: [Option<u8>; Slot::COUNT],
    /// Added to the base register.
    pub displacement: i32,
}

impl Assignment {
    /// With this register, by its number in its class, in a slot.
    pub(crate) fn with(mut self, slot: Slot, number: u8) -> Assignment {
        self.numbers[slot.index()] = Some(number);
        self
    }

    /// The register's number in a slot.
    pub(crate) fn get(&self, slot: Slot) -> Option<u8> {
        self.numbers[slot.index()]
    }
}

fn reads(access: OpAccess) -> bool {
    // What may not be written keeps what it was.
    !matches!(access, OpAccess::Write | OpAccess::None | OpAccess::NoMemAccess)
}

fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// The status flags: those of general instructions but for direction, interrupts and alignment checks.
const STATUS: u32 =
    RflagsBits::CF | RflagsBits::PF | RflagsBits::AF | RflagsBits::ZF | RflagsBits::SF | RflagsBits::OF;

/// What immediates of one byte are.
const SMALL: i64 = 2;

/// Whether an operand names one register only, or the first of several.
fn is_fixed(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::al
            | Kind::cl
            | Kind::ax
            | Kind::dx
            | Kind::eax
            | Kind::rax
            | Kind::st0
            | Kind::es
            | Kind::cs
            | Kind::ss
            | Kind::ds
            | Kind::fs
            | Kind::gs
            | Kind::kp1_reg
            | Kind::xmmp3_vvvv
            | Kind::zmmp3_vvvv
    )
}

impl Anatomy {
    /// Whether an output, by its name, is a part of a general register, whose rest is kept.
    pub(crate) fn writes_part(&self, name: &str) -> bool {
        let part = |port: &Port| match port.place {
            Place::Slot(slot) => {
                self.bank(port.place) == Bank::HighByte
                    || self.bank(port.place) == Bank::General && self.register(slot).size() < 4
            }
            _ => false,
        };
        self.outputs.iter().any(|port| port.name == name && part(port))
    }

    /// Takes a form apart, its address in a base register; `None` where it has no instance.
    pub fn of(form: Form) -> Option<Anatomy> {
        // R14 has no high byte beside it and needs REX; RDI is what forms with AH can have, and 3DNow!, for which
        // iced 1.22 encodes no REX but another base.
        let bases = match form.code.op_code().encoding() {
            EncodingKind::D3NOW => [Register::RDI; 2],
            _ => [Register::R14, Register::RDI],
        };
        let setting = settings::of(form.code);
        // Counts of shifts above a byte's bits, or selectors of nothing, are not what anybody writes.
        let bytes = form.code.op_code().op_kinds().iter().filter(|kind| **kind == Kind::imm8).count();
        let small = (bytes == 1).then_some(SMALL);
        let choice = |base: &Register| Choice {
            base: *base,
            immediate: setting.immediate.or(small),
            ..Choice::default()
        };
        let sample = bases.iter().find_map(|base| form.instruction(&choice(base)))?;
        let mut constants = constants::of(&sample);
        constants.retain(|constant| constant.put(&sample).is_some());
        let sample = constants.first().and_then(|constant| constant.put(&sample)).unwrap_or(sample);
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(&sample).clone();
        let mut anatomy = Anatomy {
            form,
            sample,
            constants,
            usual: sample,
            inputs: Vec::new(),
            outputs: Vec::new(),
            implicit: Vec::new(),
            memory_bytes: sample.memory_size().size(),
        };
        anatomy.explicit(&info);
        anatomy.implied(&info);
        Some(anatomy)
    }

    /// The same with another constant, and no choice left; `None` where its code can't hold it.
    pub fn with(&self, constant: Constant) -> Option<Anatomy> {
        let sample = constant.put(&self.sample)?;
        Some(Anatomy { sample, constants: vec![constant], ..self.clone() })
    }

    /// The flags that instances of the form change, as iced's `RflagsBits`, whatever their constant is.
    pub(crate) fn flags_modified(&self) -> u32 {
        self.usual.rflags_modified()
    }

    /// Those of them whose values are not defined.
    pub(crate) fn flags_undefined(&self) -> u32 {
        self.usual.rflags_undefined()
    }

    fn add(&mut self, access: OpAccess, name: &str, place: Place) {
        let port = Port { name: name.to_string(), place, variant: None };
        if writes(access) {
            self.outputs.push(port.clone());
        }
        if reads(access) {
            self.inputs.push(port);
        }
    }

    fn explicit(&mut self, info: &InstructionInfo) {
        let sample = self.sample;
        for operand in 0..sample.op_count() {
            let name = format!("op{}", operand + 1);
            match sample.op_kind(operand) {
                OpKind::Register => {
                    let kind = sample.op_code().op_kind(operand);
                    let place = match is_fixed(kind) {
                        true => Place::Fixed(sample.op_register(operand)),
                        false => Place::Slot(Slot::Operand(operand)),
                    };
                    self.add(info.op_access(operand), &name, place);
                }
                OpKind::Memory => self.memory(info.op_access(operand), &name),
                _ => {}
            }
        }
        if sample.op_mask() != Register::None {
            let used = info.used_registers().iter().filter(|used| used.register() == sample.op_mask());
            let written = used.clone().any(|used| writes(used.access()));
            self.add(
                if written { OpAccess::ReadWrite } else { OpAccess::Read },
                "mask",
                Place::Slot(Slot::Mask),
            );
        }
    }

    fn memory(&mut self, access: OpAccess, name: &str) {
        // What a mask keeps of memory is not read.
        let access = if access == OpAccess::CondWrite { OpAccess::Write } else { access };
        if self.is_table() {
            self.add(OpAccess::Read, "mem_addr", Place::Fixed(self.sample.memory_base()));
            return self.add(access, "mem_data", Place::Memory);
        }
        if self.sample.memory_base() != Register::None && self.sample.memory_base() != Register::RIP {
            self.add(OpAccess::Read, "mem_addr", Place::Slot(Slot::Base));
        }
        let index = self.sample.memory_index();
        if index.is_vector_register() {
            self.add(OpAccess::Read, name, Place::Slot(Slot::Index));
        } else if index != Register::None {
            let variant = Some("index").filter(|_| self.sample.memory_base() != Register::None);
            let place = Place::Slot(Slot::Index);
            self.inputs.push(Port { name: "mem_addr".to_string(), place, variant });
        }
        self.add(access, "mem_data", Place::Memory);
    }

    fn implied(&mut self, info: &InstructionInfo) {
        let sample = self.sample;
        // XLATB's index is its result too.
        let index = if self.is_table() { Register::None } else { sample.memory_index() };
        let explicit: Vec<Register> = (0..sample.op_count())
            .map(|operand| sample.op_register(operand))
            .chain([sample.memory_base(), index, sample.op_mask()])
            .map(Register::full_register)
            .collect();
        let mut found: Vec<(Register, bool, bool)> = Vec::new();
        for used in info.used_registers() {
            let (register, access) = (used.register(), used.access());
            if explicit.contains(&register.full_register()) {
                continue;
            }
            match found.iter_mut().find(|(known, ..)| known.full_register() == register.full_register()) {
                Some((known, read, written)) => {
                    *read |= reads(access);
                    *written |= writes(access);
                    if register.size() < known.size() {
                        *known = register;
                    }
                }
                None => found.push((register, reads(access), writes(access))),
            }
        }
        for (register, read, written) in found {
            let access = match (read, written) {
                (true, true) => OpAccess::ReadWrite,
                (true, false) => OpAccess::Read,
                (false, true) => OpAccess::Write,
                (false, false) => continue,
            };
            // What clears the upper part of a vector register counts as a write of the whole.
            let register =
                if register.is_zmm() { Register::XMM0 + register.number() as u32 } else { register };
            // A result of 32 bits clears the rest, which counts as a write of the whole too.
            let narrow = sample.op_code().operand_size() == 32 && register.is_gpr64();
            let register = if narrow { Register::EAX + register.number() as u32 } else { register };
            let name = format!("{register:?}").to_lowercase();
            self.add(access, &name, Place::Fixed(register));
            self.implicit.push(name);
        }
        let (read, written) = (sample.rflags_read() & STATUS, sample.rflags_written() & STATUS);
        if read != 0 {
            self.add(OpAccess::Read, "flags", Place::Flags(read));
        }
        if written != 0 {
            self.add(OpAccess::Write, "flags", Place::Flags(written));
        }
    }

    /// The register in a slot of the sample; its class is that of the slot.
    pub(crate) fn register(&self, slot: Slot) -> Register {
        match slot {
            Slot::Operand(operand) => self.sample.op_register(operand),
            Slot::Mask => self.sample.op_mask(),
            Slot::Base => self.sample.memory_base(),
            Slot::Index => self.sample.memory_index(),
        }
    }

    /// The bank of a place.
    pub(crate) fn bank(&self, place: Place) -> Bank {
        match place {
            Place::Slot(slot) => Bank::of(self.register(slot)),
            Place::Fixed(register) => Bank::of(register),
            Place::Flags(_) => Bank::Flags,
            Place::Memory => Bank::Memory,
        }
    }

    /// Whether its address is that of a table entry, [rbx+al].
    fn is_table(&self) -> bool {
        self.sample.mnemonic() == Mnemonic::Xlatb
    }

    /// All slots of the form.
    pub fn slots(&self) -> Vec<Slot> {
        let operands = (0..self.sample.op_count()).filter(|operand| {
            self.sample.op_kind(*operand) == OpKind::Register
                && !is_fixed(self.sample.op_code().op_kind(*operand))
        });
        let mut slots: Vec<Slot> = operands.map(Slot::Operand).collect();
        let memory =
            (0..self.sample.op_count()).any(|operand| self.sample.op_kind(operand) == OpKind::Memory);
        let memory = memory && !self.is_table();
        for (slot, named) in [(Slot::Mask, true), (Slot::Base, memory), (Slot::Index, memory)] {
            let register = self.register(slot);
            if named && register != Register::None && register != Register::RIP {
                slots.push(slot);
            }
        }
        slots
    }

    /// Whether an instance writes what a place holds.
    pub fn writes(&self, place: Place) -> bool {
        self.outputs.iter().any(|port| port.place == place)
    }

    /// Whether an instance writes this full register, or a part of it, without choice.
    pub(crate) fn writes_register(&self, full: Register) -> bool {
        self.outputs
            .iter()
            .any(|port| matches!(port.place, Place::Fixed(other) if other.full_register() == full))
    }

    /// Whether an instance reads what a place holds.
    pub(crate) fn reads(&self, place: Place) -> bool {
        self.inputs.iter().any(|port| port.place == place)
    }

    /// Full registers that the form uses without choice.
    pub(crate) fn fixed(&self) -> Vec<Register> {
        let sample = &self.sample;
        let named = (0..sample.op_count())
            .filter(|operand| sample.op_kind(*operand) == OpKind::Register)
            .filter(|operand| is_fixed(sample.op_code().op_kind(*operand)))
            .map(|operand| sample.op_register(operand));
        let ports = self.inputs.iter().chain(&self.outputs);
        let implied = ports.filter_map(|port| match port.place {
            Place::Fixed(register) => Some(register),
            _ => None,
        });
        named.chain(implied).map(Register::full_register).collect()
    }

    /// An instance with these registers; `None` where it does not exist or would be another instruction.
    pub(crate) fn instance(&self, assignment: &Assignment) -> Option<Instruction> {
        let mut instruction = self.sample;
        for slot in self.slots() {
            let Some(number) = assignment.get(slot) else { continue };
            let register = numbered(self.register(slot), u32::from(number))?;
            match slot {
                Slot::Operand(operand) => instruction.set_op_register(operand, register),
                Slot::Mask => instruction.set_op_mask(register),
                Slot::Base => instruction.set_memory_base(register),
                Slot::Index => instruction.set_memory_index(register),
            }
        }
        if assignment.displacement != 0 {
            instruction.set_memory_displacement64(assignment.displacement as i64 as u64);
            instruction.set_memory_displ_size(1);
        }
        Some(instruction)
    }

    /// Whether the flags may stay what they were: shifts by a count that can be zero change none then.
    pub(crate) fn keeps_flags(&self) -> bool {
        use Mnemonic::{Rcl, Rcr, Rol, Ror, Sal, Sar, Shl, Shld, Shr, Shrd};
        let sample = &self.sample;
        let counted = sample.op_code().op_kinds().contains(&Kind::cl);
        counted && matches!(sample.mnemonic(), Rcl | Rcr | Rol | Ror | Sal | Sar | Shl | Shld | Shr | Shrd)
    }

    /// The instruction.
    pub(crate) fn code(&self) -> Code {
        self.form.code
    }
}

/// The machine code of instructions, branches relative to each other's place; `None` where one cannot be encoded.
pub fn encode(instructions: &[Instruction]) -> Option<Vec<u8>> {
    let mut encoder = Encoder::new(64);
    let mut at = 0;
    for instruction in instructions {
        at += encoder.encode(instruction, at).ok()? as u64;
    }
    Some(encoder.take_buffer())
}
