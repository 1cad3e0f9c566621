//! The registers of a chain: those that its operands use, and those that its other code needs.
//!
//! `ChainBuilder` holds them while a chain is built.

use super::links::Link;
use super::register_allocator::RegisterAllocator;
use super::route::is_address;
use crate::forms::form_anatomy::{
    FormAnatomy, OperandPlace, OperandPort, RegisterAssignment, RegisterBank, RegisterSlot,
};
use crate::forms::gather;
use cyclescope_code::asm::access::{is_atomic, is_non_temporal_store};
use iced_x86::Register;

/// Upper limit of registers through which a value travels, and through which another result
/// rotates.
const VALUE_ROTATION: usize = 6;
const RESULT_ROTATION: usize = 4;

/// How a chain chooses its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChainRegisters {
    /// All registers are distinct.
    #[default]
    Distinct,
    /// Each value is stored at two places, and alternate iterations load it from alternate places.
    /// Some cores replace a load by the register of a recent store. They find that store by its
    /// base register, or by the number of stores between. Here both change from one iteration to
    /// the next. Bodies hold an odd number of periods.
    Alternating,
    /// Distinct, and flags that an instance may keep are not reset before it. Resetting them takes
    /// resources that the chain may need.
    FlagsKept,
    /// Distinct, and the vector and MMX registers that an instance reads and writes outside the
    /// chain are zeroed before it. It then waits for one operand only.
    Cleared,
    /// All operands of the chain's bank use one register.
    Same,
}

/// Instructions next to each instance that are not part of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChainFillers {
    /// The instruction, as a link.
    pub link: Link,
    /// Number per instance.
    pub count: usize,
}

pub(super) struct ChainBuilder<'a> {
    pub(super) anatomy: &'a FormAnatomy,
    pub(super) from: &'a OperandPort,
    pub(super) to: &'a OperandPort,
    pub(super) links: &'a [Link],
    pub(super) allocator: RegisterAllocator,
    /// Other fixed registers that are read, and the registers that they are copied from before each
    /// instance.
    pub(super) restored: Vec<(Register, u8)>,
    /// Destination register of each link except the last.
    pub(super) between: Vec<u8>,
    pub(super) constant: u8,
    pub(super) zero: Option<u8>,
    /// A vector register that holds zero.
    pub(super) zero_vector: Option<u8>,
    /// Two base registers that are exchanged in each period.
    pub(super) alternating: Option<[u8; 2]>,
    /// Filler instructions, with their destination and source.
    pub(super) fillers: Option<(ChainFillers, u8, u8)>,
    pub(super) registers: ChainRegisters,
}

/// The registers of one chain's slots.
pub(super) struct ChainSlots {
    pub(super) fixed: RegisterAssignment,
    pub(super) rotating: Vec<(RegisterSlot, Vec<u8>)>,
    /// Registers through which the value travels from slot to slot.
    pub(super) own: Vec<u8>,
}

/// Chooses a copy for each fixed general register that an instance reads after the previous one
/// wrote it. The chain's own input gets a copy only if its value is kept.
pub(super) fn allocate_restored(
    anatomy: &FormAnatomy,
    from: OperandPlace,
    kept: bool,
    allocator: &mut RegisterAllocator,
) -> Option<Vec<(Register, u8)>> {
    let mut restored: Vec<(Register, u8)> = Vec::new();
    // A partial write keeps the rest of the register, and so waits for it.
    let parts =
        anatomy.outputs.iter().filter(|port| matches!(port.place, OperandPlace::Fixed(part) if part.size() < 4));
    for port in anatomy.inputs.iter().chain(parts) {
        let OperandPlace::Fixed(register) = port.place else { continue };
        let full = register.full_register();
        let own = matches!(from, OperandPlace::Fixed(other) if other.full_register() == full);
        let known = restored.iter().any(|(other, _)| *other == full);
        if full.is_gpr64() && anatomy.writes_register(full) && (kept || !own) && !known {
            restored.push((full, allocator.allocate_constant(RegisterBank::General)?));
        }
    }
    Some(restored)
}

/// Whether each value can be stored at two alternating places. A chain that ends in memory then has
/// two instances per turn, which must not depend on each other. The address needs a base register
/// to choose. A store that the next instance reads directly has no link between them. Atomic
/// instructions and non-temporal stores are not renamed, and two of them would wait for each other.
pub(super) fn can_alternate(anatomy: &FormAnatomy, from: OperandPlace, to: OperandPlace) -> bool {
    let own = |register: Register| {
        matches!(
            from,
            OperandPlace::Fixed(other) if other.full_register() == register.full_register()
        )
    };
    // Flags and fixed registers are reset before each instance, except the chain's own.
    let passed = |port: &OperandPort| match port.place {
        OperandPlace::Slot(_) => anatomy.reads_place(port.place) && !gather::is_mask(anatomy, port.place),
        OperandPlace::Fixed(register) => own(register),
        OperandPlace::Flags(_) => matches!(from, OperandPlace::Flags(_)),
        OperandPlace::Memory => false,
    };
    let has_base = anatomy.slots().contains(&RegisterSlot::Base);
    let renamable = !is_atomic(&anatomy.sample) && !is_non_temporal_store(&anatomy.sample);
    has_base
        && renamable
        && [from, to] != [OperandPlace::Memory; 2]
        && (to != OperandPlace::Memory || !anatomy.outputs.iter().any(passed))
}

/// Number of these banks that share their registers with one.
fn count_banks(banks: &[RegisterBank], bank: RegisterBank) -> usize {
    let pool = |bank: RegisterBank| if bank == RegisterBank::HighByte { RegisterBank::General } else { bank };
    banks.iter().filter(|other| pool(**other) == pool(bank)).count()
}

pub(super) fn slot_of_place(place: OperandPlace) -> Option<RegisterSlot> {
    match place {
        OperandPlace::Slot(slot) => Some(slot),
        _ => None,
    }
}

impl ChainBuilder<'_> {
    /// Chooses registers for all slots.
    pub(super) fn assign_slots(&mut self) -> Option<ChainSlots> {
        let anatomy = self.anatomy;
        let (input, output) = (slot_of_place(self.from.place), slot_of_place(self.to.place));
        let direct = self.links.is_empty();
        let chased = direct && is_address(anatomy, self.from.place);
        let passed = direct && input.is_some() && output.is_some() && input != output;
        let mut slots = ChainSlots { fixed: RegisterAssignment::default(), rotating: Vec::new(), own: Vec::new() };
        if self.registers == ChainRegisters::Same || self.links.iter().any(Link::squares_in_place) {
            return self.assign_same_register();
        }
        // Each further slot needs a register.
        let mut waiting: Vec<RegisterBank> = anatomy
            .slots()
            .into_iter()
            .filter(|slot| !(passed && (input == Some(*slot) || output == Some(*slot))))
            .filter(|slot| !is_address(anatomy, OperandPlace::Slot(*slot)) || chased)
            .map(|slot| anatomy.place_bank(OperandPlace::Slot(slot)))
            .collect();
        if passed {
            let bank = anatomy.place_bank(self.to.place);
            let most = if chased { 1 } else { VALUE_ROTATION };
            let count = most.min(self.allocator.count_left(bank).saturating_sub(count_banks(&waiting, bank)));
            slots.own = self.allocator.allocate_rotation(bank, count)?;
            if slots.own.len() < 2 && !chased {
                return None;
            }
        }
        for slot in anatomy.slots() {
            let bank = anatomy.place_bank(OperandPlace::Slot(slot));
            let is_base = is_address(anatomy, OperandPlace::Slot(slot)) && !chased;
            let travels = passed && (input == Some(slot) || output == Some(slot));
            if is_base {
                slots.fixed = slots.fixed.with_register(slot, self.allocator.base());
            } else if bank == RegisterBank::Other || travels {
                continue;
            } else if input == Some(slot) && bank == RegisterBank::Vector {
                // VEX links reach the lower registers only.
                slots.fixed = slots.fixed.with_register(slot, self.allocator.allocate_rotation(bank, 1)?[0]);
            } else if input == Some(slot) || !anatomy.writes_place(OperandPlace::Slot(slot)) {
                slots.fixed = slots.fixed.with_register(slot, self.allocator.allocate_constant(bank)?);
            } else {
                let further = count_banks(&waiting, bank).saturating_sub(1);
                let count = RESULT_ROTATION.min(self.allocator.count_left(bank).saturating_sub(further));
                slots.rotating.push((slot, self.allocator.allocate_rotation(bank, count)?));
            }
            if let Some(place) = waiting.iter().position(|other| *other == bank) {
                waiting.remove(place);
            }
        }
        Some(slots)
    }

    fn assign_same_register(&mut self) -> Option<ChainSlots> {
        let anatomy = self.anatomy;
        let mut slots = ChainSlots { fixed: RegisterAssignment::default(), rotating: Vec::new(), own: Vec::new() };
        let bank = anatomy.place_bank(self.to.place);
        let one = self.allocator.allocate_rotation(bank, 1)?[0];
        for slot in anatomy.slots() {
            let own = anatomy.place_bank(OperandPlace::Slot(slot));
            let register = match own {
                _ if is_address(anatomy, OperandPlace::Slot(slot)) => self.allocator.base(),
                own if own == bank => one,
                own => self.allocator.allocate_constant(own)?,
            };
            slots.fixed = slots.fixed.with_register(slot, register);
        }
        Some(slots)
    }
}

impl ChainSlots {
    /// The registers of one instance. The value travels through the slots `input` and `output`.
    pub(super) fn assign_copy(
        &self,
        copy: usize,
        input: Option<RegisterSlot>,
        output: Option<RegisterSlot>,
    ) -> RegisterAssignment {
        let mut assignment = self.fixed;
        for (slot, pool) in &self.rotating {
            assignment = assignment.with_register(*slot, pool[copy % pool.len()]);
        }
        if let (Some(input), Some(output), false) = (input, output, self.own.is_empty()) {
            assignment = assignment.with_register(input, self.own[copy % self.own.len()]);
            assignment = assignment.with_register(output, self.own[(copy + 1) % self.own.len()]);
        }
        assignment
    }
}
