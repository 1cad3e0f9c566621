//! Both experiments on simulated machines with known parameters.

use super::reading_ladder;
use super::staircase_experiment::{PassShare, StaircasePlan};
use super::staircase_points::ReadingSums;

use super::*;
use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock::Clock;
use cyclescope_core::statistics::{CoverageVerdict, judge_coverage, trials_needed};
use cyclescope_sim::{Scenario, SimulatedExecutor, SimulatedFrequency, SimulatedGaps, SimulatedSibling};

/// The observed steps of time stamp counters.
const STEPS: [u64; 5] = [1, 2, 26, 38, 42];

fn tested(scenario: &Scenario) -> TestedClock<'static> {
    let clock = Clock::find_named("lfence-rdtsc-lfence").unwrap();
    TestedClock {
        clock,
        executor: "user",
        mode: CodeMode::default(),
        ruler: clock,
        step: scenario.step as f64,
        imul_latency: 3.0,
        width: None,
        emulated: false,
    }
}

fn staircase_of(scenario: &Scenario, body: StaircaseBody, plan: &StaircasePlan, seed: u64) -> Staircase {
    let mut machine = SimulatedExecutor::new(scenario.clone(), seed);
    staircase::measure_staircase(&mut machine, &tested(scenario), body, plan, &mut Random::new(seed), None).unwrap()
}

/// Sixteen calls in each of six rounds, at every fifth length.
fn coarse() -> StaircasePlan {
    let share = PassShare { rounds: 6, calls: 16 };
    StaircasePlan {
        lengths: (0..200).map(|length| 5 * length).collect(),
        share,
        passes: 4,
        block: usize::MAX,
        until: None,
    }
}

fn samples_of(scenario: &Scenario, layouts: usize, seed: u64) -> Vec<ReadingLadder> {
    let mut machine = SimulatedExecutor::new(scenario.clone(), seed);
    let effort = reading_ladder::LadderEffort::Layouts(layouts);
    reading_ladder::measure_ladders(&mut machine, &tested(scenario), effort, &mut Random::new(seed)).unwrap()
}

#[test]
fn an_add_takes_one_cycle_whatever_the_step() {
    for step in STEPS {
        let scenario = Scenario { step, ..Scenario::default() };
        for seed in 0..5 {
            let found = staircase_of(&scenario, StaircaseBody::Adds, &coarse(), seed);
            let slope = found.slope.unwrap();
            let most = 0.001 + 0.0005 * step as f64;
            assert!(slope.contains(1.0) && slope.half_width() < most, "{step}: {slope:?}");
            assert_eq!((found.points.len(), found.lost, found.passes), (200, 0, 4));
            assert_eq!(found.readings, 4 * 6 * 16);
            assert!(found.dropped < 0.02 && !found.shared, "{step}: {}", found.dropped);
        }
    }
}

#[test]
fn lengths_are_spread_evenly() {
    assert_eq!(staircase_experiment::spread_lengths(4), [0, 333, 666, 999]);
    assert_eq!(staircase_experiment::spread_lengths(1000), (0..1000).collect::<Vec<_>>());
}

#[test]
fn an_iteration_takes_its_simulated_cycles() {
    let scenario = Scenario { cost: 2.35, ..Scenario::default() };
    let found = staircase_of(&scenario, StaircaseBody::Iterations, &coarse(), 1);
    let slope = found.slope.unwrap();
    assert!(slope.contains(2.35) && slope.half_width() < 0.01, "{slope:?}");
    assert!(found.hidden.unwrap().abs() < 0.5, "{:?}", found.hidden);
}

#[test]
fn enough_readings_resolve_one_add() {
    // The required number of readings grows with the square of the step.
    for (step, rounds, enough) in [(1, 6, true), (2, 6, true), (26, 600, true), (38, 1500, true), (38, 6, false)] {
        let scenario = Scenario { step, ..Scenario::default() };
        let share = PassShare { rounds, calls: 16 };
        let plan = StaircasePlan { lengths: (80..=120).collect(), share, passes: 3, block: usize::MAX, until: None };
        let found = staircase_of(&scenario, StaircaseBody::Adds, &plan, 2);
        let neighbours = found.neighbours.unwrap();
        assert_eq!(neighbours.resolved, enough, "{step}: {neighbours:?}");
        assert_eq!(neighbours.differences, 40);
        assert!(!enough || neighbours.told_apart >= 36, "{step}: {neighbours:?}");
        // The error from the passes is correct: these differences are one cycle each.
        let ratio = neighbours.scatter / neighbours.error;
        assert!((0.6..1.6).contains(&ratio), "{step}: {neighbours:?}");
    }
}

#[test]
fn hidden_code_is_reported_and_leaves_the_slope_unchanged() {
    let scenario = Scenario { slack: 40.0, ..Scenario::default() };
    let found = staircase_of(&scenario, StaircaseBody::Adds, &coarse(), 3);
    assert!((found.hidden.unwrap() - 40.0).abs() < 1.0, "{:?}", found.hidden);
    assert!(found.slope.unwrap().contains(1.0));
    let cycles = |point: &StaircasePoint| point.mean_cycles.unwrap();
    // The first eight lengths, 0 to 35, take as long as the pair of readings.
    assert!(found.points[..8].iter().all(|point| (cycles(point) - cycles(&found.points[0])).abs() < 1.0));
    assert_eq!(found.totals.first_changes.first(), Some(&45));
}

#[test]
fn interrupts_affect_only_the_papers_figures() {
    let interrupts = SimulatedGaps { rate: 2e-6, ticks: 8000.0 };
    let scenario = Scenario { step: 2, interrupts, ..Scenario::default() };
    let found = staircase_of(&scenario, StaircaseBody::Adds, &coarse(), 4);
    assert!(found.totals.maximum_deviation > 4000 && found.totals.total_variance > 1000, "{:?}", found.totals);
    assert!((0.001..0.1).contains(&found.dropped), "{}", found.dropped);
    assert!(found.slope.unwrap().contains(1.0) && found.neighbours.unwrap().error < 0.5);
}

#[test]
fn a_changing_frequency_makes_spurious_minima_only_in_ticks() {
    let frequency = SimulatedFrequency { jump_rate: 1e-6, ..SimulatedFrequency::default() };
    let scenario = Scenario { step: 2, frequency, ..Scenario::default() };
    let found = staircase_of(&scenario, StaircaseBody::Adds, &coarse(), 5);
    assert!(found.totals.spurious_minima > 20, "{:?}", found.totals);
    assert!(
        found.spurious_minima_cycles.unwrap() < found.totals.spurious_minima / 2,
        "{}",
        found.spurious_minima_cycles.unwrap()
    );
    assert!(found.slope.unwrap().contains(1.0), "{:?}", found.slope);
    let none = staircase_of(&Scenario { step: 2, ..Scenario::default() }, StaircaseBody::Adds, &coarse(), 5);
    assert_eq!(none.totals.spurious_minima, 0);
}

#[test]
fn layouts_with_a_busy_sibling_are_excluded() {
    let sibling = Some(SimulatedSibling { busy: 2e6, idle: 4e6, snippet: 0.3 });
    let scenario = Scenario { step: 2, sibling, ..Scenario::default() };
    let found = staircase_of(&scenario, StaircaseBody::Adds, &coarse(), 6);
    assert!((0.1..0.6).contains(&found.dropped) && !found.shared, "{}", found.dropped);
    // With a busy sibling an addition takes 0.6 % longer than by the ruler.
    assert!((found.slope.unwrap().value - 1.0).abs() < 0.001, "{:?}", found.slope);
    let always = Scenario { sibling: Some(SimulatedSibling { busy: 1e12, idle: 1.0, snippet: 0.3 }), ..scenario };
    let found = staircase_of(&always, StaircaseBody::Adds, &coarse(), 6);
    assert!(found.dropped < 0.01, "{}", found.dropped);
}

#[test]
fn many_readings_resolve_less_than_the_step() {
    for step in [2, 26, 38] {
        let scenario = Scenario { step, ..Scenario::default() };
        let [short, long] = <[ReadingLadder; 2]>::try_from(samples_of(&scenario, 4000, 5)).unwrap();
        for found in [&short, &long] {
            let difference = found.difference.unwrap();
            assert!((difference.value - 1.0).abs() < 0.3 && difference.half_width() < 0.3, "{step}: {found:?}");
            let last = found.rungs.last().unwrap();
            assert_eq!((last.readings, found.one_cycle_from.is_some()), (10_000, true), "{found:?}");
            assert!(last.interleaved < 1.0 && last.right > 0.9, "{step}: {last:?}");
        }
        // A duration of n steps and a share f of one is read as n or, with probability f, n + 1
        // steps.
        let variance = |adds: u32| {
            let cycles = scenario.overhead + scenario.boundary + f64::from(adds);
            let share = (cycles / scenario.ratio / step as f64).fract();
            share * (1.0 - share) * (step as f64 * scenario.ratio).powi(2)
        };
        let predicted = 1.96 * short.adds.map(variance).iter().sum::<f64>().sqrt();
        let one = short.rungs[0];
        assert!((one.interleaved / predicted - 1.0).abs() < 0.05, "{step}: {one:?}, not {predicted}");
        assert_eq!((one.readings, one.groups), (1, short.readings));
        assert_eq!(short.floor_interleaved, None, "{short:?}");
    }
}

#[test]
fn intervals_contain_the_difference_at_their_confidence() {
    // Each seed gives two intervals.
    let seeds = trials_needed(CONFIDENCE).div_ceil(2) as u64;
    for step in [2, 38] {
        let scenario = Scenario { step, ..Scenario::default() };
        let found: Vec<_> = (0..seeds).flat_map(|seed| samples_of(&scenario, 200, seed)).collect();
        let holds = found.iter().filter(|pair| pair.difference.is_some_and(|value| value.contains(1.0))).count();
        let judged = judge_coverage(CONFIDENCE, holds, found.len());
        assert_eq!(judged, CoverageVerdict::Right, "{step}: {holds} of {}", found.len());
    }
}

#[test]
fn without_a_ruler_a_changing_frequency_sets_a_floor() {
    let frequency = SimulatedFrequency { jump_rate: 3e-7, ..SimulatedFrequency::default() };
    let scenario = Scenario { step: 2, frequency, ..Scenario::default() };
    let long = &samples_of(&scenario, 2000, 5)[1];
    assert!(long.floor_unruled.is_some_and(|readings| readings <= 30), "{long:?}");
    assert_eq!(long.floor_interleaved, None, "{long:?}");
    let last = long.rungs.last().unwrap();
    assert!(last.unruled > 10.0 * last.apart, "{last:?}");
}

#[test]
fn a_result_has_no_null_numbers_in_json() {
    let scenario = Scenario::default();
    let time = Duration::from_millis(30);
    let mut machine = SimulatedExecutor::new(scenario.clone(), 7);
    let effort = super::ResolutionEffort { time, readings: None };
    let found = measure_resolution(&mut machine, &tested(&scenario), effort, &mut Random::new(8), &mut |_| Ok(()));
    let found = found.unwrap();
    assert!(found.staircase(StaircaseBody::Adds).is_some_and(|staircase| staircase.points.len() >= 4));
    let value = serde_json::to_value(&found).unwrap();
    assert_eq!((&value["unit"], &value["ruler_clock"]), (&"tsc_ticks".into(), &value["clock"]));
    assert_eq!(value["staircases"][0]["body"], "iterations");
    let point = &value["staircases"][1]["points"][1];
    assert!(point["minimum"].is_u64() && point["mean_cycles"].is_f64(), "{point}");
    assert!(value["by_samples"][0]["rungs"][0]["interleaved"].is_f64());
}

/// The figures of the paper's program for some readings.
fn ensemble(readings: &[u64]) -> Option<LengthEnsemble> {
    readings.iter().copied().collect::<ReadingSums>().collect_ensemble()
}

#[test]
fn blocks_of_passes_give_the_same_figures() {
    let scenario = Scenario { step: 26, ..Scenario::default() };
    let whole = staircase_of(&scenario, StaircaseBody::Adds, &coarse(), 9);
    let blocks = staircase_of(&scenario, StaircaseBody::Adds, &StaircasePlan { block: 2, ..coarse() }, 9);
    assert_eq!((blocks.passes, blocks.readings, blocks.points.len()), (4, 4 * 6 * 16, 200));
    // The same readings in the same order: the paper's figures do not depend on blocks.
    assert_eq!(blocks.totals, whole.totals);
    let raw = |stairs: &Staircase| stairs.points.iter().map(|point| point.raw).collect::<Vec<_>>();
    assert_eq!(raw(&blocks), raw(&whole));
    assert!(blocks.slope.unwrap().contains(1.0), "{:?}", blocks.slope);
}

#[test]
fn a_requested_number_of_readings_ignores_the_time() {
    let scenario = Scenario::default();
    let mut machine = SimulatedExecutor::new(scenario.clone(), 7);
    let effort = super::ResolutionEffort { time: Duration::from_millis(1), readings: Some(100) };
    let mut remaining = Vec::new();
    let mut follower = |climbed: &StaircaseProgress| {
        remaining.push(climbed.left);
        Ok(())
    };
    let found =
        measure_resolution(&mut machine, &tested(&scenario), effort, &mut Random::new(8), &mut follower).unwrap();
    for stairs in &found.staircases {
        assert!((100..200).contains(&stairs.readings) && stairs.points.len() == 1000, "{}", stairs.readings);
        assert!(stairs.points.iter().all(|point| point.raw.readings == stairs.readings));
    }
    assert_eq!(remaining.len(), 2 * found.staircases[0].passes);
    assert_eq!(remaining.last(), Some(&Duration::ZERO));
}

#[test]
fn floored_figures_match_hand_computed_values() {
    // Computed by hand: 2, 4, 4, 4, 5, 5, 7, 9 has mean 5 and squared distances 32.
    let found = ensemble(&[2, 4, 4, 4, 5, 5, 7, 9]).unwrap();
    assert_eq!((found.minimum, found.maximum_deviation), (2, 7));
    assert_eq!((found.variance_floored, found.variance), (4, 4.0));
    let half = ensemble(&[10, 11]).unwrap();
    assert_eq!((half.variance_floored, half.variance), (0, 0.25));
    // The paper's program overflows here.
    assert_eq!(ensemble(&[u64::MAX - 2, u64::MAX]).unwrap().variance, 1.0);
    assert_eq!(ensemble(&[]), None);
}

#[test]
fn totals_match_hand_computed_values() {
    let point = |length: u32, minimum: u64, variance_floored: u64, maximum_deviation: u64| StaircasePoint {
        length,
        raw: LengthEnsemble { readings: 9, minimum, maximum_deviation, variance_floored, variance: 0.0 },
        mean_cycles: Some(0.0),
        minimum_cycles: Some(0.0),
        kept: 9,
    };
    let points = [point(0, 44, 3, 16), point(1, 44, 4, 48), point(2, 48, 3, 4), point(3, 46, 0, 4)];
    let totals = StaircaseTotals::from_points(&points);
    assert_eq!(totals.spurious_minima, 1);
    assert_eq!((totals.total_variance, totals.maximum_deviation), (2, 48));
    // 3, 4, 3, 0: 34/4 − 2.5² = 2.25; 44, 44, 48, 46: 2.75.
    assert_eq!((totals.variance_of_variances, totals.variance_of_minima), (2, 2));
    assert_eq!((totals.smallest_change, totals.changes), (Some(2), 2));
    assert_eq!((totals.first_changes, totals.length_per_change), (vec![2, 3], Some(1.5)));
    let still = StaircaseTotals::from_points(&points[..2]);
    assert_eq!((still.smallest_change, still.length_per_change), (None, None));
}
