//! Readings that a thread keeps until they are converted to core cycles.

use crate::calibration::MOVED;
use crate::execution_sampling::{SAMPLED, UntimedCounts};
use crate::region_figures::RegionFigures;
use crate::region_reading::{RegionReading, RulerReading, WORDS};
use std::boxed::Box;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

/// Readings that a thread keeps before conversion.
const KEPT: usize = 512;

/// A thread's readings. Other threads may convert them too.
#[derive(Debug)]
pub(crate) struct ThreadReadings {
    readings: Box<[[AtomicU64; WORDS]]>,
    /// Number of readings. Only the thread itself adds to them.
    number: AtomicUsize,
    untimed: UntimedCounts,
    converted: Mutex<ConvertedReadings>,
}

/// What is known of the readings that are converted already.
#[derive(Debug, Default)]
struct ConvertedReadings {
    /// Number of converted readings.
    number: usize,
    /// Last reading of the ruler.
    ruler: Option<RulerReading>,
    /// Executions since then, by region.
    since: Vec<u64>,
    /// Executions that were not timed, by region.
    untimed: Vec<u64>,
}

/// The thread itself converts its readings.
pub(crate) struct OwnerTurn<'a> {
    /// Whether the ruler is due.
    pub due: bool,
    /// Reads the ruler.
    pub read_ruler: &'a dyn Fn() -> RulerReading,
}

/// Takes a lock, even if a thread panicked while holding it: no invariant spans two of its uses.
pub(crate) fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ThreadReadings {
    pub(crate) fn new() -> ThreadReadings {
        ThreadReadings {
            readings: (0..KEPT).map(|_| Default::default()).collect(),
            number: AtomicUsize::new(0),
            untimed: UntimedCounts::new(),
            converted: Mutex::default(),
        }
    }

    /// Whether it has readings that are not known.
    pub(crate) fn has_any(&self) -> bool {
        self.number.load(Ordering::Relaxed) > 0
    }

    /// Counts an execution that is not timed; returns whether there is a count for the region.
    #[inline(always)]
    pub(crate) fn count_untimed(&self, region: u32) -> bool {
        self.untimed.add(region)
    }

    /// Forgets the readings. Only the thread itself may.
    pub(crate) fn clear(&self) {
        self.number.store(0, Ordering::Relaxed);
    }

    /// Keeps a reading if there is room; returns whether there was.
    #[inline(always)]
    pub(crate) fn keep(&self, reading: RegionReading) -> bool {
        let number = self.number.load(Ordering::Relaxed);
        let Some([first, second]) = reading.packed() else { return false };
        let Some([first_word, second_word]) = self.readings.get(number) else { return false };
        first_word.store(first, Ordering::Relaxed);
        second_word.store(second, Ordering::Relaxed);
        // A thread that sees the number also sees the reading.
        self.number.store(number + 1, Ordering::Release);
        true
    }

    /// Converts the thread's readings, and one that found no room. Only the thread itself may reset
    /// the list and read the ruler, which belongs to its CPU. Returns the number of readings.
    pub(crate) fn consume(
        &self,
        regions: &Mutex<Vec<RegionFigures>>,
        last: Option<RegionReading>,
        owner: Option<OwnerTurn<'_>>,
    ) -> usize {
        let mut known = locked(&self.converted);
        let before = known.ruler;
        if before.is_none() && owner.is_none() {
            return 0;
        }
        let number = self.number.load(Ordering::Acquire);
        let readings: Vec<RegionReading> = self.unpack(known.number..number).chain(last).collect();
        known.number = number;
        let mut read = false;
        if let Some(OwnerTurn { due, read_ruler }) = owner {
            known.number = 0;
            self.clear();
            read = due || before.is_none();
            if read {
                known.ruler = Some(read_ruler());
            }
        }
        let Some(now) = known.ruler else { return 0 };
        let before = before.unwrap_or(now);
        let converted = readings.len();
        let changed = (now.scale.cycles / before.scale.cycles - 1.0).abs();
        let spread = before.scale.spread.max(now.scale.spread).max(changed);
        let mut regions = locked(regions);
        for reading in readings {
            let place = (reading.region as usize).wrapping_sub(1);
            let Some(region) = regions.get_mut(place) else { continue };
            region.add(&reading, before.convert(&now, &reading));
            region.spread += spread;
            if known.since.len() <= place {
                known.since.resize(place + 1, 0);
            }
            if let Some(since) = known.since.get_mut(place) {
                *since += 1;
            }
        }
        known.untimed.resize(SAMPLED, 0);
        for (place, (counted, now)) in known.untimed.iter_mut().zip(self.untimed.all()).enumerate() {
            // Numbers of regions begin at 1.
            if let Some(region) = place.checked_sub(1).and_then(|place| regions.get_mut(place)) {
                region.untimed += now - *counted;
                *counted = now;
            }
        }
        if read {
            let since = std::mem::take(&mut known.since);
            for (region, number) in regions.iter_mut().zip(since) {
                region.together += (number as f64).powi(2);
                region.moved += if changed > MOVED { number } else { 0 };
            }
        }
        converted
    }
    /// The readings in these places.
    fn unpack(&self, places: Range<usize>) -> impl Iterator<Item = RegionReading> {
        let kept = self.readings.get(places).unwrap_or_default();
        kept.iter().map(|words| RegionReading::from_packed(words.each_ref().map(|word| word.load(Ordering::Relaxed))))
    }

    /// The readings that are not known.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> Vec<RegionReading> {
        self.unpack(0..self.number.load(Ordering::Relaxed)).collect()
    }
}
