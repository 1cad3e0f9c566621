//! Bare RDTSCP: waits for earlier instructions, but does not delay later ones.

use super::step::ClockStep;
use super::timing_method::{Clock, OrderingPromises};
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "rdtscp",
    also: &["notes-rdtscp"],
    about: "waits for earlier code; the body may begin before the start is read",
    source: "Intel SDM vol. 2, RDTSCP",
    counts: Unit::TscTicks,
    promises: OrderingPromises {
        leading_done: true,
        body_waits: false,
        body_done: true,
        following_waits: false,
        stores_drained: false,
    },
    start: &[ClockStep::Rdtscp, ClockStep::Store],
    end: &[ClockStep::Rdtscp, ClockStep::Store],
};
