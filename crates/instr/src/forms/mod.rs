//! Instruction forms and sequences: their operands, the settings that they need, and reasons to
//! skip.

pub mod encoded_constant;
pub mod form_anatomy;
pub(crate) mod gather;
mod immediate_meaning;
pub mod instruction_sequence;
pub(crate) mod instruction_setting;
pub(crate) mod privileged;
pub(crate) mod setting_code;
pub mod skip;
pub mod target_form;
