//! When two figures agree.

use crate::rows::instr_row::{LatencyBound, OperandLatency};
use cyclescope_core::statistics::normal_quantile;
use cyclescope_measure::result::record::Quantity;
use serde::Serialize;

/// Maximum distance of two figures that agree: core cycles or a share of B's, whichever is more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tolerance {
    /// Core cycles for figures of at least one cycle.
    pub cycles: f64,
    /// Core cycles for figures below one cycle.
    pub cycles_below_one: f64,
    /// Share of B's figure.
    pub share: f64,
}

impl Tolerance {
    /// For published tables, which round to whole cycles or, below one, to hundredths.
    pub const PUBLISHED: Tolerance = Tolerance { cycles: 0.05, cycles_below_one: 0.01, share: 0.03 };
    /// For two results of this program.
    pub const RESULTS: Tolerance = Tolerance { cycles: 0.02, cycles_below_one: 0.02, share: 0.01 };

    /// The allowed distance at this figure, in core cycles.
    pub(crate) fn allowed_at(&self, value: f64) -> f64 {
        let cycles = if value.abs() < 1.0 { self.cycles_below_one } else { self.cycles };
        cycles.max(self.share * value.abs())
    }
}

/// Lower limit, in core cycles, of the base of a relative difference.
const RELATIVE_LEAST: f64 = 0.01;

/// The range that contains a cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CostSpan {
    pub low: f64,
    pub high: f64,
}

impl CostSpan {
    pub(crate) fn from_value(value: f64) -> CostSpan {
        CostSpan { low: value, high: value }
    }

    /// The range of a measured latency.
    pub(crate) fn from_latency(latency: &OperandLatency) -> Option<CostSpan> {
        let value = latency.cost.value?;
        let low = if latency.bound == LatencyBound::Upper { f64::NEG_INFINITY } else { value };
        Some(CostSpan { low, high: value })
    }

    /// The interval of a measured figure.
    pub(super) fn from_interval(number: &Quantity) -> Option<CostSpan> {
        number.value.and(Some(CostSpan { low: number.low?, high: number.high? }))
    }

    pub(crate) fn overlaps(self, other: CostSpan) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// The gap between two ranges. Zero if they touch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SpanGap {
    /// Core cycles from B to A.
    pub difference: f64,
    /// B's end that is nearest to A.
    nearest: f64,
}

impl SpanGap {
    pub(crate) fn between(a: CostSpan, b: CostSpan) -> SpanGap {
        if a.low > b.high {
            SpanGap { difference: a.low - b.high, nearest: b.high }
        } else if a.high < b.low {
            SpanGap { difference: a.high - b.low, nearest: b.low }
        } else {
            SpanGap { difference: 0.0, nearest: 0.0 }
        }
    }

    pub(crate) fn is_within(&self, tolerance: Tolerance) -> bool {
        // Binary fractions are slightly off decimals such as 3.05.
        self.difference.abs() <= tolerance.allowed_at(self.nearest) + 1e-9
    }

    /// Standard errors beyond the tolerance. `None` if neither figure has an error.
    pub(super) fn count_deviations(&self, tolerance: Tolerance, costs: [&Quantity; 2]) -> Option<f64> {
        let beyond = self.difference.abs() - tolerance.allowed_at(self.nearest);
        // The error of a single layout is unknown.
        let reach =
            |cost: &Quantity| CostSpan::from_interval(cost).map_or(f64::INFINITY, |span| (span.high - span.low) / 2.0);
        let error = reach(costs[0]).hypot(reach(costs[1])) / normal_quantile(0.975);
        (error > 0.0).then(|| beyond / error)
    }

    pub(crate) fn relative_difference(&self) -> f64 {
        self.difference / self.nearest.abs().max(RELATIVE_LEAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agree(a: CostSpan, b: CostSpan) -> bool {
        SpanGap::between(a, b).is_within(Tolerance::PUBLISHED)
    }

    fn most(value: f64) -> CostSpan {
        CostSpan { low: f64::NEG_INFINITY, high: value }
    }

    #[test]
    fn points_agree_within_the_wider_tolerance() {
        for (a, b, same) in [
            (1.05, 1.0, true),
            (1.06, 1.0, false),
            (10.3, 10.0, true),
            (9.69, 10.0, false),
            (0.26, 0.25, true),
            (0.262, 0.25, false),
            (0.52, 0.50, false),
            (0.0, 0.0, true),
            (0.02, 0.0, false),
        ] {
            assert_eq!(agree(CostSpan::from_value(a), CostSpan::from_value(b)), same, "{a} {b}");
        }
    }

    #[test]
    fn ranges_agree_if_they_touch() {
        let range = CostSpan { low: 14.0, high: 18.0 };
        for (a, b, same) in [
            (CostSpan::from_value(13.6), range, true),
            (CostSpan::from_value(13.5), range, false),
            (CostSpan::from_value(16.0), range, true),
            (CostSpan::from_value(18.6), range, false),
            (most(13.0), range, false),
            (most(100.0), range, true),
            (CostSpan::from_value(7.0), most(7.0), true),
            (CostSpan::from_value(1.0), most(7.0), true),
            (CostSpan::from_value(8.0), most(7.0), false),
            (most(3.0), CostSpan::from_value(4.0), false),
            (most(3.0), most(1.0), true),
        ] {
            assert_eq!(agree(a, b), same, "{a:?} {b:?}");
        }
    }

    #[test]
    fn a_difference_is_a_minus_b_and_never_infinite() {
        let gap = |a, b| SpanGap::between(CostSpan::from_value(a), CostSpan::from_value(b));
        assert_eq!((gap(3.0, 4.0).difference, gap(3.0, 4.0).relative_difference()), (-1.0, -0.25));
        assert_eq!(
            SpanGap::between(CostSpan::from_value(20.0), CostSpan { low: 14.0, high: 16.0 }).relative_difference(),
            0.25
        );
        assert_eq!(gap(1.0, 0.0).relative_difference(), 100.0);
    }
}
