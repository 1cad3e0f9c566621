//! Which instruction-set features this process can use: reported by CPUID *and* enabled by the system.
//!
//! A feature whose register state the kernel left off (XCR0) faults as an absent one does, so both are
//! absent here, with different reasons.

use iced_x86::CpuidFeature;
use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct};

use super::cpu::{Cpu, Vendor, cpuinfo_field};
use super::fact::{Fact, Files};
use super::feature_table::{ALWAYS, BITS, NEVER, PADLOCK, State};
use super::leaves::{Leaves, Register};
use crate::error::Unavailable;

/// What makes LFENCE wait until all earlier instructions are done before any later one starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LfenceOrder {
    /// Its definition (Intel SDM vol. 2A, LFENCE).
    Architectural,
    /// CPUID 8000_0021h EAX bit 2, LfenceAlwaysSerializing (AMD APM vol. 3), or a family that knows no other.
    AlwaysSerializing,
    /// The kernel set MSR C001_1029h bit 1; older ones then show `lfence_rdtsc` in `/proc/cpuinfo`.
    SetByKernel,
}

/// The features of the processor and system.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// By `CpuidFeature as usize`: usable, or why not.
    support: Vec<Result<(), &'static str>>,
    xcr0: u64,
    lfence: Fact<LfenceOrder>,
    cet: bool,
    invariant_tsc: bool,
    amx_exists: bool,
}

/// What the operating system has enabled for this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Enabled {
    /// XCR0 as XGETBV returns it (SDM vol. 1, 13.3); 0 without OSXSAVE.
    pub xcr0: u64,
    /// Whether the process may use AMX tile data (`arch_prctl(ARCH_GET_XCOMP_PERM)`, Linux
    /// Documentation/arch/x86/xstate.rst).
    pub tile_permission: bool,
    /// CR4.FSGSBASE, which the kernel shows as bit 1 of AT_HWCAP2.
    pub fsgsbase: bool,
    /// A user shadow stack in this thread (`arch_prctl(ARCH_SHSTK_STATUS)`, Documentation/arch/x86/shstk.rst).
    pub shadow_stack: bool,
}

impl Enabled {
    /// Asks the kernel and XGETBV.
    pub(crate) fn read(leaves: &Leaves) -> Enabled {
        let mut permission = 0u64;
        let mut shadow_stack = 0u64;
        arch_prctl_into(ARCH_GET_XCOMP_PERM, &mut permission);
        arch_prctl_into(ARCH_SHSTK_STATUS, &mut shadow_stack);
        // SAFETY: getauxval reads a table that the kernel left in this process.
        let hwcap2 = unsafe { libc::getauxval(libc::AT_HWCAP2) };
        Enabled {
            // CPUID 01h ECX[27], OSXSAVE: XGETBV may be executed.
            xcr0: if leaves.bit(1, 0, Register::Ecx, 27) { read_xcr0() } else { 0 },
            tile_permission: permission >> TILE_DATA & 1 == 1,
            fsgsbase: hwcap2 >> 1 & 1 == 1,
            shadow_stack: shadow_stack & 1 == 1,
        }
    }
}

impl Features {
    /// Reads them for this process.
    pub(crate) fn detect(leaves: &Leaves, cpu: &Cpu, files: &Files) -> Features {
        Features::from_leaves(leaves, cpu, Enabled::read(leaves), lfence_order(leaves, cpu, files))
    }

    /// Derives them from recorded facts.
    pub fn from_leaves(leaves: &Leaves, cpu: &Cpu, enabled: Enabled, lfence: Fact<LfenceOrder>) -> Features {
        let count = CpuidFeature::values().len();
        let mut features = Features {
            support: vec![Err("cyclescope doesn't know this feature"); count],
            xcr0: enabled.xcr0,
            lfence,
            cet: leaves.bit(7, 0, Register::Edx, 20) || leaves.bit(7, 0, Register::Ecx, 7),
            invariant_tsc: leaves.bit(0x8000_0007, 0, Register::Edx, 8),
            amx_exists: leaves.bit(7, 0, Register::Edx, 24),
        };
        for row in BITS {
            let told = leaves.bit(row.leaf, row.subleaf, row.register, row.bit);
            features.set(row.feature, usable(told, row.state, &enabled));
        }
        for &feature in ALWAYS {
            features.set(feature, told(!leaves.is_empty()));
        }
        for &(feature, why) in NEVER {
            features.set(feature, Err(why));
        }
        for &(feature, bit) in PADLOCK {
            let both = leaves.register(0xC000_0001, 0, Register::Edx) >> bit & 0b11 == 0b11;
            features.set(feature, told(both && cpu.vendor == Vendor::Zhaoxin));
        }
        features.set_special(leaves, &enabled);
        features
    }

    /// Those of a simulated processor, which refuses no instruction.
    pub(crate) fn every() -> Features {
        Features {
            support: vec![Ok(()); CpuidFeature::values().len()],
            xcr0: u64::MAX,
            lfence: Fact::Known(LfenceOrder::Architectural),
            cet: false,
            invariant_tsc: true,
            amx_exists: true,
        }
    }

    /// Features that more than one bit decides.
    fn set_special(&mut self, leaves: &Leaves, enabled: &Enabled) {
        use CpuidFeature as F;
        let either = |this: &Features, a, b| if this.has(a) { Ok(()) } else { this.support[b as usize] };
        self.set(F::HLE_or_RTM, either(self, F::HLE, F::RTM));
        self.set(F::SKINIT_or_SVM, either(self, F::SKINIT, F::SVM));
        self.set(F::TDX, told(leaves.get(0x21, 0).is_some_and(is_tdx_guest)));
        // 64-bit kernels with XSAVE set CR4.OSXSAVE, which CPUID 01h ECX[27] mirrors.
        let xsave = leaves.bit(1, 0, Register::Ecx, 26);
        let osxsave = leaves.bit(1, 0, Register::Ecx, 27);
        self.set(F::XSAVE, if xsave && !osxsave { Err("the system left XSAVE off") } else { told(xsave) });
        let pku = leaves.bit(7, 0, Register::Ecx, 3);
        let ospke = leaves.bit(7, 0, Register::Ecx, 4);
        self.set(F::PKU, if pku && !ospke { Err("the system left protection keys off") } else { told(pku) });
        let fsgsbase = leaves.bit(7, 0, Register::Ebx, 0);
        let off = fsgsbase && !enabled.fsgsbase;
        self.set(F::FSGSBASE, if off { Err("the system left FSGSBASE off") } else { told(fsgsbase) });
        let shadow_stack = leaves.bit(7, 0, Register::Ecx, 7);
        let off = shadow_stack && !enabled.shadow_stack;
        self.set(F::CET_SS, if off { Err("this process has no shadow stack") } else { told(shadow_stack) });
    }

    fn set(&mut self, feature: CpuidFeature, support: Result<(), &'static str>) {
        self.support[feature as usize] = support;
    }

    /// Whether this process can use the feature.
    ///
    /// Privileged instructions count as usable where the processor has them. ENDBR (`CET_IBT`) runs everywhere.
    pub fn has(&self, feature: CpuidFeature) -> bool {
        self.support[feature as usize].is_ok()
    }

    /// Why the feature can't be used; `None` when it can.
    pub(crate) fn why_not(&self, feature: CpuidFeature) -> Option<&'static str> {
        self.support[feature as usize].err()
    }

    /// Those of `wanted` that can't be used, in the order given.
    pub fn missing(&self, wanted: &[CpuidFeature]) -> Vec<CpuidFeature> {
        wanted.iter().copied().filter(|&feature| !self.has(feature)).collect()
    }

    /// All usable features, in iced's order.
    pub fn usable(&self) -> impl Iterator<Item = CpuidFeature> + '_ {
        CpuidFeature::values().filter(|&feature| self.has(feature))
    }

    /// Succeeds when all of `wanted` are usable, else names what is missing and why.
    pub fn require(&self, wanted: &[CpuidFeature]) -> Result<(), Unavailable> {
        let missing = self.missing(wanted);
        let Some(&first) = missing.first() else { return Ok(()) };
        let names: Vec<String> = missing.iter().map(|&feature| name(feature)).collect();
        Err(Unavailable {
            what: format!("CPU feature {}", names.join(", ")),
            why: self.why_not(first).unwrap_or_default().to_string(),
            remedy: String::new(),
        })
    }

    /// RDTSCP exists (CPUID 8000_0001h EDX bit 27).
    pub fn rdtscp(&self) -> bool {
        self.has(CpuidFeature::RDTSCP)
    }

    /// The TSC runs at a constant rate in all power states (CPUID 8000_0007h EDX bit 8).
    pub(crate) fn invariant_tsc(&self) -> bool {
        self.invariant_tsc
    }

    /// User code may read and write the FS and GS bases.
    #[cfg(test)]
    pub(crate) fn fsgsbase(&self) -> bool {
        self.has(CpuidFeature::FSGSBASE)
    }

    /// What makes LFENCE order later instructions after earlier ones; unknown where nothing promises it.
    pub fn lfence(&self) -> &Fact<LfenceOrder> {
        &self.lfence
    }
}

/// The feature's name in results: iced's, in lower case.
pub fn name(feature: CpuidFeature) -> String {
    format!("{feature:?}").to_lowercase()
}

fn told(by_cpuid: bool) -> Result<(), &'static str> {
    if by_cpuid { Ok(()) } else { Err("the processor does not have it, or a hypervisor hides it") }
}

fn usable(by_cpuid: bool, state: State, enabled: &Enabled) -> Result<(), &'static str> {
    told(by_cpuid)?;
    if enabled.xcr0 & state.xcr0_bits() != state.xcr0_bits() {
        return Err("the system did not enable its register state (XCR0)");
    }
    if state == State::Tile && !enabled.tile_permission {
        return Err("this process has not asked the kernel for AMX tile data");
    }
    Ok(())
}

/// Leaf 21h names the TDX module inside of a trust domain (Intel TDX module specification, CPUID 21h).
fn is_tdx_guest([_, ebx, ecx, edx]: [u32; 4]) -> bool {
    super::leaves::text_of(&[ebx, edx, ecx]) == "IntelTDX    "
}

fn lfence_order(leaves: &Leaves, cpu: &Cpu, files: &Files) -> Fact<LfenceOrder> {
    if matches!(cpu.vendor, Vendor::Intel) {
        return Fact::Known(LfenceOrder::Architectural);
    }
    // Families 0Fh and 11h have no such switch: LFENCE always waits (AMD, "Software techniques for managing
    // speculation on AMD processors", mitigation G-2).
    let old_amd = cpu.vendor == Vendor::Amd && matches!(cpu.family, 0x0F | 0x11);
    if old_amd || leaves.bit(0x8000_0021, 0, Register::Eax, 2) {
        return Fact::Known(LfenceOrder::AlwaysSerializing);
    }
    files.first_record("/proc/cpuinfo").and_then(|record| {
        let flags = cpuinfo_field(&record, "flags").unwrap_or_default();
        if flags.split_whitespace().any(|flag| flag == "lfence_rdtsc") {
            Fact::Known(LfenceOrder::SetByKernel)
        } else {
            Fact::unknown(
                "CPUID 8000_0021h does not promise it, and newer kernels set it without reporting it",
            )
        }
    })
}

// asm/prctl.h
const ARCH_GET_XCOMP_PERM: libc::c_int = 0x1022;
const ARCH_SHSTK_STATUS: libc::c_int = 0x5005;
/// XSAVE component of tile data.
const TILE_DATA: u32 = 18;

fn arch_prctl_into(code: libc::c_int, value: &mut u64) {
    // SAFETY: both codes in use write one u64 through the pointer, or fail and write nothing.
    unsafe { libc::syscall(libc::SYS_arch_prctl, code, value as *mut u64) };
}

fn read_xcr0() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller checked OSXSAVE, so XGETBV with ECX = 0 exists and doesn't fault.
    unsafe {
        std::arch::asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

impl Serialize for Features {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Features", 5)?;
        let names: Vec<String> = self.usable().map(name).collect();
        object.serialize_field("usable", &names)?;
        object.serialize_field("xcr0", &format!("{:#x}", self.xcr0))?;
        object.serialize_field("invariant_tsc", &self.invariant_tsc)?;
        object.serialize_field("cet", &self.cet)?;
        object.serialize_field("lfence", &self.lfence)?;
        object.end()
    }
}

mod saved;
#[cfg(test)]
mod tests;

pub use saved::SavedFeatures;
