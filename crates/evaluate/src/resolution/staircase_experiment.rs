//! The growing code, and the calls of each of its lengths.
//!
//! All lengths are placed at the same offset within a page. Their calls are mixed with those of the
//! ruler.

use super::round_ruler::{self, RoundRuler, TESTED};
use crate::TestedClock;
use cyclescope_code::program::chains::ADD;
use cyclescope_code::program::{LoopPlan, Program, ProgramRecipe};
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

/// Iterations of the ruler: a chain of 6 000 cycles. A step of two ticks gives an error of 1 in 3
/// 000 in one reading.
const RULER_LOOPS: u64 = 200;

/// Fewest passes. Student's factor is 12.7 with two, 4.3 with three.
const PASSES: usize = 3;

/// Effort at each length in each pass, in order of preference. Sixteen calls of five hundred cycles
/// per round, overhead included, take about twice as long as the ruler. The means of both are then
/// about equally certain. Six such rounds of all lengths, three times, take 0.3 s with a method of
/// 50 ticks (Xeon, 3 GHz).
const PASS_SHARES: [PassShare; 3] =
    [PassShare { rounds: 6, calls: 16 }, PassShare { rounds: 4, calls: 8 }, PassShare { rounds: 2, calls: 4 }];

/// Lengths in the trial that the plan is based on.
const TRIAL_LENGTHS: usize = 4;

/// The growing code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StaircaseBody {
    /// The paper's `measured_loop`: iterations that store 1 to an `int` in memory.
    Iterations,
    /// Dependent instructions of one core cycle each: `add eax, eax`.
    Adds,
}

impl StaircaseBody {
    /// Both, in the order of the results.
    pub const ALL: [StaircaseBody; 2] = [StaircaseBody::Iterations, StaircaseBody::Adds];

    /// The program of a length, and its loop iterations per call.
    fn build_program(self, tested: &TestedClock, length: u32) -> (Program, u64) {
        let empty = tested.empty_recipe();
        match self {
            StaircaseBody::Adds => (ProgramRecipe { snippet: ADD, copies: length as usize, ..empty }.build(), 1),
            // A loop that counts down to zero runs at least once.
            StaircaseBody::Iterations if length == 0 => (ProgramRecipe { snippet: STORE_CODE, ..empty }.build(), 1),
            StaircaseBody::Iterations => (
                ProgramRecipe { snippet: STORE_CODE, copies: 1, looped: Some(LoopPlan::PLAIN), ..empty }.build(),
                u64::from(length),
            ),
        }
    }
}

/// Effort at one length in one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PassShare {
    pub(super) rounds: u32,
    /// Calls of the body in each round.
    pub(super) calls: usize,
}

/// The effort for a staircase.
#[derive(Debug, Clone)]
pub(super) struct StaircasePlan {
    /// Lengths, in ascending order.
    pub(super) lengths: Vec<u32>,
    pub(super) share: PassShare,
    pub(super) passes: usize,
    /// Passes that are evaluated together. Their readings are discarded afterwards.
    pub(super) block: usize,
    /// Further passes follow if they end before this time, by the executor's clock.
    pub(super) until: Option<Duration>,
}

/// Rounds of each length in a pass for a requested number of readings. The passes are the
/// replicates, and a pass already takes seconds with a method that exits to the hypervisor.
const ROUNDS: usize = 25;
const SLOW_ROUNDS: usize = 5;
/// Passes that are evaluated together in that case: about ten megabytes.
const BLOCK_PASSES: usize = 4;

impl StaircasePlan {
    /// All lengths with at least this number of readings each; the last pass is complete.
    pub(super) fn for_readings(tested: &TestedClock, readings: u32) -> StaircasePlan {
        let calls = PASS_SHARES[0].calls;
        let rounds = (readings as usize).div_ceil(calls);
        let most = if tested.clock.executes_cpuid() { SLOW_ROUNDS } else { ROUNDS };
        let each = rounds.div_ceil(PASSES).clamp(1, most);
        let share = PassShare { rounds: each as u32, calls };
        let passes = rounds.div_ceil(each).max(PASSES);
        StaircasePlan { lengths: spread_lengths(LENGTHS), share, passes, block: BLOCK_PASSES, until: None }
    }

    /// All lengths, or as many evenly spread ones as fit the time.
    pub(super) fn fit_to_time(
        executor: &mut dyn Executor,
        tested: &TestedClock,
        body: StaircaseBody,
        time: Duration,
        random: &mut Random,
    ) -> Result<StaircasePlan, RunError> {
        let until = executor.now() + time;
        // A trial shows how many lengths fit with this share.
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
            // The shorter of two, because a background load may delay one.
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
        // The first batch of a kind runs cold code, and the worker may have to wake up.
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

/// `count` lengths, at least two, evenly spread.
pub(super) fn spread_lengths(count: usize) -> Vec<u32> {
    (0..count).map(|index| (index * (LENGTHS - 1) / (count - 1)) as u32).collect()
}

/// Lengths occupy this number of pages in rotation, each at the same offset in its page. An
/// executor can then place many at once. It compares every place with every other, so that more
/// would not be faster.
const SLOTS: usize = 64;

/// The programs of some lengths, ready for the calls of a pass.
pub(super) struct StaircaseExperiment<'a> {
    pub(super) chain: RoundRuler,
    plan: &'a StaircasePlan,
    /// Number and offset of each length's program, and its loop iterations per call.
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
        // The loop writes to memory and reads none, so layouts can share it.
        let schedule = Schedule::new(programs, round_ruler::layout_pace(plan.share.rounds));
        StaircaseExperiment { chain, plan, placed, slot: longest.next_multiple_of(PAGE), schedule }
    }

    /// Measures each length once, in random order. Returns the rounds by length.
    pub(super) fn run_pass(
        &mut self,
        executor: &mut dyn Executor,
        random: &mut Random,
    ) -> Result<Vec<LayoutSamples>, RunError> {
        let mut numbers: Vec<usize> = (0..self.placed.len()).collect();
        random.shuffle(&mut numbers);
        let (rulers, end) = schedule::place_fixed(&self.schedule.programs()[..TESTED]);
        // One slot less, because the ruler takes a part of the first.
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
