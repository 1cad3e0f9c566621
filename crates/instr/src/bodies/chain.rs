//! Chains: loop bodies in which each instance of a form waits for the previous one. The dependency
//! runs through one input and one output.

use super::chain_registers::{
    ChainBuilder, ChainFillers, ChainRegisters, ChainSlots, allocate_restored, can_alternate, slot_of_place,
};
use super::links::{self, Link, build_computed_copy};
use super::register_allocator::RegisterAllocator;
use super::route::{is_address, is_computed};
use super::turn_code::{ADDRESS_STRIDE, general_register};
use crate::forms::form_anatomy::{FormAnatomy, OperandPlace, OperandPort, RegisterBank, RegisterSlot};
use crate::forms::gather;
use crate::forms::instruction_setting;
use cyclescope_code::asm::access::is_non_temporal_store;
use iced_x86::{Code, Instruction, MemoryOperand, Register};

/// Number of addresses that instances rotate through if memory is not part of the chain. A load
/// reads the data stored this many instances earlier. In a quick chain, store forwarding takes
/// longer than several instances.
const ROTATED_ADDRESSES: usize = 16;
/// Offset of a chain's stores from the base register. Other programs find their memory unchanged.
const STORE_OFFSET: i32 = 8192 + 640;

/// The code of a chain.
#[derive(Debug, Clone)]
pub(crate) struct LatencyChain {
    /// Links that carry the value from each instance to the next.
    pub links: Vec<Link>,
    /// One period of the body.
    pub period: Vec<Instruction>,
    /// Instances in a period.
    pub copies: usize,
    /// Code that runs once before the body, after the setting's own code.
    pub init: Vec<Instruction>,
    /// Number of instructions in the first turn: an instance, the code before it that breaks other
    /// dependencies, and the links.
    pub turn: usize,
}

/// The ports of a form that a chain connects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainEnds<'a> {
    /// The input that makes an instance wait.
    pub from: &'a OperandPort,
    /// The output that the next instance waits for.
    pub to: &'a OperandPort,
}

impl LatencyChain {
    /// The chain between two ends over these links. `None` if it would need too many registers.
    pub(crate) fn new(
        anatomy: &FormAnatomy,
        ends: ChainEnds,
        links: &[Link],
        registers: ChainRegisters,
    ) -> Option<LatencyChain> {
        LatencyChain::with_fillers(anatomy, ends, links, registers, None)
    }

    /// The same chain with fillers.
    pub(crate) fn with_fillers(
        anatomy: &FormAnatomy,
        ends: ChainEnds,
        links: &[Link],
        registers: ChainRegisters,
        fillers: Option<ChainFillers>,
    ) -> Option<LatencyChain> {
        let with = |constant: bool| LatencyChain::with_constant(anatomy, ends, links, registers, fillers, constant);
        let needs_constant = links.iter().any(Link::reads_constant)
            || anatomy.keeps_flags()
            || anatomy.inputs.iter().any(|port| matches!(port.place, OperandPlace::Flags(_)));
        // If registers are few, other roles need them more.
        with(true).or_else(|| if needs_constant { None } else { with(false) })
    }

    fn with_constant(
        anatomy: &FormAnatomy,
        ends: ChainEnds,
        links: &[Link],
        registers: ChainRegisters,
        fillers: Option<ChainFillers>,
        constant: bool,
    ) -> Option<LatencyChain> {
        let ChainEnds { from, to } = ends;
        let mut allocator = RegisterAllocator::new(anatomy);
        let fillers = match fillers {
            Some(fillers) => {
                let mut one = |bank: RegisterBank| Some(allocator.allocate_rotation(bank, 1)?[0]);
                Some((fillers, one(fillers.link.to)?, one(fillers.link.from)?))
            }
            None => None,
        };
        let constant = if constant { allocator.allocate_constant(RegisterBank::General)? } else { 0 };
        let kept = links.contains(&links::CLEAR);
        let restored = allocate_restored(anatomy, from.place, kept, &mut allocator)?;
        let zero = if kept { Some(allocator.allocate_constant(RegisterBank::General)?) } else { None };
        let zero_vector = match links.contains(&links::ZERO_INDICES) {
            true => Some(allocator.allocate_rotation(RegisterBank::Vector, 1)?[0]),
            false => None,
        };
        let alternating = match registers {
            ChainRegisters::Alternating if can_alternate(anatomy, from.place, to.place) => Some([
                allocator.allocate_constant(RegisterBank::General)?,
                allocator.allocate_constant(RegisterBank::General)?,
            ]),
            ChainRegisters::Alternating => return None,
            _ => None,
        };
        let mut between: Vec<u8> = Vec::new();
        for (index, link) in links.iter().enumerate().take(links.len().saturating_sub(1)) {
            between.push(match link.to {
                RegisterBank::Flags | RegisterBank::Memory => 0,
                _ if link.is_in_place() || link.squares_in_place() => 0,
                // In a run of equal links, nothing reads the register that the last but one wrote.
                _ if index > 1 && links[index - 2..index].iter().all(|before| before == link) => between[index - 2],
                // VEX links reach the lower registers only.
                RegisterBank::Vector => allocator.allocate_rotation(RegisterBank::Vector, 1)?[0],
                bank => allocator.allocate_constant(bank)?,
            });
        }
        let mut builder = ChainBuilder {
            anatomy,
            from,
            to,
            links,
            allocator,
            restored,
            between,
            constant,
            zero,
            zero_vector,
            alternating,
            fillers,
            registers,
        };
        builder.build()
    }
}

fn least_common_multiple(a: usize, b: usize) -> usize {
    (1..=b).map(|times| a * times).find(|multiple| multiple % b == 0).expect("the last is one")
}

impl ChainBuilder<'_> {
    fn build(&mut self) -> Option<LatencyChain> {
        let anatomy = self.anatomy;
        let slots = self.assign_slots()?;
        let stores =
            anatomy.writes_place(OperandPlace::Memory) || self.links.iter().any(|link| link.to == RegisterBank::Memory);
        let on_memory = anatomy.slots().contains(&RegisterSlot::Base) && !is_computed(anatomy);
        // A chain through memory needs one address. Non-temporal stores to successive lines would
        // wait for the buffers that send each line.
        let combined = is_non_temporal_store(&anatomy.sample);
        let spread = on_memory && stores && self.from.place != OperandPlace::Memory && !combined;
        // At the end of a period, the value and all rotating registers must be back at the start.
        let mut turns: Vec<usize> = slots.rotating.iter().map(|(_, pool)| pool.len()).collect();
        turns.extend([slots.own.len().max(1), if spread { ROTATED_ADDRESSES } else { 1 }]);
        let copies = turns.into_iter().fold(1, least_common_multiple);
        let (mut period, mut turn) = (Vec::new(), 0);
        for copy in 0..copies {
            let mut assignment = slots.assign_copy(copy, slot_of_place(self.from.place), slot_of_place(self.to.place));
            if on_memory && stores {
                assignment.displacement = STORE_OFFSET;
            }
            if spread {
                let places = if self.alternating.is_some() { 2 } else { 1 };
                assignment.displacement += places * ADDRESS_STRIDE * (copy % ROTATED_ADDRESSES) as i32;
            }
            if let Some([base, _]) = self.alternating.filter(|_| self.from.place == OperandPlace::Memory) {
                assignment = assignment.with_register(RegisterSlot::Base, base);
            }
            self.push_turn(&assignment, &mut period)?;
            if copy == 0 {
                turn = period.len();
            }
        }
        // The loop counter changes all flags except the carry. The value therefore passes the
        // loop's end in a register.
        if self.links.last() == Some(&links::COMPARE) {
            period.rotate_right(1);
        }
        if let Some([one, other]) = self.alternating {
            let change =
                Instruction::with2(Code::Xchg_rm64_r64, general_register(one), general_register(other)).ok()?;
            period.insert(0, change);
            turn += 1;
        }
        let init = self.build_init(&slots)?;
        Some(LatencyChain { links: self.links.to_vec(), period, copies, init, turn })
    }

    fn build_init(&self, slots: &ChainSlots) -> Option<Vec<Instruction>> {
        let base = general_register(self.allocator.base());
        let copy = |to: Register, from: Register| Instruction::with2(Code::Mov_r64_rm64, to, from).ok();
        let mut init = Vec::new();
        for (register, constant) in &self.restored {
            init.push(copy(general_register(*constant), *register)?);
        }
        if let Some(zero) = self.zero {
            let low = Register::EAX + u32::from(zero);
            init.push(Instruction::with2(Code::Xor_r32_rm32, low, low).ok()?);
        }
        if let Some(zero) = self.zero_vector {
            let register = Register::XMM0 + u32::from(zero);
            init.push(Instruction::with3(Code::VEX_Vpxor_xmm_xmm_xmmm128, register, register, register).ok()?);
        }
        init.extend(gather::zero_indices(self.anatomy, &slots.fixed));
        if let Some([one, other]) = self.alternating {
            init.extend(build_computed_copy(general_register(one), base));
            let next = MemoryOperand::with_base_displ(base, ADDRESS_STRIDE.into());
            init.push(Instruction::with2(Code::Lea_r64_m, general_register(other), next).ok()?);
        }
        if let Some(operand) = instruction_setting::find_setting(self.anatomy.code()).pointer {
            init.push(copy(general_register(slots.fixed.get(RegisterSlot::Operand(operand - 1))?), base)?);
        }
        if self.links.is_empty() && is_address(self.anatomy, self.from.place) {
            init.push(Instruction::with2(Code::Mov_rm64_r64, MemoryOperand::with_base(base), base).ok()?);
            init.push(copy(general_register(*slots.own.first()?), base)?);
        }
        Some(init)
    }
}
