//! Findings about the surroundings of a measurement: hypervisor, counters, power management,
//! background load.

use super::super::fact::Fact;
use super::super::power::PowerSettings;
use super::evidence::FindingEvidence;
use super::machine_finding::MachineFinding;

pub(super) fn check_hypervisor(evidence: &FindingEvidence) -> Option<MachineFinding> {
    Some(match &evidence.machine.hypervisor {
        None => MachineFinding::ok("hypervisor", "CPUID shows no hypervisor"),
        Some(found) => MachineFinding::ok(
            "hypervisor",
            format!(
                "this is a VM under {}: topology and caches may be invented, and CPU time may be stolen",
                found.name
            ),
        ),
    })
}

pub(super) fn check_microarchitecture(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let cpu = &evidence.machine.cpu;
    let text = format!("the micro-architecture is {}", cpu.name());
    Some(match cpu.imul_latency() {
        Some(latency) => {
            MachineFinding::ok("microarchitecture", format!("{text}; imul is known to take {latency} times an add"))
        }
        None => MachineFinding::advice(
            "microarchitecture",
            format!("{text}; the ratio of imul to add is not known, so the ruler accepts any whole number"),
        ),
    })
}

pub(super) fn check_counters(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let counters = evidence.counters?;
    Some(match &counters.core_cycles {
        Fact::Known(counter) if counter.rdpmc => {
            MachineFinding::ok("counters", "core cycles can be counted and read with RDPMC")
        }
        Fact::Known(_) => {
            let finding =
                MachineFinding::advice("counters", "core cycles can be counted, but RDPMC is off in user mode");
            MachineFinding { remedy: counters.remedy.clone(), ..finding }
        }
        Fact::Unknown(why) => {
            let finding = MachineFinding::advice(
                "counters",
                format!("core cycles cannot be counted: {why}; the ruler measures them instead"),
            );
            MachineFinding { remedy: counters.remedy.clone(), ..finding }
        }
    })
}

fn target_power<'a>(evidence: &FindingEvidence<'a>) -> Option<&'a PowerSettings> {
    evidence.machine.target.as_ref().map(|target| &target.power)
}

pub(super) fn check_governor(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let governor = target_power(evidence)?.governor.known()?;
    Some(if governor == "performance" {
        MachineFinding::ok("governor", "the frequency governor is performance")
    } else {
        MachineFinding::advice("governor", format!("the frequency governor is {governor}: the clock follows the load"))
            .with_remedy("sudo cpupower frequency-set -g performance")
    })
}

pub(super) fn check_energy_preference(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let power = target_power(evidence)?;
    let preference = power.preference.known()?;
    // Under the performance governor, drivers set the preference themselves.
    if preference == "performance" || power.governor.known().is_some_and(|name| name == "performance") {
        return Some(MachineFinding::ok("energy_preference", format!("the energy preference is {preference}")));
    }
    let finding = MachineFinding::advice("energy_preference", format!("the energy preference is {preference}"));
    Some(
        finding.with_remedy(
            "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference",
        ),
    )
}

pub(super) fn check_turbo(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let power = target_power(evidence)?;
    if !*power.turbo.known()? {
        return Some(MachineFinding::ok("turbo", "turbo is off: the clock stays at its base frequency"));
    }
    let finding = MachineFinding::advice("turbo", "turbo is on: the clock depends on temperature and on other cores");
    Some(match power.turbo_switch {
        Some((file, off)) => finding.with_remedy(format!("echo {off} | sudo tee {file}")),
        None => finding,
    })
}

pub(super) fn check_isolation(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let target = evidence.machine.target.as_ref()?;
    let isolated = evidence.machine.topology.isolated.known()?;
    let cpu = target.cpu;
    Some(if isolated.contains(&cpu) {
        MachineFinding::ok("isolation", format!("CPU {cpu} is kept free of other tasks"))
    } else if isolated.is_empty() {
        MachineFinding::advice(
            "isolation",
            format!("other tasks may run on CPU {cpu}; isolcpus={cpu} at boot excludes them"),
        )
    } else {
        let text = format!("CPU {cpu} is not among the isolated CPUs");
        MachineFinding::advice("isolation", text).with_remedy(format!("cyclescope doctor --cpu {}", isolated[0]))
    })
}

pub(super) fn check_huge_pages(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let setting = target_power(evidence)?.huge_pages.known()?;
    Some(if setting == "always" {
        MachineFinding::advice(
            "huge_pages",
            "transparent huge pages are always on: memory results depend on which pages are huge",
        )
        .with_remedy("echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled")
    } else {
        MachineFinding::ok("huge_pages", format!("transparent huge pages: {setting}"))
    })
}

pub(super) fn check_cpu_quota(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let quota = evidence.machine.quota.known()?;
    let Some(cpus) = quota else {
        return Some(MachineFinding::ok("cpu_quota", "no CPU quota"));
    };
    let text = format!("a control group limits this process to {cpus} CPUs");
    Some(if *cpus < 1.0 {
        MachineFinding::problem("cpu_quota", format!("{text}: it is paused for tens of milliseconds at a time"))
    } else {
        MachineFinding::advice("cpu_quota", format!("{text}, which pauses it when its group uses more"))
    })
}

/// Share of stolen time above which enough rounds are lost to matter.
const LEAST_NOTABLE_STEAL: f64 = 0.01;

pub(super) fn check_steal(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let (between, seconds) = evidence.between?;
    // The counts are in 1/100 s (USER_HZ on x86).
    let share = *between.steal.known()? as f64 / 100.0 / seconds.max(0.01);
    let text = format!("the hypervisor took away {:.1} % of the time", 100.0 * share);
    Some(if share > LEAST_NOTABLE_STEAL {
        MachineFinding::advice("steal", text)
    } else {
        MachineFinding::ok("steal", text)
    })
}

pub(super) fn check_load(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let load = *evidence.noise?.load.known()?;
    let cpus = evidence.machine.topology.online.known()?.len();
    let text = format!("{load:.1} tasks were running or ready over the last minute, on {cpus} CPUs");
    Some(if load > cpus as f64 { MachineFinding::advice("load", text) } else { MachineFinding::ok("load", text) })
}

pub(super) fn check_background_load(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let cpu = evidence.machine.target.as_ref()?.cpu;
    Some(match evidence.runnable? {
        0 => MachineFinding::ok("neighbours", format!("no other task wants CPU {cpu}")),
        1 => MachineFinding::advice("neighbours", format!("another task wants CPU {cpu} now")),
        count => MachineFinding::advice("neighbours", format!("{count} other tasks want CPU {cpu} now")),
    })
}

pub(super) fn check_sandbox(evidence: &FindingEvidence) -> Option<MachineFinding> {
    Some(match evidence.own_process? {
        true => MachineFinding::ok("sandbox", "snippets run in a process that shares no memory with this program"),
        false => MachineFinding::advice(
            "sandbox",
            "snippets run in a copy of this program, because the system runs no executable from memory; allow \
             execveat(2) of a memfd (vm.memfd_noexec below 2, no security module that forbids it)",
        ),
    })
}
