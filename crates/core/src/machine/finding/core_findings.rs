//! Findings about the core: the ruler, its clock and width, and its siblings.

use super::super::core_study::{CoreSharing, CoreStudy, SiblingProof};
use super::super::processor::CoreType;
use super::super::topology::format_cpu_list;
use super::evidence::FindingEvidence;
use super::machine_finding::MachineFinding;

fn known_core<'a>(evidence: &FindingEvidence<'a>) -> Option<&'a CoreStudy> {
    evidence.core?.known()
}

pub(super) fn check_step_phases(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let phases = evidence.phases?;
    let text = format!("means of many readings resolve {:.2} of the TSC's step", phases.off_line);
    Some(if phases.uniform {
        MachineFinding::ok("tsc_phases", text)
    } else {
        MachineFinding::advice(
            "tsc_phases",
            format!(
                "programs lock to the TSC's step: their means are wrong by {:.2} of it, {:.0} ticks",
                phases.off_line,
                phases.off_line * phases.step
            ),
        )
    })
}

pub(super) fn check_ruler(evidence: &FindingEvidence) -> Option<MachineFinding> {
    if let Some(why) = evidence.core?.why() {
        let finding = MachineFinding::problem("ruler", format!("no code can be measured: {why}"));
        // Executors need to know which memory they share with the host program.
        let hidden = why.starts_with("reading /proc");
        return Some(if hidden { finding.with_remedy("sudo mount -t proc proc /proc") } else { finding });
    }
    let core = known_core(evidence)?;
    let measured = format!("one imul takes {:.3} times as long as one add", core.imul.value);
    Some(match (core.matches_known_latency(), core.imul_known, core.imul_used) {
        (Some(true), ..) => MachineFinding::ok("ruler", format!("{measured}, as expected on this core")),
        (Some(false), Some(known), _) => MachineFinding::problem(
            "ruler",
            format!("{measured}; this core should take {known} times: it is disturbed, or a different core"),
        ),
        (_, _, Some(whole)) => MachineFinding::ok("ruler", format!("{measured}: a whole number, {whole}")),
        _ => MachineFinding::problem(
            "ruler",
            format!("{measured}, not a whole number: only the add chain counts cycles"),
        ),
    })
}

/// A clock that moves by more than this share during an examination is unsteady.
const CLOCK_MOVEMENT_SHARE: f64 = 0.02;

pub(super) fn check_core_clock(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let core = known_core(evidence)?;
    let (megahertz, [low, high]) = (core.megahertz?, core.range?);
    let share = (high - low) / megahertz.value;
    Some(if share <= CLOCK_MOVEMENT_SHARE {
        let text = format!("the core clock stayed within {:.1} % of {:.0} MHz", 100.0 * share, megahertz.value);
        MachineFinding::ok("core_clock", text)
    } else {
        let text = format!(
            "the core clock moved from {low:.0} to {high:.0} MHz within milliseconds; the ruler follows, so \
             core cycles stay correct, but times are not repeatable"
        );
        MachineFinding::advice("core_clock", text)
    })
}

pub(super) fn check_core_width(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let core = known_core(evidence)?;
    let [_, median, _] = core.width;
    let text = format!("the core adds {median:.1} numbers per cycle");
    let expected = core.width_known;
    let least = expected.zip(core.adders).map(|(expected, adders)| adders.least_share * expected);
    if core.shared || least.is_some_and(|least| median < least) {
        let of_expected = expected.map_or(String::new(), |expected| format!(" of {expected:.1}"));
        return Some(MachineFinding::advice(
            "core_width",
            format!("{text}{of_expected}: another thread uses its execution units, so throughput is underestimated"),
        ));
    }
    Some(MachineFinding::ok("core_width", format!("{text}: no other thread uses its execution units now")))
}

pub(super) fn check_core_type(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let machine = evidence.machine;
    if !machine.cpu.hybrid {
        return None;
    }
    let cpu = machine.target.as_ref()?.cpu;
    let kind = match machine.cpu.core_type.known() {
        Some(CoreType::Performance) => "a performance core",
        Some(CoreType::Efficient) => "an efficient core",
        None => {
            let text = format!("CPU {cpu} has an unknown core type on a hybrid processor");
            return Some(MachineFinding::advice("core_type", text));
        }
    };
    let text = format!("CPU {cpu} is {kind} of a hybrid processor; results hold for this core type");
    Some(MachineFinding::ok("core_type", text))
}

/// Compares the kernel's claim with measured siblings.
pub(super) fn check_sibling(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let target = evidence.machine.target.as_ref()?;
    let cpu = target.cpu;
    let believed = target.siblings.known();
    let named = |other: &u32| believed.is_some_and(|cpus| cpus.contains(other));
    let offline = |other: u32| format!("echo 0 | sudo tee /sys/devices/system/cpu/cpu{other}/online");
    if let Some(proof) = evidence.siblings.and_then(|study| study.proofs_with(CoreSharing::Shared).next()) {
        let other = proof.cpu;
        let says = if named(&other) { "as the kernel reports" } else { "though the kernel does not report it" };
        let text = format!("CPU {cpu} shares its core with CPU {other}, {says}: {}", describe_narrowing(proof));
        return Some(MachineFinding::advice("smt_sibling", text).with_remedy(offline(other)));
    }
    let disproved = evidence.siblings.and_then(|study| {
        study.proofs_with(CoreSharing::Separate).find(|proof| named(&proof.cpu)).map(|proof| proof.cpu)
    });
    if let Some(other) = disproved {
        let text = format!(
            "the kernel reports that CPU {cpu} shares its core with CPU {other}, but its width stayed while that CPU \
             was busy: the topology may be invented"
        );
        return Some(MachineFinding::advice("smt_sibling", text));
    }
    if let Some(first) = believed.and_then(|cpus| cpus.first()) {
        let text = format!("CPU {cpu} shares its core with CPU {first}, as the kernel reports");
        return Some(MachineFinding::advice("smt_sibling", text).with_remedy(offline(*first)));
    }
    describe_unshared(evidence, cpu)
}

fn describe_narrowing(proof: &SiblingProof) -> String {
    match (proof.alone, proof.beside) {
        (Some(alone), Some(beside)) => {
            format!("it adds {alone:.1} numbers per cycle alone, {beside:.1} with that sibling busy")
        }
        _ => "it gets narrower with that sibling busy".to_string(),
    }
}

/// The kernel reports no sibling, and none was found.
fn describe_unshared(evidence: &FindingEvidence, cpu: u32) -> Option<MachineFinding> {
    let believed = evidence.machine.target.as_ref()?.siblings.known();
    let separate: Vec<u32> = evidence.siblings.map_or(Vec::new(), |study| {
        let mut cpus: Vec<u32> = study.proofs_with(CoreSharing::Separate).map(|proof| proof.cpu).collect();
        cpus.sort_unstable();
        cpus
    });
    let text = match (separate.is_empty(), believed.is_some()) {
        (false, _) => format!(
            "CPU {cpu} shares its core with none of CPU {}: its width stayed while they were busy",
            format_cpu_list(&separate)
        ),
        (true, true) => format!("the kernel reports no other CPU on the core of CPU {cpu}"),
        (true, false) => return None,
    };
    let guest = evidence.machine.hypervisor.is_some();
    let limit = if guest { "; CPUs of other virtual machines cannot be seen" } else { "" };
    Some(MachineFinding::ok("smt_sibling", format!("{text}{limit}")))
}

pub(super) fn check_cpu_lock(evidence: &FindingEvidence) -> Option<MachineFinding> {
    Some(match evidence.exclusive? {
        true => MachineFinding::ok("lock", "no other cyclescope measures on this CPU"),
        false => {
            MachineFinding::advice("lock", "another cyclescope is measuring on this CPU; wait for it, or use --cpu")
        }
    })
}
