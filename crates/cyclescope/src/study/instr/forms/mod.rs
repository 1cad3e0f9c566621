//! Instruction forms taken apart: their operands, what each needs to run, and which are skipped.

pub mod gather;
pub mod operands;
pub mod privileged;
pub mod settings;
pub mod skip;
pub mod subject;
