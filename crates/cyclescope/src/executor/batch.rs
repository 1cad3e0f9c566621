//! What an executor is asked to run, and what it answers.

use super::layout::Layout;
use crate::program::Program;
use crate::program::memory::Memory;
use std::time::Duration;

/// Programs to run together, interleaved, in several layouts.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The programs.
    pub programs: Vec<Program>,
    /// Untimed rounds at the start of each layout.
    pub warm_up: u32,
    /// Rounds that are kept in each layout.
    pub rounds: u32,
    /// The layouts, one after another.
    pub layouts: Vec<Layout>,
    /// What the programs find in memory and in vector registers.
    pub memory: Memory,
    /// Turns of a loop of one core cycle, at most, that an executor waits before each call; how many is drawn at
    /// random, 1 at least. They keep programs from falling in step with a clock that counts in steps, so they have
    /// to span some of these.
    pub delay: u32,
    /// How long the whole batch may take.
    pub deadline: Duration,
}

/// A delay for clocks of any step: several times that of the time stamp counters seen so far, which is 10 ns.
pub const DELAY: u32 = 128;

impl Batch {
    /// Calls in a round, the same in every layout.
    pub fn calls(&self) -> usize {
        self.layouts.first().map_or(0, |layout| layout.round.len())
    }
}

/// One sample: the raw readings before and after a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[repr(C)]
pub struct Sample {
    /// The reading before the body.
    pub start: u64,
    /// The reading after the body.
    pub end: u64,
}

/// A memory area as programs had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PlacedArea {
    /// The address of its first byte, where programs ran.
    pub address: u64,
    /// What its pages were.
    pub pages: ObtainedPages,
}

/// What an area's pages turned out to be.
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

/// How far three clocks went while measured code had the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct CounterProgress {
    /// The time stamp counter, in ticks.
    pub tsc: u64,
    /// APERF, in core cycles.
    pub aperf: u64,
    /// MPERF, in ticks of the TSC's frequency.
    pub mperf: u64,
}

impl CounterProgress {
    /// How much further it is than it was.
    pub fn since(self, before: CounterProgress) -> CounterProgress {
        CounterProgress {
            tsc: self.tsc.wrapping_sub(before.tsc),
            aperf: self.aperf.wrapping_sub(before.aperf),
            mperf: self.mperf.wrapping_sub(before.mperf),
        }
    }

    /// Both together.
    pub fn and(self, other: CounterProgress) -> CounterProgress {
        CounterProgress {
            tsc: self.tsc.wrapping_add(other.tsc),
            aperf: self.aperf.wrapping_add(other.aperf),
            mperf: self.mperf.wrapping_add(other.mperf),
        }
    }
}
