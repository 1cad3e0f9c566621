//! The number of the CPU that the worker runs on. Whoever moves it to another one, in spite of its
//! affinity, would put the difference of two TSCs into a reading.
//!
//! RDTSCP reads the same number from IA32_TSC_AUX. LSL works without RDTSCP, without RDPID, and
//! where the system forbids reading the TSC. It takes 57 core cycles (Zen 5).

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
