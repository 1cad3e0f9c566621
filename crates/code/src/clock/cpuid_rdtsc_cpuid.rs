//! CPUID before and after RDTSC.
//!
//! The CPUID after the first reading and the one before the second are part of every sample. In a
//! virtual machine they take thousands of ticks, which vary.

use super::step::ClockStep;
use super::timing_method::{Clock, OrderingPromises};
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "cpuid-rdtsc-cpuid",
    also: &["agner-cpuid"],
    about: "serialised before and after each reading; two CPUIDs are inside the measured interval",
    source: "Agner Fog, Test programs for measuring clock cycles and performance monitoring, section 7.12",
    counts: Unit::TscTicks,
    promises: OrderingPromises {
        leading_done: true,
        body_waits: true,
        body_done: true,
        following_waits: true,
        stores_drained: true,
    },
    start: &[ClockStep::Cpuid, ClockStep::Rdtsc, ClockStep::Store, ClockStep::Cpuid],
    end: &[ClockStep::Cpuid, ClockStep::Rdtsc, ClockStep::Store, ClockStep::Cpuid],
};
