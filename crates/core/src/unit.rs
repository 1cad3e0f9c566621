//! Units as types: a number of TSC ticks is not a number of core cycles.
//!
//! The time stamp counter (TSC) runs at a constant rate. The core clock runs at the rate that power
//! management chooses. Readings and results carry their [`Unit`]; a frequency is [`Hertz`].
//! Conversions need a measured rate, so estimates do them, never `From`.

use serde::{Deserialize, Serialize};

/// What a reading or result counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Ticks of the time stamp counter.
    TscTicks,
    /// Cycles of the core clock.
    CoreCycles,
    /// Nanoseconds of `CLOCK_MONOTONIC_RAW`.
    #[serde(rename = "ns")]
    Nanos,
    /// Megahertz.
    #[serde(rename = "MHz")]
    Megahertz,
    /// Latencies of a register-to-register addition.
    Adds,
    /// Calls of a function.
    Calls,
    /// Instructions.
    Instructions,
    /// Dispatch slots.
    Slots,
    /// Steps of a clock: the smallest increments of its readings.
    Steps,
    /// Squared steps, for variances.
    #[serde(rename = "steps2")]
    SquaredSteps,
    /// Bytes.
    Bytes,
    /// Plain number of things.
    Count,
    /// Things per core cycle.
    PerCycle,
    /// Bytes per core cycle.
    BytesPerCycle,
    /// Share of a whole, 0 to 1.
    Share,
    /// Ratio of two figures.
    Ratio,
}

impl Unit {
    /// The unit in words; empty for plain numbers.
    pub fn text(self) -> &'static str {
        match self {
            Unit::TscTicks => "TSC ticks",
            Unit::CoreCycles => "core cycles",
            Unit::Nanos => "nanoseconds",
            Unit::Megahertz => "MHz",
            Unit::Adds => "additions",
            Unit::Calls => "calls",
            Unit::Instructions => "instructions",
            Unit::Slots => "slots",
            Unit::Steps => "steps",
            Unit::Bytes => "bytes",
            Unit::PerCycle => "per core cycle",
            Unit::BytesPerCycle => "bytes per core cycle",
            Unit::SquaredSteps => "steps²",
            Unit::Count | Unit::Share | Unit::Ratio => "",
        }
    }
}

/// A frequency in hertz.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hertz(pub f64);

impl Hertz {
    /// The frequency in megahertz.
    pub fn to_megahertz(self) -> f64 {
        self.0 / 1e6
    }

    /// Difference of `self` from `reference` in parts per million, positive if `self` is larger.
    pub fn ppm_above(self, reference: Hertz) -> f64 {
        (self.0 / reference.0 - 1.0) * 1e6
    }
}
