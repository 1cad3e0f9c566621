//! Claims about the cost of a pair of readings, judged by its steps.

use super::claim_judgement::{
    ClaimEvidence, ClaimFigure, ClaimJudgement, ClaimResult, is_near_zero, subtract_intervals,
};
use crate::pair_breakdown::PairBreakdown;
use cyclescope_code::clock::{ClockSide, ClockStep};
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;

fn require_breakdown<'a>(seen: &ClaimEvidence<'a>, method: &str) -> Result<&'a PairBreakdown, String> {
    let parts = seen.find_method(method)?.parts.as_ref();
    parts.ok_or_else(|| format!("too many rounds of the pair of {method} were disturbed"))
}

/// Judges whether a step adds to the time of a method's pair.
pub(super) fn judge_step_time(
    seen: &ClaimEvidence,
    method: &str,
    side: ClockSide,
    step: ClockStep,
    time: bool,
) -> ClaimResult {
    let part = require_breakdown(seen, method)?.find_step(side, step).ok_or_else(|| {
        format!(
            "{method} does not contain this \
             step"
        )
    })?;
    let nothing = is_near_zero(&part.cost, seen.detection_bound(method)?);
    let holds = nothing.map(|nothing| nothing != time);
    Ok(ClaimJudgement::from_figures(holds, vec![ClaimFigure::new(part.step, part.cost, Unit::CoreCycles)]))
}

/// Judges whether the steps of a method's pair add up to its cost.
pub(super) fn judge_adds_up(seen: &ClaimEvidence, method: &str) -> ClaimResult {
    let parts = require_breakdown(seen, method)?;
    let between = parts.parts.iter().filter(|part| part.between);
    let figure = |what: &str, cost: Interval| ClaimFigure::new(what, cost, Unit::CoreCycles);
    let mut figures = vec![figure("the pair", parts.whole)];
    figures.extend(between.map(|part| figure(part.step, part.cost)));
    figures.push(figure("the rest", parts.rest));
    Ok(ClaimJudgement::from_figures(is_near_zero(&parts.rest, seen.detection_bound(method)?), figures))
}

/// Judges whether one method's pair is cheaper than another's by more than a step.
pub(super) fn judge_cheaper(seen: &ClaimEvidence, one: &str, other: &str) -> ClaimResult {
    let (first, second) = (seen.require_overhead(one)?, seen.require_overhead(other)?);
    let more = subtract_intervals(&second, &first);
    let holds = is_near_zero(&more, seen.require_step(one)?).map(|alike| !alike && more.value > 0.0);
    let figures = [(one, first), (other, second)].map(|(name, pair)| ClaimFigure::new(name, pair, Unit::CoreCycles));
    Ok(ClaimJudgement::from_figures(holds, figures.into()))
}
