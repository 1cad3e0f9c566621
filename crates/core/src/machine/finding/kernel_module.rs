//! Findings about running code in ring 0.

use super::super::fact::Fact;
use super::super::kernel_module::{KernelModule, Right};
use super::evidence::Evidence;
use super::state::Finding;

const LOAD: &str = "make module && sudo insmod target/module/kernel/cyclescope.ko";
const LOAD_ANEW: &str =
    "sudo rmmod cyclescope; make module && sudo insmod target/module/kernel/cyclescope.ko";
/// Above this, the kernel counts its time by another clock than the one measured here.
const PPM_MATTERS: f64 = 500.0;

pub(super) fn ring_0(evidence: &Evidence) -> Option<Finding> {
    let facts = &evidence.machine.kernel_module;
    Some(match (evidence.module?, &facts.loaded) {
        (Fact::Known(module), _) if !module.code => {
            let why = facts.refused.known().cloned().flatten().unwrap_or_default();
            Finding::ok("ring_0", format!("--executor kernel measures markers alone: {why}"))
        }
        (Fact::Known(module), _) => Finding::ok(
            "ring_0",
            format!("--executor kernel works: the module has version {}", module.version),
        ),
        (Fact::Unknown(why), Fact::Known(true)) => unusable(facts, why),
        (Fact::Unknown(_), Fact::Known(false)) => not_loaded(facts),
        (Fact::Unknown(why), Fact::Unknown(_)) => Finding::ok("ring_0", format!("no ring 0: {why}")),
    })
}

/// The module is loaded, and does not open.
fn unusable(facts: &KernelModule, why: &str) -> Finding {
    if let Fact::Known(Some(refused)) = &facts.refused {
        return Finding::ok("ring_0", format!("the kernel module refuses this machine: {refused}"));
    }
    let text = format!("the kernel module is loaded, but {why}");
    match &facts.may_use {
        _ if matches!(facts.lockdown, Fact::Known(Some(_))) => Finding::ok("ring_0", text),
        Fact::Known(Right::AsRoot) => Finding::advice("ring_0", text).remedy("sudo cyclescope doctor"),
        Fact::Known(Right::Never) => {
            Finding::ok("ring_0", format!("{text}; a container prevents root from using it"))
        }
        _ => Finding::advice("ring_0", text).remedy(LOAD_ANEW),
    }
}

fn not_loaded(facts: &KernelModule) -> Finding {
    let text = "privileged instructions can't be measured: the kernel module is not loaded";
    let obstacles = facts.obstacles();
    if let Some(fixed) = obstacles.iter().find(|obstacle| obstacle.remedy.is_none()) {
        return Finding::ok("ring_0", format!("{text}; {}", fixed.text));
    }
    match obstacles.into_iter().find_map(|obstacle| obstacle.remedy.map(|remedy| (obstacle.text, remedy))) {
        Some((obstacle, remedy)) => Finding::advice("ring_0", format!("{text}; {obstacle}")).remedy(remedy),
        None => Finding::advice("ring_0", text).remedy(LOAD),
    }
}

pub(super) fn deadline(evidence: &Evidence) -> Option<Finding> {
    let module = evidence.module?.known()?;
    Some(if module.deadline {
        Finding::ok("ring_0_deadline", "another CPU ends endless code in ring 0")
    } else {
        Finding::advice(
            "ring_0_deadline",
            "no other CPU could end an endless loop in ring 0: code that may not end is refused without --force",
        )
    })
}

pub(super) fn kernel_rate(evidence: &Evidence) -> Option<Finding> {
    let ppm = evidence.module?.known()?.tsc_ppm?;
    let text = format!("the kernel's TSC rate is {ppm:+.0} ppm from the one measured here");
    Some(if ppm.abs() > PPM_MATTERS {
        Finding::advice(
            "ring_0_tsc_rate",
            format!("{text}: slices in ring 0 are that much longer or shorter"),
        )
    } else {
        Finding::ok("ring_0_tsc_rate", text)
    })
}
