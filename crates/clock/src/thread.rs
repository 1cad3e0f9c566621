//! Readings of a thread: kept raw until there are many, then converted to core cycles with the
//! ruler.

use crate::calibration::{Calibration, Scale};
use crate::histogram::Histogram;
use crate::pair::Pair;
use crate::pairs::LfenceRdtscLfence;
use crate::unit::{CoreCycles, Ticks};
use std::boxed::Box;
use std::cell::Cell;
use std::string::String;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread_local;
use std::vec::Vec;

/// The timing method of all regions.
pub(crate) type Method = LfenceRdtscLfence;

/// Readings that a thread keeps before conversion.
const KEPT: usize = 1024;
/// Least ticks before a clock of cycles reads the ruler again: about a millisecond.
pub(crate) const PERIOD: u64 = 2_500_000;
/// Least time between readings of the ruler, as a multiple of their duration.
pub(crate) const RARE: u64 = 100;
/// This multiple after a thread's first reading of the ruler, and the number of readings after
/// which it grows by one. A single reading has a standard deviation of 1.2 core cycles for the pair
/// (Zen 4), and a short program would have few.
const AT_FIRST: u64 = 4;
const AS_OFTEN: u64 = 4;
/// Most time of a conversion with a reading of the ruler, as a multiple of the ruler's own time. It
/// took 1.6 times that (Zen 5), and a second attempt to read the ruler takes once more.
const WITH_CONVERSION: f64 = 3.0;
/// If the ruler changes by more than this share, the readings in between are doubtful.
pub(crate) const MOVED: f64 = 0.01;
/// Most attempts to read the ruler undisturbed.
const TRIES: usize = 3;
/// A region number whose readings are discarded.
pub(crate) const NOWHERE: u32 = 0;

/// Figures of a region.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept {
    pub name: String,
    pub cycles: Histogram,
    /// Executions between differing readings of the ruler.
    pub moved: u64,
    /// Sum of the ruler's spread over executions.
    pub spread: f64,
}

/// Overhead that a nested region adds to the outer one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Nested {
    /// Cycles of a nested region.
    pub region: CoreCycles,
    /// Cycles of a region's two readings alone.
    pub pair: CoreCycles,
}

/// State that all threads share.
#[derive(Debug)]
pub(crate) struct Global {
    pub calibration: Calibration,
    pub nested: OnceLock<Nested>,
    /// Number of readings that could not be kept.
    pub lost: AtomicU64,
    regions: Mutex<Vec<Kept>>,
    threads: Mutex<Vec<Arc<Shared>>>,
}

/// A thread's readings. Other threads may convert them too.
#[derive(Debug)]
struct Shared {
    readings: Box<[AtomicU64]>,
    /// Number of readings. Only the thread itself adds to them.
    number: AtomicUsize,
    consumed: Mutex<Consumed>,
}

#[derive(Debug, Default)]
struct Consumed {
    /// Number of converted readings.
    number: usize,
    /// Last reading of the ruler.
    scale: Option<Scale>,
    /// Executions since then, by region.
    since: Vec<u64>,
}

/// The state of a thread.
pub(crate) struct Thread {
    shared: Arc<Shared>,
    /// Number of regions that have ended.
    pub ended: Cell<u32>,
    /// Ticks spent here instead of in the program.
    pub away: Cell<u64>,
    /// The tick at which the ruler is due again, and the number of its readings.
    due: Cell<u64>,
    read: Cell<u64>,
    /// Ticks of the quickest reading.
    quickest: Cell<u64>,
    /// Whether readings are being converted.
    busy: Cell<bool>,
}

thread_local! {
    static THREAD: Thread = Thread::new();
}

static GLOBAL: OnceLock<Global> = OnceLock::new();

/// Takes a lock, even if a thread panicked while holding it: no invariant spans two of its uses.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls a function with the thread's state; returns `None` if the state has been dropped.
#[inline(always)]
pub(crate) fn thread<T>(call: impl FnOnce(&Thread) -> T) -> Option<T> {
    THREAD.try_with(call).ok()
}

/// Counts a reading that could not be kept.
#[cold]
pub(crate) fn lose() {
    global().lost.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn global() -> &'static Global {
    GLOBAL.get_or_init(|| Global {
        calibration: Calibration::measure::<Method>(),
        nested: OnceLock::new(),
        lost: AtomicU64::new(0),
        regions: Mutex::new(Vec::new()),
        threads: Mutex::new(Vec::new()),
    })
}

/// The number of the region with this name, which is created if needed.
pub(crate) fn number_of(name: &str) -> u32 {
    let began = Method::start();
    let mut regions = locked(&global().regions);
    let place = regions.iter().position(|region| region.name == name).unwrap_or_else(|| {
        regions.push(Kept { name: name.into(), ..Kept::default() });
        regions.len() - 1
    });
    drop(regions);
    thread(|thread| thread.away.set(thread.away.get() + Method::end().wrapping_sub(began)));
    place as u32 + 1
}

/// All regions, with the readings of all threads so far.
pub(crate) fn all() -> Vec<Kept> {
    let global = global();
    thread(|thread| thread.take_in(None, true));
    let threads: Vec<Arc<Shared>> = locked(&global.threads).clone();
    threads.iter().for_each(|shared| shared.consume(global, None, Whose::Other));
    locked(&global.regions).clone()
}

/// A reading, which fits one word.
#[derive(Clone, Copy)]
struct Reading {
    region: u32,
    /// Regions that ended within it.
    within: u32,
    ticks: u64,
}

impl Reading {
    /// Packs the reading; `None` if a field is too large.
    #[inline(always)]
    fn packed(self) -> Option<u64> {
        let fits = self.region <= 0xffff && self.within <= 0xffff && self.ticks <= 0xffff_ffff;
        fits.then_some(u64::from(self.region) << 48 | u64::from(self.within) << 32 | self.ticks)
    }

    fn from_packed(packed: u64) -> Reading {
        let part = |from: u32, bits: u32| packed >> from & ((1 << bits) - 1);
        Reading { region: part(48, 16) as u32, within: part(32, 16) as u32, ticks: part(0, 32) }
    }
}

impl Thread {
    fn new() -> Thread {
        let shared = Arc::new(Shared {
            readings: (0..KEPT).map(|_| AtomicU64::new(0)).collect(),
            number: AtomicUsize::new(0),
            consumed: Mutex::default(),
        });
        Thread {
            shared,
            ended: Cell::new(0),
            away: Cell::new(0),
            due: Cell::new(0),
            read: Cell::new(0),
            quickest: Cell::new(u64::MAX),
            busy: Cell::new(false),
        }
    }

    /// Keeps a reading. `now` is the clock at its end.
    #[inline(always)]
    pub(crate) fn record(&self, region: u32, within: u32, ticks: u64, now: u64) {
        self.ended.set(self.ended.get().wrapping_add(1));
        let kept = self.keep(region, within, ticks);
        if !kept || now >= self.due.get() {
            self.full((!kept).then_some(Reading { region, within, ticks }));
        }
    }

    /// Keeps a reading if there is room; returns whether there was.
    #[inline(always)]
    fn keep(&self, region: u32, within: u32, ticks: u64) -> bool {
        let shared = &*self.shared;
        let number = shared.number.load(Ordering::Relaxed);
        let Some(packed) = (Reading { region, within, ticks }).packed() else { return false };
        let Some(place) = shared.readings.get(number) else { return false };
        place.store(packed, Ordering::Relaxed);
        // A thread that sees the number also sees the reading.
        shared.number.store(number + 1, Ordering::Release);
        true
    }

    /// Converts the kept readings, and one that found no room.
    #[cold]
    #[inline(never)]
    fn full(&self, last: Option<Reading>) {
        if !self.take_in(last, false) && last.is_some() {
            // An allocator that is timed itself gets here during its own conversion.
            lose();
        }
    }

    /// Converts readings to core cycles, and reads the ruler if it is due. Returns false inside
    /// another conversion.
    fn take_in(&self, last: Option<Reading>, now: bool) -> bool {
        if self.busy.replace(true) {
            return false;
        }
        let began = Method::start();
        let global = global();
        if self.due.get() == 0 {
            locked(&global.threads).push(self.shared.clone());
        }
        let due = now || began >= self.due.get();
        self.shared.consume(global, last, Whose::Own { due });
        let ended = Method::end();
        if due {
            // More is the time of other programs.
            let took = ended.wrapping_sub(began).min(longest_reading(&global.calibration));
            self.plan_ruler(took, ended);
        }
        self.away.set(self.away.get().wrapping_add(ended.wrapping_sub(began)));
        self.busy.set(false);
        true
    }

    /// Plans the next reading of the ruler after one that took this number of ticks.
    fn plan_ruler(&self, took: u64, ended: u64) {
        // A clock with a coarse step needs a long ruler. The quickest reading counts: if another
        // program ran during this one, a pause in proportion would be too long. One of 20 ms had
        // two thirds of a program's executions, which read 147.0 cycles for 150.
        let quickest = self.quickest.get().min(took);
        self.quickest.set(quickest);
        let read = self.read.replace(self.read.get().saturating_add(1));
        let times = RARE.min(AT_FIRST + read / AS_OFTEN);
        self.due.set(ended.wrapping_add(quickest.saturating_mul(times)));
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if self.shared.number.load(Ordering::Relaxed) > 0 || self.due.get() > 0 {
            self.take_in(None, true);
            locked(&global().threads).retain(|shared| !Arc::ptr_eq(shared, &self.shared));
        }
    }
}

impl Shared {
    /// Converts the thread's readings, and one that found no room. Only the thread itself may reset
    /// the list and read the ruler, which belongs to its CPU.
    fn consume(&self, global: &Global, last: Option<Reading>, whose: Whose) {
        let mut consumed = locked(&self.consumed);
        let before = consumed.scale;
        let read = whose == Whose::Own { due: true } || before.is_none() && whose != Whose::Other;
        if read {
            consumed.scale = Some(steady(&global.calibration));
        }
        let Some(now) = consumed.scale else { return };
        let before = before.unwrap_or(now);
        let changed = (now.cycles / before.cycles - 1.0).abs();
        let spread = before.spread.max(now.spread).max(changed);
        let nested = global.nested.get().copied().unwrap_or_default().region.0;
        let number = self.number.load(Ordering::Acquire);
        let mut regions = locked(&global.regions);
        let kept = self.readings.get(consumed.number..number).unwrap_or_default();
        let kept = kept.iter().map(|reading| Reading::from_packed(reading.load(Ordering::Relaxed)));
        for reading in kept.chain(last) {
            let place = (reading.region as usize).wrapping_sub(1);
            let Some(region) = regions.get_mut(place) else { continue };
            let within = f64::from(reading.within) * nested;
            region.cycles.add(before.cycles_to(&now, Ticks(reading.ticks as f64)).0 - within);
            region.spread += spread;
            if consumed.since.len() <= place {
                consumed.since.resize(place + 1, 0);
            }
            if let Some(since) = consumed.since.get_mut(place) {
                *since += 1;
            }
        }
        if read {
            let since = std::mem::take(&mut consumed.since);
            if changed > MOVED {
                regions.iter_mut().zip(since).for_each(|(region, number)| region.moved += number);
            }
        }
        consumed.number = number;
        if whose != Whose::Other {
            consumed.number = 0;
            self.number.store(0, Ordering::Relaxed);
        }
    }
}

/// The thread that converts readings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// The owner of the readings, and whether the ruler is due.
    Own { due: bool },
    /// Another thread.
    Other,
}

/// Ticks that a reading of the ruler takes, with the conversion of readings and the measurement of
/// the overhead, unless other programs interrupt it.
pub(crate) fn longest_reading(calibration: &Calibration) -> u64 {
    (calibration.ruler().0 * WITH_CONVERSION) as u64
}

/// Reads the ruler, again if something disturbed it.
pub(crate) fn steady(calibration: &Calibration) -> Scale {
    let mut best = Scale::read::<Method>(calibration);
    for _ in 1..TRIES {
        if best.spread <= MOVED {
            break;
        }
        let again = Scale::read::<Method>(calibration);
        if again.spread < best.spread {
            best = again;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_reading_of_the_ruler_does_not_postpone_the_next_one() {
        let pause = |took: &[u64]| {
            let thread = Thread::new();
            took.iter().for_each(|took| thread.plan_ruler(*took, 0));
            thread.due.get()
        };
        assert_eq!(pause(&[100, 100]), 100 * AT_FIRST);
        assert_eq!(pause(&[100, 50_000]), 100 * AT_FIRST);
        assert_eq!(pause(&[50_000, 100]), 100 * AT_FIRST);
    }
}
