//! LFENCE, RDTSC before; RDTSCP, LFENCE after.
//!
//! There is nothing between the first reading and the body, so the body's first instructions may begin early.

use super::method::{Clock, Promises};
use super::step::Step;
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "lfence-rdtsc-rdtscp-lfence",
    also: &[],
    about: "the improved method of Intel's paper with LFENCE for CPUID; the body may begin before the start is read",
    source: "Intel's paper, section 3.2.1, with LFENCE in CPUID's place",
    counts: Unit::TscTicks,
    promises: Promises {
        leading_done: true,
        body_waits: false,
        body_done: true,
        following_waits: true,
        stores_drained: false,
    },
    start: &[Step::Lfence, Step::Rdtsc, Step::Store],
    end: &[Step::Rdtscp, Step::Lfence, Step::Store],
};
