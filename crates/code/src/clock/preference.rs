//! Order of preference of timing methods. `Capabilities::require` decides whether one works.

use super::ALL_CLOCKS;
use super::timing_method::Clock;
use cyclescope_core::machine::features::CpuFeatures;

/// Preferred methods, best first: fenced on both sides, and cheap.
///
/// LFENCE comes first if it waits for earlier instructions. SERIALIZE orders on every processor
/// that has it. RDTSCP always waits, but only the LFENCE after it delays later code. Methods with
/// CPUID are never chosen: in a virtual machine it exits the guest, which takes thousands of ticks
/// that vary.
const PREFERRED_NAMES: [&str; 3] = ["lfence-rdtsc-lfence", "serialize-rdtsc", "rdtscp-lfence"];

/// Candidates for the default method on a processor with these features, best first.
pub fn preferred_clocks(features: &CpuFeatures) -> Vec<&'static Clock> {
    let lfence_waits = features.lfence_order().known().is_some();
    let mut candidates: Vec<&Clock> = PREFERRED_NAMES.iter().filter_map(|name| Clock::find_named(name)).collect();
    if !lfence_waits {
        candidates.rotate_left(1);
    }
    candidates
}

/// Rank of a method in [`preferred_clocks`]; methods that are not preferred rank last.
pub fn preference_rank(clock: &Clock) -> usize {
    PREFERRED_NAMES.iter().position(|name| *name == clock.name).unwrap_or(PREFERRED_NAMES.len())
}

/// Finds a method by name, or returns the valid names.
pub fn find_or_list_names(name: &str) -> Result<&'static Clock, Vec<&'static str>> {
    Clock::find_named(name).ok_or_else(|| ALL_CLOCKS.iter().map(|clock| clock.name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_fenced_on_both_sides_and_never_exits_the_guest() {
        for name in PREFERRED_NAMES {
            let clock = Clock::find_named(name).expect("preferred clocks exist");
            let promises = clock.promises;
            assert!(promises.leading_done && promises.body_waits && promises.body_done);
            assert!(promises.following_waits && !clock.executes_cpuid() && !clock.needs_ring0());
        }
    }
}
