//! Programs of a sequence: repetitions that wait for each other through one register or through the flags, and
//! repetitions that do not.
//!
//! A register that the sequence writes is another one in the next repetition, where nothing implies it. One that is
//! implied and carried gets its first value again before each repetition, and carried flags are set anew; these
//! instructions count. What is carried in memory, or in other registers, is left as it is, and the program says so.

use super::registers::Allocator;
use super::throughput::{Addresses, Body, Breaking, Hazards, Recipe, breakers, copy, nop};
use crate::forms::operands::Bank;
use crate::forms::sequence::Sequence;
use cyclescope_code::asm::registers::RegisterSet;
use iced_x86::{EncodingKind, Register, RflagsBits};

/// Through what repetitions wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// This full register.
    Register(Register),
    /// The flags.
    Flags,
}

impl Carrier {
    /// Through what repetitions of a sequence can wait for each other and through nothing else, in turn.
    pub(crate) fn all(sequence: &Sequence) -> Vec<Carrier> {
        let carried = sequence.carried();
        let mut all: Vec<Carrier> =
            carried.registers().filter(|full| *full != Register::RSP).map(Carrier::Register).collect();
        // The loop's counter changes all flags but the carry: other flags would not come from the repetition before.
        all.extend((carried.flags() == RflagsBits::CF).then_some(Carrier::Flags));
        all
    }

    /// Its name in a row.
    pub(crate) fn name(self, sequence: &Sequence) -> String {
        match self {
            Carrier::Register(full) => sequence.name(full),
            Carrier::Flags => "flags".to_string(),
        }
    }
}

/// The body by a recipe, in which repetitions wait for each other through `kept` at most; `None` where it does not exist.
/// `set` is what the init code writes.
pub(crate) fn body(
    sequence: &Sequence,
    recipe: Recipe,
    kept: Option<Carrier>,
    set: RegisterSet,
) -> Option<Body> {
    let carried = sequence.carried();
    let is_kept = |full: Register| kept == Some(Carrier::Register(full));
    // Only general registers get the value of the one in whose place they stand.
    let renamed = |full: &Register| {
        !is_kept(*full) && sequence.can_rename(*full) && (full.is_gpr64() || !set.contains(*full))
    };
    let (turned, implied): (Vec<Register>, Vec<Register>) =
        sequence.writes().registers().filter(|full| !is_kept(*full)).partition(renamed);
    let mut allocator = allocator(sequence)?;
    let (mut restored, mut left) = (Vec::new(), sequence.carries_memory());
    for full in implied.into_iter().filter(|full| carried.contains(*full) && *full != Register::RSP) {
        match full.is_gpr64() {
            true => restored.push((full, allocator.constant(Bank::General)?)),
            false => left = true,
        }
    }
    let flags = match carried.flags() != 0 && kept != Some(Carrier::Flags) {
        true => Some(allocator.constant(Bank::General)?),
        false => None,
    };
    let pools = pools(&turned, &mut allocator, recipe.destinations)?;
    let destinations = pools.first().map_or(1, |(_, pool)| pool.len());
    let mut copies = destinations;
    while copies % recipe.nop_after.unwrap_or(1) != 0 {
        copies += destinations;
    }
    let mut period = Vec::new();
    for at in 0..copies {
        let names: Vec<(Register, u8)> =
            pools.iter().map(|(full, pool)| (*full, pool[at % destinations])).collect();
        breakers(recipe.breaking, at == 0, &Hazards::default(), &restored, flags, &mut period)?;
        period.extend(sequence.renamed(&names)?);
        if recipe.nop_after.is_some_and(|after| at % after == after - 1) {
            period.push(nop());
        }
    }
    let mut init: Vec<_> = restored.iter().map(|(full, constant)| copy(*constant, *full)).collect();
    for (full, pool) in pools.iter().filter(|(full, _)| full.is_gpr64() && carried.contains(*full)) {
        init.extend(pool[1..].iter().map(|number| copy(*number, *full)));
    }
    let hazards = left || flags.is_some() || !restored.is_empty();
    let breaking = if left { Breaking::None } else { recipe.breaking };
    let destinations = if pools.is_empty() { 0 } else { destinations };
    let recipe = Recipe { destinations, addresses: Addresses::One, breaking, ..recipe };
    Some(Body { recipe, period, copies, init, masks: false, hazards })
}

/// Registers that the sequence leaves alone.
fn allocator(sequence: &Sequence) -> Option<Allocator> {
    // Only EVEX code has 32 vector registers.
    let few = |encoding: EncodingKind| encoding != EncodingKind::EVEX;
    let part = sequence.parts().find(|part| few(part.sample.op_code().encoding()));
    let mut allocator = Allocator::new(&part.or_else(|| sequence.parts().next())?);
    sequence.uses().registers().for_each(|full| allocator.take(full));
    Some(allocator)
}

/// As many registers for each of these to go through, itself first.
fn pools(turned: &[Register], allocator: &mut Allocator, most: usize) -> Option<Vec<(Register, Vec<u8>)>> {
    if turned.is_empty() {
        return Some(Vec::new());
    }
    let share = |full: &Register| {
        let bank = Bank::of(*full);
        1 + allocator.clone().left(bank) / turned.iter().filter(|other| Bank::of(**other) == bank).count()
    };
    let count = turned.iter().map(share).min()?.min(most);
    let pool = |full: &Register| {
        let mut pool = vec![full.number() as u8];
        if count > 1 {
            pool.extend(allocator.rotation(Bank::of(*full), count - 1)?);
        }
        Some((*full, pool))
    };
    turned.iter().map(pool).collect()
}
