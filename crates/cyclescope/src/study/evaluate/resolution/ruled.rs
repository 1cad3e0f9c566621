//! Rounds of calls with the ruler among them, and which of them are fit for use.
//!
//! The ruler is the chain of `imul` at two lengths, with the width sentinel, as in [`crate::ruler`]; the programs under
//! test are called among them, in another order in each layout. The ruler is read by a fenced and cheap method that
//! counts the same: one that can't read the ruler well would spoil each of its readings twice.

use crate::context::Element;
use crate::executor::{Batch, Call, DELAY, Layout, Place};
use crate::probe::DEADLINE;
use crate::program::Program;
use crate::random::Random;
use crate::ruler::{IMUL_LINKS, IMUL_SPAN, Ruler, sentinel_loops};
use crate::samples::LayoutSamples;
use crate::statistics::{median, quantile};
use crate::study::evaluate::Subject;

/// Columns of a round: the ruler's two readings and the sentinel's, then those of the programs under test.
const SHORT: usize = 0;
const LONG: usize = 1;
const SENTINEL: usize = 2;
pub(super) const TESTED: usize = 3;

/// Untimed rounds at the start of each layout, in which caches and predictors meet the code.
const WARM_UP: u32 = 1;

/// A value beyond the median by this many scales is an outlier, as in [`crate::estimate`].
const OUTLIER_SCALES: f64 = 6.0;

/// A core narrower than this share of its best is shared with a busy sibling,
const ALONE_SHARE: f64 = 0.9;
/// unless so many steps of the clock explain it: a reading's standard deviation is half a step at most. (Undisturbed
/// sentinels of 228 core cycles were 221 to 240 on a Xeon, family 6, model 207, and 265 to 450 beside a sibling, but
/// sometimes 235: so the rounds before and after must be alone too, and that for half of the layout's rounds.)
const ALONE_STEPS: f64 = 1.5;
/// Rounds beside a busy sibling are left out where this share of all is not.
const ALONE_LEAST: f64 = 0.25;

/// The ruler of a round.
pub(super) struct Chain {
    programs: [Program; TESTED],
    loops: u64,
    /// Core cycles of one link.
    latency: f64,
    /// The step of the readings in raw units.
    step: f64,
}

impl Chain {
    /// The ruler for this subject, with so many iterations.
    pub(super) fn new(subject: &Subject, loops: u64) -> Chain {
        let Ruler { imul: [short, long], sentinel, .. } = Ruler::new(subject.ruler);
        let programs = [short, long, sentinel];
        Chain { programs, loops, latency: subject.imul_latency, step: subject.step }
    }

    /// Its programs, the first of each batch.
    pub(super) fn programs(&self) -> [Program; TESTED] {
        self.programs.clone()
    }

    /// Core cycles by which its two lengths differ.
    pub(super) fn span(&self) -> f64 {
        IMUL_SPAN * self.loops as f64 * self.latency
    }

    /// Raw units a core cycle in this round; none where a reading ran backwards or the long chain was not longer.
    pub(super) fn rate(&self, round: &[f64]) -> Option<f64> {
        let rate = (round[LONG] - round[SHORT]) / self.span();
        (rate.is_finite() && rate > 0.0).then_some(rate)
    }

    /// What a call takes beside its chain, in core cycles: the same in every round that nothing disturbed.
    fn overhead(&self, round: &[f64]) -> Option<f64> {
        let chain = IMUL_LINKS[0] as f64 * self.loops as f64 * self.latency;
        self.rate(round).map(|rate| round[SHORT] / rate - chain)
    }

    /// Core cycles of the sentinel in this round, its reading included.
    fn sentinel(&self, round: &[f64]) -> Option<f64> {
        self.rate(round).map(|rate| round[SENTINEL] / rate)
    }

    /// What the ruler of an undisturbed round says, from all of these rounds; none where no round has a rate.
    ///
    /// An interrupt in either reading, and a change of frequency between the two, shows in what the short one takes
    /// beside its chain; a busy sibling in the sentinel.
    pub(super) fn sound<'a>(&self, rounds: impl Iterator<Item = &'a [f64]> + Clone) -> Option<Sound> {
        let mut rates: Vec<f64> = rounds.clone().filter_map(|round| self.rate(round)).collect();
        if rates.is_empty() {
            return None;
        }
        let step = self.step / median(&mut rates);
        let overheads = rounds.clone().filter_map(|round| self.overhead(round)).collect();
        let overhead = Band::of(overheads, step)?;
        let mut sentinels: Vec<f64> = rounds.filter_map(|round| self.sentinel(round)).collect();
        sentinels.sort_by(f64::total_cmp);
        let best = quantile(&sentinels, 0.1) - overhead.middle();
        let most = overhead.middle() + best / ALONE_SHARE + ALONE_STEPS * step;
        let alone = sentinels.partition_point(|cycles| *cycles <= most) as f64;
        let shared = alone < ALONE_LEAST * sentinels.len() as f64;
        Some(Sound { overhead, sentinel: if shared { f64::INFINITY } else { most }, shared, step })
    }

    /// A layout's rounds whose ruler is sound, and which a busy sibling did not come near, each with its rate.
    pub(super) fn usable<'a>(
        &'a self,
        layout: &'a LayoutSamples,
        sound: &'a Sound,
    ) -> impl Iterator<Item = (f64, &'a [f64])> {
        let alone = |round: &[f64]| self.sentinel(round).is_some_and(|cycles| cycles <= sound.sentinel);
        let alone: Vec<bool> = layout.rounds().map(alone).collect();
        let near = |index: usize| &alone[index.saturating_sub(1)..alone.len().min(index + 2)];
        let clear: Vec<bool> = (0..alone.len()).map(|index| near(index).iter().all(|alone| *alone)).collect();
        let mostly = 2 * clear.iter().filter(|clear| **clear).count() >= clear.len();
        layout.rounds().enumerate().filter_map(move |(index, round)| {
            let rate = self.rate(round)?;
            let holds = sound.overhead.holds(self.overhead(round)?);
            (holds && mostly && clear[index]).then_some((rate, round))
        })
    }

    /// A layout that calls the programs of `code`, the ruler's first, as often as `tested` says: the place in `code` and
    /// the iterations of each call. Also the column of each call of its round.
    pub(super) fn layout(
        &self,
        code: Vec<Place>,
        tested: &[(usize, u64)],
        random: &mut Random,
    ) -> (Layout, Vec<usize>) {
        let rulers = [(SHORT, self.loops), (LONG, self.loops), (SENTINEL, sentinel_loops(self.step))];
        let calls: Vec<(usize, u64)> = rulers.iter().chain(tested).copied().collect();
        let mut order: Vec<usize> = (0..calls.len()).collect();
        random.shuffle(&mut order);
        let call = |column: &usize| Call { place: calls[*column].0, loop_count: calls[*column].1 };
        let round = order.iter().map(call).collect();
        (Layout { code, round, data: [0; 5], seed: random.bits() }, order)
    }
}

/// A batch of such layouts.
pub(super) fn batch(programs: Vec<Program>, rounds: u32) -> Batch {
    Batch {
        programs,
        warm_up: WARM_UP,
        rounds,
        layouts: Vec::new(),
        element: Element::default(),
        touches_memory: false,
        delay: DELAY,
        deadline: DEADLINE,
    }
}

/// The rounds of some layouts.
pub(super) fn rounds<'a>(
    layouts: impl Iterator<Item = &'a LayoutSamples> + Clone,
) -> impl Iterator<Item = &'a [f64]> + Clone {
    layouts.flat_map(LayoutSamples::rounds)
}

/// What undisturbed rulers are like.
pub(super) struct Sound {
    overhead: Band,
    /// Core cycles of the sentinel at most.
    sentinel: f64,
    /// Whether the core was shared with a busy sibling nearly all the time, so that such rounds are used.
    pub(super) shared: bool,
    /// One step of the readings in core cycles.
    step: f64,
}

/// Core cycles by which the readings of a body with branches may differ, times [`OUTLIER_SCALES`], before they count
/// as disturbed: 48 are twice a mispredicted branch, which belongs to the body, and far below an interrupt.
const BRANCH_SCALE: f64 = 8.0;

impl Sound {
    /// Where a body's undisturbed readings lie, from all of them in core cycles; none without readings.
    pub(super) fn band(&self, cycles: Vec<f64>, branches: bool) -> Option<Band> {
        Band::of(cycles, if branches { self.step.max(BRANCH_SCALE) } else { self.step })
    }
}

/// Where undisturbed values lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Band {
    low: f64,
    high: f64,
}

impl Band {
    /// The median give or take some interquartile ranges, or some `least` where that is wider; none without finite
    /// values.
    fn of(mut values: Vec<f64>, least: f64) -> Option<Band> {
        values.retain(|value| value.is_finite());
        if values.is_empty() {
            return None;
        }
        values.sort_by(f64::total_cmp);
        let [low, middle, high] = [0.25, 0.5, 0.75].map(|p| quantile(&values, p));
        let reach = OUTLIER_SCALES * least.max(high - low);
        Some(Band { low: middle - reach, high: middle + reach })
    }

    fn middle(&self) -> f64 {
        (self.low + self.high) / 2.0
    }

    /// Whether it holds this value.
    pub(super) fn holds(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}
