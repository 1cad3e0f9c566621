//! The ruler alone, in many short layouts.
//!
//! A round holds the two lengths of both chains and the width sentinel; rounds that an interrupt hit are
//! dropped whole, as in [`crate::estimate`]. Each layout has another number of iterations and another order.

use crate::clock::Clock;
use crate::context::Element;
use crate::error::RunError;
use crate::executor::{Batch, Call, Executor, Layout, Place, Sample};
use crate::program::Program;
use crate::random::Random;
use crate::ruler::{ADD_LINKS, ADD_SPAN, IMUL_SPAN, Ruler, SENTINEL_LOOPS, sentinel_adds};
use crate::statistics::{median, quantile};
use std::time::Duration;

/// The calls of a round, in the order of [`Ruler::programs`].
const IMUL_SHORT: usize = 0;
const IMUL_LONG: usize = 1;
const ADD_SHORT: usize = 2;
const ADD_LONG: usize = 3;
const SENTINEL: usize = 4;
const CALLS: usize = 5;

/// Iterations of the chains, about: a round takes some 6 µs, well below a timer's period.
const LOOPS: usize = 200;
/// The sentinel runs so many times its usual iterations, for it is read a few times only.
const SENTINEL_TIMES: u64 = 8;
const WARM_UP: u32 = 2;
/// A layout with fewer undisturbed rounds is not used.
const KEPT_LEAST: usize = 3;
/// A duration beyond its layout's median by this many scales is an outlier, as in [`crate::estimate`].
const OUTLIER_SCALES: f64 = 6.0;
/// No batch here takes longer than some milliseconds.
pub(super) const DEADLINE: Duration = Duration::from_secs(2);

/// The ruler's programs for one timing method.
pub(super) struct Probe {
    programs: [Program; CALLS],
    /// The step of the readings in raw units.
    step: f64,
}

/// The readings of one layout.
pub(super) struct Readings {
    /// Iterations of the chains.
    loops: u64,
    /// Rounds of samples, in the order of the calls' meaning.
    rounds: Vec<[Sample; CALLS]>,
    step: f64,
}

/// What one layout, or one round, says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// Raw units of one link of the `imul` chain.
    pub(super) imul: f64,
    /// Raw units of one link of the `add` chain.
    pub(super) add: f64,
    /// Independent additions in the time of one link of the `add` chain.
    pub(super) width: f64,
    /// Links of the `imul` chain by which its two lengths differ.
    pub(super) imul_links: f64,
    /// The same of the `add` chain.
    pub(super) add_links: f64,
    /// Rounds used.
    pub(super) kept: usize,
    /// Rounds dropped.
    pub(super) dropped: usize,
}

impl Probe {
    pub(super) fn new(clock: &Clock, step: f64) -> Probe {
        Probe { programs: Ruler::new(clock).programs(), step }
    }

    /// Runs so many layouts of so many rounds.
    pub(super) fn run(
        &self,
        executor: &mut dyn Executor,
        layouts: usize,
        rounds: u32,
        random: &mut Random,
    ) -> Result<Vec<Readings>, RunError> {
        let (offsets, _) = crate::placement::fixed(&self.programs);
        let code: Vec<Place> =
            offsets.iter().enumerate().map(|(program, &offset)| Place { program, offset }).collect();
        let mut loops = Vec::new();
        let mut placed = Vec::new();
        for _ in 0..layouts {
            let count = (LOOPS - LOOPS / 4 + random.below(LOOPS / 2)) as u64;
            let loop_count = |place| if place == SENTINEL { SENTINEL_TIMES * SENTINEL_LOOPS } else { count };
            let mut round: Vec<Call> =
                (0..CALLS).map(|place| Call { place, loop_count: loop_count(place) }).collect();
            random.shuffle(&mut round);
            let data = crate::placement::data(random);
            placed.push(Layout { code: code.clone(), round, data, seed: random.bits() });
            loops.push(count);
        }
        let programs = self.programs.to_vec();
        let element = Element::default();
        let batch = Batch {
            programs,
            warm_up: WARM_UP,
            rounds,
            layouts: placed,
            element,
            touches_memory: false,
            deadline: DEADLINE,
        };
        let samples = executor.run(&batch)?;
        let layouts = batch.layouts.iter().zip(samples.chunks_exact(rounds as usize * CALLS)).zip(loops);
        let readings = layouts.map(|((layout, samples), loops)| {
            let rounds = samples.chunks_exact(CALLS).map(|round| in_order(&layout.round, round)).collect();
            Readings { loops, rounds, step: self.step }
        });
        Ok(readings.collect())
    }
}

/// The samples of a round, by what was called.
fn in_order(round: &[Call], samples: &[Sample]) -> [Sample; CALLS] {
    let mut ordered = [Sample::default(); CALLS];
    for (call, sample) in round.iter().zip(samples) {
        ordered[call.place] = *sample;
    }
    ordered
}

/// How long each call of a round took; backwards is forever.
fn durations(round: &[Sample; CALLS]) -> [f64; CALLS] {
    round.map(|sample| sample.end.checked_sub(sample.start).map_or(f64::INFINITY, |raw| raw as f64))
}

impl Readings {
    /// The rounds that nothing disturbed.
    fn undisturbed(&self) -> impl Iterator<Item = &[Sample; CALLS]> {
        let limits: [f64; CALLS] = std::array::from_fn(|call| {
            let mut column: Vec<f64> = self.rounds.iter().map(|round| durations(round)[call]).collect();
            let middle = median(&mut column);
            let range = quantile(&column, 0.75) - quantile(&column, 0.25);
            middle + OUTLIER_SCALES * range.max(self.step)
        });
        let kept =
            move |round: &&[Sample; CALLS]| durations(round).iter().zip(limits).all(|(d, most)| *d <= most);
        self.rounds.iter().filter(kept)
    }

    /// What the layout says; `None` with too few undisturbed rounds.
    pub(super) fn read(&self) -> Option<Reading> {
        let kept: Vec<[f64; CALLS]> = self.undisturbed().map(durations).collect();
        if kept.len() < KEPT_LEAST {
            return None;
        }
        let mean = std::array::from_fn(|call| {
            kept.iter().map(|durations| durations[call]).sum::<f64>() / kept.len() as f64
        });
        let (count, all) = (kept.len(), self.rounds.len());
        Some(Reading { kept: count, dropped: all - count, ..self.reading(mean) })
    }

    /// The middle of the layout's rounds, as a reading of the timing method.
    pub(super) fn middle(&self) -> u64 {
        let samples = || self.rounds.iter().flatten();
        let start = samples().map(|sample| sample.start).min().unwrap_or_default();
        let end = samples().map(|sample| sample.end).max().unwrap_or_default();
        start + end.saturating_sub(start) / 2
    }

    /// Each undisturbed round: from when to when it ran, and the width that it saw.
    pub(super) fn widths(&self) -> impl Iterator<Item = (u64, u64, f64)> {
        self.undisturbed().map(|round| {
            let start = round.iter().map(|sample| sample.start).min().unwrap_or_default();
            let end = round.iter().map(|sample| sample.end).max().unwrap_or_default();
            (start, end, self.reading(durations(round)).width)
        })
    }

    fn reading(&self, mean: [f64; CALLS]) -> Reading {
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
            kept: 1,
            dropped: 0,
        }
    }
}
