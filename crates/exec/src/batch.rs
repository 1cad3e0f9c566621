//! Batches that an executor runs, and the results that it returns.

use super::layout::Layout;
use cyclescope_code::asm::CodeMode;
use cyclescope_code::program::Program;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_core::error::BadBatch;
use cyclescope_core::unit::Unit;
use cyclescope_events::EventCode;
use std::time::Duration;

/// Programs to run together, interleaved, in several layouts.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Programs of all layouts.
    pub programs: Vec<Program>,
    /// Untimed rounds at the start of each layout.
    pub warm_up: u32,
    /// Timed rounds in each layout.
    pub rounds: u32,
    /// Layouts in the order in which they run.
    pub layouts: Vec<Layout>,
    /// Memory areas and initial vector registers of the programs.
    pub memory: ProgramMemory,
    /// Largest number of iterations of a one-cycle loop that delays each call. The number is drawn
    /// at random, at least
    /// 1. The delay keeps programs from synchronizing with the steps of a clock, so it has to span
    ///    some steps.
    pub delay: u32,
    /// Events to count. If there are any, each call has one sample for each event, in this order:
    /// its count before the call and after it, which wrap at 2⁶⁴. The clock's readings are dropped.
    pub events: Vec<EventCode>,
    /// Time limit of the whole batch. In user mode it limits processor time, if the system reports
    /// it.
    pub deadline: Duration,
}

/// A delay for clocks of any step: several times 10 ns, the step of all measured time stamp
/// counters.
pub const DEFAULT_DELAY: u32 = 128;

impl Batch {
    /// Calls in a round, the same in every layout.
    pub fn calls(&self) -> usize {
        self.layouts.first().map_or(0, |layout| layout.round.len())
    }

    /// Samples of a layout.
    pub fn samples_per_layout(&self) -> usize {
        self.rounds as usize * self.calls() * self.events.len().max(1)
    }

    /// The mode that all programs run in; 64-bit mode without programs.
    ///
    /// # Errors
    ///
    /// Fails if programs differ in it.
    pub fn mode(&self) -> Result<CodeMode, BadBatch> {
        let mode = self.programs.first().map_or(CodeMode::default(), Program::mode);
        match self.programs.iter().find(|program| program.mode() != mode) {
            None => Ok(mode),
            Some(other) => Err(BadBatch {
                part: "a program".to_string(),
                what: format!("it is {}-bit code, and the first one is {}-bit code", other.mode().bits(), mode.bits()),
                expected: "programs of one mode".to_string(),
            }),
        }
    }

    /// Whether all readings are times. Those of a probe are any numbers.
    pub(crate) fn reads_times(&self) -> bool {
        let times = [Unit::TscTicks, Unit::CoreCycles, Unit::Nanos];
        self.programs.iter().all(|program| times.contains(&program.counts()))
    }

    /// Whether any program calls a function of the C library, or its clock does.
    pub fn calls_library(&self) -> bool {
        self.programs.iter().any(Program::calls_library)
    }
}

/// One sample: the raw readings before and after a body. Those of a call during which other threads
/// ran for long are exchanged, so that it has no duration: see [`Sample::exchange`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[repr(C)]
pub struct Sample {
    /// Reading before the body.
    pub start: u64,
    /// Reading after the body.
    pub end: u64,
}

/// A clock that is read out of order runs back by less, in raw units. An interrupted call takes
/// longer, in all clocks that count while other threads run.
const BACKWARDS_MOST: u64 = 1 << 16;

impl Sample {
    /// The sample of an interrupted call: the same readings, the later one first. Where a duration
    /// is asked for, it has none. Where the moments count, both are there.
    pub fn exchange(self) -> Sample {
        Sample { start: self.end, end: self.start }
    }

    /// The duration in raw units, also of an interrupted call. It wraps if the clock ran backwards.
    pub fn whole_duration(&self) -> u64 {
        let back = self.start.saturating_sub(self.end);
        if back > BACKWARDS_MOST { back } else { self.end.wrapping_sub(self.start) }
    }

    /// The first and the last moment, also of an interrupted call.
    pub fn moments(&self) -> [u64; 2] {
        [self.start.min(self.end), self.start.max(self.end)]
    }
}

/// A memory area that programs used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PlacedArea {
    /// Address of its first byte in the programs' address space.
    pub address: u64,
    /// Kind of its pages.
    pub pages: ObtainedPages,
}

/// Kind of pages that an area got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObtainedPages {
    /// 4 KiB each.
    Small,
    /// 2 MiB each, made by the kernel on request (transparent huge pages).
    TransparentHuge,
    /// 2 MiB each, from the pool that the administrator has set aside.
    PooledHuge,
}

/// Increments of three counters while measured code ran on the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct CounterProgress {
    /// Time stamp counter, in ticks.
    pub tsc: u64,
    /// APERF, in core cycles.
    pub aperf: u64,
    /// MPERF, in ticks of the TSC's frequency.
    pub mperf: u64,
}

impl CounterProgress {
    /// The increments from `before` to `self`.
    pub fn since(self, before: CounterProgress) -> CounterProgress {
        CounterProgress {
            tsc: self.tsc.wrapping_sub(before.tsc),
            aperf: self.aperf.wrapping_sub(before.aperf),
            mperf: self.mperf.wrapping_sub(before.mperf),
        }
    }

    /// The sum of both.
    pub fn combine(self, other: CounterProgress) -> CounterProgress {
        CounterProgress {
            tsc: self.tsc.wrapping_add(other.tsc),
            aperf: self.aperf.wrapping_add(other.aperf),
            mperf: self.mperf.wrapping_add(other.mperf),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_call_keeps_its_moments() {
        let sample = Sample { start: 1_000, end: 4_000_000 };
        let interrupted = sample.exchange();
        assert!(interrupted.end.checked_sub(interrupted.start).is_none());
        assert_eq!((interrupted.whole_duration(), interrupted.moments()), (3_999_000, [1_000, 4_000_000]));
        assert_eq!(sample.whole_duration(), 3_999_000);
        // A clock that was read out of order.
        assert_eq!(Sample { start: 8, end: 5 }.whole_duration(), u64::MAX - 2);
    }
}
