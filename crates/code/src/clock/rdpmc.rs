//! The core cycles counter by RDPMC, between LFENCEs.

use super::method::{Clock, Promises};
use super::step::Step;
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "rdpmc",
    also: &[],
    about: "counts core cycles directly, where perf events give user mode a counter",
    source: "Intel SDM vol. 2, RDPMC; perf_event_open(2), cap_user_rdpmc",
    counts: Unit::CoreCycles,
    promises: Promises {
        leading_done: true,
        body_waits: true,
        body_done: true,
        following_waits: true,
        stores_drained: false,
    },
    start: &[Step::Lfence, Step::Rdpmc, Step::Lfence, Step::Store],
    end: &[Step::Lfence, Step::Rdpmc, Step::Lfence, Step::Store],
};
