//! One timing method's samples, and what follows from them.

use super::chance_variance::chance_variance;
use super::ensemble::EnsembleTotals;
use super::ensemble_reader::{SampledEnsembles, SamplingShape, SamplingSize};
use super::ergodic_verdict::ErgodicVerdict;
use super::sampling::{EnsembleFollower, PairSampler, SamplingSpan};
use super::trimmed_ensemble::{self, TrimmedEnsemble, TrimmedSummary};
use super::{TestedClock, criteria};
use cyclescope_code::program::ProgramRecipe;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use cyclescope_exec::Executor;
use cyclescope_measure::contrast::Contrast;
use cyclescope_measure::rounds::{
    LayoutReading, LayoutRounds, RulerRounds, estimate_contrast, find_unshared_width, select_unshared,
};
use cyclescope_measure::ruler::UnsharedWidth;
use cyclescope_measure::study::StopReason;

/// The level of the overhead's interval.
const CONFIDENCE: f64 = 0.95;
/// Layouts and rounds of one look at the overhead: two milliseconds.
const LAYOUTS: usize = 8;
const ROUNDS: u32 = 32;

/// What was found about one method's empty pair.
#[derive(Debug, Clone)]
pub struct SampledMethod<'a> {
    /// The method.
    pub tested: TestedClock<'a>,
    /// What was asked for, before time cut it.
    pub asked: SamplingSize,
    /// Its samples.
    pub sampled: SampledEnsembles,
    /// The paper's figures.
    pub totals: EnsembleTotals,
    /// The same without interrupts and changes of frequency; none with too few ensembles, no sane ruler or an emulated
    /// machine.
    pub trimmed: Option<TrimmedSummary>,
    /// The pair's time in core cycles over many layouts, below one step of the clock.
    pub overhead: Option<Interval>,
    /// See [`SamplingRequest::earlier`].
    earlier: UnsharedWidth,
}

/// How a method's samples are taken.
pub(crate) struct SamplingRequest {
    /// What was asked for.
    pub asked: SamplingSize,
    /// What there is time for.
    pub shape: SamplingShape,
    /// The time.
    pub span: SamplingSpan,
    /// The width of a core of its own that earlier methods found: see [`TrimmedSummary::from_ensembles`].
    pub earlier: UnsharedWidth,
}

impl<'a> SampledMethod<'a> {
    /// Takes and reads the samples, and the overhead over many layouts. None where every sample of an ensemble ran
    /// backwards.
    pub(crate) fn measure(
        executor: &mut dyn Executor,
        tested: &TestedClock<'a>,
        samples: &SamplingRequest,
        random: &mut Random,
        take: &mut EnsembleFollower,
    ) -> Result<Option<SampledMethod<'a>>, StopReason> {
        let mut looks = OverheadLooks::new(tested);
        let mut between = |executor: &mut dyn Executor, random: &mut Random| match tested.emulated {
            true => Ok(()),
            false => looks.take_look(executor, random),
        };
        let SamplingRequest { asked, shape, span, earlier } = *samples;
        let sampled = PairSampler::new(tested).take_ensembles(executor, shape, span, random, &mut between, take)?;
        let Some(totals) = EnsembleTotals::from_ensembles(&sampled.ensembles) else { return Ok(None) };
        let cycles = !tested.emulated;
        let trimmed = TrimmedSummary::from_ensembles(&sampled.trimmed, shape.scale.step, earlier).filter(|_| cycles);
        let overhead = looks.combine_looks().filter(|_| cycles);
        Ok(Some(SampledMethod { tested: *tested, asked, sampled, totals, trimmed, overhead, earlier }))
    }

    /// Whether the paper would call it ergodic.
    pub fn judge_ergodicity(&self) -> ErgodicVerdict {
        criteria::judge_ergodicity(&self.totals, self.chance_variance())
    }

    /// Why the paper would, or would not.
    pub fn explain_ergodicity(&self) -> String {
        let SamplingShape { size, scale, .. } = self.sampled.shape;
        criteria::explain_ergodicity(&self.totals, size.samples, self.chance_variance(), scale.step)
    }

    /// The variance that the ensembles' variances would have by chance alone, for this number of samples.
    pub fn chance_variance(&self) -> Option<f64> {
        let moments = self.sampled.trimmed.iter().map(|ensemble| ensemble.moments);
        chance_variance(moments, self.sampled.shape.size.samples)
    }

    /// The ensembles that [`Self::trimmed`] is of.
    pub(crate) fn used_ensembles(&self) -> Vec<&TrimmedEnsemble> {
        trimmed_ensemble::keep_unshared(&self.sampled.trimmed, self.earlier).used
    }

    /// Whether what is left without the machine's doing is ergodic; `None` where nothing is left to say it of.
    pub fn trimmed_ergodicity(&self) -> Option<ErgodicVerdict> {
        self.trimmed.map(|summary| summary.ergodic)
    }

    /// The standard deviation of one reading in core cycles, interrupts and changes of frequency left out: what the
    /// method makes of itself, and no less than what steps make of code whose length is no multiple of them. None
    /// where too little remains of the samples to say.
    pub(crate) fn deviation_cycles(&self) -> Option<f64> {
        let summary = self.trimmed.filter(|summary| summary.ergodic == ErgodicVerdict::Yes)?;
        let step = self.tested.step;
        Some(summary.variance.max(step * step / 4.0).sqrt() * summary.step_cycles / step)
    }

    /// The most frequent duration, in raw units.
    pub fn mode(&self) -> u64 {
        let recorded = self.sampled.histogram.iter_recorded();
        let most = recorded.max_by_key(|value| (value.count_at_value(), std::cmp::Reverse(value.value_iterated_to())));
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
    pub(crate) fn count_backwards(&self) -> u64 {
        self.sampled.ensembles.iter().map(|ensemble| ensemble.backwards).sum()
    }
}

/// Finds what an empty pair takes in core cycles, over many layouts, in looks spread over the time: what a neighbour
/// does for a while must not decide.
struct OverheadLooks<'a> {
    tested: &'a TestedClock<'a>,
    rounds: RulerRounds,
    readings: Vec<LayoutReading>,
}

impl<'a> OverheadLooks<'a> {
    fn new(tested: &'a TestedClock<'a>) -> OverheadLooks<'a> {
        let pair = ProgramRecipe::empty(tested.clock).build();
        let rounds = RulerRounds::new(tested.ruler, tested.step).with_programs([pair], false);
        OverheadLooks { tested, rounds, readings: Vec::new() }
    }

    fn take_look(&mut self, executor: &mut dyn Executor, random: &mut Random) -> Result<(), RunError> {
        let count = if self.tested.clock.executes_cpuid() { ROUNDS / 8 } else { ROUNDS };
        let readings = self.rounds.run(executor, LAYOUTS, count, random)?;
        self.readings.extend(readings.iter().filter_map(LayoutRounds::read));
        Ok(())
    }

    fn combine_looks(self) -> Option<Interval> {
        let quiet = find_unshared_width(&self.readings, self.tested.width);
        let readings = select_unshared(self.readings, quiet);
        estimate_contrast(&readings.used, self.tested.imul_latency, &Contrast::new([(0, 1.0)]), CONFIDENCE)
    }
}

/// TSC ticks of one raw unit of a method, where the TSC runs at `hertz`.
pub(crate) fn ticks_per_unit(unit: Unit, hertz: f64) -> f64 {
    match unit {
        Unit::Nanos => hertz / 1e9,
        _ => 1.0,
    }
}
