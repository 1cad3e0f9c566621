//! Experiments of near branches, which no body of copies one after the other can hold as they are.
//!
//! A direct jump goes to the next instance, which stands some bytes further on: its cost is a curve over that distance.
//! Calls and returns are measured as pairs, for neither goes without the other.

mod branch_body;
mod calls;
mod condition;
mod jumps;
#[cfg(test)]
mod tests;

use super::experiment::FormExperiment;
use crate::forms::form_anatomy::{FormAnatomy, OperandPlace};
use iced_x86::{Code, Instruction, Register};

/// What a near branch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NearBranchKind {
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

fn classify_branch(sample: &Instruction) -> Option<NearBranchKind> {
    Some(match sample.code() {
        Code::Retnq | Code::Retnq_imm16 => NearBranchKind::Pair,
        _ if sample.is_call_near() || sample.is_call_near_indirect() => NearBranchKind::Pair,
        _ if sample.is_jcc_short_or_near() => NearBranchKind::Conditional,
        _ if sample.is_loop() || sample.is_loopcc() => NearBranchKind::Loop,
        _ if sample.is_jcx_short() => NearBranchKind::Counter,
        _ if sample.is_jmp_short_or_near() => NearBranchKind::Jump,
        _ if sample.is_jmp_near_indirect() => NearBranchKind::JumpIndirect,
        _ => return None,
    })
}

/// The experiments of a near branch; `None` for any other instruction. Its latencies come last.
pub(crate) fn plan_branch(anatomy: &FormAnatomy) -> Option<Vec<FormExperiment>> {
    let sample = &anatomy.sample;
    let mut found = match classify_branch(sample)? {
        NearBranchKind::Conditional | NearBranchKind::Counter => jumps::plan_conditional_jumps(sample),
        NearBranchKind::Loop => jumps::plan_loop_branches(sample),
        NearBranchKind::Jump => jumps::plan_direct_jumps(sample),
        NearBranchKind::JumpIndirect => jumps::plan_indirect_jumps(sample),
        NearBranchKind::Pair => calls::plan_call_pairs(sample),
    };
    let counter = |place: OperandPlace| matches!(place, OperandPlace::Fixed(register) if register.full_register() == Register::RCX);
    let from = anatomy.inputs.iter().find(|port| counter(port.place));
    let to = anatomy.outputs.iter().find(|port| counter(port.place));
    if let (Some(from), Some(to)) = (from, to) {
        found.extend(jumps::plan_counter_chain(sample, &from.name, &to.name));
    }
    Some(found)
}
