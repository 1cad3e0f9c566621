//! CPUID, RDTSC before and after: the first method of Intel's paper.
//!
//! CPUID also drains the store buffer. Its varying time is part of the sample.

use super::step::ClockStep;
use super::timing_method::{Clock, OrderingPromises};
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "cpuid-rdtsc",
    also: &["paper-first"],
    about: "serialised, but the second CPUID's time and variance are in every sample",
    source: "G. Paoloni, How to Benchmark Code Execution Times on Intel IA-32 and IA-64, 324264-001, section 3.1",
    counts: Unit::TscTicks,
    promises: OrderingPromises {
        leading_done: true,
        body_waits: false,
        body_done: true,
        following_waits: false,
        stores_drained: true,
    },
    start: &[ClockStep::Cpuid, ClockStep::Rdtsc, ClockStep::Store],
    end: &[ClockStep::Cpuid, ClockStep::Rdtsc, ClockStep::Store],
};
