//! RDTSCP, then CPUID to delay later code.
//!
//! The cost of the first CPUID is part of every sample. In a virtual machine it takes thousands of
//! ticks.

use super::step::ClockStep;
use super::timing_method::{Clock, OrderingPromises};
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "rdtscp-cpuid",
    also: &["notes-rdtscp-cpuid"],
    about: "fully fenced, but the first CPUID is inside the measured interval",
    source: "Notes on using rdtsc(p): Zen 4 and Alder Lake as examples",
    counts: Unit::TscTicks,
    promises: OrderingPromises {
        leading_done: true,
        body_waits: true,
        body_done: true,
        following_waits: true,
        stores_drained: false,
    },
    start: &[ClockStep::Rdtscp, ClockStep::Store, ClockStep::Cpuid],
    end: &[ClockStep::Rdtscp, ClockStep::Store, ClockStep::Cpuid],
};
