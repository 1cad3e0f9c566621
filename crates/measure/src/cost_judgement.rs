//! Judges a cost from the layouts so far, and whether more layouts or longer bodies would help.

use super::acquisition::Acquisition;
use super::estimate::{CostEstimate, estimate_cost};
use super::measurement_session::MeasurementSession;
use super::plan::{COPIES_PRECISION, Precision};
use super::question::CostFormula;
use crate::ruler::shared_margin;
use cyclescope_core::statistics::{Interval, mean};

/// Accepts a bend of the slope, or a trend of the cost, below this share or this many core cycles.
const BEND_SHARE: f64 = 0.01;
const BEND_CYCLES: f64 = 0.003;

/// The judgement of one cost.
pub(super) struct CostJudgement {
    pub(super) estimate: Option<CostEstimate>,
    /// Whether the cost is proportional to the number of repeats.
    pub(super) linear: bool,
    /// Whether the cost has stopped changing.
    pub(super) settled: bool,
    /// Whether the loop's branch may hide the copies.
    pub(super) hidden: bool,
}

impl CostJudgement {
    /// Whether most layouts ran with a busy sibling.
    pub(super) fn is_shared(&self) -> bool {
        self.estimate.as_ref().is_some_and(|estimate| estimate.shared)
    }
}

impl MeasurementSession<'_> {
    /// Judges a cost from the layouts so far.
    pub(super) fn judge_cost(&self, acquisition: &Acquisition, cost: &CostFormula) -> CostJudgement {
        let estimate = estimate_cost(&acquisition.layouts, &acquisition.shape, cost, self.plan.confidence);
        let (linear, settled) = check_linear_and_settled(&estimate);
        let hidden = estimate.as_ref().is_some_and(|estimate| acquisition.may_hide_copies(cost, estimate));
        CostJudgement { estimate, linear, settled, hidden }
    }

    /// Whether the cost has the precision that the plan requests.
    pub(super) fn has_reached_precision(&self, found: &CostJudgement) -> bool {
        found.estimate.as_ref().is_some_and(|result| !result.shared && self.plan.precision.is_met_by(&result.cost))
    }

    /// Whether the instrument's error takes too large a part of the precision. More layouts reduce
    /// only the error from the spread between layouts, so only longer bodies help.
    pub(super) fn is_blurred(&self, found: &CostJudgement) -> bool {
        let Some(estimate) = &found.estimate else { return false };
        let errors: Vec<f64> = estimate.layouts.iter().map(|layout| layout.systematic).collect();
        let margin = shared_margin(mean(&errors), self.plan.confidence);
        let both = std::f64::consts::SQRT_2 * margin;
        !self.body_precision().is_met_by(&Interval::with_margin(estimate.cost.value, both))
    }

    /// The precision that bodies have to be long enough for.
    fn body_precision(&self) -> Precision {
        let grows_by_code = !self.uses_iterations() && !self.loop_length.is_chosen();
        if grows_by_code { COPIES_PRECISION } else { self.plan.precision }
    }
}

/// Whether `holds` is true of any cost before and after training. Its last argument is the largest
/// cost.
pub(super) fn holds_for_any_pair(
    untrained: &[CostJudgement],
    trained: &[CostJudgement],
    holds: fn(&CostEstimate, &CostEstimate, f64) -> bool,
) -> bool {
    let sizes = untrained.iter().filter_map(|found| Some(found.estimate.as_ref()?.cost.value.abs()));
    let size = sizes.fold(0.0, f64::max);
    let mut pairs = untrained.iter().zip(trained).map(|(one, other)| (&one.estimate, &other.estimate));
    pairs.any(|pair| matches!(pair, (Some(before), Some(after)) if holds(before, after, size)))
}

/// Whether the cost is proportional to the number of copies, and whether it has stopped changing.
fn check_linear_and_settled(estimate: &Option<CostEstimate>) -> (bool, bool) {
    let Some(estimate) = estimate else { return (true, true) };
    let tolerance = (BEND_SHARE * estimate.cost.value.abs()).max(BEND_CYCLES);
    let small =
        |interval: &Interval| interval.value.abs() <= tolerance || (interval.low <= 0.0 && interval.high >= 0.0);
    (small(&estimate.bend), small(&estimate.trend))
}
