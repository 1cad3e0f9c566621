//! Readings of a thread: kept as they are until there are many, then turned into core cycles beside the ruler.

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

/// The method of all regions.
pub(crate) type Method = LfenceRdtscLfence;

/// Readings that a thread keeps.
const KEPT: usize = 1024;
/// Ticks after which a clock of cycles reads the ruler again at the earliest: about a millisecond.
pub(crate) const PERIOD: u64 = 2_500_000;
/// How many times as long as a reading of the ruler lasts the program goes on at least.
pub(crate) const RARE: u64 = 100;
/// How many times behind a thread's first reading, and readings until it is one more: a single reading is off by 1.2 core cycles for the pair
/// (standard deviation, Zen 4), and a short program would have few.
const AT_FIRST: u64 = 4;
const AS_OFTEN: u64 = 4;
/// The share by which the ruler may have changed until readings between are in doubt.
pub(crate) const MOVED: f64 = 0.01;
/// Readings of the ruler at most until one is undisturbed.
const TRIES: usize = 3;
/// The number of a region that is none: its readings go nowhere.
pub(crate) const NOWHERE: u32 = 0;

/// What is known of a region.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept {
    pub name: String,
    pub cycles: Histogram,
    /// Executions between readings of the ruler that differ.
    pub moved: u64,
    /// Sum over executions of the ruler's spread.
    pub spread: f64,
}

/// What is taken of a region by what is within it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Nested {
    /// A region.
    pub region: CoreCycles,
    /// The two readings of a region alone.
    pub pair: CoreCycles,
}

/// What all threads share.
#[derive(Debug)]
pub(crate) struct Global {
    pub calibration: Calibration,
    pub nested: OnceLock<Nested>,
    /// Readings that could not be kept.
    pub lost: AtomicU64,
    regions: Mutex<Vec<Kept>>,
    threads: Mutex<Vec<Arc<Shared>>>,
}

/// A thread's readings, which another one may take in too.
#[derive(Debug)]
struct Shared {
    readings: Box<[AtomicU64]>,
    /// How many there are. The thread alone adds to them.
    number: AtomicUsize,
    consumed: Mutex<Consumed>,
}

#[derive(Debug, Default)]
struct Consumed {
    /// Readings that were taken in.
    number: usize,
    /// The ruler's last reading.
    scale: Option<Scale>,
    /// Executions since then, by region.
    since: Vec<u64>,
}

/// The state of a thread.
pub(crate) struct Thread {
    shared: Arc<Shared>,
    /// Regions that have ended.
    pub ended: Cell<u32>,
    /// Ticks that were spent here and not in the program.
    pub away: Cell<u64>,
    /// The tick at which the ruler is to be read again, and how often it was.
    due: Cell<u64>,
    read: Cell<u64>,
    /// Whether readings are being taken in.
    busy: Cell<bool>,
}

thread_local! {
    static THREAD: Thread = Thread::new();
}

static GLOBAL: OnceLock<Global> = OnceLock::new();

/// A lock, whatever happened to a thread that had it: no invariant spans two of its uses.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls something with the thread's state; nothing where the thread has given it up.
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

/// The number of a region of this name, which is made where there is none.
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

/// All regions, with the readings of all threads up to now.
pub(crate) fn all() -> Vec<Kept> {
    let global = global();
    thread(|thread| thread.take_in(None, true));
    let threads: Vec<Arc<Shared>> = locked(&global.threads).clone();
    threads.iter().for_each(|shared| shared.consume(global, None, Whose::Other));
    locked(&global.regions).clone()
}

/// A reading in one word.
#[derive(Clone, Copy)]
struct Reading {
    region: u32,
    /// Regions that ended within it.
    within: u32,
    ticks: u64,
}

impl Reading {
    /// Nothing where it has more than there is room for.
    #[inline(always)]
    fn packed(self) -> Option<u64> {
        let fits = self.region <= 0xffff && self.within <= 0xffff && self.ticks <= 0xffff_ffff;
        fits.then_some(u64::from(self.region) << 48 | u64::from(self.within) << 32 | self.ticks)
    }

    fn of(packed: u64) -> Reading {
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

    /// Whether there was room.
    #[inline(always)]
    fn keep(&self, region: u32, within: u32, ticks: u64) -> bool {
        let shared = &*self.shared;
        let number = shared.number.load(Ordering::Relaxed);
        let Some(packed) = (Reading { region, within, ticks }).packed() else { return false };
        let Some(place) = shared.readings.get(number) else { return false };
        place.store(packed, Ordering::Relaxed);
        // Another thread that sees the number sees the reading.
        shared.number.store(number + 1, Ordering::Release);
        true
    }

    /// Takes in what is there, and a reading for which there was no room.
    #[cold]
    #[inline(never)]
    fn full(&self, last: Option<Reading>) {
        if !self.take_in(last, false) && last.is_some() {
            // Whoever allocates memory for this is timed itself.
            lose();
        }
    }

    /// Turns readings into core cycles; beside the ruler where that is due. Returns whether it did: it is not done within itself.
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
            // A clock of a coarse step takes a long ruler.
            let took = ended.wrapping_sub(began);
            let read = self.read.replace(self.read.get().saturating_add(1));
            let times = RARE.min(AT_FIRST + read / AS_OFTEN);
            self.due.set(ended.wrapping_add(took.saturating_mul(times)));
        }
        self.away.set(self.away.get().wrapping_add(ended.wrapping_sub(began)));
        self.busy.set(false);
        true
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
    /// Takes in the thread's readings, and one for which there was no room. The thread itself may begin anew, and read the ruler: that
    /// belongs to its CPU.
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
        let kept = kept.iter().map(|reading| Reading::of(reading.load(Ordering::Relaxed)));
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

/// Who takes in the readings of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// The thread, and whether the ruler is due.
    Own { due: bool },
    /// Another one.
    Other,
}

/// The ruler, once more where something disturbed it.
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
