//! One spelling of an instruction.

use iced_x86::{Code, Register};

/// Destination of a written operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperandTarget {
    /// An operand of the instruction.
    Operand(u32),
    /// None: the instruction implies this register.
    Implied(Register),
}

/// One spelling of an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MnemonicPattern {
    pub(super) code: Code,
    pub(super) targets: Vec<OperandTarget>,
    /// Immediate of a pseudo-operation such as `cmpltps`.
    pub(super) immediate: Option<u8>,
}
