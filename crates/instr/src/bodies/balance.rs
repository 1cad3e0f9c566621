//! Instructions around each instance that keep a state within the needs of a program.

use super::x87;
use iced_x86::{Code, Instruction, Mnemonic};

/// Instructions to put before and after each instance.
pub(crate) fn balance_instance(instruction: &Instruction) -> (Vec<Instruction>, Vec<Instruction>) {
    match instruction.mnemonic() {
        // An interrupt would end the code. None arrives right after STI (Intel SDM vol. 2, STI).
        Mnemonic::Sti => (Vec::new(), vec![Instruction::with(Code::Cli)]),
        _ => x87::balance_stack(instruction),
    }
}
