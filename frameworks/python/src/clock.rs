//! Core cycles as a clock.

use cyclescope_clock::{Begun, CycleClock};
use pyo3::ffi::c_str;
use pyo3::prelude::*;
use std::cell::Cell;
use std::ffi::CStr;

/// Core cycles per unit of the clock. pytest-benchmark takes the unit for a second, and so a cycle
/// for a nanosecond, which suits its time limits.
const UNIT: f64 = 1e9;

/// Python code that reads the clock twice, and nothing else, many times. The first pairs train the
/// interpreter, which specialises code that runs often.
const EMPTY_PAIRS: &CStr = c_str!(
    "def read_pairs(read, number):
    taken = []
    for _ in range(number):
        start = read()
        end = read()
        taken.append(end - start)
    return taken"
);
/// Pairs of which the median counts. They take less than a millisecond.
const PAIRS: usize = 301;

/// The clock of a thread.
struct Counter {
    clock: CycleClock,
    begun: Cell<Option<Begun>>,
    cycles: Cell<f64>,
    /// Cycles of the interpreter between two readings around nothing; `None` before they are
    /// measured.
    call: Cell<Option<f64>>,
}

thread_local! {
    static COUNTER: Counter = Counter::new();
}

impl Counter {
    fn new() -> Counter {
        let clock = CycleClock::new();
        clock.caveats().iter().for_each(|caveat| eprintln!("cyclescope: core cycles are in doubt: {caveat}"));
        Counter { clock, begun: Cell::new(None), cycles: Cell::new(0.0), call: Cell::new(None) }
    }

    /// Whether the readings of this thread include the interpreter's calls of them.
    fn is_new(&self) -> bool {
        self.call.get().is_none()
    }

    /// The core cycles so far, without those of the reading itself and of its call.
    fn read(&self) -> f64 {
        if let Some(begun) = self.begun.get() {
            // Two readings around nothing may come out as less than the pair takes.
            let call = self.call.get().unwrap_or_default();
            let passed = (self.clock.end(begun).cycles.0 - call).max(0.0);
            self.cycles.set(self.cycles.get() + passed);
        }
        self.begun.set(Some(self.clock.begin()));
        self.cycles.get() / UNIT
    }
}

/// Measures what the interpreter adds between two readings on this thread.
fn measure_call(py: Python<'_>) -> PyResult<()> {
    // Until this is known, nothing is subtracted.
    COUNTER.with(|counter| counter.call.set(Some(0.0)));
    let reading = wrap_pyfunction!(core_cycles, py)?;
    let code = PyModule::from_code(py, EMPTY_PAIRS, c_str!("cyclescope/_pairs.py"), c_str!("cyclescope._pairs"))?;
    let mut taken: Vec<f64> = code.getattr("read_pairs")?.call1((reading, PAIRS))?.extract()?;
    taken.sort_unstable_by(f64::total_cmp);
    let middle = taken.get(PAIRS / 2).copied().unwrap_or_default() * UNIT;
    COUNTER.with(|counter| counter.call.set(Some(middle)));
    Ok(())
}

/// A clock that counts the core cycles of the thread that reads it, from 0 at its first reading
/// there. It never goes back. Only differences of two readings on one thread are meaningful.
///
/// Its unit is a billion core cycles, since benchmark frameworks take the unit of a timer for a
/// second. Where they print nanoseconds, those are core cycles. The core's frequency does not
/// matter: a chain of multiplications of known length converts ticks of the time stamp counter to
/// core cycles. The chain runs once in a millisecond, outside all differences. The call of the
/// clock is in no difference either: what it adds is measured at the first reading of a thread. On
/// Linux, time in which the thread does not run is not counted.
#[pyfunction]
pub(crate) fn core_cycles(py: Python<'_>) -> PyResult<f64> {
    // After the thread's state is dropped, nothing more is measured.
    if COUNTER.try_with(Counter::is_new).unwrap_or_default() {
        measure_call(py)?;
    }
    Ok(COUNTER.try_with(Counter::read).unwrap_or_default())
}
