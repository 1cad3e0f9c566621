//! Two markers compared placement by placement.

use super::record::MarkerRecord;
use crate::statistics::{Interval, median_interval};

/// What one marker costs more than another: the median over the placements that both have; none of too few.
pub(crate) fn difference(one: &MarkerRecord, other: &MarkerRecord) -> Option<Interval> {
    median_interval(&differences(&[(1.0, one), (-1.0, other)]), one.confidence)
}

/// The weighted sum of costs at each placement where all of them are known.
pub(super) fn differences(terms: &[(f64, &MarkerRecord)]) -> Vec<f64> {
    let Some(((_, first), _)) = terms.split_first() else { return Vec::new() };
    let at = |record: &MarkerRecord, offset: usize| {
        record.placements.iter().find(|placement| placement.offset == offset)?.cost.value
    };
    let sum = |offset: usize| terms.iter().map(|(weight, record)| Some(weight * at(record, offset)?)).sum();
    first.placements.iter().filter_map(|placement| sum(placement.offset)).collect()
}
