//! Bare RDTSC: the two readings may move into or out of the measured body.

use super::step::ClockStep;
use super::timing_method::{Clock, OrderingPromises};
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "rdtsc",
    also: &["notes-rdtsc"],
    about: "the cheapest reading; orders nothing, so parts of short code fall outside the pair",
    source: "Intel SDM vol. 2, RDTSC",
    counts: Unit::TscTicks,
    promises: OrderingPromises {
        leading_done: false,
        body_waits: false,
        body_done: false,
        following_waits: false,
        stores_drained: false,
    },
    start: &[ClockStep::Rdtsc, ClockStep::Store],
    end: &[ClockStep::Rdtsc, ClockStep::Store],
};
