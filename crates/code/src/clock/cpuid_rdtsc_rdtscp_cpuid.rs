//! CPUID, RDTSC before; RDTSCP, CPUID after: the improved method of Intel's paper.

use super::step::ClockStep;
use super::timing_method::{Clock, OrderingPromises};
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "cpuid-rdtsc-rdtscp-cpuid",
    also: &["paper-improved"],
    about: "the paper's recommendation; both CPUIDs are outside the pair",
    source: "G. Paoloni, How to Benchmark Code Execution Times on Intel IA-32 and IA-64, 324264-001, section 3.2.1",
    counts: Unit::TscTicks,
    promises: OrderingPromises {
        leading_done: true,
        body_waits: false,
        body_done: true,
        following_waits: true,
        stores_drained: false,
    },
    start: &[ClockStep::Cpuid, ClockStep::Rdtsc, ClockStep::Store],
    end: &[ClockStep::Rdtscp, ClockStep::Store, ClockStep::Cpuid],
};
