//! LFENCE, then RDTSC, and nothing after it.
//!
//! What the notes hold to be about the same as RDTSCP: earlier instructions have executed when the counter is read,
//! later ones may begin before.

use super::step::ClockStep;
use super::timing_method::{Clock, OrderingPromises};
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "lfence-rdtsc",
    also: &["notes-lfence-rdtsc"],
    about: "waits for what comes before; what follows may begin before the reading",
    source: "Notes on using rdtsc(p): Zen 4 and Alder Lake as examples",
    counts: Unit::TscTicks,
    promises: OrderingPromises {
        leading_done: true,
        body_waits: false,
        body_done: true,
        following_waits: false,
        stores_drained: false,
    },
    start: &[ClockStep::Lfence, ClockStep::Rdtsc, ClockStep::Store],
    end: &[ClockStep::Lfence, ClockStep::Rdtsc, ClockStep::Store],
};
