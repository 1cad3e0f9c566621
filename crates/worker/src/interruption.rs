//! Whether other threads ran during a call.
//!
//! A short call is rarely interrupted, so its duration then stands out among others. A call that is
//! longer than a turn of the scheduler contains turns of other threads nearly always, and nothing
//! stands out. So the processor time that the kernel counts for this thread is compared with the
//! elapsed time, around each long call.
//!
//! Limits: if the kernel does not tell the processor time, no call counts as interrupted. Time that
//! a hypervisor takes away counts as processor time, unless the kernel subtracts it.

use super::system;
use core::arch::x86_64::_rdtsc;

/// Only calls of more ticks are checked: 0.2 to 1 ms. The kernel's clocks take some 300 ns.
const LONG_TICKS: u64 = 1 << 20;
/// Least time of other threads in an interrupted call: about a context switch and the caches that it
/// empties.
const LEAST_GAP_NS: u64 = 20_000;
/// They also take at least one part of this many of the call. Filters of outliers keep durations that
/// differ by up to 0.3 %.
const LEAST_GAP_PARTS: u64 = 256;

/// Whether a call of these ticks was interrupted: its elapsed time and the thread's processor time
/// in it, in nanoseconds.
pub fn is_interrupted(ticks: u64, elapsed_ns: u64, processor_ns: u64) -> bool {
    let gap = elapsed_ns.saturating_sub(processor_ns);
    ticks > LONG_TICKS && gap > LEAST_GAP_NS && gap > elapsed_ns / LEAST_GAP_PARTS
}

/// Clocks at one moment.
#[derive(Debug, Clone, Copy)]
struct ClockMoment {
    ticks: u64,
    elapsed_ns: u64,
    processor_ns: u64,
}

/// Watches the calls of a worker.
#[derive(Debug)]
pub struct InterruptionWatch {
    /// The last moment at which the kernel's clocks were read.
    last: ClockMoment,
    /// The TSC at the start of the call.
    begun: u64,
}

impl InterruptionWatch {
    /// A watch that has seen no call.
    ///
    /// # Safety
    ///
    /// Only in a worker.
    pub unsafe fn start() -> InterruptionWatch {
        // SAFETY: see above.
        let last = unsafe { read_clocks() };
        InterruptionWatch { last, begun: last.ticks }
    }

    /// Begins a call. The kernel's clocks are read again if the last time was long ago, so that
    /// earlier calls do not count as part of this one.
    ///
    /// # Safety
    ///
    /// Only in a worker.
    #[inline(always)]
    pub unsafe fn begin_call(&mut self) {
        // SAFETY: see above. The executor is not offered where RDTSC is forbidden.
        unsafe {
            if _rdtsc().wrapping_sub(self.last.ticks) > LONG_TICKS {
                self.last = read_clocks();
            }
            self.begun = _rdtsc();
        }
    }

    /// Ends a call. Whether it was interrupted.
    ///
    /// # Safety
    ///
    /// Only in a worker.
    #[inline(always)]
    pub unsafe fn end_call(&mut self) -> bool {
        // SAFETY: see above.
        let ticks = unsafe { _rdtsc() }.wrapping_sub(self.begun);
        // SAFETY: see above.
        ticks > LONG_TICKS && unsafe { self.compare_clocks(ticks) }
    }

    #[inline(never)]
    unsafe fn compare_clocks(&mut self, ticks: u64) -> bool {
        let before = self.last;
        // SAFETY: see above.
        self.last = unsafe { read_clocks() };
        let elapsed = self.last.elapsed_ns.wrapping_sub(before.elapsed_ns);
        is_interrupted(ticks, elapsed, self.last.processor_ns.wrapping_sub(before.processor_ns))
    }
}

/// Reads all clocks. The kernel's are 0 if one of them can't be read.
unsafe fn read_clocks() -> ClockMoment {
    // SAFETY: see above.
    let [elapsed_ns, processor_ns] = unsafe { system::read_clocks() }.unwrap_or_default();
    // SAFETY: see above.
    ClockMoment { ticks: unsafe { _rdtsc() }, elapsed_ns, processor_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_interrupted_if_others_ran_for_long() {
        let long = LONG_TICKS + 1;
        // A turn of 3 ms in a call of 100 ms.
        assert!(is_interrupted(long, 100_000_000, 97_000_000));
        // The timer's own work.
        assert!(!is_interrupted(long, 100_000_000, 99_900_000));
        assert!(is_interrupted(long, 1_000_000, 970_000) && !is_interrupted(long, 1_000_000, 985_000));
        // The kernel counts the processor's time in steps, or not at all.
        assert!(!is_interrupted(long, 1_000_000, 1_000_300) && !is_interrupted(long, 0, 0));
        assert!(!is_interrupted(LONG_TICKS, 1_000_000, 0));
    }
}
