//! A timing method as a type.

use crate::cpu::{Feature, Missing, has};
use core::arch::asm;

/// What readings count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// Ticks of the time stamp counter.
    TscTicks,
    /// Cycles of the core's clock.
    CoreCycles,
    /// Nanoseconds of the system's clock.
    Nanos,
}

/// A timing method: the reading before the measured code and the one behind it.
///
/// The compiler moves no access to memory that other code can reach over a reading. Computations in registers it may move:
/// [`core::hint::black_box`] on what the code works on, and on its results, keeps them between the readings.
pub trait Pair {
    /// Its name, as `cyclescope --clock` has it.
    const NAME: &'static str;
    /// What its readings count.
    const COUNTS: Counts;
    /// Instructions that it has and that not every x86-64 CPU has: where one is missing, a reading faults.
    const NEEDS: &'static [Feature];

    /// The reading before the measured code.
    fn start() -> u64;

    /// The reading behind it.
    fn end() -> u64;

    /// Whether this CPU executes it, and whether its readings pass at a fixed rate.
    ///
    /// # Errors
    ///
    /// If an instruction is missing; if TSC ticks are counted and CPUID does not say that they pass at a fixed rate.
    fn check() -> Result<(), Missing> {
        let fixed = (Self::COUNTS == Counts::TscTicks).then_some(Feature::InvariantTsc);
        let mut needed = Self::NEEDS.iter().copied().chain(fixed);
        needed.find(|feature| !has(*feature)).map_or(Ok(()), |missing| Err(Missing(missing)))
    }
}

/// A value of which the compiler knows nothing from here on, in a register. [`core::hint::black_box`] does the same to any type, by a store
/// and a load.
#[inline(always)]
pub fn hide(mut value: u64) -> u64 {
    // SAFETY: there is no instruction.
    unsafe { asm!("/* {0} */", inout(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Needs a value here.
#[inline(always)]
pub fn keep(value: u64) {
    // SAFETY: there is no instruction.
    unsafe { asm!("/* {0} */", in(reg) value, options(nomem, nostack, preserves_flags)) };
}
