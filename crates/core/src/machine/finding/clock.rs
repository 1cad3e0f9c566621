//! Findings about the time stamp counter.

use super::super::features::LfenceOrder;
use super::super::tsc_read::TscRead;
use super::evidence::Evidence;
use super::state::Finding;

pub(super) fn tsc(evidence: &Evidence) -> Option<Finding> {
    let finding = match evidence.machine.tsc.require() {
        Ok(()) => Finding::ok("tsc", "the time stamp counter can be read"),
        Err(refused) => Finding::problem("tsc", format!("{}; {}", refused.why, refused.remedy)),
    };
    Some(finding)
}

pub(super) fn invariant(evidence: &Evidence) -> Option<Finding> {
    let tsc = &evidence.machine.tsc;
    let by_kernel = tsc.constant.known() == Some(&true) && tsc.nonstop.known() == Some(&true);
    let finding = if tsc.invariant {
        Finding::ok("invariant_tsc", "the TSC runs at one rate in all power states")
    } else if by_kernel {
        Finding::ok(
            "invariant_tsc",
            "CPUID promises nothing, but the kernel treats this TSC as constant and nonstop",
        )
    } else if evidence.machine.hypervisor.is_some() {
        Finding::advice(
            "invariant_tsc",
            "the hypervisor does not promise a constant TSC; results need the ruler",
        )
    } else {
        Finding::problem("invariant_tsc", "the TSC may change its rate or stop with the core's clock")
    };
    Some(finding)
}

pub(super) fn unstable(evidence: &Evidence) -> Option<Finding> {
    let why = evidence.study?.unstable.as_ref()?;
    Some(Finding::problem("tsc_unstable", format!("the kernel gave up the TSC as a clock: {why}")))
}

pub(super) fn lfence(evidence: &Evidence) -> Option<Finding> {
    let promise = match evidence.machine.features.lfence().known() {
        Some(LfenceOrder::Architectural) => Some("by its definition"),
        Some(LfenceOrder::AlwaysSerializing) => Some("as the processor promises"),
        Some(LfenceOrder::SetByKernel) => Some("since the kernel enabled that"),
        None => None,
    };
    let proof = evidence.study.map(|study| study.traps.lfence.waits);
    let finding = match (promise, proof) {
        (Some(promise), Some(true)) => Finding::ok(
            "lfence",
            format!("LFENCE waits for earlier instructions, {promise} and in an experiment"),
        ),
        (Some(promise), Some(false)) => Finding::problem(
            "lfence",
            format!("LFENCE should wait for earlier instructions {promise}, but did not in an experiment"),
        ),
        (Some(promise), None) => {
            Finding::ok("lfence", format!("LFENCE waits for earlier instructions, {promise}"))
        }
        (None, Some(true)) => Finding::ok(
            "lfence",
            "LFENCE waits for earlier instructions in an experiment, though nothing promises it",
        ),
        (None, Some(false)) => Finding::problem("lfence", "LFENCE does not wait for earlier instructions"),
        (None, None) => {
            Finding::advice("lfence", "nothing promises that LFENCE waits for earlier instructions")
        }
    };
    Some(finding)
}

/// A source that is a rounded nominal figure may lie 1 000 ppm off; one that counts kHz may not lie 100 ppm
/// off, or some clock is wrong.
const DISAGREE_PPM: f64 = 100.0;
const NOMINAL: &[&str] = &["cpuid 16h", "cpufreq base"];

pub(super) fn rate(evidence: &Evidence) -> Option<Finding> {
    let study = evidence.study?;
    let calibration = &study.calibration;
    let half = calibration.high.ppm_above(calibration.low) / 2.0;
    let measured = format!("{:.6} MHz ± {half:.2} ppm", calibration.hertz.megahertz());
    if !calibration.agreed {
        return Some(Finding::problem(
            "tsc_rate",
            format!("two calibrations of the TSC disagree ({measured}): it or the clock jumped"),
        ));
    }
    let exact = study.sources.iter().filter(|compared| !NOMINAL.contains(&compared.source.name));
    let differs: Vec<String> = exact
        .filter_map(|compared| Some((compared.source.name, compared.ppm?)))
        .filter(|(_, ppm)| ppm.abs() > DISAGREE_PPM)
        .map(|(name, ppm)| format!("{name} {ppm:+.0} ppm"))
        .collect();
    let origin = match calibration.clock_is_tsc.known() {
        Some(true) => "; the kernel's clock is made from the TSC, so this is its own figure read back",
        _ => "",
    };
    Some(if differs.is_empty() {
        Finding::ok("tsc_rate", format!("the TSC runs at {measured}{origin}"))
    } else {
        Finding::advice(
            "tsc_rate",
            format!("the TSC runs at {measured}, but sources differ: {}{origin}", differs.join(", ")),
        )
    })
}

pub(super) fn step(evidence: &Evidence) -> Option<Finding> {
    let study = evidence.study?;
    let steps: Vec<String> = TscRead::ALL
        .into_iter()
        .filter_map(|reading| Some(format!("{} {:.4}", reading.text(), study.step(reading)?.ticks)))
        .map(|text| text.trim_end_matches('0').trim_end_matches('.').to_string())
        .collect();
    (!steps.is_empty())
        .then(|| Finding::ok("tsc_step", format!("the TSC advances in steps of ticks: {}", steps.join(", "))))
}

pub(super) fn tsc_exit(evidence: &Evidence) -> Option<Finding> {
    let traps = &evidence.study?.traps;
    let text = format!("one RDTSC takes {:.0} ticks", traps.rdtsc);
    Some(if traps.tsc_exits() {
        Finding::problem("tsc_exit", format!("{text}: the hypervisor or kernel intercepts it"))
    } else {
        Finding::ok("tsc_exit", format!("{text}: nothing intercepts it"))
    })
}

pub(super) fn cpuid_exit(evidence: &Evidence) -> Option<Finding> {
    let traps = &evidence.study?.traps;
    let ticks = traps.cpuid.known()?;
    Some(if traps.cpuid_exits()? {
        Finding::advice(
            "cpuid_exit",
            format!(
                "one CPUID takes {ticks:.0} ticks: it exits to the hypervisor, so clocks with CPUID are noisy; \
                 the default has none"
            ),
        )
    } else {
        Finding::ok("cpuid_exit", format!("one CPUID takes {ticks:.0} ticks: it stays in the processor"))
    })
}
