//! Units as types: ticks are never called cycles.

/// A number of TSC ticks, which pass at a fixed rate.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Ticks(pub f64);

/// A number of cycles of the core's own clock, at whatever frequency it ran.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct CoreCycles(pub f64);
