//! A clock of core cycles, for code of any length, and for frameworks that read a clock before and
//! after the measured code.
//!
//! Ticks between two readings become core cycles with the rulers at both ends of a span. A ruler is
//! read again after about a millisecond, since the core's clock may change every few milliseconds
//! (Raptor Cove). In a longer span it may change and come back. A single such span may then be wrong, but
//! the mean of many spans is right.

use crate::calibration::{Calibration, MOVED, Scale};
use crate::chain::{BLOCK, multiplications};
use crate::cpu::CpuNumberReader;
use crate::pair::{Pair, keep};
use crate::report::Caveat;
use crate::running::Mark;
use crate::thread::{Method, steady};
use crate::unit::{CoreCycles, Ticks};
use std::cell::Cell;
use std::vec::Vec;

/// Ticks after which the ruler is read again: about a millisecond.
const PERIOD: u64 = 2_500_000;

/// Counts the core cycles of the thread that reads it. On Linux, time in which the thread waits or
/// another one has its CPU is left out.
///
/// ```
/// let clock = cyclescope_clock::CycleClock::new();
/// let begun = clock.begin();
/// // the measured code
/// let cycles = clock.end(begun).cycles;
/// ```
///
/// A reading costs some hundred nanoseconds, and once in about a millisecond a tenth of one for the
/// ruler. None of it is in a span.
#[derive(Debug)]
pub struct CycleClock {
    calibration: Calibration,
    ruler: Cell<Option<Ruler>>,
    cpu_reader: CpuNumberReader,
}

/// The beginning of a span.
#[derive(Debug, Clone, Copy)]
#[must_use = "it is for the end of the span"]
pub struct Begun {
    prepared: Prepared,
    tick: u64,
}

/// The result of a span.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Core cycles, without the time of the readings.
    pub cycles: CoreCycles,
    /// Ticks of the time stamp counter during which the thread ran, including the readings.
    pub ticks: Ticks,
    /// The rulers at both ends.
    pub scales: [Scale; 2],
    /// Whether the core's clock changed: the two rulers differ by more than 1 %.
    pub moved: bool,
    /// Whether the span ended on another CPU than it began on, so that the difference of two TSCs is
    /// in it. Known on processors with RDPID.
    pub migrated: bool,
}

#[derive(Debug, Clone, Copy)]
struct Ruler {
    scale: Scale,
    /// The tick at which the reading becomes too old.
    due: u64,
}

#[derive(Debug, Clone, Copy)]
struct Prepared {
    scale: Scale,
    mark: Mark,
    cpu: u32,
}

impl Default for CycleClock {
    fn default() -> CycleClock {
        CycleClock::new()
    }
}

impl CycleClock {
    /// Calibrates the pair of readings, in some milliseconds.
    pub fn new() -> CycleClock {
        let calibration = Calibration::measure::<Method>();
        CycleClock { calibration, ruler: Cell::new(None), cpu_reader: CpuNumberReader::detect() }
    }

    /// Problems of this machine for such a clock; usually none.
    pub fn caveats(&self) -> Vec<Caveat> {
        Caveat::of_machine(&self.calibration).collect()
    }

    /// Time of the pair of readings, and the step of the clock.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// Begins a span.
    #[inline(always)]
    pub fn begin(&self) -> Begun {
        let prepared = self.prepare();
        Begun { prepared, tick: Method::start() }
    }

    /// Ends a span that began on the same thread.
    #[inline(always)]
    pub fn end(&self, begun: Begun) -> Span {
        let now = Method::end();
        self.ended(begun, now)
    }

    /// Times a chain of multiplications of about this number of core cycles. Returns the chain's
    /// exact core cycles and the span. Any excess of the span is time taken by interrupts and a
    /// hypervisor. Every span contains such time; a ruler is too short to.
    pub fn chain(&self, about: CoreCycles) -> (CoreCycles, Span) {
        let block = BLOCK * self.calibration.latency.0;
        let blocks = (about.0 / block).clamp(1.0, f64::from(u32::MAX)) as u32;
        let begun = self.begin();
        keep(multiplications(1, blocks));
        (CoreCycles(block * f64::from(blocks)), self.end(begun))
    }

    #[inline(never)]
    fn prepare(&self) -> Prepared {
        Prepared { scale: self.scale(), cpu: self.cpu_reader.read(), mark: Mark::before() }
    }

    #[inline(never)]
    fn ended(&self, begun: Begun, now: u64) -> Span {
        let Begun { prepared: Prepared { scale: before, mark, cpu }, tick } = begun;
        let share = mark.share_to(Mark::behind());
        let migrated = self.cpu_reader.read() != cpu;
        let after = self.scale();
        let passed = now.wrapping_sub(tick);
        // The clock of another CPU may be behind.
        let passed = if passed > u64::MAX / 2 { 0 } else { passed };
        let ticks = Ticks(passed as f64 * share);
        Span {
            cycles: before.cycles_to(&after, ticks),
            ticks,
            scales: [before, after],
            moved: (after.cycles / before.cycles - 1.0).abs() > MOVED,
            migrated,
        }
    }

    /// The ruler, read again if it is too old.
    fn scale(&self) -> Scale {
        let began = Method::start();
        if let Some(ruler) = self.ruler.get()
            && began < ruler.due
        {
            return ruler.scale;
        }
        let scale = steady(&self.calibration);
        // Not a multiple of the time that the reading took, since another program may have run.
        let due = Method::end().wrapping_add(PERIOD);
        self.ruler.set(Some(Ruler { scale, due }));
        scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_reading_of_the_ruler_is_due_after_a_millisecond_whatever_the_last_one_took() {
        let clock = CycleClock::new();
        let _ = clock.scale();
        let due = clock.ruler.get().map(|ruler| ruler.due);
        assert!(due.is_some_and(|due| due <= Method::end().wrapping_add(PERIOD)), "{due:?}");
    }
}
