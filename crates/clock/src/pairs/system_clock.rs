//! Methods that ask the system for the time.
//!
//! Generated from those of the library by its test `generated_files_match_the_methods`.

use crate::cpu::Feature;
use crate::pair::{Counts, Pair};
use core::arch::asm;

const CLOCK_MONOTONIC_RAW: i32 = 4;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

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
#[derive(Debug, Clone, Copy)]
pub struct ClockGettime;

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
