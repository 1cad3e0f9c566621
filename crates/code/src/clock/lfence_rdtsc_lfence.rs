//! LFENCE on both sides of RDTSC.
//!
//! The fence before orders earlier instructions before the reading, the fence after keeps later ones from
//! starting early. Neither waits for the store buffer.

use super::method::{Clock, Promises};
use super::step::Step;
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "lfence-rdtsc-lfence",
    also: &[],
    about: "fully fenced and cheap; does not wait for stores",
    source: "Intel SDM vol. 2, RDTSC, notes on ordering",
    counts: Unit::TscTicks,
    promises: Promises {
        leading_done: true,
        body_waits: true,
        body_done: true,
        following_waits: true,
        stores_drained: false,
    },
    start: &[Step::Lfence, Step::Rdtsc, Step::Lfence, Step::Store],
    end: &[Step::Lfence, Step::Rdtsc, Step::Lfence, Step::Store],
};
