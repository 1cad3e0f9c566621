//! LFENCE, then RDTSC, and nothing after it.
//!
//! The notes consider it roughly equal to RDTSCP: earlier instructions have executed when the
//! counter is read, but later ones may begin before.

use super::step::ClockStep;
use super::timing_method::{Clock, OrderingPromises};
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "lfence-rdtsc",
    also: &["notes-lfence-rdtsc"],
    about: "waits for earlier code; later code may begin before the reading",
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
