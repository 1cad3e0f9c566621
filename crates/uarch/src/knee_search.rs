//! Searches for a knee: first at counts far apart, then at closer counts around it, until each
//! count there is measured.

use super::knee::{KneeEdges, NoKnee};
use super::overlap::{OverlapProbe, OverlapReading};

/// Number of counts per step.
const COUNTS_PER_STEP: usize = 24;
/// The smallest count. With fewer fillers, chains overlap on every core.
pub(super) const MIN_COUNT: usize = 2;
/// Before its search, a bracket is widened on both sides: by its count divided by this, plus
/// [`WIDEN`].
const WIDEN_SHARE: usize = 16;
/// The least number of counts by which a bracket is widened.
const WIDEN: usize = 4;

/// A curve, and its knee if it has one.
#[derive(Debug, Clone)]
pub(super) struct KneeCurve {
    /// All measured points, in ascending order of counts.
    pub curve: Vec<OverlapReading>,
    /// The knee.
    pub knee: Result<KneeEdges, NoKnee>,
}

/// The overlap experiment that found a size.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProbedKnee {
    /// The programs.
    pub probe: OverlapProbe,
    /// The largest number of fillers.
    pub max_fillers: usize,
    /// The knee of its curve.
    pub knee: KneeEdges,
}

/// The end has stayed if the overlap is at least this before it, and less behind it.
const HALF_OVERLAP: f64 = 0.5;

impl ProbedKnee {
    /// The present knee: the same one if the overlap still ends there, or else that of another
    /// search.
    pub(super) fn recheck<E>(
        &self,
        mut measure: impl FnMut(&OverlapProbe, &[usize]) -> Result<Vec<OverlapReading>, E>,
    ) -> Result<Option<KneeEdges>, E> {
        let ProbedKnee { probe, max_fillers: most, knee } = self;
        let points = measure(probe, &[knee.low, knee.high + 1])?;
        let here: Vec<bool> = points.iter().map(|point| point.overlap >= HALF_OVERLAP).collect();
        if here == [true, false] {
            return Ok(Some(*knee));
        }
        Ok(search_knee(*most, |counts| measure(probe, counts))?.knee.ok())
    }
}

/// Searches up to `most` fillers. `measure` measures the overlap at some counts.
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

    /// The knee of a core with room for this number of fillers. One count of the first step may be
    /// disturbed: its chains seem to overlap.
    fn found(room: usize, disturbed: Option<usize>) -> Result<KneeEdges, NoKnee> {
        let point = |n: &usize| {
            let overlap = if *n <= room || disturbed == Some(*n) { 0.95 } else { 0.05 };
            OverlapReading { n: *n, overlap, fast: overlap.round() }
        };
        let found = search_knee(400, |counts| Ok::<_, ()>(counts.iter().map(point).collect()));
        found.expect("all is simulated").knee
    }

    #[test]
    fn a_burst_beyond_a_knee_does_not_move_it() {
        let knee = KneeEdges { low: 180, high: 180 };
        assert_eq!(found(180, None), Ok(knee));
        let next = spread_counts(MIN_COUNT, 400).into_iter().find(|n| *n > 180).expect("counts go on");
        assert!(next > 182);
        let disturbed = found(180, Some(next));
        assert!(disturbed.is_err() || disturbed == Ok(knee), "{disturbed:?}, and {next} was disturbed");
    }
}
