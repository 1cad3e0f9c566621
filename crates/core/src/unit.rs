//! Units as types: a number of TSC ticks is not a number of core cycles.
//!
//! The time stamp counter (TSC) runs at a fixed rate of its own, the core clock at the rate that power
//! management chooses. Readings and results carry their [`Unit`]; a frequency is [`Hertz`]. Conversions need a
//! measured rate and are therefore part of an estimate, never `From`.

use serde::{Deserialize, Serialize};

/// What a reading or a result counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Ticks of the time stamp counter.
    TscTicks,
    /// True cycles of the core clock.
    CoreCycles,
    /// Nanoseconds of `CLOCK_MONOTONIC_RAW`.
    #[serde(rename = "ns")]
    Nanos,
    /// Megahertz.
    #[serde(rename = "MHz")]
    Megahertz,
    /// Latencies of an addition of two registers.
    Adds,
    /// Calls of a function.
    Calls,
    /// Instructions.
    Instructions,
    /// Steps of a clock's readings.
    Steps,
    /// Their squares, of variances.
    #[serde(rename = "steps2")]
    SquaredSteps,
    /// Bytes.
    Bytes,
    /// A number of things.
    Count,
    /// Things in a core cycle.
    PerCycle,
    /// Bytes in a core cycle.
    BytesPerCycle,
    /// A share of a whole, 0 to 1.
    Share,
    /// The ratio of two figures in their units.
    Ratio,
}

impl Unit {
    /// The unit in words; none of plain numbers.
    pub fn text(self) -> &'static str {
        match self {
            Unit::TscTicks => "TSC ticks",
            Unit::CoreCycles => "core cycles",
            Unit::Nanos => "nanoseconds",
            Unit::Megahertz => "MHz",
            Unit::Adds => "additions",
            Unit::Calls => "calls",
            Unit::Instructions => "instructions",
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

    /// How far `self` lies above `reference`, in parts per million.
    pub fn ppm_above(self, reference: Hertz) -> f64 {
        (self.0 / reference.0 - 1.0) * 1e6
    }
}
