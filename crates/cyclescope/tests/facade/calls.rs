//! Calls of a function, overlapping and not, on simulated machines with known costs.

use cyclescope::executor::Executor;
use cyclescope::machine::Machine;
use cyclescope::measure::{LengthenBy, Plan, Precision};
use cyclescope::record::{Quantity, RunRecord, SerializedBy};
use cyclescope::result::answers::MachineAnswers;
use cyclescope::snippet::Snippet;
use cyclescope::study::Study;
use cyclescope::study::run::{RunStudy, RunSubject};
use cyclescope_core::machine::integer_adders::IntegerAdders;
use cyclescope_sim::{Scenario, SimulatedExecutor, SimulatedLayoutEffects};
use std::time::Duration;

const PRECISION: Precision = Precision { cycles: 1.0, share: 0.02, cap: None };
/// Codes of the calls, in the order of the costs below. They never execute.
const CODE: [[u8; 2]; 4] = [[0x0f, 0x0b], [0x0f, 0xb9], [0x0f, 0xff], [0x0f, 0x04]];

/// A call and an empty one with these codes.
fn subject([function, empty]: [[u8; 2]; 2]) -> RunSubject {
    let call = |code: [u8; 2]| vec![Snippet::new(code.to_vec(), Vec::new(), "simulated")];
    RunSubject { instances: call(function), empty_calls: call(empty) }
}

/// A study with simulated costs of a call and an empty one: `overlapping` if calls overlap,
/// `waiting` if each waits.
fn study(overlapping: [f64; 2], waiting: [f64; 2]) -> RunStudy {
    study_of(&subject([CODE[0], CODE[1]]), overlapping, waiting)
}

fn study_of(subject: &RunSubject, overlapping: [f64; 2], waiting: [f64; 2]) -> RunStudy {
    let costs = overlapping.into_iter().chain(waiting);
    let costs = CODE.into_iter().zip(costs).map(|(code, cost)| (code.to_vec(), cost)).collect();
    // Addresses change a cost by some tenths of a per cent.
    let layout = SimulatedLayoutEffects { relative: 0.002, ..SimulatedLayoutEffects::default() };
    let scenario = Scenario { costs, layout, ..Scenario::default() };
    let open = Box::new(move || Ok(Box::new(SimulatedExecutor::new(scenario.clone(), 5)) as Box<dyn Executor>));
    let plan = Plan {
        imul_latency: Some(3.0),
        adders: Some(IntegerAdders::with_usual_share(5)),
        lengthen: LengthenBy::Iterations,
        rounds: 12,
        layouts: 16,
        layouts_most: 64,
        precision: PRECISION,
        confidence: 0.999,
        budget: Duration::from_millis(100),
        seed: 2,
        ..Plan::simulated()
    };
    RunStudy::new(subject, plan, PRECISION, &Machine::detect(), "x".to_string(), open)
}

fn waiting() -> RunSubject {
    subject([CODE[2], CODE[3]])
}

fn record(mut study: RunStudy) -> RunRecord {
    study.measure(&MachineAnswers::live(), &mut Vec::new()).unwrap();
    study.record.unwrap()
}

fn holds(quantity: Option<Quantity>, truth: f64) -> bool {
    let Some(Quantity { low: Some(low), high: Some(high), .. }) = quantity else { return false };
    (low..=high).contains(&truth) && high - low < 0.1 * truth
}

#[test]
fn a_short_call_has_a_throughput_and_a_latency() {
    // The fence itself takes 300 cycles, in each call and each empty one.
    for (overlapping, waiting_cost, [throughput, latency]) in
        [([1000.0, 100.0], [1600.0, 400.0], [900.0, 1200.0]), ([1000.0, 100.0], [1300.0, 400.0], [900.0, 900.0])]
    {
        let found = record(study(overlapping, waiting_cost).with_serialized(None, Some(&waiting())));
        assert!(holds(found.throughput, throughput) && holds(found.latency, latency), "{found:?}");
        assert_eq!((Some(found.cost), found.latency_by), (found.throughput, Some(SerializedBy::Fence)));
        assert!(holds(found.empty_call, overlapping[1]), "{found:?}");
    }
}

#[test]
fn the_requested_kind_of_call_is_the_cost() {
    // The snippets of the first subject wait; those of the second overlap.
    let found =
        record(study([1600.0, 400.0], [1000.0, 100.0]).with_serialized(Some(SerializedBy::Result), Some(&waiting())));
    assert!(holds(found.throughput, 900.0) && holds(found.latency, 1200.0), "{found:?}");
    assert_eq!((Some(found.cost), found.latency_by), (found.latency, Some(SerializedBy::Result)));
    assert!(holds(found.empty_call, 400.0), "{found:?}");
}

#[test]
fn a_long_call_has_one_cost() {
    let found = record(study([50_000.0, 10.0], [50_100.0, 40.0]).with_serialized(None, Some(&waiting())));
    assert_eq!((Some(found.cost), found.latency, found.latency_by), (found.throughput, None, None));
    let asked = Some(SerializedBy::Fence);
    let found = record(study([50_100.0, 40.0], [50_000.0, 10.0]).with_serialized(asked, Some(&waiting())));
    assert_eq!((Some(found.cost), found.throughput, found.latency_by), (found.latency, None, asked));
}

#[test]
fn a_comparison_has_one_cost() {
    let study = study([100.0, 10.0], [160.0, 40.0]).with_serialized(None, Some(&waiting()));
    let found = record(study.with_other_variants(&[waiting()]));
    assert!(found.latency.is_none() && found.versus.is_some_and(|versus| versus.difference.value.is_some()));
}

#[test]
fn a_snippet_has_neither_throughput_nor_latency() {
    let snippet = waiting().instances.remove(0).into();
    let found = record(study_of(&snippet, [100.0, 10.0], [160.0, 40.0]));
    assert_eq!((found.throughput, found.latency, found.latency_by), (None, None, None));
}
