//! Studies: questions that take many measurements.

pub mod evaluate;
pub mod glob;
pub mod instr;
pub mod marker;
