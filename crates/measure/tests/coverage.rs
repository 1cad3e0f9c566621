//! Checks that intervals contain the truth as often as they claim, on a simulated machine whose
//! truth is known.
//!
//! `CYCLESCOPE_COVERAGE_RUNS=10000` runs the full proof. The default is small enough for every test
//! run.

use cyclescope_code::clock::Clock;
use cyclescope_code::snippet::Snippet;
use cyclescope_core::machine::integer_adders::IntegerAdders;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::{CoverageVerdict, judge_coverage, median};
use cyclescope_measure::ruler::INSTRUMENT_CYCLES;
use cyclescope_measure::{Plan, Precision, measure_cost};
use cyclescope_sim::{Scenario, SimulatedExecutor};
use std::time::Duration;

/// The snippet. It never runs: the simulated machine has costs but no instructions.
const CODE: [u8; 2] = [0x0f, 0x0b];

fn runs() -> usize {
    std::env::var("CYCLESCOPE_COVERAGE_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

fn plan(step: u64, seed: u64) -> Plan {
    Plan {
        clock: Clock::find_named("lfence-rdtsc-lfence").unwrap(),
        step: step as f64,
        imul_latency: Some(3.0),
        adders: Some(IntegerAdders::with_usual_share(5)),
        rounds: 12,
        rounds_least: 12,
        layouts: 16,
        layouts_most: 64,
        precision: Precision { cycles: 0.01, share: 0.005, cap: None },
        budget: Duration::from_secs(3600),
        seed,
        ..Plan::simulated()
    }
}

/// Draws costs, steps and clock ratios anew for each run.
fn vary(scenario: &Scenario, random: &mut Random) -> Scenario {
    let cost = if random.happens(0.5) { 0.2 + 2.0 * random.uniform() } else { 1.0 + 30.0 * random.uniform() };
    let mut varied = Scenario { cost, ..scenario.clone() };
    if varied.ratio == Scenario::default().ratio {
        varied.ratio = 0.5 + 1.5 * random.uniform();
    }
    // An error that the estimate allows for, and adds to every interval, for each of two
    // differences.
    varied.ruler_boundary = INSTRUMENT_CYCLES * 2f64.sqrt() * random.normal();
    if varied.step == Scenario::default().step {
        varied.step = [1, 2, 26, 38, 100][random.below(5)];
    }
    varied
}

/// Confidence levels that are checked together, with the intervals of each computed from the same
/// samples.
const LEVELS: [f64; 4] = [0.50, 0.80, 0.95, 0.99];

struct Outcome {
    /// Intervals that contained the truth, by level.
    held: [usize; 4],
    given: usize,
    refused: usize,
    /// Median half width at 95 %, as a share of the truth.
    half_width: f64,
}

fn coverage(scenario: &Scenario, runs: usize) -> Outcome {
    let mut random = Random::new(42);
    let mut outcome = Outcome { held: [0; 4], given: 0, refused: 0, half_width: 0.0 };
    let snippet = Snippet::new(CODE.to_vec(), Vec::new(), "simulated");
    let mut widths = Vec::new();
    for run in 0..runs {
        let scenario = vary(scenario, &mut random);
        let truth = scenario.mean_cost_of(&CODE);
        let plan = plan(scenario.step, run as u64);
        let mut machine = SimulatedExecutor::new(scenario, random.next_bits());
        let result = measure_cost(&mut machine, &snippet, &plan).unwrap();
        let given = result.estimate.as_ref().filter(|estimate| result.linear && result.settled && !estimate.shared);
        let Some(given) = given else {
            outcome.refused += 1;
            continue;
        };
        outcome.given += 1;
        widths.push(given.cost.half_width() / truth);
        for (held, level) in outcome.held.iter_mut().zip(LEVELS) {
            let again = result.estimate_at(level).unwrap();
            *held += usize::from(again.cost.contains(truth));
        }
    }
    outcome.half_width = if widths.is_empty() { 0.0 } else { median(&mut widths) };
    outcome
}

/// Allowed range of a share of `trials`: the level plus or minus a tolerance (93 to 98 % at 95 %,
/// in standard deviations of one trial) and three and a half standard deviations of chance.
fn allowed(level: f64, trials: usize) -> std::ops::RangeInclusive<f64> {
    let one = (level * (1.0 - level)).sqrt();
    let chance = 3.5 * one / (trials as f64).sqrt();
    level - 0.092 * one - chance..=level + 0.138 * one + chance
}

/// Number of machines judged together. The runs of one machine are too few: chance moves their
/// shares as much as a wrong method would.
const GROUP: usize = 6;

#[derive(Default)]
struct Group {
    held: [usize; 4],
    given: usize,
}

impl Group {
    fn add(&mut self, held: [usize; 4], given: usize) {
        self.held.iter_mut().zip(held).for_each(|(all, held)| *all += held);
        self.given += given;
    }

    /// Level, share and verdict.
    fn judge(self) -> [(f64, f64, CoverageVerdict); 4] {
        [0, 1, 2, 3].map(|at| {
            let (level, held) = (LEVELS[at], self.held[at]);
            (level, held as f64 / self.given as f64, judge_coverage(level, held, self.given))
        })
    }
}

#[test]
fn intervals_contain_the_truth_as_often_as_claimed() {
    let runs = runs();
    let mut wrong = Vec::new();
    let mut group = Group::default();
    for (number, (name, scenario)) in Scenario::presets().into_iter().enumerate() {
        let Outcome { held, given, refused, half_width } = coverage(&scenario, runs);
        let shares = held.map(|held| held as f64 / given.max(1) as f64);
        let [half, four_fifths, most, nearly_all] = shares.map(|share| 100.0 * share);
        println!(
            "{name:16} held {half:5.1} {four_fifths:5.1} {most:5.1} {nearly_all:5.1} % of {given}, refused {refused}, \
             median half width {:.3} %",
            100.0 * half_width
        );
        let off = shares.iter().zip(LEVELS).any(|(share, level)| !allowed(level, given).contains(share));
        if off || refused * 5 > runs {
            wrong.push(name.to_string());
        }
        group.add(held, given);
        if (number + 1) % GROUP == 0 {
            let judged = std::mem::take(&mut group).judge();
            println!("{:16}      {judged:?}", "the last six");
            let right = |(_, _, judged): &(f64, f64, CoverageVerdict)| *judged == CoverageVerdict::Right;
            if !judged.iter().all(right) {
                wrong.push(format!("the six to {name}: {judged:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "coverage is off in {wrong:#?}");
}
