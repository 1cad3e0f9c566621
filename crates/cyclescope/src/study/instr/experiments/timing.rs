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

use crate::clock::Clock;
use crate::context::Element;
use crate::error::RunError;
use crate::executor::{Batch, Call, Executor, Layout, Place, Sample};
use crate::placement;
use crate::program::{Program, Recipe, Vectors, World};
use crate::random::Random;
use crate::ruler::{IMUL_LINKS, Ruler, sentinel_loops};
use crate::statistics::median;
use crate::study::instr::forms::operands::encode;
use iced_x86::{Code, Instruction, Register};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;

/// A program to time.
#[derive(Debug, Clone)]
pub struct Timed {
    /// The program, looped.
    pub program: Program,
    /// Instances in its body.
    pub copies: usize,
    /// Iterations of its shortest call.
    pub loops: u64,
}

/// Core cycles a copy, of one program in one layout: one figure a round.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timing {
    /// By round, from the difference of 4N and N iterations.
    pub cycles: Vec<f64>,
    /// By round, how much more a copy costs from 2N to 4N than from N to 2N.
    pub bend: Vec<f64>,
    /// The same of rounds in which something else used the core.
    pub shared: Vec<f64>,
    /// The bends of those.
    pub shared_bend: Vec<f64>,
}

/// What programs have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Surroundings {
    /// What memory holds.
    pub element: Element,
    /// Whether memory is touched.
    pub touches_memory: bool,
    /// The vector registers that they use.
    pub vectors: Vectors,
    /// Whether they empty caches or buffers of translations: what follows is called once in vain.
    pub emptied: bool,
}

/// What times programs.
#[derive(Debug, Clone)]
pub struct Stopwatch<'a> {
    /// The timing method.
    pub clock: &'a Clock,
    /// Its step in raw units.
    pub step: f64,
    /// Latency of `imul r64, r64` in core cycles.
    pub imul_latency: f64,
    /// What the width sentinel takes on a core without a busy sibling.
    quiet: RefCell<Quiet>,
    /// What the ruler's short loop takes besides its links. It seems less when the long loop is slow, as it is on Golden
    /// Cove in one layout of some hundred, in every round and by up to as long again.
    rest: RefCell<Usual>,
    /// What a probe takes besides its links.
    probe: RefCell<Usual>,
    /// What the wide sentinels take when the units are awake: of 256 and of 512 bits.
    awake: RefCell<[Usual; 2]>,
}

/// The time of the width sentinel in core cycles, as learnt so far: about the least of the lower quartiles of some
/// rounds each, for a neighbour may be there nearly always, and any round may be wrong either way.
#[derive(Debug, Clone, Default)]
struct Quiet {
    recent: Vec<f64>,
    /// Sorted.
    quartiles: Vec<f64>,
}

/// A figure in core cycles that is the same each time, as learnt so far: the median of the last ones.
#[derive(Debug, Clone, Default)]
struct Usual {
    recent: VecDeque<f64>,
    usual: Option<f64>,
    learnt: usize,
}

impl Usual {
    /// So many values are remembered; the usual one is found anew after so many.
    const MOST: usize = 256;
    const EACH: usize = 32;

    fn learn(&mut self, figure: f64) {
        if self.recent.len() == Self::MOST {
            self.recent.pop_front();
        }
        self.recent.push_back(figure);
        self.learnt += 1;
        if self.learnt.is_multiple_of(Self::EACH) {
            self.usual = Some(median(&mut self.recent.iter().copied().collect::<Vec<f64>>()));
        }
    }

    /// Whether it is what it usually is, within a share of what the links take.
    fn fits(&self, rest: f64, links: f64) -> bool {
        self.usual.is_none_or(|usual| (rest - usual).abs() <= REST_SHARE * links)
    }

    /// Whether it took too long.
    fn is_slow(&self, figure: f64) -> bool {
        self.usual.is_some_and(|usual| figure > SLOW * usual)
    }
}

impl Quiet {
    const ROUNDS: usize = 32;
    /// One in so many quartiles may be wrong.
    const DOUBTED: usize = 20;

    fn learn(&mut self, sentinel: f64) {
        self.recent.push(sentinel);
        if self.recent.len() == Self::ROUNDS {
            self.recent.sort_by(f64::total_cmp);
            let quartile = self.recent[Self::ROUNDS / 4];
            let at = self.quartiles.partition_point(|known| *known < quartile);
            self.quartiles.insert(at, quartile);
            self.recent.clear();
        }
    }

    /// Whether the sentinel took too long.
    fn is_slow(&self, sentinel: f64) -> bool {
        let best = self.quartiles.get(self.quartiles.len() / Self::DOUBTED);
        best.is_some_and(|best| sentinel > SLOW * best)
    }
}

/// Calls of each program, in units of its iterations.
const LENGTHS: [u64; 3] = [1, 2, 4];
/// Programs in a round at most.
const TOGETHER: usize = 14;
/// Calls of the ruler and the width sentinel at the start of a round.
const RULERS: usize = 3;
/// The ruler's long loop has so many times the iterations that a probe has.
const PROBE: u64 = 3;
/// A sentinel takes longer than its best by more than this share beside a busy sibling (which adds a half), or in units
/// that are not awake (where it takes some times as long).
const SLOW: f64 = 1.15;
/// Links in the wide sentinel's loop, and its iterations: first to wake the units, then to tell whether they are awake.
const WIDE_LINKS: usize = 16;
const WIDE_LOOPS: [u64; 2] = [200, 50];
/// Iterations of the ruler's chains, about, and how many there are for each unit of the step.
const RULER_LOOPS: usize = 100;
const RULER_PER_STEP: f64 = 5.0;
/// What the ruler takes besides its links may differ by this share of them.
const REST_SHARE: f64 = 0.01;
/// The probes before and after a program may differ by so much.
const MOVED: f64 = 0.01;
const DEADLINE: Duration = Duration::from_secs(2);
const DELAY: u32 = 16;

impl<'a> Stopwatch<'a> {
    /// A timing method, its step, and the ruler's latency.
    pub fn new(clock: &'a Clock, step: f64, imul_latency: f64) -> Stopwatch<'a> {
        Stopwatch {
            clock,
            step,
            imul_latency,
            quiet: RefCell::default(),
            rest: RefCell::default(),
            probe: RefCell::default(),
            awake: RefCell::default(),
        }
    }

    /// A looped program around some machine code.
    pub fn program(&self, world: World, init: &[u8], period: &[u8], repeats: usize) -> Program {
        let recipe = Recipe {
            world,
            init,
            snippet: period,
            copies: repeats,
            looped: true,
            ..Recipe::empty(self.clock)
        };
        recipe.build()
    }

    /// Times programs in so many layouts of so many rounds. Answers by layout, then program.
    ///
    /// Few programs share a round: the shorter it is, the fewer are lost to a neighbour that comes and goes.
    pub fn time(
        &self,
        executor: &mut dyn Executor,
        programs: &[Timed],
        size: (usize, u32, u32),
        surroundings: Surroundings,
        random: &mut Random,
    ) -> Result<Vec<Vec<Timing>>, RunError> {
        let mut timings = vec![Vec::new(); size.0];
        for some in programs.chunks(programs.len().div_ceil(programs.len().div_ceil(TOGETHER).max(1)).max(1))
        {
            let more = self.time_together(executor, some, size, surroundings, random)?;
            timings.iter_mut().zip(more).for_each(|(layout, more)| layout.extend(more));
        }
        Ok(timings)
    }

    fn time_together(
        &self,
        executor: &mut dyn Executor,
        programs: &[Timed],
        size: (usize, u32, u32),
        surroundings: Surroundings,
        random: &mut Random,
    ) -> Result<Vec<Vec<Timing>>, RunError> {
        let (layouts, warm_up, rounds) = size;
        let Ruler { imul: [short, long], sentinel, .. } = Ruler::new(self.clock);
        let mut all = vec![short, long, sentinel];
        let wide = self.wide_sentinel(surroundings.vectors);
        let width = wide.as_ref().map(|(width, _)| *width);
        all.extend(wide.map(|(_, program)| program));
        all.extend(programs.iter().map(|timed| timed.program.clone()));
        let arena = executor.arena_len();
        let mut counts = Vec::new();
        let mut chosen = Vec::new();
        for _ in 0..layouts {
            let least = RULER_LOOPS + (RULER_PER_STEP * self.step) as usize;
            let loops = (least - least / 8 + random.below(least / 4)) as u64;
            counts.push(loops);
            chosen.push(self.layout(&all, programs, (loops, surroundings.emptied), arena, random));
        }
        let batch = Batch {
            programs: all,
            warm_up,
            rounds,
            layouts: chosen,
            element: surroundings.element,
            touches_memory: surroundings.touches_memory,
            delay: DELAY.max((4.0 * self.step) as u32),
            deadline: DEADLINE,
        };
        let samples = executor.run(&batch)?;
        let calls = batch.calls();
        let by_layout = samples.chunks_exact(calls * rounds as usize).zip(counts);
        Ok(by_layout
            .map(|(samples, loops)| self.read(samples, calls, programs, (loops, width, surroundings.emptied)))
            .collect())
    }

    fn layout(
        &self,
        all: &[Program],
        programs: &[Timed],
        (loops, emptied): (u64, bool),
        arena: usize,
        random: &mut Random,
    ) -> Layout {
        // What is not timed for its own sake stands still.
        let first = all.len() - programs.len();
        let (rulers, end) = placement::fixed(&all[..first]);
        let mut code: Vec<Place> =
            rulers.iter().enumerate().map(|(program, &offset)| Place { program, offset }).collect();
        let further: Vec<usize> = (first..all.len()).collect();
        let places =
            placement::random(all, &further, end, arena, None, random).expect("programs fit the arena");
        code.extend(places);
        let sentinel = Call { place: 2, loop_count: sentinel_loops(self.step) };
        let probe = Call { place: 1, loop_count: probe_loops(loops) };
        // Wide vector units have rested while the ruler ran.
        let wide: Vec<Call> = match first > RULERS {
            true => WIDE_LOOPS.map(|loop_count| Call { place: RULERS, loop_count }).to_vec(),
            false => Vec::new(),
        };
        let mut round =
            vec![Call { place: 0, loop_count: loops }, Call { place: 1, loop_count: loops }, sentinel];
        round.extend(&wide);
        round.push(probe);
        for (index, timed) in programs.iter().enumerate() {
            // Branch predictors have met other programs since the round before.
            round.push(Call { place: first + index, loop_count: timed.loops });
            for length in LENGTHS {
                round.push(Call { place: first + index, loop_count: timed.loops * length });
            }
            round.extend(emptied.then_some(probe));
            round.push(probe);
        }
        if emptied {
            // So is the ruler of the next round.
            round.extend([round[0], round[1], sentinel]);
        }
        round.push(sentinel);
        Layout { code, round, data: placement::data(random), seed: random.bits() }
    }

    /// The chain that tells whether vector units are awake, and which of them; none where only narrow ones are used.
    fn wide_sentinel(&self, vectors: Vectors) -> Option<(usize, Program)> {
        let (width, code, register) = match vectors {
            Vectors::None | Vectors::Legacy => return None,
            Vectors::Ymm | Vectors::Evex => (0, Code::VEX_Vandps_ymm_ymm_ymmm256, Register::YMM0),
            Vectors::Zmm => (1, Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, Register::ZMM0),
        };
        let link = Instruction::with3(code, register, register, register + 1).expect("three registers");
        let link = encode(&[link]).expect("a plain instruction");
        let world = World { vectors, avx: true, ..World::default() };
        Some((width, self.program(world, &[], &link, WIDE_LINKS)))
    }

    fn read(
        &self,
        samples: &[Sample],
        calls: usize,
        programs: &[Timed],
        (loops, width, emptied): (u64, Option<usize>, bool),
    ) -> Vec<Timing> {
        let mut timings = vec![Timing::default(); programs.len()];
        let [few, many] = IMUL_LINKS.map(|links| links as f64 * self.imul_latency);
        for round in samples.chunks_exact(calls) {
            let ticks: Vec<f64> = round.iter().map(duration).collect();
            let rate = (ticks[1] - ticks[0]) / ((many - few) * loops as f64);
            let links = few * loops as f64;
            let rest = ticks[0] / rate - links;
            if !rest.is_finite() {
                continue;
            }
            let mut known = self.rest.borrow_mut();
            known.learn(rest);
            if !known.fits(rest, links + self.step / REST_SHARE / rate) {
                continue;
            }
            // The pair of readings is in it too, and the same each time.
            let sentinels = [ticks[2], ticks[ticks.len() - 1]].map(|ticks| ticks / rate);
            let mut quiet = self.quiet.borrow_mut();
            sentinels.iter().for_each(|sentinel| quiet.learn(*sentinel));
            let shared = sentinels.iter().any(|sentinel| quiet.is_slow(*sentinel));
            let mut first = RULERS;
            if let Some(width) = width {
                first += WIDE_LOOPS.len();
                let wide = ticks[first - 1] / rate;
                let awake = &mut self.awake.borrow_mut()[width];
                awake.learn(wide);
                if awake.is_slow(wide) && !shared {
                    continue;
                }
            }
            // The loop's exit may be foreseen in a long call and not in a short one, so the probe has a rest of its own.
            let mut known = self.probe.borrow_mut();
            let links = many * probe_loops(loops) as f64;
            // After the wide sentinel the clock may have stepped since the ruler.
            if width.is_none() {
                known.learn(ticks[first] / rate - links);
            }
            let probe = links + known.usual.unwrap_or(rest);
            let each = 1 + LENGTHS.len() + 1 + usize::from(emptied);
            for (timing, (index, timed)) in timings.iter_mut().zip(programs.iter().enumerate()) {
                let at = first + each * index;
                let rates = [ticks[at] / probe, ticks[at + each] / probe];
                let moved = (rates[0] / rates[1] - 1.0).abs();
                if moved > MOVED + self.step / ticks[at] || moved.is_nan() {
                    continue;
                }
                let copies = timed.copies as f64 * timed.loops as f64 * (rates[0] + rates[1]) / 2.0;
                let [short, middle, long] = [at + 2, at + 3, at + 4].map(|at| ticks[at]);
                let cycles = (long - short) / (3.0 * copies);
                let bend = (long - middle) / (2.0 * copies) - (middle - short) / copies;
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
}

/// Iterations of a probe.
fn probe_loops(loops: u64) -> u64 {
    loops.div_ceil(PROBE)
}

fn duration(sample: &Sample) -> f64 {
    sample.end.checked_sub(sample.start).map_or(f64::INFINITY, |raw| raw as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::parse;
    use crate::executor::mock::{CoreModel, Frequency, Scenario, SimulatedCore};

    /// Times a chain of multiplications.
    fn timed(watch: &Stopwatch, scenario: Scenario, layouts: usize) -> Vec<Vec<Timing>> {
        let body = parse("imul rax, rax").unwrap();
        let program = watch.program(World::default(), &[], body.bytes(), 64);
        let timed = [Timed { program, copies: 64, loops: 10 }];
        let mut core = SimulatedCore::disturbed(CoreModel::random(1), scenario, 5);
        watch.time(&mut core, &timed, (layouts, 1, 4), Surroundings::default(), &mut Random::new(2)).unwrap()
    }

    #[test]
    fn a_chain_takes_what_it_takes_whatever_the_clock_does() {
        for (step, ratio) in [(2, 1.0), (2, 1.5), (26, 1.42)] {
            let watch = Stopwatch::new(
                crate::clock::ALL.iter().find(|c| c.name == "rdtscp-lfence").unwrap(),
                step as f64,
                3.0,
            );
            let layouts = timed(&watch, Scenario { step, ratio, ..Scenario::default() }, 8);
            let cycles: Vec<f64> = layouts.iter().flat_map(|layout| layout[0].cycles.clone()).collect();
            assert!(cycles.len() > 16);
            let mean = crate::statistics::mean(&cycles);
            assert!((mean - 3.0).abs() < 0.03, "step {step}, ratio {ratio}: {mean}");
        }
    }

    #[test]
    fn a_chain_takes_what_it_takes_while_the_clock_jumps() {
        let watch = Stopwatch::new(Clock::named("rdtscp-lfence").unwrap(), 2.0, 3.0);
        let frequency = Frequency { drift: 0.0, jump_rate: 1e-4 };
        let layouts = timed(&watch, Scenario { step: 2, frequency, ..Scenario::default() }, 40);
        let mut cycles: Vec<f64> = layouts.iter().flat_map(|layout| layout[0].cycles.clone()).collect();
        // A jump of 5 to 15 % in most rounds: what is left was between two probes that agree.
        assert!((10..150).contains(&cycles.len()), "{}", cycles.len());
        let middle = median(&mut cycles);
        assert!((middle - 3.0).abs() < 0.03, "{middle}");
    }

    #[test]
    fn a_ruler_whose_long_loop_is_too_slow_is_seen() {
        let mut rest = Usual::default();
        assert!(rest.fits(-400.0, 1200.0), "nothing is known yet");
        (0..Usual::EACH).for_each(|round| rest.learn(if round % 5 == 0 { -300.0 } else { 40.0 }));
        assert!(rest.fits(45.0, 1200.0) && !rest.fits(3.0, 1200.0) && !rest.fits(80.0, 1200.0));
    }

    #[test]
    fn a_sentinel_that_takes_half_as_long_again_is_seen() {
        let mut quiet = Quiet::default();
        assert!(!quiet.is_slow(1000.0), "nothing is known yet");
        // A neighbour in a quarter of the rounds, and a while of readings that are far too low, change nothing.
        (0..64).for_each(|round| quiet.learn(if round % 4 == 0 { 150.0 } else { 100.0 }));
        (0..Quiet::ROUNDS * 2).for_each(|_| quiet.learn(10.0));
        (0..Quiet::ROUNDS * 40).for_each(|_| quiet.learn(100.0));
        assert!(quiet.is_slow(150.0) && !quiet.is_slow(105.0));
    }
}
