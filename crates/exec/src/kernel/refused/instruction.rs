//! Whether one instruction is refused, by the register facts before it.

use super::decode::{self, DecodedInstruction};
use super::facts::{COUNTER, Facts};
use super::lists::{ALLOWED, Msr, READABLE, REFUSED, WAITS, WRITABLE};
use super::reason::Reason;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};

/// The vector of a non-maskable interrupt.
const NMI: u8 = 2;

/// Why an instruction is refused on every machine.
pub(super) fn always(instruction: &Instruction, facts: &Facts) -> Option<Reason> {
    let mnemonic = instruction.mnemonic();
    if let Some((reason, _)) = REFUSED.iter().find(|(_, list)| list.contains(&mnemonic)) {
        return Some(*reason);
    }
    let listed = |msrs: &[Msr]| facts.ecx().is_some_and(|ecx| msrs.iter().any(|(number, _)| *number == ecx));
    match mnemonic {
        Mnemonic::Mov => control_register(instruction, facts),
        Mnemonic::Int => (instruction.immediate8() == NMI).then_some(Reason::FalseNmi),
        Mnemonic::Rdmsr => (!listed(READABLE)).then_some(Reason::ModelSpecific),
        Mnemonic::Wrmsr => (!listed(WRITABLE)).then_some(Reason::ModelSpecific),
        Mnemonic::Xsetbv => (!facts.is_xcr0()).then_some(Reason::ExtendedState),
        _ => {
            let info = instruction.op_code();
            let privileged = info.is_privileged() || !info.cpl3() || info.is_input_output();
            (privileged && !ALLOWED.contains(&mnemonic)).then_some(Reason::Unlisted)
        }
    }
}

fn control_register(instruction: &Instruction, facts: &Facts) -> Option<Reason> {
    if instruction.op0_kind() != OpKind::Register {
        return None;
    }
    let (to, from) = (instruction.op0_register(), instruction.op1_register());
    if to.is_tr() || from.is_tr() {
        return Some(Reason::Vendor);
    }
    match to {
        Register::CR0 => (!facts.is_cr0(from)).then_some(Reason::MachineStatus),
        Register::CR2 | Register::CR8 => None,
        Register::CR3 => Some(Reason::PageTables),
        _ if to.is_cr() => Some(Reason::ControlRegister),
        Register::DR0 | Register::DR1 | Register::DR2 | Register::DR3 => None,
        // DR4 is DR6 where debugging extensions are off, and DR5 is DR7 (Intel SDM vol. 3, 18.2.2).
        Register::DR4 | Register::DR6 => None,
        _ if to.is_dr() => Some(Reason::DebugControl),
        _ => None,
    }
}

/// Why an instruction is refused where nothing could end it. Code that only goes forward comes to its end.
pub(super) fn alone(decoded: &DecodedInstruction, counted: bool) -> Option<Reason> {
    let instruction = &decoded.instruction;
    if is_indirect(instruction) {
        return Some(Reason::LoneIndirect);
    }
    if is_direct(instruction) && decode::target(instruction) <= decode::offset(instruction) as i64 {
        return Some(Reason::LoneBackward);
    }
    let repeated = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    if repeated && instruction.is_string_instruction() {
        return Some(Reason::LoneRepeat);
    }
    if WAITS.contains(&instruction.mnemonic()) {
        return Some(Reason::LoneWait);
    }
    (counted && decoded.writes & (1 << COUNTER) != 0).then_some(Reason::LoneCounter)
}

/// Whether the instruction is a direct near branch.
pub(super) fn is_direct(instruction: &Instruction) -> bool {
    let near = [OpKind::NearBranch16, OpKind::NearBranch32, OpKind::NearBranch64];
    near.contains(&instruction.op0_kind())
}

/// Whether the instruction is an indirect branch.
pub(super) fn is_indirect(instruction: &Instruction) -> bool {
    let branches = [FlowControl::IndirectBranch, FlowControl::IndirectCall, FlowControl::Return];
    branches.contains(&instruction.flow_control()) || is_far(instruction)
}

/// Whether the instruction can branch to a code segment of another size.
fn is_far(instruction: &Instruction) -> bool {
    let returns = [Mnemonic::Retf, Mnemonic::Iret, Mnemonic::Iretd, Mnemonic::Iretq];
    returns.contains(&instruction.mnemonic())
        || instruction.is_jmp_far_indirect()
        || instruction.is_call_far_indirect()
        || instruction.is_jmp_far()
        || instruction.is_call_far()
}
