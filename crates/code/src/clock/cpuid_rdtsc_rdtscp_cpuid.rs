//! CPUID, RDTSC before; RDTSCP, CPUID after: the improved method of Intel's paper.

use super::method::{Clock, Promises};
use super::step::Step;
use cyclescope_core::unit::Unit;

pub(super) const CLOCK: Clock = Clock {
    name: "cpuid-rdtsc-rdtscp-cpuid",
    also: &["paper-improved"],
    about: "the paper's recommendation; both CPUIDs are outside the pair",
    source: "G. Paoloni, How to Benchmark Code Execution Times on Intel IA-32 and IA-64, 324264-001, section 3.2.1",
    counts: Unit::TscTicks,
    promises: Promises {
        leading_done: true,
        body_waits: false,
        body_done: true,
        following_waits: true,
        stores_drained: false,
    },
    start: &[Step::Cpuid, Step::Rdtsc, Step::Store],
    end: &[Step::Rdtscp, Step::Store, Step::Cpuid],
};
