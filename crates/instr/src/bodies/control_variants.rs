//! Variants of instructions whose time depends on a control register or on an operation number.

use iced_x86::{Code, Instruction, OpKind, Register};

/// A program that differs from the headline's in one respect.
pub(crate) struct ControlVariant {
    /// The register or operation of this variant.
    pub name: String,
    /// One period of the body.
    pub period: Vec<Instruction>,
    /// Init code, run after the code that all programs of the form need.
    pub init: Vec<Instruction>,
}

const CONTROL_REGISTERS: [Register; 4] = [Register::CR2, Register::CR3, Register::CR4, Register::CR8];
/// DR4 and DR5 are aliases of DR6 and DR7, or raise an exception.
const DEBUG_REGISTERS: [Register; 5] = [Register::DR1, Register::DR2, Register::DR3, Register::DR6, Register::DR7];
/// INVPCID's types other than 0 (single address): one context, all, and all except global
/// translations.
const INVALIDATION_TYPES: [u32; 3] = [1, 2, 3];

/// The variants of a form, derived from one period of the headline's. Ring 0 may refuse some.
pub(crate) fn build_variants(code: Code, period: &[Instruction]) -> Vec<ControlVariant> {
    let named = |registers: &[Register], operand: u32, written: bool| {
        registers.iter().filter_map(|register| replace_register(code, period, *register, operand, written)).collect()
    };
    match code {
        Code::Mov_r64_cr => named(&CONTROL_REGISTERS, 1, false),
        Code::Mov_cr_r64 => named(&CONTROL_REGISTERS, 0, true),
        Code::Mov_r64_dr => named(&DEBUG_REGISTERS, 1, false),
        Code::Mov_dr_r64 => named(&DEBUG_REGISTERS, 0, true),
        Code::Invpcid_r64_m128 => {
            INVALIDATION_TYPES.iter().filter_map(|number| set_invalidation_type(code, period, *number)).collect()
        }
        _ => Vec::new(),
    }
}

fn replace_register(
    code: Code,
    period: &[Instruction],
    register: Register,
    operand: u32,
    written: bool,
) -> Option<ControlVariant> {
    let mut period = period.to_vec();
    let mut init = Vec::new();
    for instance in period.iter_mut().filter(|one| one.code() == code) {
        instance.set_op_register(operand, register);
        if written && init.is_empty() {
            // Zero is valid for all of them.
            init.push(build_number_load(instance.op_register(1 - operand), 0)?);
        }
    }
    Some(ControlVariant { name: format!("{register:?}").to_lowercase(), period, init })
}

fn set_invalidation_type(code: Code, period: &[Instruction], kind: u32) -> Option<ControlVariant> {
    let instance = period.iter().find(|one| one.code() == code && one.op0_kind() == OpKind::Register)?;
    let init = vec![build_number_load(instance.op0_register(), kind)?];
    Some(ControlVariant { name: format!("type {kind}"), period: period.to_vec(), init })
}

/// `mov r32, number` for the lower half of a register.
fn build_number_load(register: Register, number: u32) -> Option<Instruction> {
    let low = Register::EAX + register.number() as u32;
    Instruction::with2(Code::Mov_r32_imm32, low, number).ok()
}
