//! Claims about empty pairs, judged by their samples, and about resolution, judged by staircases.

use super::claim_judgement::{ClaimEvidence, ClaimFigure, ClaimJudgement, ClaimResult, is_below};
use crate::chance_variance::chance_variance;
use crate::criteria::variance_in_steps;
use crate::ensemble_reader::SamplingSize;
use crate::resolution::{CONFIDENCE, StaircaseBody};
use crate::sampled_method::SampledMethod;
use crate::trimmed_ensemble::{TrimmedEnsemble, TrimmedSummary};
use cyclescope_core::statistics::{Interval, mean, t_interval};
use cyclescope_core::unit::Unit;

/// Largest variance of one reading that rounding to steps causes, in steps².
const COUNTING_VARIANCE: f64 = 0.25;
/// Smallest variance of a noisy reading, in steps²: twice that.
const NOISY_VARIANCE: f64 = 2.0 * COUNTING_VARIANCE;

/// The readings that determine a method's variance. They lie within a few steps of the shortest
/// nearby, and exclude ensembles with a busy sibling. Interrupts and sibling load dominate the
/// variance of all readings, and no user program can exclude them.
struct JudgedReadings<'a> {
    method: &'a SampledMethod<'static>,
    summary: &'a TrimmedSummary,
    ensembles: Vec<&'a TrimmedEnsemble>,
}

impl<'a> JudgedReadings<'a> {
    fn from_method(method: &'a SampledMethod<'static>) -> Result<JudgedReadings<'a>, &'static str> {
        let summary = method.trimmed.as_ref().ok_or(TOO_FEW_ENSEMBLES)?;
        Ok(JudgedReadings { method, summary, ensembles: method.used_ensembles() })
    }

    /// The variance of each ensemble, in steps².
    fn variances(&self) -> Vec<f64> {
        self.ensembles.iter().map(|ensemble| variance_in_steps(ensemble.variance, self.method.tested.step)).collect()
    }

    /// Variance of these variances expected by chance, in steps⁴.
    fn chance_variance_in_steps(&self) -> f64 {
        let count = self.ensembles.len().max(1) as u64;
        let kept = self.ensembles.iter().map(|ensemble| ensemble.kept).sum::<u64>() / count;
        let moments = self.ensembles.iter().map(|ensemble| ensemble.moments);
        let raw = chance_variance(moments, u32::try_from(kept).unwrap_or(u32::MAX)).unwrap_or(0.0);
        variance_in_steps(variance_in_steps(raw, self.method.tested.step), self.method.tested.step)
    }

    /// A judgement from these readings, or an undecided one if too few are left.
    fn judge_figure(&self, holds: Option<bool>, figure: ClaimFigure) -> ClaimJudgement {
        let dropped = ClaimFigure::new_exact("share of readings dropped", self.summary.dropped_share, Unit::Share);
        let enough = self.summary.keeps_enough() && !self.summary.mostly_shared;
        let judged = ClaimJudgement::from_figures(holds.filter(|_| enough), vec![figure, dropped]);
        match enough {
            true => judged,
            false if self.summary.mostly_shared => judged.with_remark("most ensembles ran with a busy sibling"),
            false => judged.with_remark("in a tenth of the ensembles, too few remain to represent the method"),
        }
    }
}

/// Standard deviation of the values beyond this chance variance, with its interval; `None` for
/// fewer than two values.
fn spread_beyond_chance(values: &[f64], chance: f64) -> Option<Interval> {
    let middle = mean(values);
    let squares: Vec<f64> = values.iter().map(|value| (value - middle).powi(2)).collect();
    let Interval { value, low, high } = t_interval(&squares, CONFIDENCE)?;
    let root = |square: f64| (square - chance).max(0.0).sqrt();
    Some(Interval { value: root(value), low: root(low), high: root(high) })
}

const TOO_FEW_ENSEMBLES: &str = "too few ensembles were taken";

/// Judges whether the readings of a method's empty pairs vary by more than rounding to steps
/// causes.
pub(super) fn judge_noise(seen: &ClaimEvidence, name: &str, noisy: bool) -> ClaimResult {
    let method = seen.require_samples(name)?;
    let kept = JudgedReadings::from_method(method)?;
    let variance = t_interval(&kept.variances(), CONFIDENCE).ok_or(TOO_FEW_ENSEMBLES)?;
    let holds = is_below(&variance, NOISY_VARIANCE).map(|quiet| quiet != noisy);
    let judged = kept.judge_figure(holds, ClaimFigure::new("variance of one reading", variance, Unit::SquaredSteps));
    Ok(match seen.cpuid_exit_cost() {
        Some(cost) if method.tested.clock.executes_cpuid() => judged.with_remark(&format!(
            "CPUID exits to the hypervisor here ({cost:.0} ticks), which contributes to \
                 this"
        )),
        _ => judged,
    })
}

/// Judges whether the variance is the same in all ensembles of a method, apart from chance.
pub(super) fn judge_constant_variance(seen: &ClaimEvidence, name: &str, constant: bool) -> ClaimResult {
    let kept = JudgedReadings::from_method(seen.require_samples(name)?)?;
    let spread = spread_beyond_chance(&kept.variances(), kept.chance_variance_in_steps()).ok_or(TOO_FEW_ENSEMBLES)?;
    let holds = is_below(&spread, COUNTING_VARIANCE).map(|alike| alike == constant);
    let what = "standard deviation of the variances, beyond chance";
    Ok(kept.judge_figure(holds, ClaimFigure::new(what, spread, Unit::SquaredSteps)))
}

/// Judges whether the shortest reading is the same in all ensembles of a method.
pub(super) fn judge_constant_minimum(seen: &ClaimEvidence, name: &str, constant: bool) -> ClaimResult {
    let method = seen.require_samples(name)?;
    let minima = method.sampled.ensembles.iter().filter_map(|ensemble| ensemble.minimum);
    let minima: Vec<f64> = minima.map(|minimum| minimum as f64 / method.tested.step).collect();
    let spread = spread_beyond_chance(&minima, 0.0).ok_or(TOO_FEW_ENSEMBLES)?;
    let alike = is_below(&spread, NOISY_VARIANCE);
    let figure = ClaimFigure::new("standard deviation of the minima", spread, Unit::Steps);
    let judged = ClaimJudgement::from_figures(alike.map(|alike| alike == constant), vec![figure]);
    let samples = method.sampled.shape.size.samples;
    // With fewer readings, minima may differ by chance, but they do not agree by chance.
    if samples < SamplingSize::PAPER.samples && alike != Some(true) {
        let remark = format!(
            "{samples} readings per ensemble instead of the paper's {}: fewer may differ by chance; --budget SECONDS \
             takes more",
            SamplingSize::PAPER.samples
        );
        return Ok(ClaimJudgement { holds: None, ..judged.with_remark(&remark) });
    }
    Ok(judged)
}

/// Judges whether the shortest reading never falls as the paper's loop grows. With fewer readings
/// than the paper's it may fall by chance.
pub(super) fn judge_monotone(seen: &ClaimEvidence, name: &str) -> ClaimResult {
    let found = seen.find_method(name)?;
    let stairs = found.resolution.staircase(StaircaseBody::Iterations).ok_or("no staircase was measured")?;
    let (falls, lengths) = (stairs.totals.spurious_minima, stairs.points.len());
    let what = format!("falling minima, of {lengths} lengths of {} readings", stairs.readings);
    let judged =
        ClaimJudgement::from_figures(Some(falls == 0), vec![ClaimFigure::new_exact(what, falls as f64, Unit::Count)]);
    let paper = SamplingSize::PAPER.samples;
    if stairs.readings < paper as usize {
        let remark = format!("the paper has {paper} readings of each: --resolution-samples {paper}");
        return Ok(ClaimJudgement { holds: None, ..judged.with_remark(&remark) });
    }
    Ok(judged)
}

/// Judges whether the shortest reading changes after at most `most` iterations of the paper's loop.
/// It changes by a step of the clock, so the cost of an iteration decides. That cost is the same
/// for each method, so the most certain slope counts.
pub(super) fn judge_resolution(seen: &ClaimEvidence, name: &str, most: f64) -> ClaimResult {
    let step = seen.require_step(name)?;
    let slopes = seen.methods.iter().filter_map(|found| {
        let slope = found.resolution.staircase(StaircaseBody::Iterations)?.slope?;
        (slope.low > 0.0).then_some(slope)
    });
    let slope = slopes.min_by(|one, other| one.half_width().total_cmp(&other.half_width()));
    let slope = slope.ok_or("no method measured the cost of an iteration")?;
    let iterations = Interval { value: step / slope.value, low: step / slope.high, high: step / slope.low };
    let figures = vec![
        ClaimFigure::new("an iteration", slope, Unit::CoreCycles),
        ClaimFigure::new("iterations per step", iterations, Unit::Count),
    ];
    Ok(ClaimJudgement::from_figures(is_below(&iterations, most), figures))
}

/// Judges whether means of many readings resolve less than half a step of the clock.
pub(super) fn judge_finer_by_many(seen: &ClaimEvidence) -> ClaimResult {
    let best = seen.methods.iter().filter_map(|found| {
        let step = seen.require_step(found.candidate.clock.name).ok()?;
        let rungs = found.resolution.by_samples.first()?.rungs.iter();
        let best = rungs.min_by(|one, other| one.interleaved.total_cmp(&other.interleaved))?;
        Some((found.candidate.clock.name, step, *best))
    });
    let best = best.min_by(|(.., one), (.., other)| one.interleaved.total_cmp(&other.interleaved));
    let (name, step, rung) = best.ok_or("no method had enough readings")?;
    let one = ClaimFigure::new_exact("a step", step, Unit::CoreCycles);
    let what = format!("smallest difference resolved at 95 % by {} readings with {name}", rung.readings);
    let many = ClaimFigure::new_exact(what, rung.interleaved, Unit::CoreCycles);
    // A step of one or two core cycles leaves nothing to resolve.
    let holds = (step > 2.0).then_some(rung.interleaved < step / 2.0);
    Ok(ClaimJudgement::from_figures(holds, vec![one, many]))
}
