//! Which counters this process can read, for `doctor` and for timing methods.
//!
//! The first event opened on a system makes its kernel wait for all CPUs (`synchronize_rcu` in
//! kernel/events/core.c, account_event): 4 to 11 ms on a two-CPU VM.

use super::event_code::EventCode;
use super::event_group::EventGroup;
use super::event_page::EventPage;
use super::event_refusal::{EventRefusal, RefusalCause};
use super::generic_events::find_generic;
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::counters::{CounterFacts, CycleCounterAccess};
use cyclescope_core::machine::fact::{Fact, SystemFiles};
use cyclescope_core::machine::features::CpuFeatures;
use cyclescope_core::unit::Hertz;

/// Opens and closes a counter and an event of the kernel. Takes 0.1 ms, or some 10 ms if no other
/// event was open.
pub fn detect_counters(machine: &Machine) -> CounterFacts {
    let counter = open_cycle_counter(machine);
    let refusal = match &counter {
        Ok(counter) => (!counter.rdpmc).then(rdpmc_off_error),
        Err(refusal) => Some(refusal.clone()),
    };
    CounterFacts {
        core_cycles: counter.map_err(|refusal| refusal.why).into(),
        cause: refusal.as_ref().map(|refusal| refusal.cause.name().to_string()),
        remedy: refusal.map(|refusal| refusal.remedy),
        paranoid: machine.files.read_number("/proc/sys/kernel/perf_event_paranoid"),
        rdpru_aperf: detect_rdpru(&machine.features),
        msr_events: list_msr_events(&machine.files),
        page_rate: read_page_rate(machine),
    }
}

/// Succeeds if user mode can read the core-cycles counter with RDPMC.
///
/// # Errors
///
/// The reason why it can't.
pub fn require_rdpmc(machine: &Machine) -> Result<(), EventRefusal> {
    if open_cycle_counter(machine)?.rdpmc { Ok(()) } else { Err(rdpmc_off_error()) }
}

fn rdpmc_off_error() -> EventRefusal {
    let why = "the kernel does not let user mode execute RDPMC";
    let remedy = "echo 1 | sudo tee /sys/bus/event_source/devices/cpu*/rdpmc";
    EventRefusal::new(RefusalCause::RdpmcOff, why, remedy)
}

fn open_cycle_counter(machine: &Machine) -> Result<CycleCounterAccess, EventRefusal> {
    let group = EventGroup::open_for_thread(&[EventCode::core_cycles()], machine)?;
    group.read_counts()?;
    Ok(match group.read_pages().next().flatten() {
        Some(EventPage { allows_rdpmc: true, width, .. }) => CycleCounterAccess { rdpmc: true, width },
        _ => CycleCounterAccess { rdpmc: false, width: 0 },
    })
}

fn detect_rdpru(features: &CpuFeatures) -> Fact<()> {
    match features.why_not(iced_x86::CpuidFeature::RDPRU) {
        None => Fact::Known(()),
        Some(why) => Fact::unknown(format!("no RDPRU: {why}")),
    }
}

fn list_msr_events(files: &SystemFiles) -> Fact<Vec<String>> {
    const FOLDER: &str = "/sys/bus/event_source/devices/msr/events";
    match std::fs::read_dir(files.path(FOLDER)) {
        Err(error) => Fact::unknown(format!("{FOLDER}: {error}")),
        Ok(entries) => {
            let mut names: Vec<String> =
                entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            Fact::Known(names)
        }
    }
}

fn read_page_rate(machine: &Machine) -> Fact<Hertz> {
    let dummy = find_generic("dummy").expect("an event of the kernel");
    match EventGroup::open_for_thread(&[dummy], machine) {
        Err(refusal) => Fact::Unknown(refusal.why),
        Ok(group) => match group.read_pages().next().flatten() {
            None => Fact::unknown("the perf page can't be mapped"),
            Some(EventPage { tsc_rate: None, .. }) => {
                Fact::unknown("the perf page offers no conversion (cap_user_time is 0)")
            }
            Some(EventPage { tsc_rate: Some(rate), .. }) => Fact::Known(rate),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_counters_or_gives_a_reason() {
        let machine = Machine::detect();
        let counters = detect_counters(&machine);
        assert!(counters.core_cycles.known().is_some() != counters.core_cycles.why().is_some());
        let readable = counters.core_cycles.known().is_some_and(|counter| counter.rdpmc);
        assert_eq!((counters.cause.is_none(), counters.remedy.is_none()), (readable, readable));
        assert!(counters.page_rate.known().is_none_or(|rate| rate.0 > 1e8));
        match require_rdpmc(&machine) {
            Ok(()) => assert!(readable),
            Err(refusal) => assert_eq!(Some(refusal.cause.name()), counters.cause.as_deref()),
        }
    }
}
