//! The code of one turn of a chain: an instance, what it needs, and the links to the next one.

use super::balance::balance_instance;
use super::chain_registers::{ChainBuilder, ChainRegisters};
use super::links::{self, Link, LinkAddress};
use super::route::needs_restoring;
use crate::forms::form_anatomy::{OperandPlace, RegisterAssignment, RegisterBank, RegisterSlot};
use crate::forms::gather;
use cyclescope_code::asm::registers::HIGH_BYTES;
use iced_x86::{Code, EncodingKind, Instruction, Register};

/// Bytes between two addresses of a chain's memory operands.
pub(super) const ADDRESS_STRIDE: i32 = 64;

pub(super) fn general_register(number: u8) -> Register {
    Register::RAX + u32::from(number)
}

impl ChainBuilder<'_> {
    /// Appends one instance (two if both must store), then the links.
    pub(super) fn push_turn(&self, assignment: &RegisterAssignment, into: &mut Vec<Instruction>) -> Option<()> {
        self.push_instance(assignment, into)?;
        if self.alternating.is_some() && self.to.place == OperandPlace::Memory {
            let mut second = *assignment;
            second.displacement += ADDRESS_STRIDE;
            self.push_instance(&second, into)?;
        }
        if let Some((fillers, destination, source)) = self.fillers {
            let filler = fillers.link.build_instruction(
                self.anatomy.mode(),
                destination,
                source,
                self.constant,
                LinkAddress::default(),
            );
            into.extend(std::iter::repeat_n(filler, fillers.count));
        }
        self.push_links(assignment, into)
    }

    /// Appends one instance, preceded by the code that breaks its other dependencies.
    fn push_instance(&self, assignment: &RegisterAssignment, into: &mut Vec<Instruction>) -> Option<()> {
        let anatomy = self.anatomy;
        let own = |register: Register| {
            matches!(
                self.from.place,
                OperandPlace::Fixed(other) if other.full_register() == register
            )
        };
        for (register, constant) in self.restored.iter().filter(|(register, _)| !own(*register)) {
            into.push(Instruction::with2(Code::Mov_r64_rm64, *register, general_register(*constant)).ok()?);
        }
        let reads_flags = anatomy.inputs.iter().any(|port| matches!(port.place, OperandPlace::Flags(_)))
            || anatomy.keeps_flags() && self.registers != ChainRegisters::FlagsKept;
        let from_flags = matches!(self.from.place, OperandPlace::Flags(_));
        let changed = anatomy.flags_modified() != 0 || self.links.iter().any(Link::changes_flags);
        if reads_flags && !from_flags && changed {
            into.push(links::COMPARE.build_instruction(
                anatomy.mode(),
                0,
                self.constant,
                self.constant,
                LinkAddress::default(),
            ));
        }
        let (before, after) = balance_instance(&anatomy.sample);
        into.extend(before);
        into.extend(gather::restore_mask(anatomy, assignment));
        if self.registers == ChainRegisters::Cleared {
            into.extend(self.build_clearing(assignment)?);
        }
        into.push(anatomy.build_instance(assignment)?);
        into.extend(after);
        Some(())
    }

    /// Zeroes the registers that an instance reads and writes, except the chain's input. `None` if
    /// there are none.
    fn build_clearing(&self, assignment: &RegisterAssignment) -> Option<Vec<Instruction>> {
        let anatomy = self.anatomy;
        let vex = anatomy.sample.op_code().encoding() != EncodingKind::Legacy;
        let mut clearing = Vec::new();
        for slot in anatomy.slots() {
            let place = OperandPlace::Slot(slot);
            if place == self.from.place || !anatomy.reads_place(place) || !anatomy.writes_place(place) {
                continue;
            }
            let number = u32::from(assignment.get(slot)?);
            let (xmm, mm) = (Register::XMM0 + number, Register::MM0 + number % 8);
            let zeroing = match (anatomy.place_bank(place), vex) {
                (RegisterBank::Vector, true) => Instruction::with3(Code::VEX_Vpxor_xmm_xmm_xmmm128, xmm, xmm, xmm),
                (RegisterBank::Vector, false) => Instruction::with2(Code::Pxor_xmm_xmmm128, xmm, xmm),
                (RegisterBank::Mmx, _) => Instruction::with2(Code::Pxor_mm_mmm64, mm, mm),
                _ => continue,
            };
            // An instance of the same form would count as part of the chain.
            clearing.push(zeroing.ok().filter(|zeroing| zeroing.code() != anatomy.code())?);
        }
        (!clearing.is_empty()).then_some(clearing)
    }

    fn push_links(&self, assignment: &RegisterAssignment, into: &mut Vec<Instruction>) -> Option<()> {
        // Where the value is stored for the next instance, or where this instance stored it.
        let base = match self.alternating {
            Some([one, _]) if self.from.place != OperandPlace::Memory => one,
            Some(_) => self.allocator.base(),
            None => assignment.get(RegisterSlot::Base).unwrap_or(self.allocator.base()),
        };
        let address = LinkAddress { base, displacement: assignment.displacement };
        let mut source = register_number(self.to.place, assignment)?;
        let end = register_number(self.from.place, assignment)?;
        let mode = self.anatomy.mode();
        for (index, link) in self.links.iter().enumerate() {
            let last = index + 1 == self.links.len();
            let mut destination = if last || *link == links::XOR { end } else { self.between[index] };
            let mut constant = self.constant;
            if link.squares_in_place() {
                destination = source;
            }
            if *link == links::ZERO_INDICES {
                constant = self.zero_vector?;
            }
            match *link {
                links::CLEAR => {
                    (destination, constant) = (source, self.zero?);
                    into.push(link.build_instruction(mode, destination, source, constant, address));
                    // A changed register gets its old value back, and its dependency with the next
                    // link.
                    if let Some((register, old)) =
                        self.restored.iter().find(|(register, _)| self.is_restored_input(*register))
                    {
                        if register.number() as u8 == source {
                            source = *old;
                        } else {
                            into.push(Instruction::with2(Code::Mov_r64_rm64, *register, general_register(*old)).ok()?);
                        }
                    }
                    continue;
                }
                links::XOR => {
                    into.push(link.build_instruction(mode, end, source, constant, address));
                    continue;
                }
                _ => into.push(link.build_instruction(mode, destination, source, constant, address)),
            }
            if self.alternating.is_some() && link.to == RegisterBank::Memory {
                let second = LinkAddress { displacement: address.displacement + ADDRESS_STRIDE, ..address };
                into.push(link.build_instruction(mode, destination, source, constant, second));
            }
            source = destination;
        }
        Some(())
    }

    fn is_restored_input(&self, register: Register) -> bool {
        needs_restoring(self.anatomy, self.from.place)
            && matches!(self.from.place, OperandPlace::Fixed(other) if other.full_register() == register)
    }
}

/// The number of a place's register in this instance, or 0 if the place is not a register.
fn register_number(place: OperandPlace, assignment: &RegisterAssignment) -> Option<u8> {
    match place {
        OperandPlace::Slot(slot) => assignment.get(slot),
        OperandPlace::Fixed(register) => Some(match HIGH_BYTES.iter().position(|high| *high == register) {
            Some(high) => high as u8,
            None => register.full_register().number() as u8,
        }),
        OperandPlace::Flags(_) | OperandPlace::Memory => Some(0),
    }
}
