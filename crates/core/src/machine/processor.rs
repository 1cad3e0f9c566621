//! The processor: vendor, family, model, stepping, names, microcode, hypervisor, core types.

use serde::Serialize;

use super::cpuid_leaves::{CpuidLeaves, CpuidRegister, registers_to_text};
use super::fact::{Fact, SystemFiles};
use super::microarch::{Microarchitecture, find_microarchitecture};
pub use super::vendor::{CoreType, Vendor};

/// The processor that the reading thread ran on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Processor {
    /// Who designed it.
    pub vendor: Vendor,
    /// The vendor's twelve characters from CPUID.
    pub vendor_text: String,
    /// Family, including the extended family (SDM vol. 2A, CPUID 01h).
    pub family: u32,
    /// Model, including the extended model in its upper digit.
    pub model: u32,
    /// Stepping, 0 to 15.
    pub stepping: u32,
    /// Marketing name, which hypervisors may shorten.
    pub brand: Fact<String>,
    /// Microcode revision. Features such as the loop buffer and LFENCE depend on it.
    pub microcode: Fact<u32>,
    /// Names of the design; unknown if it is not in the table.
    pub microarchitecture: Fact<Microarchitecture>,
    /// Whether it has several core types (CPUID 07h EDX bit 15).
    pub hybrid: bool,
    /// Core type of the core that the reading thread ran on; unknown if the processor does not
    /// report it.
    pub core_type: Fact<CoreType>,
}

impl Processor {
    /// Extracts the facts from the CPUID table and `/proc/cpuinfo`.
    pub fn detect(leaves: &CpuidLeaves, files: &SystemFiles) -> Processor {
        let vendor_text = leaves.vendor_text();
        let vendor = Vendor::from_text(&vendor_text);
        let (family, model, stepping) = parse_signature(leaves.register(1, 0, CpuidRegister::Eax));
        let core_type = parse_core_type(leaves.register(0x1A, 0, CpuidRegister::Eax));
        Processor {
            vendor,
            vendor_text,
            family,
            model,
            stepping,
            brand: read_brand(leaves),
            microcode: read_microcode(files),
            microarchitecture: find_design(vendor, family, model, stepping, core_type.known().copied())
                .and_then(|found| reject_hidden_model(found, leaves)),
            hybrid: leaves.has_bit(7, 0, CpuidRegister::Edx, 15),
            core_type,
        }
    }

    /// Name of the micro-architecture, or `unknown (family 0x6, model 0xff)`.
    pub fn name(&self) -> String {
        match self.microarchitecture.known() {
            Some(found) if found.name == found.product => found.name.to_string(),
            Some(found) => format!("{} ({})", found.name, found.product),
            None => format!("unknown (family {:#x}, model {:#x})", self.family, self.model),
        }
    }

    /// Latency of `imul r64, r64` in units of the latency of `add r64, r64`; `None` if uncertain.
    pub fn imul_latency(&self) -> Option<u32> {
        self.microarchitecture.known().and_then(|found| found.imul_latency)
    }
}

fn find_design(
    vendor: Vendor,
    family: u32,
    model: u32,
    stepping: u32,
    core: Option<CoreType>,
) -> Fact<Microarchitecture> {
    let found = |core| find_microarchitecture(vendor, family, model, stepping, core);
    match (found(core), found(Some(CoreType::Performance))) {
        (Some(found), _) => Fact::Known(found),
        (None, Some(hybrid)) => Fact::unknown(format!(
            "{} mixes two core types, and CPUID 1Ah does not report the type of this core",
            hybrid.product
        )),
        (None, None) => Fact::unknown(format!("family {family:#x}, model {model:#x} is not in the table")),
    }
}

fn reject_hidden_model(found: Microarchitecture, leaves: &CpuidLeaves) -> Fact<Microarchitecture> {
    match found.find_impossible_feature(leaves) {
        None => Fact::Known(found),
        Some(feature) => Fact::unknown(format!(
            "CPUID reports the model of {} and {feature}, which that design never had: a hypervisor hides the \
             real model",
            found.product
        )),
    }
}

/// Family, model and stepping from CPUID 01h EAX (SDM vol. 2A, CPUID; APM vol. 3, appendix E.3.2).
/// The extended model counts for families 6, 15 and above; the extended family only for family 15.
fn parse_signature(eax: u32) -> (u32, u32, u32) {
    let base_family = eax >> 8 & 0xF;
    let family = if base_family == 0xF { 0xF + (eax >> 20 & 0xFF) } else { base_family };
    let base_model = eax >> 4 & 0xF;
    let model = if base_family >= 6 { base_model | eax >> 12 & 0xF0 } else { base_model };
    (family, model, eax & 0xF)
}

fn read_brand(leaves: &CpuidLeaves) -> Fact<String> {
    let parts: Vec<u32> = (0x8000_0002..=0x8000_0004).filter_map(|leaf| leaves.find_leaf(leaf, 0)).flatten().collect();
    match registers_to_text(&parts).trim() {
        "" => Fact::unknown("CPUID has no brand string"),
        text => Fact::Known(text.to_string()),
    }
}

/// Core type from CPUID 1Ah EAX.
pub(super) fn parse_core_type(eax: u32) -> Fact<CoreType> {
    match eax >> 24 {
        0x40 => Fact::Known(CoreType::Performance),
        0x20 => Fact::Known(CoreType::Efficient),
        0 => Fact::unknown("CPUID 1Ah is zero or does not exist"),
        other => Fact::unknown(format!("CPUID 1Ah gives core type {other:#x}")),
    }
}

fn read_microcode(files: &SystemFiles) -> Fact<u32> {
    files.read_first_record("/proc/cpuinfo").and_then(|record| parse_microcode(&record))
}

/// Parses the `microcode` line of a `/proc/cpuinfo` record. Hypervisors that hide the revision
/// report 1 or ffff_ffff.
fn parse_microcode(record: &str) -> Fact<u32> {
    let Some(text) = cpuinfo_field(record, "microcode") else {
        return Fact::unknown("/proc/cpuinfo has no microcode line");
    };
    match u32::from_str_radix(text.trim_start_matches("0x"), 16) {
        Ok(hidden @ (1 | u32::MAX)) => {
            Fact::unknown(format!("the revision is {hidden:#x}, which hypervisors report instead of the real one"))
        }
        Ok(revision) => Fact::Known(revision),
        Err(_) => Fact::unknown(format!("/proc/cpuinfo gives the microcode revision as {text:?}")),
    }
}

/// Value of `key` in a `/proc/cpuinfo` record.
pub(super) fn cpuinfo_field<'a>(record: &'a str, key: &str) -> Option<&'a str> {
    record
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim())
}

/// The hypervisor between this system and the processor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hypervisor {
    /// Signature from CPUID 4000_0000h, such as `KVMKVMKVM`; empty if the hypervisor hides it.
    pub signature: String,
    /// Common name.
    pub name: String,
}

impl Hypervisor {
    /// The hypervisor that CPUID reports (leaf 1 ECX bit 31); `None` on bare metal or under one
    /// that hides itself.
    pub(crate) fn detect(leaves: &CpuidLeaves) -> Option<Hypervisor> {
        if !leaves.has_bit(1, 0, CpuidRegister::Ecx, 31) {
            return None;
        }
        let [_, ebx, ecx, edx] = leaves.find_leaf(0x4000_0000, 0).unwrap_or_default();
        let signature = registers_to_text(&[ebx, ecx, edx]).trim().to_string();
        let name = hypervisor_name(&signature).to_string();
        Some(Hypervisor { signature, name })
    }
}

fn hypervisor_name(signature: &str) -> &str {
    match signature {
        "KVMKVMKVM" | "Linux KVM Hv" => "KVM",
        "Microsoft Hv" => "Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        "TCGTCGTCGTCG" => "QEMU's emulator (TCG)",
        "bhyve bhyve" => "bhyve",
        "ACRNACRNACRN" => "ACRN",
        "prl hyperv" | "lrpepyh vr" => "Parallels",
        "VBoxVBoxVBox" => "VirtualBox",
        "QNXQVMBSQG" => "QNX",
        "VirtualApple" => "Rosetta 2",
        "IntelTDX" => "TDX module",
        "" => "unnamed hypervisor",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::cpuid_leaves::tests::emerald_rapids_vm;
    use super::*;

    #[test]
    fn signatures_of_both_vendors_are_parsed() {
        assert_eq!(parse_signature(0x000c06f2), (6, 0xCF, 2));
        assert_eq!(parse_signature(0x00a10f11), (0x19, 0x11, 1));
        assert_eq!(parse_signature(0x00100f42), (0x10, 4, 2));
        assert_eq!(parse_signature(0x00000f4a), (0xF, 4, 10));
    }

    #[test]
    fn a_recorded_vm_is_identified() {
        let leaves = emerald_rapids_vm();
        let cpu = Processor::detect(&leaves, &SystemFiles::rooted_at("/nonexistent"));
        assert_eq!(cpu.name(), "Raptor Cove (Emerald Rapids)");
        assert_eq!(cpu.imul_latency(), Some(3));
        assert_eq!(cpu.microcode.why(), Some("/proc/cpuinfo does not exist"));
        assert_eq!(Hypervisor::detect(&leaves).unwrap().name, "KVM");
    }

    #[test]
    fn a_model_with_features_of_another_design_is_rejected() {
        let recorded = emerald_rapids_vm();
        let leaves = CpuidLeaves::from_reader(|leaf, subleaf| match leaf {
            // Family 6, model 0xA7: a core without AVX512-FP16.
            1 => [0x000a_0671, 0x01020800, 0xfffa3203, 0x1f8bfbff],
            _ => recorded.find_leaf(leaf, subleaf).unwrap_or_default(),
        });
        let cpu = Processor::detect(&leaves, &SystemFiles::rooted_at("/nonexistent"));
        assert_eq!(cpu.model, 0xA7);
        let why = cpu.microarchitecture.why().unwrap();
        assert!(why.contains("Rocket Lake") && why.contains("never had"), "{why}");
        assert_eq!(cpu.imul_latency(), None);
    }

    #[test]
    fn a_hybrid_processor_without_core_type_is_unknown() {
        let why = find_design(Vendor::Intel, 6, 0x97, 2, None);
        assert!(why.why().unwrap().starts_with("Alder Lake mixes two core types"));
        assert!(find_design(Vendor::Amd, 0x19, 0xFE, 2, None).why().unwrap().contains("not in the table"));
    }

    #[test]
    fn missing_cpuid_is_not_an_error() {
        let leaves = CpuidLeaves::default();
        let cpu = Processor::detect(&leaves, &SystemFiles::rooted_at("/nonexistent"));
        assert_eq!(cpu.vendor, Vendor::Other);
        assert_eq!(cpu.name(), "unknown (family 0x0, model 0x0)");
        assert_eq!(cpu.imul_latency(), None);
        assert_eq!(Hypervisor::detect(&leaves), None);
    }

    #[test]
    fn microcode_revisions_are_parsed() {
        let revision = |value: &str| parse_microcode(&format!("model\t\t: 17\nmicrocode\t: {value}\nfpu : yes"));
        assert_eq!(revision("0xa101148").known(), Some(&0xa101148));
        assert!(revision("0x1").why().unwrap().contains("hypervisors"));
        assert!(revision("0xffffffff").why().unwrap().contains("hypervisors"));
        assert!(revision("none").why().unwrap().contains("none"));
        assert!(parse_microcode("model : 17").why().unwrap().contains("no microcode line"));
    }
}
