//! Bare RDTSC: the two reads may move into, or out of, the measured body.

use super::method::{Clock, Promises};
use super::step::Step;
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "rdtsc",
    also: &["notes-rdtsc"],
    about: "the cheapest reading; orders nothing, so parts of short code fall outside the pair",
    source: "Intel SDM vol. 2, RDTSC",
    counts: Unit::TscTicks,
    promises: Promises {
        leading_done: false,
        body_waits: false,
        body_done: false,
        following_waits: false,
        stores_drained: false,
    },
    start: &[Step::Rdtsc, Step::Store],
    end: &[Step::Rdtsc, Step::Store],
};
