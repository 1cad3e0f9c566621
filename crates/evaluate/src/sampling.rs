//! Takes the ensembles of one method: empty pairs of readings, as many as the paper has, in constant memory.
//!
//! Each ensemble is one batch at one address. Its samples come in blocks with a ruler at their ends, see
//! [`super::trimmed_ensemble`]; the paper's figures are those of all samples, in the order in which they were taken.

use super::TestedClock;
use super::ensemble::Ensemble;
use super::ensemble_reader::{EnsembleReader, SampledEnsembles, SamplingShape, SamplingSize};
use super::trimmed_ensemble::{self, RULERS, UnitScale};
use cyclescope_code::program::{Program, ProgramRecipe};
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_exec::{DEFAULT_DELAY, Executor, PlacedProgram, ProgramCall, Sample};
use cyclescope_measure::schedule::{self, BatchPace, PlannedLayout, Schedule};
use cyclescope_measure::study::StopReason;
use std::time::Duration;

/// A method gets all samples where a typical pair takes at most this number of TSC ticks,
const FULL_TICKS: f64 = 200.0;

/// and a sample with everything around it this number of seconds: one of the paper's methods has short pairs between
/// two CPUIDs, which in a virtual machine take 15 µs.
const FULL_SECONDS: f64 = 2e-6;

/// How long a sample takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SampleCost {
    /// Seconds a sample, with everything around it.
    pub seconds: f64,
    /// Raw units of a typical pair.
    pub pair: f64,
}

impl SampleCost {
    /// Whether a method this quick gets as many samples as were asked for; `ticks_per_unit` are TSC ticks a raw unit.
    pub(crate) fn is_quick(&self, ticks_per_unit: f64) -> bool {
        self.pair * ticks_per_unit <= FULL_TICKS && self.seconds <= FULL_SECONDS
    }
}

/// Samples in a block at most, and the time that a block should take at most: a frequency holds for half a
/// millisecond at least, and the ruler should take some per cent of the time.
const BLOCK_MOST: usize = 1000;
const BLOCK_TIME: f64 = 100e-6;
/// Samples in a block at least, whatever it takes: of a few, one or two are near their minimum whatever they are.
const BLOCK_LEAST: usize = 32;
/// Warm-up blocks before each ensemble: caches, predictors.
const WARM_UP: u32 = 1;
/// Block and number of blocks with which the time of a sample is found: the second is for methods with which the first
/// takes too short a time to be distinguished from the start of a batch, and in which the ruler would weigh too much.
const PILOT_SIZES: [(usize, u32); 2] = [(16, 2), (BLOCK_MOST, 8)];
/// How often: the least time counts, for a time slice of another task makes one long.
const PILOT_TIMES: usize = 5;
/// What a pilot should take at least, in seconds: several times what a batch of nothing takes.
const PILOT_TIME: f64 = 300e-6;
/// A batch counts as hung after this, plus the next for each sample: a pair of CPUIDs that leave the guest takes 15 to
/// 40 µs.
const BATCH_PATIENCE: Duration = Duration::from_secs(60);
const SLOWEST_SAMPLE: Duration = Duration::from_micros(200);
/// Delays span this number of steps of the clock, for which a core cycle is half a raw unit or more.
const DELAY_STEPS: f64 = 4.0;

/// Ensembles that are taken even where time is up: fewer say nothing.
const ENSEMBLES_LEAST: u32 = 10;
/// Moments between ensembles at which something else is done, at most.
pub(crate) const PAUSES_MOST: u32 = 8;

/// An ensemble that is complete.
pub(crate) struct CompletedEnsemble {
    /// Its number, from 0.
    pub number: usize,
    pub ensemble: Ensemble,
    /// When it was complete, by the executor's time.
    pub now: Duration,
}

/// Takes an ensemble.
pub(crate) type EnsembleFollower<'a> = dyn FnMut(&CompletedEnsemble) -> Result<(), StopReason> + 'a;

/// How long samples may be taken, by the executor's time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SamplingSpan {
    pub from: Duration,
    pub until: Duration,
}

/// The empty pair of one method, ready to be sampled.
pub(crate) struct PairSampler<'a> {
    tested: &'a TestedClock<'a>,
    programs: Vec<Program>,
    /// Where the programs are placed.
    code: Vec<PlacedProgram>,
}

impl<'a> PairSampler<'a> {
    /// Builds the programs.
    pub(crate) fn new(tested: &'a TestedClock) -> PairSampler<'a> {
        let mut programs = vec![ProgramRecipe::empty(tested.clock).build()];
        programs.extend(trimmed_ensemble::block_ruler_programs(tested));
        // The ruler's loops at the start of cache lines.
        let (code, _) = schedule::place_fixed(&programs);
        PairSampler { tested, programs, code }
    }

    /// The shape of an evaluation of this size, where a sample takes this number of seconds.
    pub(crate) fn sampling_shape(&self, size: SamplingSize, seconds: f64) -> SamplingShape {
        let block = (BLOCK_TIME / seconds) as usize;
        let block = block.clamp(BLOCK_LEAST, BLOCK_MOST).min(size.samples as usize);
        let TestedClock { step, imul_latency, .. } = *self.tested;
        SamplingShape { size, block, scale: UnitScale { step, imul_latency } }
    }

    /// A schedule of `blocks` blocks of `block` samples each, for the ensemble of this number.
    fn build_schedule(&self, block: usize, blocks: u32, number: usize, seed: u64) -> Schedule {
        let mut calls = vec![ProgramCall { place: 0, loop_count: 1 }; block];
        calls.extend(trimmed_ensemble::block_ruler_calls(self.tested.step, number, 1));
        let delay = (DELAY_STEPS * 2.0 * self.tested.step).clamp(16.0, f64::from(DEFAULT_DELAY)) as u32;
        let deadline = BATCH_PATIENCE + SLOWEST_SAMPLE * (block as u32 * (blocks + WARM_UP));
        let pace = BatchPace { warm_up: WARM_UP, rounds: blocks, delay, deadline, ..BatchPace::default() };
        Schedule::with_layouts(
            self.programs.clone(),
            pace,
            [PlannedLayout::with_calls_in_order(self.code.clone(), calls, seed)],
        )
    }

    /// How long a sample takes, about.
    pub(crate) fn run_pilot(&self, executor: &mut dyn Executor, random: &mut Random) -> Result<SampleCost, RunError> {
        let mut cost = SampleCost { seconds: 0.0, pair: 0.0 };
        for (block, blocks) in PILOT_SIZES {
            let (mut least, mut pairs) = (f64::INFINITY, Vec::new());
            for _ in 0..PILOT_TIMES {
                let schedule = self.build_schedule(block, blocks, 0, random.next_bits());
                let started = executor.now();
                let samples = schedule.run(executor)?;
                least = least.min(executor.now().saturating_sub(started).as_secs_f64());
                let raw = |round: &[Sample]| round[0].end.wrapping_sub(round[0].start) as f64;
                pairs.extend(samples.chunks_exact(block + RULERS).map(raw));
            }
            // With the untimed block before.
            let seconds = least / (block * (blocks + WARM_UP) as usize) as f64;
            cost = SampleCost { seconds, pair: cyclescope_core::statistics::median(&mut pairs) };
            if least >= PILOT_TIME {
                break;
            }
        }
        Ok(cost)
    }

    /// Takes ensembles until the size or the deadline is reached. Whoever takes them may end it all. At a few moments
    /// spread over the time something else is done `between` ensembles.
    pub(crate) fn take_ensembles(
        &self,
        executor: &mut dyn Executor,
        shape: SamplingShape,
        span: SamplingSpan,
        random: &mut Random,
        between: &mut dyn FnMut(&mut dyn Executor, &mut Random) -> Result<(), RunError>,
        take: &mut EnsembleFollower,
    ) -> Result<SampledEnsembles, StopReason> {
        let mut now = span.from;
        let mut reader = EnsembleReader::new(shape);
        for number in 0..shape.size.ensembles {
            if number % shape.size.ensembles.div_ceil(PAUSES_MOST) == 0 {
                between(executor, random)?;
            }
            let schedule = self.build_schedule(shape.block, shape.count_blocks(), number as usize, random.next_bits());
            let mut ensemble = Ensemble::default();
            // An executor may hand over a batch of one layout in one piece only.
            schedule.run_streamed(executor, &mut |readings| ensemble = reader.read_ensemble(readings))?;
            now = executor.now();
            take(&CompletedEnsemble { number: number as usize, ensemble, now })?;
            if number + 1 >= ENSEMBLES_LEAST && now >= span.until {
                break;
            }
        }
        Ok(reader.finish(now.saturating_sub(span.from).as_secs_f64()))
    }
}
