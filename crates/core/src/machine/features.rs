//! Instruction-set features that this process can use: reported by CPUID *and* enabled by the
//! system.
//!
//! If the kernel left the register state of a feature off (XCR0), its instructions fault as if the
//! processor lacked it. Both cases count as absent here, with different reasons.

use cyclescope_platform::processor as platform;
use iced_x86::CpuidFeature;
use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct};

pub use cyclescope_platform::processor::allows_fsgsbase;

use super::cpuid_leaves::{CpuidLeaves, CpuidRegister};
use super::fact::{Fact, SystemFiles};
use super::feature_table::{ALWAYS_USABLE, FEATURE_BITS, NEVER_USABLE, PADLOCK_BITS, RegisterState};
use super::processor::{Processor, Vendor, cpuinfo_field};
use crate::error::Unavailable;

/// Why LFENCE waits until all earlier instructions are done before any later one starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LfenceOrder {
    /// Its definition (Intel SDM vol. 2A, LFENCE).
    Architectural,
    /// CPUID 8000_0021h EAX bit 2, LfenceAlwaysSerializing (AMD APM vol. 3), or a family whose
    /// LFENCE always waits.
    AlwaysSerializing,
    /// The kernel set MSR C001_1029h bit 1. Older kernels then show `lfence_rdtsc` in
    /// `/proc/cpuinfo`.
    SetByKernel,
}

/// The features of the processor and system.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuFeatures {
    /// Indexed by `CpuidFeature as usize`: usable, or why not.
    support: Vec<Result<(), &'static str>>,
    xcr0: u64,
    lfence: Fact<LfenceOrder>,
    cet: bool,
    invariant_tsc: bool,
    amx_exists: bool,
}

/// What the operating system has enabled for this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SystemSupport {
    /// XCR0 as XGETBV returns it (SDM vol. 1, 13.3); 0 without OSXSAVE.
    pub xcr0: u64,
    /// Whether the process may use AMX tile data (`arch_prctl(ARCH_GET_XCOMP_PERM)`, Linux
    /// Documentation/arch/x86/xstate.rst).
    pub tile_permission: bool,
    /// CR4.FSGSBASE: see [`allows_fsgsbase`].
    pub fsgsbase: bool,
    /// A user shadow stack in this thread (`arch_prctl(ARCH_SHSTK_STATUS)`,
    /// Documentation/arch/x86/shstk.rst).
    pub shadow_stack: bool,
}

impl SystemSupport {
    /// Asks the kernel and XGETBV.
    pub(crate) fn read(leaves: &CpuidLeaves) -> SystemSupport {
        SystemSupport {
            // CPUID 01h ECX[27], OSXSAVE: XGETBV may be executed.
            xcr0: if leaves.has_bit(1, 0, CpuidRegister::Ecx, 27) { read_xcr0() } else { 0 },
            tile_permission: platform::read_permitted_components() >> TILE_DATA & 1 == 1,
            fsgsbase: platform::allows_fsgsbase(),
            shadow_stack: platform::has_shadow_stack(),
        }
    }
}

impl CpuFeatures {
    /// Detects them for this process.
    pub(crate) fn detect(leaves: &CpuidLeaves, cpu: &Processor, files: &SystemFiles) -> CpuFeatures {
        CpuFeatures::from_leaves(leaves, cpu, SystemSupport::read(leaves), detect_lfence_order(leaves, cpu, files))
    }

    /// Derives them from recorded facts.
    pub fn from_leaves(
        leaves: &CpuidLeaves,
        cpu: &Processor,
        enabled: SystemSupport,
        lfence: Fact<LfenceOrder>,
    ) -> CpuFeatures {
        let count = CpuidFeature::values().len();
        let mut features = CpuFeatures {
            support: vec![Err("cyclescope doesn't know this feature"); count],
            xcr0: enabled.xcr0,
            lfence,
            cet: leaves.has_bit(7, 0, CpuidRegister::Edx, 20) || leaves.has_bit(7, 0, CpuidRegister::Ecx, 7),
            invariant_tsc: leaves.has_bit(0x8000_0007, 0, CpuidRegister::Edx, 8),
            amx_exists: leaves.has_bit(7, 0, CpuidRegister::Edx, 24),
        };
        for row in FEATURE_BITS {
            let reported = leaves.has_bit(row.leaf, row.subleaf, row.register, row.bit);
            features.set_support(row.feature, check_usable(reported, row.state, &enabled));
        }
        for &feature in ALWAYS_USABLE {
            features.set_support(feature, check_cpuid_bit(!leaves.is_empty()));
        }
        for &(feature, why) in NEVER_USABLE {
            features.set_support(feature, Err(why));
        }
        for &(feature, bit) in PADLOCK_BITS {
            let enabled_bits = leaves.register(0xC000_0001, 0, CpuidRegister::Edx) >> bit & 0b11 == 0b11;
            features.set_support(feature, check_cpuid_bit(enabled_bits && cpu.vendor == Vendor::Zhaoxin));
        }
        features.set_derived_features(leaves, &enabled);
        features
    }

    /// Features of a simulated processor, which supports every instruction.
    pub(crate) fn with_every_feature() -> CpuFeatures {
        CpuFeatures {
            support: vec![Ok(()); CpuidFeature::values().len()],
            xcr0: u64::MAX,
            lfence: Fact::Known(LfenceOrder::Architectural),
            cet: false,
            invariant_tsc: true,
            amx_exists: true,
        }
    }

    /// Sets the features that depend on more than one bit.
    fn set_derived_features(&mut self, leaves: &CpuidLeaves, enabled: &SystemSupport) {
        use CpuidFeature as F;
        let either = |this: &CpuFeatures, a, b| if this.has(a) { Ok(()) } else { this.support[b as usize] };
        self.set_support(F::HLE_or_RTM, either(self, F::HLE, F::RTM));
        self.set_support(F::SKINIT_or_SVM, either(self, F::SKINIT, F::SVM));
        self.set_support(F::TDX, check_cpuid_bit(leaves.find_leaf(0x21, 0).is_some_and(is_tdx_guest)));
        // 64-bit kernels with XSAVE set CR4.OSXSAVE, which CPUID 01h ECX[27] mirrors.
        let xsave = leaves.has_bit(1, 0, CpuidRegister::Ecx, 26);
        let osxsave = leaves.has_bit(1, 0, CpuidRegister::Ecx, 27);
        self.set_support(
            F::XSAVE,
            if xsave && !osxsave { Err("the system left XSAVE off") } else { check_cpuid_bit(xsave) },
        );
        let pku = leaves.has_bit(7, 0, CpuidRegister::Ecx, 3);
        let ospke = leaves.has_bit(7, 0, CpuidRegister::Ecx, 4);
        self.set_support(
            F::PKU,
            if pku && !ospke { Err("the system left protection keys off") } else { check_cpuid_bit(pku) },
        );
        let fsgsbase = leaves.has_bit(7, 0, CpuidRegister::Ebx, 0);
        let off = fsgsbase && !enabled.fsgsbase;
        self.set_support(
            F::FSGSBASE,
            if off { Err("the system left FSGSBASE off") } else { check_cpuid_bit(fsgsbase) },
        );
        let shadow_stack = leaves.has_bit(7, 0, CpuidRegister::Ecx, 7);
        let off = shadow_stack && !enabled.shadow_stack;
        self.set_support(
            F::CET_SS,
            if off { Err("this process has no shadow stack") } else { check_cpuid_bit(shadow_stack) },
        );
    }

    fn set_support(&mut self, feature: CpuidFeature, support: Result<(), &'static str>) {
        self.support[feature as usize] = support;
    }

    /// Whether this process can use the feature.
    ///
    /// Privileged instructions count as usable if the processor has them. ENDBR (`CET_IBT`) runs
    /// everywhere.
    pub fn has(&self, feature: CpuidFeature) -> bool {
        self.support[feature as usize].is_ok()
    }

    /// Why the feature cannot be used; `None` if it can.
    pub fn why_not(&self, feature: CpuidFeature) -> Option<&'static str> {
        self.support[feature as usize].err()
    }

    /// The features among `wanted` that cannot be used, in the given order.
    pub fn find_missing(&self, wanted: &[CpuidFeature]) -> Vec<CpuidFeature> {
        wanted.iter().copied().filter(|&feature| !self.has(feature)).collect()
    }

    /// All usable features, in the order of iced.
    pub fn list_usable(&self) -> impl Iterator<Item = CpuidFeature> + '_ {
        CpuidFeature::values().filter(|&feature| self.has(feature))
    }

    /// Succeeds if all of `wanted` are usable. Otherwise names what is missing and why.
    pub fn require(&self, wanted: &[CpuidFeature]) -> Result<(), Unavailable> {
        let missing = self.find_missing(wanted);
        let Some(&first) = missing.first() else { return Ok(()) };
        let names: Vec<String> = missing.iter().map(|&feature| feature_name(feature)).collect();
        Err(Unavailable {
            what: format!("CPU feature {}", names.join(", ")),
            why: self.why_not(first).unwrap_or_default().to_string(),
            remedy: String::new(),
        })
    }

    /// Whether RDTSCP exists (CPUID 8000_0001h EDX bit 27).
    pub fn has_rdtscp(&self) -> bool {
        self.has(CpuidFeature::RDTSCP)
    }

    /// Whether the TSC runs at a constant rate in all power states (CPUID 8000_0007h EDX bit 8).
    pub(crate) fn has_invariant_tsc(&self) -> bool {
        self.invariant_tsc
    }

    /// Whether user code may read and write the FS and GS bases.
    #[cfg(test)]
    pub(crate) fn has_fsgsbase(&self) -> bool {
        self.has(CpuidFeature::FSGSBASE)
    }

    /// Why LFENCE makes later instructions wait for earlier ones; unknown if nothing guarantees it.
    pub fn lfence_order(&self) -> &Fact<LfenceOrder> {
        &self.lfence
    }
}

/// Name of the feature in results: that of iced, in lower case.
pub fn feature_name(feature: CpuidFeature) -> String {
    format!("{feature:?}").to_lowercase()
}

fn check_cpuid_bit(by_cpuid: bool) -> Result<(), &'static str> {
    if by_cpuid { Ok(()) } else { Err("the processor lacks it, or a hypervisor hides it") }
}

fn check_usable(by_cpuid: bool, state: RegisterState, enabled: &SystemSupport) -> Result<(), &'static str> {
    check_cpuid_bit(by_cpuid)?;
    if enabled.xcr0 & state.xcr0_bits() != state.xcr0_bits() {
        return Err("the system did not enable its register state (XCR0)");
    }
    if state == RegisterState::Tile && !enabled.tile_permission {
        return Err("this process has not asked the kernel for AMX tile data");
    }
    Ok(())
}

/// Whether leaf 21h names the TDX module, as it does inside a trust domain (Intel TDX module
/// specification, CPUID 21h).
fn is_tdx_guest([_, ebx, ecx, edx]: [u32; 4]) -> bool {
    super::cpuid_leaves::registers_to_text(&[ebx, edx, ecx]) == "IntelTDX    "
}

fn detect_lfence_order(leaves: &CpuidLeaves, cpu: &Processor, files: &SystemFiles) -> Fact<LfenceOrder> {
    if matches!(cpu.vendor, Vendor::Intel) {
        return Fact::Known(LfenceOrder::Architectural);
    }
    // Families 0Fh and 11h have no such setting: LFENCE always waits (AMD, "Software techniques for
    // managing speculation on AMD processors", mitigation G-2).
    let old_amd = cpu.vendor == Vendor::Amd && matches!(cpu.family, 0x0F | 0x11);
    if old_amd || leaves.has_bit(0x8000_0021, 0, CpuidRegister::Eax, 2) {
        return Fact::Known(LfenceOrder::AlwaysSerializing);
    }
    files.read_first_record("/proc/cpuinfo").and_then(|record| {
        let flags = cpuinfo_field(&record, "flags").unwrap_or_default();
        if flags.split_whitespace().any(|flag| flag == "lfence_rdtsc") {
            Fact::Known(LfenceOrder::SetByKernel)
        } else {
            Fact::unknown("CPUID 8000_0021h does not promise it, and newer kernels set it without reporting it")
        }
    })
}

/// XSAVE component of tile data.
const TILE_DATA: u32 = 18;

fn read_xcr0() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller checked OSXSAVE, so XGETBV with ECX = 0 exists and doesn't fault.
    unsafe {
        std::arch::asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

impl Serialize for CpuFeatures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Features", 5)?;
        let names: Vec<String> = self.list_usable().map(feature_name).collect();
        object.serialize_field("usable", &names)?;
        object.serialize_field("xcr0", &format!("{:#x}", self.xcr0))?;
        object.serialize_field("invariant_tsc", &self.invariant_tsc)?;
        object.serialize_field("cet", &self.cet)?;
        object.serialize_field("lfence", &self.lfence)?;
        object.end()
    }
}

mod saved_features;
#[cfg(test)]
mod tests;

pub use saved_features::SavedFeatures;
