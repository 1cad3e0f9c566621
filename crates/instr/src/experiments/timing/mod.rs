//! Times many short programs together with the ruler. [`round_calls`] lists the calls of a round, and
//! [`round_reader`] reads their times.
//!
//! Each program is a loop. Calls with N, 2N and 4N iterations make the cost around the loop cancel.
//! A round begins with the ruler. Its two lengths show the number of ticks per core cycle and the
//! overhead of a call. Then all programs are called, each between two *probes*: short calls of the
//! ruler's long loop. They measure the ticks per core cycle at that moment. On Golden Cove, the
//! clock changes by a thirtieth within a round: down in dense 512-bit code, up elsewhere.
//!
//! Two calls in each round reject useless rounds. The *width sentinel* detects a busy sibling by the
//! additions per core cycle. The *wake-up check* is a chain of ANDs in the programs' widest vector
//! registers. It detects units that are not awake. On Golden Cove, such units run at less than a
//! quarter of their speed. This lasts some microseconds after a rest, and occasionally a
//! millisecond.

mod round_calls;
mod round_reader;

pub(crate) use round_calls::LoopedProgram;
pub(crate) use round_reader::ProgramTiming;

use self::round_calls::{RULER_CALLS, RoundCalls};
use self::round_reader::RoundReader;
use crate::forms::form_anatomy::encode_instructions;
use cyclescope_code::asm::registers::{RegisterSet, registers_read, registers_written};
use cyclescope_code::asm::{CodeMode, Listing};
use cyclescope_code::clock::Clock;
use cyclescope_code::context::FloatElement;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_code::program::{EntryState, LoopPlan, Program, ProgramRecipe, VectorSetup};
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_exec::Executor;
use cyclescope_measure::placement;
use cyclescope_measure::ruler::{LeastWidth, RulerPrograms};
use cyclescope_measure::schedule::{self, BatchPace, PlannedLayout, Schedule};
use iced_x86::{Code, Instruction, Register};
use std::ops::Range;
use std::time::Duration;

/// Number of layouts and rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimingSize {
    /// Layouts of each program.
    pub layouts: usize,
    /// Untimed rounds of each layout.
    pub warm_up: u32,
    /// Timed rounds of each layout.
    pub rounds: u32,
}

/// Needs that all programs have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimingSurroundings {
    /// The element type of the memory content.
    pub element: FloatElement,
    /// Whether programs access memory.
    pub touches_memory: bool,
    /// The vector registers that programs use.
    pub vectors: VectorSetup,
    /// Whether programs flush caches or translation buffers. The code after them then gets an
    /// untimed call.
    pub emptied: bool,
}

/// Times programs.
#[derive(Debug, Clone)]
pub struct ProgramTimer<'a> {
    /// The timing method.
    pub clock: &'a Clock,
    /// Resolution of the clock in raw units.
    pub step: f64,
    /// The mode of all programs.
    pub mode: CodeMode,
    /// The ruler and the width sentinel, in the order of their calls.
    ruler: [Program; RULER_CALLS],
    /// The wake-up checks of 256 and 512 bits.
    wake_up_checks: [Program; 2],
    /// Reads the rounds.
    rounds: RoundReader,
}

/// Upper limit of programs per round.
const ROUND_PROGRAMS: usize = 14;
/// Links in the loop of the wake-up check.
const WAKE_UP_LINKS: usize = 16;
/// Approximate iterations of the ruler's chains, and iterations per unit of clock resolution.
const RULER_LOOPS: usize = 100;
const RULER_PER_STEP: f64 = 5.0;
const DEADLINE: Duration = Duration::from_secs(2);
const DELAY_LEAST: u32 = 16;

impl<'a> ProgramTimer<'a> {
    /// A timer of programs of a mode by this clock, its resolution, and the ruler's latency.
    pub(crate) fn new(clock: &'a Clock, step: f64, imul_latency: f64, mode: CodeMode) -> ProgramTimer<'a> {
        let RulerPrograms { imul: [short, long], sentinel, .. } = RulerPrograms::for_mode(clock, mode);
        ProgramTimer {
            clock,
            step,
            mode,
            ruler: [short, long, sentinel],
            wake_up_checks: [VectorSetup::Ymm, VectorSetup::Zmm]
                .map(|vectors| build_wake_up_check(clock, mode, vectors)),
            rounds: RoundReader::new(imul_latency),
        }
    }

    /// The same timer, on a core whose sentinel has at least this width if the sibling is idle.
    pub(crate) fn with_least_width(self, least_width: Option<LeastWidth>) -> ProgramTimer<'a> {
        ProgramTimer { rounds: self.rounds.with_least_width(least_width), ..self }
    }

    /// Builds a looped program from machine code.
    pub(crate) fn build_program(&self, world: EntryState, init: &[u8], period: &[u8], repeats: usize) -> Program {
        self.build_led_program(world, init, period, repeats, 0)
    }

    /// Builds a looped program with a lead of this many instructions.
    pub(crate) fn build_led_program(
        &self,
        world: EntryState,
        init: &[u8],
        period: &[u8],
        repeats: usize,
        lead: usize,
    ) -> Program {
        let looped = Some(choose_loop(world.mode, [init, period]));
        ProgramRecipe { world, init, lead, looped, ..ProgramRecipe::with_loop(self.clock, period, repeats) }.build()
    }

    /// Times programs. Returns timings by layout, then program. All layouts are one batch, because
    /// each waits for the worker.
    pub(crate) fn time_programs(
        &self,
        executor: &mut dyn Executor,
        programs: &[LoopedProgram],
        size: TimingSize,
        surroundings: TimingSurroundings,
        random: &mut Random,
    ) -> Result<Vec<Vec<ProgramTiming>>, RunError> {
        if programs.is_empty() {
            return Ok(vec![Vec::new(); size.layouts]);
        }
        let groups = split_evenly(programs.len());
        let TimingSize { layouts, warm_up, rounds } = size;
        let wake_up = match surroundings.vectors {
            VectorSetup::None | VectorSetup::Legacy => None,
            VectorSetup::Ymm | VectorSetup::Evex => Some(0),
            VectorSetup::Zmm => Some(1),
        };
        let mut all = self.ruler.to_vec();
        all.extend(wake_up.map(|size| self.wake_up_checks[size].clone()));
        let first = all.len();
        all.extend(programs.iter().map(|timed| timed.program.clone()));
        let arena = executor.arena_len();
        let mut planned = Vec::new();
        let mut read = Vec::new();
        for _ in 0..layouts {
            for group in &groups {
                let least = RULER_LOOPS + (RULER_PER_STEP * self.step) as usize;
                let loops = (least - least / 8 + random.below(least / 4)) as u64;
                let calls = RoundCalls { loops, step: self.step, wake_up, emptied: surroundings.emptied };
                let code =
                    schedule::place_programs(&all, first, first + group.start..first + group.end, arena, None, random)?;
                let data = placement::displace_standard_data(random);
                let columns = calls.list(&programs[group.clone()], groups[0].len());
                planned.push(PlannedLayout::with_calls_in_order(code, columns, random.next_bits()).with_data(data));
                read.push((group.clone(), calls));
            }
        }
        let pace = BatchPace {
            warm_up,
            rounds,
            memory: ProgramMemory::standard(surroundings.element, surroundings.touches_memory),
            delay: DELAY_LEAST.max((4.0 * self.step) as u32),
            deadline: DEADLINE * groups.len() as u32,
        };
        let samples = Schedule::with_layouts(all, pace, planned).measure(executor)?;
        let timings: Vec<Vec<ProgramTiming>> = samples
            .iter()
            .zip(read)
            .map(|(samples, (group, calls))| self.rounds.read_samples(samples, &programs[group], calls))
            .collect();
        Ok(timings.chunks(groups.len()).map(<[Vec<ProgramTiming>]>::concat).collect())
    }
}

/// A loop that a register counts which the code does not use: few instructions of 32-bit code use the
/// usual one.
fn choose_loop(mode: CodeMode, code: [&[u8]; 2]) -> LoopPlan {
    let uses = |code: &[u8]| {
        let listing = Listing::from_code(code, mode);
        let touched = |one: &Instruction| registers_read(one).union(registers_written(one));
        listing.instructions().iter().map(touched).fold(RegisterSet::EMPTY, RegisterSet::union)
    };
    if mode == CodeMode::Bits64 {
        return LoopPlan::PLAIN;
    }
    let used = code.map(uses).into_iter().fold(RegisterSet::EMPTY, RegisterSet::union);
    let is_free = |register: &Register| !used.contains(*register) && *register != Register::RSP;
    let usual = mode.register(Register::R15).full_register();
    let all = [usual].into_iter().chain((0..mode.general_registers() as u32).map(|number| Register::RAX + number));
    all.filter(is_free).map(LoopPlan::counted_by).next().unwrap_or(LoopPlan::PLAIN)
}

/// Splits this number of programs into groups of nearly the same size that share a round, the
/// largest first. Few programs share one: a shorter round loses less to an intermittently busy
/// sibling.
fn split_evenly(programs: usize) -> Vec<Range<usize>> {
    let groups = programs.div_ceil(ROUND_PROGRAMS);
    let size = |group: usize| programs / groups + usize::from(group < programs % groups);
    let starts = (0..groups).scan(0, |start, group| {
        let range = *start..*start + size(group);
        *start = range.end;
        Some(range)
    });
    starts.collect()
}

/// The chain of this width that checks whether vector units are awake.
fn build_wake_up_check(clock: &Clock, mode: CodeMode, vectors: VectorSetup) -> Program {
    let (code, register) = match vectors {
        VectorSetup::Zmm => (Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, Register::ZMM0),
        _ => (Code::VEX_Vandps_ymm_ymm_ymmm256, Register::YMM0),
    };
    let link = Instruction::with3(code, register, register, register + 1).expect("three registers");
    let link = encode_instructions(mode, &[link]).expect("a plain instruction");
    let world = EntryState { mode, vectors, avx: true, ..EntryState::default() };
    ProgramRecipe { world, ..ProgramRecipe::with_loop(clock, &link, WAKE_UP_LINKS) }.build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::asm::parse_assembly;
    use cyclescope_core::statistics::mean;
    use cyclescope_sim::{CoreModel, Scenario, SimulatedCore, SimulatedFrequency};

    /// Times a chain of multiplications.
    fn timed(timer: &ProgramTimer, scenario: Scenario, layouts: usize) -> Vec<Vec<ProgramTiming>> {
        let body = parse_assembly("imul rax, rax").unwrap();
        let program = timer.build_program(EntryState::default(), &[], body.bytes(), 64);
        let timed = [LoopedProgram { program, copies: 64, loops: 10 }];
        let mut core = SimulatedCore::with_scenario(CoreModel::from_seed(1), scenario, 5);
        let size = TimingSize { layouts, warm_up: 1, rounds: 4 };
        timer.time_programs(&mut core, &timed, size, TimingSurroundings::default(), &mut Random::new(2)).unwrap()
    }

    #[test]
    fn a_chains_cost_does_not_depend_on_the_clock() {
        for (step, ratio) in [(2, 1.0), (2, 1.5), (26, 1.42)] {
            let timer = ProgramTimer::new(
                cyclescope_code::clock::ALL_CLOCKS.iter().find(|c| c.name == "rdtscp-lfence").unwrap(),
                step as f64,
                3.0,
                CodeMode::default(),
            );
            let layouts = timed(&timer, Scenario { step, ratio, ..Scenario::default() }, 8);
            let cycles: Vec<f64> = layouts.iter().flat_map(|layout| layout[0].cycles.clone()).collect();
            assert!(cycles.len() > 16);
            let mean = cyclescope_core::statistics::mean(&cycles);
            assert!((mean - 3.0).abs() < 0.03, "step {step}, ratio {ratio}: {mean}");
        }
    }

    #[test]
    fn more_programs_than_a_round_holds_are_one_batch() {
        for programs in [1, ROUND_PROGRAMS, ROUND_PROGRAMS + 5, 3 * ROUND_PROGRAMS + 1] {
            let groups = split_evenly(programs);
            assert_eq!(groups.iter().cloned().flatten().collect::<Vec<_>>(), (0..programs).collect::<Vec<_>>());
            let sizes: Vec<usize> = groups.iter().map(Range::len).collect();
            assert!(sizes[0] <= ROUND_PROGRAMS && sizes[0] - sizes[sizes.len() - 1] <= 1, "{sizes:?}");
        }
        let timer = ProgramTimer::new(Clock::find_named("rdtscp-lfence").unwrap(), 2.0, 3.0, CodeMode::Bits64);
        let chain = |links: usize| {
            let body = parse_assembly(&"imul rax, rax;".repeat(links)).unwrap();
            let program = timer.build_program(EntryState::default(), &[], body.bytes(), 16);
            LoopedProgram { program, copies: 16, loops: 20 }
        };
        // Two rounds of ten and nine programs.
        let programs: Vec<LoopedProgram> = (1..ROUND_PROGRAMS + 6).map(chain).collect();
        let mut core = SimulatedCore::with_scenario(CoreModel::from_seed(1), Scenario::default(), 5);
        let size = TimingSize { layouts: 2, warm_up: 1, rounds: 3 };
        let surroundings = TimingSurroundings { emptied: true, ..TimingSurroundings::default() };
        for surroundings in [TimingSurroundings::default(), surroundings] {
            let timings = timer.time_programs(&mut core, &programs, size, surroundings, &mut Random::new(2)).unwrap();
            assert_eq!(timings.len(), 2);
            for (links, timing) in timings.iter().flat_map(|layout| (1..).zip(layout)) {
                let cost = mean(&timing.cycles);
                assert!((cost / 3.0 - f64::from(links)).abs() < 0.1, "{links} links: {cost}");
            }
        }
    }

    #[test]
    fn a_chains_cost_is_right_while_the_clock_jumps() {
        let timer = ProgramTimer::new(Clock::find_named("rdtscp-lfence").unwrap(), 2.0, 3.0, CodeMode::Bits64);
        let frequency = SimulatedFrequency { drift: 0.0, jump_rate: 1e-4 };
        let layouts = timed(&timer, Scenario { step: 2, frequency, ..Scenario::default() }, 40);
        let mut cycles: Vec<f64> = layouts.iter().flat_map(|layout| layout[0].cycles.clone()).collect();
        // The clock jumps by 5 to 15 % in most rounds. Only programs between agreeing probes
        // remain.
        assert!((10..150).contains(&cycles.len()), "{}", cycles.len());
        let middle = cyclescope_core::statistics::median(&mut cycles);
        assert!((middle - 3.0).abs() < 0.03, "{middle}");
    }
}
