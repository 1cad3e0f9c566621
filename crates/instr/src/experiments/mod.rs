//! Which programs a form takes, how they are timed, and what their layouts say.

pub(crate) mod branch;
mod constants;
mod cycles;
pub mod effort;
pub mod experiment;
mod fence;
pub mod form_plan;
pub mod gauge;
pub(crate) mod measurement;
pub(crate) mod modes;
pub mod program_reading;
pub mod regime_reading;
pub(crate) mod regimes;
pub mod ring_0;
mod sequence;
pub(crate) mod timing;
pub(crate) mod trip;
