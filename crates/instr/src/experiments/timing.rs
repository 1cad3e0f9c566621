//! Times many short programs together with the ruler.
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

use crate::forms::form_anatomy::encode_instructions;
use cyclescope_code::asm::registers::{RegisterSet, registers_read, registers_written};
use cyclescope_code::asm::{CodeMode, Listing};
use cyclescope_code::clock::Clock;
use cyclescope_code::context::FloatElement;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_code::program::{EntryState, LoopPlan, Program, ProgramRecipe, VectorSetup};
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::mean;
use cyclescope_exec::{Executor, ProgramCall};
use cyclescope_measure::contrast::Contrast;
use cyclescope_measure::placement;
use cyclescope_measure::ruler::LeastWidth;
use cyclescope_measure::ruler::{
    Gauge, LayoutSamples, RulerPrograms, RulerScale, RunningMedian, UnsharedWidth, WidthLearner, column, sentinel_loops,
};
use cyclescope_measure::schedule::{self, BatchPace, PlannedLayout, Schedule};
use iced_x86::{Code, Instruction, Register};
use std::cell::RefCell;
use std::ops::Range;
use std::time::Duration;

/// A program to time.
#[derive(Debug, Clone)]
pub(crate) struct LoopedProgram {
    /// The program, looped.
    pub program: Program,
    /// Instances in its body.
    pub copies: usize,
    /// Iterations of its shortest call.
    pub loops: u64,
}

/// Core cycles per instance of one program in one layout, one figure per round.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ProgramTiming {
    /// By round, from the difference of 4N and N iterations.
    pub cycles: Vec<f64>,
    /// By round: the cost per instance from 2N to 4N iterations, minus that from N to 2N.
    pub bend: Vec<f64>,
    /// By round: the cost by the longest call alone, less an empty call. It includes the slow start
    /// of the loop. Infinite if both shorter calls cost less per instance: then buffers may have taken
    /// a part.
    pub whole: Vec<f64>,
    /// By round: the least cost that the longest call allows.
    pub floor: Vec<f64>,
    /// Like `cycles`, in rounds with a busy sibling.
    pub shared: Vec<f64>,
    /// Like `bend`, in rounds with a busy sibling.
    pub shared_bend: Vec<f64>,
    /// Like `whole`, in rounds with a busy sibling.
    pub shared_whole: Vec<f64>,
    /// Like `floor`, in rounds with a busy sibling.
    pub shared_floor: Vec<f64>,
}

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

/// Parameters of the calls in one layout's rounds.
#[derive(Debug, Clone, Copy)]
struct RoundCalls {
    /// Iterations of the ruler's chains.
    loops: u64,
    /// The size of the wake-up check among the calls, if any: 0 has 256 bits, 1 has 512.
    wake_up: Option<usize>,
    /// See [`TimingSurroundings::emptied`].
    emptied: bool,
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
    /// Latency in core cycles of the ruler's links, `imul r64, r64` or `imul r32, r32`.
    pub imul_latency: f64,
    /// The mode of all programs.
    pub mode: CodeMode,
    /// The ruler and the width sentinel, in the order of their calls.
    ruler: [Program; RULER_CALLS],
    /// The wake-up checks of 256 and 512 bits.
    wake_up_checks: [Program; 2],
    /// Widths of the core, learnt with an idle sibling.
    widths: RefCell<WidthLearner>,
    /// The least width of an unshared core, from micro-architecture data.
    least_width: Option<LeastWidth>,
    /// Overhead of the ruler's short loop. It seems lower if the long loop is slow. On Golden Cove,
    /// in one layout of several hundred, the long loop takes up to twice as long in every round.
    rest: RefCell<RunningMedian>,
    /// Overhead of a probe.
    probe: RefCell<RunningMedian>,
    /// Core cycles of the wake-up checks with awake units: 256 and 512 bits.
    awake: RefCell<[RunningMedian; 2]>,
}

/// Lengths of each program's calls, as multiples of its iterations.
const CALL_LENGTHS: [u64; 3] = [1, 2, 4];
/// Upper limit of programs per round.
const ROUND_PROGRAMS: usize = 14;
/// Calls of the ruler and the width sentinel at the start of a round. The sentinel gets its untimed call here.
const RULER_CALLS: usize = column::BRIEF;
/// Iterations of the ruler's long loop per iteration of a probe.
const PROBE_DIVISOR: u64 = 3;
/// Units are asleep if the wake-up check takes longer than usual by this share. Asleep, it takes
/// several times as long.
const ASLEEP_SHARE: f64 = 0.15;
/// Links in the loop of the wake-up check, and iterations of its two calls: one wakes the units,
/// the other checks them.
const WAKE_UP_LINKS: usize = 16;
const WAKE_UP_LOOPS: [u64; 2] = [200, 50];
/// Approximate iterations of the ruler's chains, and iterations per unit of clock resolution.
const RULER_LOOPS: usize = 100;
const RULER_PER_STEP: f64 = 5.0;
/// Tolerance of the ruler's overhead, as a share of its links.
const REST_SHARE: f64 = 0.01;
/// Tolerance between the probes before and after a program, as a share.
const MOVED_SHARE: f64 = 0.01;
/// Upper limit of core cycles that the first iterations of a loop take longer than later ones, and of
/// the instrument's error as a share, for the floor of a program's cost. Zen 5: some 60 cycles and
/// 0.5 % (`cyclescope instr --explain`).
const START_CYCLES: f64 = 100.0;
const FLOOR_SHARE: f64 = 0.01;
const DEADLINE: Duration = Duration::from_secs(2);
const DELAY_LEAST: u32 = 16;

impl<'a> ProgramTimer<'a> {
    /// A timer of programs of a mode by this clock, its resolution, and the ruler's latency.
    pub(crate) fn new(clock: &'a Clock, step: f64, imul_latency: f64, mode: CodeMode) -> ProgramTimer<'a> {
        let RulerPrograms { imul: [short, long], sentinel, .. } = RulerPrograms::for_mode(clock, mode);
        ProgramTimer {
            clock,
            step,
            imul_latency,
            mode,
            ruler: [short, long, sentinel],
            wake_up_checks: [VectorSetup::Ymm, VectorSetup::Zmm]
                .map(|vectors| build_wake_up_check(clock, mode, vectors)),
            widths: RefCell::default(),
            least_width: None,
            rest: RefCell::default(),
            probe: RefCell::default(),
            awake: RefCell::default(),
        }
    }

    /// The same timer, on a core whose sentinel has at least this width if the sibling is idle.
    pub(crate) fn with_least_width(self, least_width: Option<LeastWidth>) -> ProgramTimer<'a> {
        ProgramTimer { least_width, ..self }
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
                let calls = RoundCalls { loops, wake_up, emptied: surroundings.emptied };
                let code =
                    schedule::place_programs(&all, first, first + group.start..first + group.end, arena, None, random)?;
                let data = placement::displace_standard_data(random);
                let columns = self.list_calls(&programs[group.clone()], calls, groups[0].len());
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
            .map(|(samples, (group, calls))| self.read_samples(samples, &programs[group], calls))
            .collect();
        Ok(timings.chunks(groups.len()).map(<[Vec<ProgramTiming>]>::concat).collect())
    }

    /// The calls of a round. A layout with fewer programs than `most` gets further calls of the
    /// ruler, because all layouts of a batch have as many calls.
    fn list_calls(&self, programs: &[LoopedProgram], calls: RoundCalls, most: usize) -> Vec<ProgramCall> {
        let RoundCalls { loops, wake_up, emptied } = calls;
        let ruler = schedule::ruler_calls::<RULER_CALLS>(loops, sentinel_loops(self.step));
        let sentinel = ruler[column::BRIEF_SENTINEL];
        let probe = ProgramCall { place: column::IMUL_LONG, loop_count: count_probe_loops(loops) };
        // Wide vector units slept while the ruler ran.
        let wake_up_calls: Vec<ProgramCall> = match wake_up.is_some() {
            true => WAKE_UP_LOOPS.map(|loop_count| ProgramCall { place: RULER_CALLS, loop_count }).to_vec(),
            false => Vec::new(),
        };
        let first = RULER_CALLS + usize::from(wake_up.is_some());
        let mut calls = ruler.to_vec();
        calls.extend(&wake_up_calls);
        // A sibling may be busy for a part of the round, so each program is between two sentinels.
        calls.extend([probe, sentinel]);
        let start = calls.len();
        for (index, timed) in programs.iter().enumerate() {
            // An untimed call: other programs have trained the branch predictors since the previous
            // round.
            calls.push(ProgramCall { place: first + index, loop_count: timed.loops });
            for length in CALL_LENGTHS {
                calls.push(ProgramCall { place: first + index, loop_count: timed.loops * length });
            }
            calls.extend(emptied.then_some(probe));
            calls.extend([probe, sentinel]);
        }
        calls.resize(start + most * count_program_calls(emptied), ProgramCall { loop_count: 1, ..probe });
        if emptied {
            // The ruler of the next round gets an untimed call too.
            calls.extend(ruler);
        }
        calls
    }

    fn read_samples(
        &self,
        samples: &LayoutSamples,
        programs: &[LoopedProgram],
        calls: RoundCalls,
    ) -> Vec<ProgramTiming> {
        let RoundCalls { loops, wake_up, emptied } = calls;
        let mut timings = vec![ProgramTiming::default(); programs.len()];
        let gauge = Gauge::brief_ruler(loops, sentinel_loops(self.step), self.imul_latency);
        for ticks in samples.rounds() {
            let scale = gauge.read(ticks);
            let RulerScale { rate, overhead: rest, .. } = scale;
            if !rest.is_finite() {
                continue;
            }
            let mut known = self.rest.borrow_mut();
            known.learn(rest);
            if !known.is_near(rest, REST_SHARE * gauge.short_chain_cycles() + self.step / rate) {
                continue;
            }
            let overhead = known.median_figure().unwrap_or(rest);
            let first = RULER_CALLS + if wake_up.is_some() { WAKE_UP_LOOPS.len() } else { 0 };
            let each = count_program_calls(emptied);
            let sentinels = (0..=programs.len()).map(|index| ticks[first + 1 + each * index]);
            let busy = self.find_busy(&gauge, ticks, &sentinels.collect::<Vec<f64>>());
            if let Some(size) = wake_up {
                let checked = ticks[first - 1] / rate;
                let awake = &mut self.awake.borrow_mut()[size];
                awake.learn(checked);
                let asleep = awake.median_figure().is_some_and(|usual| checked > (1.0 + ASLEEP_SHARE) * usual);
                if asleep && !busy[0] {
                    continue;
                }
            }
            // The exit of a loop may be predicted in long calls only, so the probe has an overhead
            // of its own.
            let mut known = self.probe.borrow_mut();
            let links = gauge.long_chain_cycles(count_probe_loops(loops));
            // After the wake-up check, the clock may have changed since the ruler.
            if wake_up.is_none() {
                known.learn(ticks[first] / rate - links);
            }
            let probe = links + known.median_figure().unwrap_or(rest);
            let rates: Vec<f64> = (0..=programs.len()).map(|index| ticks[first + each * index] / probe).collect();
            for (timing, (index, timed)) in timings.iter_mut().zip(programs.iter().enumerate()) {
                let at = first + each * index;
                let Some(moment) = find_moment_rate(&rates, index, MOVED_SHARE + self.step / ticks[at]) else {
                    continue;
                };
                let copies = timed.copies as f64 * timed.loops as f64 * moment;
                let shared = busy[index] || busy[index + 1];
                let [short, middle, long] = [at + 3, at + 4, at + 5];
                let cycles = Contrast::slope_between([short, long], 3.0 * copies).evaluate(ticks);
                let bend = Contrast::slope_between([middle, long], 2.0 * copies)
                    .minus(&Contrast::slope_between([short, middle], copies))
                    .evaluate(ticks);
                if !(cycles.is_finite() && bend.is_finite()) {
                    // A call was interrupted.
                    continue;
                }
                let [first, second, whole] = [0, 1, 2]
                    .map(|call| (ticks[short + call] - overhead * moment) / (CALL_LENGTHS[call] as f64 * copies));
                let start = START_CYCLES * moment / (CALL_LENGTHS[2] as f64 * copies);
                let (all, bends, wholes, floors) = match shared {
                    true => (
                        &mut timing.shared,
                        &mut timing.shared_bend,
                        &mut timing.shared_whole,
                        &mut timing.shared_floor,
                    ),
                    false => (&mut timing.cycles, &mut timing.bend, &mut timing.whole, &mut timing.floor),
                };
                all.push(cycles);
                bends.push(bend);
                wholes.push(if whole <= first.max(second) { whole } else { f64::INFINITY });
                floors.push((1.0 - FLOOR_SHARE) * whole - start);
            }
        }
        timings
    }

    /// Whether the sibling was busy, at each of these sentinels of a round. The first and the last also show
    /// how wide the core is.
    fn find_busy(&self, gauge: &Gauge, ticks: &[f64], sentinels: &[f64]) -> Vec<bool> {
        let mut widths = self.widths.borrow_mut();
        let last = sentinels.len() - 1;
        let is_busy = |(place, sentinel): (usize, &f64)| {
            let scale = gauge.read(&[ticks[column::IMUL_SHORT], ticks[column::IMUL_LONG], *sentinel]);
            if place == 0 || place == last {
                widths.learn(scale.width);
            }
            let error = gauge.width_error(&scale, self.step, 1);
            let known = UnsharedWidth::from_widths([], self.least_width);
            let quiet = widths.unshared_width().unwrap_or_default().or_earlier(known);
            !quiet.is_alone(scale.width, error)
        };
        sentinels.iter().enumerate().map(is_busy).collect()
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

/// Calls of a program, its probe and its sentinel in a round.
fn count_program_calls(emptied: bool) -> usize {
    1 + CALL_LENGTHS.len() + 2 + usize::from(emptied)
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

/// Ticks per core cycle at the program with this index, by the probes around it. `None` if the two
/// next to it differ by more than a share: the clock moved. If two more do not, they count too,
/// because the clock's step is most of a probe's error.
fn find_moment_rate(rates: &[f64], index: usize, share: f64) -> Option<f64> {
    let mean_alike = |range: Range<usize>| {
        let near = &rates[range];
        let least = near.iter().copied().fold(f64::INFINITY, f64::min);
        near.iter().all(|rate| rate / least - 1.0 <= share).then(|| mean(near))
    };
    let next = mean_alike(index..index + 2)?;
    Some(mean_alike(index.saturating_sub(1)..(index + 3).min(rates.len())).unwrap_or(next))
}

/// Iterations of a probe.
fn count_probe_loops(loops: u64) -> u64 {
    loops.div_ceil(PROBE_DIVISOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::asm::parse_assembly;
    use cyclescope_exec::Sample;
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
    fn the_rate_at_a_program_comes_from_up_to_four_alike_probes() {
        let rate = |rates: &[f64], index| find_moment_rate(rates, index, 0.01);
        let near = |found: Option<f64>, truth: f64| found.is_some_and(|found| (found - truth).abs() < 1e-9);
        assert!(near(rate(&[0.6, 0.604, 0.602, 0.606], 1), 0.603));
        assert!(near(rate(&[0.6, 0.604, 0.602], 0), 0.602) && near(rate(&[0.6, 0.604], 0), 0.602));
        assert!(near(rate(&[0.7, 0.604, 0.602, 0.606], 1), 0.603), "the clock moved before");
        assert_eq!(rate(&[0.6, 0.604, 0.62, 0.62], 1), None, "the clock moved meanwhile");
        assert_eq!(rate(&[0.6, f64::NAN, 0.6, 0.6], 1), None);
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
    #[test]
    fn programs_next_to_a_busy_sentinel_are_shared_and_others_of_the_round_are_not() {
        const OVERHEAD: f64 = 60.0;
        let timer = ProgramTimer::new(Clock::find_named("rdtscp-lfence").unwrap(), 2.0, 3.0, CodeMode::Bits64);
        let program = LoopedProgram { program: timer.ruler[0].clone(), copies: 10, loops: 50 };
        let programs = vec![program; 3];
        let calls = RoundCalls { loops: 100, wake_up: None, emptied: false };
        let gauge = Gauge::brief_ruler(calls.loops, sentinel_loops(timer.step), timer.imul_latency);
        // A reading of one tick has all additions of the sentinel in a cycle.
        let chains = [gauge.short_chain_cycles(), gauge.long_chain_cycles(calls.loops)];
        let additions = gauge.read(&[chains[0], chains[1], 1.0]).width;
        let sentinel = |width: f64| additions / width;
        let probe = gauge.long_chain_cycles(count_probe_loops(calls.loops));
        // A tick is a core cycle, and an instance takes two.
        let round = |widths: [f64; 4]| {
            let mut ticks = vec![gauge.short_chain_cycles(), gauge.long_chain_cycles(calls.loops), sentinel(4.6)];
            ticks.extend([probe, sentinel(widths[0])]);
            for width in &widths[1..] {
                ticks.extend([1.0, 1.0, 2.0, 4.0].map(|length| 2.0 * 10.0 * 50.0 * length));
                ticks.extend([probe, sentinel(*width)]);
            }
            ticks
        };
        let quiet = [round([4.6; 4])].into_iter().cycle().take(40);
        let disturbed = [round([4.6, 2.4, 4.6, 4.6])].into_iter().cycle().take(8);
        let mut now = 0;
        let sample = |ticks: f64| {
            let start = now;
            now += (ticks + OVERHEAD).round() as u64;
            Sample { start, end: now }
        };
        let samples: Vec<Sample> = quiet.chain(disturbed).flatten().map(sample).collect();
        let columns: Vec<usize> = (0..timer.list_calls(&programs, calls, programs.len()).len()).collect();
        let timings = timer.read_samples(&LayoutSamples::new(&samples, &columns), &programs, calls);
        let counts: Vec<[usize; 2]> = timings.iter().map(|timing| [timing.cycles.len(), timing.shared.len()]).collect();
        assert_eq!(counts, [[40, 8], [40, 8], [48, 0]]);
        assert!(timings.iter().flat_map(|timing| &timing.cycles).all(|cycles| (cycles - 2.0).abs() < 0.01));
    }
}
