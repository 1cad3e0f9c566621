//! Reads the samples of one method into figures, ensemble by ensemble, in constant memory.

use super::ensemble::{DurationCount, Ensemble, INSANE_DURATION};
use super::trimmed_ensemble::{EnsembleBlocks, RULERS, TrimmedEnsemble, UnitScale};
use cyclescope_exec::Sample;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// How many ensembles of how many samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamplingSize {
    /// Ensembles.
    pub ensembles: u32,
    /// Samples in each.
    pub samples: u32,
}

impl SamplingSize {
    /// The paper's: a hundred million samples.
    pub const PAPER: SamplingSize = SamplingSize { ensembles: 1000, samples: 100_000 };

    /// Ensembles below which their number is not cut: a variance of variances of fewer says little.
    const ENSEMBLES_LEAST: u32 = 100;
    /// Samples below which their number is not cut.
    const SAMPLES_LEAST: u32 = 100;

    /// All samples.
    pub fn total_samples(self) -> u64 {
        u64::from(self.ensembles) * u64::from(self.samples)
    }

    /// The largest size of at most `total` samples: fewer ensembles first, then smaller ones, never fewer than a
    /// hundred of a hundred where more were asked for.
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

/// How the readings of an evaluation are laid out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplingShape {
    /// Ensembles and samples.
    pub size: SamplingSize,
    /// Samples in a block; the ruler's calls follow each.
    pub block: usize,
    /// What turns raw units into steps and core cycles.
    pub scale: UnitScale,
}

impl SamplingShape {
    /// Blocks in an ensemble. The last one's samples beyond the ensemble's number are not used.
    pub(crate) fn count_blocks(&self) -> u32 {
        (self.size.samples as usize).div_ceil(self.block) as u32
    }
}

/// What is known of a method's samples.
#[derive(Debug, Clone)]
pub struct SampledEnsembles {
    /// What was asked for.
    pub shape: SamplingShape,
    /// The ensembles that were taken.
    pub ensembles: Vec<Ensemble>,
    /// What remained of each; one that had no sane ruler is missing.
    pub trimmed: Vec<TrimmedEnsemble>,
    /// All samples: exact below 32 768 raw units, four digits above.
    pub histogram: Histogram<u64>,
    /// Seconds that it took.
    pub seconds: f64,
}

/// Reads ensembles.
pub(crate) struct EnsembleReader {
    sampled: SampledEnsembles,
    tally: DurationTally,
}

impl EnsembleReader {
    /// For readings of this shape.
    pub(crate) fn new(shape: SamplingShape) -> EnsembleReader {
        let sampled = SampledEnsembles {
            shape,
            ensembles: Vec::new(),
            trimmed: Vec::new(),
            histogram: Histogram::new(4).expect("four digits are allowed"),
            seconds: 0.0,
        };
        EnsembleReader { sampled, tally: DurationTally::new() }
    }

    /// Reads one ensemble, whole.
    pub(crate) fn read_ensemble(&mut self, readings: &[Sample]) -> Ensemble {
        let SamplingShape { size, block, scale } = self.sampled.shape;
        let mut ensemble = Ensemble::default();
        let mut blocks = EnsembleBlocks::default();
        let mut missing = size.samples as usize;
        for round in readings.chunks_exact(block + RULERS) {
            let (own, ruler) = round.split_at(block);
            let own = &own[..own.len().min(missing)];
            missing -= own.len();
            let durations = self.tally.count_durations(own);
            ensemble.add_durations(durations);
            blocks.add_block(durations, ruler, &scale, self.sampled.ensembles.len());
            for one in durations.iter().filter(|one| one.duration < INSANE_DURATION) {
                self.sampled.histogram.record_n(one.duration, one.count).expect("the histogram grows as it has to");
            }
        }
        self.sampled.trimmed.extend(blocks.finish_ensemble());
        self.sampled.ensembles.push(ensemble);
        ensemble
    }

    /// Ends after this number of seconds.
    pub(crate) fn finish(self, seconds: f64) -> SampledEnsembles {
        SampledEnsembles { seconds, ..self.sampled }
    }
}

/// A block's samples as durations and how often each occurred. Most blocks have a dozen different ones, so that what
/// follows is done a dozen times and not a thousand.
struct DurationTally {
    /// By the distance from the least duration of the block; two sets in turn, for a count has to wait for the one
    /// before it where both are the same.
    near: [[u32; COUNTED_DISTANCES]; 2],
    found: Vec<DurationCount>,
}

/// Distances that are counted; the others are listed.
const COUNTED_DISTANCES: usize = 1024;

impl DurationTally {
    fn new() -> DurationTally {
        DurationTally { near: [[0; COUNTED_DISTANCES]; 2], found: Vec::new() }
    }

    /// Durations with their counts, those far from the least first, each alone.
    fn count_durations(&mut self, samples: &[Sample]) -> &[DurationCount] {
        let raw = |sample: &Sample| sample.end.wrapping_sub(sample.start);
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
