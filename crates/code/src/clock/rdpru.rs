//! APERF by RDPRU, between LFENCEs.

use super::step::ClockStep;
use super::timing_method::{Clock, OrderingPromises};
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "rdpru",
    also: &[],
    about: "counts core cycles directly, on AMD CPUs that allow it in user mode",
    source: "AMD APM vol. 3, RDPRU",
    counts: Unit::CoreCycles,
    promises: OrderingPromises {
        leading_done: true,
        body_waits: true,
        body_done: true,
        following_waits: true,
        stores_drained: false,
    },
    start: &[ClockStep::Lfence, ClockStep::Rdpru, ClockStep::Lfence, ClockStep::Store],
    end: &[ClockStep::Lfence, ClockStep::Rdpru, ClockStep::Lfence, ClockStep::Store],
};
