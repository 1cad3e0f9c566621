//! Studies: questions that take many measurements.

mod contract;
pub mod evaluate;
pub(crate) mod glob;
pub mod instr;
pub mod marker;

pub use contract::{Follow, Progress, Record, Stop, Study};
