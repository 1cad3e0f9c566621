//! Regions of a program.

use crate::calibration::Scale;
use crate::pair::Pair;
use crate::thread::{self, Method, NOWHERE, Nested};
use crate::unit::CoreCycles;
use core::hint::black_box;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};

/// Executions within another one, and trials of which the middle one counts, by which it is measured what a region takes of one around it.
const WITHIN: u32 = 200;
const TRIALS: usize = 11;

/// A part of a program whose executions are timed, by `lfence-rdtsc-lfence`.
///
/// Regions of one name are one region. They may be within each other, and run on any number of threads. Each execution costs what the
/// bare pair does and some thirty cycles; the ruler takes a hundredth of the time, of a thread's first half second more, which is in no region. Not for use in a
/// global allocator, since the first execution on a thread allocates memory, nor in a signal handler or a child of `fork`, which may meet a
/// lock that nobody gives back. Time in which the thread waits or does not run is counted as if it ran.
#[derive(Debug)]
pub struct Region {
    name: &'static str,
    /// None yet where it is 0.
    number: AtomicU32,
}

/// One execution of a region, which ends where this is dropped, on the thread on which it began.
#[derive(Debug)]
#[must_use = "a region ends where this is dropped"]
pub struct Timed {
    region: u32,
    /// Regions that this thread had ended, and its ticks that were not the program's.
    ended: u32,
    away: u64,
    started: u64,
    here: PhantomData<*const ()>,
}

impl Region {
    /// A region of this name. It may be a `static`.
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

/// What a region takes of one around it, and what a bare pair does.
fn nested() -> Nested {
    let usual = |trial: &dyn Fn() -> u64| {
        // The first ones fetch the code.
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
    /// Ticks since it began that were not the program's.
    fn away(&self) -> u64 {
        thread::thread(|thread| thread.away.get().wrapping_sub(self.away)).unwrap_or_default()
    }

    /// Keeps the reading. Out of line, so that the reading before it is in line; and by value, so that no store of what it takes is
    /// between the readings, where four of them took more than a core cycle (Zen 4).
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
