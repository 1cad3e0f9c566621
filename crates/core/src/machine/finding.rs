//! Findings: how facts about the machine affect measurements, in a fixed order, each with a remedy.
//!
//! Each check is one function of the evidence. It returns nothing if its facts are unknown and that
//! does not matter.

mod core_findings;
mod evidence;
mod machine_finding;
mod module_findings;
mod surroundings_findings;
mod tsc_findings;

pub use evidence::FindingEvidence;
pub use machine_finding::{FindingState, MachineFinding};

type FindingCheck = fn(&FindingEvidence) -> Option<MachineFinding>;

/// Checks in report order. Those that decide whether anything can be measured come first.
const FINDING_CHECKS: &[FindingCheck] = &[
    tsc_findings::check_tsc,
    tsc_findings::check_invariant_tsc,
    tsc_findings::check_tsc_stability,
    tsc_findings::check_lfence,
    tsc_findings::check_tsc_rate,
    tsc_findings::check_tsc_step,
    tsc_findings::check_tsc_exit,
    tsc_findings::check_cpuid_exit,
    core_findings::check_step_phases,
    core_findings::check_ruler,
    core_findings::check_core_clock,
    core_findings::check_core_width,
    surroundings_findings::check_hypervisor,
    surroundings_findings::check_microarchitecture,
    core_findings::check_core_type,
    surroundings_findings::check_counters,
    module_findings::check_ring_0,
    module_findings::check_deadline,
    module_findings::check_kernel_rate,
    surroundings_findings::check_governor,
    surroundings_findings::check_energy_preference,
    surroundings_findings::check_turbo,
    core_findings::check_sibling,
    surroundings_findings::check_isolation,
    surroundings_findings::check_huge_pages,
    surroundings_findings::check_cpu_quota,
    surroundings_findings::check_steal,
    surroundings_findings::check_load,
    surroundings_findings::check_background_load,
    core_findings::check_cpu_lock,
    surroundings_findings::check_sandbox,
];

/// All findings that the evidence supports.
pub fn collect_findings(evidence: &FindingEvidence) -> Vec<MachineFinding> {
    FINDING_CHECKS.iter().filter_map(|check| check(evidence)).collect()
}

#[cfg(test)]
mod tests;
