//! Facts about the time stamp counter (TSC) that need no measurement, and its rate from each
//! source.

use serde::{Deserialize, Serialize};

use super::cpuid_leaves::{CpuidLeaves, CpuidRegister};
use super::fact::{Fact, SystemFiles};
use super::features::CpuFeatures;
use super::processor::{Processor, Vendor, cpuinfo_field};
use crate::error::{StaticText, Unavailable};
use crate::unit::Hertz;

/// Facts about the TSC from CPUID and the kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TscFacts {
    /// Why RDTSC would fault in this process; `None` if it works.
    pub disabled: Option<String>,
    /// Runs at one rate in all power states (CPUID 8000_0007h EDX bit 8, SDM vol. 3B, 19.17.1).
    pub invariant: bool,
    /// The kernel's `constant_tsc`: the rate does not follow the core clock.
    pub constant: Fact<bool>,
    /// The kernel's `nonstop_tsc`: it does not stop in deep sleep.
    pub nonstop: Fact<bool>,
    /// The kernel took the rate from CPUID, an MSR or the hypervisor instead of measuring it.
    pub rate_was_told: Fact<bool>,
    /// IA32_TSC_ADJUST exists (CPUID 07h EBX bit 1).
    pub adjust: bool,
    /// RDTSCP exists; Linux keeps the CPU's number in its TSC_AUX.
    pub rdtscp: bool,
    /// The kernel's clock source, such as `tsc` or `kvm-clock`.
    pub clocksource: Fact<String>,
    /// The rate from every source that answers at once.
    pub sources: Vec<RateSource>,
    /// Rate and step of a TSC that this process cannot read: that of a simulated or recorded
    /// machine. `None` for this processor's TSC, which is measured on demand.
    #[serde(skip)]
    pub given: Option<TscParameters>,
}

/// Facts about a TSC that this process cannot read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TscParameters {
    /// Rate of the TSC.
    pub rate: Hertz,
    /// Step: its readings are multiples of this many ticks.
    pub step: f64,
}

/// Rate of the TSC according to one source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateSource {
    /// Name of the source, such as `cpuid 15h` or `kernel log, refined`.
    #[serde(deserialize_with = "crate::error::constant")]
    pub name: StaticText,
    /// The rate in hertz.
    pub rate: Fact<Hertz>,
}

impl RateSource {
    /// Rate from the source minus the calibrated rate, in parts per million; `None` if the source
    /// has no rate.
    pub(crate) fn ppm_above(&self, calibrated: Hertz) -> Option<f64> {
        self.rate.known().map(|rate| rate.ppm_above(calibrated))
    }
}

impl TscFacts {
    /// Collects the facts from CPUID, `prctl` and the kernel's files. Does not read the TSC.
    pub(crate) fn detect(
        leaves: &CpuidLeaves,
        cpu: &Processor,
        features: &CpuFeatures,
        files: &SystemFiles,
    ) -> TscFacts {
        let record = files.read_first_record("/proc/cpuinfo");
        let flag = |name: &str| match &record {
            Fact::Known(record) => {
                let flags = cpuinfo_field(record, "flags").unwrap_or_default();
                Fact::Known(flags.split_whitespace().any(|flag| flag == name))
            }
            Fact::Unknown(why) => Fact::unknown(why.clone()),
        };
        TscFacts {
            disabled: why_disabled(leaves),
            invariant: features.has_invariant_tsc(),
            constant: flag("constant_tsc"),
            nonstop: flag("nonstop_tsc"),
            rate_was_told: flag("tsc_known_freq"),
            adjust: leaves.has_bit(7, 0, CpuidRegister::Ebx, 1),
            rdtscp: features.has_rdtscp(),
            clocksource: files.read_text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            sources: vec![
                RateSource { name: "cpuid 15h", rate: crystal_rate(leaves, cpu) },
                RateSource { name: "cpuid 16h", rate: base_rate(leaves, cpu) },
                RateSource { name: "hypervisor leaf", rate: hypervisor_rate(leaves) },
                RateSource { name: "bogomips", rate: record.and_then(|record| bogomips_rate(&record)) },
                RateSource { name: "cpufreq base", rate: cpufreq_base(files) },
            ],
            given: None,
        }
    }

    /// Fails with the reason if RDTSC would fault.
    pub fn require(&self) -> Result<(), Unavailable> {
        match &self.disabled {
            None => Ok(()),
            Some(why) => Err(Unavailable {
                what: "the time stamp counter".to_string(),
                why: why.clone(),
                remedy: "start cyclescope from a process without PR_TSC_SIGSEGV".to_string(),
            }),
        }
    }

    /// Fails if this process cannot read the TSC in question: RDTSC would fault, or the TSC belongs
    /// to another machine.
    pub(crate) fn require_readable(&self) -> Result<(), Unavailable> {
        self.require()?;
        match self.given {
            None => Ok(()),
            Some(_) => Err(Unavailable {
                what: "an experiment on the time stamp counter".to_string(),
                why: "the machine is simulated or recorded, and this process reads another TSC".to_string(),
                remedy: String::new(),
            }),
        }
    }
}

/// Why RDTSC would fault.
fn why_disabled(leaves: &CpuidLeaves) -> Option<String> {
    if !leaves.is_empty() && !leaves.has_bit(1, 0, CpuidRegister::Edx, 4) {
        return Some("the processor has no TSC (CPUID 01h EDX[4])".to_string());
    }
    cyclescope_platform::processor::explain_forbidden_tsc().map(str::to_string)
}

/// CPUID 15h: TSC = crystal × EBX / EAX (SDM vol. 3B, 19.7.3). If the crystal's rate is missing,
/// Linux derives it from the base frequency in 16h (arch/x86/kernel/tsc.c, native_calibrate_tsc).
fn crystal_rate(leaves: &CpuidLeaves, cpu: &Processor) -> Fact<Hertz> {
    if cpu.vendor != Vendor::Intel {
        return Fact::unknown("only Intel defines this leaf");
    }
    let Some([denominator, numerator, crystal, _]) = leaves.find_leaf(0x15, 0) else {
        return Fact::unknown("the processor does not have this leaf");
    };
    if denominator == 0 || numerator == 0 {
        return Fact::unknown("the leaf is zero");
    }
    if crystal == 0 {
        return Fact::unknown("the leaf gives the ratio and not the crystal's rate");
    }
    Fact::Known(Hertz(f64::from(crystal) * f64::from(numerator) / f64::from(denominator)))
}

/// CPUID 16h EAX: the base frequency in MHz, which is the rounded rate of the TSC.
fn base_rate(leaves: &CpuidLeaves, cpu: &Processor) -> Fact<Hertz> {
    if cpu.vendor != Vendor::Intel {
        return Fact::unknown("only Intel defines this leaf");
    }
    match leaves.find_leaf(0x16, 0).map(|[eax, ..]| eax & 0xFFFF) {
        None => Fact::unknown("the processor does not have this leaf"),
        Some(0) => Fact::unknown("the leaf is zero"),
        Some(megahertz) => Fact::Known(Hertz(f64::from(megahertz) * 1e6)),
    }
}

/// Hypervisor leaf 4000_0010h EAX: the TSC's rate in kHz. A VMware convention that KVM users can
/// enable too (Linux arch/x86/kernel/cpu/vmware.c; QEMU `vmware-cpuid-freq`).
fn hypervisor_rate(leaves: &CpuidLeaves) -> Fact<Hertz> {
    match leaves.find_leaf(0x4000_0010, 0).map(|[eax, ..]| eax) {
        None => Fact::unknown("there is no leaf 4000_0010h"),
        Some(0) => Fact::unknown("leaf 4000_0010h is zero"),
        Some(kilohertz) => Fact::Known(Hertz(f64::from(kilohertz) * 1e3)),
    }
}

/// Rate from "bogomips" in `/proc/cpuinfo`. With a TSC the kernel sets its delay loop from the
/// TSC's rate. It prints twice that rate in MHz, cut to two digits (init/calibrate.c,
/// arch/x86/kernel/cpu/proc.c). The middle of the cut interval is at most 2.5 kHz off.
fn bogomips_rate(record: &str) -> Fact<Hertz> {
    let Some(text) = cpuinfo_field(record, "bogomips") else {
        return Fact::unknown("/proc/cpuinfo has no bogomips line");
    };
    match text.parse::<f64>() {
        Ok(bogomips) if bogomips > 0.0 => Fact::Known(Hertz((bogomips + 0.005) / 2.0 * 1e6)),
        _ => Fact::unknown(format!("/proc/cpuinfo gives bogomips as {text:?}")),
    }
}

/// The base frequency that intel_pstate or amd_pstate reports, in kHz
/// (Documentation/admin-guide/pm).
fn cpufreq_base(files: &SystemFiles) -> Fact<Hertz> {
    files.read_number("/sys/devices/system/cpu/cpu0/cpufreq/base_frequency").map(|khz: f64| Hertz(khz * 1e3))
}

#[cfg(test)]
mod tests {
    use super::super::cpuid_leaves::tests::emerald_rapids_vm;
    use super::*;

    fn intel() -> Processor {
        Processor::detect(&emerald_rapids_vm(), &SystemFiles::rooted_at("/nonexistent"))
    }

    #[test]
    fn cpuid_gives_the_rates() {
        let leaves = CpuidLeaves::from_table(&[
            (0x15, 0, [2, 216, 24_000_000, 0]),
            (0x16, 0, [2600, 4500, 100, 0]),
            (0x4000_0010, 0, [2_599_994, 1_000_000, 0, 0]),
        ]);
        assert_eq!(crystal_rate(&leaves, &intel()).known(), Some(&Hertz(2.592e9)));
        assert_eq!(base_rate(&leaves, &intel()).known(), Some(&Hertz(2.6e9)));
        assert_eq!(hypervisor_rate(&leaves).known(), Some(&Hertz(2.599994e9)));
    }

    #[test]
    fn sources_without_a_rate_give_a_reason() {
        let leaves = emerald_rapids_vm();
        assert_eq!(crystal_rate(&leaves, &intel()).why(), Some("the leaf is zero"));
        assert_eq!(base_rate(&leaves, &intel()).why(), Some("the processor does not have this leaf"));
        assert!(hypervisor_rate(&leaves).why().is_some());
        assert!(cpufreq_base(&SystemFiles::rooted_at("/nonexistent")).why().is_some());
    }

    #[test]
    fn bogomips_give_the_rate() {
        let rate = bogomips_rate("fpu : yes\nbogomips\t: 4599.99\nclflush size\t: 64");
        assert!(rate.known().unwrap().ppm_above(Hertz(2.299_998e9)).abs() < 3.0);
        assert!(bogomips_rate("fpu : yes").why().is_some());
        assert!(bogomips_rate("bogomips : many").why().is_some());
    }
}
