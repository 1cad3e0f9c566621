//! A timing method as a type.

use crate::cpu::{Feature, Missing, has};
use core::arch::asm;

/// Unit of readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// Ticks of the time stamp counter.
    TscTicks,
    /// Cycles of the core's clock.
    CoreCycles,
    /// Nanoseconds of the system's clock.
    Nanos,
}

/// A timing method: the reading before the measured code and the one after it.
///
/// The compiler does not move accesses to memory that other code can reach across a reading. It may
/// move computations in registers. [`core::hint::black_box`] on the code's inputs and results keeps
/// them between the readings.
pub trait Pair {
    /// Its name for `cyclescope --clock`.
    const NAME: &'static str;
    /// Unit of its readings.
    const COUNTS: Counts;
    /// Its instructions that not every x86-64 CPU has. If one is missing, a reading faults.
    const NEEDS: &'static [Feature];

    /// The reading before the measured code.
    fn start() -> u64;

    /// The reading after the measured code.
    fn end() -> u64;

    /// Checks that this CPU has the instructions, and that readings advance at a fixed rate.
    ///
    /// # Errors
    ///
    /// If an instruction is missing, or if the method counts TSC ticks and CPUID does not report a
    /// fixed rate.
    fn check() -> Result<(), Missing> {
        let fixed = (Self::COUNTS == Counts::TscTicks).then_some(Feature::InvariantTsc);
        let mut needed = Self::NEEDS.iter().copied().chain(fixed);
        needed.find(|feature| !has(*feature)).map_or(Ok(()), |missing| Err(Missing(missing)))
    }
}

/// A reading with the number of its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuReading {
    /// The reading.
    pub clock: u64,
    /// What RDTSCP returns from IA32_TSC_AUX. Linux puts the CPU into the low 12 bits, and its NUMA
    /// node above.
    pub cpu: u32,
}

impl CpuReading {
    /// The difference to an earlier reading; `None` if that one is of another CPU, because the
    /// difference of two TSCs would be in it.
    #[inline(always)]
    pub fn since(self, before: CpuReading) -> Option<u64> {
        (self.cpu == before.cpu).then_some(self.clock.wrapping_sub(before.clock))
    }
}

/// A timing method with RDTSCP on both sides, whose readings tell their CPU.
///
/// ```no_run
/// use cyclescope_clock::{CpuPair, pairs::RdtscpLfence as Clock};
///
/// let started = Clock::start_on_cpu();
/// // the measured code
/// match Clock::end_on_cpu().since(started) {
///     Some(ticks) => println!("{ticks} ticks"),
///     None => println!("moved to another CPU"),
/// }
/// ```
pub trait CpuPair: Pair {
    /// The reading before the measured code.
    fn start_on_cpu() -> CpuReading;

    /// The reading after the measured code.
    fn end_on_cpu() -> CpuReading;
}

/// Hides a value from the compiler's analysis, in a register. [`core::hint::black_box`] does the
/// same for any type, with a store and a load.
#[inline(always)]
pub fn hide(mut value: u64) -> u64 {
    // SAFETY: there is no instruction.
    unsafe { asm!("/* {0} */", inout(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Forces a value to be computed here.
#[inline(always)]
pub fn keep(value: u64) {
    // SAFETY: there is no instruction.
    unsafe { asm!("/* {0} */", in(reg) value, options(nomem, nostack, preserves_flags)) };
}

/// The stack pointer. It is the same throughout a function's own code.
#[cfg(feature = "std")]
#[inline(always)]
pub(crate) fn stack_pointer() -> u64 {
    let pointer;
    // SAFETY: it reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    pointer
}

/// LFENCE: earlier instructions have executed, and later ones wait for it.
#[cfg(feature = "std")]
#[inline(always)]
pub(crate) fn wait_for_earlier_code() {
    // SAFETY: it changes nothing.
    unsafe { asm!("lfence", options(nostack, preserves_flags)) };
}
