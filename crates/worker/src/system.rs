//! What the worker asks of Linux between calls.
//!
//! The number of the CPU that the worker runs on: whoever moves it to another one, in spite of its
//! affinity, would put the difference of two TSCs into a reading.
//!
//! RDTSCP reads the same number from IA32_TSC_AUX. LSL works without RDTSCP, without RDPID, and
//! where the system forbids reading the TSC. It takes 57 core cycles (Zen 5).

use crate::kernel::{CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID, call};
use crate::stub;
use core::arch::asm;

/// The segment whose limit is the number (Linux, `arch/x86/include/asm/segment.h`, `__CPUNODE_SEG`).
const NUMBER_SEGMENT: u32 = 0x7b;

/// The CPU's number in the low 12 bits, its NUMA node above; always 0 if the system has no such
/// segment.
#[inline(always)]
pub fn read_cpu_number() -> u32 {
    let mut number = 0;
    // SAFETY: without the segment, LSL only clears ZF.
    unsafe { asm!("lsl {0:e}, {1:e}", inout(reg) number, in(reg) NUMBER_SEGMENT, options(nomem, nostack)) };
    number
}

/// The elapsed time and the processor time of this thread, in nanoseconds; `None` if one of them
/// can't be read.
///
/// # Safety
///
/// Only in a worker.
pub unsafe fn read_clocks() -> Option<[u64; 2]> {
    let read = |clock: usize| {
        let mut time = [0u64; 2];
        // SAFETY: the kernel writes seconds and nanoseconds, which is all that the call does.
        let answer = unsafe { stub::syscall(call::CLOCK_GETTIME, clock, time.as_mut_ptr() as usize, 0, 0, 0, 0) };
        (answer == 0).then(|| time[0].wrapping_mul(1_000_000_000).wrapping_add(time[1]))
    };
    Some([read(CLOCK_MONOTONIC)?, read(CLOCK_THREAD_CPUTIME_ID)?])
}
