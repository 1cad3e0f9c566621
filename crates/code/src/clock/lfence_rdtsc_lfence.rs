//! LFENCE on both sides of RDTSC.
//!
//! The first fence completes earlier instructions before the reading. The second keeps later ones
//! from starting early. Neither waits for the store buffer.

use super::step::ClockStep;
use super::timing_method::{Clock, OrderingPromises};
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "lfence-rdtsc-lfence",
    also: &[],
    about: "fully fenced and cheap; does not wait for stores",
    source: "Intel SDM vol. 2, RDTSC, notes on ordering",
    counts: Unit::TscTicks,
    promises: OrderingPromises {
        leading_done: true,
        body_waits: true,
        body_done: true,
        following_waits: true,
        stores_drained: false,
    },
    start: &[ClockStep::Lfence, ClockStep::Rdtsc, ClockStep::Lfence, ClockStep::Store],
    end: &[ClockStep::Lfence, ClockStep::Rdtsc, ClockStep::Lfence, ClockStep::Store],
};
