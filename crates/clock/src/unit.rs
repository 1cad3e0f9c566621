//! Units as types, so that ticks are never mistaken for cycles.

/// A number of TSC ticks, which advance at a fixed rate.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Ticks(pub f64);

/// A number of cycles of the core's own clock, at whatever frequency it ran.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct CoreCycles(pub f64);
