//! LFENCE, RDTSC before; RDTSCP, LFENCE after.
//!
//! Nothing separates the first reading from the body, so the body's first instructions may begin
//! early.

use super::step::ClockStep;
use super::timing_method::{Clock, OrderingPromises};
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "lfence-rdtsc-rdtscp-lfence",
    also: &[],
    about: "the improved method of Intel's paper with LFENCE instead of CPUID; the body may begin before the start is \
        read",
    source: "Intel's paper, section 3.2.1, with LFENCE instead of CPUID",
    counts: Unit::TscTicks,
    promises: OrderingPromises {
        leading_done: true,
        body_waits: false,
        body_done: true,
        following_waits: true,
        stores_drained: false,
    },
    start: &[ClockStep::Lfence, ClockStep::Rdtsc, ClockStep::Store],
    end: &[ClockStep::Rdtscp, ClockStep::Lfence, ClockStep::Store],
};
