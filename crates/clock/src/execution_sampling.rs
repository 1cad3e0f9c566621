//! Chooses executions in which no region is timed.
//!
//! What timing an execution adds to one around it depends on the code of both, by some cycles. Around
//! short executions these are several per cent. So about one in eight executions of a region around others
//! runs without timing these. Their mean has none of that overhead, and the choice is random, so it is
//! the mean of all.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread_local;

/// Regions that may be chosen, and left out in a chosen execution: those with the lowest numbers.
pub(crate) const SAMPLED: usize = 256;
/// Executions of a region around others, on a thread, before the first may be chosen. A region that
/// runs once, or a few times, may be around the whole program.
const TIMED_FIRST: u32 = 32;
/// Each of these begins a row of chosen executions with one in this number, and the length of a row.
/// In the first of a row the processor mispredicts the branches of timing, 40 cycles (Zen 5), so it
/// counts for nothing.
const ONE_IN: u32 = 32;
const ROW: u32 = 5;

thread_local! {
    /// Whether executions that begin now on this thread are not timed. Apart from the thread's other
    /// state, since every execution reads it.
    static UNTIMED: Cell<bool> = const { Cell::new(false) };
}

/// Whether executions that begin now on this thread are not timed.
#[inline(always)]
pub(crate) fn is_untimed() -> bool {
    UNTIMED.get()
}

/// The part of an execution in the choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SamplingRole {
    /// The choice was made at an execution around it.
    #[default]
    Inner,
    /// Executions in it are timed.
    Around,
    /// Chosen: executions in it are not timed.
    Alone,
    /// Chosen, and the first of a row.
    First,
}

impl SamplingRole {
    /// Bits of a packed role.
    pub(crate) const BITS: u32 = 2;

    /// Whether executions in it are not timed.
    pub(crate) fn is_chosen(self) -> bool {
        matches!(self, SamplingRole::Alone | SamplingRole::First)
    }

    pub(crate) fn from_bits(bits: u64) -> SamplingRole {
        match bits {
            1 => SamplingRole::Around,
            2 => SamplingRole::Alone,
            3 => SamplingRole::First,
            _ => SamplingRole::Inner,
        }
    }
}

/// Executions of a region.
#[derive(Debug, Clone, Copy, Default)]
struct RegionSampling {
    /// Those with others in them.
    parents: u32,
    /// Those that are left in a row of chosen ones.
    left: u32,
}

/// A thread's choices.
#[derive(Debug)]
pub(crate) struct ExecutionSampling {
    regions: [Cell<RegionSampling>; SAMPLED],
    /// Depth of the execution at which the choice was made; more than any if none was.
    depth: Cell<u32>,
    random: Cell<u32>,
}

impl ExecutionSampling {
    pub(crate) fn new() -> ExecutionSampling {
        ExecutionSampling {
            regions: [const { Cell::new(RegionSampling { parents: 0, left: 0 }) }; SAMPLED],
            depth: Cell::new(u32::MAX),
            random: Cell::new(0x9e37_79b9),
        }
    }

    /// Begins an execution of a region within this number of others.
    #[inline(always)]
    pub(crate) fn begin(&self, region: u32, depth: u32) -> SamplingRole {
        if self.depth.get() != u32::MAX {
            return SamplingRole::Inner;
        }
        match self.regions.get(region as usize) {
            Some(region) if region.get().parents >= TIMED_FIRST => self.choose(region, depth),
            _ => SamplingRole::Around,
        }
    }

    fn choose(&self, region: &Cell<RegionSampling>, depth: u32) -> SamplingRole {
        self.depth.set(depth);
        let RegionSampling { parents, left } = region.get();
        if left > 0 {
            region.set(RegionSampling { parents, left: left - 1 });
            UNTIMED.set(true);
            return SamplingRole::Alone;
        }
        // G. Marsaglia, Xorshift RNGs, 2003.
        let random = self.random.get();
        let random = random ^ random << 13;
        let random = random ^ random >> 17;
        let random = random ^ random << 5;
        self.random.set(random);
        if !random.is_multiple_of(ONE_IN) {
            return SamplingRole::Around;
        }
        region.set(RegionSampling { parents, left: ROW - 1 });
        UNTIMED.set(true);
        SamplingRole::First
    }

    /// Ends an execution within this number of others.
    #[inline(always)]
    pub(crate) fn end(&self, depth: u32) {
        if depth <= self.depth.get() && self.depth.get() != u32::MAX {
            self.depth.set(u32::MAX);
            UNTIMED.set(false);
        }
    }

    /// Notes that executions of other regions ended in one of this region.
    #[inline(always)]
    pub(crate) fn note_parent(&self, region: u32) {
        if let Some(region) = self.regions.get(region as usize) {
            let RegionSampling { parents, left } = region.get();
            region.set(RegionSampling { parents: parents.saturating_add(1), left });
        }
    }

    /// Runs some code in which all executions are timed, and none is chosen.
    pub(crate) fn pause<T>(&self, code: impl FnOnce() -> T) -> T {
        let (depth, untimed) = (self.depth.replace(0), UNTIMED.replace(false));
        let result = code();
        self.depth.set(depth);
        UNTIMED.set(untimed);
        result
    }
}

/// Executions that were not timed, by region. Their thread counts them, and others read the counts.
#[derive(Debug)]
pub(crate) struct UntimedCounts([AtomicU64; SAMPLED]);

impl UntimedCounts {
    pub(crate) fn new() -> UntimedCounts {
        UntimedCounts([const { AtomicU64::new(0) }; SAMPLED])
    }

    /// Counts one; returns whether the region has a count.
    #[inline(always)]
    pub(crate) fn add(&self, region: u32) -> bool {
        let count = self.0.get(region as usize);
        count.inspect(|count| count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed)).is_some()
    }

    /// All counts so far.
    pub(crate) fn all(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|count| count.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_executions_around_others_are_chosen() {
        let sampling = ExecutionSampling::new();
        // Before it has others in it often enough, and in another choice, none is chosen.
        (0..TIMED_FIRST).for_each(|_| {
            assert_eq!((sampling.begin(3, 0), is_untimed()), (SamplingRole::Around, false));
            sampling.note_parent(3);
        });
        let (mut chosen, mut first) = (0, 0);
        for _ in 0..8000 {
            let role = sampling.begin(3, 1);
            assert_eq!((sampling.begin(3, 2), is_untimed()), (SamplingRole::Inner, role.is_chosen()));
            sampling.pause(|| assert_eq!((sampling.begin(3, 2), is_untimed()), (SamplingRole::Inner, false)));
            sampling.end(2);
            assert_eq!(is_untimed(), role.is_chosen());
            (chosen, first) = (chosen + u32::from(is_untimed()), first + u32::from(role == SamplingRole::First));
            sampling.end(1);
            assert!(!is_untimed());
        }
        assert!((600..1400).contains(&chosen) && chosen.abs_diff(ROW * first) < ROW, "{chosen} {first}");
        // Regions with high numbers are always timed.
        (0..1000).for_each(|_| {
            sampling.note_parent(5000);
            assert_eq!(sampling.begin(5000, 0), SamplingRole::Around);
        });
        let counts = UntimedCounts::new();
        assert!(counts.add(3) && counts.add(3) && !counts.add(5000));
        assert_eq!(counts.all().sum::<u64>(), 2);
    }
}
