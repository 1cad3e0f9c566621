//! Studies: questions that take many measurements.

pub mod evaluate;
pub(crate) mod glob;
pub mod instr;
pub mod marker;
