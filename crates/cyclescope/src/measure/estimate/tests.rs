//! Estimates from durations that are made up.

use super::*;
use crate::executor::Sample;
use crate::ruler::{LayoutSamples, sentinel_adds, sentinel_loops};

const SHAPE: Shape = Shape { loop_count: 1, imul_latency: 3.0, step: 1.0, width: Some(4.8), pooled: false };
const LOOPS: u64 = 30;
const COPIES: [usize; 3] = [100, 200, 400];
const OVERHEAD: f64 = 60.0;

/// Core cycles of each call of a round, for a snippet that takes `cost` cycles a copy.
fn cycles(cost: f64) -> [f64; call::COUNT] {
    let loops = LOOPS as f64;
    let [add_short, add_long] = crate::ruler::ADD_LINKS.map(|links| links as f64 * loops);
    let [imul_short, imul_long] = crate::ruler::IMUL_LINKS.map(|links| links as f64 * 3.0 * loops);
    let mut cycles = [OVERHEAD; call::COUNT];
    for (call, more) in [
        (call::ONE, COPIES[0] as f64 * cost),
        (call::TWO, COPIES[1] as f64 * cost),
        (call::FOUR, COPIES[2] as f64 * cost),
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

/// A layout whose rounds run at the given ticks a cycle; `disturb` changes a round's durations.
fn layout(cost: f64, rates: &[f64], disturb: impl Fn(usize, &mut [f64; call::COUNT])) -> LayoutData {
    let order: Vec<usize> = (0..call::COUNT).collect();
    let mut readings = Vec::new();
    for (round, rate) in rates.iter().enumerate() {
        let mut ticks = cycles(cost).map(|cycles| cycles * rate);
        disturb(round, &mut ticks);
        readings.extend(ticks.map(|ticks| Sample { start: 0, end: ticks.round() as u64 }));
    }
    LayoutData { copies: COPIES, ruler_loops: LOOPS, samples: LayoutSamples::new(&readings, &order) }
}

fn undisturbed(_: usize, _: &mut [f64; call::COUNT]) {}

fn cost_of(layouts: &[LayoutData]) -> f64 {
    estimate(layouts, &SHAPE, 0.95).unwrap().cost.value
}

#[test]
fn the_slope_over_the_ruler_is_the_cost() {
    let layouts: Vec<_> = [0.6, 0.7, 0.8].map(|rate| layout(3.07, &[rate; 8], undisturbed)).into();
    let estimate = estimate(&layouts, &SHAPE, 0.95).unwrap();
    assert!((estimate.cost.value - 3.07).abs() < 0.01, "{:?}", estimate.cost);
    assert!((estimate.add_link.value - 1.0).abs() < 0.01);
    assert!(estimate.bend.value.abs() < 0.02 && !estimate.shared && estimate.modes.is_empty());
    assert!((estimate.width[1] - 4.8).abs() < 0.1, "{:?}", estimate.width);
}

/// The clock alternates between two rates, and interrupts hit the longest body in rounds of one rate only.
/// If only the hit durations were dropped, slope and ruler would come from different rounds.
#[test]
fn a_disturbed_round_is_dropped_whole() {
    let rates: Vec<f64> = (0..16).map(|round| if round % 2 == 0 { 0.70 } else { 0.72 }).collect();
    let hit = |round: usize, ticks: &mut [f64; call::COUNT]| {
        if round % 4 == 1 {
            ticks[call::FOUR] += 50_000.0;
        }
    };
    let layouts: Vec<_> = (0..4).map(|_| layout(5.0, &rates, hit)).collect();
    let estimate = estimate(&layouts, &SHAPE, 0.95).unwrap();
    assert_eq!((estimate.kept, estimate.dropped), (48, 16));
    assert!((estimate.cost.value - 5.0).abs() < 0.005, "{:?}", estimate.cost);
}

#[test]
fn a_disturbed_ruler_does_not_win() {
    let hit = |round: usize, ticks: &mut [f64; call::COUNT]| {
        if round.is_multiple_of(5) {
            ticks[call::IMUL_SHORT] += 700.0;
        }
    };
    let layouts: Vec<_> = (0..4).map(|_| layout(5.0, &[0.7; 15], hit)).collect();
    assert!((cost_of(&layouts) - 5.0).abs() < 0.01);
}

/// A third of the samples take 300 cycles more, only with the snippet in them: a mispredicted branch, say.
#[test]
fn what_only_the_snippet_meets_is_part_of_its_cost() {
    let own = |round: usize, ticks: &mut [f64; call::COUNT]| {
        for (call, copies) in [(call::ONE, 1.0), (call::TWO, 2.0), (call::FOUR, 4.0)] {
            if round.is_multiple_of(3) {
                ticks[call] += 100.0 * copies * 0.7;
            }
        }
    };
    let layouts: Vec<_> = (0..4).map(|_| layout(5.0, &[0.7; 15], own)).collect();
    // A hundred cycles for each hundred copies, in one round of three.
    assert!((cost_of(&layouts) - 5.333).abs() < 0.02, "{}", cost_of(&layouts));
}

#[test]
fn clusters_of_layouts_are_modes() {
    let cost = |index: usize| if index.is_multiple_of(4) { 6.0 } else { 5.0 };
    let layouts: Vec<_> =
        (0..16).map(|index| layout(cost(index), &[0.7 + 0.001 * index as f64; 8], undisturbed)).collect();
    let estimate = estimate(&layouts, &SHAPE, 0.95).unwrap();
    assert_eq!(estimate.modes.len(), 2);
    assert!((estimate.cost.value - 5.0).abs() < 0.02 && estimate.modes[1].share == 0.25);
    let pooled = super::estimate(&layouts, &Shape { pooled: true, ..SHAPE }, 0.95).unwrap();
    assert!((pooled.cost.value - 5.25).abs() < 0.02 && pooled.modes.is_empty());
}

#[test]
fn layouts_beside_a_busy_sibling_are_left_out() {
    let beside = |_: usize, ticks: &mut [f64; call::COUNT]| {
        for call in [call::ONE, call::TWO, call::FOUR] {
            ticks[call] *= 1.3;
        }
        ticks[call::SENTINEL] *= 1.6;
    };
    let mut layouts: Vec<_> = (0..8).map(|_| layout(5.0, &[0.7; 8], undisturbed)).collect();
    layouts.extend((0..4).map(|_| layout(5.0, &[0.7; 8], beside)));
    let alone = estimate(&layouts, &SHAPE, 0.95).unwrap();
    assert!(!alone.shared && (alone.cost.value - 5.0).abs() < 0.02, "{:?}", alone.cost);
    let shared = estimate(&layouts[8..], &SHAPE, 0.95).unwrap();
    assert!(shared.shared);
}

/// In one layout something hits the short ruler in nearly every round, and its median with it.
#[test]
fn a_layout_with_a_broken_ruler_is_left_out() {
    let hit = |round: usize, ticks: &mut [f64; call::COUNT]| {
        if round != 3 {
            ticks[call::IMUL_SHORT] += 20_000.0;
        }
    };
    let mut layouts: Vec<_> = (0..6).map(|_| layout(5.0, &[0.7; 8], undisturbed)).collect();
    layouts.push(layout(5.0, &[0.7; 8], hit));
    let estimate = estimate(&layouts, &SHAPE, 0.95).unwrap();
    assert_eq!(estimate.layouts.len(), 6);
    assert_eq!(estimate.dropped, 8);
    assert!((estimate.cost.value - 5.0).abs() < 0.02, "{:?}", estimate.cost);
}

#[test]
fn one_layout_is_no_estimate() {
    assert!(estimate(&[layout(5.0, &[0.7; 8], undisturbed)], &SHAPE, 0.95).is_none());
    assert!(estimate(&[], &SHAPE, 0.95).is_none());
}
