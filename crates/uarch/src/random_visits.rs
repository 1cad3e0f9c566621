//! How many items a structure holds, from the cost of visits in random order.
//!
//! Each visit goes to any of N items with the same probability. A structure with room for S of them
//! misses the share 1 - S/N of the visits, whatever it replaces. So a visit costs
//! `c + m * max(0, 1 - S/N)`, where `m` is the extra cost of a miss. A second structure with room
//! for fewer items adds such a term of its own. S is that of the term with the largest `m`.
//!
//! Least squares over a grid of sizes finds the terms. Resampled residuals show how far the size may
//! be off.

use super::cost::{CostPoint, MeasureCosts};
use super::record::{UarchRecord, WalkRecord};
use super::spec::{ProgramFamily, RandomVisitsSpec, TestSpec};
use super::verdict::{TestVerdict, VerdictKind};
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::{Interval, mean, median, quantiles};
use std::collections::BTreeMap;

/// Ratio of neighbouring counts.
const COUNT_FACTOR: f64 = 1.13;
/// The largest multiple of the size at which counts are used. Far larger code is slowed down by other
/// structures too.
const MAX_MULTIPLE: f64 = 2.75;
/// Ratio of neighbouring sizes of the grid.
const SIZE_FACTOR: f64 = 1.015;
/// Counts before the least size and behind the largest one: fewer define no line.
const OUTER_COUNTS: usize = 4;
/// How often the residuals are resampled.
const RESAMPLINGS: usize = 199;
/// The least share by which a second structure must reduce the sum of squares. Chance reaches it
/// often, and then widens the interval. With 0.4, 6 % of 99 % intervals missed simulated sizes.
const SECOND_STRUCTURE_GAIN: f64 = 0.1;
/// The largest root mean square residual, as a share of the cost of a miss.
const MAX_RESIDUAL: f64 = 0.08;
/// The largest extra cost of the other structure's miss, as a share of this one's.
const MAX_RIVAL: f64 = 0.75;
/// Share by which two equal sizes may differ.
const SAME_SHARE: f64 = 0.06;
/// The probability that an interval misses the size, on each side.
const TAIL: f64 = 0.005;
/// How often each count is measured before a curve is judged, and at most. The lowest cost counts:
/// whatever disturbs a visit makes it slower.
const MEASUREMENTS: [usize; 2] = [2, 5];

/// Measures visits of all counts and judges the curves.
pub(super) fn run_random_visits(
    core: &mut dyn MeasureCosts,
    test: &'static TestSpec,
    spec: &'static RandomVisitsSpec,
    random: &mut Random,
) -> Result<Vec<UarchRecord>, RunError> {
    let key = format!("{}.1.size", test.name);
    let mut curves: Vec<VisitCurve> =
        spec.programs.iter().map(|family| VisitCurve { family, lowest: BTreeMap::new() }).collect();
    for measurements in 1..=MEASUREMENTS[1] {
        match measure_once(core, spec, &mut curves, random) {
            Err(RunError::Unavailable(reason)) => {
                return Ok(vec![UarchRecord::unavailable(test, key, &reason, spec.unit)]);
            }
            done => done?,
        }
        if measurements < MEASUREMENTS[0] {
            continue;
        }
        let found: Vec<_> =
            curves.iter().map(|curve| (curve.family.name, curve.find_structure(spec.min_miss_cost, random))).collect();
        let verdict = judge_structures(&found, spec);
        if verdict.kind != VerdictKind::Unclear || measurements == MEASUREMENTS[1] {
            let mut record = UarchRecord::new(test, key, verdict, spec.unit);
            record.walks = curves.into_iter().map(VisitCurve::into_record).collect();
            return Ok(vec![record]);
        }
    }
    unreachable!("the last measurement is judged")
}

/// The lowest cost of a visit in a program, by the number of items.
struct VisitCurve {
    family: &'static ProgramFamily,
    lowest: BTreeMap<usize, CostPoint>,
}

impl VisitCurve {
    fn points(&self) -> Vec<CostPoint> {
        self.lowest.values().copied().collect()
    }

    fn find_structure(&self, min_miss_cost: f64, random: &mut Random) -> Result<VisitedStructure, NoStructure> {
        find_structure(&self.points(), min_miss_cost, random)
    }

    fn into_record(self) -> WalkRecord {
        WalkRecord { name: self.family.name.into(), levels: Vec::new(), curve: self.points() }
    }
}

/// Measures each count of each program once more. All are in one random order, so that changes of
/// the background load affect all of them.
fn measure_once(
    core: &mut dyn MeasureCosts,
    spec: &RandomVisitsSpec,
    curves: &mut [VisitCurve],
    random: &mut Random,
) -> Result<(), RunError> {
    let counts = spread_counts(spec.count_range);
    let mut order: Vec<(usize, usize)> =
        (0..curves.len()).flat_map(|curve| counts.iter().map(move |n| (curve, *n))).collect();
    random.shuffle(&mut order);
    for (place, n) in order {
        let VisitCurve { family, lowest } = &mut curves[place];
        if let Some(point) = core.measure_cost(family, n)?.filter(|point| point.cost.is_finite()) {
            let kept = lowest.entry(n).or_insert(point);
            if point.cost < kept.cost {
                *kept = point;
            }
        }
    }
    Ok(())
}

/// Counts at equal ratios.
fn spread_counts([least, most]: [usize; 2]) -> Vec<usize> {
    let ratio = most as f64 / least as f64;
    let steps = (ratio.ln() / COUNT_FACTOR.ln()).round();
    (0..=steps as usize).map(|step| (least as f64 * ratio.powf(step as f64 / steps)).round() as usize).collect()
}

/// A structure that shows in a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
struct VisitedStructure {
    /// How many items it holds.
    size: Interval,
    /// The extra cost of a miss, in core cycles.
    miss_cost: f64,
}

/// Why a curve shows no structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NoStructure {
    /// No visit costs much more than another.
    SameCost,
    /// The costs differ from those of one or two structures.
    BadFit,
    /// Two structures have similar costs of a miss.
    TwoAlike,
}

impl NoStructure {
    fn describe(self) -> &'static str {
        match self {
            NoStructure::SameCost => "visits cost about the same at all counts",
            NoStructure::BadFit => "the curve is not that of a structure with random visits",
            NoStructure::TwoAlike => "two structures with misses of similar cost",
        }
    }
}

/// Finds the structure with the most expensive misses. Counts far beyond its size are left out.
fn find_structure(
    points: &[CostPoint],
    min_miss_cost: f64,
    random: &mut Random,
) -> Result<VisitedStructure, NoStructure> {
    let whole = FittedCurve::from_points(points)?;
    whole.require_fit(min_miss_cost)?;
    let most = MAX_MULTIPLE * whole.main_size();
    let near: Vec<CostPoint> = points.iter().copied().filter(|point| point.n as f64 <= most).collect();
    let curve = FittedCurve::from_points(&near)?;
    curve.require_fit(min_miss_cost)?;
    let mut sizes: Vec<f64> = (0..RESAMPLINGS).filter_map(|_| curve.resample(random)).collect();
    if sizes.len() < RESAMPLINGS / 2 {
        return Err(NoStructure::BadFit);
    }
    let value = curve.main_size();
    let [low, high] = quantiles(&mut sizes, [TAIL, 1.0 - TAIL]);
    // The grid itself is no finer.
    let size = Interval { value, low: low.min(value) / SIZE_FACTOR, high: high.max(value) * SIZE_FACTOR };
    Ok(VisitedStructure { size, miss_cost: curve.main.1 })
}

/// A curve with the structures that fit it best.
struct FittedCurve {
    grid: SizeGrid,
    costs: Vec<f64>,
    fit: StructureFit,
    /// The place of a size in the grid, and the extra cost of a miss: for the structure with the most
    /// expensive misses, and for the other one.
    main: (usize, f64),
    rival: Option<(usize, f64)>,
}

impl FittedCurve {
    fn from_points(points: &[CostPoint]) -> Result<FittedCurve, NoStructure> {
        if points.len() < 3 * OUTER_COUNTS {
            return Err(NoStructure::BadFit);
        }
        let grid = SizeGrid::for_points(points);
        let costs: Vec<f64> = points.iter().map(|point| point.cost).collect();
        let one = grid.fit_one(&costs).ok_or(NoStructure::SameCost)?;
        let two = grid.fit_two(&costs).filter(|two| two.squares < (1.0 - SECOND_STRUCTURE_GAIN) * one.squares);
        let fit = two.unwrap_or(one);
        let (main, rival) = fit.main_and_rival();
        Ok(FittedCurve { grid, costs, fit, main, rival })
    }

    /// Requires misses of one structure that cost enough and more than those of the other one, and
    /// small residuals.
    fn require_fit(&self, min_miss_cost: f64) -> Result<(), NoStructure> {
        let miss_cost = self.main.1;
        if miss_cost < min_miss_cost {
            return Err(NoStructure::SameCost);
        }
        if self.residual() > MAX_RESIDUAL * miss_cost {
            return Err(NoStructure::BadFit);
        }
        match self.rival {
            Some(rival) if rival.1 > MAX_RIVAL * miss_cost => Err(NoStructure::TwoAlike),
            _ => Ok(()),
        }
    }

    fn main_size(&self) -> f64 {
        self.grid.sizes[self.main.0]
    }

    /// Counts beyond the parameters of the fit.
    fn freedom(&self) -> f64 {
        (self.costs.len() - 1 - 2 * self.fit.terms.len()) as f64
    }

    /// The root mean square of the residuals.
    fn residual(&self) -> f64 {
        (self.fit.squares / self.freedom()).sqrt()
    }

    /// The size of the structure in a curve with resampled residuals.
    fn resample(&self, random: &mut Random) -> Option<f64> {
        // The fit took some of the scatter.
        let widen = (self.costs.len() as f64 / self.freedom()).sqrt();
        let fitted = self.grid.predict(&self.fit);
        let mut drawn_residual = || {
            let place = random.below(fitted.len());
            widen * (self.costs[place] - fitted[place])
        };
        let costs: Vec<f64> = fitted.iter().map(|cost| cost + drawn_residual()).collect();
        let again = if self.rival.is_some() { self.grid.fit_two(&costs) } else { self.grid.fit_one(&costs) }?;
        Some(self.grid.sizes[again.main_and_rival().0.0])
    }
}

/// Sizes to try, with the shares of misses that each would have.
struct SizeGrid {
    sizes: Vec<f64>,
    /// The share of misses at each count, less the mean of all counts.
    misses: Vec<Vec<f64>>,
    /// Products of these shares, summed over the counts.
    products: Vec<Vec<f64>>,
}

/// One or two structures: the place of each size in the grid, and the extra cost of a miss.
struct StructureFit {
    terms: Vec<(usize, f64)>,
    /// The mean of all costs.
    mean: f64,
    /// The sum of squares of the residuals.
    squares: f64,
}

impl StructureFit {
    /// The term with the most expensive misses, and the other one.
    fn main_and_rival(&self) -> ((usize, f64), Option<(usize, f64)>) {
        let mut terms = self.terms.clone();
        terms.sort_by(|one, other| other.1.total_cmp(&one.1));
        (terms[0], terms.get(1).copied())
    }
}

impl SizeGrid {
    fn for_points(points: &[CostPoint]) -> SizeGrid {
        let [least, most] = [points[OUTER_COUNTS - 1].n as f64, points[points.len() - OUTER_COUNTS].n as f64];
        let steps = ((most / least).ln() / SIZE_FACTOR.ln()) as usize;
        let sizes: Vec<f64> = (0..=steps).map(|step| least * SIZE_FACTOR.powi(step as i32)).collect();
        let centred_misses = |size: &f64| {
            let shares: Vec<f64> = points.iter().map(|point| (1.0 - size / point.n as f64).max(0.0)).collect();
            centre(&shares)
        };
        let misses: Vec<Vec<f64>> = sizes.iter().map(centred_misses).collect();
        let products = misses.iter().map(|one| misses.iter().map(|other| dot(one, other)).collect()).collect();
        SizeGrid { sizes, misses, products }
    }

    /// The best single structure; `None` if costs never rise.
    fn fit_one(&self, costs: &[f64]) -> Option<StructureFit> {
        let CentredCosts { costs, mean, total } = CentredCosts::new(costs);
        let fits = (0..self.sizes.len()).filter_map(|place| {
            let along = dot(&self.misses[place], &costs);
            let miss_cost = along / self.products[place][place];
            let squares = total - miss_cost * along;
            (miss_cost > 0.0).then(|| StructureFit { terms: vec![(place, miss_cost)], mean, squares })
        });
        fits.min_by(|one, other| one.squares.total_cmp(&other.squares))
    }

    /// The best two structures; `None` if no two have misses that cost more.
    fn fit_two(&self, costs: &[f64]) -> Option<StructureFit> {
        let CentredCosts { costs, mean, total } = CentredCosts::new(costs);
        let along: Vec<f64> = self.misses.iter().map(|misses| dot(misses, &costs)).collect();
        let mut best: Option<([(usize, f64); 2], f64)> = None;
        for one in 0..self.sizes.len() {
            for other in one + 1..self.sizes.len() {
                let [own, others, mixed] =
                    [self.products[one][one], self.products[other][other], self.products[one][other]];
                let determinant = own * others - mixed * mixed;
                let costs = [
                    (along[one] * others - along[other] * mixed) / determinant,
                    (along[other] * own - along[one] * mixed) / determinant,
                ];
                let squares = total - costs[0] * along[one] - costs[1] * along[other];
                if costs.iter().all(|cost| *cost > 0.0) && best.is_none_or(|(_, least)| squares < least) {
                    best = Some(([(one, costs[0]), (other, costs[1])], squares));
                }
            }
        }
        best.map(|(terms, squares)| StructureFit { terms: terms.to_vec(), mean, squares })
    }

    /// The costs of a fit.
    fn predict(&self, fit: &StructureFit) -> Vec<f64> {
        let cost = |count| {
            fit.mean + fit.terms.iter().map(|(place, miss_cost)| miss_cost * self.misses[*place][count]).sum::<f64>()
        };
        (0..self.misses[0].len()).map(cost).collect()
    }
}

/// Costs less their mean.
struct CentredCosts {
    costs: Vec<f64>,
    mean: f64,
    /// The sum of their squares.
    total: f64,
}

impl CentredCosts {
    fn new(costs: &[f64]) -> CentredCosts {
        let centred = centre(costs);
        let total = dot(&centred, &centred);
        CentredCosts { mean: costs[0] - centred[0], costs: centred, total }
    }
}

fn centre(values: &[f64]) -> Vec<f64> {
    let mean = mean(values);
    values.iter().map(|value| value - mean).collect()
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// A size needs two programs that agree.
fn judge_structures(found: &[(&str, Result<VisitedStructure, NoStructure>)], spec: &RandomVisitsSpec) -> TestVerdict {
    let describe = |(name, structure): &(&str, Result<VisitedStructure, NoStructure>)| match structure {
        Ok(VisitedStructure { size, miss_cost }) => {
            format!("{name} {:.0} to {:.0}, a miss {miss_cost:.1} cycles", size.low, size.high)
        }
        Err(no) => format!("{name}: {}", no.describe()),
    };
    let why = found.iter().map(describe).collect::<Vec<_>>().join(", ");
    match [&found[0].1, &found[1].1] {
        [Ok(one), Ok(other)] if sizes_agree(one.size, other.size) => {
            let size = Interval {
                value: median(&mut [one.size.value, other.size.value]),
                low: one.size.low.min(other.size.low),
                high: one.size.high.max(other.size.high),
            };
            TestVerdict { size: Some(size), ..TestVerdict::new(VerdictKind::Found, format!("{why} agree")) }
        }
        [Err(NoStructure::SameCost), Err(NoStructure::SameCost)] => {
            TestVerdict::new(VerdictKind::None, format!("no end up to {}", spec.count_range[1]))
        }
        [Ok(_), Ok(_)] => TestVerdict::new(VerdictKind::Unclear, format!("programs differ: {why}")),
        _ => TestVerdict::new(VerdictKind::Unclear, why),
    }
}

fn sizes_agree(one: Interval, other: Interval) -> bool {
    (one.value - other.value).abs() <= SAME_SHARE * one.value.max(other.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Experiment;
    use crate::test_list::find_test;

    /// The curve of these structures, each with its size and the extra cost of a miss.
    fn curve(structures: &[(f64, f64)], noise: f64, random: &mut Random) -> Vec<CostPoint> {
        let cost = |n: usize| -> f64 {
            let extra = structures.iter().map(|(size, miss)| miss * (1.0 - size / n as f64).max(0.0));
            36.0 + extra.sum::<f64>()
        };
        let mut point = |n| {
            let cost = cost(n) + noise * random.normal();
            CostPoint { n, cost, low: cost, high: cost }
        };
        spread_counts([4 << 10, 160 << 10]).into_iter().map(&mut point).collect()
    }

    #[test]
    fn a_size_is_found_beside_a_smaller_structure() {
        let (mut held, mut found, trials) = (0, 0, 200);
        for seed in 0..trials {
            let mut random = Random::new(seed);
            let size = 16384.0 * 4f64.powf(random.uniform());
            let structures = [(size * (0.3 + 0.5 * random.uniform()), 1.0 + 5.0 * random.uniform()), (size, 10.0)];
            let points = curve(&structures[seed as usize % 2..], 0.15, &mut random);
            let Ok(structure) = find_structure(&points, 6.0, &mut random) else { continue };
            found += 1;
            held += usize::from(structure.size.contains(size));
            assert!((structure.size.value / size - 1.0).abs() < 0.15, "{size}: {structure:?}");
        }
        assert!(found >= 190, "{found} of {trials} are found");
        assert!(held as f64 >= 0.97 * found as f64, "{held} of {found} intervals hold the size");
    }

    #[test]
    fn curves_of_no_single_structure_prove_no_size() {
        let mut random = Random::new(1);
        let mut judged = |structures: &[(f64, f64)], noise: f64| {
            let points = curve(structures, noise, &mut random);
            find_structure(&points, 6.0, &mut random).map(|structure| structure.size.value)
        };
        assert_eq!(judged(&[], 0.1), Err(NoStructure::SameCost));
        assert_eq!(judged(&[(32768.0, 3.0)], 0.1), Err(NoStructure::SameCost));
        assert_eq!(judged(&[(16384.0, 10.0), (40000.0, 9.0)], 0.1), Err(NoStructure::TwoAlike));
        assert_eq!(judged(&[(32768.0, 10.0)], 2.0), Err(NoStructure::BadFit));
        // A cost that jumps at a count: visits in a fixed order.
        let mut steps = curve(&[], 0.05, &mut random);
        for point in steps.iter_mut().filter(|point| point.n > 32768) {
            point.cost += 14.0;
        }
        assert_eq!(find_structure(&steps, 6.0, &mut random), Err(NoStructure::BadFit));
    }

    #[test]
    fn a_size_needs_two_programs_that_agree() {
        let test = find_test("instruction_cache");
        let Experiment::RandomVisits(spec) = &test.experiment else { unreachable!("it is one of random visits") };
        let structure = |value: f64| {
            let size = Interval { value, low: 0.97 * value, high: 1.03 * value };
            Ok(VisitedStructure { size, miss_cost: 10.0 })
        };
        let judged = |one, other| judge_structures(&[("one", one), ("other", other)], spec);
        let found = judged(structure(32000.0), structure(33000.0));
        assert_eq!((found.kind, found.size.map(|size| size.value)), (VerdictKind::Found, Some(32500.0)));
        let apart = judged(structure(20480.0), structure(32768.0));
        assert_eq!((apart.kind, apart.size), (VerdictKind::Unclear, None));
        let none = judged(Err(NoStructure::SameCost), Err(NoStructure::SameCost));
        assert_eq!(none.kind, VerdictKind::None);
        assert_eq!(judged(structure(32768.0), Err(NoStructure::SameCost)).kind, VerdictKind::Unclear);
    }
}
