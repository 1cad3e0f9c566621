//! SERIALIZE before RDTSC, LFENCE after it.

use super::step::ClockStep;
use super::timing_method::{Clock, OrderingPromises};
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "serialize-rdtsc",
    also: &[],
    about: "fully serialised without exiting a virtual machine; needs a recent CPU",
    source: "Intel SDM vol. 3A, 9.3",
    counts: Unit::TscTicks,
    promises: OrderingPromises {
        leading_done: true,
        body_waits: true,
        body_done: true,
        following_waits: true,
        stores_drained: true,
    },
    start: &[ClockStep::Serialize, ClockStep::Rdtsc, ClockStep::Lfence, ClockStep::Store],
    end: &[ClockStep::Serialize, ClockStep::Rdtsc, ClockStep::Lfence, ClockStep::Store],
};
