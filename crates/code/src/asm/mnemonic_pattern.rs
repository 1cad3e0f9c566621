//! One way to write an instruction.

use iced_x86::{Code, Register};

/// Where an operand as written goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperandTarget {
    /// An operand of the instruction.
    Operand(u32),
    /// Nowhere: the instruction implies this register.
    Implied(Register),
}

/// One way to write an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MnemonicPattern {
    pub(super) code: Code,
    pub(super) targets: Vec<OperandTarget>,
    /// The immediate of a pseudo-operation such as `cmpltps`.
    pub(super) immediate: Option<u8>,
}
