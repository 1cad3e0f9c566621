//! Bare RDTSCP: waits for earlier instructions, and delays no later one.

use super::method::{Clock, Promises};
use super::step::Step;
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "rdtscp",
    also: &["notes-rdtscp"],
    about: "waits for what comes before; the body may begin before the start is read",
    source: "Intel SDM vol. 2, RDTSCP",
    counts: Unit::TscTicks,
    promises: Promises {
        leading_done: true,
        body_waits: false,
        body_done: true,
        following_waits: false,
        stores_drained: false,
    },
    start: &[Step::Rdtscp, Step::Store],
    end: &[Step::Rdtscp, Step::Store],
};
