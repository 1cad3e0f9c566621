//! The loop that adapts the length of bodies, the warm-up and the number of layouts, and decides when to stop.

use super::acquisition::{Acquisition, Measurement};
use super::estimate::{Estimate, Shape, call, estimate};
use super::layouts::SECONDS_A_CYCLE;
use super::session::Session;
use crate::error::RunError;
use crate::ruler::{IMUL_SPAN, sentinel_width, shared_margin};
use crate::statistics::{Interval, mean};
use std::time::Duration;

/// Untimed rounds at first: two runs fill the caches and, on cores that need it, wake the wide vector units.
const WARM_UP: u32 = 3;
/// Untimed rounds at most. Predictors of store forwarding took some fifteen runs of each load to settle.
const WARM_UP_MOST: u32 = 96;
/// Instructions in the shortest body at least: more than any scheduler holds (97 entries on Golden Cove, 192 in
/// all of Zen 4's). A body that fits the scheduler as a whole ends differently from a longer one: with 100, chains of
/// `popcnt`, `bswap` and `cmov` read 1.9, 0.6 and 1.8 cycles too little over 300 copies, with 200 and more no chain
/// was off by more than 0.4.
const INSTRUCTIONS: usize = 200;
/// Memory accesses in the shortest body at least: more than any store buffer holds (Intel and AMD
/// optimisation manuals: at most 112 entries), else a sample's stores all fit in it and their cost is hidden.
const MEMORY_ACCESSES: usize = 128;
/// Bytes of the longest body at first, inside every op cache and half of a level 1 instruction cache.
const BODY_BYTES: usize = 12 << 10;
/// Bytes of the longest body after the unit was increased.
const BODY_BYTES_MOST: usize = 128 << 10;
/// Core cycles of the longest body at first and after the unit was increased: well below a scheduler's time slice.
const BODY_CYCLES: f64 = 400_000.0;
const BODY_CYCLES_MOST: f64 = 4_000_000.0;
/// With these the ratio of the rulers is good to 0.1 % through a clock that steps by 38 ticks.
const LATENCY_LOOPS: u64 = 400;
const LATENCY_LAYOUTS: usize = 4;
const LATENCY_ROUNDS: u32 = 24;
/// Assumed cost of a cold start in core cycles, before it is measured.
const COLD_GUESS: f64 = 1000.0;
/// Iterations of the ruler's loops.
const RULER_LOOPS: std::ops::RangeInclusive<f64> = 16.0..=4000.0;
/// A bend of the slope, or a trend of the cost, below this share or this many core cycles is accepted.
const BEND_SHARE: f64 = 0.01;
const BEND_CYCLES: f64 = 0.003;
/// Pause on a shared core before the layouts are measured again, the number of pauses, and their limit in budgets: a
/// busy sibling was active for tens of milliseconds to seconds at a time, and costs measured beside it were wrong by up
/// to a third.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSES_MOST: u32 = 150;
const BUDGETS_BESIDE_SIBLING: u32 = 12;
/// Iterations of the loop around the copies in the pilot.
const PILOT_LOOPS: u64 = 1000;

impl Session<'_> {
    pub(super) fn run(mut self) -> Result<Measurement, RunError> {
        if self.plan.imul_latency.is_none() {
            self.imul_latency = self.find_imul_latency()?;
        }
        let guess = if self.is_cold() { COLD_GUESS } else { self.pilot()? };
        let unit = if self.is_cold() { 1 } else { self.plan.unit.unwrap_or_else(|| self.first_unit(guess)) };
        let mut acquisition = self.acquisition(unit, self.plan.warm_up.unwrap_or(WARM_UP), guess);
        // The first batch may have waited for another run on this CPU: that wait does not count as time spent.
        self.started = self.executor.now();
        loop {
            let more = acquisition.layouts.len().max(self.plan.layouts);
            self.batch(&mut acquisition, more, self.plan.rounds)?;
            let result = self.estimate(&acquisition);
            let (linear, settled) = verdict(&result);
            let Acquisition { unit, warm_up, .. } = acquisition;
            if result.as_ref().is_some_and(|result| result.shared) && self.may_wait() {
                self.pauses += 1;
                self.executor.pause(PAUSE);
                acquisition = self.acquisition(unit, warm_up, guess);
                continue;
            }
            let full = acquisition.layouts.len() >= self.plan.layouts_most || !self.has_time();
            if !settled && self.plan.warm_up.is_none() && warm_up < WARM_UP_MOST && self.has_time() {
                acquisition = self.acquisition(unit, (4 * warm_up).min(WARM_UP_MOST), guess);
            } else if (!linear || self.is_blurred(&result)) && self.may_grow(unit, guess) && self.has_time() {
                acquisition = self.acquisition(2 * unit, warm_up, guess);
            } else if full || self.reached(&result) {
                let elapsed = self.elapsed();
                return Ok(Measurement { estimate: result, linear, settled, acquisition, elapsed });
            }
        }
    }

    /// Whether there is time to wait until a busy sibling is idle.
    fn may_wait(&self) -> bool {
        self.pauses < PAUSES_MOST && self.elapsed() < BUDGETS_BESIDE_SIBLING * self.plan.budget
    }

    fn reached(&self, result: &Option<Estimate>) -> bool {
        result.as_ref().is_some_and(|result| !result.shared && self.plan.precision.met_by(&result.cost))
    }

    /// Whether the instrument's error takes too large a part of the precision: more layouts reduce only the error from
    /// the spread between layouts, so only longer bodies help.
    fn is_blurred(&self, estimate: &Option<Estimate>) -> bool {
        let Some(estimate) = estimate else { return false };
        let errors: Vec<f64> = estimate.layouts.iter().map(|layout| layout.systematic).collect();
        let margin = shared_margin(mean(&errors), self.plan.confidence);
        let both = std::f64::consts::SQRT_2 * margin;
        !self.plan.precision.met_by(&Interval::around(estimate.cost.value, both))
    }

    fn has_time(&self) -> bool {
        self.elapsed() < self.plan.budget
    }

    fn estimate(&self, acquisition: &Acquisition) -> Option<Estimate> {
        estimate(&acquisition.layouts, &acquisition.shape, self.plan.confidence)
    }

    /// The whole number next to the ratio of the two rulers. If the ratio is no whole number the estimate shows
    /// that the rulers disagree.
    fn find_imul_latency(&mut self) -> Result<f64, RunError> {
        let mut acquisition = self.acquisition(1, WARM_UP, 0.0);
        acquisition.ruler_loops = LATENCY_LOOPS;
        acquisition.shape.imul_latency = 1.0;
        self.batch(&mut acquisition, LATENCY_LAYOUTS, LATENCY_ROUNDS)?;
        let ratio = self.estimate(&acquisition).map(|estimate| 1.0 / estimate.add_link.value);
        Ok(ratio.map_or(1.0, |ratio| ratio.round().max(1.0)))
    }

    /// A rough cost in core cycles a copy, from a few copies.
    fn pilot(&mut self) -> Result<f64, RunError> {
        let mut acquisition = self.acquisition(1, 1, 0.0);
        acquisition.shape.loop_count = acquisition.shape.loop_count.min(PILOT_LOOPS);
        self.batch(&mut acquisition, 1, 2)?;
        let samples = &acquisition.layouts[0].samples;
        let least = |call: usize| samples.column(call).fold(f64::INFINITY, f64::min);
        let shortest: Vec<f64> = (0..call::COUNT).map(least).collect();
        let scale = acquisition.layouts[0].gauge(&acquisition.shape).read(&shortest);
        let copies = 3.0 * acquisition.shape.loop_count as f64;
        let guess = (shortest[call::FOUR] - shortest[call::ONE]) / copies / scale.rate;
        Ok(if scale.is_sane() && guess.is_finite() { guess.max(0.05) } else { 1.0 })
    }

    /// Core cycles by which the ruler's two lengths differ in each iteration.
    fn ruler_span(&self) -> f64 {
        IMUL_SPAN * self.imul_latency
    }

    fn first_unit(&self, guess: f64) -> usize {
        let by_count = INSTRUCTIONS.div_ceil(self.outline.instructions.max(1));
        let by_memory = match self.outline.memory_accesses {
            0 => 1,
            accesses => with_spread(MEMORY_ACCESSES.div_ceil(accesses)),
        };
        let bytes = 4 * self.snippet.code().len().max(1);
        let (by_bytes, by_bytes_most) = (BODY_BYTES / bytes, BODY_BYTES_MOST / bytes);
        let loops = self.plan.loop_count.unwrap_or(1) as f64;
        let by_time = BODY_CYCLES / 4.0 / (guess * loops);
        by_count.min(by_bytes).max(by_memory.min(by_bytes_most)).min(by_time as usize).max(1)
    }

    fn may_grow(&self, unit: usize, guess: f64) -> bool {
        let loops = self.plan.loop_count.unwrap_or(1) as f64;
        self.plan.unit.is_none()
            && !self.is_cold()
            && 8 * unit * self.snippet.code().len() <= BODY_BYTES_MOST
            && 8.0 * unit as f64 * guess * loops <= BODY_CYCLES_MOST
    }

    /// The shape for one unit, without samples.
    fn acquisition(&self, unit: usize, warm_up: u32, guess: f64) -> Acquisition {
        let loop_count = self.plan.loop_count.unwrap_or(1);
        let span = 3.0 * unit as f64 * loop_count as f64 * guess;
        let ruler_loops = (span / self.ruler_span()).clamp(*RULER_LOOPS.start(), *RULER_LOOPS.end()) as u64;
        let width = self.plan.adders.map(sentinel_width);
        let shape = Shape {
            loop_count,
            imul_latency: self.imul_latency,
            step: self.plan.step,
            width,
            pooled: self.is_cold(),
        };
        Acquisition {
            unit,
            warm_up,
            ruler_loops,
            shape,
            runs_per_layout: 1,
            layouts: Vec::new(),
            progress: None,
            round_s: SECONDS_A_CYCLE * (2.5 * span + 4.0 * self.ruler_span() * ruler_loops as f64)
                + call::COUNT as f64 * self.call_s(),
        }
    }
}

/// The smallest unit whose bodies hold `least` copies even when they are shortened by a quarter.
fn with_spread(least: usize) -> usize {
    (4 * least).div_ceil(3)
}

/// Whether the cost is proportional to the number of copies, and whether it has stopped changing.
fn verdict(estimate: &Option<Estimate>) -> (bool, bool) {
    let Some(estimate) = estimate else { return (true, true) };
    let tolerance = (BEND_SHARE * estimate.cost.value.abs()).max(BEND_CYCLES);
    let small = |interval: &Interval| {
        interval.value.abs() <= tolerance || (interval.low <= 0.0 && interval.high >= 0.0)
    };
    (small(&estimate.bend), small(&estimate.trend))
}
