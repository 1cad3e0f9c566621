//! Which programs a form takes, how they are timed, and what their layouts say.

pub(crate) mod branch;
pub mod effort;
pub mod experiment;
pub mod form_plan;
pub mod gauge;
pub(in crate::study::instr) mod measurement;
pub(crate) mod modes;
pub mod program_reading;
pub mod ring_0;
pub(crate) mod timing;
