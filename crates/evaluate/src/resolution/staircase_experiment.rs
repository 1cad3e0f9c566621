//! Code that grows by one, and how each length of it is called.
//!
//! All lengths are placed at the same offset within a page; their calls are among those of the ruler.

use super::round_ruler::{self, RoundRuler, TESTED};
use crate::TestedClock;
use cyclescope_code::program::chains::ADD;
use cyclescope_code::program::{Program, ProgramRecipe};
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_exec::{Executor, PlacedProgram, ProgramCall};
use cyclescope_measure::placement;
use cyclescope_measure::ruler::LayoutSamples;
use cyclescope_measure::schedule::{self, Schedule};
use serde::Serialize;
use std::time::Duration;

/// `mov dword ptr [rdi], 1`: the statement in the paper's loop, `(*var)= 1`.
const STORE_CODE: &[u8] = &[0xc7, 0x07, 0x01, 0x00, 0x00, 0x00];

const PAGE: usize = 4096;

/// Lengths of a whole staircase, as in the paper.
const LENGTHS: usize = 1000;

/// Iterations of the ruler: a chain of 6 000 cycles, which a step of two ticks divides to 1 in 3 000 in one reading.
const RULER_LOOPS: u64 = 200;

/// Passes at least: with two, Student's factor is 12.7, with three 4.3.
const PASSES: usize = 3;

/// What is done at each length in each pass, from the most wanted down. Sixteen calls of five hundred cycles a round,
/// and the time around them, take about twice as long as the ruler does, and the means of both are about equally
/// certain then; six such rounds of all lengths, three times, take 0.3 s with a method of 50 ticks (Xeon, 3 GHz).
const PASS_SHARES: [PassShare; 3] =
    [PassShare { rounds: 6, calls: 16 }, PassShare { rounds: 4, calls: 8 }, PassShare { rounds: 2, calls: 4 }];

/// Lengths of the trial that the plan rests on.
const TRIAL_LENGTHS: usize = 4;

/// What grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StaircaseBody {
    /// The paper's `measured_loop`: iterations that store 1 to an `int` in memory.
    Iterations,
    /// Instructions one after another, each of one core cycle: `add eax, eax`, which waits for the one before.
    Adds,
}

impl StaircaseBody {
    /// Both, in the order of the results.
    pub const ALL: [StaircaseBody; 2] = [StaircaseBody::Iterations, StaircaseBody::Adds];

    /// The program of a length, and the iterations that it is called with.
    fn build_program(self, tested: &TestedClock, length: u32) -> (Program, u64) {
        let empty = ProgramRecipe::empty(tested.clock);
        match self {
            StaircaseBody::Adds => (ProgramRecipe { snippet: ADD, copies: length as usize, ..empty }.build(), 1),
            // A loop that counts down to zero runs once at least.
            StaircaseBody::Iterations if length == 0 => (ProgramRecipe { snippet: STORE_CODE, ..empty }.build(), 1),
            StaircaseBody::Iterations => {
                (ProgramRecipe { snippet: STORE_CODE, copies: 1, looped: true, ..empty }.build(), u64::from(length))
            }
        }
    }
}

/// What is done at one length in one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PassShare {
    pub(super) rounds: u32,
    /// Calls of the body in each round.
    pub(super) calls: usize,
}

/// How much of a staircase is measured.
#[derive(Debug, Clone)]
pub(super) struct StaircasePlan {
    /// In ascending order.
    pub(super) lengths: Vec<u32>,
    pub(super) share: PassShare,
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
const BLOCK_PASSES: usize = 4;

impl StaircasePlan {
    /// All lengths with this number of readings each, or as many more as fill the last pass.
    pub(super) fn for_readings(tested: &TestedClock, readings: u32) -> StaircasePlan {
        let calls = PASS_SHARES[0].calls;
        let rounds = (readings as usize).div_ceil(calls);
        let most = if tested.clock.executes_cpuid() { SLOW_ROUNDS } else { ROUNDS };
        let each = rounds.div_ceil(PASSES).clamp(1, most);
        let share = PassShare { rounds: each as u32, calls };
        let passes = rounds.div_ceil(each).max(PASSES);
        StaircasePlan { lengths: spread_lengths(LENGTHS), share, passes, block: BLOCK_PASSES, until: None }
    }

    /// All lengths, or as many as there is time for, spread evenly.
    pub(super) fn fit_to_time(
        executor: &mut dyn Executor,
        tested: &TestedClock,
        body: StaircaseBody,
        time: Duration,
        random: &mut Random,
    ) -> Result<StaircasePlan, RunError> {
        let until = executor.now() + time;
        // How many lengths fit with this share, by a trial.
        let mut fitting = |share: PassShare| {
            let trial = StaircasePlan {
                lengths: spread_lengths(TRIAL_LENGTHS),
                share,
                passes: 1,
                block: usize::MAX,
                until: None,
            };
            let mut experiment = StaircaseExperiment::new(tested, body, &trial);
            let (mut pass, mut now) = (Duration::MAX, executor.now());
            // The shorter of two: others may take the CPU during one.
            for _ in 0..2 {
                let start = now;
                experiment.run_pass(executor, random)?;
                now = executor.now();
                pass = pass.min(now.saturating_sub(start));
            }
            let passes = (pass * PASSES as u32).as_secs_f64();
            Ok((TRIAL_LENGTHS as f64 * until.saturating_sub(now).as_secs_f64() / passes) as usize)
        };
        let least = PASS_SHARES[PASS_SHARES.len() - 1];
        // The first batch of a kind meets cold code, and a worker that has yet to wake.
        fitting(least)?;
        let (mut share, mut lengths) = (least, fitting(least)?);
        if lengths >= LENGTHS {
            for each in PASS_SHARES {
                (share, lengths) = (each, fitting(each)?);
                if lengths >= LENGTHS {
                    break;
                }
            }
        }
        let lengths = spread_lengths(lengths.clamp(TRIAL_LENGTHS, LENGTHS));
        Ok(StaircasePlan { lengths, share, passes: PASSES, block: usize::MAX, until: Some(until) })
    }
}

/// `count` lengths, two at least, spread evenly.
pub(super) fn spread_lengths(count: usize) -> Vec<u32> {
    (0..count).map(|index| (index * (LENGTHS - 1) / (count - 1)) as u32).collect()
}

/// Lengths are placed in this many pages in turn, each at the same offset in its page, so that an executor can place
/// many at once. It compares all places of these with each other, so that more would not be quicker.
const SLOTS: usize = 64;

/// The programs of some lengths, ready to be called in a pass.
pub(super) struct StaircaseExperiment<'a> {
    pub(super) chain: RoundRuler,
    plan: &'a StaircasePlan,
    /// Number and offset of each length's program, and the iterations that it is called with.
    placed: Vec<(PlacedProgram, u64)>,
    /// Bytes from one slot to the next.
    slot: usize,
    schedule: Schedule,
}

impl<'a> StaircaseExperiment<'a> {
    pub(super) fn new(tested: &TestedClock, body: StaircaseBody, plan: &'a StaircasePlan) -> StaircaseExperiment<'a> {
        let chain = RoundRuler::new(tested, RULER_LOOPS);
        let mut programs: Vec<Program> = chain.ruler_programs().into();
        let mut placed = Vec::new();
        for length in &plan.lengths {
            let (program, loop_count) = body.build_program(tested, *length);
            // One loop serves many lengths.
            let known = programs.iter().position(|known| *known == program);
            let number = known.unwrap_or(programs.len());
            if known.is_none() {
                programs.push(program);
            }
            let [short, long, sentinel] = chain.ruler_programs();
            let (offsets, _) = placement::fixed_offsets(&[short, long, sentinel, programs[number].clone()]);
            placed.push((PlacedProgram { program: number, offset: offsets[TESTED] }, loop_count));
        }
        let longest = programs.iter().map(Program::len).max().unwrap_or(0);
        // The loop writes to memory but reads none: it needs no fresh one for each layout.
        let schedule = Schedule::new(programs, round_ruler::layout_pace(plan.share.rounds));
        StaircaseExperiment { chain, plan, placed, slot: longest.next_multiple_of(PAGE), schedule }
    }

    /// Measures each length once, in random order: the rounds of each, by length.
    pub(super) fn run_pass(
        &mut self,
        executor: &mut dyn Executor,
        random: &mut Random,
    ) -> Result<Vec<LayoutSamples>, RunError> {
        let mut numbers: Vec<usize> = (0..self.placed.len()).collect();
        random.shuffle(&mut numbers);
        let (rulers, end) = schedule::place_fixed(&self.schedule.programs()[..TESTED]);
        // One slot less, for the ruler takes a part of the first.
        let slots = (executor.arena_len().saturating_sub(end) / self.slot).saturating_sub(1).clamp(1, SLOTS);
        let stage = |(turn, number): (usize, &usize)| {
            let (place, loop_count) = self.placed[*number];
            let offset = place.offset + (turn % slots * self.slot) as u32;
            let code = rulers.iter().copied().chain([PlacedProgram { offset, ..place }]).collect();
            let tested = vec![ProgramCall { place: TESTED, loop_count }; self.plan.share.calls];
            self.chain.build_stage(code, &tested, random)
        };
        let stages: Vec<_> = numbers.iter().enumerate().map(stage).collect();
        self.schedule.replace_layouts(stages);
        let layouts = self.schedule.measure(executor)?;
        let mut read: Vec<(usize, LayoutSamples)> = numbers.into_iter().zip(layouts).collect();
        read.sort_by_key(|(number, _)| *number);
        Ok(read.into_iter().map(|(_, samples)| samples).collect())
    }
}
