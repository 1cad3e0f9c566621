//! Experiments for near branches, which can't simply be copied into a body.
//!
//! A direct jump leads to the next instance, some bytes further on. Its cost is a curve over that
//! distance. Calls and returns are measured as pairs, because each needs the other.

mod branch_body;
mod calls;
mod condition;
mod jumps;
#[cfg(test)]
mod tests;

use super::experiment::FormExperiment;
use crate::forms::form_anatomy::{FormAnatomy, OperandPlace};
use iced_x86::{Code, Instruction, Register};

/// Kinds of near branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NearBranchKind {
    /// Depends on the flags.
    Conditional,
    /// LOOP, LOOPE, LOOPNE: decrements RCX.
    Loop,
    /// Depends on RCX only.
    Counter,
    Jump,
    JumpIndirect,
    /// A call, direct or indirect, or a return.
    Pair,
}

fn classify_branch(sample: &Instruction) -> Option<NearBranchKind> {
    Some(match sample.code() {
        Code::Retnq | Code::Retnq_imm16 | Code::Retnd | Code::Retnd_imm16 => NearBranchKind::Pair,
        _ if sample.is_call_near() || sample.is_call_near_indirect() => NearBranchKind::Pair,
        _ if sample.is_jcc_short_or_near() => NearBranchKind::Conditional,
        _ if sample.is_loop() || sample.is_loopcc() => NearBranchKind::Loop,
        _ if sample.is_jcx_short() => NearBranchKind::Counter,
        _ if sample.is_jmp_short_or_near() => NearBranchKind::Jump,
        _ if sample.is_jmp_near_indirect() => NearBranchKind::JumpIndirect,
        _ => return None,
    })
}

/// Whether it is a near branch.
pub(crate) fn is_branch(sample: &Instruction) -> bool {
    classify_branch(sample).is_some()
}

/// The experiments of a near branch, latencies last. `None` for other instructions.
pub(crate) fn plan_branch(anatomy: &FormAnatomy) -> Option<Vec<FormExperiment>> {
    let sample = &anatomy.sample;
    let mut found = match classify_branch(sample)? {
        NearBranchKind::Conditional | NearBranchKind::Counter => jumps::plan_conditional_jumps(sample),
        NearBranchKind::Loop => jumps::plan_loop_branches(sample),
        NearBranchKind::Jump => jumps::plan_direct_jumps(sample),
        NearBranchKind::JumpIndirect => jumps::plan_indirect_jumps(sample),
        NearBranchKind::Pair => calls::plan_call_pairs(sample),
    };
    let counter = |place: OperandPlace| {
        matches!(
            place,
            OperandPlace::Fixed(register) if register.full_register() == Register::RCX
        )
    };
    let from = anatomy.inputs.iter().find(|port| counter(port.place));
    let to = anatomy.outputs.iter().find(|port| counter(port.place));
    if let (Some(from), Some(to)) = (from, to) {
        found.extend(jumps::plan_counter_chain(sample, &from.name, &to.name));
    }
    Some(found)
}
