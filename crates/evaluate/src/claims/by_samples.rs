//! Claims about empty pairs, by their samples, and about resolution, by staircases.

use super::judgement::{Figure, Judged, Judgement, Seen, below};
use crate::chance::chance;
use crate::criteria::in_steps;
use crate::method::Method;
use crate::reader::Size;
use crate::resolution::{Body, CONFIDENCE};
use crate::trimmed::{Summary, Trimmed};
use cyclescope_core::statistics::{Interval, mean, t_interval};
use cyclescope_core::unit::Unit;

/// The most that counting in steps makes of the variance of one reading, in steps².
const COUNTING: f64 = 0.25;
/// From which variance on a reading is noisy, in steps²: twice that.
const NOISY: f64 = 2.0 * COUNTING;

/// The readings that a method's variance is judged by: those within some steps of the least around them, without ensembles
/// beside a busy sibling. Interrupts and a sibling's work make the variance of all readings, and no user program can keep them
/// out.
struct Kept<'a> {
    method: &'a Method<'static>,
    summary: &'a Summary,
    ensembles: Vec<&'a Trimmed>,
}

impl<'a> Kept<'a> {
    fn of(method: &'a Method<'static>) -> Result<Kept<'a>, &'static str> {
        let summary = method.trimmed.as_ref().ok_or(FEW)?;
        Ok(Kept { method, summary, ensembles: method.used() })
    }

    /// The variance of each ensemble, in steps².
    fn variances(&self) -> Vec<f64> {
        self.ensembles.iter().map(|ensemble| in_steps(ensemble.variance, self.method.tested.step)).collect()
    }

    /// What chance makes of the variance of these variances, in steps⁴.
    fn chance(&self) -> f64 {
        let count = self.ensembles.len().max(1) as u64;
        let kept = self.ensembles.iter().map(|ensemble| ensemble.kept).sum::<u64>() / count;
        let moments = self.ensembles.iter().map(|ensemble| ensemble.moments);
        let raw = chance(moments, u32::try_from(kept).unwrap_or(u32::MAX)).unwrap_or(0.0);
        in_steps(in_steps(raw, self.method.tested.step), self.method.tested.step)
    }

    /// What they say, where enough of the readings are left to say it.
    fn judged(&self, holds: Option<bool>, figure: Figure) -> Judgement {
        let dropped = Figure::exact("share of readings dropped", self.summary.dropped_share, Unit::Share);
        let enough = self.summary.keeps_enough() && !self.summary.mostly_shared;
        let judged = Judgement::by(holds.filter(|_| enough), vec![figure, dropped]);
        match enough {
            true => judged,
            false if self.summary.mostly_shared => judged.remark("most ensembles ran beside a busy sibling"),
            false => judged
                .remark("so few remain in one ensemble of ten or more that they need not be the method's"),
        }
    }
}

/// The standard deviation of some figures beyond this variance, with its interval; none of fewer than two.
fn spread(values: &[f64], chance: f64) -> Option<Interval> {
    let middle = mean(values);
    let squares: Vec<f64> = values.iter().map(|value| (value - middle).powi(2)).collect();
    let Interval { value, low, high } = t_interval(&squares, CONFIDENCE)?;
    let root = |square: f64| (square - chance).max(0.0).sqrt();
    Some(Interval { value: root(value), low: root(low), high: root(high) })
}

const FEW: &str = "too few ensembles were taken";

/// Whether the readings of a method's empty pairs vary by more than counting in steps makes of them.
pub(super) fn noisy(seen: &Seen, name: &str, noisy: bool) -> Judged {
    let method = seen.samples(name)?;
    let kept = Kept::of(method)?;
    let variance = t_interval(&kept.variances(), CONFIDENCE).ok_or(FEW)?;
    let holds = below(&variance, NOISY).map(|quiet| quiet != noisy);
    let judged = kept.judged(holds, Figure::new("variance of one reading", variance, Unit::SquaredSteps));
    Ok(match seen.cpuid_exits() {
        Some(cost) if method.tested.clock.executes_cpuid() => judged
            .remark(&format!("CPUID leaves the guest here ({cost:.0} ticks), which takes a part in that")),
        _ => judged,
    })
}

/// Whether the variance is the same in all ensembles of a method, but for what chance makes of it.
pub(super) fn constant_variance(seen: &Seen, name: &str, constant: bool) -> Judged {
    let kept = Kept::of(seen.samples(name)?)?;
    let spread = spread(&kept.variances(), kept.chance()).ok_or(FEW)?;
    let holds = below(&spread, COUNTING).map(|alike| alike == constant);
    let what = "standard deviation of the variances, beyond chance";
    Ok(kept.judged(holds, Figure::new(what, spread, Unit::SquaredSteps)))
}

/// Whether the least reading is the same in all ensembles of a method.
pub(super) fn constant_minimum(seen: &Seen, name: &str, constant: bool) -> Judged {
    let method = seen.samples(name)?;
    let minima = method.sampled.ensembles.iter().filter_map(|ensemble| ensemble.minimum);
    let minima: Vec<f64> = minima.map(|minimum| minimum as f64 / method.tested.step).collect();
    let spread = spread(&minima, 0.0).ok_or(FEW)?;
    let alike = below(&spread, NOISY);
    let figure = Figure::new("standard deviation of the minima", spread, Unit::Steps);
    let judged = Judgement::by(alike.map(|alike| alike == constant), vec![figure]);
    let samples = method.sampled.shape.size.samples;
    // Fewer readings have other minima by chance; that they have the same ones is no chance.
    if samples < Size::PAPER.samples && alike != Some(true) {
        let remark = format!(
            "{samples} readings in an ensemble, where the paper has {}: so few differ by chance; --budget SECONDS takes more",
            Size::PAPER.samples
        );
        return Ok(Judgement { holds: None, ..judged.remark(&remark) });
    }
    Ok(judged)
}

/// Whether the least reading never falls as the paper's loop grows. With fewer readings than the paper's it may by
/// chance.
pub(super) fn monotone(seen: &Seen, name: &str) -> Judged {
    let found = seen.method(name)?;
    let stairs = found.resolution.staircase(Body::Iterations).ok_or("no staircase was measured")?;
    let (falls, lengths) = (stairs.totals.spurious_minima, stairs.points.len());
    let what = format!("minima that fall, of {lengths} lengths of {} readings", stairs.readings);
    let judged = Judgement::by(Some(falls == 0), vec![Figure::exact(what, falls as f64, Unit::Count)]);
    let paper = Size::PAPER.samples;
    if stairs.readings < paper as usize {
        let remark = format!("the paper has {paper} of each: --resolution-samples {paper}");
        return Ok(Judgement { holds: None, ..judged.remark(&remark) });
    }
    Ok(judged)
}

/// Whether the paper's loop grows by this number of iterations at most until its least reading moves: by a step of the
/// clock, at what an iteration takes. It takes the same with each method, so the surest slope counts.
pub(super) fn resolves(seen: &Seen, name: &str, most: f64) -> Judged {
    let step = seen.step(name)?;
    let slopes = seen.methods.iter().filter_map(|found| {
        let slope = found.resolution.staircase(Body::Iterations)?.slope?;
        (slope.low > 0.0).then_some(slope)
    });
    let slope = slopes.min_by(|one, other| one.half_width().total_cmp(&other.half_width()));
    let slope = slope.ok_or("no method told what an iteration takes")?;
    let iterations = Interval { value: step / slope.value, low: step / slope.high, high: step / slope.low };
    let figures = vec![
        Figure::new("an iteration", slope, Unit::CoreCycles),
        Figure::new("iterations a step", iterations, Unit::Count),
    ];
    Ok(Judgement::by(below(&iterations, most), figures))
}

/// Whether means of many readings tell differences below half a step of the clock.
pub(super) fn finer_by_many(seen: &Seen) -> Judged {
    let best = seen.methods.iter().filter_map(|found| {
        let step = seen.step(found.candidate.clock.name).ok()?;
        let rungs = found.resolution.by_samples.first()?.rungs.iter();
        let best = rungs.min_by(|one, other| one.interleaved.total_cmp(&other.interleaved))?;
        Some((found.candidate.clock.name, step, *best))
    });
    let best = best.min_by(|(.., one), (.., other)| one.interleaved.total_cmp(&other.interleaved));
    let (name, step, rung) = best.ok_or("no method had readings enough")?;
    let one = Figure::exact("a step", step, Unit::CoreCycles);
    let what = format!("least difference told at 95 % by {} readings with {name}", rung.readings);
    let many = Figure::exact(what, rung.interleaved, Unit::CoreCycles);
    // A step of a core cycle or two leaves nothing to see through.
    let holds = (step > 2.0).then_some(rung.interleaved < step / 2.0);
    Ok(Judgement::by(holds, vec![one, many]))
}
