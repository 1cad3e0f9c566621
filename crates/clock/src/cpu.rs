//! Reads from CPUID which instructions of the pairs this CPU has.

#[cfg(feature = "std")]
use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count};
use core::fmt;

/// A feature that not every x86-64 CPU has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// RDTSCP (CPUID leaf 80000001h, EDX bit 27).
    Rdtscp,
    /// RDPID (CPUID leaf 7, ECX bit 22).
    Rdpid,
    /// SERIALIZE (CPUID leaf 7, EDX bit 14).
    Serialize,
    /// RDPRU (CPUID leaf 80000008h, EBX bit 4).
    Rdpru,
    /// A TSC that counts at a fixed rate in all states (CPUID leaf 80000007h, EDX bit 8).
    InvariantTsc,
}

impl Feature {
    /// Name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Feature::Rdtscp => "RDTSCP",
            Feature::Rdpid => "RDPID",
            Feature::Serialize => "SERIALIZE",
            Feature::Rdpru => "RDPRU",
            Feature::InvariantTsc => "a TSC that counts at a fixed rate",
        }
    }
}

/// Reads the number of the CPU, in two core cycles (Zen 5).
#[derive(Debug, Clone, Copy)]
#[cfg(feature = "std")]
pub(crate) struct CpuNumberReader {
    has_rdpid: bool,
}

#[cfg(feature = "std")]
impl CpuNumberReader {
    pub(crate) fn detect() -> CpuNumberReader {
        CpuNumberReader { has_rdpid: has(Feature::Rdpid) }
    }

    /// What the system has written to IA32_TSC_AUX, a number for each CPU; always 0 without RDPID.
    #[inline(always)]
    pub(crate) fn read(self) -> u32 {
        let mut number = 0u64;
        if self.has_rdpid {
            // SAFETY: the processor has the instruction, which only writes to its register.
            unsafe { asm!("rdpid {}", out(reg) number, options(nomem, nostack, preserves_flags)) };
        }
        number as u32
    }
}

/// A feature that this CPU lacks according to CPUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing(pub Feature);

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "this CPU does not have {}, or CPUID hides it", self.0.name())
    }
}

impl core::error::Error for Missing {}

/// Whether CPUID reports the feature.
pub(crate) fn has(feature: Feature) -> bool {
    let most = |leaf: u32| __cpuid(leaf & 0x8000_0000).eax;
    let bit = |leaf: u32, register: fn(u32) -> u32, bit: u32| most(leaf) >= leaf && register(leaf) >> bit & 1 == 1;
    match feature {
        Feature::Rdtscp => bit(0x8000_0001, |leaf| __cpuid(leaf).edx, 27),
        Feature::Rdpid => bit(7, |leaf| __cpuid_count(leaf, 0).ecx, 22),
        Feature::Serialize => bit(7, |leaf| __cpuid_count(leaf, 0).edx, 14),
        Feature::Rdpru => bit(0x8000_0008, |leaf| __cpuid(leaf).ebx, 4),
        Feature::InvariantTsc => bit(0x8000_0007, |leaf| __cpuid(leaf).edx, 8),
    }
}
