//! Times many short programs beside the ruler.
//!
//! Each program is a loop that is called with N, 2N and 4N iterations, so that whatever surrounds the loop cancels. A
//! round holds these calls of all programs, with the ruler before and after them; the ruler's two lengths tell how
//! many ticks a core cycle was in that round.

use crate::clock::Clock;
use crate::context::Element;
use crate::error::RunError;
use crate::executor::{Batch, Call, Executor, Layout, Place, Sample};
use crate::placement;
use crate::program::{Program, Recipe, World};
use crate::random::Random;
use crate::ruler::{IMUL_SPAN, Ruler, sentinel_loops};
use std::cell::RefCell;
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

/// What the programs of a batch have in common.
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
}

/// The time of the width sentinel in core cycles, as learnt so far: the least of the lower quartiles of some rounds
/// each, for a single round may be wrong either way.
#[derive(Debug, Clone, Default)]
struct Quiet {
    recent: Vec<f64>,
    best: Option<f64>,
}

impl Quiet {
    const ROUNDS: usize = 32;

    fn learn(&mut self, sentinel: f64) {
        self.recent.push(sentinel);
        if self.recent.len() == Self::ROUNDS {
            self.recent.sort_by(f64::total_cmp);
            let quartile = self.recent[Self::ROUNDS / 4];
            self.best = Some(self.best.map_or(quartile, |best| best.min(quartile)));
            self.recent.clear();
        }
    }

    fn is_shared(&self, sentinel: f64) -> bool {
        self.best.is_some_and(|best| sentinel > SHARED * best)
    }
}

/// Calls of each program, in units of its iterations.
const LENGTHS: [u64; 3] = [1, 2, 4];
/// Iterations of the untimed call after the ruler, in the same units.
const WAKING: u64 = 4;
/// Programs in a round at most.
const TOGETHER: usize = 10;
/// Calls of the ruler at each end of a round.
const RULERS: usize = 3;
/// The sentinel takes longer than its best by more than this share beside a busy sibling (which adds a half).
const SHARED: f64 = 1.15;
/// Iterations of the ruler's chains, about, and how many there are for each unit of the step.
const RULER_LOOPS: usize = 100;
const RULER_PER_STEP: f64 = 5.0;
/// The ruler before and after a round may differ by so much.
const MOVED: f64 = 0.02;
const DEADLINE: Duration = Duration::from_secs(2);
const DELAY: u32 = 16;

impl<'a> Stopwatch<'a> {
    /// A timing method, its step, and the ruler's latency.
    pub fn new(clock: &'a Clock, step: f64, imul_latency: f64) -> Stopwatch<'a> {
        Stopwatch { clock, step, imul_latency, quiet: RefCell::default() }
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
        surroundings: (Element, bool),
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
        surroundings: (Element, bool),
        random: &mut Random,
    ) -> Result<Vec<Vec<Timing>>, RunError> {
        let (layouts, warm_up, rounds) = size;
        let Ruler { imul: [short, long], sentinel, .. } = Ruler::new(self.clock);
        let mut all = vec![short, long, sentinel];
        all.extend(programs.iter().map(|timed| timed.program.clone()));
        let arena = executor.arena_len();
        let mut counts = Vec::new();
        let mut chosen = Vec::new();
        for _ in 0..layouts {
            let least = RULER_LOOPS + (RULER_PER_STEP * self.step) as usize;
            let loops = (least - least / 8 + random.below(least / 4)) as u64;
            counts.push(loops);
            chosen.push(self.layout(&all, programs, loops, arena, random));
        }
        let batch = Batch {
            programs: all,
            warm_up,
            rounds,
            layouts: chosen,
            element: surroundings.0,
            touches_memory: surroundings.1,
            delay: DELAY.max((4.0 * self.step) as u32),
            deadline: DEADLINE,
        };
        let samples = executor.run(&batch)?;
        let calls = batch.calls();
        let by_layout = samples.chunks_exact(calls * rounds as usize).zip(counts);
        Ok(by_layout.map(|(samples, loops)| self.read(samples, calls, programs, loops)).collect())
    }

    fn layout(
        &self,
        all: &[Program],
        programs: &[Timed],
        loops: u64,
        arena: usize,
        random: &mut Random,
    ) -> Layout {
        let (rulers, end) = placement::fixed(&all[..RULERS]);
        let mut code: Vec<Place> =
            rulers.iter().enumerate().map(|(program, &offset)| Place { program, offset }).collect();
        let further: Vec<usize> = (RULERS..all.len()).collect();
        let places =
            placement::random(all, &further, end, arena, None, random).expect("programs fit the arena");
        code.extend(places);
        let ruler = [
            Call { place: 0, loop_count: loops },
            Call { place: 1, loop_count: loops },
            Call { place: 2, loop_count: sentinel_loops(self.step) },
        ];
        let mut round = ruler.to_vec();
        // Wide vector units that rested while the ruler ran are slow for some thousand cycles.
        round.push(Call {
            place: RULERS,
            loop_count: programs.first().map_or(1, |timed| timed.loops * WAKING),
        });
        for (index, timed) in programs.iter().enumerate() {
            // Branch predictors have met other programs since the round before.
            round.push(Call { place: RULERS + index, loop_count: timed.loops });
            for length in LENGTHS {
                round.push(Call { place: RULERS + index, loop_count: timed.loops * length });
            }
        }
        round.extend(ruler);
        Layout { code, round, data: placement::data(random), seed: random.bits() }
    }

    fn read(&self, samples: &[Sample], calls: usize, programs: &[Timed], loops: u64) -> Vec<Timing> {
        let mut timings = vec![Timing::default(); programs.len()];
        for round in samples.chunks_exact(calls) {
            let ticks: Vec<f64> = round.iter().map(duration).collect();
            let last = ticks.len() - RULERS;
            let span = IMUL_SPAN * loops as f64 * self.imul_latency;
            let before = (ticks[1] - ticks[0]) / span;
            let after = (ticks[last + 1] - ticks[last]) / span;
            let moved = (before / after - 1.0).abs();
            if moved >= MOVED || moved.is_nan() {
                continue;
            }
            let rate = (before + after) / 2.0;
            // The pair of readings is in it too, and the same each time.
            let sentinels = [ticks[2] / before, ticks[last + 2] / after];
            let mut quiet = self.quiet.borrow_mut();
            sentinels.iter().for_each(|sentinel| quiet.learn(*sentinel));
            let shared = sentinels.iter().any(|sentinel| quiet.is_shared(*sentinel));
            for (timing, (index, timed)) in timings.iter_mut().zip(programs.iter().enumerate()) {
                let at = RULERS + 1 + (1 + LENGTHS.len()) * index + 1;
                let copies = timed.copies as f64 * timed.loops as f64 * rate;
                let cycles = (ticks[at + 2] - ticks[at]) / (3.0 * copies);
                let bend =
                    (ticks[at + 2] - ticks[at + 1]) / (2.0 * copies) - (ticks[at + 1] - ticks[at]) / copies;
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

fn duration(sample: &Sample) -> f64 {
    sample.end.checked_sub(sample.start).map_or(f64::INFINITY, |raw| raw as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::parse;
    use crate::executor::mock::{CoreModel, Scenario, SimulatedCore};

    /// Times a chain of multiplications.
    fn timed(watch: &Stopwatch, scenario: Scenario, layouts: usize) -> Vec<Vec<Timing>> {
        let body = parse("imul rax, rax").unwrap();
        let program = watch.program(World::default(), &[], body.bytes(), 64);
        let timed = [Timed { program, copies: 64, loops: 10 }];
        let mut core = SimulatedCore::disturbed(CoreModel::random(1), scenario, 5);
        watch
            .time(&mut core, &timed, (layouts, 1, 4), (Element::default(), false), &mut Random::new(2))
            .unwrap()
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
    fn a_sentinel_that_takes_half_as_long_again_is_seen() {
        let mut quiet = Quiet::default();
        assert!(!quiet.is_shared(1000.0), "nothing is known yet");
        // A neighbour in a quarter of the rounds, and one reading that is far too low, change nothing.
        (0..64).for_each(|round| quiet.learn(if round % 4 == 0 { 150.0 } else { 100.0 }));
        quiet.learn(10.0);
        assert!(quiet.is_shared(150.0) && !quiet.is_shared(105.0));
    }
}
