//! A body that grows by one, from 0 to 999, as measured by a timing method.
//!
//! Several passes each measure all lengths once, in random order. The passes are the replicates.
//! Their differences give the errors of the slope and of adjacent differences.

use super::adjacent_lengths::{AdjacentLengths, compare_adjacent_lengths};
use super::confidence::CONFIDENCE;
use super::round_ruler::{self, RoundRuler, TESTED};
use super::staircase_experiment::{StaircaseBody, StaircaseExperiment, StaircasePlan};
use super::staircase_points::{ReadingSums, StaircasePoint, StaircaseTotals};
use crate::TestedClock;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::{Interval, mean, t_interval};
use cyclescope_exec::Executor;
use cyclescope_measure::ruler::{LayoutSamples, shared_margin};
use cyclescope_measure::study::StopReason;
use serde::Serialize;
use std::time::Duration;

/// Most passes. More would only take memory.
const PASSES_MOST: usize = 64;

/// A staircase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Staircase {
    /// The growing code.
    pub body: StaircaseBody,
    /// The lengths that could be read, in ascending order. If time did not suffice for all of 0 to
    /// 999, they are evenly spread.
    pub points: Vec<StaircasePoint>,
    /// Number of lengths without an undisturbed reading.
    pub lost: usize,
    /// Number of passes over all lengths.
    pub passes: usize,
    /// Readings of each length, including disturbed ones.
    pub readings: usize,
    /// Share of the readings that no mean includes, because of an interrupt, a change of frequency
    /// or a busy sibling. A disturbed ruler counts as well.
    pub dropped: f64,
    /// Whether a sibling was busy nearly all the time, so that the means include such readings.
    pub shared: bool,
    /// The paper's figures.
    pub totals: StaircaseTotals,
    /// Number of lengths whose shortest reading is less than that of the preceding length, in core
    /// cycles; `None` if the machine is emulated.
    pub spurious_minima_cycles: Option<usize>,
    /// Core cycles per instruction or iteration over the longer half of the lengths. The first ones
    /// may be hidden by the readings, with methods that let the body begin early.
    pub slope: Option<Interval>,
    /// The slope of each pass.
    pub slopes: Vec<f64>,
    /// Core cycles by which the empty body exceeds that line: the part of a body hidden by the pair
    /// of readings. Negative if nonempty bodies have a one-time cost, such as a mispredicted loop
    /// exit.
    pub hidden: Option<f64>,
    /// Whether adjacent lengths are distinguishable.
    pub neighbours: Option<AdjacentLengths>,
}

impl Staircase {
    /// The staircase without figures in core cycles.
    fn without_cycles(mut self) -> Staircase {
        for point in &mut self.points {
            (point.mean_cycles, point.minimum_cycles) = (None, None);
        }
        Staircase {
            spurious_minima_cycles: None,
            slope: None,
            slopes: Vec::new(),
            hidden: None,
            neighbours: None,
            ..self
        }
    }
}

/// Progress of a staircase.
#[derive(Debug, Clone, Copy)]
pub struct StaircaseProgress {
    /// End of the last pass, by the executor's clock.
    pub now: Duration,
    /// Expected time for the remaining passes.
    pub left: Duration,
}

/// Receives each pass and may stop the measurement.
pub type StaircaseFollower<'a> = dyn FnMut(&StaircaseProgress) -> Result<(), StopReason> + 'a;

/// Measures a staircase.
pub(super) fn measure_staircase(
    executor: &mut dyn Executor,
    tested: &TestedClock,
    body: StaircaseBody,
    plan: &StaircasePlan,
    random: &mut Random,
    mut follower: Option<&mut StaircaseFollower>,
) -> Result<Staircase, StopReason> {
    let mut experiment = StaircaseExperiment::new(tested, body, plan);
    let mut climb = StaircaseBuilder::new(body, &plan.lengths);
    let (mut block, mut count) = (Vec::new(), 0);
    let start = executor.now();
    // Another pass takes about as long as the preceding ones.
    let fits =
        |now: Duration, passes: u32| plan.until.is_some_and(|until| now + now.saturating_sub(start) / passes <= until);
    while count < plan.passes || count < PASSES_MOST && fits(executor.now(), count as u32) {
        block.push(experiment.run_pass(executor, random)?);
        count += 1;
        if block.len() == plan.block {
            climb.add_passes(&block, &experiment.chain);
            block.clear();
        }
        if let Some(follower) = &mut follower {
            let now = executor.now();
            let each = now.saturating_sub(start) / count as u32;
            follower(&StaircaseProgress { now, left: each * plan.passes.saturating_sub(count) as u32 })?;
        }
    }
    if !block.is_empty() {
        climb.add_passes(&block, &experiment.chain);
    }
    let found = climb.build_staircase(&experiment.chain);
    Ok(if tested.emulated { found.without_cycles() } else { found })
}

/// The result of one length in one pass.
#[derive(Debug, Clone, Copy)]
struct PassReading {
    /// Mean in core cycles; `None` if every round was disturbed.
    mean: Option<f64>,
    minimum: f64,
    kept: usize,
}

impl PassReading {
    const NONE: PassReading = PassReading { mean: None, minimum: f64::INFINITY, kept: 0 };
}

/// Sums for one length, and a part for each pass.
#[derive(Debug, Clone, Default)]
struct LengthSums {
    raw: ReadingSums,
    parts: Vec<PassReading>,
}

/// An incomplete staircase: the sums of completed passes.
struct StaircaseBuilder<'a> {
    body: StaircaseBody,
    lengths: &'a [u32],
    known: Vec<LengthSums>,
    passes: usize,
    /// Readings of each length.
    readings: usize,
    shared: bool,
}

impl<'a> StaircaseBuilder<'a> {
    fn new(body: StaircaseBody, lengths: &'a [u32]) -> StaircaseBuilder<'a> {
        let known = vec![LengthSums::default(); lengths.len()];
        StaircaseBuilder { body, lengths, known, passes: 0, readings: 0, shared: false }
    }

    /// Adds a block of passes: rounds by pass and length.
    fn add_passes(&mut self, passes: &[Vec<LayoutSamples>], chain: &RoundRuler) {
        let sound = chain.find_sound_rulers(round_ruler::flatten_rounds(passes.iter().flatten()));
        self.shared |= sound.as_ref().is_some_and(|sound| sound.shared);
        self.passes += passes.len();
        let each = passes.first().and_then(|pass| pass.first());
        self.readings += passes.len() * each.map_or(0, |samples| samples.rounds().len() * (samples.columns() - TESTED));
        for (index, known) in self.known.iter_mut().enumerate() {
            let layouts: Vec<&LayoutSamples> = passes.iter().map(|pass| &pass[index]).collect();
            let tested = round_ruler::flatten_rounds(layouts.iter().copied()).flat_map(|round| &round[TESTED..]);
            // A reading that ran backwards is infinite.
            tested.filter(|raw| raw.is_finite()).for_each(|raw| known.raw.add_reading(*raw as u64));
            let parts = sound.as_ref().and_then(|sound| read_passes(self.body, &layouts, chain, sound));
            known.parts.extend(parts.unwrap_or(vec![PassReading::NONE; passes.len()]));
        }
    }

    /// Builds the staircase from the sums.
    fn build_staircase(self, chain: &RoundRuler) -> Staircase {
        let StaircaseBuilder { body, lengths, known, passes, readings, shared } = self;
        let mut points = Vec::new();
        let mut means: Vec<Vec<Option<f64>>> = vec![Vec::new(); passes];
        for (length, known) in lengths.iter().zip(&known) {
            let Some(point) = build_point(*length, known) else { continue };
            points.push(point);
            for (pass, part) in means.iter_mut().zip(&known.parts) {
                pass.push(part.mean);
            }
        }
        let kept: usize = points.iter().map(|point| point.kept).sum();
        let read: Vec<u32> = points.iter().map(|point| point.length).collect();
        let lines: Vec<[f64; 2]> = means.iter().filter_map(|pass| fit_line(&read, pass)).collect();
        let slopes: Vec<f64> = lines.iter().map(|line| line[1]).collect();
        let slope = combine_slopes(&read, &slopes, chain);
        let first = points.first().filter(|first| first.length == 0);
        Staircase {
            body,
            lost: lengths.len() - points.len(),
            passes,
            readings,
            dropped: 1.0 - kept as f64 / (readings * lengths.len()) as f64,
            shared,
            totals: StaircaseTotals::from_points(&points),
            spurious_minima_cycles: Some(
                points.windows(2).filter(|pair| pair[0].minimum_cycles > pair[1].minimum_cycles).count(),
            ),
            hidden: first
                .and_then(|first| first.mean_cycles)
                .filter(|_| !lines.is_empty())
                .map(|empty| empty - mean(&lines.iter().map(|line| line[0]).collect::<Vec<_>>())),
            neighbours: slope.and_then(|slope| compare_adjacent_lengths(&read, &means, slope.value)),
            slope,
            slopes,
            points,
        }
    }
}

/// The parts of one length by pass; `None` if no round has a valid ruler.
fn read_passes(
    body: StaircaseBody,
    layouts: &[&LayoutSamples],
    chain: &RoundRuler,
    sound: &round_ruler::SoundRulers,
) -> Option<Vec<PassReading>> {
    let usable = layouts.iter().flat_map(|layout| chain.usable_rounds(layout, sound));
    let cycles = usable.flat_map(|(rate, round)| round[TESTED..].iter().map(move |raw| raw / rate));
    let band = sound.reading_band(cycles.collect(), body == StaircaseBody::Iterations)?;
    let part = |layout: &&LayoutSamples| {
        let (mut raw, mut rates, mut minimum, mut kept) = (0.0, 0.0, f64::INFINITY, 0);
        for (rate, round) in chain.usable_rounds(layout, sound) {
            let good: Vec<f64> = round[TESTED..].iter().copied().filter(|raw| band.contains(raw / rate)).collect();
            if good.is_empty() {
                continue;
            }
            // A ratio of sums over the same rounds, because the core clock may differ between them.
            raw += mean(&good);
            rates += rate;
            minimum = good.iter().fold(minimum, |least, raw| least.min(raw / rate));
            kept += good.len();
        }
        PassReading { mean: (kept > 0).then(|| raw / rates), minimum, kept }
    };
    Some(layouts.iter().map(part).collect())
}

/// The point of a length; `None` if nothing could be read.
fn build_point(length: u32, known: &LengthSums) -> Option<StaircasePoint> {
    let means: Vec<f64> = known.parts.iter().filter_map(|part| part.mean).collect();
    if means.is_empty() {
        return None;
    }
    Some(StaircasePoint {
        length,
        raw: known.raw.collect_ensemble()?,
        mean_cycles: Some(mean(&means)),
        minimum_cycles: Some(known.parts.iter().map(|part| part.minimum).fold(f64::INFINITY, f64::min)),
        kept: known.parts.iter().map(|part| part.kept).sum(),
    })
}

/// Intercept and slope by least squares, from one pass's means over the longer half of the lengths;
/// `None` for fewer than two.
fn fit_line(lengths: &[u32], means: &[Option<f64>]) -> Option<[f64; 2]> {
    let half = lengths.last()? / 2;
    let points: Vec<(f64, f64)> = lengths
        .iter()
        .zip(means)
        .filter(|(length, _)| **length >= half)
        .filter_map(|(length, mean)| Some((f64::from(*length), (*mean)?)))
        .collect();
    let mean_of = |coordinate: fn(&(f64, f64)) -> f64| mean(&points.iter().map(coordinate).collect::<Vec<_>>());
    let (x, y) = (mean_of(|point| point.0), mean_of(|point| point.1));
    let squares: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let products: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let slope = products / squares;
    slope.is_finite().then_some([y - slope * x, slope])
}

/// The slope over the passes, including the instrument's error, which all of them share; `None` for
/// fewer than two.
fn combine_slopes(lengths: &[u32], slopes: &[f64], chain: &RoundRuler) -> Option<Interval> {
    let interval = t_interval(slopes, CONFIDENCE)?;
    let span = f64::from(lengths.last()? - lengths.last()? / 2);
    Some(interval.widen_by(shared_margin(chain.systematic_error(interval.value, span), CONFIDENCE)))
}
