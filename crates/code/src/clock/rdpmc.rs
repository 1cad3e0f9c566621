//! The core-cycles counter by RDPMC, between LFENCEs.

use super::step::ClockStep;
use super::timing_method::{Clock, OrderingPromises};
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "rdpmc",
    also: &[],
    about: "counts core cycles directly, if perf events give user mode a counter",
    source: "Intel SDM vol. 2, RDPMC; perf_event_open(2), cap_user_rdpmc",
    counts: Unit::CoreCycles,
    promises: OrderingPromises {
        leading_done: true,
        body_waits: true,
        body_done: true,
        following_waits: true,
        stores_drained: false,
    },
    start: &[ClockStep::Lfence, ClockStep::Rdpmc, ClockStep::Lfence, ClockStep::Store],
    end: &[ClockStep::Lfence, ClockStep::Rdpmc, ClockStep::Lfence, ClockStep::Store],
};
