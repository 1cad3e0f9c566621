//! The two passes over the points: their orders, and how the two results of a point are combined.

use cyclescope_core::random::Random;
use cyclescope_measure::result::caveat::{Caveat, CaveatKind};
use cyclescope_measure::result::counter_record::CounterRecord;
use cyclescope_measure::result::record::{Quantity, RunRecord};
use cyclescope_measure::result::variant_comparison::{CostRatio, RankedVariant, VariantComparison, VariantVerdict};

/// Points per block. A block finishes both passes before the next begins. A point's line is written
/// after its second run, so an interruption loses at most this many first runs, some seconds.
const BLOCK_POINTS: usize = 32;

/// The order of the points of a block in each pass.
pub(super) type PassOrders = [Vec<usize>; 2];

/// Puts all points in random order, in blocks with a different order in each pass.
pub(super) fn draw_blocks(points: usize, seed: u64) -> Vec<PassOrders> {
    let mut random = Random::new(seed);
    let mut all: Vec<usize> = (0..points).collect();
    random.shuffle(&mut all);
    let orders = |block: &[usize]| {
        let mut again = block.to_vec();
        random.shuffle(&mut again);
        [block.to_vec(), again]
    };
    all.chunks(BLOCK_POINTS).map(orders).collect()
}

/// Combines a point's results from both passes: the mean of each figure. The interval is as wide as
/// that of one pass, since errors common to both are unknown. If the passes disagree, the interval
/// holds both.
pub(super) fn combine_passes([first, second]: [RunRecord; 2]) -> RunRecord {
    let costs = [first.cost, second.cost];
    let compared = [&first, &second].map(|record| record.versus.as_ref().map(|versus| versus.cost));
    let mut caveats = first.caveats.clone();
    let further = second.caveats.into_iter();
    caveats.extend(further.filter(|caveat| first.caveats.iter().all(|known| known.code != caveat.code)));
    let ranked = first.variants.iter().zip(&second.variants).skip(1).map(|(one, other)| [one.cost, other.cost]);
    let pairs = [Some(costs), compared[0].zip(compared[1]).map(|(one, other)| [one, other])];
    caveats.extend(pairs.into_iter().flatten().chain(ranked).find_map(find_disagreement));
    let combine_if_both = |one: Option<Quantity>, other: Option<Quantity>| Some(combine_quantities([one?, other?]));
    let mut record = RunRecord {
        cost: combine_quantities(costs),
        ticks: combine_quantities([first.ticks, second.ticks]),
        time: combine_quantities([first.time, second.time]),
        versus: first.versus.zip(second.versus).map(|(one, other)| combine_comparisons(one, other)),
        variants: combine_rankings([first.variants, second.variants]),
        throughput: combine_if_both(first.throughput, second.throughput),
        latency: combine_if_both(first.latency, second.latency),
        layouts: first.layouts + second.layouts,
        samples: first.samples + second.samples,
        dropped: first.dropped + second.dropped,
        interrupted: first.interrupted + second.interrupted,
        modes: if first.modes.is_empty() { second.modes } else { first.modes },
        trained: first.trained.or(second.trained),
        elapsed_s: first.elapsed_s + second.elapsed_s,
        setup_cost: combine_if_both(first.setup_cost, second.setup_cost),
        counters: combine_counters([&first.counters, &second.counters]),
        counted_cycles: combine_if_both(first.counted_cycles, second.counted_cycles),
        caveats,
        ..first
    };
    let region = record.region.take();
    record.assign_region(region.as_ref());
    record
}

fn combine_comparisons(first: VariantComparison, second: VariantComparison) -> VariantComparison {
    VariantComparison {
        cost: combine_quantities([first.cost, second.cost]),
        difference: combine_quantities([first.difference, second.difference]),
        ratio: combine_ratios([first.ratio, second.ratio]),
        verdict: combine_verdicts([(first.verdict, first.difference), (second.verdict, second.difference)]),
        counters: combine_counters([&first.counters, &second.counters]),
        ..first
    }
}

/// Combines the rankings of both passes. Of two ranks the better one counts: fewer variants are
/// faster in both passes. A ranking with a variant without a number counts only if both have one.
fn combine_rankings(rankings: [Vec<RankedVariant>; 2]) -> Vec<RankedVariant> {
    let complete = rankings.each_ref().map(|ranking| ranking.iter().all(|variant| variant.rank.is_some()));
    let [first, second] = rankings;
    let combine = |(first, second): (RankedVariant, RankedVariant)| {
        let compared = |variant: &RankedVariant| variant.verdict.zip(variant.difference);
        RankedVariant {
            cost: combine_quantities([first.cost, second.cost]),
            difference: first.difference.zip(second.difference).map(|(one, other)| combine_quantities([one, other])),
            ratio: first.ratio.zip(second.ratio).map(|(one, other)| combine_ratios([one, other])),
            verdict: compared(&first).zip(compared(&second)).map(|(one, other)| combine_verdicts([one, other])),
            rank: match complete {
                [true, false] => first.rank,
                [false, true] => second.rank,
                _ => [first.rank, second.rank].into_iter().flatten().min(),
            },
            counters: combine_counters([&first.counters, &second.counters]),
            ..first
        }
    };
    first.into_iter().zip(second).map(combine).collect()
}

/// Combines the counts of both passes. If one has lost an event, the other's counts.
fn combine_counters([first, second]: [&[CounterRecord]; 2]) -> Vec<CounterRecord> {
    let combine = |(first, second): (&CounterRecord, &CounterRecord)| {
        let quantity = combine_quantities([first.quantity, second.quantity]);
        let lost = first.lost.clone().filter(|_| quantity.value.is_none());
        CounterRecord { quantity, lost, ..first.clone() }
    };
    first.iter().zip(second).map(combine).collect()
}

fn combine_ratios(ratios: [CostRatio; 2]) -> CostRatio {
    let PassFigure { value, low, high } = combine_figures(ratios.map(PassFigure::from));
    CostRatio { value, low, high }
}

/// Combines the verdicts of both passes on these differences. If one has no number, the other counts.
fn combine_verdicts([(first, one), (second, other)]: [(VariantVerdict, Quantity); 2]) -> VariantVerdict {
    match (one.value, other.value) {
        (Some(_), None) => first,
        (None, Some(_)) => second,
        _ if first == second => first,
        _ => VariantVerdict::Unclear,
    }
}

/// Returns a caveat if two costs disagree.
fn find_disagreement(costs: [Quantity; 2]) -> Option<Caveat> {
    if figures_agree(costs.map(PassFigure::from)) {
        return None;
    }
    let describe = |cost: Quantity| match (cost.value, cost.low, cost.high) {
        (Some(value), Some(low), Some(high)) => format!("{value:.3} ({low:.3} to {high:.3})"),
        _ => "no number".to_string(),
    };
    let text = format!("the point was measured twice: {} and {} core cycles", describe(costs[0]), describe(costs[1]));
    Some(Caveat { code: CaveatKind::PassesDisagree, text })
}

/// A figure of one pass.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PassFigure {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

impl From<Quantity> for PassFigure {
    fn from(Quantity { value, low, high, .. }: Quantity) -> PassFigure {
        PassFigure { value, low, high }
    }
}

impl From<CostRatio> for PassFigure {
    fn from(CostRatio { value, low, high }: CostRatio) -> PassFigure {
        PassFigure { value, low, high }
    }
}

impl PassFigure {
    /// The value and the distances of the interval's ends; `None` if any of them is unknown.
    fn margins(self) -> Option<[f64; 3]> {
        let (value, low, high) = (self.value?, self.low?, self.high?);
        Some([value, value - low, high - value])
    }
}

/// Whether the figures of two passes differ by no more than chance explains at the level of their
/// intervals. A figure with a number and one without disagree.
fn figures_agree(figures: [PassFigure; 2]) -> bool {
    match figures.map(PassFigure::margins) {
        [Some([one, down, up]), Some([other, other_down, other_up])] => {
            let towards = if one > other { down.hypot(other_up) } else { up.hypot(other_down) };
            (one - other).abs() <= towards
        }
        [one, other] => one.is_none() && other.is_none(),
    }
}

/// Combines the figures of both passes. If one has no number, returns the other.
fn combine_figures(figures: [PassFigure; 2]) -> PassFigure {
    let [Some([one, ..]), Some([other, ..])] = figures.map(PassFigure::margins) else {
        let [one, other] = figures;
        return if one.margins().is_some() || other.margins().is_none() { one } else { other };
    };
    let value = (one + other) / 2.0;
    let ends = |end: fn(&PassFigure) -> Option<f64>| figures.iter().filter_map(end);
    if !figures_agree(figures) {
        let (low, high) = (ends(|figure| figure.low), ends(|figure| figure.high));
        return PassFigure { value: Some(value), low: low.reduce(f64::min), high: high.reduce(f64::max) };
    }
    let margins = figures.map(|figure| figure.margins().unwrap_or_default());
    let margin = |end: usize| (margins[0][end].hypot(margins[1][end])) / std::f64::consts::SQRT_2;
    PassFigure { value: Some(value), low: Some(value - margin(1)), high: Some(value + margin(2)) }
}

fn combine_quantities(figures: [Quantity; 2]) -> Quantity {
    let PassFigure { value, low, high } = combine_figures(figures.map(PassFigure::from));
    Quantity { value, low, high, unit: figures[0].unit }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(value: f64, margin: f64) -> PassFigure {
        PassFigure { value: Some(value), low: Some(value - margin), high: Some(value + margin) }
    }

    const NONE: PassFigure = PassFigure { value: None, low: None, high: None };

    #[test]
    fn each_point_is_measured_twice_in_different_orders() {
        let blocks = draw_blocks(100, 5);
        assert_eq!(blocks.len(), 4);
        let all = |pass: usize| {
            let mut all: Vec<usize> = blocks.iter().flat_map(|orders| orders[pass].clone()).collect();
            all.sort_unstable();
            all
        };
        assert_eq!((all(0), all(1)), ((0..100).collect(), (0..100).collect()));
        assert!(blocks[..3].iter().all(|[first, second]| first != second && first.len() == BLOCK_POINTS));
    }

    #[test]
    fn figures_that_agree_are_averaged_and_others_widen_the_interval() {
        let found = combine_figures([around(10.0, 0.3), around(10.4, 0.4)]);
        assert_eq!(found.value, Some(10.2));
        let margin = found.high.unwrap() - 10.2;
        assert!((margin - (0.125f64).sqrt()).abs() < 1e-9, "{found:?}");
        let apart = [around(10.0, 0.3), around(11.0, 0.4)];
        assert!(!figures_agree(apart));
        assert_eq!(combine_figures(apart), PassFigure { value: Some(10.5), low: Some(9.7), high: Some(11.4) });
        assert!(figures_agree([NONE; 2]) && !figures_agree([NONE, around(1.0, 0.1)]));
        assert_eq!(combine_figures([NONE, around(1.0, 0.1)]), around(1.0, 0.1));
        assert_eq!(combine_figures([NONE; 2]), NONE);
    }

    #[test]
    fn an_event_that_one_pass_lost_has_the_count_of_the_other() {
        use cyclescope_core::statistics::Interval;
        use cyclescope_core::unit::Unit;
        let counter = |count: Result<f64, &str>| {
            let quantity = count.map(|value| Quantity::new(Interval::with_margin(value, 0.5), Unit::Count));
            let quantity = quantity.unwrap_or(Quantity::refused(Unit::Count));
            CounterRecord { name: "uops".to_string(), quantity, pass: 1, lost: count.err().map(str::to_string) }
        };
        let combined = |passes: [Result<f64, &str>; 2]| {
            let [first, second] = passes.map(|count| [counter(count)]);
            let CounterRecord { quantity, lost, .. } = combine_counters([&first, &second]).remove(0);
            (quantity.value, lost)
        };
        assert_eq!(combined([Ok(2.0), Ok(3.0)]), (Some(2.5), None));
        assert_eq!(combined([Err("taken"), Ok(3.0)]), (Some(3.0), None));
        assert_eq!(combined([Err("taken"), Err("again")]), (None, Some("taken".to_string())));
    }

    #[test]
    fn a_pass_without_a_number_leaves_the_verdict_to_the_other() {
        use VariantVerdict::*;
        use cyclescope_core::statistics::Interval;
        use cyclescope_core::unit::Unit;
        let some = Quantity::new(Interval::with_margin(2.0, 0.5), Unit::CoreCycles);
        let none = Quantity::refused(Unit::CoreCycles);
        assert_eq!(combine_verdicts([(Slower, some), (Unclear, none)]), Slower);
        assert_eq!(combine_verdicts([(Unclear, none), (Slower, some)]), Slower);
        assert_eq!(combine_verdicts([(Slower, some), (Unclear, some)]), Unclear);
        assert_eq!(combine_verdicts([(Same, some), (Same, some)]), Same);
        let variant = |rank, cost| RankedVariant {
            name: None,
            snippet: String::new(),
            bytes: String::new(),
            init: String::new(),
            cost,
            difference: None,
            ratio: None,
            verdict: None,
            rank,
            counters: Vec::new(),
        };
        let ranks = |passes: [[Option<usize>; 2]; 2]| {
            let ranking = |ranks: [Option<usize>; 2]| {
                ranks.map(|rank| variant(rank, if rank.is_some() { some } else { none })).to_vec()
            };
            combine_rankings(passes.map(ranking)).iter().map(|variant| variant.rank).collect::<Vec<_>>()
        };
        assert_eq!(ranks([[Some(2), Some(1)], [None, Some(1)]]), [Some(2), Some(1)]);
        assert_eq!(ranks([[Some(1), None], [Some(2), Some(1)]]), [Some(2), Some(1)]);
        assert_eq!(ranks([[Some(1), Some(1)], [Some(2), Some(1)]]), [Some(1), Some(1)]);
        assert_eq!(ranks([[None, Some(1)], [Some(1), None]]), [Some(1), Some(1)]);
    }
}
