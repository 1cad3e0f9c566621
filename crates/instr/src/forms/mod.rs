//! Instruction forms taken apart: their operands, what each needs to run, and which are skipped; and sequences.

pub mod constants;
pub(crate) mod gather;
mod meaning;
pub mod operands;
pub(crate) mod privileged;
pub mod sequence;
pub(crate) mod settings;
pub mod skip;
pub mod wanted;
