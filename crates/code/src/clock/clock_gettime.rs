//! CLOCK_MONOTONIC_RAW: the system's clock, as the baseline for the other methods.

use super::step::ClockStep;
use super::timing_method::{Clock, OrderingPromises};
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "clock-gettime",
    also: &[],
    about: "the clock of ordinary programs; shows what the other methods gain",
    source: "clock_gettime(2), CLOCK_MONOTONIC_RAW",
    counts: Unit::Nanos,
    promises: OrderingPromises {
        leading_done: true,
        body_waits: true,
        body_done: true,
        following_waits: true,
        stores_drained: false,
    },
    start: &[ClockStep::Lfence, ClockStep::ClockGettime, ClockStep::Lfence, ClockStep::Store],
    end: &[ClockStep::Lfence, ClockStep::ClockGettime, ClockStep::Lfence, ClockStep::Store],
};
