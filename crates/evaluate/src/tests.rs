//! Sampling and verdicts on simulated machines whose truth is known.

use super::TestedClock;
use super::ergodic::Ergodic;
use super::method::{Method, Samples};
use super::reader::Size;
use super::sampling::{Sampling, Span, Taken};
use cyclescope_code::clock::Clock;
use cyclescope_core::random::Random;
use cyclescope_exec::Executor;
use cyclescope_measure::ruler::Quiet;
use cyclescope_measure::study::Stop;
use cyclescope_sim::{Frequency, Gaps, Noise, Scenario, Sibling, Simulated};
use std::time::Duration;

const SIZE: Size = Size { ensembles: 24, samples: 10_001 };
/// Time enough.
const SPAN: Span = Span { from: Duration::ZERO, until: Duration::from_secs(86_400) };

fn tested(step: u64) -> TestedClock<'static> {
    let clock = Clock::named("lfence-rdtsc-lfence").unwrap();
    TestedClock {
        clock,
        executor: "user",
        ruler: clock,
        step: step as f64,
        imul_latency: 3.0,
        width: None,
        emulated: false,
    }
}

fn method(scenario: Scenario) -> Method<'static> {
    method_of(scenario, SIZE)
}

fn method_of(scenario: Scenario, size: Size) -> Method<'static> {
    let tested = tested(scenario.step);
    let mut machine = Simulated::new(scenario, 5);
    let shape = Sampling::new(&tested).shape(size, 80e-9);
    let samples = Samples { asked: size, shape, span: SPAN, earlier: Quiet::default() };
    let method =
        Method::measure(&mut machine, &tested, &samples, &mut Random::new(6), &mut |_: &Taken| Ok(()));
    method.expect("no fault is planted").expect("durations are sane")
}

/// What the pair takes on a machine that nothing disturbs.
fn truth() -> f64 {
    method(Scenario::default()).trimmed.unwrap().overhead
}

#[test]
fn nothing_disturbs_a_clean_machine() {
    let method = method(Scenario::default());
    let judged = (method.ergodic(), method.ergodic_trimmed());
    assert_eq!(judged, (Ergodic::Yes, Some(Ergodic::Yes)), "{:?} {:?}", method.totals, method.trimmed);
    assert!(method.chance().unwrap() < 0.1, "{:?}", method.chance());
    assert_eq!(method.totals.max_deviation, 1);
    let summary = method.trimmed.unwrap();
    let overhead = method.overhead.unwrap();
    assert!(overhead.contains(summary.overhead), "{overhead:?} {summary:?}");
    assert!(summary.dropped_share == 0.0 && summary.shared == 0);
    assert!((Scenario::default().overhead - summary.overhead).abs() < 15.0, "{summary:?}");
    let samples: u64 = method.sampled.ensembles.iter().map(|ensemble| ensemble.count).sum();
    assert_eq!(samples, SIZE.total());
    assert_eq!(method.sampled.histogram.len(), SIZE.total());
}

#[test]
fn the_machines_doing_is_not_the_methods() {
    let truth = truth();
    let with = |change: fn(&mut Scenario)| {
        let mut scenario = Scenario::default();
        change(&mut scenario);
        method(scenario)
    };
    let moved = with(|s| s.frequency = Frequency { jump_rate: 3e-8, ..Frequency::default() });
    let interrupted = with(|s| s.interrupts = Gaps { rate: 1e-6, ticks: 8000.0 });
    let stolen = with(|s| s.steal = Gaps { rate: 2.5e-8, ticks: 5e6 });
    let beside = with(|s| s.sibling = Some(Sibling { busy: 2e6, idle: 1e7, snippet: 0.3 }));
    for method in [moved, interrupted, stolen, beside] {
        let summary = method.trimmed.unwrap();
        assert_eq!(summary.ergodic, Ergodic::Yes, "{}", summary.why(1.0));
        assert!((summary.overhead / truth - 1.0).abs() < 0.01, "{} for {truth}", summary.overhead);
        assert!(summary.dropped_share < 0.3, "{summary:?}");
    }
    let interrupted = with(|s| s.interrupts = Gaps { rate: 1e-6, ticks: 8000.0 });
    assert_eq!(interrupted.ergodic(), Ergodic::No, "{}", interrupted.ergodic_why());
    assert!(interrupted.totals.max_deviation > 1000);
}

#[test]
fn a_coarse_step_is_seen_through() {
    let truth = truth();
    for step in [2, 26, 38, 100] {
        let method = method(Scenario { step, ..Scenario::default() });
        let summary = method.trimmed.unwrap();
        assert_eq!(summary.ergodic, Ergodic::Yes, "{step}: {}", summary.why(step as f64));
        assert!((summary.overhead - truth).abs() < 0.02 * summary.step_cycles, "{step}: {summary:?}");
        // Two readings each rounded down to steps: at most a quarter of a step² between them.
        assert!(summary.variance <= 0.26 * (step * step) as f64, "{step}: {summary:?}");
        assert_eq!(method.totals.max_deviation, step);
    }
}

#[test]
fn a_method_that_varies_of_itself_is_not_ergodic() {
    let noise = Noise::LogNormal { probability: 0.9, median: 3000.0, sigma: 1.0 };
    let method = method(Scenario { noise, ..Scenario::default() });
    assert_eq!((method.ergodic(), method.ergodic_trimmed()), (Ergodic::No, Some(Ergodic::No)));
    assert!(method.trimmed.unwrap().why(1.0).contains("says nothing"));
}

#[test]
fn half_of_the_samples_decide_nothing() {
    // Half of them take twice as long and more.
    let noise = Noise::LogNormal { probability: 0.5, median: 3000.0, sigma: 1.0 };
    let method = method(Scenario { noise, ..Scenario::default() });
    let summary = method.trimmed.unwrap();
    assert_eq!(summary.ergodic, Ergodic::DependsOnShare, "{summary:?}");
    let why = summary.why(1.0);
    assert!(why.contains("were dropped") && why.contains("remain") && why.contains("40 or 60 %"), "{why}");
}

#[test]
fn too_few_samples_are_not_compared_with_the_papers() {
    // Readings in steps of 26: their own variance of up to 169 differs by chance between so few.
    let size = Size { ensembles: 100, samples: 177 };
    let method = method_of(Scenario { step: 26, ..Scenario::default() }, size);
    assert_eq!(method.ergodic(), Ergodic::NotComparable, "{:?} {:?}", method.chance(), method.totals);
    assert!(method.ergodic_why().contains("100 ensembles of 177 samples"), "{}", method.ergodic_why());
    let chance = method.chance().unwrap();
    let seen = method.totals.variance_of_variances_exact.value();
    assert!(chance > 1.0 && (0.3..3.0).contains(&(seen / chance)), "{seen} for {chance}");
}

#[test]
fn whoever_takes_ensembles_may_end_it() {
    let tested = tested(1);
    let mut machine = Simulated::new(Scenario::default(), 9);
    let sampling = Sampling::new(&tested);
    let shape = sampling.shape(SIZE, 80e-9);
    let mut taken = 0;
    let mut take = |_: &Taken| {
        taken += 1;
        if taken == 3 { Err(Stop::Asked) } else { Ok(()) }
    };
    let mut between = |_: &mut dyn Executor, _: &mut Random| Ok(());
    let random = &mut Random::new(8);
    let sampled = sampling.run(&mut machine, shape, SPAN, random, &mut between, &mut take);
    assert!(matches!(sampled, Err(Stop::Asked)) && taken == 3);
}
