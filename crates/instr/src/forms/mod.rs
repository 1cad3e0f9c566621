//! Instruction forms taken apart: their operands, what each needs to run, and which are skipped; and sequences.

pub mod encoded_constant;
pub mod form_anatomy;
pub(crate) mod gather;
mod immediate_meaning;
pub mod instruction_sequence;
pub(crate) mod instruction_setting;
pub(crate) mod privileged;
pub mod skip;
pub mod target_form;
