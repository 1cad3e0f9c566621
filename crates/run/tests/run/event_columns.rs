//! `run` with counters, on simulated machines of known counts.

use cyclescope_code::clock::Clock;
use cyclescope_code::program::ColdStart;
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::Error;
use cyclescope_core::machine::Machine;
use cyclescope_core::unit::Unit;
use cyclescope_events::{CounterColumn, CounterRequest, EventCode, NamedEvent};
use cyclescope_exec::{Executor, ExecutorOpener, failing_opener};
use cyclescope_measure::result::answers::MachineAnswers;
use cyclescope_measure::result::caveat::CaveatKind;
use cyclescope_measure::result::counter_record::CounterRecord;
use cyclescope_measure::result::record::{ErrorRecord, RunRecord};
use cyclescope_measure::study::{StopReason, Study};
use cyclescope_measure::{LengthenBy, Plan, Precision, measure_cost};
use cyclescope_run::points::{PointLabel, PointsSession, PointsStudy, ResumedPoints, tabulate_points};
use cyclescope_run::study::{RunStudy, RunSubject};
use cyclescope_sim::{
    CoreModel, Scenario, SimulatedCore, SimulatedEvent, SimulatedExecutor, SimulatedFrequency, SimulatedGaps,
    SimulatedPmu,
};
use iced_x86::Mnemonic;

const PRECISION: Precision = Precision { cycles: 0.01, share: 0.02, cap: None };

fn known_event(code: EventCode, per_instruction: u64) -> SimulatedEvent {
    SimulatedEvent { code, per_call: 40, per_instruction, per_mnemonic: Vec::new() }
}

/// Core cycles, as many for each instruction but one for an `add`, and events that count 1, 2 and 3
/// for each.
fn known_pmu(cycles: u64) -> SimulatedPmu {
    let own = (1..=3).map(|number| known_event(EventCode::new(4, number), number));
    let cycles =
        SimulatedEvent { per_mnemonic: vec![(Mnemonic::Add, 1)], ..known_event(EventCode::core_cycles(), cycles) };
    let events = std::iter::once(cycles).chain(own).collect();
    SimulatedPmu { general: 2, events, ..SimulatedPmu::default() }
}

fn request(names: &[&str]) -> CounterRequest {
    let events = (1..=3).map(|number| NamedEvent { name: format!("e{number}"), code: EventCode::new(4, number) });
    let columns = names.iter().map(|name| match *name {
        "e3/e1" => (name.to_string(), CounterColumn::Ratio(2, 0)),
        name => (name.to_string(), CounterColumn::Event(name[1..].parse::<usize>().unwrap() - 1)),
    });
    CounterRequest { events: events.collect(), columns: columns.collect(), ..CounterRequest::default() }
}

/// An executor of one of two kinds.
fn opener(simulated_core: bool, pmu: SimulatedPmu) -> ExecutorOpener {
    Box::new(move || -> Result<Box<dyn Executor>, Error> {
        let scenario = Scenario { cost: 6.0, ..Scenario::default() };
        Ok(match simulated_core {
            false => Box::new(SimulatedExecutor::new(scenario, 5).with_pmu(pmu.clone())),
            true => Box::new(SimulatedCore::new(CoreModel::from_seed(5), 5).with_pmu(pmu.clone())),
        })
    })
}

/// A snippet of this number of instructions.
fn subject(instructions: usize) -> RunSubject {
    Snippet::parse(&vec!["imul rax, rax"; instructions].join("; ")).unwrap().into()
}

fn plan() -> Plan {
    Plan { lengthen: LengthenBy::LoopedCopies, precision: PRECISION, ..Plan::simulated() }
}

/// The study of a snippet of two instructions, 3 core cycles each on the first kind of machine.
fn study_of(plan: Plan, open: ExecutorOpener, request: Option<CounterRequest>) -> RunStudy {
    let study = RunStudy::new(&subject(2), plan, PRECISION, &Machine::detect(), String::new(), open);
    study.with_counters(request)
}

fn measure(mut study: RunStudy) -> Result<RunRecord, StopReason> {
    study.measure(&MachineAnswers::live(), &mut Vec::new())?;
    Ok(study.record.unwrap())
}

fn run_on(simulated_core: bool, pmu: SimulatedPmu, request: Option<CounterRequest>) -> Result<RunRecord, StopReason> {
    measure(study_of(plan(), opener(simulated_core, pmu), request))
}

/// The counts of `e1`, one for each instruction.
fn count(counters: &[CounterRecord]) -> Option<f64> {
    counters.iter().find(|counter| counter.name == "e1").and_then(|counter| counter.quantity.value).map(f64::round)
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
fn a_counter_that_contradicts_the_ruler_is_a_caveat_of_every_result() {
    for simulated_core in [false, true] {
        let caveats = |pmu: SimulatedPmu, request: Option<CounterRequest>| {
            let record = run_on(simulated_core, pmu, request).unwrap();
            let found = record.caveats.iter().filter(|caveat| caveat.code == CaveatKind::RulersDisagree);
            (found.count(), record.falls_short())
        };
        let mut wrong = known_pmu(3);
        wrong.events[0].per_mnemonic = vec![(Mnemonic::Add, 2)];
        assert_eq!(caveats(known_pmu(3), None), (0, false));
        assert_eq!(caveats(wrong.clone(), None), (1, true));
        // The comparison with the cost is the better one.
        assert_eq!(caveats(wrong, Some(request(&["e1"]))).0, 1);
        // A counter that something else has is not readable.
        assert_eq!(caveats(SimulatedPmu { taken_in_batch: Some(0), ..known_pmu(3) }, None), (0, false));
    }
}

#[test]
fn the_counter_of_core_cycles_is_a_clock() {
    let frequency = SimulatedFrequency { drift: 0.02, jump_rate: 1e-7 };
    let steal = SimulatedGaps { rate: 1e-7, ticks: 1e6 };
    let scenario = Scenario { cost: 6.0, frequency, steal, ..Scenario::default() };
    let clock = Clock::find_named("rdpmc").unwrap();
    assert_eq!(clock.counts, Unit::CoreCycles);
    let plan = Plan { clock, step: 1.0, precision: PRECISION, ..Plan::simulated() };
    let snippet = Snippet::parse("imul rax, rax; imul rax, rax").unwrap();
    let mut executor = SimulatedExecutor::new(scenario, 5).with_pmu(known_pmu(3));
    let measured = measure_cost(&mut executor, &snippet, &plan).unwrap();
    let estimate = measured.estimate.unwrap();
    assert!(estimate.cost.contains(6.0), "{:?}", estimate.cost);
    let [low, _, high] = estimate.rate;
    assert!((low - 1.0).abs() < 0.01 && (high - 1.0).abs() < 0.01, "{:?}", estimate.rate);
}

#[test]
fn each_variant_has_its_counts() {
    let ranked = |others: &[RunSubject]| {
        let study = study_of(plan(), opener(true, known_pmu(3)), Some(request(&["e1", "e3"])));
        measure(study.with_other_variants(others)).unwrap()
    };
    let one = ranked(&[subject(3)]);
    assert_eq!((count(&one.counters), count(&one.versus.unwrap().counters)), (Some(2.0), Some(3.0)));
    let several = ranked(&[subject(3), subject(5)]);
    let counts: Vec<_> = several.variants.iter().map(|variant| count(&variant.counters)).collect();
    assert_eq!(counts, [Some(2.0), Some(3.0), Some(5.0)]);
}

#[test]
fn events_of_a_cold_run_are_counted() {
    let cold = ColdStart { data: true, branches: true, ..ColdStart::default() };
    let plan = Plan { lengthen: LengthenBy::Copies, cold, ..plan() };
    let record = measure(study_of(plan, opener(false, known_pmu(3)), Some(request(&["e1"])))).unwrap();
    assert_eq!(count(&record.counters), Some(2.0));
}

#[test]
fn each_point_has_its_counts() {
    let point = |value: u64| {
        let study = RunStudy::new(
            &subject(value as usize),
            plan(),
            PRECISION,
            &Machine::detect(),
            String::new(),
            failing_opener(),
        );
        let label = PointLabel::Value { variable: "N".to_string(), value };
        (label, Ok(Box::new(study.with_counters(Some(request(&["e1", "e3/e1"]))))))
    };
    let session = PointsSession {
        version: String::new(),
        command: Vec::new(),
        seed: 1,
        points: 2,
        identity: String::new(),
        method: PointsSession::METHOD,
    };
    let explain = |_: &RunStudy, error: Error| ErrorRecord::from(&error);
    let (points, open) = (vec![point(1), point(2)], opener(true, known_pmu(3)));
    let mut study = PointsStudy::new(session, points, serde_json::json!({}), open, explain, ResumedPoints::default());
    study.measure(&MachineAnswers::live(), &mut Vec::new()).unwrap();
    let counts: Vec<_> = study.rows().map(|row| count(&row.counters)).collect();
    assert_eq!(counts, [Some(1.0), Some(2.0)]);
    let table = tabulate_points(study.rows());
    let columns: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    let ends = columns.iter().position(|name| *name == "e1").unwrap();
    assert_eq!(columns[ends..], ["e1", "e1_low", "e1_high", "e3/e1", "e3/e1_low", "e3/e1_high"]);
    assert!(table.rows.iter().all(|row| row.len() == columns.len() && row[ends + 3] == "3.0000"), "{:?}", table.rows);
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
