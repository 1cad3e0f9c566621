//! Levels of a rising curve: ranges of counts over which a step costs the same, and the counts at
//! which they end.
//!
//! Medians of three replace points, against bursts. The highest curve that never falls and is
//! nowhere above the medians replaces those. A level is a stretch whose cost stays within a
//! tolerance over a factor of counts. Stretches that differ by less than the least rise are one
//! level: a slow rise within a cache, as from missing translations, starts no new level.

use super::cost::CostPoint;
use super::null_number::nan_for_null;
use cyclescope_core::statistics::{median, quartiles};
use serde::{Deserialize, Serialize};

/// The cost of a stretch stays within this share of its first cost.
const TOLERANCE: f64 = 0.12;
/// It also stays within this share of the least ratio between levels. With the whole ratio, two
/// levels would be one stretch.
const RATIO_PART: f64 = 0.5;
/// It also stays within this share of the least rise between levels.
const RISE_PART: f64 = 0.25;
/// The largest factor by which slow rises raise a cost, as a multiple of the least ratio of levels.
/// Missing translations raise that of a load from memory by 1.8, from 523 to 919 cycles (Turin,
/// family 26, model 2).
const DRIFT_FACTOR: f64 = 1.4;
/// The least factor of counts that a stretch spans.
const MIN_SPAN: f64 = 1.4;
/// The least number of points of a stretch.
const MIN_POINTS: usize = 3;
/// A count was disturbed if it costs more than a larger one by this part of the tolerance.
const DISTURBED_PART: f64 = 0.25;
/// A level's end is sharp if the cost reaches half of the rise within this factor from its start.
const SHARP_FACTOR: f64 = 1.2;
/// Shares of the rise at the edges of a sharp end. A cache whose sets fill evenly costs more from
/// the first line that does not fit. It costs as much as the next level if no set fits.
const SHARP_EDGES: [f64; 2] = [0.02, 0.5];
/// Shares of the rise at the edges of a soft end. If sets fill by chance, as by physical pages, and
/// there are as many lines as places, about half of the steps miss where the oldest line is
/// replaced: 0.50 to 0.57 by the Poisson distribution, in sets of four ways and more. Where any
/// line is replaced, only the lines that are too many evict others: 0.18 to 0.33. (A Turin, family 26,
/// model 2, has 40 % misses at 1.06 to 1.19 times its second cache of 16 ways.) If the sets of such
/// a cache fill evenly, as in whole huge pages, 3 % miss 1.5 % behind its size.
const SOFT_EDGES: [f64; 2] = [0.03, 0.65];
/// The share of the rise at which a soft end by chance alone is at most [`SOFT_BEGIN`] behind its
/// start.
const SOFT_MIDDLE: f64 = 0.4;

/// A cost that is higher by this many median distances is beyond the level.
const NOISE_DISTANCES: f64 = 5.0;
/// The largest share of a rise that this noise limit may be. Above that, the start of the rise is
/// unknown, and the end is as soft as the points show.
const NOISE_MOST: f64 = 0.15;
/// The largest factor from the start of a soft rise to its middle if sets fill by chance: 2.4
/// in sets of eight ways, 1.6 in sets of sixteen.
const SOFT_BEGIN: f64 = 2.6;

/// The part of the least rise to the next level above which the cost has surely begun to rise.
const START_PART: f64 = 0.1;

/// The factor of counts within which noise may hide the start of a sharp rise.
const NOISE_COUNTS: f64 = 1.03;

/// The end of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelEnd {
    /// The last count that is surely in the level.
    pub low: usize,
    /// The most likely last count.
    pub value: usize,
    /// The largest possible last count.
    pub high: usize,
    /// Whether the cost rises between two neighbouring counts, not over many.
    pub sharp: bool,
}

/// A level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CurveLevel {
    /// Where it ends; `None` for the last level.
    pub upto: Option<LevelEnd>,
    /// Core cycles of a step in its first stretch, before other effects raise it: the median of its
    /// points.
    #[serde(deserialize_with = "nan_for_null")]
    pub cost: f64,
    /// The lower quartile of its points in that stretch.
    #[serde(deserialize_with = "nan_for_null")]
    pub low: f64,
    /// Their upper quartile.
    #[serde(deserialize_with = "nan_for_null")]
    pub high: f64,
    /// The first and the last count of its first stretch, and of its last one.
    #[serde(skip)]
    stretches: [[usize; 2]; 2],
    /// The index of its first point.
    #[serde(skip)]
    from: usize,
    /// The cost in its last stretch. A higher cost ends the level.
    #[serde(skip)]
    foot: f64,
    /// The median distance of its points from that cost.
    #[serde(skip)]
    noise: f64,
}

impl CurveLevel {
    /// The cost from which the rise to the next level counts. Where sets fill by chance, the last
    /// stretch may lie within that rise: beside a sibling, counts that are measured while it rests
    /// cost less than those before them.
    fn cost_before_rise(&self, rises: LevelCriteria) -> f64 {
        if rises.fills_randomly { self.cost } else { self.foot }
    }

    /// Whether a step costs as much at all of these counts.
    pub(super) fn spans(&self, low: usize, high: usize) -> bool {
        self.stretches.iter().any(|[from, to]| *from <= low && high <= *to)
    }

    /// Whether another level has some of its counts.
    pub(super) fn meets(&self, other: &CurveLevel) -> bool {
        let [[from, _], [_, to]] = self.stretches;
        let [[other_from, _], [_, other_to]] = other.stretches;
        from <= other_to && other_from <= to
    }
}

/// The criteria that separate levels.
#[derive(Debug, Clone, Copy)]
pub(super) struct LevelCriteria {
    /// The least rise of the cost from a level to the next, in core cycles.
    pub min_rise: f64,
    /// The least ratio of the next level's cost to the last cost of the level before.
    pub min_ratio: f64,
    /// Whether items fill sets by chance. If not known, the soft end of a level begins where its
    /// cost begins to rise.
    pub fills_randomly: bool,
    /// Whether a rise up to the largest count ends the last level.
    pub ends_rising: bool,
}

impl LevelCriteria {
    /// The cost of a step in the quieter layouts if others use the level too: their load on a cache
    /// lasts for whole layouts, and never makes a load cheaper.
    pub(super) fn quiet_cost(&self, point: &CostPoint) -> f64 {
        if self.fills_randomly { point.low } else { point.cost }
    }

    /// The share of its first cost within which a stretch stays.
    fn tolerance(&self) -> f64 {
        TOLERANCE.min(RATIO_PART * (self.min_ratio - 1.0))
    }
}

/// The levels of a curve whose counts ascend.
pub(super) fn find_levels(points: &[CostPoint], rises: LevelCriteria) -> Vec<CurveLevel> {
    let costs = fit_rising_curve(points, rises);
    let mut levels: Vec<CurveLevel> = Vec::new();
    for (from, to) in find_stretches(points, &costs, rises) {
        let level = summarize_level(&points[from..=to], from);
        match levels.last_mut() {
            // A slow rise starts no new level at any length. A new level has to exceed the cost
            // that it has reached.
            Some(last) if level.cost < min_next_cost(last, rises) && level.cost < max_drift(last, rises) => {
                let stretches = [last.stretches[0], level.stretches[1]];
                *last = CurveLevel { foot: level.foot, noise: level.noise, stretches, ..*last };
            }
            _ => levels.push(level),
        }
    }
    for number in 0..levels.len() {
        if let Some(next) = next_cost(&levels, number, &costs, rises) {
            let marks = EndMarks::from_level(points, &costs, &levels[number], next, rises);
            levels[number].upto = Some(marks.to_level_end(points, rises.fills_randomly));
        }
    }
    levels
}

/// The cost behind a level, if it has an end. The last level ends if the largest count costs as
/// much as another one: its size is at most the count at which the largest part of that rise is
/// done.
fn next_cost(levels: &[CurveLevel], number: usize, costs: &[f64], rises: LevelCriteria) -> Option<f64> {
    let last = costs.last().copied().filter(|cost| rises.ends_rising && *cost >= min_next_cost(&levels[number], rises));
    levels.get(number + 1).map(|level| level.cost).or(last)
}

/// The least cost of a step in the level behind this one.
fn min_next_cost(level: &CurveLevel, LevelCriteria { min_rise: rise, min_ratio: ratio, .. }: LevelCriteria) -> f64 {
    (level.foot + rise).max(ratio * level.foot)
}

/// The cost up to which slow rises may add up within a level. Stretches within the rise to the next
/// level, as a sibling makes them, must not join both.
fn max_drift(level: &CurveLevel, LevelCriteria { min_rise: rise, min_ratio: ratio, .. }: LevelCriteria) -> f64 {
    (DRIFT_FACTOR * ratio * level.cost).max(level.cost + 2.0 * rise)
}

/// Whether the cost still rises at the largest count, beyond all levels.
pub(super) fn still_rises(points: &[CostPoint], rises: LevelCriteria) -> bool {
    let last = fit_rising_curve(points, rises).last().copied().unwrap_or_default();
    let Some(level) = find_levels(points, rises).last().copied() else { return true };
    last > level.foot * (1.0 + 2.0 * rises.tolerance()) && last - level.foot > 2.0 * RISE_PART * rises.min_rise
}

/// Whether the largest count costs as much as another level, which has no stretch yet.
pub(super) fn reaches_next_level(points: &[CostPoint], rises: LevelCriteria) -> bool {
    let last = fit_rising_curve(points, rises).last().copied().unwrap_or_default();
    let Some(level) = find_levels(points, rises).last().copied() else { return true };
    last >= min_next_cost(&level, rises)
}

/// Counts that cost more than a larger one does. Other costs never fall, so these were disturbed.
pub(super) fn disturbed_counts(points: &[CostPoint], rises: LevelCriteria) -> Vec<usize> {
    let costs = fit_rising_curve(points, rises);
    let is_disturbed = |(point, cost): &(&CostPoint, f64)| {
        rises.quiet_cost(point)
            > (cost * (1.0 + DISTURBED_PART * rises.tolerance())).max(cost + RISE_PART * rises.min_rise)
    };
    points.iter().zip(costs).filter(is_disturbed).map(|(point, _)| point.n).collect()
}

/// Counts to measure next: between neighbours whose costs differ, and around the ends of levels.
pub(super) fn counts_to_refine(points: &[CostPoint], rises: LevelCriteria) -> Vec<usize> {
    let costs = fit_rising_curve(points, rises);
    let mut wanted: Vec<usize> = Vec::new();
    for number in 1..points.len() {
        let [before, after] = [costs[number - 1], costs[number]];
        let differ = after - before >= (rises.tolerance() * before).max(RISE_PART * rises.min_rise);
        let [from, to] = [points[number - 1].n, points[number].n];
        if differ && to as f64 > COARSE * from as f64 && to > from + 1 {
            wanted.push(middle_count(from, to));
        }
    }
    let levels = find_levels(points, rises);
    for (number, level) in levels.iter().enumerate() {
        let Some(next) = next_cost(&levels, number, &costs, rises) else { continue };
        let marks = EndMarks::from_level(points, &costs, level, next, rises);
        // The edges of a soft end may be as far apart as a part of its width.
        let fine = if rises.fills_randomly && number > 0 { SHARED_FINE } else { FINE };
        let near = 1.0 + fine.max(WIDTH_PART * (marks.rise_width(points) - 1.0));
        for place in marks.edge_places() {
            let [edge, next] = [points[place].n, points[(place + 1).min(points.len() - 1)].n];
            if next as f64 > near * edge as f64 && next > edge + 1 {
                wanted.push(middle_count(edge, next));
            }
        }
    }
    wanted.sort_unstable();
    wanted.dedup();
    wanted
}

/// The ratio of neighbouring counts that is fine enough within a rise.
const COARSE: f64 = 1.12;
/// Share by which neighbouring counts may differ at the edges of an end.
const FINE: f64 = 0.006;
/// The same share behind the first level, where sets fill by chance and others use the level too:
/// what they leave changes by more.
const SHARED_FINE: f64 = 0.04;
/// The same share for a soft end, as a part of the end's width.
const WIDTH_PART: f64 = 0.2;

fn middle_count(low: usize, high: usize) -> usize {
    ((low as f64 * high as f64).sqrt() as usize).clamp(low + 1, high - 1)
}

/// The highest curve that never falls and is nowhere above medians of neighbours.
fn fit_rising_curve(points: &[CostPoint], rises: LevelCriteria) -> Vec<f64> {
    let cost = |at: usize| rises.quiet_cost(&points[at]);
    let last = points.len().saturating_sub(1);
    let middle = |at: usize| match at {
        _ if last < 2 || at == 0 => cost(at),
        // At the last point, a burst upwards would be a level of its own.
        at if at == last => {
            cost(last).min(median(&mut [cost(last), cost(last - 1), cost(last - 2)]).max(cost(last - 1)))
        }
        at => median(&mut [cost(at - 1), cost(at), cost(at + 1)]),
    };
    let mut lowest = f64::INFINITY;
    let mut up: Vec<f64> = (0..points.len())
        .rev()
        .map(middle)
        .map(|cost| {
            lowest = lowest.min(cost);
            lowest
        })
        .collect();
    up.reverse();
    up
}

/// First and last indices of stretches of about the same cost.
fn find_stretches(points: &[CostPoint], costs: &[f64], rises: LevelCriteria) -> Vec<(usize, usize)> {
    let (mut found, mut from) = (Vec::new(), 0);
    while from < points.len() {
        let most = (costs[from] * (1.0 + rises.tolerance())).max(costs[from] + RISE_PART * rises.min_rise);
        let to = (from..points.len()).take_while(|at| costs[*at] <= most).last().unwrap_or(from);
        let spans = points[to].n as f64 >= MIN_SPAN * points[from].n as f64;
        if spans && to + 1 >= from + MIN_POINTS {
            found.push((from, to));
            from = to + 1;
        } else {
            from += 1;
        }
    }
    found
}

fn summarize_level(points: &[CostPoint], from: usize) -> CurveLevel {
    let quartiles_of = |part: fn(&CostPoint) -> f64| quartiles(&mut points.iter().map(part).collect::<Vec<f64>>());
    let [low, ..] = quartiles_of(|point| point.low);
    let [_, cost, _] = quartiles_of(|point| point.cost);
    let [.., high] = quartiles_of(|point| point.high);
    let noise = median(&mut points.iter().map(|point| (point.cost - cost).abs()).collect::<Vec<f64>>());
    let stretches = [[points[0].n, points[points.len() - 1].n]; 2];
    CurveLevel { upto: None, cost, low, high, stretches, from, foot: cost, noise }
}

/// The last points at which a level's cost has not risen by more than certain shares.
struct EndMarks {
    /// The last point before any rise that the next level may cause.
    start: usize,
    /// The first sharp edge, or the last point within noise.
    first: usize,
    sharp: [usize; 2],
    soft: [usize; 2],
    middle: usize,
}

impl EndMarks {
    /// Of a level, from the cost behind it.
    fn from_level(
        points: &[CostPoint],
        costs: &[f64],
        level: &CurveLevel,
        next: f64,
        rises: LevelCriteria,
    ) -> EndMarks {
        let foot = level.cost_before_rise(rises);
        let whole = next - foot;
        let noise = NOISE_DISTANCES * level.noise;
        let noise = if noise > NOISE_MOST * whole { 0.0 } else { noise };
        let place = |rise: f64| {
            let below = (level.from..points.len()).take_while(|at| costs[*at] <= foot + rise).last();
            below.unwrap_or(level.from)
        };
        let [first, half] = SHARP_EDGES;
        let beyond = |share: f64| place(noise.max(share * whole));
        // A short level may hide in the rise: its part of the rise is unknown, and at least this.
        let least = START_PART * (min_next_cost(level, rises) - foot);
        EndMarks {
            start: place(noise.max(least.min(first * whole))),
            first: place(first * whole),
            sharp: [beyond(first), beyond(half)],
            soft: SOFT_EDGES.map(beyond),
            middle: beyond(SOFT_MIDDLE),
        }
    }

    /// The factor from the first count above the level's cost to half of the rise: the least
    /// distance of sharp edges.
    fn rise_width(&self, points: &[CostPoint]) -> f64 {
        let [begin, half] = self.sharp;
        let above = (begin + 1).min(points.len() - 1);
        (points[half].n as f64 / points[above].n as f64).max(1.0)
    }

    /// The indices of points that must be exact.
    fn edge_places(&self) -> impl Iterator<Item = usize> {
        self.sharp.into_iter().chain(self.soft)
    }

    fn to_level_end(&self, points: &[CostPoint], by_chance: bool) -> LevelEnd {
        let n = |place: usize| points[place].n;
        let [begin, half] = self.sharp;
        let next = |place: usize| n((place + 1).min(points.len() - 1));
        let value = n(begin);
        // If no count nearby was measured, the end may be anywhere up to the next count.
        let near = next(half) as f64 <= (1.0 + 2.0 * FINE) * n(half) as f64;
        let high = if near { n(half) } else { next(half) - 1 }.max(value);
        if high as f64 <= SHARP_FACTOR * value as f64 {
            let low = n(self.first).max((value as f64 / NOISE_COUNTS) as usize);
            return LevelEnd { low, value, high, sharp: true };
        }
        let [fit, last] = self.soft;
        let middle = n(self.middle) as f64;
        // A rise slower than chance makes has another cause too: missing translations, or another
        // level that is too short to be seen. The level ends anywhere from its begin on.
        let fits = by_chance && middle <= SOFT_BEGIN * n(self.start) as f64;
        // Counts are farther apart here. Where others take room, the next count may cost too much
        // without a larger one that shows it.
        let high = n((last + 1 + usize::from(by_chance)).min(points.len() - 1));
        let low = n(if fits { fit } else { self.start });
        let likely = if by_chance { n(fit) } else { low };
        LevelEnd { low, value: (likely as f64 * high as f64).sqrt() as usize, high, sharp: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end behind a count whose next count is far.
    fn sharp(points: &[CostPoint], n: usize) -> LevelEnd {
        let next = points.iter().map(|point| point.n).find(|next| *next > n).unwrap();
        LevelEnd { low: n, value: n, high: next - 1, sharp: true }
    }

    const RISES: LevelCriteria =
        LevelCriteria { min_rise: 3.0, min_ratio: 1.8, fills_randomly: true, ends_rising: true };

    fn curve(cost: impl Fn(f64) -> f64) -> Vec<CostPoint> {
        let counts = (0..70).map(|step| (4096.0 * 1.15f64.powi(step)) as usize);
        counts.map(|n| CostPoint { n, cost: cost(n as f64), low: cost(n as f64), high: cost(n as f64) }).collect()
    }

    #[test]
    fn a_level_ends_where_the_cost_begins_to_rise() {
        let points = curve(|n| match n {
            ..=49152.0 => 5.0,
            ..=2e6 => 16.0,
            _ => 80.0,
        });
        let levels = find_levels(&points, RISES);
        assert_eq!(levels.iter().map(|level| level.cost).collect::<Vec<_>>(), [5.0, 16.0, 80.0]);
        let last = |most: f64| points.iter().map(|point| point.n).filter(|n| *n as f64 <= most).max().unwrap();
        assert_eq!(levels[0].upto, Some(sharp(&points, last(49152.0))));
        assert_eq!(levels[1].upto, Some(sharp(&points, last(2e6))));
        assert_eq!(levels[2].upto, None);
    }

    #[test]
    fn a_slow_rise_is_no_level_and_a_soft_end_has_two_edges() {
        // As when translations begin to miss within a cache, and when a cache's sets fill unevenly.
        let cost = |n: f64| match n {
            ..=5e5 => 16.0,
            ..=1e6 => 16.0 + 4.0 * (n - 5e5) / 5e5,
            ..=3e6 => 20.0 + 100.0 * (n - 1e6) / 2e6,
            _ => 120.0,
        };
        let levels = find_levels(&curve(cost), RISES);
        assert_eq!(levels.len(), 2, "{levels:?}");
        // The slow rise before it makes the interval wide; the most likely end stays.
        let end = levels[0].upto.unwrap();
        // Two counts follow 65 % of the rise at 2.3 MB: either may have been disturbed.
        let most = (2_300_000.0 * 1.15f64.powi(2)) as usize;
        assert!(!end.sharp && (450_000..700_000).contains(&end.low) && end.high < most, "{end:?}");
        assert!((1_200_000..2_600_000).contains(&end.value), "{end:?}");
        // By chance, from 0.03 to 0.65 of the rise.
        let chance = |n: f64| cost(n).max(20.0);
        let end = find_levels(&curve(chance), RISES)[0].upto.unwrap();
        assert!(!end.sharp && end.low > 900_000 && end.high < most && end.low < end.high, "{end:?}");
        let whole =
            self::find_levels(&curve(chance), LevelCriteria { fills_randomly: false, ..RISES })[0].upto.unwrap();
        assert!(whole.low < 1_200_000 && whole.high <= end.high, "{whole:?}");
    }

    #[test]
    fn a_rise_beyond_the_last_stretch_belongs_to_another_level() {
        // As page walks that get dearer with each table that they miss.
        let rises =
            |cost: f64| reaches_next_level(&curve(|n| if n <= 1e7 { 7.0 } else { 7.0 + cost * (n / 1e7).ln() }), RISES);
        assert_eq!([0.0, 1.0, 30.0].map(rises), [false, false, true]);
        assert!(!reaches_next_level(&curve(|n| if n <= 1e6 { 7.0 } else { 60.0 }), RISES), "that level has a stretch");
    }

    #[test]
    fn a_burst_is_no_level() {
        let mut points = curve(|n| if n <= 49152.0 { 5.0 } else { 16.0 });
        for at in [3, 40, 69] {
            points[at].cost *= 5.0;
        }
        assert_eq!(find_levels(&points, RISES).len(), 2);
        let flat = find_levels(&curve(|_| 5.0), RISES);
        assert_eq!((flat.len(), flat[0].upto), (1, None));
    }

    #[test]
    fn a_stretch_within_a_rise_moves_no_end() {
        // While a sibling rested, counts up to 2.4 MB cost as little as at 2.0 MB would.
        let cost = |n: f64| match n {
            ..=1e6 => 14.0,
            ..=1.6e6 => 14.0 + 8.0 * (n - 1e6) / 0.6e6,
            ..=2.4e6 => 22.0,
            ..=4e6 => 22.0 + 38.0 * (n - 2.4e6) / 1.6e6,
            _ => 60.0,
        };
        let levels = find_levels(&curve(cost), RISES);
        assert_eq!(levels.len(), 2, "{levels:?}");
        let end = levels[0].upto.unwrap();
        assert!(end.low < 1_200_000 && end.high > 2_400_000, "{end:?}");
    }

    #[test]
    fn a_count_that_costs_more_than_a_larger_one_was_disturbed() {
        let mut points = curve(|n| if n <= 49152.0 { 5.0 } else { 16.0 });
        for (at, part) in [(3, 1.01), (30, 1.2), (69, 1.5)] {
            let point = points[at];
            points[at] = CostPoint { cost: part * point.cost, low: part * point.low, ..point };
        }
        // The largest count is compared with the two before it.
        assert_eq!(disturbed_counts(&points, RISES), [30, 69].map(|at| points[at].n));
    }

    #[test]
    fn counts_are_added_where_the_cost_rises_until_they_are_close() {
        let cost = |n: usize| if n <= 49152 { 5.0 } else { 16.0 };
        let point = |n: usize| CostPoint { n, cost: cost(n), low: cost(n), high: cost(n) };
        let mut points: Vec<CostPoint> = (12..26).map(|bits| point(1 << bits)).collect();
        for _ in 0..30 {
            let more = counts_to_refine(&points, RISES);
            points.extend(more.into_iter().map(point));
            points.sort_by_key(|point| point.n);
        }
        let end = find_levels(&points, RISES)[0].upto.unwrap();
        assert!(end.low <= 49152 && end.low as f64 > 0.985 * 49152.0, "{end:?}");
        assert!(counts_to_refine(&points, RISES).is_empty() && points.len() < 40, "{}", points.len());
    }
}
