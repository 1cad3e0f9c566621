//! Regions of a program.

use crate::calibration::Scale;
use crate::chain::multiplications;
use crate::execution_sampling::{SamplingRole, is_untimed};
use crate::nested_overhead::{PRACTICES as PROGRAMS, Practice};
use crate::pair::{Pair, keep, stack_pointer, wait_for_earlier_code};
use crate::thread::{self, Method, NOWHERE, ThreadCounts};
use crate::unit::CoreCycles;
use core::hint::black_box;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};

/// Pairs of readings per trial of their cost, and trials, of which the median counts.
const PAIRS: u32 = 200;
const TRIALS: usize = 11;

/// A part of a program whose executions are timed, by `lfence-rdtsc-lfence`.
///
/// Regions with the same name are one region. Regions may be nested, and run on any number of
/// threads. Each execution costs as much as the bare pair and some thirty cycles, and half as much
/// again for its conversion to core cycles. In another execution it takes a third reading. The ruler
/// takes a hundredth of the time, and more in a thread's first half second. Both are in no region.
///
/// # Limits
///
/// A region around others is its time without what timing these takes. In about one of eight
/// executions, in rows chosen at random, the regions in it are counted and not timed, so the mean of
/// these has none of that overhead. The choice is made at the outermost region that a thread has run
/// 32 times around others. For regions further in, recursive ones, and those with few executions, the
/// overhead is measured around chains of multiplications in three programs. Other code differs by
/// some cycles. For each execution within, such a region is off by (Zen 5):
///
/// - 2 to 5 cycles too many, if code within begins with a load. After the fence it waits for the
///   load, which otherwise overlaps with earlier code.
/// - up to 9 cycles too few, if the execution is in a called function. A call takes between nothing
///   and 9 cycles, by the code around it.
/// - some cycles too many in code with little optimisation.
///
/// The interval covers that. A region around nothing else has the first of these too: a hash of 71
/// cycles alone reads 74.
///
/// An execution that ends on another CPU than it began on has the difference of two TSCs in it. Such
/// executions are counted ([`Row::migrated`](crate::Row::migrated)) where the processor has RDPID.
///
/// Don't leak a [`Timed`]: if its execution was a chosen one, its thread times no region any more.
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
    /// `None` if it is not timed.
    start: Option<ExecutionStart>,
    started: u64,
    here: PhantomData<*const ()>,
}

/// An execution's region, and the thread's counts before it.
#[derive(Debug)]
struct ExecutionStart {
    region: u32,
    role: SamplingRole,
    counts: ThreadCounts,
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
        if is_untimed() && thread::thread(|thread| thread.count_untimed(region)) == Some(true) {
            return Timed { start: None, started: 0, here: PhantomData };
        }
        Timed { start: Some(ExecutionStart::prepare(region)), started: Method::start(), here: PhantomData }
    }

    #[cold]
    #[inline(never)]
    fn first(&self) -> u32 {
        thread::global().practices.get_or_init(|| PRACTICES);
        thread::global().bare.get_or_init(measure_bare);
        let number = thread::number_of(self.name);
        self.number.store(number, Ordering::Relaxed);
        number
    }
}

/// The region of executions that are only timed for what they add to one around them.
static PRACTICE: Region = Region { name: "", number: AtomicU32::new(NOWHERE) };

/// Programs that time a number of executions, each around one block of the ruler. Any code between
/// the fences of two executions takes as long as an instruction needs to pass the core, which
/// belongs to their overhead. The first program has nothing there, the second one a loop's own
/// code; in the last one each execution is in a function.
const PRACTICES: [Practice; PROGRAMS] = [
    |executions| {
        time(|| {
            let next = execute_practice;
            (1..executions).step_by(4).fold(next(1), |value, _| next(next(next(next(value)))))
        })
    },
    |executions| time(|| (0..executions).fold(1, |value, _| execute_practice(value))),
    |executions| time(|| (0..executions).fold(1, |value, _| call_practice(value))),
];

/// Ticks of some code.
#[inline(always)]
fn time(code: impl FnOnce() -> u64) -> u64 {
    let started = Method::start();
    keep(code());
    Method::end().wrapping_sub(started)
}

#[inline(always)]
fn execute_practice(value: u64) -> u64 {
    let timed = PRACTICE.begin();
    let product = multiplications(value, 1);
    keep(product);
    timed.end();
    product
}

#[inline(never)]
fn call_practice(value: u64) -> u64 {
    execute_practice(value)
}

/// Cycles of a reading in a loop of them.
fn measure_bare() -> CoreCycles {
    // The first trials fetch the code.
    let mut trials: [u64; TRIALS] = core::array::from_fn(|_| {
        let started = Method::start();
        for _ in 0..PAIRS {
            black_box(Method::end().wrapping_sub(Method::start()));
        }
        Method::end().wrapping_sub(started)
    });
    trials.sort_unstable();
    let median = trials.get(TRIALS / 2).copied().unwrap_or_default();
    let scale = Scale::read::<Method>(&thread::global().calibration).cycles;
    CoreCycles(median as f64 / f64::from(2 * PAIRS) * scale)
}

impl Timed {
    /// Ends the execution.
    #[inline(always)]
    pub fn end(self) {}
}

impl ExecutionStart {
    /// Counts an execution, and takes the thread's counts.
    #[inline(always)]
    fn prepare(region: u32) -> ExecutionStart {
        // Otherwise slow code before this hides what it takes, and an execution around would count
        // a number of cycles that depends on that code: 16 or none (Zen 5).
        wait_for_earlier_code();
        let (role, counts) = thread::thread(|thread| thread.enter(region, stack_pointer())).unwrap_or_default();
        ExecutionStart { region, role, counts }
    }

    /// Keeps the reading. Out of line, so that the reading before it is inlined. Both readings come
    /// by value, so that no store of them is between them: four stores took more than a core cycle
    /// (Zen 4). Returns whether the execution is in another one.
    #[inline(never)]
    fn ended(&self, started: u64, now: u64) -> bool {
        let ticks = now.wrapping_sub(started);
        let nested = thread::thread(|thread| {
            thread.check_cpu(self.region, self.counts);
            // The clock of another CPU may be behind.
            let kept = ticks <= u64::MAX / 2;
            if kept {
                thread.record(self.region, self.role, self.counts, ticks, now);
            } else {
                thread::lose();
            }
            thread.leave(self.counts)
        });
        nested.unwrap_or_else(|| {
            thread::lose();
            false
        })
    }
}

impl Drop for Timed {
    #[inline(always)]
    fn drop(&mut self) {
        let Some(start) = &self.start else { return };
        let now = Method::end();
        if start.ended(self.started, now) {
            // The execution around does not count what happened since. Otherwise its code and this
            // one would overlap by a number of cycles that depends on both: 16 or none (Zen 5). The
            // fence does the same for the addition, which takes 8 cycles.
            let ticks = Method::end().wrapping_sub(now);
            thread::thread(|thread| thread.add_away(ticks));
            wait_for_earlier_code();
        }
    }
}
