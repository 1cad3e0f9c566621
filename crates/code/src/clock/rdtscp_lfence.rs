//! RDTSCP, then LFENCE.

use super::step::ClockStep;
use super::timing_method::{Clock, OrderingPromises};
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "rdtscp-lfence",
    also: &["notes-rdtscp-lfence"],
    about: "fully fenced; RDTSCP waits for earlier code, LFENCE delays later code",
    source: "Notes on using rdtsc(p): Zen 4 and Alder Lake as examples",
    counts: Unit::TscTicks,
    promises: OrderingPromises {
        leading_done: true,
        body_waits: true,
        body_done: true,
        following_waits: true,
        stores_drained: false,
    },
    start: &[ClockStep::Rdtscp, ClockStep::Lfence, ClockStep::Store],
    end: &[ClockStep::Rdtscp, ClockStep::Lfence, ClockStep::Store],
};
