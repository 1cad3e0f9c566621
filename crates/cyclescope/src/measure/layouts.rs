//! From a unit to batches: the programs of each layout, their addresses and their order.

use super::acquisition::Acquisition;
use super::estimate::{LayoutData, call};
use super::schedule::{self, Pace, Room, Schedule, Stage};
use super::session::{Session, recipe};
use crate::error::RunError;
use crate::executor::{Call, Layout, Sample};
use crate::placement;
use crate::program::Program;
use crate::program::memory::Memory;
use crate::ruler::LayoutSamples;
use std::time::Duration;

/// Time after which the snippet of a batch counts as hung, in addition to the batch's expected duration and the budget.
const PATIENCE: Duration = Duration::from_secs(1);
/// Assumptions for the expected duration of a batch: a core runs at 1 GHz or more, the overhead of a call is 2 µs, and
/// that of a call with emptied caches 1 ms (measured: 0.1 ms).
pub(super) const SECONDS_A_CYCLE: f64 = 1e-9;
const SECONDS_A_CALL: f64 = 2e-6;
const SECONDS_A_COLD_CALL: f64 = 1e-3;
/// No deadline is longer than a week.
const LONGEST_S: f64 = 7.0 * 86_400.0;
/// Approximate bytes of programs in memory for one call of the executor,
const BATCH_BYTES: usize = 64 << 20;
/// and its largest number of layouts.
const LAYOUTS_AT_ONCE: usize = 4096;
/// The ruler's calls; each has the number of its program.
const RULER_CALLS: [usize; call::RULERS] =
    [call::IMUL_SHORT, call::IMUL_LONG, call::ADD_SHORT, call::ADD_LONG, call::SENTINEL];

/// Copies of the snippet in a layout's three bodies, and iterations of the ruler's loops.
pub(super) type Lengths = ([usize; 3], u64);

impl Session<'_> {
    /// Largest overhead of a call in seconds.
    pub(super) fn call_s(&self) -> f64 {
        if self.is_cold() { SECONDS_A_COLD_CALL } else { SECONDS_A_CALL }
    }

    /// Runs further layouts, in batches of limited memory.
    pub(super) fn batch(
        &mut self,
        acquisition: &mut Acquisition,
        layouts: usize,
        rounds: u32,
    ) -> Result<(), RunError> {
        let code = 9 * acquisition.unit * self.snippet.code().len() * self.runs_per_layout(rounds);
        let at_once = (BATCH_BYTES / code.max(1)).clamp(1, LAYOUTS_AT_ONCE);
        for first in (0..layouts).step_by(at_once) {
            self.run_layouts(acquisition, at_once.min(layouts - first), rounds)?;
        }
        Ok(())
    }

    fn run_layouts(
        &mut self,
        acquisition: &mut Acquisition,
        layouts: usize,
        rounds: u32,
    ) -> Result<(), RunError> {
        let runs = self.runs_per_layout(rounds);
        let (warm_up, rounds) = if runs > 1 { (0, 1) } else { (acquisition.warm_up, rounds) };
        let (schedule, lengths) = self.schedule(acquisition, [layouts, runs], warm_up, rounds)?;
        let before = self.executor.progress();
        let samples = schedule.run(self.executor)?;
        let went = before.zip(self.executor.progress()).map(|(before, now)| now.since(before));
        acquisition.progress = went.map(|went| went.and(acquisition.progress.unwrap_or_default()));
        acquisition.runs_per_layout = runs;
        let readings = samples.chunks_exact(runs * rounds as usize * call::COUNT);
        for ((layouts, (copies, ruler_loops)), readings) in
            schedule.batch().layouts.chunks_exact(runs).zip(lengths).zip(readings)
        {
            let samples = gather(layouts, readings);
            acquisition.layouts.push(LayoutData { copies, ruler_loops, samples });
        }
        Ok(())
    }

    /// Places the programs of some layouts, each in a number of placements, with the copies and the ruler's iterations
    /// of each layout.
    pub(super) fn schedule(
        &mut self,
        acquisition: &Acquisition,
        [layouts, runs]: [usize; 2],
        warm_up: u32,
        rounds: u32,
    ) -> Result<(Schedule, Vec<Lengths>), RunError> {
        let mut programs = self.ruler.to_vec();
        let mut lengths = Vec::new();
        let mut placed = Vec::new();
        for _ in 0..layouts {
            let copies = self.copies(acquisition.unit);
            let ruler_loops = self.about(acquisition.ruler_loops as usize) as u64;
            for _ in 0..runs {
                placed.push(self.stage(&mut programs, &copies, acquisition.shape.loop_count, ruler_loops)?);
            }
            lengths.push((copies, ruler_loops));
        }
        let all_rounds = placed.len() as f64 * (f64::from(warm_up) + f64::from(rounds));
        let foreseen = Duration::from_secs_f64((all_rounds * acquisition.round_s).min(LONGEST_S));
        let pace = Pace {
            warm_up,
            rounds,
            memory: Memory::standard(self.outline.world.element, self.outline.touches_memory),
            deadline: PATIENCE + 4 * (self.plan.budget + foreseen),
            ..Pace::default()
        };
        Ok((Schedule::with(programs, pace, placed), lengths))
    }

    /// Placements that one layout's samples come from: one, or, where branches are cold, one for each round.
    pub(super) fn runs_per_layout(&self, rounds: u32) -> usize {
        if self.plan.cold.branches { rounds as usize } else { 1 }
    }

    /// Copies in the three bodies of a layout: u, 2u, 4u, each changed by up to u/4 unless u is fixed.
    fn copies(&mut self, unit: usize) -> [usize; 3] {
        if self.is_cold() {
            return [0, 0, 1];
        }
        if self.plan.unit.is_some() {
            return [unit, 2 * unit, 4 * unit];
        }
        [0, 1, 3].map(|more| more * unit + self.about(unit))
    }

    /// A random number that differs from `middle` by a quarter of it at most.
    fn about(&mut self, middle: usize) -> usize {
        let spread = middle / 4;
        middle - spread + self.random.below(2 * spread + 1)
    }

    /// The program with this number of copies. Evictions of a cold start depend on the number.
    fn program(&self, copies: usize) -> Program {
        match &self.frame {
            Some(frame) => frame.program(self.snippet.code(), copies),
            None => recipe(self.snippet, self.plan, self.outline, copies).build(),
        }
    }

    /// The calls of a round in a random order, the snippet's own never more than two apart: where 256-bit floating
    /// point arithmetic had rested for the 2 µs of all rulers, it was slowed down for the next 2 000 cycles.
    fn order(&mut self) -> [usize; call::COUNT] {
        let (mut bodies, mut rulers) = ([call::ONE, call::TWO, call::FOUR], RULER_CALLS);
        self.random.shuffle(&mut bodies);
        self.random.shuffle(&mut rulers);
        let ([a, b, c], [r, s, t, u, v]) = (bodies, rulers);
        let mut order = [a, r, s, b, t, u, c, v];
        order.rotate_left(self.random.below(call::COUNT));
        order
    }

    /// Builds a layout's programs and places them and the ruler, in the order of [`call`].
    fn stage(
        &mut self,
        programs: &mut Vec<Program>,
        copies: &[usize; 3],
        loop_count: u64,
        ruler_loops: u64,
    ) -> Result<Stage, RunError> {
        let first = programs.len();
        for copies in copies {
            programs.push(self.program(*copies));
        }
        let (mut code, end) = schedule::fixed(&programs[..call::RULERS]);
        let numbers = [first, first + 1, first + 2];
        let alignment = self.plan.cold.code.then_some(0);
        let arena_len = self.executor.arena_len();
        let room = Room { from: end, arena: arena_len, alignment };
        let bodies = schedule::random(programs, numbers, room, &mut self.random)?;
        code.extend(bodies);
        let loop_count = |call: usize| match call {
            call::ONE | call::TWO | call::FOUR => loop_count,
            call::SENTINEL => crate::ruler::sentinel_loops(self.plan.step),
            _ => ruler_loops,
        };
        let calls = (0..call::COUNT).map(|place| Call { place, loop_count: loop_count(place) }).collect();
        let order = self.order().to_vec();
        let data = placement::data(&mut self.random);
        Ok(Stage { code, calls, order, data, seed: self.random.bits() })
    }
}

/// Samples of several placements, merged into one layout.
pub(crate) fn gather(layouts: &[Layout], readings: &[Sample]) -> LayoutSamples {
    let per_run = readings.len() / layouts.len();
    let mut runs = layouts.iter().zip(readings.chunks_exact(per_run)).map(|(layout, readings)| {
        let order: Vec<usize> = layout.round.iter().map(|call| call.place).collect();
        LayoutSamples::new(readings, &order)
    });
    let mut samples = runs.next().expect("a layout has at least one run");
    runs.for_each(|run| samples.append(run));
    samples
}
