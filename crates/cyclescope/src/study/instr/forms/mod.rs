//! Instruction forms taken apart: their operands, what each needs to run, and which are skipped.

pub(crate) mod gather;
pub mod operands;
pub(crate) mod privileged;
pub(crate) mod settings;
pub mod skip;
pub mod wanted;
