//! Compares two markers placement by placement.

use super::record::MarkerRecord;
use cyclescope_core::statistics::{Interval, median_interval};

/// Extra cost of one marker over another: the median over their common placements; `None` if there
/// are too few.
pub(crate) fn median_difference(one: &MarkerRecord, other: &MarkerRecord) -> Option<Interval> {
    let terms = [CostTerm { weight: 1.0, record: one }, CostTerm { weight: -1.0, record: other }];
    median_interval(&sum_by_placement(&terms), one.confidence)
}

/// A marker's cost with a weight.
pub(super) struct CostTerm<'a> {
    pub(super) weight: f64,
    pub(super) record: &'a MarkerRecord,
}

/// Weighted sum of costs at each placement where all of them are known.
pub(super) fn sum_by_placement(terms: &[CostTerm]) -> Vec<f64> {
    let Some(first) = terms.first() else { return Vec::new() };
    let at = |record: &MarkerRecord, offset: usize| {
        record.placements.iter().find(|placement| placement.offset == offset)?.cost.value
    };
    let sum = |offset: usize| terms.iter().map(|term| Some(term.weight * at(term.record, offset)?)).sum();
    first.record.placements.iter().filter_map(|placement| sum(placement.offset)).collect()
}
