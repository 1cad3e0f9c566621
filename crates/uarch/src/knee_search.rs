//! The search for a knee: counts far apart first, then closer ones around it, until each count
//! there is measured.

use super::knee::{KneeEdges, NoKnee};
use super::overlap::{OverlapProbe, OverlapReading};

/// Counts of each step.
const COUNTS_PER_STEP: usize = 24;
/// The least count. With fewer the chains overlap on every core.
pub(super) const MIN_COUNT: usize = 2;
/// By how much a bracket is widened on both sides before it is searched: a share of its count, and
/// a number.
const WIDEN_SHARE: usize = 16;
const WIDEN: usize = 4;

/// A curve and its knee, if it has one.
#[derive(Debug, Clone)]
pub(super) struct KneeCurve {
    /// All that was measured, in the order of the counts.
    pub curve: Vec<OverlapReading>,
    /// The knee.
    pub knee: Result<KneeEdges, NoKnee>,
}

/// How the end of a size was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProbedKnee {
    /// The program.
    pub probe: OverlapProbe,
    /// The most fillers.
    pub max_fillers: usize,
    /// Where the overlap ended.
    pub knee: KneeEdges,
}

/// Searches among up to `most` fillers; `measure` measures the overlap at some counts.
pub(super) fn search_knee<E>(
    most: usize,
    mut measure: impl FnMut(&[usize]) -> Result<Vec<OverlapReading>, E>,
) -> Result<KneeCurve, E> {
    let mut curve = measure(&spread_counts(MIN_COUNT, most))?;
    loop {
        let knee = match KneeEdges::from_curve(&curve) {
            Ok(knee) => knee,
            Err(no) => return Ok(KneeCurve { curve, knee: Err(no) }),
        };
        let (low, high) = knee.find_bracket(&curve);
        let wide = |count: usize| count / WIDEN_SHARE + WIDEN;
        let counts = spread_counts(low.saturating_sub(wide(low)).max(MIN_COUNT), (high + wide(high)).min(most));
        let known = |n: usize| curve.iter().any(|point| point.n == n);
        let between = (low..=high + 1).all(|n| known(n) || n > most);
        if between {
            return Ok(KneeCurve { curve, knee: Ok(knee) });
        }
        let closer: Vec<usize> = match counts.iter().copied().filter(|n| !known(*n)).collect::<Vec<_>>() {
            none if none.is_empty() => (low..=high + 1).filter(|n| !known(*n)).take(COUNTS_PER_STEP).collect(),
            some => some,
        };
        curve.extend(measure(&closer)?);
        curve.sort_by_key(|point| point.n);
    }
}

/// Counts from one to another, both included.
fn spread_counts(from: usize, to: usize) -> Vec<usize> {
    let mut counts: Vec<usize> =
        (0..COUNTS_PER_STEP).map(|step| from + (to - from) * step / (COUNTS_PER_STEP - 1)).collect();
    counts.dedup();
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The edges of a knee behind so many fillers, where one count of the first step seems to
    /// overlap.
    fn found(room: usize, disturbed: Option<usize>) -> Result<KneeEdges, NoKnee> {
        let point = |n: &usize| {
            let overlap = if *n <= room || disturbed == Some(*n) { 0.95 } else { 0.05 };
            OverlapReading { n: *n, overlap, fast: overlap.round() }
        };
        let found = search_knee(400, |counts| Ok::<_, ()>(counts.iter().map(point).collect()));
        found.expect("all is simulated").knee
    }

    #[test]
    fn a_burst_past_a_knee_makes_it_no_later() {
        let knee = KneeEdges { low: 180, high: 180 };
        assert_eq!(found(180, None), Ok(knee));
        let next = spread_counts(MIN_COUNT, 400).into_iter().find(|n| *n > 180).expect("counts go on");
        assert!(next > 182);
        let disturbed = found(180, Some(next));
        assert!(disturbed.is_err() || disturbed == Ok(knee), "{disturbed:?}, and {next} was disturbed");
    }
}
