//! Turns a unit into batches: the programs of each layout, their addresses and their order.

use super::acquisition::Acquisition;
use super::estimate::{LayoutData, call};
use super::measurement_session::MeasurementSession;
use super::schedule::{self, BatchPace, PlannedLayout, Schedule};
use crate::placement;
use crate::ruler::sentinel_loops;
use cyclescope_code::program::Program;
use cyclescope_core::error::RunError;
use cyclescope_events::EventCode;
use cyclescope_exec::ProgramCall;
use std::time::Duration;

/// A snippet counts as hung after this time, in addition to its batch's expected duration and the
/// budget.
const HANG_PATIENCE: Duration = Duration::from_secs(1);
/// Assumptions for the expected duration of a batch: a core runs at 1 GHz or more, a call has an
/// overhead of 2 µs, and a call with emptied caches of 1 ms (measured: 0.1 ms).
pub(super) const SECONDS_A_CYCLE: f64 = 1e-9;
const SECONDS_A_CALL: f64 = 2e-6;
const SECONDS_A_COLD_CALL: f64 = 1e-3;
/// Longest deadline: a week.
const DEADLINE_MOST_S: f64 = 7.0 * 86_400.0;

/// Repeats of each snippet in a layout's bodies, and iterations of the ruler's loops.
pub(super) type BodyLengths = (Vec<[usize; 3]>, u64);

impl MeasurementSession<'_> {
    /// Upper bound on the overhead of a call in seconds.
    pub(super) fn call_overhead_s(&self) -> f64 {
        if self.is_cold() { SECONDS_A_COLD_CALL } else { SECONDS_A_CALL }
    }

    /// Calls in a round.
    pub(super) fn calls_per_round(&self) -> usize {
        call::calls_per_round(self.parts.len())
    }

    /// Measures one more layout, in its own worker process. The process has new memory pages behind
    /// its addresses, and a library's data in their initial state.
    pub(super) fn measure_layout(&mut self, acquisition: &mut Acquisition) -> Result<(), RunError> {
        let rounds = acquisition.rounds;
        let placements = self.placements_per_layout(rounds);
        let (warm_up, rounds) = if placements > 1 { (0, 1) } else { (acquisition.warm_up, rounds) };
        let (schedule, (copies, ruler_loops)) = self.build_schedule(acquisition, placements, warm_up, rounds)?;
        self.executor.renew_process();
        if let Some(calls) = acquisition.training {
            self.train_predictors(&schedule, calls, acquisition)?;
        }
        let before = self.executor.counter_progress();
        let samples = schedule.run(self.executor)?;
        let went = before.zip(self.executor.counter_progress()).map(|(before, now)| now.since(before));
        acquisition.progress = went.map(|went| went.combine(acquisition.progress.unwrap_or_default()));
        acquisition.placements = placements;
        let mut placed = schedule.sort_by_column(&samples).into_iter();
        let mut samples = placed.next().expect("a layout has at least one placement");
        placed.for_each(|more| samples.append(more));
        let number = acquisition.layouts.len();
        let instances = self.question.instances();
        let replicate = if instances > 1 { number % instances } else { number };
        acquisition.layouts.push(LayoutData { replicate, copies, ruler_loops, samples });
        Ok(())
    }

    /// Counts these events in one more layout, in a worker process of its own. Returns the counts of
    /// each event.
    pub(super) fn count_layout(
        &mut self,
        acquisition: &mut Acquisition,
        events: &[EventCode],
    ) -> Result<Vec<LayoutData>, RunError> {
        let placements = self.placements_per_layout(acquisition.rounds);
        let (warm_up, rounds) = if placements > 1 { (0, 1) } else { (acquisition.warm_up, acquisition.rounds) };
        let (schedule, (copies, ruler_loops)) = self.build_schedule(acquisition, placements, warm_up, rounds)?;
        self.executor.renew_process();
        if let Some(calls) = acquisition.training {
            // The worker that is trained has the events open.
            schedule.count_rounds(self.executor, events)?;
            self.train_predictors(&schedule, calls, acquisition)?;
        }
        let counts = schedule.count_rounds(self.executor, events)?;
        let replicate = acquisition.layouts.len();
        let layouts = counts.into_iter().map(|placed| {
            let mut placed = placed.into_iter();
            let mut samples = placed.next().expect("a layout has at least one placement");
            placed.for_each(|more| samples.append(more));
            LayoutData { replicate, copies: copies.clone(), ruler_loops, samples }
        });
        let layouts: Vec<LayoutData> = layouts.collect();
        // The number of layouts chooses the next one's addresses.
        acquisition.layouts.extend(layouts.first().cloned());
        Ok(layouts)
    }

    /// Places the programs of a layout in this number of placements. Returns its repeats and ruler
    /// iterations too.
    pub(super) fn build_schedule(
        &mut self,
        acquisition: &Acquisition,
        placements: usize,
        warm_up: u32,
        rounds: u32,
    ) -> Result<(Schedule, BodyLengths), RunError> {
        let mut programs = self.ruler.to_vec();
        let mut placed = Vec::new();
        let copies: Vec<[usize; 3]> = acquisition.units.iter().map(|unit| self.draw_copies(*unit)).collect();
        let ruler_loops = self.draw_near(acquisition.ruler_loops as usize) as u64;
        for _ in 0..placements {
            placed.push(self.build_layout(&mut programs, acquisition, &copies, ruler_loops)?);
        }
        let all_rounds = placed.len() as f64 * (f64::from(warm_up) + f64::from(rounds));
        let foreseen = Duration::from_secs_f64((all_rounds * acquisition.round_s).min(DEADLINE_MOST_S));
        let pace = BatchPace {
            warm_up,
            rounds,
            memory: self.memory.clone(),
            deadline: HANG_PATIENCE + 4 * (self.plan.budget + foreseen),
            ..BatchPace::default()
        };
        Ok((Schedule::with_layouts(programs, pace, placed), (copies, ruler_loops)))
    }

    /// Placements per layout: one, or one per round if branches are cold.
    pub(super) fn placements_per_layout(&self, rounds: u32) -> usize {
        if self.plan.cold.branches { rounds as usize } else { 1 }
    }

    /// Draws the repeats in the three bodies of a layout: u, 2u and 4u, each changed by up to u/4
    /// unless u is fixed.
    fn draw_copies(&mut self, unit: usize) -> [usize; 3] {
        if self.is_cold() {
            return [0, 0, 1];
        }
        if self.plan.unit.is_some() {
            return [unit, 2 * unit, 4 * unit];
        }
        [0, 1, 3].map(|more| more * unit + self.draw_near(unit))
    }

    /// Draws a random number within a quarter of `middle`.
    fn draw_near(&mut self, middle: usize) -> usize {
        let spread = middle / 4;
        middle - spread + self.random.below(2 * spread + 1)
    }

    /// Draws the order of a round's calls. A snippet's own calls are never more than two apart:
    /// after 256-bit floating point arithmetic rested for the 2 µs of all rulers, it ran slower for
    /// the next 2 000 cycles.
    fn draw_order(&mut self) -> Vec<usize> {
        let mut rulers: Vec<usize> = (0..call::RULERS).collect();
        let mut bodies: Vec<usize> = (call::RULERS..self.calls_per_round()).collect();
        self.random.shuffle(&mut bodies);
        self.random.shuffle(&mut rulers);
        let (every, more) = (call::RULERS / bodies.len(), call::RULERS % bodies.len());
        let mut rulers = rulers.into_iter();
        let mut order = Vec::new();
        for (number, body) in bodies.into_iter().enumerate() {
            order.push(body);
            order.extend(rulers.by_ref().take(every + usize::from(number < more)));
        }
        let turn = self.random.below(order.len());
        order.rotate_left(turn);
        order
    }

    /// Builds a layout's programs and places them and the ruler.
    fn build_layout(
        &mut self,
        programs: &mut Vec<Program>,
        acquisition: &Acquisition,
        copies: &[[usize; 3]],
        ruler_loops: u64,
    ) -> Result<PlannedLayout, RunError> {
        let (first, loop_count) = (programs.len(), acquisition.shape.loop_count);
        let rulers = schedule::ruler_calls::<{ call::RULERS }>(ruler_loops, sentinel_loops(self.plan.step));
        let mut calls = rulers.to_vec();
        let iterates = self.uses_iterations();
        for (part, copies) in self.parts.iter().zip(copies) {
            for (number, repeats) in copies.iter().enumerate() {
                if number == 0 || !iterates {
                    let copies = if iterates { 1 } else { *repeats };
                    programs.push(part.build_program(self.plan, acquisition.layouts.len(), copies));
                }
                let place = call::RULERS + programs.len() - 1 - first;
                calls.push(ProgramCall { place, loop_count: if iterates { *repeats as u64 } else { loop_count } });
            }
        }
        let alignment = match self.plan.cold.code {
            true => 0,
            false => placement::spread_alignment(self.first_alignment, acquisition.layouts.len()),
        };
        let (arena, further) = (self.executor.arena_len(), first..programs.len());
        let code = schedule::place_programs(programs, call::RULERS, further, arena, Some(alignment), &mut self.random)?;
        let order = self.draw_order();
        let data = placement::displace_data(&self.memory, &mut self.random);
        Ok(PlannedLayout { code, calls, order, data, seed: self.random.next_bits() })
    }
}
