//! Methods that read a counter of core cycles.
//!
//! Generated from those of the library by its test `generated_files_match_the_methods`.

use crate::cpu::Feature;
use crate::pair::{Counts, Pair};
use core::arch::asm;

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
