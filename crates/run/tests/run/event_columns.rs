//! `run` with counters, on simulated machines of known counts.

use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::Error;
use cyclescope_core::machine::Machine;
use cyclescope_events::{CounterColumn, CounterRequest, EventCode, NamedEvent};
use cyclescope_exec::Executor;
use cyclescope_measure::result::answers::MachineAnswers;
use cyclescope_measure::result::caveat::CaveatKind;
use cyclescope_measure::result::record::RunRecord;
use cyclescope_measure::study::{StopReason, Study};
use cyclescope_measure::{LengthenBy, Plan, Precision};
use cyclescope_run::study::{RunStudy, RunSubject};
use cyclescope_sim::{CoreModel, Scenario, SimulatedCore, SimulatedEvent, SimulatedExecutor, SimulatedPmu};

const PRECISION: Precision = Precision { cycles: 0.01, share: 0.02, cap: None };

fn known_event(code: EventCode, per_instruction: u64) -> SimulatedEvent {
    SimulatedEvent { code, per_call: 40, per_instruction, per_mnemonic: Vec::new() }
}

/// Core cycles, as many for each instruction, and events that count 1, 2 and 3 for each.
fn known_pmu(cycles: u64) -> SimulatedPmu {
    let own = (1..=3).map(|number| known_event(EventCode::new(4, number), number));
    let events = std::iter::once(known_event(EventCode::core_cycles(), cycles)).chain(own).collect();
    SimulatedPmu { general: 2, events, ..SimulatedPmu::default() }
}

fn request(names: &[&str]) -> CounterRequest {
    let events = (1..=3).map(|number| NamedEvent { name: format!("e{number}"), code: EventCode::new(4, number) });
    let columns = names.iter().map(|name| match *name {
        "e3/e1" => (name.to_string(), CounterColumn::Ratio(2, 0)),
        name => (name.to_string(), CounterColumn::Event(name[1..].parse::<usize>().unwrap() - 1)),
    });
    CounterRequest { events: events.collect(), columns: columns.collect() }
}

/// The record of a snippet of two instructions, 3 core cycles each on the first kind of machine.
fn run_on(simulated_core: bool, pmu: SimulatedPmu, request: Option<CounterRequest>) -> Result<RunRecord, StopReason> {
    let open = move || -> Result<Box<dyn Executor>, Error> {
        let scenario = Scenario { cost: 6.0, ..Scenario::default() };
        Ok(match simulated_core {
            false => Box::new(SimulatedExecutor::new(scenario, 5).with_pmu(pmu.clone())),
            true => Box::new(SimulatedCore::new(CoreModel::from_seed(5), 5).with_pmu(pmu.clone())),
        })
    };
    let subject: RunSubject = Snippet::parse("imul rax, rax; imul rax, rax").unwrap().into();
    let plan = Plan { lengthen: LengthenBy::LoopedCopies, precision: PRECISION, ..Plan::simulated() };
    let study = RunStudy::new(&subject, plan, PRECISION, &Machine::detect(), String::new(), Box::new(open));
    let mut study = study.with_counters(request);
    study.measure(&MachineAnswers::live(), &mut Vec::new())?;
    Ok(study.record.unwrap())
}

fn values(record: &RunRecord) -> Vec<(&str, Option<f64>, usize)> {
    let rounded = |value: f64| (1e6 * value).round() / 1e6;
    let counters = record.counters.iter();
    counters.map(|one| (one.name.as_str(), one.quantity.value.map(rounded), one.pass)).collect()
}

#[test]
fn counters_stand_beside_an_unchanged_cost() {
    for simulated_core in [false, true] {
        let plain = run_on(simulated_core, known_pmu(3), None).unwrap();
        let counted = run_on(simulated_core, known_pmu(3), Some(request(&["e1", "e3/e1", "e3"]))).unwrap();
        assert_eq!((counted.cost, counted.looped, counted.unrolled), (plain.cost, plain.looped, plain.unrolled));
        assert_eq!(values(&counted), [("e1", Some(2.0), 1), ("e3/e1", Some(3.0), 2), ("e3", Some(6.0), 2)]);
        assert_eq!(counted.counter_passes, Some(2));
        assert_eq!(counted.counted_cycles.unwrap().value.map(f64::round), Some(6.0));
        assert!(plain.counters.is_empty() && plain.counted_cycles.is_none());
    }
}

#[test]
fn a_counter_of_cycles_that_contradicts_the_ruler_is_a_caveat() {
    let caveats = |cycles| {
        let record = run_on(false, known_pmu(cycles), Some(request(&["e1"]))).unwrap();
        record.caveats.iter().filter(|caveat| caveat.code == CaveatKind::RulersDisagree).count()
    };
    assert_eq!((caveats(3), caveats(4)), (0, 1));
}

#[test]
fn a_counter_taken_away_loses_its_pass_alone() {
    // A pass has eight layouts, each a batch.
    let pmu = SimulatedPmu { taken_in_batch: Some(10), ..known_pmu(3) };
    let record = run_on(false, pmu, Some(request(&["e1", "e2", "e3"]))).unwrap();
    assert_eq!(values(&record), [("e1", Some(2.0), 1), ("e2", Some(4.0), 1), ("e3", None, 2)]);
    assert!(record.counters[2].lost.as_ref().unwrap().contains("took a counter away") && record.cost.value.is_some());
}

#[test]
fn an_event_that_is_not_there_ends_the_run_at_once() {
    let mut asked = request(&["e1"]);
    asked.events[1].code = EventCode::new(4, 99);
    let Err(StopReason::Failed(Error::Unavailable(error))) = run_on(false, known_pmu(3), Some(asked)) else {
        panic!("it is not available");
    };
    assert_eq!(error.what, "the event e2");
}
