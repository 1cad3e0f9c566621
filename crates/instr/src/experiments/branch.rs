//! Experiments of near branches, which no body of copies one after the other can hold as they are.
//!
//! A direct jump goes to the next instance, which stands some bytes further on: its cost is a curve over that distance.
//! Calls and returns are measured as pairs, for neither goes without the other.

mod body;
mod calls;
mod condition;
mod jumps;
#[cfg(test)]
mod tests;

use super::experiment::Experiment;
use crate::forms::operands::{Anatomy, Place};
use iced_x86::{Code, Instruction, Register};

/// What a near branch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// By the flags.
    Conditional,
    /// LOOP, LOOPE, LOOPNE: counts RCX down.
    Loop,
    /// By RCX alone.
    Counter,
    Jump,
    JumpIndirect,
    /// A call, direct or not, or a return.
    Pair,
}

fn kind(sample: &Instruction) -> Option<Kind> {
    Some(match sample.code() {
        Code::Retnq | Code::Retnq_imm16 => Kind::Pair,
        _ if sample.is_call_near() || sample.is_call_near_indirect() => Kind::Pair,
        _ if sample.is_jcc_short_or_near() => Kind::Conditional,
        _ if sample.is_loop() || sample.is_loopcc() => Kind::Loop,
        _ if sample.is_jcx_short() => Kind::Counter,
        _ if sample.is_jmp_short_or_near() => Kind::Jump,
        _ if sample.is_jmp_near_indirect() => Kind::JumpIndirect,
        _ => return None,
    })
}

/// The experiments of a near branch; `None` for any other instruction. Its latencies come last.
pub(crate) fn experiments(anatomy: &Anatomy) -> Option<Vec<Experiment>> {
    let sample = &anatomy.sample;
    let mut found = match kind(sample)? {
        Kind::Conditional | Kind::Counter => jumps::conditional(sample),
        Kind::Loop => jumps::counting(sample),
        Kind::Jump => jumps::direct(sample),
        Kind::JumpIndirect => jumps::indirect(sample),
        Kind::Pair => calls::pairs(sample),
    };
    let counter =
        |place: Place| matches!(place, Place::Fixed(register) if register.full_register() == Register::RCX);
    let from = anatomy.inputs.iter().find(|port| counter(port.place));
    let to = anatomy.outputs.iter().find(|port| counter(port.place));
    if let (Some(from), Some(to)) = (from, to) {
        found.extend(jumps::count_down(sample, &from.name, &to.name));
    }
    Some(found)
}
