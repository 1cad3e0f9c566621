//! CLOCK_MONOTONIC_RAW: the system's clock, as the thing to beat.

use super::method::{Clock, Promises};
use super::step::Step;
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "clock-gettime",
    also: &[],
    about: "what an ordinary program uses; shows what the other methods gain",
    source: "clock_gettime(2), CLOCK_MONOTONIC_RAW",
    counts: Unit::Nanos,
    promises: Promises {
        leading_done: true,
        body_waits: true,
        body_done: true,
        following_waits: true,
        stores_drained: false,
    },
    start: &[Step::Lfence, Step::ClockGettime, Step::Lfence, Step::Store],
    end: &[Step::Lfence, Step::ClockGettime, Step::Lfence, Step::Store],
};
