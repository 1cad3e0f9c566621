//! The x87 stack: keeps it from overflow and underflow.
//!
//! Overflow and underflow cost hundreds of cycles. Programs start with six values on the stack. A
//! pop follows each instance that pushes, and a push precedes each that pops.

use iced_x86::{Code, Instruction, Mnemonic, Register};

/// The initial values on the stack, top last. They have full mantissas, and F2XM1 accepts the top.
const STACK_VALUES: [Code; 6] = [Code::Fldpi, Code::Fldl2t, Code::Fldpi, Code::Fldl2e, Code::Fldlg2, Code::Fldln2];

/// Code that fills the stack.
pub(crate) fn fill_stack() -> Vec<Instruction> {
    STACK_VALUES.map(Instruction::with).to_vec()
}

/// Whether the instruction works on the stack, and not on the whole x87 state.
pub fn uses_stack(instruction: &Instruction) -> bool {
    let register = (0..instruction.op_count()).any(|operand| instruction.op_register(operand).is_st());
    register || instruction.op_code().fwait() || instruction.mnemonic() != Mnemonic::Fnop && is_x87(instruction)
}

fn is_x87(instruction: &Instruction) -> bool {
    use iced_x86::CpuidFeature as F;
    instruction.cpuid_features().iter().any(|feature| matches!(feature, F::FPU | F::FPU287 | F::FPU387))
}

/// Instructions before and after each instance that keep the height of the stack.
pub(crate) fn balance_stack(instruction: &Instruction) -> (Vec<Instruction>, Vec<Instruction>) {
    let pop = || Instruction::with1(Code::Fstp_sti, Register::ST0).expect("fstp st0");
    let push = || Instruction::with1(Code::Fld_sti, Register::ST0).expect("fld st0");
    // These rotate the stack and mark no register as used or free.
    if matches!(instruction.mnemonic(), Mnemonic::Fincstp | Mnemonic::Fdecstp) || !is_x87(instruction) {
        return (Vec::new(), Vec::new());
    }
    match instruction.fpu_stack_increment_info().increment() {
        pushes if pushes < 0 => (Vec::new(), (0..-pushes).map(|_| pop()).collect()),
        pops => ((0..pops).map(|_| push()).collect(), Vec::new()),
    }
}
