//! CPUID, RDTSC before; a rewrite of CR0, RDTSC after: the alternative of Intel's paper.
//!
//! Writing CR0 serialises without the variance of CPUID, but only in ring 0. The paper puts nothing
//! after the second reading.

use super::step::ClockStep;
use super::timing_method::{Clock, OrderingPromises};
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "cpuid-rdtsc-cr0-rdtsc",
    also: &["paper-alternative"],
    about: "the paper's alternative without RDTSCP; ring 0 only",
    source: "G. Paoloni, How to Benchmark Code Execution Times on Intel IA-32 and IA-64, 324264-001, section 3.2.3",
    counts: Unit::TscTicks,
    promises: OrderingPromises {
        leading_done: true,
        body_waits: false,
        body_done: true,
        following_waits: false,
        stores_drained: true,
    },
    start: &[ClockStep::Cpuid, ClockStep::Rdtsc, ClockStep::Store],
    end: &[ClockStep::RewriteCr0, ClockStep::Rdtsc, ClockStep::Store],
};
