//! Times programs in core cycles together with the ruler. For contrasts of programs that are not just
//! longer or shorter versions of one snippet.
//!
//! A round holds both lengths of the ruler's two chains, the width sentinel, and further programs.
//! Rounds hit by an interrupt are dropped whole. Each layout varies the ruler's iterations, the
//! order, and the addresses of further programs. The figure of a further program includes its pair
//! of readings, which cancels in contrasts.

use super::contrast::Contrast;
use super::schedule::{self, BatchPace, PlannedLayout, Schedule};
use super::sibling::{KeptReplicates, SiblingPolicy};
use crate::placement;
use crate::ruler::LeastWidth;
use crate::ruler::{
    ADD_SPAN, Gauge, IMUL_SPAN, KEPT_LEAST, LayoutSamples, RulerPrograms, SENTINEL_LOOPS, UndisturbedBand,
    UnsharedWidth, column, instrument_margin,
};
use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock::Clock;
use cyclescope_code::context::FloatElement;
use cyclescope_code::program::Program;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::{Interval, trimmed_interval};
use cyclescope_events::EventCode;
use cyclescope_exec::{Executor, ProgramCall, Sample};

/// Approximate iterations of the chains. The ruler's part of a round takes some 6 µs, well below a
/// timer's period.
const CHAIN_LOOPS: usize = 200;
/// Factor on the sentinel's usual iterations, since it is read only a few times.
const SENTINEL_FACTOR: u64 = 8;
const WARM_UP: u32 = 2;

/// The programs of a round.
pub struct RulerRounds {
    programs: Vec<Program>,
    /// The step of the readings in raw units.
    step: f64,
    memory: ProgramMemory,
    /// Offset of the further programs' bodies from the start of a cache line, in bytes; `None`
    /// means random.
    alignment: Option<usize>,
    /// Loop iterations of the further programs. A round calls each program once with each number.
    /// If empty, a round calls each once with the chains' iterations.
    iterations: Vec<u64>,
}

/// The readings of one layout.
pub struct LayoutRounds {
    /// Iterations of the chains.
    loops: u64,
    samples: LayoutSamples,
    /// Start and end of each round, as readings of the timing method.
    times: Vec<[u64; 2]>,
    step: f64,
}

/// Figures of one layout, or of one round.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutReading {
    /// Raw units of one link of the `imul` chain.
    pub imul: f64,
    /// Raw units of one link of the `add` chain.
    pub add: f64,
    /// Independent additions in the time of one link of the `add` chain.
    pub width: f64,
    /// Standard error of `width`, as a share of it.
    pub width_error: f64,
    /// Links of the `imul` chain by which its two lengths differ.
    pub imul_links: f64,
    /// Links of the `add` chain by which its two lengths differ.
    pub add_links: f64,
    /// Raw units of each call of each further program, including its pair of readings.
    pub further: Vec<f64>,
    /// Rounds used.
    pub kept: usize,
    /// Rounds dropped.
    pub dropped: usize,
}

impl RulerRounds {
    /// Rounds with the ruler alone, read by a timing method with this step.
    pub fn new(clock: &Clock, step: f64) -> RulerRounds {
        RulerRounds::for_mode(clock, step, CodeMode::default())
    }

    /// The same in code of a mode, which further programs must have too.
    pub fn for_mode(clock: &Clock, step: f64, mode: CodeMode) -> RulerRounds {
        RulerRounds {
            programs: RulerPrograms::for_mode(clock, mode).into_programs().into(),
            step,
            memory: ProgramMemory::standard(FloatElement::default(), false),
            alignment: None,
            iterations: Vec::new(),
        }
    }

    /// Adds these programs; `touches_memory` says whether they access memory areas.
    pub fn with_programs(self, programs: impl IntoIterator<Item = Program>, touches_memory: bool) -> RulerRounds {
        let programs = self.programs.into_iter().chain(programs).collect();
        RulerRounds { programs, memory: ProgramMemory::standard(FloatElement::default(), touches_memory), ..self }
    }

    /// Uses other memory areas.
    pub fn with_memory(self, memory: ProgramMemory) -> RulerRounds {
        RulerRounds { memory, ..self }
    }

    /// Places all further bodies this many bytes after the start of a cache line.
    pub fn with_alignment(self, bytes: usize) -> RulerRounds {
        RulerRounds { alignment: Some(bytes), ..self }
    }

    /// Calls each further program once with each of these numbers of loop iterations.
    pub fn with_iterations(self, iterations: &[u64]) -> RulerRounds {
        RulerRounds { iterations: iterations.to_vec(), ..self }
    }

    /// Runs this number of layouts, each with this number of rounds.
    pub fn run(
        &self,
        executor: &mut dyn Executor,
        layouts: usize,
        rounds: u32,
        random: &mut Random,
    ) -> Result<Vec<LayoutRounds>, RunError> {
        let (schedule, loops) = self.plan_layouts(executor.arena_len(), layouts, rounds, random)?;
        let samples = schedule.run(executor)?;
        let times = schedule.split_by_layout(&samples);
        let times = times.map(|layout| layout.chunks_exact(self.calls_per_round()).map(round_ends).collect());
        let layouts = schedule.sort_by_column(&samples).into_iter().zip(times).zip(loops);
        let step = self.step;
        Ok(layouts.map(|((samples, times), loops)| LayoutRounds { loops, samples, times, step }).collect())
    }

    /// Counts an event in this number of layouts, each with this number of rounds. The figures are
    /// counts instead of raw units.
    pub fn count(
        &self,
        executor: &mut dyn Executor,
        event: EventCode,
        layouts: usize,
        rounds: u32,
        random: &mut Random,
    ) -> Result<Vec<LayoutReading>, RunError> {
        let (schedule, loops) = self.plan_layouts(executor.arena_len(), layouts, rounds, random)?;
        let counts = schedule.count_rounds(executor, &[event])?.swap_remove(0);
        let read = |(samples, loops)| LayoutRounds { loops, samples, times: Vec::new(), step: self.step }.read();
        Ok(counts.into_iter().zip(loops).filter_map(read).collect())
    }

    /// Measures `layouts` layouts of `rounds` rounds. Leaves out layouts with a busy sibling if
    /// enough others remain. `known` is the least width of an unshared core, from
    /// micro-architecture data.
    pub fn run_unshared(
        &self,
        executor: &mut dyn Executor,
        layouts: usize,
        rounds: u32,
        known: Option<LeastWidth>,
        random: &mut Random,
    ) -> Result<KeptReplicates<LayoutReading>, RunError> {
        let layouts = self.run(executor, layouts, rounds, random)?;
        let readings: Vec<_> = layouts.iter().filter_map(LayoutRounds::read).collect();
        let quiet = find_unshared_width(&readings, known);
        Ok(select_unshared(readings, quiet))
    }

    /// The layouts of some rounds, without a reading of the ruler: to count events.
    pub fn build_schedule(
        &self,
        arena: usize,
        layouts: usize,
        rounds: u32,
        random: &mut Random,
    ) -> Result<Schedule, RunError> {
        Ok(self.plan_layouts(arena, layouts, rounds, random)?.0)
    }

    /// Plans layouts. Returns the iterations of the chains of each too.
    fn plan_layouts(
        &self,
        arena: usize,
        layouts: usize,
        rounds: u32,
        random: &mut Random,
    ) -> Result<(Schedule, Vec<u64>), RunError> {
        let planned: Result<Vec<_>, RunError> = (0..layouts).map(|_| self.plan_layout(arena, random)).collect();
        let (planned, loops): (Vec<_>, Vec<_>) = planned?.into_iter().unzip();
        let pace = BatchPace { warm_up: WARM_UP, rounds, memory: self.memory.clone(), ..BatchPace::default() };
        Ok((Schedule::with_layouts(self.programs.clone(), pace, planned), loops))
    }

    /// Plans one layout. Returns the iterations of its chains too.
    fn plan_layout(&self, arena: usize, random: &mut Random) -> Result<(PlannedLayout, u64), RunError> {
        let further = column::WHOLE..self.programs.len();
        let code = schedule::place_programs(&self.programs, column::WHOLE, further, arena, self.alignment, random)?;
        let count = (CHAIN_LOOPS - CHAIN_LOOPS / 4 + random.below(CHAIN_LOOPS / 2)) as u64;
        let ruler = schedule::ruler_calls::<{ column::WHOLE }>(count, SENTINEL_FACTOR * SENTINEL_LOOPS);
        let own = [count];
        let counts = if self.iterations.is_empty() { &own[..] } else { &self.iterations };
        let further = (column::WHOLE..code.len())
            .flat_map(|place| counts.iter().map(move |&loop_count| ProgramCall { place, loop_count }));
        let calls: Vec<ProgramCall> = ruler.into_iter().chain(further).collect();
        let mut order: Vec<usize> = (0..calls.len()).collect();
        random.shuffle(&mut order);
        let data = placement::displace_data(&self.memory, random);
        Ok((PlannedLayout { code, calls, order, data, seed: random.next_bits() }, count))
    }

    /// Calls of a round.
    fn calls_per_round(&self) -> usize {
        column::WHOLE + (self.programs.len() - column::WHOLE) * self.iterations.len().max(1)
    }
}

/// The start of the first call and the end of the last one.
fn round_ends(round: &[Sample]) -> [u64; 2] {
    let moments = || round.iter().map(Sample::moments);
    [moments().map(|[first, _]| first).min(), moments().map(|[_, last]| last).max()].map(Option::unwrap_or_default)
}

impl LayoutRounds {
    /// The undisturbed rounds, each with its index.
    fn undisturbed_rounds(&self) -> impl Iterator<Item = (usize, &[f64])> {
        // Uses the whole interquartile range: a program with two modes keeps both.
        let band_of_call = |call: usize| UndisturbedBand::from_values(self.samples.column(call).collect(), self.step);
        let bands: Vec<Option<UndisturbedBand>> = (0..self.samples.columns()).map(band_of_call).collect();
        let kept = move |(_, round): &(usize, &[f64])| {
            let mut calls = round.iter().zip(&bands);
            calls.all(|(duration, band)| band.is_some_and(|band| band.contains(*duration)))
        };
        self.samples.rounds().enumerate().filter(kept)
    }

    /// Figures of the layout; `None` if too few rounds were undisturbed.
    pub fn read(&self) -> Option<LayoutReading> {
        let kept: Vec<&[f64]> = self.undisturbed_rounds().map(|(_, round)| round).collect();
        if kept.len() < KEPT_LEAST {
            return None;
        }
        let mean = |call: usize| kept.iter().map(|round| round[call]).sum::<f64>() / kept.len() as f64;
        let means: Vec<f64> = (0..self.samples.columns()).map(mean).collect();
        Some(self.reading_from(&means, kept.len()))
    }

    /// Durations of the further programs in each undisturbed round, in raw units, including their
    /// pairs of readings.
    pub fn further_durations(&self) -> impl Iterator<Item = &[f64]> {
        self.undisturbed_rounds().map(|(_, round)| &round[column::WHOLE..])
    }

    /// Duration of each call in raw units; infinite if the clock ran backwards.
    pub fn durations(&self) -> impl Iterator<Item = f64> {
        (0..self.samples.columns()).flat_map(|call| self.samples.column(call))
    }

    /// The median time of the layout's rounds, as a reading of the timing method.
    pub fn middle_time(&self) -> u64 {
        let start = self.times.iter().map(|[start, _]| *start).min().unwrap_or_default();
        let end = self.times.iter().map(|[_, end]| *end).max().unwrap_or_default();
        start + end.saturating_sub(start) / 2
    }

    /// Start, end and width of each undisturbed round.
    pub fn round_widths(&self) -> impl Iterator<Item = (u64, u64, f64)> {
        self.undisturbed_rounds().map(|(number, round)| {
            let [start, end] = self.times[number];
            (start, end, self.reading_from(round, 1).width)
        })
    }

    fn reading_from(&self, durations: &[f64], kept: usize) -> LayoutReading {
        // In links of `imul`, since its latency may still be unknown.
        let gauge = Gauge::whole_ruler(self.loops, SENTINEL_FACTOR * SENTINEL_LOOPS, 1.0);
        let scale = gauge.read(durations);
        LayoutReading {
            imul: scale.rate,
            add: scale.add,
            width: scale.width,
            width_error: gauge.width_error(&scale, self.step, kept),
            imul_links: IMUL_SPAN * self.loops as f64,
            add_links: ADD_SPAN * self.loops as f64,
            further: durations[column::WHOLE..].to_vec(),
            kept,
            dropped: self.samples.rounds().len() - kept,
        }
    }
}

/// Leaves out layouts with a busy sibling if enough others remain.
pub fn select_unshared(readings: Vec<LayoutReading>, quiet: UnsharedWidth) -> KeptReplicates<LayoutReading> {
    SiblingPolicy::USUAL.keep_unshared(readings, quiet, |reading| (reading.width, reading.width_error))
}

/// The width of an unshared core, from these layouts. `known` is its least by
/// micro-architecture data.
pub fn find_unshared_width(readings: &[LayoutReading], known: Option<LeastWidth>) -> UnsharedWidth {
    UnsharedWidth::from_widths(readings.iter().map(|reading| (reading.width, reading.width_error)), known)
}

/// A contrast of further programs in core cycles: the trimmed mean of at least five layouts. Under
/// background load some layouts are wrong by tens of cycles. A few of these would make every
/// interval useless.
///
/// `imul_latency` is the latency of `imul r64, r64` in core cycles. The interval contains the
/// instrument's error for one difference of whole programs. So give the contrast weights near 1,
/// and divide the result by the number of copies.
pub fn estimate_contrast(
    readings: &[LayoutReading],
    imul_latency: f64,
    contrast: &Contrast,
    confidence: f64,
) -> Option<Interval> {
    let in_cycles = |reading: &LayoutReading| contrast.evaluate(&reading.further) / reading.imul * imul_latency;
    let values: Vec<f64> = readings.iter().map(in_cycles).collect();
    trimmed_interval(&values, confidence).map(|interval| interval.widen_by(instrument_margin(confidence)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::program::ProgramRecipe;
    use cyclescope_sim::{Scenario, SimulatedExecutor, SimulatedNoise};

    /// A machine whose pair takes 48 ticks and whose `add` takes one cycle.
    fn readings(scenario: Scenario) -> Vec<LayoutReading> {
        let clock = Clock::find_named("lfence-rdtsc-lfence").unwrap();
        let chain = |copies| {
            ProgramRecipe { snippet: cyclescope_code::program::chains::ADD, copies, ..ProgramRecipe::empty(clock) }
                .build()
        };
        let rounds = RulerRounds::new(clock, scenario.step as f64).with_programs([0, 10, 30].map(chain), false);
        let mut machine = SimulatedExecutor::new(scenario, 3);
        let readings = rounds.run(&mut machine, 16, 64, &mut Random::new(4)).unwrap();
        readings.iter().filter_map(LayoutRounds::read).collect()
    }

    #[test]
    fn contrasts_are_in_core_cycles() {
        for step in [1, 26] {
            let readings = readings(Scenario { step, ..Scenario::default() });
            let difference = estimate_contrast(&readings, 3.0, &Contrast::slope_between([1, 2], 1.0), 0.999).unwrap();
            assert!(difference.contains(20.0), "{difference:?}");
            // Three pairs: one has weight -3, and all weights sum to 0.
            let none =
                estimate_contrast(&readings, 3.0, &Contrast::new([(0, 2.0), (1, -3.0), (2, 1.0)]), 0.999).unwrap();
            assert!(none.contains(0.0), "{none:?}");
        }
    }

    #[test]
    fn disturbed_rounds_are_dropped_whole() {
        let noise = SimulatedNoise::LogNormal { probability: 0.01, median: 5000.0, sigma: 0.3 };
        let readings = readings(Scenario { noise, ..Scenario::default() });
        assert!(readings.iter().map(|reading| reading.dropped).sum::<usize>() > 20);
        let difference = estimate_contrast(&readings, 3.0, &Contrast::slope_between([1, 2], 1.0), 0.999).unwrap();
        assert!(difference.contains(20.0) && difference.half_width() < 2.0, "{difference:?}");
    }

    #[test]
    fn layouts_beside_a_busy_sibling_are_left_out() {
        let mut all = readings(Scenario::default());
        for reading in &mut all[..5] {
            reading.width /= 2.0;
        }
        let KeptReplicates { used, shared, .. } = select_unshared(all.clone(), find_unshared_width(&all, None));
        assert_eq!((used.len(), shared), (11, false));
        let few = all[..6].to_vec();
        assert_eq!(
            select_unshared(few.clone(), find_unshared_width(&all, None)),
            KeptReplicates { used: few, shared: true, shared_count: 5 }
        );
    }
}
