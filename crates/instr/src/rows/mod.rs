//! A form's row: made of its readings, explained, and kept in a file.

pub(crate) mod analysis;
mod best;
pub(crate) mod constants;
pub mod explanation;
pub(crate) mod extremes;
mod latency;
mod memory;
mod regimes;
pub mod row;
pub mod table;
mod throughput;
mod ways;
