//! Programs of a sequence. In a chain, repetitions wait for each other through one register or the
//! flags. In a throughput program, they are independent.
//!
//! Each repetition uses other destination registers, unless an instruction implies them. An implied
//! register that is carried gets its first value back before each repetition, and carried flags are
//! set again. These instructions count as part of the sequence. Dependencies through memory or
//! other registers stay, and the recipe says so.

use super::dependency_hazards::{DependencyHazards, push_breakers};
use super::register_allocator::RegisterAllocator;
use super::throughput_body::{ThroughputBody, build_nop, copy_register};
use super::throughput_recipe::{AddressPattern, DependencyBreaking, ThroughputRecipe};
use crate::forms::form_anatomy::RegisterBank;
use crate::forms::instruction_sequence::InstructionSequence;
use cyclescope_code::asm::registers::RegisterSet;
use iced_x86::{EncodingKind, Register, RflagsBits};

/// What carries a value from one repetition to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DependencyCarrier {
    /// This full register.
    Register(Register),
    /// The flags.
    Flags,
}

impl DependencyCarrier {
    /// The possible carriers of a sequence. A chain uses one and breaks the others.
    pub(crate) fn list_carriers(sequence: &InstructionSequence) -> Vec<DependencyCarrier> {
        let carried = sequence.carried_registers();
        let mut all: Vec<DependencyCarrier> =
            carried.registers().filter(|full| *full != Register::RSP).map(DependencyCarrier::Register).collect();
        // The loop counter changes all flags except the carry, so no other flag reaches the next
        // iteration.
        all.extend((carried.flags() == RflagsBits::CF).then_some(DependencyCarrier::Flags));
        all
    }

    /// The carrier's name in a row.
    pub(crate) fn name(self, sequence: &InstructionSequence) -> String {
        match self {
            DependencyCarrier::Register(full) => sequence.register_name(full),
            DependencyCarrier::Flags => "flags".to_string(),
        }
    }
}

/// The body by a recipe. Repetitions wait for each other only through `kept`. `None` if the body
/// does not exist. `set` lists the registers that the init code writes.
pub(crate) fn build_sequence_body(
    sequence: &InstructionSequence,
    recipe: ThroughputRecipe,
    kept: Option<DependencyCarrier>,
    set: RegisterSet,
) -> Option<ThroughputBody> {
    let carried = sequence.carried_registers();
    let is_kept = |full: Register| kept == Some(DependencyCarrier::Register(full));
    // Only general registers are initialised with the value of the register that they replace.
    let renamed =
        |full: &Register| !is_kept(*full) && sequence.can_rename(*full) && (full.is_gpr64() || !set.contains(*full));
    let (turned, implied): (Vec<Register>, Vec<Register>) =
        sequence.written_registers().registers().filter(|full| !is_kept(*full)).partition(renamed);
    let mut allocator = build_allocator(sequence)?;
    let (mut restored, mut left) = (Vec::new(), sequence.carries_memory());
    for full in implied.into_iter().filter(|full| carried.contains(*full) && *full != Register::RSP) {
        match full.is_gpr64() {
            true => restored.push((full, allocator.allocate_constant(RegisterBank::General)?)),
            false => left = true,
        }
    }
    let flags = match carried.flags() != 0 && kept != Some(DependencyCarrier::Flags) {
        true => Some(allocator.allocate_constant(RegisterBank::General)?),
        false => None,
    };
    let pools = allocate_pools(&turned, &mut allocator, recipe.destinations)?;
    let destinations = pools.first().map_or(1, |(_, pool)| pool.len());
    let mut copies = destinations;
    while copies % recipe.nop_after.unwrap_or(1) != 0 {
        copies += destinations;
    }
    let mut period = Vec::new();
    for at in 0..copies {
        let names: Vec<(Register, u8)> = pools.iter().map(|(full, pool)| (*full, pool[at % destinations])).collect();
        push_breakers(recipe.breaking, at == 0, &DependencyHazards::default(), &restored, flags, &mut period)?;
        period.extend(sequence.rename_registers(&names)?);
        if recipe.nop_after.is_some_and(|after| at % after == after - 1) {
            period.push(build_nop());
        }
    }
    let mut init: Vec<_> = restored.iter().map(|(full, constant)| copy_register(*constant, *full)).collect();
    for (full, pool) in pools.iter().filter(|(full, _)| full.is_gpr64() && carried.contains(*full)) {
        init.extend(pool[1..].iter().map(|number| copy_register(*number, *full)));
    }
    let hazards = left || flags.is_some() || !restored.is_empty();
    let breaking = if left { DependencyBreaking::None } else { recipe.breaking };
    let destinations = if pools.is_empty() { 0 } else { destinations };
    let recipe = ThroughputRecipe { destinations, addresses: AddressPattern::One, breaking, ..recipe };
    Some(ThroughputBody { recipe, period, copies, ends: Vec::new(), init, masks: false, hazards })
}

/// An allocator of the registers that the sequence does not use.
fn build_allocator(sequence: &InstructionSequence) -> Option<RegisterAllocator> {
    // Only EVEX code has 32 vector registers.
    let few = |encoding: EncodingKind| encoding != EncodingKind::EVEX;
    let part = sequence.anatomies().find(|part| few(part.sample.op_code().encoding()));
    let mut allocator = RegisterAllocator::new(&part.or_else(|| sequence.anatomies().next())?);
    sequence.used_registers().registers().for_each(|full| allocator.exclude_register(full));
    Some(allocator)
}

/// Allocates equally many registers for each of these to rotate through. Each rotation starts with
/// the original register.
fn allocate_pools(
    turned: &[Register],
    allocator: &mut RegisterAllocator,
    most: usize,
) -> Option<Vec<(Register, Vec<u8>)>> {
    if turned.is_empty() {
        return Some(Vec::new());
    }
    let share = |full: &Register| {
        let bank = RegisterBank::from_register(*full);
        1 + allocator.clone().count_left(bank)
            / turned.iter().filter(|other| RegisterBank::from_register(**other) == bank).count()
    };
    let count = turned.iter().map(share).min()?.min(most);
    let pool = |full: &Register| {
        let mut pool = vec![full.number() as u8];
        if count > 1 {
            pool.extend(allocator.allocate_rotation(RegisterBank::from_register(*full), count - 1)?);
        }
        Some((*full, pool))
    };
    turned.iter().map(pool).collect()
}
