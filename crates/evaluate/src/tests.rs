//! Sampling and verdicts on simulated machines with known parameters.

use super::TestedClock;
use super::ensemble_reader::SamplingSize;
use super::ergodic_verdict::ErgodicVerdict;
use super::sampled_method::{SampledMethod, SamplingRequest};
use super::sampling::{CompletedEnsemble, PairSampler, SamplingSpan};
use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock::Clock;
use cyclescope_core::random::Random;
use cyclescope_exec::Executor;
use cyclescope_measure::ruler::UnsharedWidth;
use cyclescope_measure::study::StopReason;
use cyclescope_sim::{
    Scenario, SimulatedExecutor, SimulatedFrequency, SimulatedGaps, SimulatedNoise, SimulatedSibling,
};
use std::time::Duration;

const SIZE: SamplingSize = SamplingSize { ensembles: 24, samples: 10_001 };
/// More time than a test needs.
const SPAN: SamplingSpan = SamplingSpan { from: Duration::ZERO, until: Duration::from_secs(86_400) };

fn tested(step: u64) -> TestedClock<'static> {
    let clock = Clock::find_named("lfence-rdtsc-lfence").unwrap();
    TestedClock {
        clock,
        executor: "user",
        mode: CodeMode::default(),
        ruler: clock,
        step: step as f64,
        imul_latency: 3.0,
        width: None,
        emulated: false,
    }
}

fn method(scenario: Scenario) -> SampledMethod<'static> {
    method_of(scenario, SIZE)
}

fn method_of(scenario: Scenario, size: SamplingSize) -> SampledMethod<'static> {
    let tested = tested(scenario.step);
    let mut machine = SimulatedExecutor::new(scenario, 5);
    let shape = PairSampler::new(&tested).sampling_shape(size, 80e-9);
    let samples = SamplingRequest { asked: size, shape, span: SPAN, earlier: UnsharedWidth::default() };
    let method =
        SampledMethod::measure(&mut machine, &tested, &samples, &mut Random::new(6), &mut |_: &CompletedEnsemble| {
            Ok(())
        });
    method.expect("no fault is simulated").expect("durations are valid")
}

/// Cost of the pair on a machine without disturbances.
fn truth() -> f64 {
    method(Scenario::default()).trimmed.unwrap().overhead
}

#[test]
fn a_quiet_machine_is_ergodic_by_both_criteria() {
    let method = method(Scenario::default());
    let judged = (method.judge_ergodicity(), method.trimmed_ergodicity());
    assert_eq!(judged, (ErgodicVerdict::Yes, Some(ErgodicVerdict::Yes)), "{:?} {:?}", method.totals, method.trimmed);
    assert!(method.chance_variance().unwrap() < 0.1, "{:?}", method.chance_variance());
    assert_eq!(method.totals.max_deviation, 1);
    let summary = method.trimmed.unwrap();
    let overhead = method.overhead.unwrap();
    assert!(overhead.contains(summary.overhead), "{overhead:?} {summary:?}");
    assert!(summary.dropped_share == 0.0 && summary.shared == 0);
    assert!((Scenario::default().overhead - summary.overhead).abs() < 15.0, "{summary:?}");
    let samples: u64 = method.sampled.ensembles.iter().map(|ensemble| ensemble.count).sum();
    assert_eq!(samples, SIZE.total_samples());
    assert_eq!(method.sampled.histogram.len(), SIZE.total_samples());
}

#[test]
fn interrupts_and_frequency_do_not_count_against_the_method() {
    let truth = truth();
    let with = |change: fn(&mut Scenario)| {
        let mut scenario = Scenario::default();
        change(&mut scenario);
        method(scenario)
    };
    let moved = with(|s| s.frequency = SimulatedFrequency { jump_rate: 3e-8, ..SimulatedFrequency::default() });
    let interrupted = with(|s| s.interrupts = SimulatedGaps { rate: 1e-6, ticks: 8000.0 });
    let stolen = with(|s| s.steal = SimulatedGaps { rate: 2.5e-8, ticks: 5e6 });
    let shared = with(|s| s.sibling = Some(SimulatedSibling { busy: 2e6, idle: 1e7, snippet: 0.3 }));
    for method in [moved, interrupted, stolen, shared] {
        let summary = method.trimmed.unwrap();
        assert_eq!(summary.ergodic, ErgodicVerdict::Yes, "{}", summary.explain_verdict(1.0));
        assert!((summary.overhead / truth - 1.0).abs() < 0.01, "{} for {truth}", summary.overhead);
        assert!(summary.dropped_share < 0.3, "{summary:?}");
    }
    let interrupted = with(|s| s.interrupts = SimulatedGaps { rate: 1e-6, ticks: 8000.0 });
    assert_eq!(interrupted.judge_ergodicity(), ErgodicVerdict::No, "{}", interrupted.explain_ergodicity());
    assert!(interrupted.totals.max_deviation > 1000);
}

#[test]
fn the_overhead_resolves_less_than_a_coarse_step() {
    let truth = truth();
    for step in [2, 26, 38, 100] {
        let method = method(Scenario { step, ..Scenario::default() });
        let summary = method.trimmed.unwrap();
        assert_eq!(summary.ergodic, ErgodicVerdict::Yes, "{step}: {}", summary.explain_verdict(step as f64));
        assert!((summary.overhead - truth).abs() < 0.02 * summary.step_cycles, "{step}: {summary:?}");
        // Two readings rounded down to steps have a variance of at most a quarter of a step².
        assert!(summary.variance <= 0.26 * (step * step) as f64, "{step}: {summary:?}");
        assert_eq!(method.totals.max_deviation, step);
    }
}

#[test]
fn a_noisy_method_is_not_ergodic() {
    let noise = SimulatedNoise::LogNormal { probability: 0.9, median: 3000.0, sigma: 1.0 };
    let method = method(Scenario { noise, ..Scenario::default() });
    assert_eq!(
        (method.judge_ergodicity(), method.trimmed_ergodicity()),
        (ErgodicVerdict::No, Some(ErgodicVerdict::No))
    );
    assert!(method.trimmed.unwrap().explain_verdict(1.0).contains("too few for a verdict"));
}

#[test]
fn keeping_half_of_the_samples_depends_on_the_share() {
    // Half of the samples take at least twice as long.
    let noise = SimulatedNoise::LogNormal { probability: 0.5, median: 3000.0, sigma: 1.0 };
    let method = method(Scenario { noise, ..Scenario::default() });
    let summary = method.trimmed.unwrap();
    assert_eq!(summary.ergodic, ErgodicVerdict::DependsOnShare, "{summary:?}");
    let why = summary.explain_verdict(1.0);
    assert!(why.contains("were dropped") && why.contains("remain") && why.contains("40 or 60 %"), "{why}");
}

#[test]
fn too_few_samples_are_not_compared_with_the_papers() {
    // Readings in steps of 26 have a variance of up to 169. With this few it differs by chance.
    let size = SamplingSize { ensembles: 100, samples: 177 };
    let method = method_of(Scenario { step: 26, ..Scenario::default() }, size);
    assert_eq!(
        method.judge_ergodicity(),
        ErgodicVerdict::NotComparable,
        "{:?} {:?}",
        method.chance_variance(),
        method.totals
    );
    assert!(method.explain_ergodicity().contains("100 ensembles of 177 samples"), "{}", method.explain_ergodicity());
    let chance = method.chance_variance().unwrap();
    let seen = method.totals.variance_of_variances_exact.to_f64();
    assert!(chance > 1.0 && (0.3..3.0).contains(&(seen / chance)), "{seen} for {chance}");
}

#[test]
fn a_follower_can_stop_the_sampling() {
    let tested = tested(1);
    let mut machine = SimulatedExecutor::new(Scenario::default(), 9);
    let sampling = PairSampler::new(&tested);
    let shape = sampling.sampling_shape(SIZE, 80e-9);
    let mut taken = 0;
    let mut take = |_: &CompletedEnsemble| {
        taken += 1;
        if taken == 3 { Err(StopReason::Requested) } else { Ok(()) }
    };
    let mut between = |_: &mut dyn Executor, _: &mut Random| Ok(());
    let random = &mut Random::new(8);
    let sampled = sampling.take_ensembles(&mut machine, shape, SPAN, random, &mut between, &mut take);
    assert!(matches!(sampled, Err(StopReason::Requested)) && taken == 3);
}
