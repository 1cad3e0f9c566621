//! Findings about the time stamp counter.

use super::super::features::LfenceOrder;
use super::super::tsc_read::TscRead;
use super::evidence::FindingEvidence;
use super::machine_finding::MachineFinding;

pub(super) fn check_tsc(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let finding = match evidence.machine.tsc.require() {
        Ok(()) => MachineFinding::ok("tsc", "the time stamp counter can be read"),
        Err(refused) => MachineFinding::problem("tsc", format!("{}; {}", refused.why, refused.remedy)),
    };
    Some(finding)
}

pub(super) fn check_invariant_tsc(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let tsc = &evidence.machine.tsc;
    let by_kernel = tsc.constant.known() == Some(&true) && tsc.nonstop.known() == Some(&true);
    let finding = if tsc.invariant {
        MachineFinding::ok("invariant_tsc", "the TSC runs at one rate in all power states")
    } else if by_kernel {
        MachineFinding::ok(
            "invariant_tsc",
            "CPUID does not guarantee it, but the kernel treats this TSC as constant and nonstop",
        )
    } else if evidence.machine.hypervisor.is_some() {
        MachineFinding::advice(
            "invariant_tsc",
            "the hypervisor does not guarantee a constant TSC; results need the ruler",
        )
    } else {
        MachineFinding::problem("invariant_tsc", "the TSC may change its rate or stop with the core's clock")
    };
    Some(finding)
}

pub(super) fn check_tsc_stability(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let why = evidence.study?.unstable.as_ref()?;
    Some(MachineFinding::problem("tsc_unstable", format!("the kernel stopped using the TSC as a clock: {why}")))
}

pub(super) fn check_lfence(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let promise = match evidence.machine.features.lfence_order().known() {
        Some(LfenceOrder::Architectural) => Some("by definition"),
        Some(LfenceOrder::AlwaysSerializing) => Some("as the processor guarantees"),
        Some(LfenceOrder::SetByKernel) => Some("because the kernel enabled that"),
        None => None,
    };
    let proof = evidence.study.map(|study| study.traps.lfence.waits);
    let finding = match (promise, proof) {
        (Some(promise), Some(true)) => MachineFinding::ok(
            "lfence",
            format!("LFENCE waits for earlier instructions, {promise} and in an experiment"),
        ),
        (Some(promise), Some(false)) => MachineFinding::problem(
            "lfence",
            format!("LFENCE should wait for earlier instructions {promise}, but did not in an experiment"),
        ),
        (Some(promise), None) => {
            MachineFinding::ok("lfence", format!("LFENCE waits for earlier instructions, {promise}"))
        }
        (None, Some(true)) => MachineFinding::ok(
            "lfence",
            "LFENCE waits for earlier instructions in an experiment, although nothing guarantees it",
        ),
        (None, Some(false)) => MachineFinding::problem("lfence", "LFENCE does not wait for earlier instructions"),
        (None, None) => {
            MachineFinding::advice("lfence", "nothing guarantees that LFENCE waits for earlier instructions")
        }
    };
    Some(finding)
}

/// Largest difference of a source that counts kHz. A rounded nominal figure may be 1 000 ppm off. A
/// larger difference of a kHz source means that some clock is wrong.
const DISAGREEMENT_PPM: f64 = 100.0;
const NOMINAL_SOURCES: &[&str] = &["cpuid 16h", "cpufreq base"];

pub(super) fn check_tsc_rate(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let study = evidence.study?;
    let calibration = &study.calibration;
    let half = calibration.high.ppm_above(calibration.low) / 2.0;
    let measured = format!("{:.6} MHz ± {half:.2} ppm", calibration.hertz.to_megahertz());
    if !calibration.agreed {
        return Some(MachineFinding::problem(
            "tsc_rate",
            format!("two calibrations of the TSC disagree ({measured}): it or the clock jumped"),
        ));
    }
    let exact = study.sources.iter().filter(|compared| !NOMINAL_SOURCES.contains(&compared.source.name));
    let differs: Vec<String> = exact
        .filter_map(|compared| Some((compared.source.name, compared.ppm?)))
        .filter(|(_, ppm)| ppm.abs() > DISAGREEMENT_PPM)
        .map(|(name, ppm)| format!("{name} {ppm:+.0} ppm"))
        .collect();
    let origin = match calibration.clock_is_tsc.known() {
        Some(true) => "; the kernel's clock is derived from the TSC, so this figure is not independent",
        _ => "",
    };
    Some(if differs.is_empty() {
        MachineFinding::ok("tsc_rate", format!("the TSC runs at {measured}{origin}"))
    } else {
        MachineFinding::advice(
            "tsc_rate",
            format!("the TSC runs at {measured}, but sources differ: {}{origin}", differs.join(", ")),
        )
    })
}

pub(super) fn check_tsc_step(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let study = evidence.study?;
    let steps: Vec<String> = TscRead::ALL
        .into_iter()
        .filter_map(|reading| Some(format!("{} {:.4}", reading.text(), study.find_step(reading)?.ticks)))
        .map(|text| text.trim_end_matches('0').trim_end_matches('.').to_string())
        .collect();
    (!steps.is_empty())
        .then(|| MachineFinding::ok("tsc_step", format!("the TSC advances in steps of ticks: {}", steps.join(", "))))
}

pub(super) fn check_tsc_exit(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let traps = &evidence.study?.traps;
    let text = format!("one RDTSC takes {:.0} ticks", traps.rdtsc);
    Some(if traps.tsc_exits() {
        MachineFinding::problem("tsc_exit", format!("{text}: the hypervisor or kernel intercepts it"))
    } else {
        MachineFinding::ok("tsc_exit", format!("{text}: nothing intercepts it"))
    })
}

pub(super) fn check_cpuid_exit(evidence: &FindingEvidence) -> Option<MachineFinding> {
    let traps = &evidence.study?.traps;
    let ticks = traps.cpuid.known()?;
    Some(if traps.cpuid_exits()? {
        MachineFinding::advice(
            "cpuid_exit",
            format!(
                "one CPUID takes {ticks:.0} ticks: it exits to the hypervisor, so clocks with CPUID are noisy; \
                 the default has none"
            ),
        )
    } else {
        MachineFinding::ok("cpuid_exit", format!("one CPUID takes {ticks:.0} ticks: it stays in the processor"))
    })
}
