//! Dependency hazards: what makes each instance of a form wait for the previous one, and the code
//! that breaks it.

use super::balance::keeps_registers;
use super::links;
use super::throughput_recipe::DependencyBreaking;
use crate::forms::form_anatomy::{FormAnatomy, OperandPlace};
use cyclescope_code::asm::CodeMode;
use iced_x86::{Code, Instruction, Register};

/// Unavoidable dependencies of a form, whatever registers it gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DependencyHazards {
    /// Whether an instance reads flags of the previous one.
    pub flags: bool,
    /// Fixed registers that an instance reads from the previous one.
    pub registers: Vec<Register>,
}

impl DependencyHazards {
    /// The hazards of a form.
    pub fn from_anatomy(anatomy: &FormAnatomy) -> DependencyHazards {
        let mut hazards = DependencyHazards { flags: anatomy.keeps_flags(), ..DependencyHazards::default() };
        // The instructions around it put its registers back.
        if keeps_registers(anatomy.code()) {
            return hazards;
        }
        let written = anatomy.flags_modified();
        // A partial write keeps the rest of the register, and so waits for it.
        let parts =
            anatomy.outputs.iter().filter(|port| matches!(port.place, OperandPlace::Fixed(part) if part.size() < 4));
        for port in anatomy.inputs.iter().chain(parts) {
            match port.place {
                OperandPlace::Flags(read) => hazards.flags |= read & written != 0,
                OperandPlace::Fixed(register) => {
                    let full = register.full_register();
                    if anatomy.writes_register(full) && !hazards.registers.contains(&full) {
                        hazards.registers.push(full);
                    }
                }
                OperandPlace::Slot(_) | OperandPlace::Memory => {}
            }
        }
        hazards
    }

    /// Whether one of the registers holds a memory address.
    pub(crate) fn has_addresses(&self) -> bool {
        let addresses = [Register::RSP, Register::RSI, Register::RDI];
        self.registers.iter().any(|register| addresses.contains(register))
    }

    /// Whether there is any dependency to break.
    pub fn has_any(&self) -> bool {
        self.flags || !self.registers.is_empty()
    }
}

/// Appends code that breaks dependencies before an instance. `first` says whether the instance is
/// the first of its period.
pub(super) fn push_breakers(
    breaking: DependencyBreaking,
    first: bool,
    hazards: &DependencyHazards,
    restored: &[(Register, u8)],
    flags: Option<u8>,
    into: &mut Vec<Instruction>,
) -> Option<()> {
    let zero = |register: Register| {
        let low = Register::EAX + register.number() as u32;
        Instruction::with2(Code::Xor_r32_rm32, low, low).ok()
    };
    if breaking == DependencyBreaking::None || (breaking == DependencyBreaking::Once && !first) {
        return Some(());
    }
    if breaking == DependencyBreaking::Zero {
        for register in hazards.registers.iter().filter(|register| register.is_gpr64()) {
            into.push(zero(*register)?);
        }
    }
    for (register, constant) in restored {
        let constant = Register::RAX + u32::from(*constant);
        into.push(Instruction::with2(Code::Mov_r64_rm64, *register, constant).ok()?);
    }
    if let Some(constant) = flags {
        match breaking {
            DependencyBreaking::Zero if !hazards.registers.is_empty() => {}
            DependencyBreaking::Zero => into.push(zero(Register::RAX + u32::from(constant))?),
            _ => into.push(links::COMPARE.build_instruction(
                CodeMode::default(),
                0,
                constant,
                constant,
                links::LinkAddress::default(),
            )),
        }
    }
    Some(())
}
