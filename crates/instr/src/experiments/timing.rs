//! Times many short programs beside the ruler.
//!
//! Each program is a loop that is called with N, 2N and 4N iterations, so that whatever surrounds the loop cancels. A
//! round begins with the ruler, whose two lengths tell how many ticks a core cycle is and what a call takes besides.
//! Then come these calls of all programs, each between two *probes*: short calls of the ruler's long loop, which tell
//! how many ticks a core cycle was just then. On Golden Cove the clock steps by a thirtieth within a round, down where
//! 512-bit code is dense and up where it is not.
//!
//! Two sentinels tell of rounds that say nothing about the programs. The *width sentinel* sees a busy sibling. The *wide
//! sentinel*, a chain of ANDs in the widest vector registers that the programs use, sees units that are not awake
//! yet: on Golden Cove they run at less than a quarter of their speed for some microseconds after a rest, and now and
//! then for a millisecond.

use crate::forms::form_anatomy::encode_instructions;
use cyclescope_code::clock::Clock;
use cyclescope_code::context::FloatElement;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_code::program::{EntryState, Program, ProgramRecipe, VectorSetup};
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_exec::{Executor, ProgramCall};
use cyclescope_measure::contrast::Contrast;
use cyclescope_measure::placement;
use cyclescope_measure::ruler::{
    Gauge, LayoutSamples, RulerPrograms, RulerScale, RunningMedian, WidthLearner, column, sentinel_loops,
};
use cyclescope_measure::schedule::{self, BatchPace, PlannedLayout, Schedule};
use iced_x86::{Code, Instruction, Register};
use std::cell::RefCell;
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

/// Core cycles a copy, of one program in one layout: one figure a round.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ProgramTiming {
    /// By round, from the difference of 4N and N iterations.
    pub cycles: Vec<f64>,
    /// By round, how much more a copy costs from 2N to 4N than from N to 2N.
    pub bend: Vec<f64>,
    /// The same of rounds in which something else used the core.
    pub shared: Vec<f64>,
    /// The bends of those.
    pub shared_bend: Vec<f64>,
}

/// How often programs are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimingSize {
    /// Layouts of each program.
    pub layouts: usize,
    /// Rounds of each layout that are not timed.
    pub warm_up: u32,
    /// Timed rounds of each layout.
    pub rounds: u32,
}

/// On what the calls of one layout's rounds depend.
#[derive(Debug, Clone, Copy)]
struct RoundCalls {
    /// Iterations of the ruler's chains.
    loops: u64,
    /// Which wide sentinel is among the calls, if any: 0 has 256 bits, 1 has 512.
    width: Option<usize>,
    /// See [`TimingSurroundings::emptied`].
    emptied: bool,
}

/// What programs have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimingSurroundings {
    /// What memory holds.
    pub element: FloatElement,
    /// Whether memory is touched.
    pub touches_memory: bool,
    /// The vector registers that they use.
    pub vectors: VectorSetup,
    /// Whether they empty caches or buffers of translations: what follows is called once in vain.
    pub emptied: bool,
}

/// Times programs.
#[derive(Debug, Clone)]
pub struct ProgramTimer<'a> {
    /// The timing method.
    pub clock: &'a Clock,
    /// Its step in raw units.
    pub step: f64,
    /// Latency of `imul r64, r64` in core cycles.
    pub imul_latency: f64,
    /// How wide the core is without a busy sibling.
    widths: RefCell<WidthLearner>,
    /// What the ruler's short loop takes besides its links. It seems less when the long loop is slow, as it is on Golden
    /// Cove in one layout of some hundred, in every round and by up to as long again.
    rest: RefCell<RunningMedian>,
    /// What a probe takes besides its links.
    probe: RefCell<RunningMedian>,
    /// What the wide sentinels take when the units are awake: of 256 and of 512 bits.
    awake: RefCell<[RunningMedian; 2]>,
}

/// Calls of each program, in units of its iterations.
const CALL_LENGTHS: [u64; 3] = [1, 2, 4];
/// Programs in a round at most.
const ROUND_PROGRAMS: usize = 14;
/// Calls of the ruler and the width sentinel at the start of a round.
const RULER_CALLS: usize = column::BRIEF;
/// Iterations of the ruler's long loop for each iteration of a probe.
const PROBE_DIVISOR: u64 = 3;
/// The wide sentinel takes longer than usual by more than this share in units that are not awake, where it takes some
/// times as long.
const ASLEEP_SHARE: f64 = 0.15;
/// Links in the wide sentinel's loop, and its iterations: first to wake the units, then to tell whether they are awake.
const WIDE_LINKS: usize = 16;
const WIDE_LOOPS: [u64; 2] = [200, 50];
/// Iterations of the ruler's chains, about, and how many there are for each unit of the step.
const RULER_LOOPS: usize = 100;
const RULER_PER_STEP: f64 = 5.0;
/// What the ruler takes besides its links may differ by this share of them.
const REST_SHARE: f64 = 0.01;
/// The probes before and after a program may differ by this share.
const MOVED_SHARE: f64 = 0.01;
const DEADLINE: Duration = Duration::from_secs(2);
const DELAY_LEAST: u32 = 16;

impl<'a> ProgramTimer<'a> {
    /// A timing method, its step, and the ruler's latency.
    pub(crate) fn new(clock: &'a Clock, step: f64, imul_latency: f64) -> ProgramTimer<'a> {
        ProgramTimer {
            clock,
            step,
            imul_latency,
            widths: RefCell::default(),
            rest: RefCell::default(),
            probe: RefCell::default(),
            awake: RefCell::default(),
        }
    }

    /// A looped program around some machine code.
    pub(crate) fn build_program(&self, world: EntryState, init: &[u8], period: &[u8], repeats: usize) -> Program {
        ProgramRecipe { world, init, ..ProgramRecipe::with_loop(self.clock, period, repeats) }.build()
    }

    /// Times programs. Answers by layout, then program.
    ///
    /// Few programs share a round: the shorter it is, the fewer are lost to a neighbour that comes and goes.
    pub(crate) fn time_programs(
        &self,
        executor: &mut dyn Executor,
        programs: &[LoopedProgram],
        size: TimingSize,
        surroundings: TimingSurroundings,
        random: &mut Random,
    ) -> Result<Vec<Vec<ProgramTiming>>, RunError> {
        let mut timings = vec![Vec::new(); size.layouts];
        for some in programs.chunks(programs.len().div_ceil(programs.len().div_ceil(ROUND_PROGRAMS).max(1)).max(1)) {
            let more = self.time_together(executor, some, size, surroundings, random)?;
            timings.iter_mut().zip(more).for_each(|(layout, more)| layout.extend(more));
        }
        Ok(timings)
    }

    fn time_together(
        &self,
        executor: &mut dyn Executor,
        programs: &[LoopedProgram],
        size: TimingSize,
        surroundings: TimingSurroundings,
        random: &mut Random,
    ) -> Result<Vec<Vec<ProgramTiming>>, RunError> {
        let TimingSize { layouts, warm_up, rounds } = size;
        let RulerPrograms { imul: [short, long], sentinel, .. } = RulerPrograms::new(self.clock);
        let mut all = vec![short, long, sentinel];
        let wide = self.build_wide_sentinel(surroundings.vectors);
        let width = wide.as_ref().map(|(width, _)| *width);
        all.extend(wide.map(|(_, program)| program));
        let emptied = surroundings.emptied;
        all.extend(programs.iter().map(|timed| timed.program.clone()));
        let arena = executor.arena_len();
        let mut round_calls = Vec::new();
        let mut stages = Vec::new();
        for _ in 0..layouts {
            let least = RULER_LOOPS + (RULER_PER_STEP * self.step) as usize;
            let loops = (least - least / 8 + random.below(least / 4)) as u64;
            let calls = RoundCalls { loops, width, emptied };
            stages.push(self.build_stage(&all, programs, calls, arena, random)?);
            round_calls.push(calls);
        }
        let pace = BatchPace {
            warm_up,
            rounds,
            memory: ProgramMemory::standard(surroundings.element, surroundings.touches_memory),
            delay: DELAY_LEAST.max((4.0 * self.step) as u32),
            deadline: DEADLINE,
        };
        let layouts = Schedule::with_layouts(all, pace, stages).measure(executor)?.into_iter().zip(round_calls);
        let read = |(samples, calls)| self.read_samples(&samples, programs, calls);
        Ok(layouts.map(read).collect())
    }

    fn build_stage(
        &self,
        all: &[Program],
        programs: &[LoopedProgram],
        calls: RoundCalls,
        arena: usize,
        random: &mut Random,
    ) -> Result<PlannedLayout, RunError> {
        let RoundCalls { loops, width, emptied } = calls;
        // What is not timed for its own sake stands still.
        let first = all.len() - programs.len();
        let code = schedule::place_programs(all, first, first..all.len(), arena, None, random)?;
        let ruler = schedule::ruler_calls::<RULER_CALLS>(loops, sentinel_loops(self.step));
        let sentinel = ruler[column::BRIEF_SENTINEL];
        let probe = ProgramCall { place: column::IMUL_LONG, loop_count: count_probe_loops(loops) };
        // Wide vector units have rested while the ruler ran.
        let wide: Vec<ProgramCall> = match width.is_some() {
            true => WIDE_LOOPS.map(|loop_count| ProgramCall { place: RULER_CALLS, loop_count }).to_vec(),
            false => Vec::new(),
        };
        let mut calls = ruler.to_vec();
        calls.extend(&wide);
        calls.push(probe);
        for (index, timed) in programs.iter().enumerate() {
            // Branch predictors have met other programs since the round before.
            calls.push(ProgramCall { place: first + index, loop_count: timed.loops });
            for length in CALL_LENGTHS {
                calls.push(ProgramCall { place: first + index, loop_count: timed.loops * length });
            }
            calls.extend(emptied.then_some(probe));
            calls.push(probe);
        }
        if emptied {
            // So is the ruler of the next round.
            calls.extend(ruler);
        }
        calls.push(sentinel);
        let data = placement::displace_standard_data(random);
        Ok(PlannedLayout::with_calls_in_order(code, calls, random.next_bits()).with_data(data))
    }

    /// The chain that tells whether vector units are awake, and which of them; none where only narrow ones are used.
    fn build_wide_sentinel(&self, vectors: VectorSetup) -> Option<(usize, Program)> {
        let (width, code, register) = match vectors {
            VectorSetup::None | VectorSetup::Legacy => return None,
            VectorSetup::Ymm | VectorSetup::Evex => (0, Code::VEX_Vandps_ymm_ymm_ymmm256, Register::YMM0),
            VectorSetup::Zmm => (1, Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, Register::ZMM0),
        };
        let link = Instruction::with3(code, register, register, register + 1).expect("three registers");
        let link = encode_instructions(&[link]).expect("a plain instruction");
        let world = EntryState { vectors, avx: true, ..EntryState::default() };
        Some((width, self.build_program(world, &[], &link, WIDE_LINKS)))
    }

    fn read_samples(
        &self,
        samples: &LayoutSamples,
        programs: &[LoopedProgram],
        calls: RoundCalls,
    ) -> Vec<ProgramTiming> {
        let RoundCalls { loops, width, emptied } = calls;
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
            let shared = self.is_shared(&gauge, ticks);
            let mut first = RULER_CALLS;
            if let Some(width) = width {
                first += WIDE_LOOPS.len();
                let wide = ticks[first - 1] / rate;
                let awake = &mut self.awake.borrow_mut()[width];
                awake.learn(wide);
                let asleep = awake.median_figure().is_some_and(|usual| wide > (1.0 + ASLEEP_SHARE) * usual);
                if asleep && !shared {
                    continue;
                }
            }
            // The loop's exit may be foreseen in a long call and not in a short one, so the probe has a rest of its own.
            let mut known = self.probe.borrow_mut();
            let links = gauge.long_chain_cycles(count_probe_loops(loops));
            // After the wide sentinel the clock may have stepped since the ruler.
            if width.is_none() {
                known.learn(ticks[first] / rate - links);
            }
            let probe = links + known.median_figure().unwrap_or(rest);
            let each = 1 + CALL_LENGTHS.len() + 1 + usize::from(emptied);
            for (timing, (index, timed)) in timings.iter_mut().zip(programs.iter().enumerate()) {
                let at = first + each * index;
                let rates = [ticks[at] / probe, ticks[at + each] / probe];
                let moved = (rates[0] / rates[1] - 1.0).abs();
                if moved > MOVED_SHARE + self.step / ticks[at] || moved.is_nan() {
                    continue;
                }
                let copies = timed.copies as f64 * timed.loops as f64 * (rates[0] + rates[1]) / 2.0;
                let [short, middle, long] = [at + 2, at + 3, at + 4];
                let cycles = Contrast::slope_between([short, long], 3.0 * copies).evaluate(ticks);
                let bend = Contrast::slope_between([middle, long], 2.0 * copies)
                    .minus(&Contrast::slope_between([short, middle], copies))
                    .evaluate(ticks);
                let (all, bends) = match shared {
                    true => (&mut timing.shared, &mut timing.shared_bend),
                    false => (&mut timing.cycles, &mut timing.bend),
                };
                all.push(cycles);
                bends.push(bend);
            }
        }
        timings
    }

    /// Whether the sentinel at the start of a round, or the one at its end, ran beside a busy sibling.
    fn is_shared(&self, gauge: &Gauge, ticks: &[f64]) -> bool {
        let mut ruler = [ticks[column::IMUL_SHORT], ticks[column::IMUL_LONG], 0.0];
        let mut widths = self.widths.borrow_mut();
        [ticks[column::BRIEF_SENTINEL], ticks[ticks.len() - 1]].into_iter().fold(false, |shared, sentinel| {
            ruler[column::BRIEF_SENTINEL] = sentinel;
            let scale = gauge.read(&ruler);
            widths.learn(scale.width);
            let error = gauge.width_error(&scale, self.step, 1);
            shared || widths.unshared_width().is_some_and(|quiet| !quiet.is_alone(scale.width, error))
        })
    }
}

/// Iterations of a probe.
fn count_probe_loops(loops: u64) -> u64 {
    loops.div_ceil(PROBE_DIVISOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::asm::parse_assembly;
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
    fn a_chain_takes_what_it_takes_whatever_the_clock_does() {
        for (step, ratio) in [(2, 1.0), (2, 1.5), (26, 1.42)] {
            let timer = ProgramTimer::new(
                cyclescope_code::clock::ALL_CLOCKS.iter().find(|c| c.name == "rdtscp-lfence").unwrap(),
                step as f64,
                3.0,
            );
            let layouts = timed(&timer, Scenario { step, ratio, ..Scenario::default() }, 8);
            let cycles: Vec<f64> = layouts.iter().flat_map(|layout| layout[0].cycles.clone()).collect();
            assert!(cycles.len() > 16);
            let mean = cyclescope_core::statistics::mean(&cycles);
            assert!((mean - 3.0).abs() < 0.03, "step {step}, ratio {ratio}: {mean}");
        }
    }

    #[test]
    fn a_chain_takes_what_it_takes_while_the_clock_jumps() {
        let timer = ProgramTimer::new(Clock::find_named("rdtscp-lfence").unwrap(), 2.0, 3.0);
        let frequency = SimulatedFrequency { drift: 0.0, jump_rate: 1e-4 };
        let layouts = timed(&timer, Scenario { step: 2, frequency, ..Scenario::default() }, 40);
        let mut cycles: Vec<f64> = layouts.iter().flat_map(|layout| layout[0].cycles.clone()).collect();
        // A jump of 5 to 15 % in most rounds: what is left was between two probes that agree.
        assert!((10..150).contains(&cycles.len()), "{}", cycles.len());
        let middle = cyclescope_core::statistics::median(&mut cycles);
        assert!((middle - 3.0).abs() < 0.03, "{middle}");
    }
}
