//! Methods that start with a serialising instruction, then read the time stamp counter.
//!
//! Generated from those of the library by its test `generated_files_match_the_methods`.

use crate::cpu::Feature;
use crate::pair::{Counts, Pair};
use core::arch::asm;

/// `cpuid-rdtsc`: serialised, but the second CPUID's time and variance are in every sample.
///
/// Readings count TSC ticks.
/// Promised: leading code is done, the body is done at the end, stores are drained.
/// Not promised: the body waits for the start, following code waits.
/// Condition: CPUID exits a virtual machine, which takes thousands of ticks that vary.
///
/// Source: G. Paoloni, How to Benchmark Code Execution Times on Intel IA-32 and IA-64, 324264-001,
/// section 3.1.
#[derive(Debug, Clone, Copy)]
pub struct CpuidRdtsc;

impl Pair for CpuidRdtsc {
    const NAME: &'static str = "cpuid-rdtsc";
    const COUNTS: Counts = Counts::TscTicks;
    const NEEDS: &'static [Feature] = &[];

    /// Reading before the measured code.
    #[inline(always)]
    fn start() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "mov {rbx}, rbx",            // the compiler needs RBX
                "mov eax, 0",
                "cpuid",                     // everything earlier is done, stores too; later code waits
                "rdtsc",                     // reads the TSC into EDX:EAX
                "mov rbx, {rbx}",
                rbx = out(reg) _,
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
                "mov {rbx}, rbx",            // the compiler needs RBX
                "mov eax, 0",
                "cpuid",                     // everything earlier is done, stores too; later code waits
                "rdtsc",                     // reads the TSC into EDX:EAX
                "mov rbx, {rbx}",
                rbx = out(reg) _,
                out("rax") low,
                out("rdx") high,
                out("rcx") _,
                options(nostack),
            );
        }
        (high << 32) | low
    }
}

/// `cpuid-rdtsc-cpuid`: serialised before and after each reading; two CPUIDs are inside the
/// measured interval.
///
/// Readings count TSC ticks.
/// Promised: leading code is done, the body waits for the start, the body is done at the end,
/// following code waits, stores are drained.
/// Condition: CPUID exits a virtual machine, which takes thousands of ticks that vary.
///
/// Source: Agner Fog, Test programs for measuring clock cycles and performance monitoring, section
/// 7.12.
#[derive(Debug, Clone, Copy)]
pub struct CpuidRdtscCpuid;

impl Pair for CpuidRdtscCpuid {
    const NAME: &'static str = "cpuid-rdtsc-cpuid";
    const COUNTS: Counts = Counts::TscTicks;
    const NEEDS: &'static [Feature] = &[];

    /// Reading before the measured code.
    #[inline(always)]
    fn start() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "mov {rbx}, rbx",            // the compiler needs RBX
                "mov eax, 0",
                "cpuid",                     // everything earlier is done, stores too; later code waits
                "rdtsc",                     // reads the TSC into EDX:EAX
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
                "mov eax, 0",
                "cpuid",                     // everything earlier is done, stores too; later code waits
                "rdtsc",                     // reads the TSC into EDX:EAX
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

/// `cpuid-rdtsc-rdtscp`: no CPUID inside the pair; code that follows may begin before the end is
/// read.
///
/// Readings count TSC ticks.
/// Promised: leading code is done, the body is done at the end.
/// Not promised: the body waits for the start, following code waits, stores are drained.
/// Condition: CPUID exits a virtual machine, which takes thousands of ticks that vary.
/// Condition: needs RDTSCP (CPUID leaf 80000001h, EDX bit 27); the CPU faults without it.
///
/// Source: G. Paoloni, How to Benchmark Code Execution Times on Intel IA-32 and IA-64, 324264-001,
/// section 3.2.
#[derive(Debug, Clone, Copy)]
pub struct CpuidRdtscRdtscp;

impl Pair for CpuidRdtscRdtscp {
    const NAME: &'static str = "cpuid-rdtsc-rdtscp";
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
                "mov eax, 0",
                "cpuid",                     // everything earlier is done, stores too; later code waits
                "rdtsc",                     // reads the TSC into EDX:EAX
                "mov rbx, {rbx}",
                rbx = out(reg) _,
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

/// `cpuid-rdtsc-rdtscp-cpuid`: the paper's recommendation; both CPUIDs are outside the pair.
///
/// Readings count TSC ticks.
/// Promised: leading code is done, the body is done at the end, following code waits.
/// Not promised: the body waits for the start, stores are drained.
/// Condition: CPUID exits a virtual machine, which takes thousands of ticks that vary.
/// Condition: needs RDTSCP (CPUID leaf 80000001h, EDX bit 27); the CPU faults without it.
///
/// Source: G. Paoloni, How to Benchmark Code Execution Times on Intel IA-32 and IA-64, 324264-001,
/// section 3.2.1.
#[derive(Debug, Clone, Copy)]
pub struct CpuidRdtscRdtscpCpuid;

impl Pair for CpuidRdtscRdtscpCpuid {
    const NAME: &'static str = "cpuid-rdtsc-rdtscp-cpuid";
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
                "mov eax, 0",
                "cpuid",                     // everything earlier is done, stores too; later code waits
                "rdtsc",                     // reads the TSC into EDX:EAX
                "mov rbx, {rbx}",
                rbx = out(reg) _,
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

/// `serialize-rdtsc`: fully serialised without exiting a virtual machine; needs a recent CPU.
///
/// Readings count TSC ticks.
/// Promised: leading code is done, the body waits for the start, the body is done at the end,
/// following code waits, stores are drained.
/// Condition: needs SERIALIZE (CPUID leaf 7, EDX bit 14); the CPU faults without it.
/// Condition: LFENCE waits on Intel CPUs, and on AMD CPUs if the system enabled that (see
/// cyclescope doctor).
///
/// Source: Intel SDM vol. 3A, 9.3.
#[derive(Debug, Clone, Copy)]
pub struct SerializeRdtsc;

impl Pair for SerializeRdtsc {
    const NAME: &'static str = "serialize-rdtsc";
    const COUNTS: Counts = Counts::TscTicks;
    const NEEDS: &'static [Feature] = &[Feature::Serialize];

    /// Reading before the measured code.
    #[inline(always)]
    fn start() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                ".byte 0x0f, 0x01, 0xe8",    // everything earlier is done, stores too; later code waits
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
                ".byte 0x0f, 0x01, 0xe8",    // everything earlier is done, stores too; later code waits
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
