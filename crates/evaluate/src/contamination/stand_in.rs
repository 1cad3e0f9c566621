//! The replacement for a method that cannot run here.

use cyclescope_code::clock::{Clock, ClockStep, OrderingPromises};
use cyclescope_core::unit::Unit;

/// The paper's CR0 method for user mode, with SERIALIZE in place of the write to CR0. Both
/// serialise, and both leave nothing after the second reading. It replaces the method in the claim
/// about the second reading. It is not offered as a timing method.
pub const STAND_IN: Clock = Clock {
    name: "cpuid-rdtsc-serialize-rdtsc",
    also: &[],
    about: "stands in for the paper's alternative: SERIALIZE in place of the write to CR0",
    source: "Intel's paper, section 3.2.3; Intel SDM vol. 2, SERIALIZE",
    counts: Unit::TscTicks,
    promises: OrderingPromises {
        leading_done: true,
        body_waits: false,
        body_done: true,
        following_waits: false,
        stores_drained: true,
    },
    start: &[ClockStep::Cpuid, ClockStep::Rdtsc, ClockStep::Store],
    end: &[ClockStep::Serialize, ClockStep::Rdtsc, ClockStep::Store],
};
