//! Reads the samples of one method into figures, ensemble by ensemble, in constant memory.

use super::ensemble::{Ensemble, INSANE, Occurrence};
use super::trimmed::{Blocks, RULERS, Scale, Trimmed};
use cyclescope_exec::Sample;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// How many ensembles of how many samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Ensembles.
    pub ensembles: u32,
    /// Samples in each.
    pub samples: u32,
}

impl Size {
    /// The paper's: a hundred million samples.
    pub const PAPER: Size = Size { ensembles: 1000, samples: 100_000 };

    /// Ensembles below which their number is not cut: a variance of variances of fewer says little.
    const ENSEMBLES_LEAST: u32 = 100;
    /// Samples below which their number is not cut.
    const SAMPLES_LEAST: u32 = 100;

    /// All samples.
    pub fn total(self) -> u64 {
        u64::from(self.ensembles) * u64::from(self.samples)
    }

    /// The largest size of at most `total` samples: fewer ensembles first, then smaller ones, never fewer than a
    /// hundred of a hundred where more were asked for.
    pub(crate) fn within(self, total: f64) -> Size {
        if self.total() as f64 <= total {
            return self;
        }
        let cut =
            |count: u32, share: f64, least: u32| ((f64::from(count) * share) as u32).max(least).min(count);
        let ensembles = cut(self.ensembles, total / self.total() as f64, Size::ENSEMBLES_LEAST);
        let left = Size { ensembles, ..self };
        let samples = cut(self.samples, total / left.total() as f64, Size::SAMPLES_LEAST);
        Size { ensembles, samples }
    }
}

/// How the readings of an evaluation are laid out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Ensembles and samples.
    pub size: Size,
    /// Samples in a block; the ruler's calls follow each.
    pub block: usize,
    /// What turns raw units into steps and core cycles.
    pub scale: Scale,
}

impl Shape {
    /// Blocks in an ensemble. The last one's samples beyond the ensemble's number are not used.
    pub(crate) fn blocks(&self) -> u32 {
        (self.size.samples as usize).div_ceil(self.block) as u32
    }
}

/// What is known of a method's samples.
#[derive(Debug, Clone)]
pub struct Sampled {
    /// What was asked for.
    pub shape: Shape,
    /// The ensembles that were taken.
    pub ensembles: Vec<Ensemble>,
    /// What remained of each; one that had no sane ruler is missing.
    pub trimmed: Vec<Trimmed>,
    /// All samples: exact below 32 768 raw units, four digits above.
    pub histogram: Histogram<u64>,
    /// Seconds that it took.
    pub seconds: f64,
}

/// Reads ensembles.
pub(crate) struct Reader {
    sampled: Sampled,
    tally: Tally,
}

impl Reader {
    /// For readings of this shape.
    pub(crate) fn new(shape: Shape) -> Reader {
        let sampled = Sampled {
            shape,
            ensembles: Vec::new(),
            trimmed: Vec::new(),
            histogram: Histogram::new(4).expect("four digits are allowed"),
            seconds: 0.0,
        };
        Reader { sampled, tally: Tally::new() }
    }

    /// Reads one ensemble, whole.
    pub(crate) fn take(&mut self, readings: &[Sample]) -> Ensemble {
        let Shape { size, block, scale } = self.sampled.shape;
        let mut ensemble = Ensemble::default();
        let mut blocks = Blocks::default();
        let mut missing = size.samples as usize;
        for round in readings.chunks_exact(block + RULERS) {
            let (own, ruler) = round.split_at(block);
            let own = &own[..own.len().min(missing)];
            missing -= own.len();
            let durations = self.tally.count(own);
            ensemble.take(durations);
            blocks.take(durations, ruler, &scale, self.sampled.ensembles.len());
            for one in durations.iter().filter(|one| one.duration < INSANE) {
                self.sampled
                    .histogram
                    .record_n(one.duration, one.count)
                    .expect("the histogram grows as it has to");
            }
        }
        self.sampled.trimmed.extend(blocks.finish());
        self.sampled.ensembles.push(ensemble);
        ensemble
    }

    /// Ends after this number of seconds.
    pub(crate) fn finish(self, seconds: f64) -> Sampled {
        Sampled { seconds, ..self.sampled }
    }
}

/// A block's samples as durations and how often each occurred. Most blocks have a dozen different ones, so that what
/// follows is done a dozen times and not a thousand.
struct Tally {
    /// By the distance from the least duration of the block; two sets in turn, for a count has to wait for the one
    /// before it where both are the same.
    near: [[u32; NEAR]; 2],
    found: Vec<Occurrence>,
}

/// Distances that are counted; the others are listed.
const NEAR: usize = 1024;

impl Tally {
    fn new() -> Tally {
        Tally { near: [[0; NEAR]; 2], found: Vec::new() }
    }

    /// Durations with their counts, those far from the least first, each alone.
    fn count(&mut self, samples: &[Sample]) -> &[Occurrence] {
        let raw = |sample: &Sample| sample.end.wrapping_sub(sample.start);
        let base = samples.iter().map(raw).min().unwrap_or(0);
        self.found.clear();
        let mut widest = 0;
        for (turn, sample) in samples.iter().enumerate() {
            let above = raw(sample) - base;
            if above < NEAR as u64 {
                self.near[turn % 2][above as usize] += 1;
                widest = widest.max(above as usize);
            } else {
                self.found.push(Occurrence { duration: base + above, count: 1 });
            }
        }
        for above in 0..=widest {
            let count = std::mem::take(&mut self.near[0][above]) + std::mem::take(&mut self.near[1][above]);
            if count > 0 {
                let duration = base + above as u64;
                self.found.push(Occurrence { duration, count: u64::from(count) });
            }
        }
        &self.found
    }
}
