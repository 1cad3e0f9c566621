//! SERIALIZE before RDTSC, LFENCE after it.

use super::method::{Clock, Promises};
use super::step::Step;
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "serialize-rdtsc",
    also: &[],
    about: "fully serialised without leaving a virtual machine; needs a recent CPU",
    source: "Intel SDM vol. 3A, 9.3",
    counts: Unit::TscTicks,
    promises: Promises {
        leading_done: true,
        body_waits: true,
        body_done: true,
        following_waits: true,
        stores_drained: true,
    },
    start: &[Step::Serialize, Step::Rdtsc, Step::Lfence, Step::Store],
    end: &[Step::Serialize, Step::Rdtsc, Step::Lfence, Step::Store],
};
