//! Instructions around each instance that keep a state within the needs of a program.

use super::x87;
use iced_x86::{Code, Instruction, MemoryOperand, Mnemonic, Register};

/// Pushes of what an instance pops in 32-bit code. Other values would be no segment, or change the
/// loop counter.
const PUSHES: [(Code, Code); 8] = [
    (Code::Popw_ES, Code::Pushw_ES),
    (Code::Popd_ES, Code::Pushd_ES),
    (Code::Popw_DS, Code::Pushw_DS),
    (Code::Popd_DS, Code::Pushd_DS),
    (Code::Popw_SS, Code::Pushw_SS),
    (Code::Popd_SS, Code::Pushd_SS),
    (Code::Popaw, Code::Pushaw),
    (Code::Popad, Code::Pushad),
];
/// Bytes that instances push whose form leaves no register to put the stack pointer back.
const PUSHED_BYTES: [(Code, i64); 2] = [(Code::Pushaw, 16), (Code::Pushad, 32)];

/// Whether the instructions around an instance keep the values of all registers that it writes.
pub(crate) fn keeps_registers(code: Code) -> bool {
    PUSHES.iter().any(|(pop, _)| *pop == code) || PUSHED_BYTES.iter().any(|(push, _)| *push == code)
}

/// The push of what an instance pops, if it needs one.
fn build_push(instruction: &Instruction) -> Option<Instruction> {
    let (_, push) = PUSHES.iter().find(|(pop, _)| *pop == instruction.code())?;
    match instruction.op0_register() {
        Register::None => Some(Instruction::with(*push)),
        segment => Instruction::with1(*push, segment).ok(),
    }
}

/// Instructions to put before and after each instance.
pub(crate) fn balance_instance(instruction: &Instruction) -> (Vec<Instruction>, Vec<Instruction>) {
    if let Some(push) = build_push(instruction) {
        return (vec![push], Vec::new());
    }
    if let Some((_, bytes)) = PUSHED_BYTES.iter().find(|(push, _)| *push == instruction.code()) {
        let top = MemoryOperand::with_base_displ(Register::RSP, *bytes);
        return (Vec::new(), vec![Instruction::with2(Code::Lea_r64_m, Register::RSP, top).expect("an address")]);
    }
    match instruction.mnemonic() {
        // An interrupt would end the code. None arrives right after STI (Intel SDM vol. 2, STI).
        Mnemonic::Sti => (Vec::new(), vec![Instruction::with(Code::Cli)]),
        _ => x87::balance_stack(instruction),
    }
}
