//! The timing methods that user mode can run.
//!
//! Generated from those of the library by its test `generated_files_match_the_methods`.

use crate::cpu::Feature;
use crate::pair::{Counts, CpuPair, CpuReading, Pair};
use core::arch::asm;

#[cfg(target_os = "linux")]
const CLOCK_MONOTONIC_RAW: i32 = 4;

#[cfg(target_os = "linux")]
#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

#[cfg(target_os = "linux")]
unsafe extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}

/// `clock-gettime`: the clock of ordinary programs; shows what the other methods gain.
///
/// Readings count nanoseconds.
/// Promised: leading code is done, the body waits for the start, the body is done at the end,
/// following code waits.
/// Not promised: stores are drained.
/// Condition: LFENCE waits on Intel CPUs, and on AMD CPUs if the system enabled that (see
/// cyclescope doctor).
/// Condition: calls the C library on the caller's stack.
///
/// Source: clock_gettime(2), CLOCK_MONOTONIC_RAW.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy)]
pub struct ClockGettime;

#[cfg(target_os = "linux")]
impl Pair for ClockGettime {
    const NAME: &'static str = "clock-gettime";
    const COUNTS: Counts = Counts::Nanos;
    const NEEDS: &'static [Feature] = &[];

    /// Reading before the measured code.
    #[inline(always)]
    fn start() -> u64 {
        let mut now = Timespec { seconds: 0, nanoseconds: 0 };
        // SAFETY: the call writes only this structure; the fences change nothing.
        unsafe {
            asm!("lfence", options(nostack)); // earlier instructions have executed, later ones wait
            clock_gettime(CLOCK_MONOTONIC_RAW, &mut now);
            asm!("lfence", options(nostack)); // earlier instructions have executed, later ones wait
        }
        now.seconds as u64 * 1_000_000_000 + now.nanoseconds as u64
    }

    /// Reading after the measured code.
    #[inline(always)]
    fn end() -> u64 {
        let mut now = Timespec { seconds: 0, nanoseconds: 0 };
        // SAFETY: the call writes only this structure; the fences change nothing.
        unsafe {
            asm!("lfence", options(nostack)); // earlier instructions have executed, later ones wait
            clock_gettime(CLOCK_MONOTONIC_RAW, &mut now);
            asm!("lfence", options(nostack)); // earlier instructions have executed, later ones wait
        }
        now.seconds as u64 * 1_000_000_000 + now.nanoseconds as u64
    }
}

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

/// `rdpmc`: counts core cycles directly, if perf events give user mode a counter.
///
/// Readings count core cycles.
/// Promised: leading code is done, the body waits for the start, the body is done at the end,
/// following code waits.
/// Not promised: stores are drained.
/// Condition: LFENCE waits on Intel CPUs, and on AMD CPUs if the system enabled that (see
/// cyclescope doctor).
/// Condition: needs a running counter of perf_event_open(2): its number is `index` - 1 of the
/// event's mapped page.
///
/// Source: Intel SDM vol. 2, RDPMC; perf_event_open(2), cap_user_rdpmc.
#[derive(Debug, Clone, Copy)]
pub struct Rdpmc;

impl Rdpmc {
    /// Reading before the measured code.
    #[inline(always)]
    pub fn start(counter: u32) -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "lfence",                    // earlier instructions have executed, later ones wait
                "rdpmc",                     // reads the counter of ECX into EDX:EAX
                "lfence",                    // earlier instructions have executed, later ones wait
                in("ecx") counter,
                out("rax") low,
                out("rdx") high,
                options(nostack),
            );
        }
        (high << 32) | low
    }

    /// Reading after the measured code.
    #[inline(always)]
    pub fn end(counter: u32) -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "lfence",                    // earlier instructions have executed, later ones wait
                "rdpmc",                     // reads the counter of ECX into EDX:EAX
                "lfence",                    // earlier instructions have executed, later ones wait
                in("ecx") counter,
                out("rax") low,
                out("rdx") high,
                options(nostack),
            );
        }
        (high << 32) | low
    }
}

/// `rdpru`: counts core cycles directly, on AMD CPUs that allow it in user mode.
///
/// Readings count core cycles.
/// Promised: leading code is done, the body waits for the start, the body is done at the end,
/// following code waits.
/// Not promised: stores are drained.
/// Condition: LFENCE waits on Intel CPUs, and on AMD CPUs if the system enabled that (see
/// cyclescope doctor).
/// Condition: needs RDPRU (CPUID leaf 80000008h, EBX bit 4) and a system that lets user mode read
/// APERF.
///
/// Source: AMD APM vol. 3, RDPRU.
#[derive(Debug, Clone, Copy)]
pub struct Rdpru;

impl Pair for Rdpru {
    const NAME: &'static str = "rdpru";
    const COUNTS: Counts = Counts::CoreCycles;
    const NEEDS: &'static [Feature] = &[Feature::Rdpru];

    /// Reading before the measured code.
    #[inline(always)]
    fn start() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: this reads a clock, and lists the registers that it changes.
        unsafe {
            asm!(
                "lfence",                    // earlier instructions have executed, later ones wait
                ".byte 0xb9, 0x01, 0x00, 0x00, 0x00",
                ".byte 0x0f, 0x01, 0xfd",    // reads APERF into EDX:EAX
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
                "lfence",                    // earlier instructions have executed, later ones wait
                ".byte 0xb9, 0x01, 0x00, 0x00, 0x00",
                ".byte 0x0f, 0x01, 0xfd",    // reads APERF into EDX:EAX
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
