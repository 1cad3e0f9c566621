//! A body that grows by one, from 0 to 999, as a timing method sees it.
//!
//! All lengths are measured once in each of several passes, in random order. The passes are the replicates:
//! the slope and the differences of neighbours have their errors from what differs between them.

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

/// More passes than this are more memory and no more insight.
const PASSES_MOST: usize = 64;

/// A staircase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Staircase {
    /// What grows.
    pub body: StaircaseBody,
    /// The lengths that could be read, in ascending order. Not all of 0 to 999 where time did not suffice: then
    /// they are spread evenly.
    pub points: Vec<StaircasePoint>,
    /// Lengths of which no reading was undisturbed.
    pub lost: usize,
    /// How often all lengths were measured.
    pub passes: usize,
    /// Readings of each length, those that were disturbed included.
    pub readings: usize,
    /// The share of the readings that are in no mean: an interrupt or a change of frequency hit them, or the ruler
    /// beside them, or the core was shared with a busy sibling at the time.
    pub dropped: f64,
    /// Whether it was shared nearly all the time, so that such readings are in the means.
    pub shared: bool,
    /// The paper's figures.
    pub totals: StaircaseTotals,
    /// Lengths whose least reading is less than that of the length before, in core cycles; none where the machine is
    /// emulated.
    pub spurious_minima_cycles: Option<usize>,
    /// Core cycles by which the longer half of the lengths grows with each instruction or iteration. The first ones
    /// can hide under the readings, and do with methods that let the body begin early.
    pub slope: Option<Interval>,
    /// The same in each pass.
    pub slopes: Vec<f64>,
    /// Core cycles by which the empty body takes longer than that line has it: that part of a body hides under the pair
    /// of readings. Negative where bodies pay for something once that the empty one does not, such as the exit of a
    /// loop that was not foreseen.
    pub hidden: Option<f64>,
    /// How well neighbouring lengths are distinguished.
    pub neighbours: Option<AdjacentLengths>,
}

impl Staircase {
    /// Without what is in core cycles.
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

/// How far a staircase has come.
#[derive(Debug, Clone, Copy)]
pub struct StaircaseProgress {
    /// When a pass ended, by the executor's time.
    pub now: Duration,
    /// How long the others should take.
    pub left: Duration,
}

/// Hears of each pass, and may end it all.
pub type StaircaseFollower<'a> = dyn FnMut(&StaircaseProgress) -> Result<(), StopReason> + 'a;

/// Measures a staircase.
pub(super) fn measure_staircase(
    executor: &mut dyn Executor,
    tested: &TestedClock,
    body: StaircaseBody,
    plan: &StaircasePlan,
    random: &mut Random,
    mut tell: Option<&mut StaircaseFollower>,
) -> Result<Staircase, StopReason> {
    let mut experiment = StaircaseExperiment::new(tested, body, plan);
    let mut climb = StaircaseBuilder::new(body, &plan.lengths);
    let (mut block, mut count) = (Vec::new(), 0);
    let start = executor.now();
    // Another pass takes about as long as those before did.
    let fits =
        |now: Duration, passes: u32| plan.until.is_some_and(|until| now + now.saturating_sub(start) / passes <= until);
    while count < plan.passes || count < PASSES_MOST && fits(executor.now(), count as u32) {
        block.push(experiment.run_pass(executor, random)?);
        count += 1;
        if block.len() == plan.block {
            climb.add_passes(&block, &experiment.chain);
            block.clear();
        }
        if let Some(tell) = &mut tell {
            let now = executor.now();
            let each = now.saturating_sub(start) / count as u32;
            tell(&StaircaseProgress { now, left: each * plan.passes.saturating_sub(count) as u32 })?;
        }
    }
    if !block.is_empty() {
        climb.add_passes(&block, &experiment.chain);
    }
    let found = climb.build_staircase(&experiment.chain);
    Ok(if tested.emulated { found.without_cycles() } else { found })
}

/// What one length's rounds in one pass say.
#[derive(Debug, Clone, Copy)]
struct PassReading {
    /// Core cycles; none where every round was disturbed.
    mean: Option<f64>,
    minimum: f64,
    kept: usize,
}

impl PassReading {
    const NONE: PassReading = PassReading { mean: None, minimum: f64::INFINITY, kept: 0 };
}

/// What is known of one length: sums, and a part of each pass.
#[derive(Debug, Clone, Default)]
struct LengthSums {
    raw: ReadingSums,
    parts: Vec<PassReading>,
}

/// A staircase under way: what is kept of blocks of passes.
struct StaircaseBuilder<'a> {
    body: StaircaseBody,
    lengths: &'a [u32],
    known: Vec<LengthSums>,
    passes: usize,
    /// Of each length.
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
            // Backwards is infinite.
            tested.filter(|raw| raw.is_finite()).for_each(|raw| known.raw.add_reading(*raw as u64));
            let parts = sound.as_ref().and_then(|sound| read_passes(self.body, &layouts, chain, sound));
            known.parts.extend(parts.unwrap_or(vec![PassReading::NONE; passes.len()]));
        }
    }

    /// The staircase.
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

/// One length's parts by pass; none where no round has a sound ruler.
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
            // A ratio of sums over the same rounds: the core clock may differ between them.
            raw += mean(&good);
            rates += rate;
            minimum = good.iter().fold(minimum, |least, raw| least.min(raw / rate));
            kept += good.len();
        }
        PassReading { mean: (kept > 0).then(|| raw / rates), minimum, kept }
    };
    Some(layouts.iter().map(part).collect())
}

/// The point of a length; none where nothing could be read.
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

/// Intercept and slope by least squares of one pass's means over the longer half of the lengths; none of fewer than
/// two.
fn fit_line(lengths: &[u32], means: &[Option<f64>]) -> Option<[f64; 2]> {
    let half = lengths.last()? / 2;
    let points: Vec<(f64, f64)> = lengths
        .iter()
        .zip(means)
        .filter(|(length, _)| **length >= half)
        .filter_map(|(length, mean)| Some((f64::from(*length), (*mean)?)))
        .collect();
    let middle = |of: fn(&(f64, f64)) -> f64| mean(&points.iter().map(of).collect::<Vec<_>>());
    let (x, y) = (middle(|point| point.0), middle(|point| point.1));
    let squares: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let products: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let slope = products / squares;
    slope.is_finite().then_some([y - slope * x, slope])
}

/// The slope over the passes, with what the instrument may be wrong by in all of them alike; none of fewer than two.
fn combine_slopes(lengths: &[u32], slopes: &[f64], chain: &RoundRuler) -> Option<Interval> {
    let interval = t_interval(slopes, CONFIDENCE)?;
    let span = f64::from(lengths.last()? - lengths.last()? / 2);
    Some(interval.widen_by(shared_margin(chain.systematic_error(interval.value, span), CONFIDENCE)))
}
