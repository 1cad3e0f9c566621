//! Units as types: ticks of the time stamp counter, cycles of the core clock, nanoseconds.
//!
//! The time stamp counter (TSC) runs at a fixed rate of its own, the core clock at whatever rate power
//! management chose: a number of one is not a number of the other, so the two are types that do not mix.
//! Conversions need a measured rate and are therefore functions of [`crate::measure`], never `From`.

use serde::Serialize;

/// A duration in ticks of the time stamp counter.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct TscTicks(pub f64);

/// A duration in true cycles of the core clock.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct CoreCycles(pub f64);

/// A duration in nanoseconds of `CLOCK_MONOTONIC_RAW`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Nanos(pub f64);

/// A frequency in hertz.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Hertz(pub f64);

impl Hertz {
    /// The frequency in megahertz.
    pub fn megahertz(self) -> f64 {
        self.0 / 1e6
    }

    /// How far `self` lies above `reference`, in parts per million.
    pub fn ppm_above(self, reference: Hertz) -> f64 {
        (self.0 / reference.0 - 1.0) * 1e6
    }
}
