//! Findings: effects of the machine's facts on measurements, sorted, each with a remedy.
//!
//! Each check is one function of the `Evidence`; it returns nothing where its facts are unknown and that
//! itself matters to nobody.

mod clock;
mod core;
mod evidence;
mod kernel_module;
mod state;
mod surroundings;

pub use evidence::Evidence;
pub use state::{Finding, State};

type Check = fn(&Evidence) -> Option<Finding>;

/// In the order of their report: what decides whether anything can be measured comes first.
const CHECKS: &[Check] = &[
    clock::tsc,
    clock::invariant,
    clock::unstable,
    clock::lfence,
    clock::rate,
    clock::step,
    clock::tsc_exit,
    clock::cpuid_exit,
    core::phases,
    core::ruler,
    core::clock,
    core::width,
    surroundings::hypervisor,
    surroundings::microarchitecture,
    core::hybrid,
    surroundings::counters,
    kernel_module::ring_0,
    kernel_module::deadline,
    kernel_module::kernel_rate,
    surroundings::governor,
    surroundings::preference,
    surroundings::turbo,
    core::sibling,
    surroundings::isolation,
    surroundings::huge_pages,
    surroundings::quota,
    surroundings::steal,
    surroundings::load,
    surroundings::neighbours,
    core::exclusive,
    surroundings::own_process,
];

/// All findings that the evidence supports.
pub fn findings(evidence: &Evidence) -> Vec<Finding> {
    CHECKS.iter().filter_map(|check| check(evidence)).collect()
}

#[cfg(test)]
mod tests;
