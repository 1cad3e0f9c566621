//! Summarises the samples of one method, ensemble by ensemble, in constant memory.

use super::ensemble::{DurationCount, Ensemble, INSANE_DURATION};
use super::trimmed_ensemble::{EnsembleBlocks, RULERS, TrimmedEnsemble, UnitScale};
use cyclescope_exec::Sample;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Number of ensembles and of samples in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamplingSize {
    /// Number of ensembles.
    pub ensembles: u32,
    /// Samples in each ensemble.
    pub samples: u32,
}

impl SamplingSize {
    /// The paper's size: a hundred million samples.
    pub const PAPER: SamplingSize = SamplingSize { ensembles: 1000, samples: 100_000 };

    /// The number of ensembles is not reduced below this: a variance of variances of fewer says
    /// little.
    const ENSEMBLES_LEAST: u32 = 100;
    /// The number of samples in an ensemble is not reduced below this.
    const SAMPLES_LEAST: u32 = 100;

    /// Total number of samples.
    pub fn total_samples(self) -> u64 {
        u64::from(self.ensembles) * u64::from(self.samples)
    }

    /// Largest size of at most `total` samples. Reduces the number of ensembles first, then their
    /// samples. Neither drops below 100 if more were requested.
    pub(crate) fn cut_to_total(self, total: f64) -> SamplingSize {
        if self.total_samples() as f64 <= total {
            return self;
        }
        let cut = |count: u32, share: f64, least: u32| ((f64::from(count) * share) as u32).max(least).min(count);
        let ensembles = cut(self.ensembles, total / self.total_samples() as f64, SamplingSize::ENSEMBLES_LEAST);
        let left = SamplingSize { ensembles, ..self };
        let samples = cut(self.samples, total / left.total_samples() as f64, SamplingSize::SAMPLES_LEAST);
        SamplingSize { ensembles, samples }
    }
}

/// Shape of the readings of an evaluation: ensembles, blocks and units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplingShape {
    /// Number of ensembles, and of samples in each.
    pub size: SamplingSize,
    /// Samples in a block. The ruler's calls follow each block.
    pub block: usize,
    /// Converts raw units to steps and core cycles.
    pub scale: UnitScale,
}

impl SamplingShape {
    /// Blocks in an ensemble. Samples of the last block beyond the ensemble's size are dropped.
    pub(crate) fn count_blocks(&self) -> u32 {
        (self.size.samples as usize).div_ceil(self.block) as u32
    }
}

/// Number of durations that are kept in order: as many as the notes on RDTSC(P) list.
const FIRST_DURATIONS: usize = 1000;

/// Summary of a method's samples.
#[derive(Debug, Clone)]
pub struct SampledEnsembles {
    /// The requested shape.
    pub shape: SamplingShape,
    /// The completed ensembles.
    pub ensembles: Vec<Ensemble>,
    /// The trimmed part of each ensemble. An ensemble without a valid ruler is missing.
    pub trimmed: Vec<TrimmedEnsemble>,
    /// The first durations in the order of their measurement, without those that ran backwards.
    pub first_durations: Vec<u64>,
    /// All samples: exact below 32 768 raw units, four digits above.
    pub histogram: Histogram<u64>,
    /// Duration of the sampling, in seconds.
    pub seconds: f64,
}

/// Turns samples into [`SampledEnsembles`], one ensemble at a time.
pub(crate) struct EnsembleReader {
    sampled: SampledEnsembles,
    tally: DurationTally,
}

impl EnsembleReader {
    /// Creates a reader for readings of this shape.
    pub(crate) fn new(shape: SamplingShape) -> EnsembleReader {
        let sampled = SampledEnsembles {
            shape,
            ensembles: Vec::new(),
            trimmed: Vec::new(),
            first_durations: Vec::new(),
            histogram: Histogram::new(4).expect("four digits are allowed"),
            seconds: 0.0,
        };
        EnsembleReader { sampled, tally: DurationTally::new() }
    }

    /// Reads one complete ensemble.
    pub(crate) fn read_ensemble(&mut self, readings: &[Sample]) -> Ensemble {
        let SamplingShape { size, block, scale } = self.sampled.shape;
        let mut ensemble = Ensemble::default();
        let mut blocks = EnsembleBlocks::default();
        let mut missing = size.samples as usize;
        for round in readings.chunks_exact(block + RULERS) {
            let (own, ruler) = round.split_at(block);
            let own = &own[..own.len().min(missing)];
            missing -= own.len();
            let wanted = FIRST_DURATIONS.saturating_sub(self.sampled.first_durations.len());
            if wanted > 0 {
                let durations = own.iter().map(|sample| sample.end.wrapping_sub(sample.start));
                let sane = durations.filter(|duration| *duration < INSANE_DURATION);
                self.sampled.first_durations.extend(sane.take(wanted));
            }
            let durations = self.tally.count_durations(own);
            ensemble.add_durations(durations);
            blocks.add_block(durations, ruler, &scale, self.sampled.ensembles.len());
            for occurrence in durations.iter().filter(|occurrence| occurrence.duration < INSANE_DURATION) {
                self.sampled
                    .histogram
                    .record_n(occurrence.duration, occurrence.count)
                    .expect("the histogram grows as it has to");
            }
        }
        self.sampled.trimmed.extend(blocks.finish_ensemble());
        self.sampled.ensembles.push(ensemble);
        ensemble
    }

    /// Returns the summary; `seconds` is the duration of the sampling.
    pub(crate) fn finish(self, seconds: f64) -> SampledEnsembles {
        SampledEnsembles { seconds, ..self.sampled }
    }
}

/// The durations in a block and the number of occurrences of each. Most blocks have a dozen
/// different durations. Later steps then run a dozen times instead of a thousand.
struct DurationTally {
    /// Counts by distance from the block's shortest duration. Two sets alternate, because a count
    /// must wait for the preceding one if both have the same index.
    near: [[u32; COUNTED_DISTANCES]; 2],
    found: Vec<DurationCount>,
}

/// Distances that are counted. Larger ones are listed.
const COUNTED_DISTANCES: usize = 1024;

impl DurationTally {
    fn new() -> DurationTally {
        DurationTally { near: [[0; COUNTED_DISTANCES]; 2], found: Vec::new() }
    }

    /// Durations with their counts. Those far from the shortest come first, each listed separately.
    fn count_durations(&mut self, samples: &[Sample]) -> &[DurationCount] {
        // Interruptions are among what an evaluation finds out.
        let raw = Sample::whole_duration;
        let base = samples.iter().map(raw).min().unwrap_or(0);
        self.found.clear();
        let mut widest = 0;
        for (turn, sample) in samples.iter().enumerate() {
            let above = raw(sample) - base;
            if above < COUNTED_DISTANCES as u64 {
                self.near[turn % 2][above as usize] += 1;
                widest = widest.max(above as usize);
            } else {
                self.found.push(DurationCount { duration: base + above, count: 1 });
            }
        }
        for above in 0..=widest {
            let count = std::mem::take(&mut self.near[0][above]) + std::mem::take(&mut self.near[1][above]);
            if count > 0 {
                let duration = base + above as u64;
                self.found.push(DurationCount { duration, count: u64::from(count) });
            }
        }
        &self.found
    }
}
