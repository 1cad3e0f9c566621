//! MFENCE, LFENCE before RDTSC, LFENCE after it.
//!
//! MFENCE makes the end wait for the store buffer, LFENCE for everything else.

use super::step::ClockStep;
use super::timing_method::{Clock, OrderingPromises};
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "mfence-lfence-rdtsc",
    also: &[],
    about: "fully fenced and waits until stores are globally visible",
    source: "Intel SDM vol. 2, RDTSC, notes on ordering",
    counts: Unit::TscTicks,
    promises: OrderingPromises {
        leading_done: true,
        body_waits: true,
        body_done: true,
        following_waits: true,
        stores_drained: true,
    },
    start: &[ClockStep::Mfence, ClockStep::Lfence, ClockStep::Rdtsc, ClockStep::Lfence, ClockStep::Store],
    end: &[ClockStep::Mfence, ClockStep::Lfence, ClockStep::Rdtsc, ClockStep::Lfence, ClockStep::Store],
};
