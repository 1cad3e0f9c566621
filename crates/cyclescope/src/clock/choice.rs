//! Which timing method suits this machine, and whether one that was asked for can be used.

use super::ALL;
use super::method::Clock;
use crate::context::Mode;
use crate::error::Unavailable;
use crate::machine::Machine;
use crate::unit::Unit;

/// Methods from the most preferred down: fenced on both sides, and cheap.
///
/// LFENCE comes first where it waits for earlier instructions; SERIALIZE orders on every processor that has
/// it; RDTSCP waits everywhere, and only LFENCE delays what follows it. Methods with CPUID are never
/// chosen: in a virtual machine it leaves the guest, at thousands of ticks and with their variance.
const PREFERRED: [&str; 3] = ["lfence-rdtsc-lfence", "serialize-rdtsc", "rdtscp-lfence"];

/// The default method for this machine.
pub fn choose(machine: &Machine) -> Result<&'static Clock, Unavailable> {
    let lfence_waits = machine.features.lfence().known().is_some();
    let mut candidates: Vec<&Clock> = PREFERRED.iter().filter_map(|name| Clock::named(name)).collect();
    if !lfence_waits {
        candidates.rotate_left(1);
    }
    let mut refused = None;
    for clock in candidates {
        match require(clock, machine, Mode::User) {
            Ok(()) => return Ok(clock),
            Err(error) => refused = Some(error),
        }
    }
    Err(refused.expect("there is at least one candidate"))
}

/// The rank of a method among those that [`choose`] prefers; after all of them where it is not one of them.
pub fn rank(clock: &Clock) -> usize {
    PREFERRED.iter().position(|name| *name == clock.name).unwrap_or(PREFERRED.len())
}

/// Finds a method by name, or says which names there are.
pub fn find(name: &str) -> Result<&'static Clock, Vec<&'static str>> {
    Clock::named(name).ok_or_else(|| ALL.iter().map(|clock| clock.name).collect())
}

/// Whether the method can be used on this machine, where code runs in this mode.
pub fn require(clock: &Clock, machine: &Machine, mode: Mode) -> Result<(), Unavailable> {
    let unavailable = |why: String, remedy: &str| Unavailable {
        what: format!("clock {}", clock.name),
        why,
        remedy: remedy.to_string(),
    };
    if mode == Mode::User && clock.needs_ring0() {
        return Err(unavailable(
            "it writes a control register, which only ring 0 may".to_string(),
            "add --executor kernel, or choose another clock (--clock list)",
        ));
    }
    if mode == Mode::Kernel && clock.calls() {
        return Err(unavailable(
            "it calls a function of the system's library, which is not mapped in ring 0".to_string(),
            "choose another clock (--clock list)",
        ));
    }
    if mode == Mode::Kernel && clock.reads_counter() {
        return Err(unavailable(
            "in ring 0 no counter is set up for it; the system counts only for processes".to_string(),
            "choose another clock (--clock list), or measure in user mode",
        ));
    }
    if clock.counts == Unit::TscTicks {
        machine.tsc.require()?;
    }
    if clock.reads_counter() {
        crate::machine::counters::require_rdpmc(&machine.features)?;
    }
    machine
        .features
        .require(&clock.features())
        .map_err(|error| unavailable(error.why, "choose another clock (--clock list)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_fenced_on_both_sides_and_leaves_no_guest() {
        for name in PREFERRED {
            let clock = Clock::named(name).expect("preferred clocks exist");
            let promises = clock.promises;
            assert!(promises.leading_done && promises.body_waits && promises.body_done);
            assert!(promises.following_waits && !clock.executes_cpuid() && !clock.needs_ring0());
        }
    }

    #[test]
    fn ring0_clocks_are_refused_with_a_reason() {
        let clock = Clock::named("cpuid-rdtsc-cr0-rdtsc").unwrap();
        let error = require(clock, &Machine::detect(), Mode::User).unwrap_err();
        assert!(error.why.contains("ring 0") && !error.remedy.is_empty());
    }
}
