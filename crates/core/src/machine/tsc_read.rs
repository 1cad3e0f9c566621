//! The instructions that read the TSC, as functions for the experiments of this module.
//!
//! Measured programs never call them: their clock reads are part of the emitted code.

use std::arch::asm;

use serde::{Deserialize, Serialize};

/// A sequence that reads the TSC and whose step and cost are of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TscRead {
    /// Bare RDTSC, which may execute before earlier instructions are done.
    Rdtsc,
    /// RDTSCP, which waits for earlier instructions but lets later ones start.
    Rdtscp,
    /// LFENCE; RDTSC.
    LfenceRdtsc,
}

impl TscRead {
    /// All sequences, including RDTSCP even if the processor lacks it.
    pub(crate) const ALL: [TscRead; 3] = [TscRead::Rdtsc, TscRead::Rdtscp, TscRead::LfenceRdtsc];

    /// The instructions in assembly language.
    pub fn text(self) -> &'static str {
        match self {
            TscRead::Rdtsc => "rdtsc",
            TscRead::Rdtscp => "rdtscp",
            TscRead::LfenceRdtsc => "lfence; rdtsc",
        }
    }
}

/// RDTSC alone.
///
/// # Safety
/// RDTSC must not fault in this process: [`super::tsc::TscFacts::require`] succeeded.
#[inline(always)]
pub(crate) unsafe fn rdtsc() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller has checked that the instruction doesn't fault; it touches EAX and EDX
    // only.
    unsafe { asm!("rdtsc", out("eax") low, out("edx") high, options(nostack, preserves_flags)) };
    u64::from(high) << 32 | u64::from(low)
}

/// LFENCE; RDTSC: all earlier instructions are done before the counter is read.
///
/// # Safety
/// As for [`rdtsc`].
#[inline(always)]
pub(crate) unsafe fn lfence_rdtsc() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller has checked that RDTSC doesn't fault; LFENCE belongs to SSE2, which 64-bit
    // mode has.
    unsafe { asm!("lfence", "rdtsc", out("eax") low, out("edx") high, options(nostack, preserves_flags)) };
    u64::from(high) << 32 | u64::from(low)
}

/// RDTSCP: the counter and TSC_AUX.
///
/// # Safety
/// As for [`rdtsc`], and the processor must have RDTSCP.
#[inline(always)]
pub(crate) unsafe fn rdtscp() -> (u64, u32) {
    let (low, high, aux): (u32, u32, u32);
    // SAFETY: the caller has checked that the instruction exists and doesn't fault.
    unsafe {
        asm!("rdtscp", out("eax") low, out("edx") high, out("ecx") aux, options(nostack, preserves_flags));
    }
    (u64::from(high) << 32 | u64::from(low), aux)
}

/// CPU number in TSC_AUX. Linux keeps the NUMA node in bits 31:12 and the CPU in bits 11:0
/// (arch/x86/include/asm/segment.h, vdso_encode_cpunode). Two RDTSCPs that differ show a migration.
#[cfg(test)]
pub(crate) fn cpu_from_aux(aux: u32) -> u32 {
    aux & 0xFFF
}

#[cfg(test)]
mod tests {
    use super::super::Machine;
    use super::*;

    #[test]
    fn tsc_aux_contains_node_and_cpu() {
        assert_eq!(cpu_from_aux(0x3005), 5);
    }

    #[test]
    fn the_tsc_increases_and_aux_is_an_online_cpu() {
        let machine = Machine::detect();
        if machine.tsc.require().is_err() || !machine.features.has_rdtscp() {
            cyclescope_skipped::report_skipped("no RDTSCP here");
            return;
        }
        // SAFETY: both conditions were checked above.
        let (first, (second, aux)) = unsafe { (lfence_rdtsc(), rdtscp()) };
        assert!(second >= first);
        if let Some(online) = machine.topology.online.known() {
            assert!(online.contains(&cpu_from_aux(aux)), "TSC_AUX names CPU {}", cpu_from_aux(aux));
        }
    }
}
