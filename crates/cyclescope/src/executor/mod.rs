//! Executors run programs and return raw readings. They know nothing of statistics.

mod capabilities;
mod fault;
pub mod kernel;
mod layout;
mod lock;
pub mod mock;
mod offer;
mod placement;
pub mod user;

pub use capabilities::{Capabilities, CycleCounter, Lack, Ring, Room, Timing};
pub use fault::FaultReport;
pub use layout::{Call, Layout, Placed};
pub use lock::LockState;
pub use offer::{Offer, OpenError, OpenOptions, Opened};

use crate::error::RunError;
use crate::machine::Machine;
use crate::machine::fact::Fact;
use crate::program::Program;
use crate::program::memory::Memory;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

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
pub struct Progress {
    /// The time stamp counter, in ticks.
    pub tsc: u64,
    /// APERF, in core cycles.
    pub aperf: u64,
    /// MPERF, in ticks of the TSC's frequency.
    pub mperf: u64,
}

impl Progress {
    /// How much further it is than it was.
    pub fn since(self, before: Progress) -> Progress {
        Progress {
            tsc: self.tsc.wrapping_sub(before.tsc),
            aperf: self.aperf.wrapping_sub(before.aperf),
            mperf: self.mperf.wrapping_sub(before.mperf),
        }
    }

    /// Both together.
    pub fn and(self, other: Progress) -> Progress {
        Progress {
            tsc: self.tsc.wrapping_add(other.tsc),
            aperf: self.aperf.wrapping_add(other.aperf),
            mperf: self.mperf.wrapping_add(other.mperf),
        }
    }
}

/// The executors that can be asked for: `--executor`, its help, `doctor` and records take their names from here.
pub const ALL: &[Offer] = &[user::OFFER, kernel::OFFER];

/// The one that is used unless another is asked for.
pub const DEFAULT: &Offer = &user::OFFER;

/// Runs batches.
pub trait Executor {
    /// What it can do.
    fn capabilities(&self) -> &Capabilities;

    /// The machine that its programs run on: a simulated one for a simulated executor. Facts about the processor and
    /// its TSC come from here and not from the computer that this process happens to run on.
    fn machine(&self) -> &Machine;

    /// Its name in records.
    fn name(&self) -> &'static str {
        self.capabilities().executor
    }

    /// Bytes of the code arena.
    fn arena_len(&self) -> usize {
        self.capabilities().room.known().map_or(0, |room| room.arena)
    }

    /// Runs a batch and hands over its samples by layout, then round, then call of the round, in pieces of whole
    /// layouts. What was handed over before an error is good.
    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError>;

    /// Runs a batch and returns all of its samples.
    fn run(&mut self, batch: &Batch) -> Result<Vec<Sample>, RunError> {
        let mut samples = Vec::new();
        self.stream(batch, &mut |piece| samples.extend_from_slice(piece))?;
        Ok(samples)
    }

    /// The areas of the memory that the last batch had, in its order; none where the executor does not say.
    fn areas(&self) -> Vec<PlacedArea> {
        Vec::new()
    }

    /// More about the fault that the last batch ended with.
    fn last_fault(&self) -> Option<&FaultReport> {
        None
    }

    /// How the lock of the CPU was found when the last batch began; none where there is no such lock.
    fn lock_state(&self) -> Option<&LockState> {
        None
    }

    /// Whether the last batch had its CPU to itself, as far as other runs of this library go.
    fn exclusive(&self) -> Fact<bool> {
        let unknown = || Fact::unknown("this executor keeps no other run off its CPU");
        self.lock_state().map_or_else(unknown, LockState::exclusive)
    }

    /// How far TSC, APERF and MPERF went in all batches so far; none where nothing reads them.
    fn progress(&self) -> Option<Progress> {
        None
    }

    /// The time since a fixed moment, by the clock that a study's decisions go by: how long to measure, when to stop. It
    /// is an answer of the executor like its readings, so that a replay of these takes the same decisions.
    fn now(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }

    /// What of the processor's state the code of all batches so far left changed, and the executor restored.
    fn changed(&self) -> Vec<&'static str> {
        Vec::new()
    }
}

/// A number that no snippet can know.
fn random() -> Result<u64, RunError> {
    let mut bytes = [0; 8];
    // SAFETY: fills so many bytes.
    let filled = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if filled != bytes.len() as isize {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        return Err(RunError::System { doing: "drawing a random number", errno });
    }
    Ok(u64::from_ne_bytes(bytes))
}
