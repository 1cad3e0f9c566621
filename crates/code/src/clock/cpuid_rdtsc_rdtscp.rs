//! CPUID, RDTSC before; RDTSCP after: the intermediate method of Intel's paper, before its improved
//! one.
//!
//! RDTSCP waits for the body, but nothing delays the code that follows.

use super::step::ClockStep;
use super::timing_method::{Clock, OrderingPromises};
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "cpuid-rdtsc-rdtscp",
    also: &["paper-rdtscp"],
    about: "no CPUID inside the pair; code that follows may begin before the end is read",
    source: "G. Paoloni, How to Benchmark Code Execution Times on Intel IA-32 and IA-64, 324264-001, section 3.2",
    counts: Unit::TscTicks,
    promises: OrderingPromises {
        leading_done: true,
        body_waits: false,
        body_done: true,
        following_waits: false,
        stores_drained: false,
    },
    start: &[ClockStep::Cpuid, ClockStep::Rdtsc, ClockStep::Store],
    end: &[ClockStep::Rdtscp, ClockStep::Store],
};
