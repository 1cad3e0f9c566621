//! The samples of one timing method, and the figures derived from them.

use super::chance_variance::chance_variance;
use super::counted_pairs::CountedPairs;
use super::ensemble::EnsembleTotals;
use super::ensemble_reader::{SampledEnsembles, SamplingShape, SamplingSize};
use super::ergodic_verdict::ErgodicVerdict;
use super::sampling::{EnsembleFollower, PairSampler, SamplingSpan};
use super::trimmed_ensemble::{self, TrimmedEnsemble, TrimmedSummary};
use super::{TestedClock, criteria};
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

/// Confidence level of the overhead's interval.
const CONFIDENCE: f64 = 0.95;
/// Layouts and rounds of one measurement of the overhead: two milliseconds.
const LAYOUTS: usize = 8;
const ROUNDS: u32 = 32;

/// The results for one method's empty pair.
#[derive(Debug, Clone)]
pub struct SampledMethod<'a> {
    /// The method.
    pub tested: TestedClock<'a>,
    /// The requested size, before time cut it.
    pub asked: SamplingSize,
    /// Summary of its samples.
    pub sampled: SampledEnsembles,
    /// The paper's figures.
    pub totals: EnsembleTotals,
    /// The figures without interrupts and frequency changes; `None` with too few ensembles, no
    /// valid ruler or an emulated machine.
    pub trimmed: Option<TrimmedSummary>,
    /// The pair's time in core cycles over many layouts. It resolves less than one step of the
    /// clock.
    pub overhead: Option<Interval>,
    /// Events of a sample, if they were counted.
    pub counted: Option<CountedPairs>,
    /// See [`SamplingRequest::earlier`].
    earlier: UnsharedWidth,
}

/// Parameters for sampling a method.
pub(crate) struct SamplingRequest {
    /// The requested size.
    pub asked: SamplingSize,
    /// The shape that fits the time.
    pub shape: SamplingShape,
    /// Start and end of the sampling.
    pub span: SamplingSpan,
    /// Width of an unshared core according to earlier methods: see
    /// [`TrimmedSummary::from_ensembles`].
    pub earlier: UnsharedWidth,
}

impl<'a> SampledMethod<'a> {
    /// Takes and summarises the samples, and measures the overhead over many layouts. `None` if
    /// every sample of an ensemble ran backwards.
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
        Ok(Some(SampledMethod { tested: *tested, asked, sampled, totals, trimmed, overhead, counted: None, earlier }))
    }

    /// Verdict by the paper's criterion.
    pub fn judge_ergodicity(&self) -> ErgodicVerdict {
        criteria::judge_ergodicity(&self.totals, self.chance_variance())
    }

    /// Explains the verdict by the paper's criterion.
    pub fn explain_ergodicity(&self) -> String {
        let SamplingShape { size, scale, .. } = self.sampled.shape;
        criteria::explain_ergodicity(&self.totals, size.samples, self.chance_variance(), scale.step)
    }

    /// Variance of the ensembles' variances expected by chance alone for this number of samples.
    pub fn chance_variance(&self) -> Option<f64> {
        let moments = self.sampled.trimmed.iter().map(|ensemble| ensemble.moments);
        chance_variance(moments, self.sampled.shape.size.samples)
    }

    /// The ensembles in [`Self::trimmed`].
    pub(crate) fn used_ensembles(&self) -> Vec<&TrimmedEnsemble> {
        trimmed_ensemble::keep_unshared(&self.sampled.trimmed, self.earlier).used
    }

    /// Whether the trimmed samples are ergodic; `None` if too few remain.
    pub fn trimmed_ergodicity(&self) -> Option<ErgodicVerdict> {
        self.trimmed.map(|summary| summary.ergodic)
    }

    /// Standard deviation of one reading in core cycles, without interrupts and frequency changes.
    ///
    /// It is the method's own deviation. It is at least the rounding error of code whose length is
    /// not a multiple of the step. `None` if too few samples remain.
    pub(crate) fn deviation_cycles(&self) -> Option<f64> {
        let summary = self.trimmed.filter(|summary| summary.ergodic == ErgodicVerdict::Yes)?;
        let step = self.tested.step;
        Some(summary.variance.max(step * step / 4.0).sqrt() * summary.step_cycles / step)
    }

    /// Most frequent duration, in raw units.
    pub fn mode(&self) -> u64 {
        let recorded = self.sampled.histogram.iter_recorded();
        let most = recorded.max_by_key(|value| (value.count_at_value(), std::cmp::Reverse(value.value_iterated_to())));
        most.map_or(0, |value| value.value_iterated_to())
    }

    /// The duration at this quantile of the samples, in raw units.
    pub fn quantile(&self, share: f64) -> u64 {
        self.sampled.histogram.value_at_quantile(share)
    }

    /// The mean of all samples, in raw units.
    pub fn mean(&self) -> f64 {
        let ensembles = &self.sampled.ensembles;
        let count: u64 = ensembles.iter().map(|ensemble| ensemble.count).sum();
        ensembles.iter().map(|ensemble| ensemble.mean() * ensemble.count as f64).sum::<f64>() / count as f64
    }

    /// Number of samples that ended before they began.
    pub(crate) fn count_backwards(&self) -> u64 {
        self.sampled.ensembles.iter().map(|ensemble| ensemble.backwards).sum()
    }
}

/// Measures the overhead of an empty pair in core cycles, over many layouts. The measurements are
/// spread over the sampling time, so that a temporary background load does not decide.
struct OverheadLooks<'a> {
    tested: &'a TestedClock<'a>,
    rounds: RulerRounds,
    readings: Vec<LayoutReading>,
}

impl<'a> OverheadLooks<'a> {
    fn new(tested: &'a TestedClock<'a>) -> OverheadLooks<'a> {
        let pair = tested.empty_recipe().build();
        let rounds = RulerRounds::for_mode(tested.ruler, tested.step, tested.mode).with_programs([pair], false);
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

/// TSC ticks per raw unit of a method; the TSC runs at `hertz`.
pub(crate) fn ticks_per_unit(unit: Unit, hertz: f64) -> f64 {
    match unit {
        Unit::Nanos => hertz / 1e9,
        _ => 1.0,
    }
}
