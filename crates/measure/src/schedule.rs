//! Places programs, orders their calls in rounds and layouts, and runs them on an executor. Only
//! this file builds batches, calls an executor and orders its readings; see `tests/structure`.
//!
//! A round has a column for each of its calls. Each layout runs the calls in its own order.
//! Readings are returned by column. A schedule does not know the meaning of its columns.

use crate::placement;
use crate::ruler::LayoutSamples;
use cyclescope_code::context::AREA_REGISTERS;
use cyclescope_code::program::Program;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_events::EventCode;
use cyclescope_exec::{Batch, DEFAULT_DELAY, Executor, Layout, PlacedProgram, ProgramCall, Sample};
use std::array;
use std::ops::Range;
use std::time::Duration;

/// Deadline of short batches: they take some milliseconds, and may wait for the CPU's lock.
pub(crate) const SHORT_DEADLINE: Duration = Duration::from_secs(20);

/// Parameters of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchPace {
    /// Untimed rounds at the start of each layout, which fill caches and train predictors.
    pub warm_up: u32,
    /// Timed rounds in each layout.
    pub rounds: u32,
    /// Largest number of iterations of the delay before each call: see [`Batch::delay`].
    pub delay: u32,
    /// Time limit of the whole batch.
    pub deadline: Duration,
    /// Memory areas of the programs.
    pub memory: ProgramMemory,
}

impl Default for BatchPace {
    /// One untimed and one timed round, for short programs that touch no memory.
    fn default() -> BatchPace {
        BatchPace {
            warm_up: 1,
            rounds: 1,
            delay: DEFAULT_DELAY,
            deadline: SHORT_DEADLINE,
            memory: ProgramMemory::standard(Default::default(), false),
        }
    }
}

/// One layout of a batch: places of programs, and the call of each column. A layout of a
/// measurement is one of these, or one for each round if branches shall be cold.
#[derive(Debug, Clone)]
pub struct PlannedLayout {
    /// The programs that the layout uses.
    pub code: Vec<PlacedProgram>,
    /// The call of each column.
    pub calls: Vec<ProgramCall>,
    /// The columns in the order in which a round runs them.
    pub order: Vec<usize>,
    /// Displacement of each area's register in bytes.
    pub data: Vec<i32>,
    /// Seed of the delays between calls.
    pub seed: u64,
}

impl PlannedLayout {
    /// A layout with a random order of calls, and registers in the middle of their areas.
    pub fn with_shuffled_calls(
        code: Vec<PlacedProgram>,
        calls: Vec<ProgramCall>,
        random: &mut Random,
    ) -> PlannedLayout {
        let mut order: Vec<usize> = (0..calls.len()).collect();
        random.shuffle(&mut order);
        PlannedLayout { code, calls, order, data: vec![0; AREA_REGISTERS.len()], seed: random.next_bits() }
    }

    /// A layout that runs the calls as listed, with registers in the middle of their areas.
    pub fn with_calls_in_order(code: Vec<PlacedProgram>, calls: Vec<ProgramCall>, seed: u64) -> PlannedLayout {
        PlannedLayout { code, order: (0..calls.len()).collect(), calls, data: vec![0; AREA_REGISTERS.len()], seed }
    }

    /// Displaces the data by these numbers of bytes.
    pub fn with_data(self, data: Vec<i32>) -> PlannedLayout {
        PlannedLayout { data, ..self }
    }
}

/// Places programs at fixed addresses from the start of the arena, each body at the start of a
/// cache line. Returns their places and the end of the last program. For the ruler, and for
/// programs compared at one address.
pub fn place_fixed(programs: &[Program]) -> (Vec<PlacedProgram>, usize) {
    let (offsets, end) = placement::fixed_offsets(programs);
    (offsets.into_iter().enumerate().map(|(program, offset)| PlacedProgram { program, offset }).collect(), end)
}

/// Places a layout's programs in an arena of this many bytes. The first `first` programs get fixed
/// addresses. Those of the range `further` get other addresses in each layout, another order and,
/// unless given, another alignment of the bodies to the cache line.
pub fn place_programs(
    programs: &[Program],
    first: usize,
    further: Range<usize>,
    arena: usize,
    alignment: Option<usize>,
    random: &mut Random,
) -> Result<Vec<PlacedProgram>, RunError> {
    let (mut code, end) = place_fixed(&programs[..first]);
    if further.is_empty() {
        return Ok(code);
    }
    let further: Vec<usize> = further.collect();
    let places = placement::place_randomly(programs, &further, end, arena, alignment, random);
    code.extend(places.ok_or_else(|| {
        let why = format!("the programs of one layout do not fit in {arena} bytes");
        RunError::from_harness("placing code in the arena", why, "give a smaller --unroll, or use --loop")
    })?);
    Ok(code)
}

/// Calls of a ruler of N programs, which are the first of a layout. Its chains get `loops`
/// iterations; its sentinel, the last program, gets `sentinel_loops`.
pub fn ruler_calls<const N: usize>(loops: u64, sentinel_loops: u64) -> [ProgramCall; N] {
    array::from_fn(|place| ProgramCall { place, loop_count: if place + 1 == N { sentinel_loops } else { loops } })
}

/// Programs and the layouts to run them in.
#[derive(Debug, Clone)]
pub struct Schedule {
    batch: Batch,
    orders: Vec<Vec<usize>>,
}

impl Schedule {
    /// Creates a schedule with programs but no layouts.
    pub fn new(programs: Vec<Program>, pace: BatchPace) -> Schedule {
        let BatchPace { warm_up, rounds, delay, deadline, memory } = pace;
        let (layouts, events) = (Vec::new(), Vec::new());
        let batch = Batch { programs, warm_up, rounds, layouts, memory, delay, events, deadline };
        Schedule { batch, orders: Vec::new() }
    }

    /// Creates a schedule with programs in these layouts.
    pub fn with_layouts(
        programs: Vec<Program>,
        pace: BatchPace,
        layouts: impl IntoIterator<Item = PlannedLayout>,
    ) -> Schedule {
        let mut schedule = Schedule::new(programs, pace);
        schedule.replace_layouts(layouts);
        schedule
    }

    /// Runs the same programs in other layouts.
    pub fn replace_layouts(&mut self, layouts: impl IntoIterator<Item = PlannedLayout>) {
        self.batch.layouts.clear();
        self.orders.clear();
        for PlannedLayout { code, calls, order, data, seed } in layouts {
            let round = order.iter().map(|column| calls[*column]).collect();
            self.batch.layouts.push(Layout { code, round, data, seed });
            self.orders.push(order);
        }
    }

    /// The programs.
    pub fn programs(&self) -> &[Program] {
        &self.batch.programs
    }

    /// Replaces the first layout's calls, with this number of rounds and `more` added to the
    /// deadline.
    pub(crate) fn with_calls(&self, calls: Vec<ProgramCall>, rounds: u32, more: Duration) -> Schedule {
        let Batch { programs, layouts, memory, deadline, .. } = self.batch.clone();
        let Layout { code, data, seed, .. } = layouts.into_iter().next().expect("a schedule has a layout");
        let pace = BatchPace { warm_up: 0, rounds, deadline: deadline + more, memory, ..BatchPace::default() };
        Schedule::with_layouts(programs, pace, [PlannedLayout::with_calls_in_order(code, calls, seed).with_data(data)])
    }

    /// The batch, for an executor that prepares for it.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Returns the batch, for an executor on another CPU.
    pub fn into_batch(self) -> Batch {
        self.batch
    }

    /// The columns of each layout, in the order in which a round runs them.
    pub(crate) fn orders(&self) -> impl Iterator<Item = &[usize]> {
        self.orders.iter().map(Vec::as_slice)
    }

    /// Runs the batch. Samples are ordered by layout, round and call, as they were taken.
    pub fn run(&self, executor: &mut dyn Executor) -> Result<Vec<Sample>, RunError> {
        executor.run(&self.batch)
    }

    /// Runs the batch and passes its samples to `take`, in pieces of whole layouts.
    pub fn run_streamed(&self, executor: &mut dyn Executor, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        executor.stream(&self.batch, take)
    }

    /// Splits samples by layout.
    pub(crate) fn split_by_layout<'a>(&self, samples: &'a [Sample]) -> impl Iterator<Item = &'a [Sample]> {
        samples.chunks_exact((self.batch.rounds as usize * self.batch.calls()).max(1))
    }

    /// Each layout's durations, by column.
    pub(crate) fn sort_by_column(&self, samples: &[Sample]) -> Vec<LayoutSamples> {
        let layouts = self.split_by_layout(samples).zip(&self.orders);
        layouts.map(|(samples, order)| LayoutSamples::new(samples, order)).collect()
    }

    /// The same layouts, whose calls are counted instead of timed, for an executor that prepares for
    /// them. Calls begin at once: a delay of random length would be counted too.
    pub fn to_counting(&self, events: &[EventCode]) -> Schedule {
        let batch = Batch { events: events.to_vec(), delay: 1, ..self.batch.clone() };
        Schedule { batch, orders: self.orders.clone() }
    }

    /// Runs the batch and returns the counts of each event in each layout: the mean over rounds, by
    /// column.
    pub fn count(&self, executor: &mut dyn Executor, events: &[EventCode]) -> Result<Vec<Vec<Vec<f64>>>, RunError> {
        let counted = self.count_rounds(executor, events)?;
        let means = |layouts: &Vec<LayoutSamples>| layouts.iter().map(LayoutSamples::mean_round).collect();
        Ok(counted.iter().map(means).collect())
    }

    /// Runs the batch and returns each layout's counts of each event in each round, by column.
    pub(crate) fn count_rounds(
        &self,
        executor: &mut dyn Executor,
        events: &[EventCode],
    ) -> Result<Vec<Vec<LayoutSamples>>, RunError> {
        let samples = self.to_counting(events).run(executor)?;
        let count = |sample: &Sample| Sample { start: 0, end: sample.end.wrapping_sub(sample.start) };
        let by_event = (0..events.len()).map(|event| {
            let own: Vec<Sample> = samples.iter().skip(event).step_by(events.len()).map(count).collect();
            self.sort_by_column(&own)
        });
        Ok(by_event.collect())
    }

    /// Runs the batch and returns each layout's durations, by column.
    pub fn measure(&self, executor: &mut dyn Executor) -> Result<Vec<LayoutSamples>, RunError> {
        Ok(self.sort_by_column(&self.run(executor)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::clock::Clock;
    use cyclescope_code::program::ProgramRecipe;
    use cyclescope_code::program::chains::ADD;
    use cyclescope_sim::{Scenario, SimulatedExecutor};

    #[test]
    fn durations_are_returned_by_column_in_any_call_order() {
        let clock = Clock::find_named("lfence-rdtsc-lfence").unwrap();
        let programs: Vec<Program> = [500, 1000, 2000]
            .map(|copies| ProgramRecipe { snippet: ADD, copies, ..ProgramRecipe::empty(clock) }.build())
            .into();
        let mut random = Random::new(1);
        let layouts: Vec<PlannedLayout> = (0..8)
            .map(|_| {
                let (code, _) = place_fixed(&programs);
                let calls = (0..3).map(|place| ProgramCall { place, loop_count: 1 }).collect();
                PlannedLayout::with_shuffled_calls(code, calls, &mut random)
            })
            .collect();
        assert!(layouts.iter().any(|layout| layout.order != [0, 1, 2]));
        let schedule = Schedule::with_layouts(programs, BatchPace { rounds: 3, ..BatchPace::default() }, layouts);
        let layouts = schedule.measure(&mut SimulatedExecutor::new(Scenario::default(), 2)).unwrap();
        assert_eq!(layouts.len(), 8);
        for round in layouts.iter().flat_map(LayoutSamples::rounds) {
            assert!(round[0] < round[1] && round[1] < round[2], "{round:?}");
        }
    }
}
