//! One timing method's samples, and what follows from them.

use super::ensemble::Totals;
use super::reader::{Sampled, Shape, Size};
use super::sampling::Sampling;
use super::trimmed::Summary;
use super::{Subject, criteria};
use crate::error::RunError;
use crate::executor::{Executor, Sample};
use crate::probe::{Probe, Readings, combination, unshared};
use crate::program::Recipe;
use crate::random::Random;
use crate::statistics::Interval;
use crate::unit::Unit;
use std::ops::ControlFlow;
use std::time::Instant;

use super::ensemble::Ensemble;

/// The level of the overhead's interval.
const CONFIDENCE: f64 = 0.95;
/// A method gets all samples where a typical pair takes at most so many TSC ticks,
const FULL_TICKS: f64 = 200.0;
/// and a sample with everything around it so many seconds: one of the paper's methods has short pairs between two
/// CPUIDs, which in a virtual machine take 15 µs.
const FULL_SECONDS: f64 = 2e-6;
/// Layouts and rounds of the overhead's interval: a few milliseconds.
const LAYOUTS: usize = 32;
const ROUNDS: u32 = 64;

/// How long a sample takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Seconds a sample, with everything around it.
    pub seconds: f64,
    /// Raw units of a typical pair.
    pub pair: f64,
}

impl Cost {
    /// Whether a method this quick gets as many samples as were asked for; `ticks_per_unit` are TSC ticks a raw unit.
    pub fn is_quick(&self, ticks_per_unit: f64) -> bool {
        self.pair * ticks_per_unit <= FULL_TICKS && self.seconds <= FULL_SECONDS
    }
}

/// What was found about one method's empty pair.
#[derive(Debug, Clone)]
pub struct Method<'a> {
    /// The method.
    pub subject: Subject<'a>,
    /// What was asked for, before time cut it.
    pub asked: Size,
    /// Its samples.
    pub sampled: Sampled,
    /// The paper's figures.
    pub totals: Totals,
    /// The same without interrupts and changes of frequency; none with too few ensembles or no sane ruler.
    pub trimmed: Option<Summary>,
    /// The pair's time in core cycles over many layouts, below one step of the clock.
    pub overhead: Option<Interval>,
}

impl<'a> Method<'a> {
    /// Takes and reads the samples, and the overhead over many layouts.
    pub fn measure(
        executor: &mut dyn Executor,
        subject: &Subject<'a>,
        (asked, shape): (Size, Shape),
        until: Instant,
        random: &mut Random,
        take: &mut dyn FnMut(&Ensemble, &[Sample]) -> ControlFlow<()>,
    ) -> Result<Option<Method<'a>>, RunError> {
        let overhead = overhead(executor, subject, random)?;
        let sampled = Sampling::new(subject).run(executor, shape, until, random, take)?;
        Ok(Method::read(*subject, asked, sampled, overhead))
    }

    /// What samples say; `None` where every sample of an ensemble ran backwards.
    pub fn read(
        subject: Subject<'a>,
        asked: Size,
        sampled: Sampled,
        overhead: Option<Interval>,
    ) -> Option<Method<'a>> {
        let totals = Totals::of(&sampled.ensembles)?;
        let trimmed = Summary::of(&sampled.trimmed, sampled.shape.scale.step);
        Some(Method { subject, asked, sampled, totals, trimmed, overhead })
    }

    /// Whether the paper would call it ergodic.
    pub fn ergodic(&self) -> bool {
        criteria::ergodic(&self.totals)
    }

    /// Whether what is left without the machine's doing is ergodic.
    pub fn ergodic_trimmed(&self) -> bool {
        self.trimmed.is_some_and(|summary| summary.ergodic)
    }

    /// The standard deviation of one reading in core cycles, interrupts and changes of frequency left out: what the
    /// step makes, and the method itself.
    pub fn deviation_cycles(&self) -> Option<f64> {
        let summary = self.trimmed?;
        Some(summary.variance.sqrt() * summary.step_cycles / self.subject.step)
    }

    /// The most frequent duration, in raw units.
    pub fn mode(&self) -> u64 {
        let recorded = self.sampled.histogram.iter_recorded();
        let most = recorded
            .max_by_key(|value| (value.count_at_value(), std::cmp::Reverse(value.value_iterated_to())));
        most.map_or(0, |value| value.value_iterated_to())
    }

    /// The duration that so large a share of the samples does not exceed, in raw units.
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
    pub fn backwards(&self) -> u64 {
        self.sampled.ensembles.iter().map(|ensemble| ensemble.backwards).sum()
    }
}

/// What an empty pair takes in core cycles, over many layouts.
fn overhead(
    executor: &mut dyn Executor,
    subject: &Subject,
    random: &mut Random,
) -> Result<Option<Interval>, RunError> {
    let pair = Recipe::empty(subject.clock).build();
    let rounds = if subject.clock.executes_cpuid() { ROUNDS / 8 } else { ROUNDS };
    let probe = Probe::new(subject.ruler, subject.step).with([pair], false);
    let readings = probe.run(executor, LAYOUTS, rounds, random)?;
    let (readings, _) = unshared(readings.iter().filter_map(Readings::read).collect(), 0.0);
    Ok(combination(&readings, subject.imul_latency, &[(0, 1.0)], CONFIDENCE))
}

/// TSC ticks of one raw unit of a method, where the TSC runs at so many hertz.
pub fn ticks_per_unit(unit: Unit, hertz: f64) -> f64 {
    match unit {
        Unit::Nanos => hertz / 1e9,
        _ => 1.0,
    }
}
