//! Regions of a program.

use crate::calibration::Scale;
use crate::pair::Pair;
use crate::thread::{self, Method, NOWHERE, Nested};
use crate::unit::CoreCycles;
use core::hint::black_box;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};

/// Nested executions per trial. The median trial is the overhead charged to the outer region.
const WITHIN: u32 = 200;
const TRIALS: usize = 11;

/// A part of a program whose executions are timed, by `lfence-rdtsc-lfence`.
///
/// Regions with the same name are one region. Regions may be nested, and run on any number of
/// threads. Each execution costs as much as the bare pair and some thirty cycles. The ruler takes a
/// hundredth of the time, and more in a thread's first half second. Its time is in no region.
///
/// Don't use regions in a global allocator, since the first execution on a thread allocates memory.
/// Don't use them in a signal handler or a child of `fork` either: they may wait for a lock
/// forever. Time in which the thread waits or does not run is counted as if it ran.
#[derive(Debug)]
pub struct Region {
    name: &'static str,
    /// Number of the region; 0 before its first execution.
    number: AtomicU32,
}

/// One execution of a region. It ends when dropped, on the thread on which it began.
#[derive(Debug)]
#[must_use = "a region ends where this is dropped"]
pub struct Timed {
    region: u32,
    /// At the beginning: regions that this thread had ended, and its ticks outside the program.
    ended: u32,
    away: u64,
    started: u64,
    here: PhantomData<*const ()>,
}

impl Region {
    /// A region with this name. It may be a `static`.
    pub const fn new(name: &'static str) -> Region {
        Region { name, number: AtomicU32::new(0) }
    }

    /// Begins an execution.
    #[inline(always)]
    pub fn begin(&self) -> Timed {
        let region = match self.number.load(Ordering::Relaxed) {
            0 => self.first(),
            number => number,
        };
        Timed::begin(region)
    }

    #[cold]
    #[inline(never)]
    fn first(&self) -> u32 {
        thread::global().nested.get_or_init(nested);
        let number = thread::number_of(self.name);
        self.number.store(number, Ordering::Relaxed);
        number
    }
}

/// Overhead that a nested region adds to the outer one, and time of a bare pair.
fn nested() -> Nested {
    let usual = |trial: &dyn Fn() -> u64| {
        // The first trials fetch the code.
        let mut trials: [u64; TRIALS] = core::array::from_fn(|_| trial());
        trials.sort_unstable();
        let usual = trials.get(TRIALS / 2).copied().unwrap_or_default();
        let scale = Scale::read::<Method>(&thread::global().calibration).cycles;
        CoreCycles(usual as f64 / f64::from(WITHIN) * scale)
    };
    Nested {
        region: usual(&|| {
            let around = Timed::begin(NOWHERE);
            for _ in 0..WITHIN {
                Timed::begin(NOWHERE).end();
            }
            Method::end().wrapping_sub(around.started).wrapping_sub(around.away())
        }),
        pair: usual(&|| {
            let started = Method::start();
            for _ in 0..WITHIN {
                black_box(Method::end().wrapping_sub(Method::start()));
            }
            Method::end().wrapping_sub(started)
        }),
    }
}

impl Timed {
    #[inline(always)]
    fn begin(region: u32) -> Timed {
        let (ended, away) = thread::thread(|thread| (thread.ended.get(), thread.away.get())).unwrap_or_default();
        Timed { region, ended, away, started: Method::start(), here: PhantomData }
    }
}

impl Timed {
    /// Ends the execution.
    #[inline(always)]
    pub fn end(self) {}
}

impl Timed {
    /// Ticks outside the program since the beginning.
    fn away(&self) -> u64 {
        thread::thread(|thread| thread.away.get().wrapping_sub(self.away)).unwrap_or_default()
    }

    /// Keeps the reading. Out of line, so that the reading before it is inlined. By value, so that
    /// no store of its arguments is between the readings: four of them took more than a core cycle
    /// (Zen 4).
    #[inline(never)]
    fn ended(region: u32, ended: u32, away: u64, started: u64, now: u64) {
        let ticks = now.wrapping_sub(started);
        // The clock of another CPU may be behind.
        if ticks > u64::MAX / 2 {
            return thread::lose();
        }
        let recorded = thread::thread(|thread| {
            let within = thread.ended.get().wrapping_sub(ended);
            let away = thread.away.get().wrapping_sub(away);
            thread.record(region, within, ticks.saturating_sub(away), now);
        });
        if recorded.is_none() {
            thread::lose();
        }
    }
}

impl Drop for Timed {
    #[inline(always)]
    fn drop(&mut self) {
        let now = Method::end();
        Timed::ended(self.region, self.ended, self.away, self.started, now);
    }
}
