//! Programs beside the ruler: what each takes in core cycles, for questions that no slope over copies answers.
//!
//! A round holds the two lengths of both of the ruler's chains, the width sentinel, and any further programs;
//! rounds that an interrupt hit are dropped whole, as in [`crate::estimate`]. Each layout has another number of the
//! ruler's iterations, another order, and further programs stand at other addresses. Unlike an estimate, a further
//! program's figure includes its pair of readings: it is differences of such figures that mean something.

use crate::clock::Clock;
use crate::context::Element;
use crate::error::RunError;
use crate::estimate::INSTRUMENT_CYCLES;
use crate::executor::{Batch, Call, DELAY, Executor, Layout, Place, Sample};
use crate::placement;
use crate::program::Program;
use crate::random::Random;
use crate::ruler::{ADD_LINKS, ADD_SPAN, IMUL_SPAN, Ruler, SENTINEL_LOOPS, sentinel_adds};
use crate::statistics::{Interval, median, normal_quantile, quantile, trimmed_interval};
use std::time::Duration;

/// The ruler's calls in a round, in the order of [`Ruler::programs`]. Further programs follow.
const IMUL_SHORT: usize = 0;
const IMUL_LONG: usize = 1;
const ADD_SHORT: usize = 2;
const ADD_LONG: usize = 3;
const SENTINEL: usize = 4;
const RULERS: usize = 5;

/// Iterations of the chains, about: the ruler's part of a round takes some 6 µs, well below a timer's period.
const LOOPS: usize = 200;
/// The sentinel runs so many times its usual iterations, for it is read a few times only.
const SENTINEL_TIMES: u64 = 8;
const WARM_UP: u32 = 2;
/// A layout with fewer undisturbed rounds is not used.
const KEPT_LEAST: usize = 3;
/// A duration beyond its layout's median by this many scales is an outlier, as in [`crate::estimate`].
const OUTLIER_SCALES: f64 = 6.0;
/// A layout that adds fewer numbers a cycle than this share of the best was beside a busy sibling,
const ALONE_SHARE: f64 = 0.85;
/// and is left out where so many others remain.
const ALONE_LEAST: usize = 4;
/// Batches of well-behaved programs take some milliseconds, and their lock may have to be waited for.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// The programs of a round.
pub struct Probe {
    programs: Vec<Program>,
    /// The step of the readings in raw units.
    step: f64,
    touches_memory: bool,
}

/// The readings of one layout.
pub struct Readings {
    /// Iterations of the chains.
    loops: u64,
    /// Rounds of samples, in the order of the programs.
    rounds: Vec<Vec<Sample>>,
    step: f64,
}

/// What one layout, or one round, says.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Raw units of one link of the `imul` chain.
    pub imul: f64,
    /// Raw units of one link of the `add` chain.
    pub add: f64,
    /// Independent additions in the time of one link of the `add` chain.
    pub width: f64,
    /// Links of the `imul` chain by which its two lengths differ.
    pub imul_links: f64,
    /// The same of the `add` chain.
    pub add_links: f64,
    /// Raw units of each further program, its pair of readings included.
    pub further: Vec<f64>,
    /// Rounds used.
    pub kept: usize,
    /// Rounds dropped.
    pub dropped: usize,
}

impl Probe {
    /// The ruler alone, as a timing method of this step reads it.
    pub fn new(clock: &Clock, step: f64) -> Probe {
        Probe { programs: Ruler::new(clock).programs().into(), step, touches_memory: false }
    }

    /// The ruler and these programs, which may touch their memory areas.
    pub fn with(self, programs: impl IntoIterator<Item = Program>, touches_memory: bool) -> Probe {
        let programs = self.programs.into_iter().chain(programs).collect();
        Probe { programs, touches_memory, ..self }
    }

    /// Runs so many layouts of so many rounds.
    pub fn run(
        &self,
        executor: &mut dyn Executor,
        layouts: usize,
        rounds: u32,
        random: &mut Random,
    ) -> Result<Vec<Readings>, RunError> {
        let calls = self.programs.len();
        let arena = executor.arena_len();
        let (layouts, loops): (Vec<_>, Vec<_>) = (0..layouts).map(|_| self.layout(arena, random)).unzip();
        let batch = Batch {
            programs: self.programs.clone(),
            warm_up: WARM_UP,
            rounds,
            layouts,
            element: Element::default(),
            touches_memory: self.touches_memory,
            delay: DELAY,
            deadline: DEADLINE,
        };
        let samples = executor.run(&batch)?;
        let layouts = batch.layouts.iter().zip(samples.chunks_exact(rounds as usize * calls)).zip(loops);
        let readings = layouts.map(|((layout, samples), loops)| {
            let rounds = samples.chunks_exact(calls).map(|round| in_order(&layout.round, round)).collect();
            Readings { loops, rounds, step: self.step }
        });
        Ok(readings.collect())
    }

    /// One layout, and the iterations of its chains.
    fn layout(&self, arena: usize, random: &mut Random) -> (Layout, u64) {
        let (rulers, end) = placement::fixed(&self.programs[..RULERS]);
        let mut code: Vec<Place> =
            rulers.iter().enumerate().map(|(program, &offset)| Place { program, offset }).collect();
        let further: Vec<usize> = (RULERS..self.programs.len()).collect();
        if !further.is_empty() {
            let places = placement::random(&self.programs, &further, end, arena, None, random);
            code.extend(places.expect("the arena holds some short programs"));
        }
        let count = (LOOPS - LOOPS / 4 + random.below(LOOPS / 2)) as u64;
        let loop_count = |place| if place == SENTINEL { SENTINEL_TIMES * SENTINEL_LOOPS } else { count };
        let mut round: Vec<Call> =
            (0..code.len()).map(|place| Call { place, loop_count: loop_count(place) }).collect();
        random.shuffle(&mut round);
        (Layout { code, round, data: placement::data(random), seed: random.bits() }, count)
    }
}

/// The samples of a round, by what was called.
fn in_order(round: &[Call], samples: &[Sample]) -> Vec<Sample> {
    let mut ordered = vec![Sample::default(); round.len()];
    for (call, sample) in round.iter().zip(samples) {
        ordered[call.place] = *sample;
    }
    ordered
}

/// How long a call took; backwards is forever.
fn duration(sample: &Sample) -> f64 {
    sample.end.checked_sub(sample.start).map_or(f64::INFINITY, |raw| raw as f64)
}

impl Readings {
    /// The rounds that nothing disturbed.
    fn undisturbed(&self) -> impl Iterator<Item = &[Sample]> {
        let calls = self.rounds.first().map_or(0, Vec::len);
        let limit = |call: usize| {
            let mut column: Vec<f64> = self.rounds.iter().map(|round| duration(&round[call])).collect();
            let middle = median(&mut column);
            let range = quantile(&column, 0.75) - quantile(&column, 0.25);
            middle + OUTLIER_SCALES * range.max(self.step)
        };
        let limits: Vec<f64> = (0..calls).map(limit).collect();
        let kept =
            move |round: &&[Sample]| round.iter().zip(&limits).all(|(call, most)| duration(call) <= *most);
        self.rounds.iter().map(Vec::as_slice).filter(kept)
    }

    /// What the layout says; `None` with too few undisturbed rounds.
    pub fn read(&self) -> Option<Reading> {
        let kept: Vec<&[Sample]> = self.undisturbed().collect();
        if kept.len() < KEPT_LEAST {
            return None;
        }
        let mean =
            |call: usize| kept.iter().map(|round| duration(&round[call])).sum::<f64>() / kept.len() as f64;
        let means: Vec<f64> = (0..kept[0].len()).map(mean).collect();
        let (count, all) = (kept.len(), self.rounds.len());
        Some(Reading { kept: count, dropped: all - count, ..self.reading(&means) })
    }

    /// The middle of the layout's rounds, as a reading of the timing method.
    pub(crate) fn middle(&self) -> u64 {
        let samples = || self.rounds.iter().flatten();
        let start = samples().map(|sample| sample.start).min().unwrap_or_default();
        let end = samples().map(|sample| sample.end).max().unwrap_or_default();
        start + end.saturating_sub(start) / 2
    }

    /// Each undisturbed round: from when to when it ran, and the width that it saw.
    pub(crate) fn widths(&self) -> impl Iterator<Item = (u64, u64, f64)> {
        self.undisturbed().map(|round| {
            let start = round.iter().map(|sample| sample.start).min().unwrap_or_default();
            let end = round.iter().map(|sample| sample.end).max().unwrap_or_default();
            let durations: Vec<f64> = round.iter().map(duration).collect();
            (start, end, self.reading(&durations).width)
        })
    }

    fn reading(&self, mean: &[f64]) -> Reading {
        let loops = self.loops as f64;
        let (imul_links, add_links) = (IMUL_SPAN * loops, ADD_SPAN * loops);
        let add = (mean[ADD_LONG] - mean[ADD_SHORT]) / add_links;
        // What the pair of readings takes is in the short chain too.
        let overhead = mean[ADD_SHORT] / add - ADD_LINKS[0] as f64 * loops;
        Reading {
            imul: (mean[IMUL_LONG] - mean[IMUL_SHORT]) / imul_links,
            add,
            width: sentinel_adds(SENTINEL_TIMES * SENTINEL_LOOPS) / (mean[SENTINEL] / add - overhead),
            imul_links,
            add_links,
            further: mean[RULERS..].to_vec(),
            kept: 1,
            dropped: 0,
        }
    }
}

/// Leaves out layouts beside a busy sibling, or narrower than `least`, where enough others remain; also tells
/// whether what remains was beside one.
pub fn unshared(readings: Vec<Reading>, least: f64) -> (Vec<Reading>, bool) {
    if readings.is_empty() {
        return (readings, false);
    }
    let mut widths: Vec<f64> = readings.iter().map(|reading| reading.width).collect();
    widths.sort_by(f64::total_cmp);
    let least = least.max(ALONE_SHARE * quantile(&widths, 0.9));
    let alone = |reading: &Reading| reading.width >= least;
    let count = readings.iter().filter(|reading| alone(reading)).count();
    if count < ALONE_LEAST.max(readings.len() / 4) {
        return (readings, true);
    }
    (readings.into_iter().filter(alone).collect(), false)
}

/// A sum of further programs' figures, each with its weight, in core cycles, over the middle of five layouts at least:
/// beside other work some are off by tens of cycles, and a few would make every interval useless. With weights that
/// sum up to nothing, such as 1 and -1, it is a contrast: what the pairs of readings take is in none.
///
/// `imul_latency` is that of `imul r64, r64` in core cycles.
pub fn combination(
    readings: &[Reading],
    imul_latency: f64,
    weights: &[(usize, f64)],
    confidence: f64,
) -> Option<Interval> {
    let sum = |reading: &Reading| {
        let raw: f64 = weights.iter().map(|(program, weight)| weight * reading.further[*program]).sum();
        raw / reading.imul * imul_latency
    };
    let values: Vec<f64> = readings.iter().map(sum).collect();
    let margin = normal_quantile(0.5 + confidence / 2.0) * INSTRUMENT_CYCLES;
    trimmed_interval(&values, confidence).map(|interval| interval.widened(margin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::mock::{Noise, Scenario, Simulated};
    use crate::program::Recipe;

    /// A machine whose pair takes 48 ticks and whose `add` one cycle.
    fn readings(scenario: Scenario) -> Vec<Reading> {
        let clock = Clock::named("lfence-rdtsc-lfence").unwrap();
        let chain = |copies| Recipe { snippet: crate::ruler::ADD, copies, ..Recipe::empty(clock) }.build();
        let probe = Probe::new(clock, scenario.step as f64).with([0, 10, 30].map(chain), false);
        let mut machine = Simulated::new(scenario, 3);
        let readings = probe.run(&mut machine, 16, 64, &mut Random::new(4)).unwrap();
        readings.iter().filter_map(Readings::read).collect()
    }

    #[test]
    fn contrasts_are_in_core_cycles() {
        for step in [1, 26] {
            let readings = readings(Scenario { step, ..Scenario::default() });
            let difference = combination(&readings, 3.0, &[(2, 1.0), (1, -1.0)], 0.999).unwrap();
            assert!(difference.contains(20.0), "{difference:?}");
            // Three pairs, one of them twice as heavy and negative.
            let none = combination(&readings, 3.0, &[(0, 2.0), (1, -3.0), (2, 1.0)], 0.999).unwrap();
            assert!(none.contains(0.0), "{none:?}");
        }
    }

    #[test]
    fn disturbed_rounds_are_dropped_whole() {
        let noise = Noise::LogNormal { probability: 0.01, median: 5000.0, sigma: 0.3 };
        let readings = readings(Scenario { noise, ..Scenario::default() });
        assert!(readings.iter().map(|reading| reading.dropped).sum::<usize>() > 20);
        let difference = combination(&readings, 3.0, &[(2, 1.0), (1, -1.0)], 0.999).unwrap();
        assert!(difference.contains(20.0) && difference.half_width() < 2.0, "{difference:?}");
    }

    #[test]
    fn layouts_beside_a_busy_sibling_are_left_out() {
        let mut all = readings(Scenario::default());
        for reading in &mut all[..5] {
            reading.width /= 2.0;
        }
        let (kept, shared) = unshared(all.clone(), 0.0);
        assert_eq!((kept.len(), shared), (11, false));
        assert_eq!(unshared(all[..6].to_vec(), 0.0).0.len(), 6);
    }
}
