//! Findings about running code in ring 0.

use super::super::fact::Fact;
use super::super::kernel_module::{CapabilityRight, KernelModule};
use super::evidence::FindingEvidence;
use super::machine_finding::MachineFinding;

const LOAD_COMMAND: &str = "make module && sudo insmod target/module/kernel/cyclescope.ko";
const RELOAD_COMMAND: &str = "sudo rmmod cyclescope; make module && sudo insmod target/module/kernel/cyclescope.ko";
/// Above this difference, the kernel counts time by a different clock than the one measured here.
const LEAST_NOTABLE_PPM: f64 = 500.0;

pub(super) fn check_ring_0(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let facts = &evidence.machine.kernel_module;
    Some(match (evidence.module?, &facts.loaded) {
        (Fact::Known(module), _) if !module.code => {
            let why = facts.refused.known().cloned().flatten().unwrap_or_default();
            MachineFinding::ok("ring_0", format!("--executor kernel measures only markers: {why}"))
        }
        (Fact::Known(module), _) => {
            MachineFinding::ok("ring_0", format!("--executor kernel works: the module has version {}", module.version))
        }
        (Fact::Unknown(why), Fact::Known(true)) => describe_unusable(facts, why),
        (Fact::Unknown(_), Fact::Known(false)) => describe_not_loaded(facts),
        (Fact::Unknown(why), Fact::Unknown(_)) => MachineFinding::ok("ring_0", format!("no ring 0: {why}")),
    })
}

/// The module is loaded but cannot be opened.
fn describe_unusable(facts: &KernelModule, why: &str) -> MachineFinding {
    if let Fact::Known(Some(refused)) = &facts.refused {
        return MachineFinding::ok("ring_0", format!("the kernel module rejects this machine: {refused}"));
    }
    let text = format!("the kernel module is loaded, but {why}");
    match &facts.may_use {
        _ if matches!(facts.lockdown, Fact::Known(Some(_))) => MachineFinding::ok("ring_0", text),
        Fact::Known(CapabilityRight::AsRoot) => {
            MachineFinding::advice("ring_0", text).with_remedy("sudo cyclescope doctor")
        }
        Fact::Known(CapabilityRight::Never) => {
            MachineFinding::ok("ring_0", format!("{text}; a container prevents root from using it"))
        }
        _ => MachineFinding::advice("ring_0", text).with_remedy(RELOAD_COMMAND),
    }
}

fn describe_not_loaded(facts: &KernelModule) -> MachineFinding {
    let text = "privileged instructions can't be measured: the kernel module is not loaded";
    let obstacles = facts.list_obstacles();
    if let Some(fixed) = obstacles.iter().find(|obstacle| obstacle.remedy.is_none()) {
        return MachineFinding::ok("ring_0", format!("{text}; {}", fixed.text));
    }
    match obstacles.into_iter().find_map(|obstacle| obstacle.remedy.map(|remedy| (obstacle.text, remedy))) {
        Some((obstacle, remedy)) => MachineFinding::advice("ring_0", format!("{text}; {obstacle}")).with_remedy(remedy),
        None => MachineFinding::advice("ring_0", text).with_remedy(LOAD_COMMAND),
    }
}

pub(super) fn check_deadline(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let module = evidence.module?.known()?;
    Some(if module.deadline {
        MachineFinding::ok("ring_0_deadline", "another CPU ends endless code in ring 0")
    } else {
        MachineFinding::advice(
            "ring_0_deadline",
            "no other CPU could end an endless loop in ring 0: code that might not end is rejected without --force",
        )
    })
}

pub(super) fn check_kernel_rate(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let ppm = evidence.module?.known()?.tsc_ppm?;
    let text = format!("the kernel's TSC rate is {ppm:+.0} ppm from the one measured here");
    Some(if ppm.abs() > LEAST_NOTABLE_PPM {
        MachineFinding::advice("ring_0_tsc_rate", format!("{text}: slices in ring 0 differ by as much in length"))
    } else {
        MachineFinding::ok("ring_0_tsc_rate", text)
    })
}
