//! Studies: questions that take many measurements.

mod contract;
pub mod evaluate;
pub(crate) mod glob;
pub mod instr;
pub mod marker;
pub mod run;

pub use contract::{Follow, Progress, Record, Role, Stop, Study};
