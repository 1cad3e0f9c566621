//! Counts of events on simulated machines of known counts.

use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::RunError;
use cyclescope_events::{EventCode, NamedEvent, RefusalCause};
use cyclescope_exec::Executor;
use cyclescope_measure::{CostQuestion, LengthenBy, Plan, count_events, measure_question, plan_event_passes};
use cyclescope_sim::{CoreModel, Scenario, SimulatedCore, SimulatedEvent, SimulatedExecutor, SimulatedPmu};
use iced_x86::Mnemonic;

const SNIPPET: &str = "imul rax, rcx; add rbx, rdx; mov rdi, [r14]";

/// Event number n counts n + 1 for each instruction, and 5 n for each load.
fn known_event(number: u64) -> SimulatedEvent {
    SimulatedEvent {
        code: EventCode::new(4, 0x100 + number),
        per_call: 17 + number,
        per_instruction: number + 1,
        per_mnemonic: vec![(Mnemonic::Mov, 5 * number)],
    }
}

fn known_pmu() -> SimulatedPmu {
    let events: Vec<SimulatedEvent> = (0..8).map(known_event).collect();
    let fixed = vec![events[0].code];
    SimulatedPmu { general: 3, fixed, events, start: u64::MAX - 100, ..SimulatedPmu::default() }
}

/// One of each kind of simulated executor.
fn executors(pmu: &SimulatedPmu) -> [Box<dyn Executor>; 2] {
    let scenario = SimulatedExecutor::new(Scenario::default(), 1).with_pmu(pmu.clone());
    let core = SimulatedCore::new(CoreModel::from_seed(1), 1).with_pmu(pmu.clone());
    [Box::new(scenario), Box::new(core)]
}

fn named(numbers: impl IntoIterator<Item = u64>) -> Vec<NamedEvent> {
    let event = |number| NamedEvent { name: format!("event{number}"), code: known_event(number).code };
    numbers.into_iter().map(event).collect()
}

#[test]
fn planted_counts_are_recovered_in_all_combinations() {
    let snippet = Snippet::parse(SNIPPET).unwrap();
    let question = CostQuestion::from_snippet(snippet.clone());
    for lengthen in [LengthenBy::LoopedCopies, LengthenBy::Copies] {
        let plan = Plan { lengthen, ..Plan::simulated() };
        for mut executor in executors(&known_pmu()) {
            let measured = measure_question(executor.as_mut(), &question, &plan).unwrap().remove(0);
            let before = measured.estimate.as_ref().unwrap().cost;
            for chosen in 1u64..256 {
                let numbers: Vec<u64> = (0..8).filter(|number| chosen >> number & 1 == 1).collect();
                let events = named(numbers.iter().copied());
                let passes = plan_event_passes(executor.as_ref(), &events).unwrap();
                // The first event has a counter of its own.
                let general = numbers.iter().filter(|number| **number > 0).count();
                assert_eq!(passes.len(), general.div_ceil(3).max(1), "{numbers:?}");
                for pass in &passes {
                    let codes: Vec<EventCode> = pass.events().iter().map(|event| events[*event].code).collect();
                    let counts =
                        count_events(executor.as_mut(), &question, &plan, &measured.acquisition, &codes).unwrap();
                    for (event, count) in pass.events().iter().zip(&counts[0]) {
                        let truth = known_event(numbers[*event]).count_of(snippet.code()) as f64;
                        let exact = (count.value - truth).abs() < 1e-9 && count.high - count.low < 1e-9;
                        assert!(exact, "{numbers:?}, event {event}: {count:?}, not {truth}");
                    }
                }
            }
            // Counting changes no reading of the measurement.
            assert_eq!(measured.estimate_at(plan.confidence).unwrap().cost, before);
        }
    }
}

#[test]
fn counters_that_are_taken_away_are_an_error() {
    let question = CostQuestion::from_snippet(Snippet::parse(SNIPPET).unwrap());
    let plan = Plan::simulated();
    let taken = SimulatedPmu { taken_in_batch: Some(3), ..known_pmu() };
    let shared = SimulatedPmu { multiplexed: true, ..known_pmu() };
    for (pmu, part) in [(taken, "took a counter away"), (shared, "share their counters")] {
        for mut executor in executors(&pmu) {
            let measured = measure_question(executor.as_mut(), &question, &plan).unwrap().remove(0);
            let codes = [known_event(0).code, known_event(1).code];
            let error = count_events(executor.as_mut(), &question, &plan, &measured.acquisition, &codes);
            assert!(matches!(&error, Err(RunError::Unavailable(why)) if why.why.contains(part)), "{error:?}");
        }
    }
}

#[test]
fn events_that_do_not_count_are_named() {
    let cause = |pmu: SimulatedPmu, numbers: &[u64]| {
        let refusals = executors(&pmu).map(|executor| {
            let refusal = plan_event_passes(executor.as_ref(), &named(numbers.iter().copied())).unwrap_err();
            (refusal.cause, refusal.event)
        });
        assert_eq!(refusals[0], refusals[1]);
        refusals[0].clone()
    };
    assert_eq!(cause(known_pmu(), &[0, 1, 99]), (RefusalCause::NotOnThisCore, "event99".to_string()));
    assert_eq!(cause(SimulatedPmu::default(), &[0]), (RefusalCause::NoPmu, "event0".to_string()));
    let reserved = SimulatedPmu { general: 0, ..known_pmu() };
    assert_eq!(cause(reserved, &[0, 1]), (RefusalCause::ReservedByAnother, "event1".to_string()));
}
