//! Intervals must hold the truth as often as they say: on a simulated machine, whose truth is known.
//!
//! `CYCLESCOPE_COVERAGE_RUNS=10000` makes it the full proof; the default is small enough for every test run.

use cyclescope::clock::Clock;
use cyclescope::executor::mock::{Scenario, Simulated};
use cyclescope::measure::{Plan, Precision, measure};
use cyclescope::random::Random;
use cyclescope::snippet::Snippet;
use std::time::Duration;

const CONFIDENCE: f64 = 0.95;

/// Runs a scenario; `0x0f 0x0b` is never executed, the simulated machine knows costs and no instructions.
const CODE: [u8; 2] = [0x0f, 0x0b];

fn runs() -> usize {
    std::env::var("CYCLESCOPE_COVERAGE_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

fn plan(step: u64, confidence: f64, seed: u64) -> Plan {
    Plan {
        clock: Clock::named("lfence-rdtsc-lfence").unwrap(),
        step: step as f64,
        imul_latency: Some(3.0),
        adders: Some(5),
        avx: false,
        unit: None,
        loop_count: None,
        warm_up: None,
        rounds: 12,
        layouts: 16,
        layouts_most: 64,
        precision: Precision { cycles: 0.01, share: 0.005 },
        confidence,
        budget: Duration::from_secs(3600),
        seed,
        keep_evidence: false,
    }
}

/// Costs, steps and clock ratios are drawn anew for each run.
fn vary(scenario: &Scenario, random: &mut Random) -> Scenario {
    let cost = if random.happens(0.5) { 0.2 + 2.0 * random.unit() } else { 1.0 + 30.0 * random.unit() };
    let mut varied = Scenario { ratio: 0.5 + 1.5 * random.unit(), cost, ..scenario.clone() };
    if varied.step == Scenario::default().step {
        varied.step = [1, 2, 26, 38, 100][random.below(5)];
    }
    varied
}

struct Outcome {
    held: usize,
    refused: usize,
    half_width: f64,
}

fn coverage(scenario: &Scenario, confidence: f64, runs: usize) -> Outcome {
    let mut random = Random::new(42);
    let mut outcome = Outcome { held: 0, refused: 0, half_width: 0.0 };
    let snippet = Snippet::new(CODE.to_vec(), Vec::new(), "simulated");
    let mut widths = Vec::new();
    for run in 0..runs {
        let scenario = vary(scenario, &mut random);
        let truth = scenario.mean_cost_of(&CODE);
        let step = scenario.step;
        let mut machine = Simulated::new(scenario, random.bits());
        let result = measure(&mut machine, &snippet, &plan(step, confidence, run as u64)).unwrap();
        match result.estimate.filter(|estimate| result.linear && result.settled && !estimate.shared) {
            Some(estimate) => {
                outcome.held += usize::from(estimate.cost.contains(truth));
                widths.push(estimate.cost.half_width() / truth);
            }
            None => outcome.refused += 1,
        }
    }
    if !widths.is_empty() {
        outcome.half_width = cyclescope::statistics::median(&mut widths);
    }
    outcome
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let runs = runs();
    let mut wrong = Vec::new();
    for (name, scenario) in Scenario::presets() {
        let Outcome { held, refused, half_width } = coverage(&scenario, CONFIDENCE, runs);
        let given = runs - refused;
        let share = held as f64 / given.max(1) as f64;
        println!(
            "{name:16} {:3.0} %: {held} of {given} held ({:.1} %), {refused} refused, median half width {:.3} %",
            100.0 * CONFIDENCE,
            100.0 * share,
            100.0 * half_width
        );
        if !(0.90..=0.995).contains(&share) {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "coverage is off in {wrong:?}");
}
