//! The anatomy of a form: what it reads and writes, by operand. A latency runs between two of these
//! places.
//!
//! All of it follows from the instruction database. A register operand that may be any of its class
//! is a *slot*. A register that the form implies or names explicitly (`cl`) is *fixed*.

use super::encoded_constant::{self, EncodedConstant};
use super::instruction_setting;
use cyclescope_code::asm::CodeMode;
use cyclescope_code::asm::forms::{InstructionForm, OperandChoice};
use cyclescope_code::asm::registers::{HIGH_BYTES, nth_register_like};
use iced_x86::{
    Code, Encoder, EncodingKind, Instruction, InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess,
    OpCodeOperandKind as Kind, OpKind, Register, RflagsBits,
};

/// Registers between which one instruction of one kind can move a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RegisterBank {
    /// General purpose registers of any width, except the high bytes.
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

impl RegisterBank {
    /// The bank of this register.
    pub(crate) fn from_register(register: Register) -> RegisterBank {
        match register {
            r if HIGH_BYTES.contains(&r) => RegisterBank::HighByte,
            r if r.is_gpr() => RegisterBank::General,
            r if r.is_vector_register() => RegisterBank::Vector,
            r if r.is_k() => RegisterBank::Mask,
            r if r.is_mm() => RegisterBank::Mmx,
            r if r.is_st() => RegisterBank::X87,
            _ => RegisterBank::Other,
        }
    }
}

/// A register operand that may be any of its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegisterSlot {
    /// An explicit operand, numbered from 0.
    Operand(u32),
    /// The mask of an EVEX form.
    Mask,
    /// The base of the address.
    Base,
    /// The index of the address.
    Index,
}

impl RegisterSlot {
    const COUNT: usize = 8;

    fn index(self) -> usize {
        match self {
            RegisterSlot::Operand(operand) => operand as usize,
            RegisterSlot::Mask => 5,
            RegisterSlot::Base => 6,
            RegisterSlot::Index => 7,
        }
    }
}

/// Where an input is read or an output is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperandPlace {
    /// A register of free choice.
    Slot(RegisterSlot),
    /// This register only.
    Fixed(Register),
    /// These flags, in iced's `RflagsBits`.
    Flags(u32),
    /// The memory operand's data.
    Memory,
}

/// An input or an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperandPort {
    /// `op1` to `op5`, `flags`, `mask`, `mem_addr`, `mem_data`, or an implicit register's name.
    pub name: String,
    /// The register, flags or memory that holds it.
    pub place: OperandPlace,
    /// Distinguishes several ports of one name.
    pub variant: Option<&'static str>,
}

/// A form and all that it reads and writes.
#[derive(Debug, Clone)]
pub struct FormAnatomy {
    /// The form itself.
    pub form: InstructionForm,
    /// An instance with distinct registers.
    pub sample: Instruction,
    /// The sample's constant, then others to try. Empty if there is no choice.
    pub constants: Vec<EncodedConstant>,
    /// The sample with the form's general constant. Its flags apply to the form: a shift by zero
    /// changes none, but shifts in general do.
    general: Instruction,
    /// What it reads.
    pub inputs: Vec<OperandPort>,
    /// What it writes.
    pub outputs: Vec<OperandPort>,
    /// Names of implicit registers.
    pub implicit: Vec<String>,
    /// Bytes of the memory operand, or 0.
    pub memory_bytes: usize,
}

/// Registers chosen for the slots of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RegisterAssignment {
    numbers: [Option<u8>; RegisterSlot::COUNT],
    /// Added to the base register.
    pub displacement: i32,
}

impl RegisterAssignment {
    /// Puts the register with this number in its class into a slot.
    pub(crate) fn with_register(mut self, slot: RegisterSlot, number: u8) -> RegisterAssignment {
        self.numbers[slot.index()] = Some(number);
        self
    }

    /// The number of the register in a slot.
    pub(crate) fn get(&self, slot: RegisterSlot) -> Option<u8> {
        self.numbers[slot.index()]
    }
}

fn is_read(access: OpAccess) -> bool {
    // A conditional write may leave the old value, so it also reads it.
    !matches!(access, OpAccess::Write | OpAccess::None | OpAccess::NoMemAccess)
}

fn is_write(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// The status flags: all that general instructions change, without direction, interrupt and
/// alignment check.
const STATUS_FLAGS: u32 =
    RflagsBits::CF | RflagsBits::PF | RflagsBits::AF | RflagsBits::ZF | RflagsBits::SF | RflagsBits::OF;

/// Default of one-byte immediates.
const SMALL_IMMEDIATE: i64 = 2;

/// Whether an operand kind names one register, or the first of a group.
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

impl FormAnatomy {
    /// Whether the named output is a part of a general register and leaves the rest unchanged.
    pub(crate) fn writes_part(&self, name: &str) -> bool {
        let part = |port: &OperandPort| match port.place {
            OperandPlace::Slot(slot) => {
                self.place_bank(port.place) == RegisterBank::HighByte
                    || self.place_bank(port.place) == RegisterBank::General && self.slot_register(slot).size() < 4
            }
            _ => false,
        };
        self.outputs.iter().any(|port| port.name == name && part(port))
    }

    /// Analyses a form, with its address in a base register. `None` if it has no instance.
    pub fn from_form(form: InstructionForm) -> Option<FormAnatomy> {
        // R14 has no high byte and needs REX. RDI is for forms with AH, which exclude REX. It is
        // also for 3DNow!, where iced 1.22 omits the REX and so encodes another base.
        let bases = match (form.mode, form.code.op_code().encoding()) {
            (CodeMode::Bits32, _) => [Register::EDI; 2],
            (_, EncodingKind::D3NOW) => [Register::RDI; 2],
            _ => [Register::R14, Register::RDI],
        };
        let setting = instruction_setting::find_setting(form.code);
        // Shift counts beyond 8 bits and selectors of nothing don't occur in practice.
        let bytes = form.code.op_code().op_kinds().iter().filter(|kind| **kind == Kind::imm8).count();
        let small = (bytes == 1).then_some(SMALL_IMMEDIATE);
        let choice = |base: &Register| OperandChoice {
            base: *base,
            immediate: setting.immediate.or(small),
            ..OperandChoice::default()
        };
        let sample = bases.iter().find_map(|base| form.build_instruction(&choice(base)))?;
        let mut constants = encoded_constant::list_constants(&sample);
        constants.retain(|constant| constant.apply_to(&sample).is_some());
        let sample = constants.first().and_then(|constant| constant.apply_to(&sample)).unwrap_or(sample);
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(&sample).clone();
        let mut anatomy = FormAnatomy {
            form,
            sample,
            constants,
            general: sample,
            inputs: Vec::new(),
            outputs: Vec::new(),
            implicit: Vec::new(),
            memory_bytes: sample.memory_size().size(),
        };
        anatomy.add_explicit(&info);
        anatomy.add_implied(&info);
        Some(anatomy)
    }

    /// The same form with this constant only. `None` if its code can't hold the constant.
    pub fn with_constant(&self, constant: EncodedConstant) -> Option<FormAnatomy> {
        let sample = constant.apply_to(&self.sample)?;
        Some(FormAnatomy { sample, constants: vec![constant], ..self.clone() })
    }

    /// The flags that the form changes with its general constant, in iced's `RflagsBits`.
    pub(crate) fn flags_modified(&self) -> u32 {
        self.general.rflags_modified()
    }

    /// The flags that the form leaves undefined.
    pub(crate) fn flags_undefined(&self) -> u32 {
        self.general.rflags_undefined()
    }

    fn add_port(&mut self, access: OpAccess, name: &str, place: OperandPlace) {
        let port = OperandPort { name: name.to_string(), place, variant: None };
        if is_write(access) {
            self.outputs.push(port.clone());
        }
        if is_read(access) {
            self.inputs.push(port);
        }
    }

    fn add_explicit(&mut self, info: &InstructionInfo) {
        let sample = self.sample;
        for operand in 0..sample.op_count() {
            let name = format!("op{}", operand + 1);
            match sample.op_kind(operand) {
                OpKind::Register => {
                    let kind = sample.op_code().op_kind(operand);
                    let place = match is_fixed(kind) {
                        true => OperandPlace::Fixed(sample.op_register(operand)),
                        false => OperandPlace::Slot(RegisterSlot::Operand(operand)),
                    };
                    self.add_port(info.op_access(operand), &name, place);
                }
                OpKind::Memory => self.add_memory(info.op_access(operand), &name),
                _ => {}
            }
        }
        if sample.op_mask() != Register::None {
            let used = info.used_registers().iter().filter(|used| used.register() == sample.op_mask());
            let written = used.clone().any(|used| is_write(used.access()));
            self.add_port(
                if written { OpAccess::ReadWrite } else { OpAccess::Read },
                "mask",
                OperandPlace::Slot(RegisterSlot::Mask),
            );
        }
    }

    fn add_memory(&mut self, access: OpAccess, name: &str) {
        // Memory elements that a mask keeps are not read.
        let access = if access == OpAccess::CondWrite { OpAccess::Write } else { access };
        if self.is_table_lookup() {
            self.add_port(OpAccess::Read, "mem_addr", OperandPlace::Fixed(self.sample.memory_base()));
            return self.add_port(access, "mem_data", OperandPlace::Memory);
        }
        if self.sample.memory_base() != Register::None && self.sample.memory_base() != Register::RIP {
            self.add_port(OpAccess::Read, "mem_addr", OperandPlace::Slot(RegisterSlot::Base));
        }
        let index = self.sample.memory_index();
        if index.is_vector_register() {
            self.add_port(OpAccess::Read, name, OperandPlace::Slot(RegisterSlot::Index));
        } else if index != Register::None {
            let variant = Some("index").filter(|_| self.sample.memory_base() != Register::None);
            let place = OperandPlace::Slot(RegisterSlot::Index);
            self.inputs.push(OperandPort { name: "mem_addr".to_string(), place, variant });
        }
        self.add_port(access, "mem_data", OperandPlace::Memory);
    }

    fn add_implied(&mut self, info: &InstructionInfo) {
        let sample = self.sample;
        // XLATB's index is also its result.
        let index = if self.is_table_lookup() { Register::None } else { sample.memory_index() };
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
                    *read |= is_read(access);
                    *written |= is_write(access);
                    if register.size() < known.size() {
                        *known = register;
                    }
                }
                None => found.push((register, is_read(access), is_write(access))),
            }
        }
        for (register, read, written) in found {
            let access = match (read, written) {
                (true, true) => OpAccess::ReadWrite,
                (true, false) => OpAccess::Read,
                (false, true) => OpAccess::Write,
                (false, false) => continue,
            };
            // Clearing the upper part of a vector register counts as a write of the whole.
            let register = if register.is_zmm() { Register::XMM0 + register.number() as u32 } else { register };
            // A result of 32 bits clears the upper half, which also counts as a write of the whole.
            let narrow = sample.op_code().operand_size() == 32 && register.is_gpr64();
            let register = if narrow { Register::EAX + register.number() as u32 } else { register };
            let name = format!("{register:?}").to_lowercase();
            self.add_port(access, &name, OperandPlace::Fixed(register));
            self.implicit.push(name);
        }
        let (read, written) = (sample.rflags_read() & STATUS_FLAGS, sample.rflags_written() & STATUS_FLAGS);
        if read != 0 {
            self.add_port(OpAccess::Read, "flags", OperandPlace::Flags(read));
        }
        if written != 0 {
            self.add_port(OpAccess::Write, "flags", OperandPlace::Flags(written));
        }
    }

    /// The sample's register in a slot. It shows the slot's register class.
    pub(crate) fn slot_register(&self, slot: RegisterSlot) -> Register {
        match slot {
            RegisterSlot::Operand(operand) => self.sample.op_register(operand),
            RegisterSlot::Mask => self.sample.op_mask(),
            RegisterSlot::Base => self.sample.memory_base(),
            RegisterSlot::Index => self.sample.memory_index(),
        }
    }

    /// The bank of this place.
    pub(crate) fn place_bank(&self, place: OperandPlace) -> RegisterBank {
        match place {
            OperandPlace::Slot(slot) => RegisterBank::from_register(self.slot_register(slot)),
            OperandPlace::Fixed(register) => RegisterBank::from_register(register),
            OperandPlace::Flags(_) => RegisterBank::Flags,
            OperandPlace::Memory => RegisterBank::Memory,
        }
    }

    /// Whether the address is a table lookup, `[rbx+al]`.
    fn is_table_lookup(&self) -> bool {
        self.sample.mnemonic() == Mnemonic::Xlatb
    }

    /// All slots of the form.
    pub fn slots(&self) -> Vec<RegisterSlot> {
        let operands = (0..self.sample.op_count()).filter(|operand| {
            self.sample.op_kind(*operand) == OpKind::Register && !is_fixed(self.sample.op_code().op_kind(*operand))
        });
        let mut slots: Vec<RegisterSlot> = operands.map(RegisterSlot::Operand).collect();
        let memory = (0..self.sample.op_count()).any(|operand| self.sample.op_kind(operand) == OpKind::Memory);
        let memory = memory && !self.is_table_lookup();
        for (slot, named) in [(RegisterSlot::Mask, true), (RegisterSlot::Base, memory), (RegisterSlot::Index, memory)] {
            let register = self.slot_register(slot);
            if named && register != Register::None && register != Register::RIP {
                slots.push(slot);
            }
        }
        slots
    }

    /// Whether an instance writes this place.
    pub fn writes_place(&self, place: OperandPlace) -> bool {
        self.outputs.iter().any(|port| port.place == place)
    }

    /// Whether an instance always writes this full register, or a part of it.
    pub(crate) fn writes_register(&self, full: Register) -> bool {
        self.outputs
            .iter()
            .any(|port| matches!(port.place, OperandPlace::Fixed(other) if other.full_register() == full))
    }

    /// Whether an instance reads this place.
    pub(crate) fn reads_place(&self, place: OperandPlace) -> bool {
        self.inputs.iter().any(|port| port.place == place)
    }

    /// Full registers that every instance uses.
    pub(crate) fn fixed_registers(&self) -> Vec<Register> {
        let sample = &self.sample;
        let named = (0..sample.op_count())
            .filter(|operand| sample.op_kind(*operand) == OpKind::Register)
            .filter(|operand| is_fixed(sample.op_code().op_kind(*operand)))
            .map(|operand| sample.op_register(operand));
        let ports = self.inputs.iter().chain(&self.outputs);
        let implied = ports.filter_map(|port| match port.place {
            OperandPlace::Fixed(register) => Some(register),
            _ => None,
        });
        named.chain(implied).map(Register::full_register).collect()
    }

    /// An instance with these registers. `None` if it does not exist or would be another
    /// instruction.
    pub(crate) fn build_instance(&self, assignment: &RegisterAssignment) -> Option<Instruction> {
        let mut instruction = self.sample;
        for slot in self.slots() {
            let Some(number) = assignment.get(slot) else { continue };
            let register = nth_register_like(self.slot_register(slot), u32::from(number))?;
            match slot {
                RegisterSlot::Operand(operand) => instruction.set_op_register(operand, register),
                RegisterSlot::Mask => instruction.set_op_mask(register),
                RegisterSlot::Base => instruction.set_memory_base(register),
                RegisterSlot::Index => instruction.set_memory_index(register),
            }
        }
        if assignment.displacement != 0 {
            instruction.set_memory_displacement64(assignment.displacement as i64 as u64);
            instruction.set_memory_displ_size(1);
        }
        Some(instruction)
    }

    /// Whether the flags may stay unchanged: a shift by a variable count of zero changes none.
    pub(crate) fn keeps_flags(&self) -> bool {
        use Mnemonic::{Rcl, Rcr, Rol, Ror, Sal, Sar, Shl, Shld, Shr, Shrd};
        let sample = &self.sample;
        let counted = sample.op_code().op_kinds().contains(&Kind::cl);
        counted && matches!(sample.mnemonic(), Rcl | Rcr | Rol | Ror | Sal | Sar | Shl | Shld | Shr | Shrd)
    }

    /// The instruction's code.
    pub(crate) fn code(&self) -> Code {
        self.form.code
    }

    /// The mode that the form is for.
    pub(crate) fn mode(&self) -> CodeMode {
        self.form.mode
    }

    /// The machine code of instances and other instructions in the form's mode.
    pub(crate) fn encode(&self, instructions: &[Instruction]) -> Option<Vec<u8>> {
        encode_instructions(self.form.mode, instructions)
    }
}

/// The machine code of instructions in a mode. Those that are written for 64-bit mode become their
/// counterparts. Branches are relative to each other's place. `None` if one can't be encoded.
pub fn encode_instructions(mode: CodeMode, instructions: &[Instruction]) -> Option<Vec<u8>> {
    let mut encoder = Encoder::new(mode.bits());
    let mut at = 0;
    for instruction in instructions {
        at += encoder.encode(&mode.convert_own(instruction), at).ok()? as u64;
    }
    Some(encoder.take_buffer())
}
