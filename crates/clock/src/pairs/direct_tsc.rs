//! Methods that start with the reading of the time stamp counter.
//!
//! Generated from those of the library by its test `generated_files_match_the_methods`.

use crate::cpu::Feature;
use crate::pair::{Counts, CpuPair, CpuReading, Pair};
use core::arch::asm;

/// `rdtsc`: the cheapest reading; orders nothing, so parts of short code fall outside the pair.
///
/// Readings count TSC ticks.
/// Not promised: leading code is done, the body waits for the start, the body is done at the end,
/// following code waits, stores are drained.
///
/// Source: Intel SDM vol. 2, RDTSC.
#[derive(Debug, Clone, Copy)]
pub struct Rdtsc;

impl Pair for Rdtsc {
    const NAME: &'static str = "rdtsc";
    const COUNTS: Counts = Counts::TscTicks;
    const NEEDS: &'static [Feature] = &[];

    /// Reading before the measured code.
    #[inline(always)]
    fn start() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
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
                "rdtsc",                     // reads the TSC into EDX:EAX
                out("rax") low,
                out("rdx") high,
                options(nostack),
            );
        }
        (high << 32) | low
    }
}

/// `rdtscp`: waits for earlier code; the body may begin before the start is read.
///
/// Readings count TSC ticks.
/// Promised: leading code is done, the body is done at the end.
/// Not promised: the body waits for the start, following code waits, stores are drained.
/// Condition: needs RDTSCP (CPUID leaf 80000001h, EDX bit 27); the CPU faults without it.
///
/// Source: Intel SDM vol. 2, RDTSCP.
#[derive(Debug, Clone, Copy)]
pub struct Rdtscp;

impl Pair for Rdtscp {
    const NAME: &'static str = "rdtscp";
    const COUNTS: Counts = Counts::TscTicks;
    const NEEDS: &'static [Feature] = &[Feature::Rdtscp];

    /// Reading before the measured code.
    #[inline(always)]
    fn start() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "rdtscp",                    // reads the TSC into EDX:EAX when earlier instructions have executed
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
                "rdtscp",                    // reads the TSC into EDX:EAX when earlier instructions have executed
                out("rax") low,
                out("rdx") high,
                out("rcx") _,
                options(nostack),
            );
        }
        (high << 32) | low
    }
}

impl CpuPair for Rdtscp {
    #[inline(always)]
    fn start_on_cpu() -> CpuReading {
        let (low, high): (u64, u64);
        let cpu: u32;
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "rdtscp",                    // reads the TSC into EDX:EAX when earlier instructions have executed
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
                "rdtscp",                    // reads the TSC into EDX:EAX when earlier instructions have executed
                out("rax") low,
                out("rdx") high,
                out("ecx") cpu,
                options(nostack),
            );
        }
        CpuReading { clock: (high << 32) | low, cpu }
    }
}

/// `rdtscp-cpuid`: fully fenced, but the first CPUID is inside the measured interval.
///
/// Readings count TSC ticks.
/// Promised: leading code is done, the body waits for the start, the body is done at the end,
/// following code waits.
/// Not promised: stores are drained.
/// Condition: needs RDTSCP (CPUID leaf 80000001h, EDX bit 27); the CPU faults without it.
/// Condition: CPUID exits a virtual machine, which takes thousands of ticks that vary.
///
/// Source: Notes on using rdtsc(p): Zen 4 and Alder Lake as examples.
#[derive(Debug, Clone, Copy)]
pub struct RdtscpCpuid;

impl Pair for RdtscpCpuid {
    const NAME: &'static str = "rdtscp-cpuid";
    const COUNTS: Counts = Counts::TscTicks;
    const NEEDS: &'static [Feature] = &[Feature::Rdtscp];

    /// Reading before the measured code.
    #[inline(always)]
    fn start() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "mov {rbx}, rbx",            // the compiler needs RBX
                "rdtscp",                    // reads the TSC into EDX:EAX when earlier instructions have executed
                "mov esi, eax",
                "mov edi, edx",              // stores the reading
                "mov eax, 0",
                "cpuid",                     // everything earlier is done, stores too; later code waits
                "mov rbx, {rbx}",
                rbx = out(reg) _,
                out("rsi") low,
                out("rdi") high,
                out("rax") _,
                out("rcx") _,
                out("rdx") _,
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
                "mov {rbx}, rbx",            // the compiler needs RBX
                "rdtscp",                    // reads the TSC into EDX:EAX when earlier instructions have executed
                "mov esi, eax",
                "mov edi, edx",              // stores the reading
                "mov eax, 0",
                "cpuid",                     // everything earlier is done, stores too; later code waits
                "mov rbx, {rbx}",
                rbx = out(reg) _,
                out("rsi") low,
                out("rdi") high,
                out("rax") _,
                out("rcx") _,
                out("rdx") _,
                options(nostack),
            );
        }
        (high << 32) | low
    }
}

impl CpuPair for RdtscpCpuid {
    #[inline(always)]
    fn start_on_cpu() -> CpuReading {
        let (low, high): (u64, u64);
        let cpu: u32;
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "mov {rbx}, rbx",            // the compiler needs RBX
                "rdtscp",                    // reads the TSC into EDX:EAX when earlier instructions have executed
                "mov esi, eax",
                "mov edi, edx",              // stores the reading
                "mov r8d, ecx",              // the number of the CPU
                "mov eax, 0",
                "cpuid",                     // everything earlier is done, stores too; later code waits
                "mov rbx, {rbx}",
                rbx = out(reg) _,
                out("rsi") low,
                out("rdi") high,
                out("r8d") cpu,
                out("rax") _,
                out("rcx") _,
                out("rdx") _,
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
                "mov {rbx}, rbx",            // the compiler needs RBX
                "rdtscp",                    // reads the TSC into EDX:EAX when earlier instructions have executed
                "mov esi, eax",
                "mov edi, edx",              // stores the reading
                "mov r8d, ecx",              // the number of the CPU
                "mov eax, 0",
                "cpuid",                     // everything earlier is done, stores too; later code waits
                "mov rbx, {rbx}",
                rbx = out(reg) _,
                out("rsi") low,
                out("rdi") high,
                out("r8d") cpu,
                out("rax") _,
                out("rcx") _,
                out("rdx") _,
                options(nostack),
            );
        }
        CpuReading { clock: (high << 32) | low, cpu }
    }
}

/// `rdtscp-lfence`: fully fenced; RDTSCP waits for earlier code, LFENCE delays later code.
///
/// Readings count TSC ticks.
/// Promised: leading code is done, the body waits for the start, the body is done at the end,
/// following code waits.
/// Not promised: stores are drained.
/// Condition: needs RDTSCP (CPUID leaf 80000001h, EDX bit 27); the CPU faults without it.
/// Condition: LFENCE waits on Intel CPUs, and on AMD CPUs if the system enabled that (see
/// cyclescope doctor).
///
/// Source: Notes on using rdtsc(p): Zen 4 and Alder Lake as examples.
#[derive(Debug, Clone, Copy)]
pub struct RdtscpLfence;

impl Pair for RdtscpLfence {
    const NAME: &'static str = "rdtscp-lfence";
    const COUNTS: Counts = Counts::TscTicks;
    const NEEDS: &'static [Feature] = &[Feature::Rdtscp];

    /// Reading before the measured code.
    #[inline(always)]
    fn start() -> u64 {
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

impl CpuPair for RdtscpLfence {
    #[inline(always)]
    fn start_on_cpu() -> CpuReading {
        let (low, high): (u64, u64);
        let cpu: u32;
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
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
