//! The state of a thread: its counts, and when its readings are converted to core cycles with the ruler.

use crate::calibration::{Calibration, MOVED, Scale, time_of_each};
use crate::cpu::CpuNumberReader;
use crate::execution_sampling::{ExecutionSampling, SamplingRole};
use crate::nested_overhead::{NestedOverhead, PRACTICES, Practice, PracticeReading, PracticeReadings};
use crate::pair::Pair;
use crate::pairs::LfenceRdtscLfence;
use crate::region_figures::RegionFigures;
use crate::region_reading::{LAST_REGION, RegionReading, RulerReading};
use crate::thread_readings::{OwnerTurn, ThreadReadings, locked};
use crate::unit::CoreCycles;
use crate::usual_time::UsualTime;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread_local;
use std::vec::Vec;

/// The timing method of all regions.
pub(crate) type Method = LfenceRdtscLfence;

/// Least time between readings of the ruler, as a multiple of their duration.
const RARE: u64 = 100;
/// This multiple after a thread's first reading of the ruler, and the number of readings after
/// which it grows by one. A single reading has a standard deviation of 1.2 core cycles for the pair
/// (Zen 4), and a short program would have few.
const AT_FIRST: u64 = 4;
const AS_OFTEN: u64 = 4;
/// Most time of a conversion with a reading of the ruler, as a multiple of the ruler's own time. It
/// took 1.6 times that (Zen 5), and a second attempt to read the ruler takes once more.
const WITH_CONVERSION: f64 = 3.0;
/// Most attempts to read the ruler undisturbed.
const TRIES: usize = 3;
/// A region number whose readings are discarded.
pub(crate) const NOWHERE: u32 = LAST_REGION;
/// Rounds with which a reading of the ruler times nested executions, and executions of the longer
/// code of a round. Over them and three programs the mean of readings in steps of 37 ticks varies
/// by 0.3 ticks.
const PRACTICE_ROUNDS: usize = 7;
const PRACTICE_LONGER: u32 = 9;

/// State that all threads share.
#[derive(Debug)]
pub(crate) struct Global {
    pub calibration: Calibration,
    pub practices: OnceLock<[Practice; PRACTICES]>,
    /// Cycles of a reading in a loop.
    pub bare: OnceLock<CoreCycles>,
    /// Number of readings that could not be kept.
    pub lost: AtomicU64,
    /// Ticks of all threads for conversions and the ruler.
    pub converting: AtomicU64,
    regions: Mutex<Vec<RegionFigures>>,
    overhead: Mutex<NestedOverhead>,
    threads: Mutex<Vec<Arc<ThreadReadings>>>,
}

/// A thread's counts, at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ThreadCounts {
    /// Executions that have ended: in the lower half all, in the upper half those directly in the
    /// present one.
    ended: u64,
    /// Ticks of those in the upper half.
    nested: u64,
    /// Ticks spent here instead of in the program, after the end of executions in others; and the
    /// ticks of calls.
    away: u64,
    /// The stack pointer where the innermost execution has begun.
    frame: u64,
    /// The number of the CPU.
    cpu: u32,
    /// Executions that were not timed.
    untimed: u64,
}

/// One in the upper half of a count.
const UPPER: u64 = 1 << 32;

/// The state of a thread.
pub(crate) struct Thread {
    readings: Arc<ThreadReadings>,
    ended: Cell<u64>,
    nested: Cell<u64>,
    away: Cell<u64>,
    frame: Cell<u64>,
    untimed: Cell<u64>,
    sampling: ExecutionSampling,
    /// Ticks by which the overhead is more if the execution is in another function.
    call: Cell<u64>,
    /// Executions that have begun and not ended.
    depth: Cell<u32>,
    /// The tick at which the ruler is due again, and the number of its readings.
    due: Cell<u64>,
    read: Cell<u64>,
    /// Ticks of the quickest reading.
    quickest: Cell<u64>,
    /// Ticks of a conversion with a reading of the ruler, and of the conversion of a reading.
    ruler_time: UsualTime,
    conversion_time: UsualTime,
    /// Whether readings are being converted.
    busy: Cell<bool>,
    cpu_reader: CpuNumberReader,
    /// The CPU on which the last execution has ended.
    cpu: Cell<u32>,
    /// Whether the thread has been on two CPUs. Then each execution reads the CPU on which it begins:
    /// that takes 5 core cycles, because a fence waits for it (Zen 5).
    is_moving: Cell<bool>,
}

thread_local! {
    static THREAD: Thread = Thread::new();
}

static GLOBAL: OnceLock<Global> = OnceLock::new();

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

/// Counts an execution that began on one CPU and ended on another.
#[cold]
#[inline(never)]
fn count_migrated(region: u32) {
    let place = (region as usize).wrapping_sub(1);
    if let Some(region) = locked(&global().regions).get_mut(place) {
        region.migrated += 1;
    }
}

pub(crate) fn global() -> &'static Global {
    GLOBAL.get_or_init(|| Global {
        calibration: Calibration::measure::<Method>(),
        practices: OnceLock::new(),
        bare: OnceLock::new(),
        lost: AtomicU64::new(0),
        converting: AtomicU64::new(0),
        regions: Mutex::new(Vec::new()),
        overhead: Mutex::default(),
        threads: Mutex::new(Vec::new()),
    })
}

/// The number of the region with this name, which is created if needed.
pub(crate) fn number_of(name: &str) -> u32 {
    let began = Method::start();
    let mut regions = locked(&global().regions);
    let place = regions.iter().position(|region| region.name == name).unwrap_or_else(|| {
        regions.push(RegionFigures { name: name.into(), ..RegionFigures::default() });
        regions.len() - 1
    });
    drop(regions);
    thread(|thread| thread.add_away(Method::end().wrapping_sub(began)));
    place as u32 + 1
}

/// All regions, with the readings of all threads so far.
pub(crate) fn all() -> Vec<RegionFigures> {
    let global = global();
    thread(|thread| {
        let began = Method::start();
        thread.take_in(None, true);
        thread.add_away(Method::end().wrapping_sub(began));
    });
    let threads: Vec<Arc<ThreadReadings>> = locked(&global.threads).clone();
    for readings in threads {
        readings.consume(&global.regions, None, None);
    }
    locked(&global.regions).clone()
}

/// What an execution adds to one around it, by all readings so far.
pub(crate) fn overhead() -> NestedOverhead {
    *locked(&global().overhead)
}

impl Thread {
    fn new() -> Thread {
        let cpu_reader = CpuNumberReader::detect();
        Thread {
            readings: Arc::new(ThreadReadings::new()),
            ended: Cell::new(0),
            nested: Cell::new(0),
            away: Cell::new(0),
            frame: Cell::new(0),
            untimed: Cell::new(0),
            sampling: ExecutionSampling::new(),
            call: Cell::new(0),
            depth: Cell::new(0),
            due: Cell::new(0),
            read: Cell::new(0),
            quickest: Cell::new(u64::MAX),
            ruler_time: UsualTime::default(),
            conversion_time: UsualTime::default(),
            busy: Cell::new(false),
            cpu_reader,
            cpu: Cell::new(cpu_reader.read()),
            is_moving: Cell::new(false),
        }
    }

    /// The counts at this moment.
    #[inline(always)]
    pub(crate) fn counts(&self) -> ThreadCounts {
        ThreadCounts {
            ended: self.ended.get(),
            nested: self.nested.get(),
            away: self.away.get(),
            frame: self.frame.get(),
            cpu: 0,
            untimed: self.untimed.get(),
        }
    }

    /// Counts an execution of a region that begins now, at this stack pointer; returns its part in the
    /// sampling and the counts before it.
    #[inline(always)]
    pub(crate) fn enter(&self, region: u32, frame: u64) -> (SamplingRole, ThreadCounts) {
        let depth = self.depth.get();
        self.depth.set(depth.wrapping_add(1));
        let role = self.sampling.begin(region, depth);
        let cpu = if self.is_moving.get() { self.cpu_reader.read() } else { self.cpu.get() };
        let counts = ThreadCounts { cpu, ..self.counts() };
        self.frame.set(frame);
        (role, counts)
    }

    /// Counts an execution that is not timed; returns whether there is a count for the region.
    #[inline(always)]
    pub(crate) fn count_untimed(&self, region: u32) -> bool {
        let is_counted = self.readings.count_untimed(region);
        self.untimed.set(self.untimed.get().wrapping_add(u64::from(is_counted)));
        is_counted
    }

    /// Notes it if an execution that began with these counts has moved to another CPU. The first one
    /// of a thread may have moved before it began.
    #[inline(always)]
    pub(crate) fn check_cpu(&self, region: u32, before: ThreadCounts) {
        let cpu = self.cpu_reader.read();
        if cpu != before.cpu {
            self.cpu.set(cpu);
            self.is_moving.set(true);
            count_migrated(region);
        }
    }

    /// Counts an execution as ended; returns whether it was in another one. If that one is in
    /// another function, the fences leave the call and the return nothing to overlap with: 9 cycles
    /// (Zen 5). The execution around does not count them.
    #[inline(always)]
    pub(crate) fn leave(&self, before: ThreadCounts) -> bool {
        let depth = self.depth.get().wrapping_sub(1);
        self.depth.set(depth);
        self.sampling.end(depth);
        let is_called = self.frame.replace(before.frame) != before.frame;
        if depth > 0 && is_called {
            self.add_away(self.call.get());
        }
        depth > 0
    }

    /// Adds ticks that belong to no execution.
    #[inline(always)]
    pub(crate) fn add_away(&self, ticks: u64) {
        self.away.set(self.away.get().wrapping_add(ticks));
    }

    /// Keeps a reading: `ticks` from the moment of the earlier counts to `now`.
    #[inline(always)]
    pub(crate) fn record(&self, region: u32, role: SamplingRole, before: ThreadCounts, ticks: u64, now: u64) {
        let counts = self.counts();
        let ticks = ticks.saturating_sub(counts.away.wrapping_sub(before.away));
        let upper = (counts.ended >> 32) as u32;
        let reading = RegionReading {
            region,
            role,
            untimed: counts.untimed.wrapping_sub(before.untimed) as u32,
            within: (counts.ended as u32).wrapping_sub(before.ended as u32),
            direct: upper.wrapping_sub((before.ended >> 32) as u32),
            ticks,
            nested: counts.nested.wrapping_sub(before.nested),
        };
        if reading.direct > 0 {
            self.sampling.note_parent(region);
        }
        // For the execution around, this one replaces those directly in it.
        let lower = u64::from((counts.ended as u32).wrapping_add(1));
        self.ended.set((before.ended & !(UPPER - 1)).wrapping_add(UPPER) | lower);
        self.nested.set(before.nested.wrapping_add(ticks));
        let kept = self.readings.keep(reading);
        if !kept || now >= self.due.get() {
            self.full((!kept).then_some(reading));
        }
    }

    /// Converts the kept readings, and one that found no room.
    #[cold]
    #[inline(never)]
    fn full(&self, last: Option<RegionReading>) {
        if !self.take_in(last, false) && last.is_some() {
            // An allocator that is timed itself gets here during its own conversion.
            lose();
        }
    }

    /// Converts readings to core cycles, and reads the ruler if it is due. Returns false inside
    /// another conversion.
    fn take_in(&self, last: Option<RegionReading>, now: bool) -> bool {
        if self.busy.replace(true) {
            return false;
        }
        let began = Method::start();
        let global = global();
        if self.due.get() == 0 {
            locked(&global.threads).push(self.readings.clone());
        }
        let due = now || began >= self.due.get();
        let owner = OwnerTurn { due, read_ruler: &|| self.read_ruler(global) };
        let converted = self.readings.consume(&global.regions, last, Some(owner));
        let ended = Method::end();
        // More is the time of other programs.
        let took = ended.wrapping_sub(began).min(longest_reading(&global.calibration));
        let own = if due {
            self.plan_ruler(took, ended);
            self.ruler_time.count(took as f64, 1.0)
        } else {
            self.conversion_time.count(took as f64, converted as f64)
        };
        global.converting.fetch_add(own as u64, Ordering::Relaxed);
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

    /// Reads the ruler, and what an execution now adds to one around it. The list of readings must
    /// be empty.
    fn read_ruler(&self, global: &Global) -> RulerReading {
        let scale = steady(&global.calibration);
        // While the thread ends, executions find no state.
        let practices = global.practices.get().filter(|_| thread(|_| ()).is_some());
        let measure = |practice, depth| self.measure_practice(practice, depth, &global.calibration, &scale);
        let readings = practices.map(|programs @ &[.., in_a_function]| PracticeReadings {
            nested: programs.map(|program| measure(program, 1)),
            outermost: measure(in_a_function, 0).cost,
        });
        let pair = CoreCycles(scale.pair.0 * scale.cycles);
        let mut known = locked(&global.overhead);
        let overhead = readings.map_or(known.mean(), |readings| known.add(readings, pair));
        self.call.set((known.call().0 / scale.cycles).round() as u64);
        RulerReading { scale, overhead }
    }

    /// Measures executions within this number of others, by a program. The list of readings must be
    /// empty.
    fn measure_practice(
        &self,
        practice: Practice,
        depth: u32,
        calibration: &Calibration,
        scale: &Scale,
    ) -> PracticeReading {
        let ThreadCounts { ended, nested, away, frame, .. } = self.counts();
        let (due, outside, call) = (self.due.replace(u64::MAX), self.depth.replace(depth), self.call.replace(0));
        let mut rounds = [[[0; 2]; 2]; PRACTICE_ROUNDS];
        self.sampling.pause(|| {
            rounds.fill_with(|| {
                [1, PRACTICE_LONGER].map(|executions| {
                    let away = self.away.get();
                    let ticks = practice(executions);
                    self.readings.clear();
                    [ticks, ticks.wrapping_sub(self.away.get().wrapping_sub(away))]
                })
            });
        });
        self.due.set(due);
        self.depth.set(outside);
        self.call.set(call);
        self.frame.set(frame);
        self.ended.set(ended);
        self.nested.set(nested);
        // An execution around counts none of this: the end of the one in it has all of its time.
        self.away.set(away);
        let each = |kind: fn([u64; 2]) -> u64| {
            let (mut shorter, mut longer) = (rounds.map(|[one, _]| kind(one)), rounds.map(|[_, many]| kind(many)));
            let ticks = time_of_each(&mut shorter, &mut longer, PRACTICE_LONGER, calibration.step);
            CoreCycles(ticks.0 * scale.cycles - calibration.block().0)
        };
        PracticeReading { cost: each(|[all, _]| all), overhead: each(|[_, counted]| counted) }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if self.readings.has_any() || self.due.get() > 0 {
            self.take_in(None, true);
            locked(&global().threads).retain(|readings| !Arc::ptr_eq(readings, &self.readings));
        }
    }
}

/// Ticks that a reading of the ruler takes, with the conversion of readings and the measurement of
/// the overhead, unless other programs interrupt it.
fn longest_reading(calibration: &Calibration) -> u64 {
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
    use crate::unit::Ticks;

    #[test]
    fn the_cycles_of_a_region_are_its_own_and_those_of_the_regions_in_it() {
        // A tick is two cycles. A pair takes 40 ticks, and an execution 50 more around it.
        let (own, pair, around) = ([100, 7, 300], 40, 50);
        let thread = Thread::new();
        thread.due.set(u64::MAX);
        // Twice in the first region: the second, with the third twice in it.
        let first = thread.counts();
        for _ in 0..2 {
            let second = thread.counts();
            for _ in 0..2 {
                thread.record(3, SamplingRole::Around, thread.counts(), own[2] + pair, 0);
            }
            thread.record(2, SamplingRole::Around, second, own[1] + pair + 2 * (own[2] + pair + around), 0);
        }
        let within = own[1] + 2 * (own[2] + pair + around);
        // A conversion that took 9 ticks is in the first region only.
        thread.away.set(9);
        thread.record(1, SamplingRole::Around, first, own[0] + pair + 2 * (within + pair + around) + 9, 0);

        let scale = Scale { cycles: 2.0, pair: Ticks(pair as f64), spread: 0.0 };
        let ruler = RulerReading { scale, overhead: CoreCycles(2.0 * (pair + around) as f64) };
        let cycles: Vec<_> = thread.readings.kept().iter().map(|reading| ruler.convert(&ruler, reading)).collect();
        let expected = [own[2], own[1] + 2 * own[2], own[0] + 2 * own[1] + 4 * own[2]].map(|all| 2.0 * all as f64);
        let own = own.map(|own| 2.0 * own as f64);
        let third = [expected[0], own[2]];
        let second = [expected[1], own[1]];
        let all = [third, third, second, third, third, second, [expected[2], own[0]]];
        assert_eq!(cycles, all.map(|pair| pair.map(CoreCycles)));
    }

    #[test]
    fn an_execution_in_another_function_takes_longer_by_a_call() {
        let thread = Thread::new();
        thread.call.set(7);
        let run = |frame: u64, within: &dyn Fn()| {
            let (_, before) = thread.enter(1, frame);
            within();
            thread.leave(before)
        };
        // Two in the outermost function, and one in a function that one of them calls.
        assert!(!run(1, &|| {
            assert!(run(1, &|| ()) && run(1, &|| assert!(run(2, &|| ()))));
        }));
        assert_eq!(thread.away.get(), 7);
        // Two functions after each other, in no execution.
        assert!(!run(1, &|| ()) && !run(2, &|| ()));
        assert_eq!(thread.away.get(), 7);
    }

    #[test]
    fn a_measurement_of_the_overhead_leaves_the_counts_as_they_were() {
        crate::Region::new("before").begin().end();
        thread(|thread| {
            let before = thread.counts();
            thread.take_in(None, true);
            assert_eq!(thread.counts(), before);
        });
    }

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
