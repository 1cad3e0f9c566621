//! Takes the ensembles of one method: empty pairs of readings, as many as in the paper, in constant
//! memory.
//!
//! Each ensemble is one batch at one address. Its samples come in blocks that end with a ruler, see
//! [`super::trimmed_ensemble`]. The paper's figures cover all samples in the order of their
//! measurement.

use super::TestedClock;
use super::ensemble::Ensemble;
use super::ensemble_reader::{EnsembleReader, SampledEnsembles, SamplingShape, SamplingSize};
use super::trimmed_ensemble::{self, RULERS, UnitScale};
use cyclescope_code::program::Program;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_events::EventCode;
use cyclescope_exec::{DEFAULT_DELAY, Executor, PlacedProgram, ProgramCall, Sample};
use cyclescope_measure::schedule::{self, BatchPace, PlannedLayout, Schedule};
use cyclescope_measure::study::StopReason;
use std::time::Duration;

/// Most TSC ticks in a typical pair of a quick method. Quick methods get all samples.
const FULL_TICKS: f64 = 200.0;
/// Most seconds per sample of a quick method, overhead included. One of the paper's methods has
/// short pairs between two CPUIDs. In a virtual machine these take 15 µs.
const FULL_SECONDS: f64 = 2e-6;

/// The time that a sample takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SampleCost {
    /// Seconds per sample, overhead included.
    pub seconds: f64,
    /// Raw units of a typical pair.
    pub pair: f64,
}

impl SampleCost {
    /// Whether a method is quick enough for the full number of samples. `ticks_per_unit` is in TSC
    /// ticks per raw unit.
    pub(crate) fn is_quick(&self, ticks_per_unit: f64) -> bool {
        self.pair * ticks_per_unit <= FULL_TICKS && self.seconds <= FULL_SECONDS
    }
}

/// Most samples in a block, and most time for it. A frequency holds for at least half a
/// millisecond, and the ruler should take a few per cent of the time.
const BLOCK_MOST: usize = 1000;
const BLOCK_TIME: f64 = 100e-6;
/// Fewest samples in a block, however long they take. With fewer, a noisy method also has one or
/// two near its minimum.
const BLOCK_LEAST: usize = 32;
/// Warm-up blocks before each ensemble, for caches and predictors.
const WARM_UP: u32 = 1;
/// Samples per block and blocks of the two pilot runs. The second is for quick methods: the first
/// is too short for them compared with the start of a batch, and the ruler would take too large a
/// share.
const PILOT_SIZES: [(usize, u32); 2] = [(16, 2), (BLOCK_MOST, 8)];
/// Repetitions of the pilot. The shortest time counts, because a time slice of another task
/// lengthens one.
const PILOT_TIMES: usize = 5;
/// Shortest acceptable pilot, in seconds: several times the duration of an empty batch.
const PILOT_TIME: f64 = 300e-6;
/// A batch counts as hung after this time plus [`SLOWEST_SAMPLE`] per sample. A pair of CPUIDs that
/// exit to the hypervisor takes 15 to 40 µs.
const BATCH_PATIENCE: Duration = Duration::from_secs(60);
const SLOWEST_SAMPLE: Duration = Duration::from_micros(200);
/// Delays span this number of clock steps. A core cycle is assumed to be at least half a raw unit.
const DELAY_STEPS: f64 = 4.0;

/// Fewest ensembles, taken even if time is up.
const ENSEMBLES_LEAST: u32 = 10;
/// Most pauses between ensembles for other work.
pub(crate) const PAUSES_MOST: u32 = 8;

/// A completed ensemble.
pub(crate) struct CompletedEnsemble {
    /// Number of the ensemble, from 0.
    pub number: usize,
    pub ensemble: Ensemble,
    /// Time of completion, by the executor's clock.
    pub now: Duration,
}

/// Receives each completed ensemble.
pub(crate) type EnsembleFollower<'a> = dyn FnMut(&CompletedEnsemble) -> Result<(), StopReason> + 'a;

/// Start and end of the sampling, by the executor's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SamplingSpan {
    pub from: Duration,
    pub until: Duration,
}

/// The empty pair of one method, ready for sampling.
pub(crate) struct PairSampler<'a> {
    tested: &'a TestedClock<'a>,
    programs: Vec<Program>,
    /// Placed programs: the pair and the ruler.
    code: Vec<PlacedProgram>,
}

impl<'a> PairSampler<'a> {
    /// Builds and places the programs.
    pub(crate) fn new(tested: &'a TestedClock) -> PairSampler<'a> {
        let mut programs = vec![tested.empty_recipe().build()];
        programs.extend(trimmed_ensemble::block_ruler_programs(tested));
        // The ruler's loops begin at cache line boundaries.
        let (code, _) = schedule::place_fixed(&programs);
        PairSampler { tested, programs, code }
    }

    /// The shape of an evaluation of this size; a sample takes `seconds`.
    pub(crate) fn sampling_shape(&self, size: SamplingSize, seconds: f64) -> SamplingShape {
        let block = (BLOCK_TIME / seconds) as usize;
        let block = block.clamp(BLOCK_LEAST, BLOCK_MOST).min(size.samples as usize);
        let TestedClock { step, imul_latency, .. } = *self.tested;
        SamplingShape { size, block, scale: UnitScale { step, imul_latency } }
    }

    /// A schedule for ensemble `number`: `blocks` blocks of `block` samples each.
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

    /// Estimates the time of a sample.
    pub(crate) fn run_pilot(&self, executor: &mut dyn Executor, random: &mut Random) -> Result<SampleCost, RunError> {
        let mut cost = SampleCost { seconds: 0.0, pair: 0.0 };
        for (block, blocks) in PILOT_SIZES {
            let (mut least, mut pairs) = (f64::INFINITY, Vec::new());
            for _ in 0..PILOT_TIMES {
                let schedule = self.build_schedule(block, blocks, 0, random.next_bits());
                let started = executor.now();
                let samples = schedule.run(executor)?;
                least = least.min(executor.now().saturating_sub(started).as_secs_f64());
                let raw = |round: &[Sample]| round[0].whole_duration() as f64;
                pairs.extend(samples.chunks_exact(block + RULERS).map(raw));
            }
            // The untimed warm-up block counts as well.
            let seconds = least / (block * (blocks + WARM_UP) as usize) as f64;
            cost = SampleCost { seconds, pair: cyclescope_core::statistics::median(&mut pairs) };
            if least >= PILOT_TIME {
                break;
            }
        }
        Ok(cost)
    }

    /// Counts events in an ensemble of some blocks, each of this number of samples. Returns the mean
    /// count of a sample for each event.
    pub(crate) fn count_ensemble(
        &self,
        executor: &mut dyn Executor,
        (block, blocks): (usize, u32),
        number: usize,
        seed: u64,
        codes: &[EventCode],
    ) -> Result<Vec<f64>, RunError> {
        let counts = self.build_schedule(block, blocks, number, seed).count(executor, codes)?;
        // The ruler's calls follow those of the samples.
        let mean = |event: &Vec<Vec<f64>>| event[0][..block].iter().sum::<f64>() / block as f64;
        Ok(counts.iter().map(mean).collect())
    }

    /// Takes ensembles until the size or the deadline is reached. An error from the follower ends
    /// the sampling. `between` runs at a few moments spread over the time.
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
            // An executor may deliver a batch of one layout in a single piece.
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
