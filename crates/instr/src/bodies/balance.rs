//! What has to stand beside each instance so that a state stays what programs need.

use super::x87;
use iced_x86::{Code, Instruction, Mnemonic};

/// What comes before each instance, and what after it.
pub(crate) fn balance_instance(instruction: &Instruction) -> (Vec<Instruction>, Vec<Instruction>) {
    match instruction.mnemonic() {
        // An interrupt would end the code; none comes right after STI (Intel SDM vol. 2, STI).
        Mnemonic::Sti => (Vec::new(), vec![Instruction::with(Code::Cli)]),
        _ => x87::balance_stack(instruction),
    }
}
