//! Methods that start with a fence, then read the time stamp counter.
//!
//! Generated from those of the library by its test `generated_files_match_the_methods`.

use crate::cpu::Feature;
use crate::pair::{Counts, CpuPair, CpuReading, Pair};
use core::arch::asm;

/// `lfence-rdtsc`: waits for earlier code; later code may begin before the reading.
///
/// Readings count TSC ticks.
/// Promised: leading code is done, the body is done at the end.
/// Not promised: the body waits for the start, following code waits, stores are drained.
/// Condition: LFENCE waits on Intel CPUs, and on AMD CPUs if the system enabled that (see
/// cyclescope doctor).
///
/// Source: Notes on using rdtsc(p): Zen 4 and Alder Lake as examples.
#[derive(Debug, Clone, Copy)]
pub struct LfenceRdtsc;

impl Pair for LfenceRdtsc {
    const NAME: &'static str = "lfence-rdtsc";
    const COUNTS: Counts = Counts::TscTicks;
    const NEEDS: &'static [Feature] = &[];

    /// Reading before the measured code.
    #[inline(always)]
    fn start() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "lfence",                    // earlier instructions have executed, later ones wait
                "rdtsc",                     // reads the TSC into EDX:EAX
                out("rax") low,
                out("rdx") high,
                options(nostack),
            );
        }
        (high << 32) | low
    }

    /// Reading after the measured code.
    #[inline(always)]
    fn end() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "lfence",                    // earlier instructions have executed, later ones wait
                "rdtsc",                     // reads the TSC into EDX:EAX
                out("rax") low,
                out("rdx") high,
                options(nostack),
            );
        }
        (high << 32) | low
    }
}

/// `lfence-rdtsc-lfence`: fully fenced and cheap; does not wait for stores.
///
/// Readings count TSC ticks.
/// Promised: leading code is done, the body waits for the start, the body is done at the end,
/// following code waits.
/// Not promised: stores are drained.
/// Condition: LFENCE waits on Intel CPUs, and on AMD CPUs if the system enabled that (see
/// cyclescope doctor).
///
/// Source: Intel SDM vol. 2, RDTSC, notes on ordering.
#[derive(Debug, Clone, Copy)]
pub struct LfenceRdtscLfence;

impl Pair for LfenceRdtscLfence {
    const NAME: &'static str = "lfence-rdtsc-lfence";
    const COUNTS: Counts = Counts::TscTicks;
    const NEEDS: &'static [Feature] = &[];

    /// Reading before the measured code.
    #[inline(always)]
    fn start() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "lfence",                    // earlier instructions have executed, later ones wait
                "rdtsc",                     // reads the TSC into EDX:EAX
                "lfence",                    // earlier instructions have executed, later ones wait
                out("rax") low,
                out("rdx") high,
                options(nostack),
            );
        }
        (high << 32) | low
    }

    /// Reading after the measured code.
    #[inline(always)]
    fn end() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "lfence",                    // earlier instructions have executed, later ones wait
                "rdtsc",                     // reads the TSC into EDX:EAX
                "lfence",                    // earlier instructions have executed, later ones wait
                out("rax") low,
                out("rdx") high,
                options(nostack),
            );
        }
        (high << 32) | low
    }
}

/// `lfence-rdtsc-rdtscp-lfence`: the improved method of Intel's paper with LFENCE instead of CPUID;
/// the body may begin before the start is read.
///
/// Readings count TSC ticks.
/// Promised: leading code is done, the body is done at the end, following code waits.
/// Not promised: the body waits for the start, stores are drained.
/// Condition: LFENCE waits on Intel CPUs, and on AMD CPUs if the system enabled that (see
/// cyclescope doctor).
/// Condition: needs RDTSCP (CPUID leaf 80000001h, EDX bit 27); the CPU faults without it.
///
/// Source: Intel's paper, section 3.2.1, with LFENCE instead of CPUID.
#[derive(Debug, Clone, Copy)]
pub struct LfenceRdtscRdtscpLfence;

impl Pair for LfenceRdtscRdtscpLfence {
    const NAME: &'static str = "lfence-rdtsc-rdtscp-lfence";
    const COUNTS: Counts = Counts::TscTicks;
    const NEEDS: &'static [Feature] = &[Feature::Rdtscp];

    /// Reading before the measured code.
    #[inline(always)]
    fn start() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "lfence",                    // earlier instructions have executed, later ones wait
                "rdtsc",                     // reads the TSC into EDX:EAX
                out("rax") low,
                out("rdx") high,
                options(nostack),
            );
        }
        (high << 32) | low
    }

    /// Reading after the measured code.
    #[inline(always)]
    fn end() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "rdtscp",                    // reads the TSC into EDX:EAX when earlier instructions have executed
                "lfence",                    // earlier instructions have executed, later ones wait
                out("rax") low,
                out("rdx") high,
                out("rcx") _,
                options(nostack),
            );
        }
        (high << 32) | low
    }
}

/// `mfence-lfence-rdtsc`: fully fenced and waits until stores are globally visible.
///
/// Readings count TSC ticks.
/// Promised: leading code is done, the body waits for the start, the body is done at the end,
/// following code waits, stores are drained.
/// Condition: LFENCE waits on Intel CPUs, and on AMD CPUs if the system enabled that (see
/// cyclescope doctor).
///
/// Source: Intel SDM vol. 2, RDTSC, notes on ordering.
#[derive(Debug, Clone, Copy)]
pub struct MfenceLfenceRdtsc;

impl Pair for MfenceLfenceRdtsc {
    const NAME: &'static str = "mfence-lfence-rdtsc";
    const COUNTS: Counts = Counts::TscTicks;
    const NEEDS: &'static [Feature] = &[];

    /// Reading before the measured code.
    #[inline(always)]
    fn start() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "mfence",                    // earlier loads and stores are globally visible
                "lfence",                    // earlier instructions have executed, later ones wait
                "rdtsc",                     // reads the TSC into EDX:EAX
                "lfence",                    // earlier instructions have executed, later ones wait
                out("rax") low,
                out("rdx") high,
                options(nostack),
            );
        }
        (high << 32) | low
    }

    /// Reading after the measured code.
    #[inline(always)]
    fn end() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "mfence",                    // earlier loads and stores are globally visible
                "lfence",                    // earlier instructions have executed, later ones wait
                "rdtsc",                     // reads the TSC into EDX:EAX
                "lfence",                    // earlier instructions have executed, later ones wait
                out("rax") low,
                out("rdx") high,
                options(nostack),
            );
        }
        (high << 32) | low
    }
}

/// `mfence-rdtscp-lfence`: fully fenced and waits until stores are globally visible, if RDTSCP
/// waits for MFENCE.
///
/// Readings count TSC ticks.
/// Promised: leading code is done, the body waits for the start, the body is done at the end,
/// following code waits, stores are drained.
/// Condition: needs RDTSCP (CPUID leaf 80000001h, EDX bit 27); the CPU faults without it.
/// Condition: LFENCE waits on Intel CPUs, and on AMD CPUs if the system enabled that (see
/// cyclescope doctor).
///
/// Source: Intel SDM vol. 2, RDTSCP, notes on ordering.
#[derive(Debug, Clone, Copy)]
pub struct MfenceRdtscpLfence;

impl Pair for MfenceRdtscpLfence {
    const NAME: &'static str = "mfence-rdtscp-lfence";
    const COUNTS: Counts = Counts::TscTicks;
    const NEEDS: &'static [Feature] = &[Feature::Rdtscp];

    /// Reading before the measured code.
    #[inline(always)]
    fn start() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "mfence",                    // earlier loads and stores are globally visible
                "rdtscp",                    // reads the TSC into EDX:EAX when earlier instructions have executed
                "lfence",                    // earlier instructions have executed, later ones wait
                out("rax") low,
                out("rdx") high,
                out("rcx") _,
                options(nostack),
            );
        }
        (high << 32) | low
    }

    /// Reading after the measured code.
    #[inline(always)]
    fn end() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "mfence",                    // earlier loads and stores are globally visible
                "rdtscp",                    // reads the TSC into EDX:EAX when earlier instructions have executed
                "lfence",                    // earlier instructions have executed, later ones wait
                out("rax") low,
                out("rdx") high,
                out("rcx") _,
                options(nostack),
            );
        }
        (high << 32) | low
    }
}

impl CpuPair for MfenceRdtscpLfence {
    #[inline(always)]
    fn start_on_cpu() -> CpuReading {
        let (low, high): (u64, u64);
        let cpu: u32;
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "mfence",                    // earlier loads and stores are globally visible
                "rdtscp",                    // reads the TSC into EDX:EAX when earlier instructions have executed
                "lfence",                    // earlier instructions have executed, later ones wait
                out("rax") low,
                out("rdx") high,
                out("ecx") cpu,
                options(nostack),
            );
        }
        CpuReading { clock: (high << 32) | low, cpu }
    }

    #[inline(always)]
    fn end_on_cpu() -> CpuReading {
        let (low, high): (u64, u64);
        let cpu: u32;
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "mfence",                    // earlier loads and stores are globally visible
                "rdtscp",                    // reads the TSC into EDX:EAX when earlier instructions have executed
                "lfence",                    // earlier instructions have executed, later ones wait
                out("rax") low,
                out("rdx") high,
                out("ecx") cpu,
                options(nostack),
            );
        }
        CpuReading { clock: (high << 32) | low, cpu }
    }
}
