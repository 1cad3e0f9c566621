//! One timing method's samples, and what follows from them.

use super::chance::chance;
use super::ensemble::Totals;
use super::ergodic::Ergodic;
use super::reader::{Sampled, Shape, Size};
use super::sampling::{Sampling, Span, Take};
use super::trimmed::{self, Summary, Trimmed};
use super::{TestedClock, criteria};
use cyclescope_code::program::Recipe;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use cyclescope_exec::Executor;
use cyclescope_measure::contrast::Contrast;
use cyclescope_measure::rounds::{LayoutReading, LayoutRounds, Rounds, combination, quiet, unshared};
use cyclescope_measure::ruler::Quiet;
use cyclescope_measure::study::Stop;

/// The level of the overhead's interval.
const CONFIDENCE: f64 = 0.95;
/// Layouts and rounds of one look at the overhead: two milliseconds.
const LAYOUTS: usize = 8;
const ROUNDS: u32 = 32;

/// What was found about one method's empty pair.
#[derive(Debug, Clone)]
pub struct Method<'a> {
    /// The method.
    pub tested: TestedClock<'a>,
    /// What was asked for, before time cut it.
    pub asked: Size,
    /// Its samples.
    pub sampled: Sampled,
    /// The paper's figures.
    pub totals: Totals,
    /// The same without interrupts and changes of frequency; none with too few ensembles, no sane ruler or an emulated
    /// machine.
    pub trimmed: Option<Summary>,
    /// The pair's time in core cycles over many layouts, below one step of the clock.
    pub overhead: Option<Interval>,
    /// See [`Samples::earlier`].
    earlier: Quiet,
}

/// How a method's samples are taken.
pub(crate) struct Samples {
    /// What was asked for.
    pub asked: Size,
    /// What there is time for.
    pub shape: Shape,
    /// The time.
    pub span: Span,
    /// The width of a core of its own that earlier methods found: see [`Summary::of`].
    pub earlier: Quiet,
}

impl<'a> Method<'a> {
    /// Takes and reads the samples, and the overhead over many layouts. None where every sample of an ensemble ran
    /// backwards.
    pub(crate) fn measure(
        executor: &mut dyn Executor,
        tested: &TestedClock<'a>,
        samples: &Samples,
        random: &mut Random,
        take: &mut Take,
    ) -> Result<Option<Method<'a>>, Stop> {
        let mut looks = OverheadLooks::new(tested);
        let mut between = |executor: &mut dyn Executor, random: &mut Random| match tested.emulated {
            true => Ok(()),
            false => looks.look(executor, random),
        };
        let Samples { asked, shape, span, earlier } = *samples;
        let sampled = Sampling::new(tested).run(executor, shape, span, random, &mut between, take)?;
        let Some(totals) = Totals::of(&sampled.ensembles) else { return Ok(None) };
        let cycles = !tested.emulated;
        let trimmed = Summary::of(&sampled.trimmed, shape.scale.step, earlier).filter(|_| cycles);
        let overhead = looks.overhead().filter(|_| cycles);
        Ok(Some(Method { tested: *tested, asked, sampled, totals, trimmed, overhead, earlier }))
    }

    /// Whether the paper would call it ergodic.
    pub fn ergodic(&self) -> Ergodic {
        criteria::ergodic(&self.totals, self.chance())
    }

    /// Why the paper would, or would not.
    pub fn ergodic_why(&self) -> String {
        let Shape { size, scale, .. } = self.sampled.shape;
        criteria::why(&self.totals, size.samples, self.chance(), scale.step)
    }

    /// The variance that the ensembles' variances would have by chance alone, for this number of samples.
    pub fn chance(&self) -> Option<f64> {
        let moments = self.sampled.trimmed.iter().map(|ensemble| ensemble.moments);
        chance(moments, self.sampled.shape.size.samples)
    }

    /// The ensembles that [`Self::trimmed`] is of.
    pub(crate) fn used(&self) -> Vec<&Trimmed> {
        trimmed::unshared(&self.sampled.trimmed, self.earlier).used
    }

    /// Whether what is left without the machine's doing is ergodic; `None` where nothing is left to say it of.
    pub fn ergodic_trimmed(&self) -> Option<Ergodic> {
        self.trimmed.map(|summary| summary.ergodic)
    }

    /// The standard deviation of one reading in core cycles, interrupts and changes of frequency left out: what the
    /// method makes of itself, and no less than what steps make of code whose length is no multiple of them. None
    /// where too little remains of the samples to say.
    pub(crate) fn deviation_cycles(&self) -> Option<f64> {
        let summary = self.trimmed.filter(|summary| summary.ergodic == Ergodic::Yes)?;
        let step = self.tested.step;
        Some(summary.variance.max(step * step / 4.0).sqrt() * summary.step_cycles / step)
    }

    /// The most frequent duration, in raw units.
    pub fn mode(&self) -> u64 {
        let recorded = self.sampled.histogram.iter_recorded();
        let most = recorded
            .max_by_key(|value| (value.count_at_value(), std::cmp::Reverse(value.value_iterated_to())));
        most.map_or(0, |value| value.value_iterated_to())
    }

    /// The duration that this share of the samples does not exceed, in raw units.
    pub fn quantile(&self, share: f64) -> u64 {
        self.sampled.histogram.value_at_quantile(share)
    }

    /// The mean of all samples, in raw units.
    pub fn mean(&self) -> f64 {
        let ensembles = &self.sampled.ensembles;
        let count: u64 = ensembles.iter().map(|ensemble| ensemble.count).sum();
        ensembles.iter().map(|ensemble| ensemble.mean() * ensemble.count as f64).sum::<f64>() / count as f64
    }

    /// Samples that ended before they began.
    pub(crate) fn backwards(&self) -> u64 {
        self.sampled.ensembles.iter().map(|ensemble| ensemble.backwards).sum()
    }
}

/// Finds what an empty pair takes in core cycles, over many layouts, in looks spread over the time: what a neighbour
/// does for a while must not decide.
struct OverheadLooks<'a> {
    tested: &'a TestedClock<'a>,
    rounds: Rounds,
    readings: Vec<LayoutReading>,
}

impl<'a> OverheadLooks<'a> {
    fn new(tested: &'a TestedClock<'a>) -> OverheadLooks<'a> {
        let pair = Recipe::empty(tested.clock).build();
        let rounds = Rounds::new(tested.ruler, tested.step).with([pair], false);
        OverheadLooks { tested, rounds, readings: Vec::new() }
    }

    fn look(&mut self, executor: &mut dyn Executor, random: &mut Random) -> Result<(), RunError> {
        let count = if self.tested.clock.executes_cpuid() { ROUNDS / 8 } else { ROUNDS };
        let readings = self.rounds.run(executor, LAYOUTS, count, random)?;
        self.readings.extend(readings.iter().filter_map(LayoutRounds::read));
        Ok(())
    }

    fn overhead(self) -> Option<Interval> {
        let quiet = quiet(&self.readings, self.tested.width);
        let readings = unshared(self.readings, quiet);
        combination(&readings.used, self.tested.imul_latency, &Contrast::new([(0, 1.0)]), CONFIDENCE)
    }
}

/// TSC ticks of one raw unit of a method, where the TSC runs at `hertz`.
pub(crate) fn ticks_per_unit(unit: Unit, hertz: f64) -> f64 {
    match unit {
        Unit::Nanos => hertz / 1e9,
        _ => 1.0,
    }
}
