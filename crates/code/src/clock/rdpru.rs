//! APERF by RDPRU, between LFENCEs.

use super::method::{Clock, Promises};
use super::step::Step;
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "rdpru",
    also: &[],
    about: "counts core cycles directly, on AMD CPUs that allow it in user mode",
    source: "AMD APM vol. 3, RDPRU",
    counts: Unit::CoreCycles,
    promises: Promises {
        leading_done: true,
        body_waits: true,
        body_done: true,
        following_waits: true,
        stores_drained: false,
    },
    start: &[Step::Lfence, Step::Rdpru, Step::Lfence, Step::Store],
    end: &[Step::Lfence, Step::Rdpru, Step::Lfence, Step::Store],
};
