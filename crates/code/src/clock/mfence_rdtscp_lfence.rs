//! MFENCE before RDTSCP, LFENCE after it.
//!
//! RDTSCP waits until earlier instructions have executed, including MFENCE. MFENCE waits until
//! earlier stores are visible.

use super::step::ClockStep;
use super::timing_method::{Clock, OrderingPromises};
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "mfence-rdtscp-lfence",
    also: &[],
    about: "fully fenced and waits until stores are globally visible, if RDTSCP waits for MFENCE",
    source: "Intel SDM vol. 2, RDTSCP, notes on ordering",
    counts: Unit::TscTicks,
    promises: OrderingPromises {
        leading_done: true,
        body_waits: true,
        body_done: true,
        following_waits: true,
        stores_drained: true,
    },
    start: &[ClockStep::Mfence, ClockStep::Rdtscp, ClockStep::Lfence, ClockStep::Store],
    end: &[ClockStep::Mfence, ClockStep::Rdtscp, ClockStep::Lfence, ClockStep::Store],
};
