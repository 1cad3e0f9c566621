//! Turns intervals into a verdict on a claim.

use crate::contamination::{Contamination, TOLERANCE_CYCLES};
use crate::method_evaluation::MethodEvaluation;
use crate::plan::RefusedMethod;
use crate::sampled_method::SampledMethod;
use crate::timing_facts::TimingFacts;
use cyclescope_code::clock::Clock;
use cyclescope_core::machine::timing_costs::CPUID_EXITS_ABOVE;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use cyclescope_exec::{DEFAULT_OFFER, ExecutorOffer};
use cyclescope_measure::result::record::Quantity;
use serde::Serialize;

/// A figure measured for a claim.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClaimFigure {
    /// Description of the figure.
    pub what: String,
    /// The figure with its interval.
    #[serde(flatten)]
    pub quantity: Quantity,
}

/// The result for one claim.
#[derive(Debug, Clone, Default)]
pub(super) struct ClaimJudgement {
    pub(super) holds: Option<bool>,
    pub(super) figures: Vec<ClaimFigure>,
    pub(super) why: String,
    pub(super) stand_in: Option<&'static str>,
}

/// A judgement, or the reason for having none.
pub(super) type ClaimResult = Result<ClaimJudgement, String>;

impl ClaimJudgement {
    /// An undecided claim, with the reason.
    pub(super) fn new_undecided(why: &str) -> ClaimJudgement {
        ClaimJudgement { why: why.to_string(), ..ClaimJudgement::default() }
    }

    /// A judgement whose figures are also its reason.
    pub(super) fn from_figures(holds: Option<bool>, figures: Vec<ClaimFigure>) -> ClaimJudgement {
        let why: Vec<String> = figures.iter().map(ClaimFigure::describe).collect();
        ClaimJudgement { holds, figures, why: why.join("; "), stand_in: None }
    }

    /// Adds a remark after the figures.
    pub(super) fn with_remark(mut self, remark: &str) -> ClaimJudgement {
        self.why = format!("{}; {remark}", self.why);
        self
    }
}

impl ClaimFigure {
    pub(super) fn new(what: impl Into<String>, interval: Interval, unit: Unit) -> ClaimFigure {
        ClaimFigure { what: what.into(), quantity: Quantity::new(interval, unit) }
    }

    /// A counted figure without an error.
    pub(super) fn new_exact(what: impl Into<String>, value: f64, unit: Unit) -> ClaimFigure {
        let quantity = Quantity { value: Some(value), low: None, high: None, unit };
        ClaimFigure { what: what.into(), quantity }
    }

    fn describe(&self) -> String {
        let Quantity { value, low, high, unit } = self.quantity;
        let number = |value: f64| match value.abs() {
            size if size >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
            size if size >= 10.0 => format!("{value:.1}"),
            size if size >= 1.0 => format!("{value:.2}"),
            _ => format!("{value:.3}"),
        };
        let value = value.map_or("not known".to_string(), number);
        let interval = match (low, high) {
            (Some(low), Some(high)) => format!(" ({} to {})", number(low), number(high)),
            _ => String::new(),
        };
        format!("{}: {value}{interval} {}", self.what, unit.text()).trim_end().to_string()
    }
}

/// Whether the whole interval lies below the bound; `None` if it crosses the bound.
pub(super) fn is_below(interval: &Interval, bound: f64) -> Option<bool> {
    if interval.high <= bound {
        return Some(true);
    }
    (interval.low > bound).then_some(false)
}

/// Whether the whole interval lies within `bound` of 0; `Some(false)` if all of it lies beyond,
/// `None` otherwise.
pub(super) fn is_near_zero(interval: &Interval, bound: f64) -> Option<bool> {
    if interval.low >= -bound && interval.high <= bound {
        return Some(true);
    }
    (interval.low > bound || interval.high < -bound).then_some(false)
}

/// Whether all hold. One that fails decides; otherwise one that is undecided.
pub(super) fn all_hold(holds: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    let mut all = Some(true);
    for one in holds {
        match one {
            Some(false) => return Some(false),
            None => all = None,
            Some(true) => {}
        }
    }
    all
}

/// Difference of two independent figures.
pub(super) fn subtract_intervals(one: &Interval, other: &Interval) -> Interval {
    Interval::with_margin(one.value - other.value, one.half_width().hypot(other.half_width()))
}

/// Smallest cost in core cycles that is distinguishable from 0, for a clock whose step is `step`
/// core cycles. Half a step, and at least the possible error of a contrast of two programs.
pub(super) fn detection_bound(step: f64) -> f64 {
    (step / 2.0).max(2.0 * TOLERANCE_CYCLES)
}

/// The results that claims are judged by.
#[derive(Clone, Copy)]
pub(crate) struct ClaimEvidence<'a> {
    pub methods: &'a [MethodEvaluation],
    pub not_run: &'a [RefusedMethod],
    /// The rows of [`crate::contamination::STAND_IN`], if it was measured.
    pub stand_in: Option<&'a [Contamination]>,
    pub facts: &'a TimingFacts,
}

impl<'a> ClaimEvidence<'a> {
    /// The results for a method, or the way to obtain them.
    pub(super) fn find_method(&self, name: &str) -> Result<&'a MethodEvaluation, String> {
        let mut methods = self.methods.iter();
        if let Some(found) = methods.find(|found| found.candidate.clock.name == name) {
            return Ok(found);
        }
        let is_named = |refused: &&RefusedMethod| refused.candidate.clock.name == name;
        let why = self.not_run.iter().find(is_named).map(|refused| refused.why.why.as_str());
        let ring0 = Clock::find_named(name).is_some_and(Clock::needs_ring0);
        Err(match (why, ring0) {
            (Some(why), true) => format!("{name} was not run: {why}; {}", ring0_option()),
            (Some(why), false) => format!("{name} was not run: {why}"),
            (None, true) => format!("it needs {name}, which runs in ring 0 only; {}", ring0_option()),
            (None, false) => format!("it needs {name}, which was not selected: --clock {name}"),
        })
    }

    /// A method's samples.
    pub(super) fn require_samples(&self, name: &str) -> Result<&'a SampledMethod<'static>, String> {
        self.find_method(name)?.method.as_ref().ok_or_else(|| format!("{name} gave no valid reading"))
    }

    /// The overhead of a method's pair in core cycles.
    pub(super) fn require_overhead(&self, name: &str) -> Result<Interval, String> {
        self.require_samples(name)?.overhead.ok_or_else(|| format!("the overhead of {name} could not be measured"))
    }

    /// Step of a method's clock in core cycles.
    pub(super) fn require_step(&self, name: &str) -> Result<f64, String> {
        let trimmed = self.require_samples(name)?.trimmed;
        trimmed.map(|summary| summary.step_cycles).ok_or_else(|| format!("no ruler of {name} was valid"))
    }

    /// Cost of a CPUID in TSC ticks, if it exits to the hypervisor.
    pub(super) fn cpuid_exit_cost(&self) -> Option<f64> {
        let traps = &self.facts.tsc.known()?.traps;
        traps.cpuid.known().copied().filter(|cost| *cost > CPUID_EXITS_ABOVE)
    }

    /// See [`detection_bound`].
    pub(super) fn detection_bound(&self, name: &str) -> Result<f64, String> {
        Ok(detection_bound(self.require_step(name)?))
    }
}

/// The option that runs code in ring 0.
fn ring0_option() -> String {
    let offers = cyclescope_exec::EXECUTOR_OFFERS.iter();
    let other = offers.filter(|offer| offer.name != DEFAULT_OFFER.name).map(|offer: &ExecutorOffer| offer.name).next();
    format!("--executor {}", other.unwrap_or(DEFAULT_OFFER.name))
}
