//! Estimates from simulated durations.

use super::*;
use crate::ruler::LeastWidth;
use crate::ruler::{LayoutSamples, sentinel_adds, sentinel_loops};
use cyclescope_exec::Sample;

const SHAPE: RoundShape = RoundShape {
    loop_count: 1,
    imul_latency: 3.0,
    step: 1.0,
    width: Some(LeastWidth { least: 3.36 }),
    pooled: None,
    trained: false,
    between: 0.0,
    between_cycles: 0.0,
};
const LOOPS: u64 = 30;
const COPIES: [usize; 3] = [100, 200, 400];
const OVERHEAD: f64 = 60.0;
const COUNT: usize = call::calls_per_round(1);
const ONE: usize = call::snippet_calls(0)[0];
const TWO: usize = call::snippet_calls(0)[1];
const FOUR: usize = call::snippet_calls(0)[2];

/// Core cycles of each call of a round, for a snippet that costs `cost` cycles per copy.
fn cycles(cost: f64) -> [f64; COUNT] {
    let loops = LOOPS as f64;
    let [add_short, add_long] = crate::ruler::ADD_LINKS.map(|links| links as f64 * loops);
    let [imul_short, imul_long] = cyclescope_code::program::chains::IMUL_LINKS.map(|links| links as f64 * 3.0 * loops);
    let mut cycles = [OVERHEAD; COUNT];
    for (call, more) in [
        (ONE, COPIES[0] as f64 * cost),
        (TWO, COPIES[1] as f64 * cost),
        (FOUR, COPIES[2] as f64 * cost),
        (call::IMUL_SHORT, imul_short),
        (call::IMUL_LONG, imul_long),
        (call::ADD_SHORT, add_short),
        (call::ADD_LONG, add_long),
        (call::SENTINEL, sentinel_adds(sentinel_loops(SHAPE.step)) / 4.8),
    ] {
        cycles[call] += more;
    }
    cycles
}

/// A layout whose rounds run at the given ticks per cycle; `disturb` changes a round's durations.
fn layout(cost: f64, rates: &[f64], disturb: impl Fn(usize, &mut [f64; COUNT])) -> LayoutData {
    let order: Vec<usize> = (0..COUNT).collect();
    let mut readings = Vec::new();
    for (round, rate) in rates.iter().enumerate() {
        let mut ticks = cycles(cost).map(|cycles| cycles * rate);
        disturb(round, &mut ticks);
        readings.extend(ticks.map(|ticks| Sample { start: 0, end: ticks.round() as u64 }));
    }
    LayoutData {
        replicate: 0,
        copies: vec![COPIES],
        ruler_loops: LOOPS,
        samples: LayoutSamples::new(&readings, &order),
    }
}

fn undisturbed(_: usize, _: &mut [f64; COUNT]) {}

fn estimate_of(layouts: &[LayoutData]) -> Option<CostEstimate> {
    estimate_in(layouts, &SHAPE)
}

/// Each layout is a replicate.
fn estimate_in(layouts: &[LayoutData], shape: &RoundShape) -> Option<CostEstimate> {
    let numbered = |(replicate, layout): (usize, &LayoutData)| LayoutData { replicate, ..layout.clone() };
    let layouts: Vec<LayoutData> = layouts.iter().enumerate().map(numbered).collect();
    estimate_cost(&layouts, shape, &CostFormula::new([(0, 1.0)]), 0.95)
}

fn cost_of(layouts: &[LayoutData]) -> f64 {
    estimate_of(layouts).unwrap().cost.value
}

#[test]
fn the_slope_over_the_ruler_is_the_cost() {
    let layouts: Vec<_> = [0.6, 0.7, 0.8].map(|rate| layout(3.07, &[rate; 8], undisturbed)).into();
    let estimate = estimate_of(&layouts).unwrap();
    assert!((estimate.cost.value - 3.07).abs() < 0.01, "{:?}", estimate.cost);
    assert!((estimate.add_link.value - 1.0).abs() < 0.01);
    assert!(estimate.bend.value.abs() < 0.02 && !estimate.shared && estimate.modes.is_empty());
    assert!((estimate.width[1] - 4.8).abs() < 0.1, "{:?}", estimate.width);
}

/// The clock alternates between two rates. Interrupts hit the longest body in rounds of one rate
/// only. If only the hit durations were dropped, slope and ruler would come from different rounds.
#[test]
fn a_disturbed_round_is_dropped_whole() {
    let rates: Vec<f64> = (0..16).map(|round| if round % 2 == 0 { 0.70 } else { 0.72 }).collect();
    let hit = |round: usize, ticks: &mut [f64; COUNT]| {
        if round % 4 == 1 {
            ticks[FOUR] += 50_000.0;
        }
    };
    let layouts: Vec<_> = (0..4).map(|_| layout(5.0, &rates, hit)).collect();
    let estimate = estimate_of(&layouts).unwrap();
    assert_eq!((estimate.kept, estimate.dropped), (48, 16));
    assert!((estimate.cost.value - 5.0).abs() < 0.005, "{:?}", estimate.cost);
}

#[test]
fn a_disturbed_ruler_does_not_change_the_cost() {
    let hit = |round: usize, ticks: &mut [f64; COUNT]| {
        if round.is_multiple_of(5) {
            ticks[call::IMUL_SHORT] += 700.0;
        }
    };
    let layouts: Vec<_> = (0..4).map(|_| layout(5.0, &[0.7; 15], hit)).collect();
    assert!((cost_of(&layouts) - 5.0).abs() < 0.01);
}

/// A third of the samples take 300 cycles more, in the snippet's calls only, such as a mispredicted
/// branch.
#[test]
fn events_of_the_snippet_alone_are_part_of_its_cost() {
    let own = |round: usize, ticks: &mut [f64; COUNT]| {
        for (call, copies) in [(ONE, 1.0), (TWO, 2.0), (FOUR, 4.0)] {
            if round.is_multiple_of(3) {
                ticks[call] += 100.0 * copies * 0.7;
            }
        }
    };
    let layouts: Vec<_> = (0..4).map(|_| layout(5.0, &[0.7; 15], own)).collect();
    // A hundred cycles per hundred copies, in one round of three.
    assert!((cost_of(&layouts) - 5.333).abs() < 0.02, "{}", cost_of(&layouts));
}

#[test]
fn clusters_of_layouts_are_modes() {
    let cost = |index: usize| if index.is_multiple_of(8) { 6.0 } else { 5.0 };
    let layouts: Vec<_> =
        (0..32).map(|index| layout(cost(index), &[0.7 + 0.0005 * index as f64; 8], undisturbed)).collect();
    let estimate = estimate_of(&layouts).unwrap();
    assert_eq!(estimate.modes.len(), 2);
    assert!((estimate.cost.value - 5.0).abs() < 0.02 && estimate.modes[1].share == 0.125);
    // Clusters with at least a quarter of the layouts, with a tenth, and all.
    for (share, cost) in [(0.25, 5.0), (0.1, 5.125), (0.0, 5.125)] {
        let pooled = estimate_in(&layouts, &RoundShape { pooled: Some(share), ..SHAPE }).unwrap();
        assert!((pooled.cost.value - cost).abs() < 0.02 && pooled.modes.len() == 2, "{share}");
    }
}

#[test]
fn layouts_with_a_busy_sibling_are_left_out() {
    let with_busy_sibling = |_: usize, ticks: &mut [f64; COUNT]| {
        for call in [ONE, TWO, FOUR] {
            ticks[call] *= 1.3;
        }
        ticks[call::SENTINEL] *= 1.6;
    };
    let mut layouts: Vec<_> = (0..8).map(|_| layout(5.0, &[0.7; 8], undisturbed)).collect();
    layouts.extend((0..4).map(|_| layout(5.0, &[0.7; 8], with_busy_sibling)));
    let alone = estimate_of(&layouts).unwrap();
    assert!(!alone.shared && (alone.cost.value - 5.0).abs() < 0.02, "{:?}", alone.cost);
    let shared = estimate_of(&layouts[8..]).unwrap();
    assert!(shared.shared);
}

/// In one layout nearly every round of the short ruler is disturbed, and so is its median.
#[test]
fn a_layout_with_a_broken_ruler_is_left_out() {
    let hit = |round: usize, ticks: &mut [f64; COUNT]| {
        if round != 3 {
            ticks[call::IMUL_SHORT] += 20_000.0;
        }
    };
    let mut layouts: Vec<_> = (0..6).map(|_| layout(5.0, &[0.7; 8], undisturbed)).collect();
    layouts.push(layout(5.0, &[0.7; 8], hit));
    let estimate = estimate_of(&layouts).unwrap();
    assert_eq!(estimate.layouts.len(), 6);
    assert_eq!(estimate.dropped, 8);
    assert!((estimate.cost.value - 5.0).abs() < 0.02, "{:?}", estimate.cost);
}

#[test]
fn one_layout_gives_no_estimate() {
    assert!(estimate_of(&[layout(5.0, &[0.7; 8], undisturbed)]).is_none());
    assert!(estimate_of(&[]).is_none());
}

/// If two modes have equally many layouts, another measurement may find the other one larger.
#[test]
fn equal_modes_are_averaged() {
    let cost = |index: usize| if index.is_multiple_of(2) { 12.5 } else { 17.5 };
    let layouts: Vec<_> = (0..16).map(|index| layout(cost(index), &[0.7; 8], undisturbed)).collect();
    let estimate = estimate_of(&layouts).unwrap();
    assert_eq!(estimate.modes.len(), 2);
    assert!((estimate.cost.value - 15.0).abs() < 0.05 && estimate.cost.half_width() > 1.0, "{:?}", estimate.cost);
}

#[test]
fn the_interval_covers_a_lack_of_fit() {
    let bent = |_: usize, ticks: &mut [f64; COUNT]| ticks[FOUR] += 0.7 * 40.0;
    let straight: Vec<_> = (0..16).map(|_| layout(5.0, &[0.7; 8], undisturbed)).collect();
    let layouts: Vec<_> = (0..16).map(|_| layout(5.0, &[0.7; 8], bent)).collect();
    let [straight, bent] = [straight, layouts].map(|layouts| estimate_of(&layouts).unwrap());
    // 40 cycles more over 200 copies are 0.2 per copy; between u and 4u they are 40/300.
    assert!((bent.bend.value - 0.2).abs() < 0.01 && (bent.cost.value - 5.0 - 40.0 / 300.0).abs() < 0.01);
    assert!(bent.cost.contains(5.05) && bent.cost.contains(5.2), "{:?}", bent.cost);
    assert!(straight.cost.half_width() < 0.02, "{:?}", straight.cost);
}

/// Layouts of one replicate share addresses, and so share their effect on the cost.
#[test]
fn the_spread_of_replicates_sets_the_interval() {
    let own = |replicate: usize| 5.0 + 0.1 * (replicate as f64 - 3.5);
    let layouts: Vec<LayoutData> = (0..64)
        .map(|index| LayoutData { replicate: index % 8, ..layout(own(index % 8), &[0.7; 8], undisturbed) })
        .collect();
    let grouped = estimate_cost(&layouts, &SHAPE, &CostFormula::new([(0, 1.0)]), 0.95).unwrap();
    let alone = estimate_of(&layouts).unwrap();
    assert!(grouped.cost.half_width() > 2.5 * alone.cost.half_width(), "{grouped:?}");
}

/// The difference of two snippets in the same rounds is a cost like any other.
#[test]
fn a_cost_can_be_the_difference_of_two_snippets() {
    let both = |replicate: usize| {
        let one = layout(7.0, &[0.7; 8], undisturbed);
        let other = layout(2.5, &[0.7; 8], undisturbed);
        let readings: Vec<Sample> = (one.samples.rounds().zip(other.samples.rounds()))
            .flat_map(|(one, other)| one.iter().chain(&other[call::RULERS..]))
            .map(|duration| Sample { start: 0, end: *duration as u64 })
            .collect();
        let order: Vec<usize> = (0..call::calls_per_round(2)).collect();
        let samples = LayoutSamples::new(&readings, &order);
        LayoutData { replicate, copies: vec![COPIES; 2], ruler_loops: LOOPS, samples }
    };
    let layouts: Vec<LayoutData> = (0..4).map(both).collect();
    let cost = |weights: &[(usize, f64)]| {
        estimate_cost(&layouts, &SHAPE, &CostFormula::new(weights.to_vec()), 0.95).unwrap().cost.value
    };
    assert!((cost(&[(0, 1.0)]) - 7.0).abs() < 0.01 && (cost(&[(1, 1.0)]) - 2.5).abs() < 0.01);
    assert!((cost(&[(0, 1.0), (1, -1.0)]) - 4.5).abs() < 0.01);
}

/// A body is hit as often as its length explains, so the hits are not a property of the snippet.
#[test]
fn interrupts_do_not_count_as_events_of_a_long_snippet() {
    let mut random = cyclescope_core::random::Random::new(5);
    let rates = [0.7; 12];
    let hits: Vec<Vec<[f64; COUNT]>> = (0..32)
        .map(|_| {
            let hit_cost = |duration: f64, random: &mut cyclescope_core::random::Random| {
                if random.happens(duration / 20_000.0) { 3_000.0 } else { 0.0 }
            };
            rates.map(|rate| cycles(20.0).map(|cycles| hit_cost(cycles * rate, &mut random))).into()
        })
        .collect();
    let interrupted: Vec<LayoutData> = hits
        .iter()
        .map(|hits| {
            let hit = |round: usize, ticks: &mut [f64; COUNT]| {
                ticks.iter_mut().zip(&hits[round]).for_each(|(ticks, hit)| *ticks += hit);
            };
            layout(20.0, &rates, hit)
        })
        .collect();
    let estimate = estimate_of(&interrupted).unwrap();
    assert!(estimate.dropped > 100 && (estimate.cost.value - 20.0).abs() < 0.05, "{:?}", estimate.cost);
}

/// The interval contains the variation that a single measurement cannot see, for each snippet of a
/// difference.
#[test]
fn the_interval_covers_variation_between_measurements() {
    let layouts: Vec<_> = (0..16).map(|_| layout(5.0, &[0.7; 8], undisturbed)).collect();
    let half = |between: f64| estimate_in(&layouts, &RoundShape { between, ..SHAPE }).unwrap().cost.half_width();
    // 1 % of 5 cycles at 95 %.
    assert!((half(0.01).powi(2) - half(0.0).powi(2) - (1.96f64 * 0.05).powi(2)).abs() < 1e-4);
    // A tenth of a cycle.
    let cycles = RoundShape { between_cycles: 0.1, ..SHAPE };
    let more = estimate_in(&layouts, &cycles).unwrap().cost.half_width();
    assert!((more.powi(2) - half(0.0).powi(2) - (1.96f64 * 0.1).powi(2)).abs() < 1e-4);
}

/// Trained layouts learn more or less. All layouts of a measurement find predictors in the same
/// state.
#[test]
fn the_interval_of_trained_layouts_covers_half_their_deviation() {
    let cost = |number: usize| 5.0 + 0.1 * (number % 2) as f64;
    let layouts: Vec<_> = (0..16).map(|number| layout(cost(number), &[0.7; 8], undisturbed)).collect();
    let half = |trained| estimate_in(&layouts, &RoundShape { trained, ..SHAPE }).unwrap().cost.half_width();
    let deviation = 0.05 * (16f64 / 15.0).sqrt();
    assert!((half(true).powi(2) - half(false).powi(2) - (1.96 * 0.5 * deviation).powi(2)).abs() < 1e-4);
}
