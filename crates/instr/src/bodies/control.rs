//! Instructions whose time depends on which control register they name, or on a number for what they do.

use iced_x86::{Code, Instruction, OpKind, Register};

/// A program that differs from the headline's in one respect.
pub(crate) struct Other {
    /// In which.
    pub name: String,
    /// One period.
    pub period: Vec<Instruction>,
    /// What runs before, behind what any program of the form needs.
    pub init: Vec<Instruction>,
}

const CONTROL: [Register; 4] = [Register::CR2, Register::CR3, Register::CR4, Register::CR8];
/// DR4 and DR5 are other names of DR6 and DR7, or raise an exception.
const DEBUG: [Register; 5] = [Register::DR1, Register::DR2, Register::DR3, Register::DR6, Register::DR7];
/// INVPCID's types beside 0, a single address: one context, all, and all but global translations.
const TYPES: [u32; 3] = [1, 2, 3];

/// The other programs of a form, from one period of the headline's. Some may be refused.
pub(crate) fn others(code: Code, period: &[Instruction]) -> Vec<Other> {
    let named = |registers: &[Register], operand: u32, written: bool| {
        registers.iter().filter_map(|register| renamed(code, period, *register, operand, written)).collect()
    };
    match code {
        Code::Mov_r64_cr => named(&CONTROL, 1, false),
        Code::Mov_cr_r64 => named(&CONTROL, 0, true),
        Code::Mov_r64_dr => named(&DEBUG, 1, false),
        Code::Mov_dr_r64 => named(&DEBUG, 0, true),
        Code::Invpcid_r64_m128 => {
            TYPES.iter().filter_map(|number| invalidation(code, period, *number)).collect()
        }
        _ => Vec::new(),
    }
}

fn renamed(
    code: Code,
    period: &[Instruction],
    register: Register,
    operand: u32,
    written: bool,
) -> Option<Other> {
    let mut period = period.to_vec();
    let mut init = Vec::new();
    for instance in period.iter_mut().filter(|one| one.code() == code) {
        instance.set_op_register(operand, register);
        if written && init.is_empty() {
            // Zero fits all of them.
            init.push(number(instance.op_register(1 - operand), 0)?);
        }
    }
    Some(Other { name: format!("{register:?}").to_lowercase(), period, init })
}

fn invalidation(code: Code, period: &[Instruction], kind: u32) -> Option<Other> {
    let instance = period.iter().find(|one| one.code() == code && one.op0_kind() == OpKind::Register)?;
    let init = vec![number(instance.op0_register(), kind)?];
    Some(Other { name: format!("type {kind}"), period: period.to_vec(), init })
}

/// `mov r32, number` for the lower half of a register.
fn number(register: Register, number: u32) -> Option<Instruction> {
    let low = Register::EAX + register.number() as u32;
    Instruction::with2(Code::Mov_r32_imm32, low, number).ok()
}
