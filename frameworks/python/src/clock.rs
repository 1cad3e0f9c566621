//! Core cycles as a clock.

use cyclescope_clock::{Begun, CycleClock};
use pyo3::prelude::*;
use std::cell::Cell;

/// Core cycles per unit of the clock. pytest-benchmark takes the unit for a second, and so a cycle
/// for a nanosecond, which suits its time limits.
const UNIT: f64 = 1e9;

/// The clock of a thread.
struct Counter {
    clock: CycleClock,
    begun: Cell<Option<Begun>>,
    cycles: Cell<f64>,
}

thread_local! {
    static COUNTER: Counter = Counter::new();
}

impl Counter {
    fn new() -> Counter {
        let clock = CycleClock::new();
        clock.caveats().iter().for_each(|caveat| eprintln!("cyclescope: core cycles are in doubt: {caveat}"));
        Counter { clock, begun: Cell::new(None), cycles: Cell::new(0.0) }
    }

    /// The core cycles so far, without those of the reading itself.
    fn read(&self) -> f64 {
        if let Some(begun) = self.begun.get() {
            // Two readings around nothing may come out as less than the pair takes.
            let passed = self.clock.end(begun).cycles.0.max(0.0);
            self.cycles.set(self.cycles.get() + passed);
        }
        self.begun.set(Some(self.clock.begin()));
        self.cycles.get() / UNIT
    }
}

/// A clock that counts the core cycles of the thread that reads it, from 0 at its first reading
/// there. It never goes back. Only differences of two readings on one thread are meaningful.
///
/// Its unit is a billion core cycles, since benchmark frameworks take the unit of a timer for a
/// second. Where they print nanoseconds, those are core cycles. The core's frequency does not
/// matter: a chain of multiplications of known length converts ticks of the time stamp counter to
/// core cycles. The chain runs once per millisecond, outside all differences. On Linux, time in
/// which the thread does not run is not counted.
#[pyfunction]
pub(crate) fn core_cycles() -> f64 {
    // After the thread's state is dropped, nothing more is measured.
    COUNTER.try_with(Counter::read).unwrap_or_default()
}
