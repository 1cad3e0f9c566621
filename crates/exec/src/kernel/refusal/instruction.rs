//! Whether one instruction is refused, by the register facts before it.

use super::decode::{self, DecodedInstruction};
use super::lists::{ALLOWED_PRIVILEGED, Msr, READABLE_MSRS, REFUSED_INSTRUCTIONS, WAIT_INSTRUCTIONS, WRITABLE_MSRS};
use super::reason::RefusalReason;
use super::register_facts::RegisterFacts;
use cyclescope_code::program::LoopPlan;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};

/// The vector of a non-maskable interrupt.
const NMI: u8 = 2;

/// Why an instruction is refused on every machine.
pub(super) fn find_general_reason(instruction: &Instruction, facts: &RegisterFacts) -> Option<RefusalReason> {
    let mnemonic = instruction.mnemonic();
    if let Some((reason, _)) = REFUSED_INSTRUCTIONS.iter().find(|(_, list)| list.contains(&mnemonic)) {
        return Some(*reason);
    }
    let listed = |msrs: &[Msr]| facts.known_ecx().is_some_and(|ecx| msrs.iter().any(|(number, _)| *number == ecx));
    match mnemonic {
        Mnemonic::Mov => check_control_register(instruction, facts),
        Mnemonic::Int => (instruction.immediate8() == NMI).then_some(RefusalReason::FalseNmi),
        Mnemonic::Rdmsr => (!listed(READABLE_MSRS)).then_some(RefusalReason::ModelSpecific),
        Mnemonic::Wrmsr => (!listed(WRITABLE_MSRS)).then_some(RefusalReason::ModelSpecific),
        Mnemonic::Xsetbv => (!facts.holds_xcr0()).then_some(RefusalReason::ExtendedState),
        _ => {
            let info = instruction.op_code();
            let privileged = info.is_privileged() || !info.cpl3() || info.is_input_output();
            (privileged && !ALLOWED_PRIVILEGED.contains(&mnemonic)).then_some(RefusalReason::Unlisted)
        }
    }
}

fn check_control_register(instruction: &Instruction, facts: &RegisterFacts) -> Option<RefusalReason> {
    if instruction.op0_kind() != OpKind::Register {
        return None;
    }
    let (to, from) = (instruction.op0_register(), instruction.op1_register());
    if to.is_tr() || from.is_tr() {
        return Some(RefusalReason::Vendor);
    }
    match to {
        Register::CR0 => (!facts.holds_cr0(from)).then_some(RefusalReason::MachineStatus),
        Register::CR2 | Register::CR8 => None,
        Register::CR3 => Some(RefusalReason::PageTables),
        _ if to.is_cr() => Some(RefusalReason::ControlRegister),
        Register::DR0 | Register::DR1 | Register::DR2 | Register::DR3 => None,
        // DR4 is DR6 where debugging extensions are off, and DR5 is DR7 (Intel SDM vol. 3, 18.2.2).
        Register::DR4 | Register::DR6 => None,
        _ if to.is_dr() => Some(RefusalReason::DebugControl),
        _ => None,
    }
}

/// Why an instruction is refused if nothing could end it. Code that only goes forward reaches its
/// end.
pub(super) fn find_lone_cpu_reason(decoded: &DecodedInstruction, looped: Option<LoopPlan>) -> Option<RefusalReason> {
    let instruction = &decoded.instruction;
    if is_indirect_branch(instruction) {
        return Some(RefusalReason::LoneIndirect);
    }
    if is_direct_branch(instruction) && decode::branch_target(instruction) <= decode::code_offset(instruction) as i64 {
        return Some(RefusalReason::LoneBackward);
    }
    let repeated = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    if repeated && instruction.is_string_instruction() {
        return Some(RefusalReason::LoneRepeat);
    }
    if WAIT_INSTRUCTIONS.contains(&instruction.mnemonic()) {
        return Some(RefusalReason::LoneWait);
    }
    let counter = looped.and_then(|looped| looped.counter()).map_or(0, |counter| 1 << counter.number());
    (decoded.writes & counter != 0).then_some(RefusalReason::LoneCounter)
}

/// Whether the instruction is a direct near branch.
pub(super) fn is_direct_branch(instruction: &Instruction) -> bool {
    let near = [OpKind::NearBranch16, OpKind::NearBranch32, OpKind::NearBranch64];
    near.contains(&instruction.op0_kind())
}

/// Whether the instruction is an indirect branch.
pub(super) fn is_indirect_branch(instruction: &Instruction) -> bool {
    let branches = [FlowControl::IndirectBranch, FlowControl::IndirectCall, FlowControl::Return];
    branches.contains(&instruction.flow_control()) || is_far_branch(instruction)
}

/// Whether the instruction can branch to a code segment of another size.
fn is_far_branch(instruction: &Instruction) -> bool {
    let returns = [Mnemonic::Retf, Mnemonic::Iret, Mnemonic::Iretd, Mnemonic::Iretq];
    returns.contains(&instruction.mnemonic())
        || instruction.is_jmp_far_indirect()
        || instruction.is_call_far_indirect()
        || instruction.is_jmp_far()
        || instruction.is_call_far()
}
