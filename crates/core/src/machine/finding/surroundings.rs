//! Findings about what surrounds a measurement: hypervisor, counters, power management, neighbours.

use super::super::fact::Fact;
use super::super::power::Power;
use super::evidence::Evidence;
use super::state::Finding;

pub(super) fn hypervisor(evidence: &Evidence) -> Option<Finding> {
    Some(match &evidence.machine.hypervisor {
        None => Finding::ok("hypervisor", "CPUID shows no hypervisor"),
        Some(found) => Finding::ok(
            "hypervisor",
            format!(
                "this is a VM under {}: topology and caches may be invented, time can be stolen",
                found.name
            ),
        ),
    })
}

pub(super) fn microarchitecture(evidence: &Evidence) -> Option<Finding> {
    let cpu = &evidence.machine.cpu;
    let text = format!("the micro-architecture is {}", cpu.name());
    Some(match cpu.imul_latency() {
        Some(latency) => {
            Finding::ok("microarchitecture", format!("{text}; imul is known to take {latency} times an add"))
        }
        None => Finding::advice(
            "microarchitecture",
            format!("{text}; the ratio of imul to add is not known, so the ruler accepts any whole number"),
        ),
    })
}

pub(super) fn counters(evidence: &Evidence) -> Option<Finding> {
    let counters = evidence.counters?;
    Some(match &counters.core_cycles {
        Fact::Known(counter) if counter.rdpmc => {
            Finding::ok("counters", "core cycles can be counted and read with RDPMC")
        }
        Fact::Known(_) => {
            Finding::advice("counters", "core cycles can be counted, but RDPMC is off in user mode")
                .remedy("echo 1 | sudo tee /sys/bus/event_source/devices/cpu*/rdpmc")
        }
        Fact::Unknown(why) => {
            let finding = Finding::advice(
                "counters",
                format!("core cycles can't be counted: {why}; the ruler does it"),
            );
            Finding { remedy: counters.remedy.clone(), ..finding }
        }
    })
}

fn power<'a>(evidence: &Evidence<'a>) -> Option<&'a Power> {
    evidence.machine.target.as_ref().map(|target| &target.power)
}

pub(super) fn governor(evidence: &Evidence) -> Option<Finding> {
    let governor = power(evidence)?.governor.known()?;
    Some(if governor == "performance" {
        Finding::ok("governor", "the frequency governor is performance")
    } else {
        Finding::advice(
            "governor",
            format!("the frequency governor is {governor}: the clock follows the load"),
        )
        .remedy("sudo cpupower frequency-set -g performance")
    })
}

pub(super) fn preference(evidence: &Evidence) -> Option<Finding> {
    let power = power(evidence)?;
    let preference = power.preference.known()?;
    // Under the performance governor the drivers fix the preference themselves.
    if preference == "performance" || power.governor.known().is_some_and(|name| name == "performance") {
        return Some(Finding::ok("energy_preference", format!("the energy preference is {preference}")));
    }
    let finding = Finding::advice("energy_preference", format!("the energy preference is {preference}"));
    Some(finding.remedy(
        "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference",
    ))
}

pub(super) fn turbo(evidence: &Evidence) -> Option<Finding> {
    let power = power(evidence)?;
    if !*power.turbo.known()? {
        return Some(Finding::ok("turbo", "turbo is off: the clock stays at its base frequency"));
    }
    let finding =
        Finding::advice("turbo", "turbo is on: the clock depends on temperature and on other cores");
    Some(match power.turbo_switch {
        Some((file, off)) => finding.remedy(format!("echo {off} | sudo tee {file}")),
        None => finding,
    })
}

pub(super) fn isolation(evidence: &Evidence) -> Option<Finding> {
    let target = evidence.machine.target.as_ref()?;
    let isolated = evidence.machine.topology.isolated.known()?;
    let cpu = target.cpu;
    Some(if isolated.contains(&cpu) {
        Finding::ok("isolation", format!("CPU {cpu} is kept free of other tasks"))
    } else if isolated.is_empty() {
        Finding::advice(
            "isolation",
            format!("other tasks may run on CPU {cpu}; isolcpus={cpu} at boot excludes them"),
        )
    } else {
        let text = format!("CPU {cpu} is not among the isolated CPUs");
        Finding::advice("isolation", text).remedy(format!("cyclescope doctor --cpu {}", isolated[0]))
    })
}

pub(super) fn huge_pages(evidence: &Evidence) -> Option<Finding> {
    let setting = power(evidence)?.huge_pages.known()?;
    Some(if setting == "always" {
        Finding::advice(
            "huge_pages",
            "transparent huge pages are always on: memory results depend on which pages are huge",
        )
        .remedy("echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled")
    } else {
        Finding::ok("huge_pages", format!("transparent huge pages: {setting}"))
    })
}

pub(super) fn quota(evidence: &Evidence) -> Option<Finding> {
    let quota = evidence.machine.quota.known()?;
    let Some(cpus) = quota else {
        return Some(Finding::ok("cpu_quota", "no CPU quota"));
    };
    let text = format!("a control group limits this process to {cpus} CPUs");
    Some(if *cpus < 1.0 {
        Finding::problem("cpu_quota", format!("{text}: it is stopped for tens of milliseconds at a time"))
    } else {
        Finding::advice("cpu_quota", format!("{text}, which stops it when its group uses more"))
    })
}

/// Share of stolen time above which rounds are lost often enough to matter.
const STEAL_MATTERS: f64 = 0.01;

pub(super) fn steal(evidence: &Evidence) -> Option<Finding> {
    let (between, seconds) = evidence.between?;
    // The counts are in 1/100 s (USER_HZ on x86).
    let share = *between.steal.known()? as f64 / 100.0 / seconds.max(0.01);
    let text = format!("the hypervisor took away {:.1} % of the time", 100.0 * share);
    Some(if share > STEAL_MATTERS { Finding::advice("steal", text) } else { Finding::ok("steal", text) })
}

pub(super) fn load(evidence: &Evidence) -> Option<Finding> {
    let load = *evidence.noise?.load.known()?;
    let cpus = evidence.machine.topology.online.known()?.len();
    let text = format!("{load:.1} tasks were running or ready over the last minute, on {cpus} CPUs");
    Some(if load > cpus as f64 { Finding::advice("load", text) } else { Finding::ok("load", text) })
}

pub(super) fn neighbours(evidence: &Evidence) -> Option<Finding> {
    let cpu = evidence.machine.target.as_ref()?.cpu;
    Some(match evidence.runnable? {
        0 => Finding::ok("neighbours", format!("no other task wants CPU {cpu}")),
        1 => Finding::advice("neighbours", format!("another task wants CPU {cpu} now")),
        count => Finding::advice("neighbours", format!("{count} other tasks want CPU {cpu} now")),
    })
}

pub(super) fn own_process(evidence: &Evidence) -> Option<Finding> {
    Some(match evidence.own_process? {
        true => Finding::ok("sandbox", "snippets run in a process that has nothing of this program"),
        false => Finding::advice(
            "sandbox",
            "snippets run in a copy of this program, for the system runs no executable from memory; allow \
             execveat(2) of a memfd (vm.memfd_noexec below 2, no security module that forbids it)",
        ),
    })
}
