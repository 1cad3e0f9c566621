//! The core clock over time, from a series of short samples.
//!
//! A sample reads the ruler for about a tenth of a millisecond. Samples have noise, so two
//! different samples are not yet a change of the core clock. A change is three consecutive samples
//! on one side of the previous level. They must differ from it by more than 1 % and by more than
//! five times the noise. The noise is computed from differences of adjacent samples, so that
//! changes do not increase it.
//!
//! Limits: changes shorter than three samples are not counted. A clock that changes at nearly every
//! sample is taken for noise. A slow drift counts as a change each time it leaves its last level.

use serde::{Deserialize, Serialize};

use super::fact::Fact;
use super::step_at_clocks::StepAtClocks;
use crate::error::StaticText;
use crate::statistics::{median, quantiles};
use crate::unit::{Hertz, Unit};

/// A sample of the core clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoreClockSample {
    /// Middle of the sample, in seconds since the series began.
    pub at_s: f64,
    /// Units that the timing method counts per core cycle.
    pub raw_per_cycle: f64,
}

/// The core clock over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoreSeries {
    /// The timing method.
    #[serde(deserialize_with = "crate::error::constant")]
    pub clock: StaticText,
    /// Unit of the timing method's readings.
    pub unit: Unit,
    /// At most 200 points: single samples, or groups of adjacent ones in a longer series.
    pub points: Vec<CorePoint>,
    /// Raw units per core cycle: lowest, median and highest. Excludes single samples that differ
    /// from both adjacent ones.
    pub raw_per_cycle: [f64; 3],
    /// The core clock in MHz: slowest, median and fastest. `None` if the timing method's rate is
    /// unknown.
    pub megahertz: Option<[f64; 3]>,
    /// Standard deviation of one sample, as a share of the value.
    pub noise: f64,
    /// Smallest change that counts, as a share of the previous level.
    pub least_change: f64,
    /// Number of changes.
    pub change_count: usize,
    /// The first changes, at most 200.
    pub changes: Vec<CoreClockChange>,
    /// Number of samples.
    pub looks: usize,
    /// Number of disturbed samples, which no figure here includes.
    pub lost: usize,
    /// Median time between samples, in seconds. A change shows after three samples.
    pub look_s: f64,
    /// Time from the first sample to the last, in seconds.
    pub seconds: f64,
    /// Whether the TSC's step is the same at the slowest and the fastest core clock.
    pub step: Fact<StepAtClocks>,
}

/// A point of the series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CorePoint {
    /// Seconds since the series began.
    pub at_s: f64,
    /// Raw units per core cycle: the median of the point's samples.
    pub raw_per_cycle: f64,
    /// Lowest and highest of its samples.
    pub range: [f64; 2],
    /// The core clock in MHz, if the timing method's rate is known.
    pub megahertz: Option<f64>,
}

/// A change of the core clock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CoreClockChange {
    /// The last sample before the change, in seconds since the series began.
    pub after_s: f64,
    /// The first sample at the new level, in seconds since the series began.
    pub at_s: f64,
    /// Raw units per core cycle before.
    pub from: f64,
    /// Raw units per core cycle after.
    pub to: f64,
}

/// Largest number of points, and of changes, in a series.
pub const MOST_POINTS: usize = 200;
/// A change must exceed this share of the level.
pub const CHANGE_SHARE: f64 = 0.01;
/// It must also exceed this number of standard deviations of a sample.
pub(crate) const NOISE_FACTOR: f64 = 5.0;
/// It must last for this number of consecutive samples.
pub(crate) const CONFIRMING_SAMPLES: usize = 3;
/// Largest number of samples whose median is a level. They are the first ones, so that a slow drift
/// leaves the level.
const LEVEL_SAMPLES: usize = 33;
/// Fewer samples give no estimate of the noise.
const FEWEST_SAMPLES: usize = 8;

impl CoreSeries {
    /// Builds the series from samples in order of time. `lost` is the number of disturbed samples.
    pub fn from_samples(
        samples: &[CoreClockSample],
        lost: usize,
        clock: &'static str,
        unit: Unit,
        rate: Option<Hertz>,
    ) -> Result<CoreSeries, String> {
        if samples.len() < FEWEST_SAMPLES {
            return Err(format!("only {} samples of the core clock were undisturbed", samples.len()));
        }
        let noise = sample_noise(samples);
        let least_change = least_change(noise);
        let changes = find_changes(samples, least_change);
        let rates: Vec<f64> = samples.iter().map(|sample| sample.raw_per_cycle).collect();
        let raw_per_cycle = smoothed_extremes(&rates).ok_or("no three samples of the core clock were undisturbed")?;
        let megahertz = |raw: f64| rate.map(|rate| rate.to_megahertz() / raw);
        let mut pauses: Vec<f64> = samples.windows(2).map(|pair| pair[1].at_s - pair[0].at_s).collect();
        let [lowest, middle, highest] = raw_per_cycle;
        Ok(CoreSeries {
            clock,
            unit,
            points: group_by_time(samples).map(|group| CorePoint::from_samples(group, megahertz)).collect(),
            // The most raw units per cycle mean the slowest clock.
            megahertz: rate.map(|rate| [highest, middle, lowest].map(|raw| rate.to_megahertz() / raw)),
            raw_per_cycle,
            noise,
            least_change,
            change_count: changes.len(),
            changes: changes.into_iter().take(MOST_POINTS).collect(),
            looks: samples.len() + lost,
            lost,
            look_s: median(&mut pauses),
            seconds: samples[samples.len() - 1].at_s - samples[0].at_s,
            step: Fact::unknown("it was not tested"),
        })
    }

    /// Whether the core clock changed.
    pub fn has_changed(&self) -> bool {
        self.change_count > 0
    }
}

impl CorePoint {
    fn from_samples(samples: &[CoreClockSample], megahertz: impl Fn(f64) -> Option<f64>) -> CorePoint {
        let mut sorted: Vec<f64> = samples.iter().map(|sample| sample.raw_per_cycle).collect();
        let raw_per_cycle = median(&mut sorted);
        CorePoint {
            at_s: (samples[0].at_s + samples[samples.len() - 1].at_s) / 2.0,
            raw_per_cycle,
            range: [sorted[0], sorted[sorted.len() - 1]],
            megahertz: megahertz(raw_per_cycle),
        }
    }
}

/// Smallest change that counts at this noise.
fn least_change(noise: f64) -> f64 {
    CHANGE_SHARE.max(NOISE_FACTOR * noise)
}

/// Whether the clock changed during these samples. Their range would not show it: it grows with
/// their number even if the clock is steady.
pub fn has_clock_changed(samples: &[CoreClockSample]) -> bool {
    !find_changes(samples, least_change(sample_noise(samples))).is_empty()
}

/// Standard deviation of one sample, as a share. The differences of adjacent samples have twice its
/// variance (J. von Neumann, "Distribution of the ratio of the mean square successive difference to
/// the variance", 1941). Their median ignores occasional changes of the clock.
fn sample_noise(samples: &[CoreClockSample]) -> f64 {
    /// Factor from the median of absolute values to the standard deviation of a normal
    /// distribution.
    const NORMAL: f64 = 1.4826;
    let step = |pair: &[CoreClockSample]| (pair[1].raw_per_cycle / pair[0].raw_per_cycle).ln().abs();
    let mut steps: Vec<f64> = samples.windows(2).map(step).collect();
    NORMAL * median(&mut steps) / std::f64::consts::SQRT_2
}

/// Lowest, median and highest raw units per core cycle. Each sample is first replaced by the median
/// of itself and the two adjacent ones. `None` for fewer than three samples.
fn smoothed_extremes(rates: &[f64]) -> Option<[f64; 3]> {
    let mut smooth: Vec<f64> = rates.windows(3).map(|triple| median(&mut triple.to_vec())).collect();
    (!smooth.is_empty()).then(|| quantiles(&mut smooth, [0.0, 0.5, 1.0]))
}

/// Splits the samples into levels; the clock changes where two levels meet.
fn find_changes(samples: &[CoreClockSample], least: f64) -> Vec<CoreClockChange> {
    let mut levels: Vec<&[CoreClockSample]> = Vec::new();
    let mut rest = samples;
    while let Some(end) = find_level_end(rest, least) {
        let (before, after) = rest.split_at(end);
        levels.push(before);
        rest = after;
    }
    levels.push(rest);
    let change = |pair: &[&[CoreClockSample]]| CoreClockChange {
        after_s: pair[0][pair[0].len() - 1].at_s,
        at_s: pair[1][0].at_s,
        from: median_level(pair[0]),
        to: median_level(pair[1]),
    };
    levels.windows(2).map(change).collect()
}

/// The level that starts with these samples.
fn median_level(samples: &[CoreClockSample]) -> f64 {
    median(&mut samples.iter().take(LEVEL_SAMPLES).map(|sample| sample.raw_per_cycle).collect::<Vec<_>>())
}

/// Index of the first sample after the level that starts the samples; `None` if they all belong to
/// it.
fn find_level_end(samples: &[CoreClockSample], least: f64) -> Option<usize> {
    let last = samples.len().checked_sub(CONFIRMING_SAMPLES)?;
    (CONFIRMING_SAMPLES..=last).find(|&at| {
        let level = median_level(&samples[..at]);
        let distance = |sample: &CoreClockSample| sample.raw_per_cycle / level - 1.0;
        let next = &samples[at..at + CONFIRMING_SAMPLES];
        next.iter().all(|sample| distance(sample) > least) || next.iter().all(|sample| distance(sample) < -least)
    })
}

/// Groups adjacent samples by equal spans of time, into at most [`MOST_POINTS`] groups.
fn group_by_time(samples: &[CoreClockSample]) -> impl Iterator<Item = &[CoreClockSample]> {
    let (start, count) = (samples[0].at_s, samples.len());
    let span = (samples[count - 1].at_s - start).max(f64::MIN_POSITIVE);
    let slot = move |sample: &CoreClockSample| {
        let share = (sample.at_s - start) / span;
        ((share * MOST_POINTS as f64) as usize).min(MOST_POINTS - 1)
    };
    samples.chunk_by(move |a, b| count > MOST_POINTS && slot(a) == slot(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Samples every 0.1 ms, with this number of samples at each level and this noise.
    fn simulate_samples(levels: &[(f64, usize)], noise: f64, seed: u64) -> Vec<CoreClockSample> {
        let mut random = Random::new(seed);
        let values = levels.iter().flat_map(|&(level, count)| std::iter::repeat_n(level, count));
        values
            .enumerate()
            .map(|(index, level)| CoreClockSample {
                at_s: index as f64 * 1e-4,
                raw_per_cycle: level * (1.0 + noise * random.normal()),
            })
            .collect()
    }

    fn series(samples: &[CoreClockSample]) -> CoreSeries {
        CoreSeries::from_samples(samples, 0, "lfence-rdtsc-lfence", Unit::TscTicks, Some(Hertz(2.3e9))).unwrap()
    }

    #[test]
    fn simulated_changes_are_counted_and_timed() {
        let levels = [(0.75, 300), (0.72, 40), (0.75, 5), (0.70, 655)];
        for (seed, noise) in [0.0, 1e-4, 1e-3, 2e-3].into_iter().enumerate() {
            let found = series(&simulate_samples(&levels, noise, seed as u64));
            assert_eq!(found.change_count, 3, "{noise}: {:?}", found.changes);
            for (change, (at, [from, to])) in
                found.changes.iter().zip([(300.0, [0.75, 0.72]), (340.0, [0.72, 0.75]), (345.0, [0.75, 0.70])])
            {
                assert!((change.at_s - at * 1e-4).abs() < 1e-9 && change.after_s < change.at_s, "{change:?}");
                let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 3.0 * noise + 1e-9;
                assert!(near(change.from, from) && near(change.to, to), "{change:?}");
            }
            assert!((found.noise - noise).abs() < 0.2 * noise + 1e-9, "{} for {noise}", found.noise);
            let [slow, _, fast] = found.megahertz.unwrap();
            assert!((slow / (2300.0 / 0.75) - 1.0).abs() < 0.01 && (fast / (2300.0 / 0.70) - 1.0).abs() < 0.01);
            assert!(found.points.len() <= MOST_POINTS && found.points.len() > MOST_POINTS / 2);
        }
    }

    #[test]
    fn noise_alone_is_not_a_change() {
        for seed in 0..200 {
            for noise in [1e-4, 2e-3, 5e-3, 0.05] {
                let found = series(&simulate_samples(&[(0.75, 1000)], noise, seed));
                assert!(!found.has_changed(), "{noise}, {seed}: {:?}", found.changes);
                assert!(found.least_change >= NOISE_FACTOR * 0.8 * noise);
            }
        }
    }

    #[test]
    fn one_or_two_outliers_are_neither_change_nor_extreme() {
        let mut samples = simulate_samples(&[(0.75, 500)], 5e-4, 1);
        samples[100].raw_per_cycle = 1.5;
        samples[0].raw_per_cycle = 0.4;
        for index in [300, 301] {
            samples[index].raw_per_cycle = 0.8;
        }
        let found = series(&samples);
        assert!(!found.has_changed() && found.raw_per_cycle[0] > 0.74, "{:?}", found.raw_per_cycle);
    }

    #[test]
    fn a_drift_counts_each_time_it_leaves_its_level() {
        let levels: Vec<(f64, usize)> = (0..1000).map(|at| (0.7 * (1.0 + 5e-5 * at as f64), 1)).collect();
        let found = series(&simulate_samples(&levels, 1e-4, 2));
        assert!((3..=5).contains(&found.change_count), "{:?}", found.changes);
        assert!(found.changes.iter().all(|change| change.to > change.from));
    }

    #[test]
    fn few_samples_stay_points_and_too_few_give_a_reason() {
        let few = simulate_samples(&[(0.75, 20)], 1e-3, 3);
        let found = series(&few);
        assert_eq!((found.points.len(), found.looks), (20, 20));
        assert_eq!(found.points[7].range, [few[7].raw_per_cycle; 2]);
        let refused = CoreSeries::from_samples(&few[..5], 3, "rdtscp", Unit::TscTicks, None).unwrap_err();
        assert!(refused.contains("only 5"), "{refused}");
    }
}
