//! The readings of one length, and the paper's figures over all lengths.

use serde::Serialize;

/// Readings of one length, summarised as in the paper's program: all of them, in raw units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LengthEnsemble {
    /// Number of readings; the paper takes 100 000.
    pub readings: usize,
    /// Shortest reading, in raw units.
    pub minimum: u64,
    /// Longest minus shortest reading, in raw units.
    pub maximum_deviation: u64,
    /// Population variance in squared raw units, rounded down like `var_calc` in the paper's
    /// appendix.
    pub variance_floored: u64,
    /// Population variance, not rounded.
    pub variance: f64,
}

/// Running sums over readings. The readings themselves are discarded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReadingSums {
    count: u128,
    minimum: u64,
    maximum: u64,
    /// The first reading. It is subtracted from the others, which keeps the variance and the
    /// products small.
    origin: u64,
    sum: i128,
    squares: u128,
}

impl ReadingSums {
    /// Adds a reading.
    pub(crate) fn add_reading(&mut self, reading: u64) {
        if self.count == 0 {
            (self.origin, self.minimum, self.maximum) = (reading, reading, reading);
        }
        self.count += 1;
        self.minimum = self.minimum.min(reading);
        self.maximum = self.maximum.max(reading);
        let offset = i128::from(reading) - i128::from(self.origin);
        self.sum += offset;
        let square = offset.unsigned_abs().saturating_mul(offset.unsigned_abs());
        self.squares = self.squares.saturating_add(square);
    }

    /// n·Σx² − (Σx)², and n²: the two sides of the variance in the paper's `var_calc`, without its
    /// overflow. Larger results saturate.
    fn scaled_variance(&self) -> (u128, u128) {
        let sum = self.sum.unsigned_abs();
        let squares = self.squares.saturating_mul(self.count).saturating_sub(sum.saturating_mul(sum));
        (squares, (self.count * self.count).max(1))
    }

    fn floored_variance(&self) -> u64 {
        let (squares, count) = self.scaled_variance();
        u64::try_from(squares / count).unwrap_or(u64::MAX)
    }

    /// The figures of the paper's program; `None` without readings.
    pub(crate) fn collect_ensemble(&self) -> Option<LengthEnsemble> {
        let (squares, count) = self.scaled_variance();
        (self.count > 0).then(|| LengthEnsemble {
            readings: self.count as usize,
            minimum: self.minimum,
            maximum_deviation: self.maximum - self.minimum,
            variance_floored: self.floored_variance(),
            variance: squares as f64 / count as f64,
        })
    }
}

impl FromIterator<u64> for ReadingSums {
    fn from_iter<T: IntoIterator<Item = u64>>(readings: T) -> ReadingSums {
        let mut sums = ReadingSums::default();
        readings.into_iter().for_each(|reading| sums.add_reading(reading));
        sums
    }
}

/// Population variance, rounded down: `var_calc`.
fn floored_variance(values: &[u64]) -> u64 {
    values.iter().copied().collect::<ReadingSums>().floored_variance()
}

/// One length of a staircase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StaircasePoint {
    /// Number of iterations or instructions.
    pub length: u32,
    /// All readings, in raw units.
    #[serde(flatten)]
    pub raw: LengthEnsemble,
    /// Mean of the undisturbed readings in core cycles, including the cost of the pair; `None` if
    /// the machine is emulated.
    pub mean_cycles: Option<f64>,
    /// Shortest of the undisturbed readings in core cycles, each by the ruler of its own round.
    pub minimum_cycles: Option<f64>,
    /// Number of undisturbed readings.
    pub kept: usize,
}

/// The figures of the paper's program over all lengths, in raw units.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StaircaseTotals {
    /// Number of lengths whose minimum is less than that of the preceding length.
    pub spurious_minima: usize,
    /// "Total variance": the mean of the floored variances, rounded down.
    pub total_variance: u64,
    /// "Absolute max deviation": the largest of the maximum deviations.
    pub maximum_deviation: u64,
    /// `var_calc` of the floored variances.
    pub variance_of_variances: u64,
    /// `var_calc` of the minima; on a staircase it means nothing, as the paper says.
    pub variance_of_minima: u64,
    /// Smallest nonzero change of the minimum between consecutive lengths; `None` if it never
    /// changes.
    pub smallest_change: Option<u64>,
    /// Number of changes of the minimum between consecutive lengths.
    pub changes: usize,
    /// The first lengths at which the minimum changes.
    pub first_changes: Vec<u32>,
    /// The paper's resolution: mean growth of the length until the minimum changes; `None` if it
    /// never does. Meaningless with spurious minima, because each of them counts as a change.
    pub length_per_change: Option<f64>,
}

/// Number of lengths listed in `first_changes`.
const FIRST_CHANGES: usize = 8;

impl StaircaseTotals {
    /// Totals over points in order of length.
    pub(crate) fn from_points(points: &[StaircasePoint]) -> StaircaseTotals {
        let minima: Vec<u64> = points.iter().map(|point| point.raw.minimum).collect();
        let variances: Vec<u64> = points.iter().map(|point| point.raw.variance_floored).collect();
        let changed = |pair: &&[StaircasePoint]| pair[0].raw.minimum != pair[1].raw.minimum;
        let changes: Vec<&[StaircasePoint]> = points.windows(2).filter(changed).collect();
        let grown = points.last().map_or(0, |last| last.length - points[0].length);
        let sum: u128 = variances.iter().map(|variance| u128::from(*variance)).sum();
        StaircaseTotals {
            spurious_minima: minima.windows(2).filter(|pair| pair[0] > pair[1]).count(),
            total_variance: (sum / variances.len().max(1) as u128) as u64,
            maximum_deviation: points.iter().map(|point| point.raw.maximum_deviation).max().unwrap_or(0),
            variance_of_variances: floored_variance(&variances),
            variance_of_minima: floored_variance(&minima),
            smallest_change: changes.iter().map(|pair| pair[0].raw.minimum.abs_diff(pair[1].raw.minimum)).min(),
            changes: changes.len(),
            first_changes: changes.iter().take(FIRST_CHANGES).map(|pair| pair[1].length).collect(),
            length_per_change: (!changes.is_empty()).then(|| f64::from(grown) / changes.len() as f64),
        }
    }
}
