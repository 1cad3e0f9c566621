//! What a survey measures with: something that runs loops with and without a marker side by side, and returns their
//! durations. It knows nothing of statistics.

use super::anatomy::Anatomy;
use super::source::design::Design;
use super::state::State;
use crate::error::RunError;
use crate::executor::LockState;
use crate::ruler::LayoutSamples;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The calls of a round, in the order of their columns: those of the whole ruler, then the marker's.
pub mod call {
    pub(crate) use crate::ruler::column::{
        ADD_LONG, ADD_SHORT, IMUL_LONG, IMUL_SHORT, SENTINEL, WHOLE as RULERS,
    };

    /// The loop without the marker, fewer times around.
    pub(crate) const BASE_FEW: usize = RULERS;
    /// The same, more times.
    pub(crate) const BASE_MANY: usize = RULERS + 1;
    /// The loop with the marker, fewer times around.
    pub(crate) const SITE_FEW: usize = RULERS + 2;
    /// The same, more times.
    pub(crate) const SITE_MANY: usize = RULERS + 3;
    /// Calls in a round.
    pub const COUNT: usize = RULERS + 4;
}

/// One marker in one state and loop.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    /// Its design.
    pub design: &'static Design,
    /// Its state.
    pub state: State,
    /// The loop that it is in.
    pub context: String,
}

/// A visit to a subject at one of its placements: a round of all calls that counts, after one that doesn't.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    /// Which of its placements.
    pub placement: usize,
    /// How often the loops go around: fewer and more times.
    pub loops: [u64; 2],
    /// How often the ruler's loops go around.
    pub ruler_loops: u64,
}

/// Runs visits.
pub trait Bench {
    /// What it can measure.
    fn subjects(&self) -> &[Subject];

    /// What a subject's marker adds to its function.
    fn anatomy(&self, subject: usize) -> Result<Anatomy, RunError>;

    /// How many bytes behind the start of a cache line a subject's functions are taken to begin, to count the lines that
    /// they lie in.
    fn line_offset(&self, _subject: usize) -> usize {
        0
    }

    /// The compiler that made a subject's functions.
    fn compiler(&self, subject: usize) -> &str;

    /// How many bytes each placement's functions stand behind the start of a cache line.
    fn placements(&self) -> &[usize];

    /// The step of its readings.
    fn step(&self) -> f64;

    /// How often the longer of a subject's loops can go around in a visit; a survey keeps below it.
    fn most_loops(&self, _subject: usize) -> u64 {
        u64::MAX
    }

    /// How the lock of the CPU was found by the executor of most subjects; none where no executor runs them.
    fn lock_state(&self) -> Option<&LockState> {
        None
    }

    /// The time since a fixed moment, by which a survey's budget goes.
    fn now(&self) -> Result<Duration, RunError> {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        Ok(START.elapsed())
    }

    /// Runs visits to a subject, and returns the durations of each: a column for each of [`call`].
    fn run(&mut self, subject: usize, visits: &[Visit]) -> Result<Vec<LayoutSamples>, RunError>;

    /// How often the marker called its probe in so many loops at one placement: the same bytes with another probe, which
    /// counts. None where it calls none.
    fn hits(&mut self, subject: usize, placement: usize, loops: u64) -> Result<Option<u64>, RunError>;
}

/// Some of a bench's subjects.
pub struct Selected<B> {
    bench: B,
    subjects: Vec<Subject>,
    numbers: Vec<usize>,
}

impl<B: Bench> Selected<B> {
    /// Those that are wanted.
    pub fn new(bench: B, wanted: impl Fn(&Subject) -> bool) -> Selected<B> {
        let numbers: Vec<usize> =
            (0..bench.subjects().len()).filter(|number| wanted(&bench.subjects()[*number])).collect();
        let subjects = numbers.iter().map(|number| bench.subjects()[*number].clone()).collect();
        Selected { bench, subjects, numbers }
    }
}

impl<B: Bench> Bench for Selected<B> {
    fn subjects(&self) -> &[Subject] {
        &self.subjects
    }

    fn anatomy(&self, subject: usize) -> Result<Anatomy, RunError> {
        self.bench.anatomy(self.numbers[subject])
    }

    fn line_offset(&self, subject: usize) -> usize {
        self.bench.line_offset(self.numbers[subject])
    }

    fn compiler(&self, subject: usize) -> &str {
        self.bench.compiler(self.numbers[subject])
    }

    fn placements(&self) -> &[usize] {
        self.bench.placements()
    }

    fn step(&self) -> f64 {
        self.bench.step()
    }

    fn most_loops(&self, subject: usize) -> u64 {
        self.bench.most_loops(self.numbers[subject])
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.bench.lock_state()
    }

    fn now(&self) -> Result<Duration, RunError> {
        self.bench.now()
    }

    fn run(&mut self, subject: usize, visits: &[Visit]) -> Result<Vec<LayoutSamples>, RunError> {
        self.bench.run(self.numbers[subject], visits)
    }

    fn hits(&mut self, subject: usize, placement: usize, loops: u64) -> Result<Option<u64>, RunError> {
        self.bench.hits(self.numbers[subject], placement, loops)
    }
}
