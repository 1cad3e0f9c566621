//! The inputs and outputs of an instruction, by operand, straight from iced's database.

use iced_x86::{Instruction, InstructionInfo, Mnemonic, OpAccess, OpCodeOperandKind, OpKind, Register, RflagsBits};
use std::collections::HashMap;
use std::sync::LazyLock;

/// An input or an output, named as in instruction tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Port {
    /// An explicit operand, numbered from 1.
    Operand(u32),
    Flags,
    Mask,
    /// The base of an address.
    Address,
    /// The index of an address with a base.
    Index,
    Data,
    /// An implied register, by its full register.
    Implied(Register),
}

/// A full register or a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    Register(Register),
    Flag(u32),
}

#[derive(Debug, Default)]
pub struct Ports {
    pub inputs: Vec<(Port, Resource)>,
    pub outputs: Vec<(Port, Resource)>,
}

pub fn reads(access: OpAccess) -> bool {
    use OpAccess::{CondRead, CondWrite, Read, ReadCondWrite, ReadWrite};
    // A conditional write may keep the old value, so it also reads it.
    matches!(access, Read | CondRead | ReadWrite | ReadCondWrite | CondWrite)
}

pub fn writes(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

impl Port {
    /// The port with this name in results.
    pub fn named(name: &str, variant: Option<&str>) -> Port {
        match name {
            "flags" => Port::Flags,
            "mask" => Port::Mask,
            "mem_addr" if variant == Some("index") => Port::Index,
            "mem_addr" => Port::Address,
            "mem_data" => Port::Data,
            _ => match name.strip_prefix("op").and_then(|number| number.parse().ok()) {
                Some(number) => Port::Operand(number),
                None => {
                    static BY_NAME: LazyLock<HashMap<String, Register>> = LazyLock::new(|| {
                        let named = |register: Register| (format!("{register:?}").to_lowercase(), register);
                        Register::values().map(named).collect()
                    });
                    let register = BY_NAME.get(name).unwrap_or_else(|| panic!("no place has the name {name}"));
                    Port::Implied(register.full_register())
                }
            },
        }
    }
}

impl Ports {
    /// The ports of an instruction. `explicit` says how its operands are accessed.
    pub fn of(instruction: &Instruction, info: &InstructionInfo, explicit: &InstructionInfo) -> Ports {
        let mut ports = Ports::default();
        let mut named = vec![Register::None];
        for operand in 0..instruction.op_count() {
            let port = Port::Operand(operand + 1);
            match instruction.op_kind(operand) {
                OpKind::Register => {
                    named.push(instruction.op_register(operand).full_register());
                    ports.register(port, instruction.op_register(operand), explicit.op_access(operand));
                }
                OpKind::Memory => ports.address(instruction, port, &mut named),
                _ => {}
            }
        }
        let mask = instruction.op_mask();
        if mask != Register::None {
            named.push(mask);
            for used in info.used_registers().iter().filter(|used| used.register() == mask) {
                ports.register(Port::Mask, mask, used.access());
            }
        }
        for used in info.used_registers() {
            let full = used.register().full_register();
            if !named.contains(&full) {
                ports.register(Port::Implied(full), used.register(), used.access());
            }
        }
        ports.flags(instruction);
        ports
    }

    fn address(&mut self, instruction: &Instruction, operand: Port, named: &mut Vec<Register>) {
        let (base, index) = (instruction.memory_base(), instruction.memory_index());
        named.extend([base.full_register(), index.full_register()]);
        if base != Register::None && !base.is_ip() {
            self.register(Port::Address, base, OpAccess::Read);
        }
        if index != Register::None {
            let port = match index.is_vector_register() {
                true => operand,
                false if base == Register::None => Port::Address,
                false => Port::Index,
            };
            self.register(port, index, OpAccess::Read);
        }
    }

    fn register(&mut self, port: Port, register: Register, access: OpAccess) {
        let resource = Resource::Register(register.full_register());
        let merged = register.is_gpr8() || register.is_gpr16();
        if reads(access) || merged && writes(access) {
            self.inputs.push((port, resource));
        }
        if writes(access) {
            self.outputs.push((port, resource));
        }
    }

    fn flags(&mut self, instruction: &Instruction) {
        // No program changes the direction flag or the x87 conditions.
        let status =
            RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::PF | RflagsBits::CF;
        let bits = move |flags: u32| (0..32).filter(move |bit| (flags & status) >> bit & 1 == 1).map(Resource::Flag);
        let written = instruction.rflags_modified();
        let kept = if keeps_flags(instruction) { written } else { 0 };
        self.inputs.extend(bits(instruction.rflags_read() | kept).map(|flag| (Port::Flags, flag)));
        self.outputs.extend(bits(written).map(|flag| (Port::Flags, flag)));
    }
}

/// A shift by a variable count keeps all flags if the count is zero (SDM vol. 2B, SAL/SAR/SHL/SHR).
pub fn keeps_flags(instruction: &Instruction) -> bool {
    use Mnemonic::{Rcl, Rcr, Rol, Ror, Sal, Sar, Shl, Shld, Shr, Shrd};
    let by_register = instruction.op_code().op_kinds().contains(&OpCodeOperandKind::cl);
    by_register && matches!(instruction.mnemonic(), Rcl | Rcr | Rol | Ror | Sal | Sar | Shl | Shld | Shr | Shrd)
}
