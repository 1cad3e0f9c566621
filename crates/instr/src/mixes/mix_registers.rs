//! Registers of all forms of a mix together.
//!
//! No copy may depend on a copy of another form, so each form writes registers of its own. Registers
//! that are only read are shared. A form that updates a register gets many to rotate through, the more
//! the longer its latency: its copies in one register form a chain. Others get fewer; they only need
//! them on cores that wait for the old value.

use super::mix_form::{MixForm, VectorEncoding};
use crate::bodies::register_allocator::RegisterAllocator;
use crate::forms::form_anatomy::{OperandPlace, RegisterAssignment, RegisterBank, RegisterSlot};
use iced_x86::{EncodingKind, Register};

/// Registers of one form.
#[derive(Debug, Clone)]
pub(super) struct FormRegisters {
    /// Those that are only read.
    pub(super) constants: RegisterAssignment,
    /// Those that each written slot rotates through.
    pub(super) rotations: Vec<SlotRotation>,
}

/// Registers that one slot rotates through.
#[derive(Debug, Clone)]
pub(super) struct SlotRotation {
    pub(super) slot: RegisterSlot,
    pub(super) registers: Vec<u8>,
    /// Whether a copy reads the register that it writes.
    pub(super) updates: bool,
}

/// A written slot that gets registers.
struct RotationDemand {
    form: usize,
    slot: RegisterSlot,
    bank: RegisterBank,
    /// The part of the registers that it gets, relative to others.
    weight: f64,
    most: usize,
    updates: bool,
    registers: Vec<u8>,
}

/// How much more registers an updating slot gets than one that is only written.
const UPDATE_WEIGHT: f64 = 3.0;
/// Upper limits of registers that a slot rotates through, if it updates them and if not.
const UPDATED_MOST: usize = 16;
const WRITTEN_MOST: usize = 8;

/// Allocates registers for these forms with these numbers of copies. `None` if they don't suffice.
pub(super) fn allocate_registers(forms: &[&MixForm], counts: &[usize]) -> Option<Vec<FormRegisters>> {
    let mut allocators: Vec<RegisterAllocator> =
        forms.iter().map(|form| RegisterAllocator::new(&form.anatomy)).collect();
    let bases: Vec<u8> = allocators.iter().map(RegisterAllocator::base).collect();
    let fixed = forms.iter().flat_map(|form| form.anatomy.fixed_registers());
    let reserved: Vec<Register> = fixed.chain(bases.iter().map(|base| general_register(*base))).collect();
    reserve_high_vectors(forms, &mut allocators);
    for allocator in &mut allocators {
        reserved.iter().for_each(|register| allocator.exclude_register(*register));
    }
    let constants = allocate_constants(forms, &bases, &mut allocators)?;
    let mut demands = list_demands(forms, counts);
    // Forms that few registers suit take theirs first.
    demands.sort_by_key(|demand| allocators[demand.form].clone().count_left(demand.bank));
    for demand in &mut demands {
        demand.add_register(&mut allocators)?;
    }
    while let Some(least) = least_served(&demands, &mut allocators) {
        demands[least].add_register(&mut allocators)?;
    }
    let rotations = |form: usize| {
        let own = demands.iter().filter(|demand| demand.form == form);
        own.map(|demand| SlotRotation {
            slot: demand.slot,
            registers: demand.registers.clone(),
            updates: demand.updates,
        })
        .collect()
    };
    let registers = constants.into_iter().enumerate();
    Some(registers.map(|(form, constants)| FormRegisters { constants, rotations: rotations(form) }).collect())
}

/// The number of vector registers that VEX and legacy code can name.
const LOW_VECTORS: u32 = 16;

/// Leaves the vector registers that VEX and legacy code can name to them, if there are such forms.
fn reserve_high_vectors(forms: &[&MixForm], allocators: &mut [RegisterAllocator]) {
    let is_evex = |form: &MixForm| form.anatomy.sample.op_code().encoding() == EncodingKind::EVEX;
    if forms.iter().all(|form| is_evex(form) || form.vector_encoding().is_none()) {
        return;
    }
    for (_, allocator) in forms.iter().zip(allocators).filter(|(form, _)| is_evex(form)) {
        (0..LOW_VECTORS).for_each(|number| allocator.exclude_register(Register::XMM0 + number));
    }
}

/// Whether all vector code of these forms has one kind of encoding.
pub(super) fn has_one_encoding(forms: &[&MixForm]) -> bool {
    let mut encodings = forms.iter().filter_map(|form| form.vector_encoding());
    let first: Option<VectorEncoding> = encodings.next();
    encodings.all(|encoding| Some(encoding) == first)
}

/// The registers that each form only reads. Forms share them.
fn allocate_constants(
    forms: &[&MixForm],
    bases: &[u8],
    allocators: &mut [RegisterAllocator],
) -> Option<Vec<RegisterAssignment>> {
    let all = allocators.to_vec();
    let mut shared: Vec<(RegisterBank, u8)> = Vec::new();
    let mut constants = Vec::new();
    for (at, form) in forms.iter().enumerate() {
        let mut assignment = RegisterAssignment::default();
        let mut taken: Vec<(RegisterBank, u8)> = Vec::new();
        for slot in form.anatomy.slots() {
            let place = OperandPlace::Slot(slot);
            if slot == RegisterSlot::Base {
                assignment = assignment.with_register(slot, bases[at]);
                continue;
            }
            if form.anatomy.writes_place(place) {
                continue;
            }
            let bank = form.anatomy.place_bank(place);
            let suits = |known: &&(RegisterBank, u8)| {
                known.0 == bank && !taken.contains(known) && all[at].has_register(bank, known.1)
            };
            let number = match shared.iter().find(suits) {
                Some((_, number)) => *number,
                None => {
                    let number = allocators[at].allocate_constant(bank)?;
                    exclude_everywhere(allocators, bank, number);
                    shared.push((bank, number));
                    number
                }
            };
            taken.push((bank, number));
            assignment = assignment.with_register(slot, number);
        }
        constants.push(assignment);
    }
    Some(constants)
}

/// The written slots of all forms.
fn list_demands(forms: &[&MixForm], counts: &[usize]) -> Vec<RotationDemand> {
    let demands = forms.iter().zip(counts).enumerate().flat_map(|(number, (form, count))| {
        let anatomy = &form.anatomy;
        let slots = anatomy
            .slots()
            .into_iter()
            .filter(|slot| *slot != RegisterSlot::Base && anatomy.writes_place(OperandPlace::Slot(*slot)));
        slots.map(move |slot| {
            let updates = form.updates_slot(slot);
            let weight = if updates { UPDATE_WEIGHT * form.latency * *count as f64 } else { 1.0 };
            RotationDemand {
                form: number,
                slot,
                bank: anatomy.place_bank(OperandPlace::Slot(slot)),
                weight,
                most: if updates { UPDATED_MOST } else { WRITTEN_MOST },
                updates,
                registers: Vec::new(),
            }
        })
    });
    demands.collect()
}

/// The index of the demand with the fewest registers for its weight that can get one more.
fn least_served(demands: &[RotationDemand], allocators: &mut [RegisterAllocator]) -> Option<usize> {
    let mut open: Vec<usize> = (0..demands.len()).collect();
    open.retain(|at| {
        let demand = &demands[*at];
        demand.registers.len() < demand.most && allocators[demand.form].count_left(demand.bank) > 0
    });
    let served = |at: &usize| demands[*at].registers.len() as f64 / demands[*at].weight;
    open.into_iter().min_by(|one, other| served(one).total_cmp(&served(other)))
}

impl RotationDemand {
    fn add_register(&mut self, allocators: &mut [RegisterAllocator]) -> Option<()> {
        let number = allocators[self.form].allocate_rotation(self.bank, 1)?[0];
        exclude_everywhere(allocators, self.bank, number);
        self.registers.push(number);
        Some(())
    }
}

/// Takes a register from all forms.
fn exclude_everywhere(allocators: &mut [RegisterAllocator], bank: RegisterBank, number: u8) {
    let first = match bank {
        RegisterBank::General | RegisterBank::HighByte => Register::RAX,
        RegisterBank::Vector => Register::XMM0,
        RegisterBank::Mask => Register::K0,
        RegisterBank::Mmx => Register::MM0,
        RegisterBank::X87 | RegisterBank::Flags | RegisterBank::Memory | RegisterBank::Other => return,
    };
    let register = first + u32::from(number);
    allocators.iter_mut().for_each(|allocator| allocator.exclude_register(register));
}

fn general_register(number: u8) -> Register {
    Register::RAX + u32::from(number)
}
