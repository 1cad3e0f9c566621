//! The number of fillers at which the overlap ends. Finds the edges of the knee in a curve, or the
//! reason why the curve has no knee.
//!
//! The overlap falls with the number of fillers: slowly while fillers cost the second chain some
//! slots, and at once when the core is full. Beyond that it may rise again, because the fillers
//! take longer than the first chain. So only the part up to the lowest point counts. The nearest
//! curve that never rises replaces it (isotonic regression, by pooling adjacent violators). The
//! knee is the steepest fall of that curve. Without a fall of [`FALL_LEAST`] within some links
//! there is no knee.

use super::overlap::OverlapReading;
use super::spec::CHAIN_LINKS;
use cyclescope_core::statistics::median;

/// The least fall of a knee, in overlaps.
const FALL_LEAST: f64 = 0.4;
/// Number of points that define a level.
const LEVEL_POINTS: usize = 3;
/// The largest number of fillers over which an overlap ends, if the first chain takes entries too
/// and frees them link by link.
const MAX_FALL_WIDTH: usize = CHAIN_LINKS + 8;
/// Share of the fall that is left at the knee's last count.
const HIGH_SHARE: f64 = 0.1;
/// Share of the fall that is left at the last count before the knee.
const LOW_SHARE: f64 = 0.9;
/// The largest root mean square distance of points from the fitted curve, in overlaps.
const ROUGHNESS_MOST: f64 = 0.1;

/// The edges of a knee, in numbers of fillers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct KneeEdges {
    /// The last count before the fall.
    pub low: usize,
    /// The last count within the fall: one more filler reaches the overlap beyond the knee.
    pub high: usize,
}

/// Why a curve has no knee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoKnee {
    /// The chains overlap at every count.
    AlwaysOverlaps,
    /// The chains overlap at no count.
    NeverOverlaps,
    /// The curve has no single fall.
    NoSingleFall,
}

impl KneeEdges {
    /// Finds the knee of a curve whose counts ascend.
    pub(super) fn from_curve(points: &[OverlapReading]) -> Result<KneeEdges, NoKnee> {
        if points.len() < 2 * LEVEL_POINTS || points.iter().any(|point| !point.overlap.is_finite()) {
            return Err(NoKnee::NoSingleFall);
        }
        let points = &points[..=find_lowest(points)];
        let overlaps: Vec<f64> = points.iter().map(|point| point.overlap).collect();
        let falling = fit_falling_curve(&overlaps);
        let squares = overlaps.iter().zip(&falling).map(|(own, fitted)| (own - fitted).powi(2)).sum::<f64>();
        let (first, last) = (falling[0], falling[falling.len() - 1]);
        if first - last < FALL_LEAST {
            return Err(if last >= FALL_LEAST { NoKnee::AlwaysOverlaps } else { NoKnee::NeverOverlaps });
        }
        if (squares / points.len() as f64).sqrt() > ROUGHNESS_MOST {
            return Err(NoKnee::NoSingleFall);
        }
        let (from, to) = find_steepest_fall(points, &falling);
        let fall = falling[from] - falling[to];
        // If counts are far apart, only a part of them shows the fall.
        if fall < FALL_LEAST {
            return Err(NoKnee::NoSingleFall);
        }
        let last = |share: f64| {
            let place = (from..=to).rev().find(|place| falling[*place] >= falling[to] + share * fall);
            points[place.unwrap_or(from)].n
        };
        Ok(KneeEdges { low: last(LOW_SHARE), high: last(HIGH_SHARE) })
    }

    /// The knee without fillers that were there beforehand.
    pub(super) fn minus_fillers(self, fillers: usize) -> KneeEdges {
        let [low, high] = [self.low, self.high].map(|count| count.saturating_sub(fillers));
        KneeEdges { low, high }
    }

    /// Fillers that may be beyond the last count if the overlap ends link by link: these links
    /// cause the rest of the fall.
    pub(super) fn link_slack(&self) -> usize {
        if self.high - self.low >= CHAIN_LINKS / 2 { (HIGH_SHARE * CHAIN_LINKS as f64).ceil() as usize } else { 0 }
    }

    /// The measured counts next to the fall, on both sides.
    pub(super) fn find_bracket(&self, points: &[OverlapReading]) -> (usize, usize) {
        let next = points.iter().map(|point| point.n).find(|n| *n > self.high);
        (self.low, next.unwrap_or(self.high))
    }
}

/// The lowest point of the curve, by medians of neighbours.
fn find_lowest(points: &[OverlapReading]) -> usize {
    let level = |points: &[OverlapReading]| median(&mut points.iter().map(|point| point.overlap).collect::<Vec<f64>>());
    let levels = points.windows(LEVEL_POINTS).map(level).enumerate();
    let (place, _) = levels.min_by(|(_, one), (_, other)| one.total_cmp(other)).expect("there are enough points");
    place + LEVEL_POINTS - 1
}

/// The two points between which the curve falls most. They are at most [`MAX_FALL_WIDTH`] fillers
/// apart, or two steps if counts are farther apart: a fall may lie on both sides of a count.
fn find_steepest_fall(points: &[OverlapReading], falling: &[f64]) -> (usize, usize) {
    let pairs = (0..points.len()).flat_map(|from| {
        let near = move |to: &usize| *to <= from + 2 || points[*to].n - points[from].n <= MAX_FALL_WIDTH;
        (from + 1..points.len()).take_while(near).map(move |to| (from, to))
    });
    pairs.max_by(|one, other| fall_between(falling, *one).total_cmp(&fall_between(falling, *other))).unwrap_or_default()
}

fn fall_between(falling: &[f64], (from, to): (usize, usize)) -> f64 {
    falling[from] - falling[to]
}

/// The nearest non-increasing sequence.
pub(super) fn fit_falling_curve(values: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for value in values {
        pools.push((*value, 1));
        while let [.., (before, many), (last, few)] = pools[..]
            && last > before
        {
            pools.truncate(pools.len() - 2);
            let count = many + few;
            pools.push(((before * many as f64 + last * few as f64) / count as f64, count));
        }
    }
    pools.into_iter().flat_map(|(value, count)| std::iter::repeat_n(value, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(overlaps: impl IntoIterator<Item = (usize, f64)>) -> Vec<OverlapReading> {
        overlaps.into_iter().map(|(n, overlap)| OverlapReading { n, overlap, fast: overlap.round() }).collect()
    }

    #[test]
    fn a_knee_is_the_fall_and_not_the_slope_before_it() {
        // From 0.98 to 0.78 slowly, then at once, and up again beyond it.
        let overlap = |n: usize| match n {
            ..=192 => 0.98 - 0.2 * n as f64 / 192.0,
            _ => 0.1 + 0.001 * (n - 192) as f64,
        };
        let points = curve((2..400).map(|n| (n, overlap(n))));
        assert_eq!(KneeEdges::from_curve(&points), Ok(KneeEdges { low: 192, high: 192 }));
    }

    #[test]
    fn a_fall_link_by_link_has_two_edges() {
        let overlap = |n: usize| (500i64 - n as i64).clamp(0, 20) as f64 / 20.0;
        let points = curve((400..560).map(|n| (n, overlap(n))));
        let knee = KneeEdges::from_curve(&points).unwrap();
        assert_eq!((knee.low, knee.high, knee.link_slack()), (482, 498, 2));
        assert_eq!(knee.minus_fillers(16), KneeEdges { low: 466, high: 482 });
    }

    #[test]
    fn curves_without_a_knee_have_a_reason() {
        let flat = |overlap: f64| curve((1..40).map(|n| (10 * n, overlap)));
        assert_eq!(KneeEdges::from_curve(&flat(0.97)), Err(NoKnee::AlwaysOverlaps));
        assert_eq!(KneeEdges::from_curve(&flat(0.05)), Err(NoKnee::NeverOverlaps));
        // Noise has neither a fall nor a level.
        let torn = curve((1..40).map(|n| (10 * n, [0.9, 0.1, 0.5][n % 3])));
        assert!(KneeEdges::from_curve(&torn).is_err(), "{torn:?}");
        let slope = curve((1..40).map(|n| (10 * n, 1.0 - n as f64 / 40.0)));
        assert_eq!(KneeEdges::from_curve(&slope), Err(NoKnee::NoSingleFall));
        assert_eq!(KneeEdges::from_curve(&curve([(1, f64::NAN)])), Err(NoKnee::NoSingleFall));
    }

    #[test]
    fn the_falling_fit_pools_rising_points() {
        assert_eq!(fit_falling_curve(&[3.0, 1.0, 2.0, 0.0]), [3.0, 1.5, 1.5, 0.0]);
        assert_eq!(fit_falling_curve(&[1.0, 2.0, 3.0]), [2.0, 2.0, 2.0]);
        assert!(fit_falling_curve(&[]).is_empty());
    }

    #[test]
    fn a_rise_beyond_the_lowest_point_does_not_affect_the_knee() {
        // Beyond 300, the fillers take longer than the first chain.
        let overlap = |n: usize| match n {
            ..=192 => 0.95,
            193..=300 => 0.1,
            _ => 0.1 + 0.85 * (n - 300) as f64 / 100.0,
        };
        let points = curve((2..400).map(|n| (n, overlap(n))));
        assert_eq!(KneeEdges::from_curve(&points), Ok(KneeEdges { low: 192, high: 192 }));
    }

    #[test]
    fn a_fall_among_noise_is_no_knee() {
        let of_noise = |noise: f64| {
            let overlap = |n: usize| {
                let level = if n <= 20 { 0.8 } else { 0.2 };
                level + if n.is_multiple_of(2) { noise } else { -noise }
            };
            KneeEdges::from_curve(&curve((1..41).map(|n| (n, overlap(n)))))
        };
        assert!(of_noise(0.05).is_ok_and(|knee| knee.high == 20), "{:?}", of_noise(0.05));
        assert_eq!(of_noise(0.2), Err(NoKnee::NoSingleFall));
    }
}
