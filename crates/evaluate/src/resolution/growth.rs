//! Code that grows by one, and how each length of it is called.
//!
//! All lengths are placed at the same offset within a page; their calls are among those of the ruler.

use super::ruled::{self, Chain, TESTED};
use crate::TestedClock;
use cyclescope_code::program::chains::ADD;
use cyclescope_code::program::{Program, Recipe};
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_exec::{Call, Executor, Placed};
use cyclescope_measure::placement;
use cyclescope_measure::ruler::LayoutSamples;
use cyclescope_measure::schedule::{self, Schedule};
use serde::Serialize;
use std::time::Duration;

/// `mov dword ptr [rdi], 1`: the statement in the paper's loop, `(*var)= 1`.
const STORE: &[u8] = &[0xc7, 0x07, 0x01, 0x00, 0x00, 0x00];

const PAGE: usize = 4096;

/// Lengths of a whole staircase, as in the paper.
const LENGTHS: usize = 1000;

/// Iterations of the ruler: a chain of 6 000 cycles, which a step of two ticks divides to 1 in 3 000 in one reading.
const LOOPS: u64 = 200;

/// Passes at least: with two, Student's factor is 12.7, with three 4.3.
const PASSES: usize = 3;

/// What is done at each length in each pass, from the most wanted down. Sixteen calls of five hundred cycles a round,
/// and the time around them, take about twice as long as the ruler does, and the means of both are about equally
/// certain then; six such rounds of all lengths, three times, take 0.3 s with a method of 50 ticks (Xeon, 3 GHz).
const SHARES: [Share; 3] =
    [Share { rounds: 6, calls: 16 }, Share { rounds: 4, calls: 8 }, Share { rounds: 2, calls: 4 }];

/// Lengths of the trial that the plan rests on.
const TRIAL: usize = 4;

/// What grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// The paper's `measured_loop`: iterations that store 1 to an `int` in memory.
    Iterations,
    /// Instructions one after another, each of one core cycle: `add eax, eax`, which waits for the one before.
    Adds,
}

impl Body {
    /// Both, in the order of the results.
    pub const ALL: [Body; 2] = [Body::Iterations, Body::Adds];

    /// The program of a length, and the iterations that it is called with.
    fn program(self, tested: &TestedClock, length: u32) -> (Program, u64) {
        let empty = Recipe::empty(tested.clock);
        match self {
            Body::Adds => (Recipe { snippet: ADD, copies: length as usize, ..empty }.build(), 1),
            // A loop that counts down to zero runs once at least.
            Body::Iterations if length == 0 => (Recipe { snippet: STORE, ..empty }.build(), 1),
            Body::Iterations => {
                (Recipe { snippet: STORE, copies: 1, looped: true, ..empty }.build(), u64::from(length))
            }
        }
    }
}

/// What is done at one length in one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) rounds: u32,
    /// Calls of the body in each round.
    pub(super) calls: usize,
}

/// How much of a staircase is measured.
#[derive(Debug, Clone)]
pub(super) struct StaircasePlan {
    /// In ascending order.
    pub(super) lengths: Vec<u32>,
    pub(super) share: Share,
    pub(super) passes: usize,
    /// Passes that are evaluated together. Their readings are not kept any longer.
    pub(super) block: usize,
    /// Further passes follow as long as they end before, by the executor's time.
    pub(super) until: Option<Duration>,
}

/// Rounds of each length in a pass where a number of readings was asked for: the passes are the replicates, and a pass of
/// a method that leaves the guest takes seconds as it is.
const ROUNDS: usize = 25;
const SLOW_ROUNDS: usize = 5;
/// Passes that are evaluated together then: some ten megabytes.
const BLOCK: usize = 4;

impl StaircasePlan {
    /// All lengths with this number of readings each, or as many more as fill the last pass.
    pub(super) fn of_readings(tested: &TestedClock, readings: u32) -> StaircasePlan {
        let calls = SHARES[0].calls;
        let rounds = (readings as usize).div_ceil(calls);
        let most = if tested.clock.executes_cpuid() { SLOW_ROUNDS } else { ROUNDS };
        let each = rounds.div_ceil(PASSES).clamp(1, most);
        let share = Share { rounds: each as u32, calls };
        let passes = rounds.div_ceil(each).max(PASSES);
        StaircasePlan { lengths: spread(LENGTHS), share, passes, block: BLOCK, until: None }
    }

    /// All lengths, or as many as there is time for, spread evenly.
    pub(super) fn fitting(
        executor: &mut dyn Executor,
        tested: &TestedClock,
        body: Body,
        time: Duration,
        random: &mut Random,
    ) -> Result<StaircasePlan, RunError> {
        let until = executor.now() + time;
        // How many lengths fit with this share, by a trial.
        let mut fitting = |share: Share| {
            let trial =
                StaircasePlan { lengths: spread(TRIAL), share, passes: 1, block: usize::MAX, until: None };
            let mut experiment = Experiment::new(tested, body, &trial);
            let (mut pass, mut now) = (Duration::MAX, executor.now());
            // The shorter of two: others may take the CPU during one.
            for _ in 0..2 {
                let start = now;
                experiment.pass(executor, random)?;
                now = executor.now();
                pass = pass.min(now.saturating_sub(start));
            }
            let passes = (pass * PASSES as u32).as_secs_f64();
            Ok((TRIAL as f64 * until.saturating_sub(now).as_secs_f64() / passes) as usize)
        };
        let least = SHARES[SHARES.len() - 1];
        // The first batch of a kind meets cold code, and a worker that has yet to wake.
        fitting(least)?;
        let (mut share, mut lengths) = (least, fitting(least)?);
        if lengths >= LENGTHS {
            for each in SHARES {
                (share, lengths) = (each, fitting(each)?);
                if lengths >= LENGTHS {
                    break;
                }
            }
        }
        let lengths = spread(lengths.clamp(TRIAL, LENGTHS));
        Ok(StaircasePlan { lengths, share, passes: PASSES, block: usize::MAX, until: Some(until) })
    }
}

/// `count` lengths, two at least, spread evenly.
pub(super) fn spread(count: usize) -> Vec<u32> {
    (0..count).map(|index| (index * (LENGTHS - 1) / (count - 1)) as u32).collect()
}

/// Lengths are placed in this many pages in turn, each at the same offset in its page, so that an executor can place
/// many at once. It compares all places of these with each other, so that more would not be quicker.
const SLOTS: usize = 64;

/// The programs of some lengths, ready to be called in a pass.
pub(super) struct Experiment<'a> {
    pub(super) chain: Chain,
    plan: &'a StaircasePlan,
    /// Number and offset of each length's program, and the iterations that it is called with.
    placed: Vec<(Placed, u64)>,
    /// Bytes from one slot to the next.
    slot: usize,
    schedule: Schedule,
}

impl<'a> Experiment<'a> {
    pub(super) fn new(tested: &TestedClock, body: Body, plan: &'a StaircasePlan) -> Experiment<'a> {
        let chain = Chain::new(tested, LOOPS);
        let mut programs: Vec<Program> = chain.programs().into();
        let mut placed = Vec::new();
        for length in &plan.lengths {
            let (program, loop_count) = body.program(tested, *length);
            // One loop serves many lengths.
            let known = programs.iter().position(|known| *known == program);
            let number = known.unwrap_or(programs.len());
            if known.is_none() {
                programs.push(program);
            }
            let [short, long, sentinel] = chain.programs();
            let (offsets, _) = placement::fixed(&[short, long, sentinel, programs[number].clone()]);
            placed.push((Placed { program: number, offset: offsets[TESTED] }, loop_count));
        }
        let longest = programs.iter().map(Program::len).max().unwrap_or(0);
        // The loop writes to memory but reads none: it needs no fresh one for each layout.
        let schedule = Schedule::new(programs, ruled::pace(plan.share.rounds));
        Experiment { chain, plan, placed, slot: longest.next_multiple_of(PAGE), schedule }
    }

    /// Measures each length once, in random order: the rounds of each, by length.
    pub(super) fn pass(
        &mut self,
        executor: &mut dyn Executor,
        random: &mut Random,
    ) -> Result<Vec<LayoutSamples>, RunError> {
        let mut numbers: Vec<usize> = (0..self.placed.len()).collect();
        random.shuffle(&mut numbers);
        let (rulers, end) = schedule::fixed(&self.schedule.programs()[..TESTED]);
        // One slot less, for the ruler takes a part of the first.
        let slots = (executor.arena_len().saturating_sub(end) / self.slot).saturating_sub(1).clamp(1, SLOTS);
        let stage = |(turn, number): (usize, &usize)| {
            let (place, loop_count) = self.placed[*number];
            let offset = place.offset + (turn % slots * self.slot) as u32;
            let code = rulers.iter().copied().chain([Placed { offset, ..place }]).collect();
            let tested = vec![Call { place: TESTED, loop_count }; self.plan.share.calls];
            self.chain.stage(code, &tested, random)
        };
        let stages: Vec<_> = numbers.iter().enumerate().map(stage).collect();
        self.schedule.restage(stages);
        let layouts = self.schedule.measure(executor)?;
        let mut read: Vec<(usize, LayoutSamples)> = numbers.into_iter().zip(layouts).collect();
        read.sort_by_key(|(number, _)| *number);
        Ok(read.into_iter().map(|(_, samples)| samples).collect())
    }
}
