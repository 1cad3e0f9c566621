//! MFENCE, LFENCE before RDTSC, LFENCE after it.
//!
//! MFENCE makes the end wait for the store buffer, LFENCE for everything else.

use super::method::{Clock, Promises};
use super::step::Step;
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "mfence-lfence-rdtsc",
    also: &[],
    about: "fully fenced and waits until stores are globally visible",
    source: "Intel SDM vol. 2, RDTSC, notes on ordering",
    counts: Unit::TscTicks,
    promises: Promises {
        leading_done: true,
        body_waits: true,
        body_done: true,
        following_waits: true,
        stores_drained: true,
    },
    start: &[Step::Mfence, Step::Lfence, Step::Rdtsc, Step::Lfence, Step::Store],
    end: &[Step::Mfence, Step::Lfence, Step::Rdtsc, Step::Lfence, Step::Store],
};
