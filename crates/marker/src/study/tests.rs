//! A survey of a simulated machine gives the same records from its evidence.

use super::*;
use crate::bench::{MarkerCase, call};
use crate::simulated_bench::{IMUL_LATENCY, SimulatedBench, stair_costs};
use cyclescope_core::error::{Error, RunError};
use cyclescope_events::{CounterColumn, NamedEvent};
use cyclescope_exec::Sample;
use cyclescope_measure::Precision;
use cyclescope_measure::result::container::{ContainerWriter, EvidenceOrigin, EvidenceRecorder, StudyEvent};
use cyclescope_sim::{Scenario, SimulatedExecutor};
use serde_json::json;
use std::path::PathBuf;
use std::rc::Rc;

/// A modification of JSON.
type Change = fn(&mut Value);

/// Seed of the visits.
const SEED: u64 = 8;

fn plan() -> MarkerPlan {
    let plan = Plan {
        rounds: 6,
        rounds_least: 6,
        layouts: 4,
        precision: Precision { cycles: 0.1, share: 0.1, cap: None },
        seed: SEED,
        ..Plan::simulated()
    };
    let skipped = SkippedRecord {
        design: "usdt".to_string(),
        state: None,
        context: None,
        reason: "it is simulated".to_string(),
        remedy: None,
    };
    MarkerPlan {
        mode: CodeMode::default(),
        executor: "user".to_string(),
        plan,
        quick: false,
        contexts: 2,
        emulated: false,
        cpu: 1,
        cpu_model: "a processor".to_string(),
        skipped: vec![skipped],
        counters: None,
    }
}

fn study(plan: MarkerPlan) -> MarkerStudy {
    let planted = |case: &MarkerCase, code: EventCode| {
        let own = if case.state.name == "off" { 0.0 } else { 3.0 };
        own + code.config as f64
    };
    study_with(plan, Some(planted))
}

fn study_with(plan: MarkerPlan, events: Option<fn(&MarkerCase, EventCode) -> f64>) -> MarkerStudy {
    let luck = |random: &mut cyclescope_core::random::Random| 0.3 * random.normal();
    let mut bench = SimulatedBench { interrupts: 0.01, luck, events, ..SimulatedBench::new(stair_costs) };
    bench.cases.truncate(3);
    let open = || Ok::<Box<dyn cyclescope_exec::Executor>, Error>(Box::new(simulated()));
    let EvidenceOrigin { machine, repro, .. } = origin();
    MarkerStudy::new(plan, machine, repro, Box::new(bench), Box::new(open))
}

fn simulated() -> SimulatedExecutor {
    SimulatedExecutor::new(Scenario::default(), 11)
}

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let name = format!("cyclescope-marker-{name}-{}", std::process::id());
        Directory(std::env::temp_dir().join(name))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn origin() -> EvidenceOrigin {
    let (study, repro) = (NAME.to_string(), "cyclescope marker --seed 8".to_string());
    EvidenceOrigin { study, repro, machine: json!({ "kernel": "none" }) }
}

/// Measures and records all answers.
fn record(directory: &Directory, plan: MarkerPlan) -> Vec<ResultRecord> {
    let evidence = Rc::new(EvidenceRecorder::create(&directory.0, origin()).unwrap());
    let mut study = study(plan);
    let plan = study.plan().unwrap();
    evidence.write_with(|writer| writer.set_facts(&plan));
    let mut records = Vec::new();
    study.measure(&MachineAnswers::recording_to(evidence.clone()), &mut records).unwrap();
    evidence.finish().unwrap();
    records
}

/// Replays the records. Requires that all answers are used.
fn replay(directory: &Directory) -> Result<Vec<ResultRecord>, StopReason> {
    let container = EvidenceContainer::open(&directory.0).unwrap();
    let mut study = MarkerStudy::restore(&container).unwrap();
    let answers = MachineAnswers::from_container(&container).unwrap();
    let mut records = Vec::new();
    study.measure(&answers, &mut records)?;
    assert!(answers.is_exhausted());
    Ok(records)
}

/// Copies evidence to another directory, with another plan or other answers.
fn forged(
    from: &Directory,
    to: &Directory,
    change_plan: impl Fn(&mut Value),
    mut change: impl FnMut(&mut StudyEvent, &mut [Sample]),
) {
    let container = EvidenceContainer::open(&from.0).unwrap();
    let mut writer = ContainerWriter::create(&to.0, origin()).unwrap();
    let mut plan = container.manifest.facts.clone();
    change_plan(&mut plan);
    writer.set_facts(&plan).unwrap();
    writer.copy_batches(&container).unwrap();
    let mut events = container.events().unwrap();
    while let Some((mut event, mut samples)) = events.take_event(usize::MAX).unwrap() {
        change(&mut event, &mut samples);
        writer.add_event(&event, &samples).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_replay_gives_the_same_records() {
    let directory = Directory::new("same");
    let records = record(&directory, plan());
    let kinds: Vec<&str> = records.iter().map(|record| record.kind).collect();
    assert_eq!(kinds, ["machine", "marker", "marker", "marker", "marker.skipped", "marker.conclusions"]);
    assert_eq!(replay(&directory).unwrap(), records);
    let emulated = Directory::new("emulated");
    let records = record(&emulated, MarkerPlan { emulated: true, ..plan() });
    assert_eq!(replay(&emulated).unwrap(), records);
}

#[test]
fn changed_evidence_is_detected() {
    let (directory, other) = (Directory::new("true"), Directory::new("forged"));
    // No executor is opened, whose batches would also depend on the seed.
    let base = plan();
    let records =
        record(&directory, MarkerPlan { plan: Plan { imul_latency: Some(IMUL_LATENCY), ..base.plan }, ..base });
    // The last visits, changed too little for more visits to follow.
    let are_visits = |event: &StudyEvent| matches!(event, StudyEvent::Kept { of } if !of["visits"].is_null());
    let mut events = EvidenceContainer::open(&directory.0).unwrap().events().unwrap();
    let events = std::iter::from_fn(|| events.take_event(usize::MAX).unwrap());
    let last = events.filter(|(event, _)| are_visits(event)).count();
    let mut visited = 0;
    let longer = |event: &mut StudyEvent, samples: &mut [Sample]| {
        visited += usize::from(are_visits(event));
        if visited == last && are_visits(event) {
            samples.chunks_mut(call::COUNT).for_each(|visit| visit[call::SITE_MANY].end += 1);
        }
    };
    forged(&directory, &other, |_| {}, longer);
    let replayed = replay(&other).expect("the same records");
    let differing = records.iter().zip(&replayed).filter(|(one, other)| one != other).count();
    assert!((1..records.len()).contains(&differing), "{differing} lines of {}", records.len());
    drop(other);
    let other = Directory::new("seed");
    forged(&directory, &other, |plan| plan["plan"]["seed"] = 9.into(), |_, _| {});
    let Err(StopReason::Failed(Error::Run(RunError::Replay { .. }))) = replay(&other) else {
        panic!("another seed was not detected");
    };
}

#[test]
fn impossible_plan_values_are_errors() {
    let directory = Directory::new("plans");
    record(&directory, MarkerPlan { emulated: true, ..plan() });
    let changes: [(&str, Change); 4] = [
        ("plan.step", |plan| plan["plan"]["step"] = 0.0.into()),
        ("plan.confidence", |plan| plan["plan"]["confidence"] = 2.0.into()),
        ("contexts", |plan| plan["contexts"] = (1u64 << 50).into()),
        ("executor", |plan| plan["executor"] = "nowhere".into()),
    ];
    for (field, change) in changes {
        let other = Directory::new("plan");
        forged(&directory, &other, change, |_, _| {});
        let refused = MarkerStudy::restore(&EvidenceContainer::open(&other.0).unwrap());
        let text = refused.err().expect(field).to_string();
        assert!(text.contains(&format!("facts.{field}:")), "{text}");
    }
}

#[test]
fn impossible_bench_values_are_errors() {
    let directory = Directory::new("answers");
    record(&directory, MarkerPlan { emulated: true, ..plan() });
    let changes: [(&str, Change); 6] = [
        ("placements", |of| of["placements"] = json!([])),
        ("step", |of| of["step"] = 0.0.into()),
        ("line_offset", |of| of["subjects"][0]["line_offset"] = u64::MAX.into()),
        ("state", |of| of["subjects"][0]["state"] = "unknown".into()),
        ("assembly", |of| of["assembly"][0]["offset"] = u64::MAX.into()),
        ("base_assembly", |of| of["base_assembly"][0]["bytes"] = "".into()),
    ];
    for (field, change) in changes {
        let other = Directory::new("answer");
        let changed = |event: &mut StudyEvent, _: &mut [Sample]| {
            if let StudyEvent::Kept { of } = event
                && (!of[field].is_null() || !of["subjects"][0][field].is_null())
            {
                change(of);
            }
        };
        forged(&directory, &other, |_| {}, changed);
        let Err(StopReason::Failed(Error::Run(RunError::Replay { .. }))) = replay(&other) else {
            panic!("a change of {field} was not detected");
        };
    }
}

/// A request for three events.
fn counters() -> CounterRequest {
    let name = |number: u64| format!("e{number}");
    CounterRequest {
        events: (0..3).map(|number| NamedEvent { name: name(number), code: EventCode::new(4, number) }).collect(),
        columns: (0..3).map(|number| (name(number), CounterColumn::Event(number as usize))).collect(),
        ..CounterRequest::default()
    }
}

#[test]
fn events_of_markers_are_counted_without_a_change_of_costs() {
    let directory = Directory::new("events");
    let plain = record(&directory, plan());
    drop(Directory(directory.0.clone()));
    let counted = record(&directory, MarkerPlan { counters: Some(counters()), ..plan() });
    let lines = |records: &[ResultRecord]| -> Vec<Value> {
        let markers = records.iter().filter(|record| record.kind == "marker");
        markers.map(|record| serde_json::from_str(&record.line).unwrap()).collect()
    };
    let (plain, with_events) = (lines(&plain), lines(&counted));
    assert!(!plain.is_empty() && plain.len() == with_events.len());
    for (plain, mut line) in plain.into_iter().zip(with_events) {
        let enabled = if line["state"] == "off" { 0.0 } else { 3.0 };
        let fields = line.as_object_mut().unwrap();
        let counters = fields.remove("counters").unwrap();
        assert_eq!(fields.remove("counter_passes"), Some(json!(2)));
        for (number, counter) in counters.as_array().unwrap().iter().enumerate() {
            let value = counter["value"].as_f64().unwrap();
            assert!((value - enabled - number as f64).abs() < 1e-6, "{counter}, {plain}");
        }
        assert_eq!(plain, line);
    }
    assert_eq!(lines(&replay(&directory).unwrap()), lines(&counted));
}

#[test]
fn a_bench_without_counters_refuses_at_once() {
    let mut study = study_with(MarkerPlan { counters: Some(counters()), ..plan() }, None);
    let refused = study.measure(&MachineAnswers::live(), &mut Vec::new());
    let Err(StopReason::Failed(Error::Unavailable(error))) = refused else { panic!("{refused:?}") };
    assert_eq!(error.what, "the event e0");
}

/// In 32-bit code the ruler's latency is measured, since a plan has that of 64-bit mode.
#[test]
fn markers_in_32_bit_code_have_their_simulated_costs() {
    let directory = Directory::new("narrow");
    let base = plan();
    let wrong = Plan { imul_latency: Some(99.0), ..base.plan };
    let records = record(&directory, MarkerPlan { mode: CodeMode::Bits32, plan: wrong, ..base });
    let markers = records.iter().filter(|record| record.kind == "marker");
    let lines: Vec<Value> = markers.map(|record| serde_json::from_str(&record.line).expect("JSON")).collect();
    for (index, line) in lines.iter().enumerate() {
        let cost = line["cost"]["value"].as_f64().expect("a cost");
        // The simulated marker costs half a cycle more at a quarter of the placements.
        assert!((cost - index as f64).abs() < 0.3, "{line}");
        assert_eq!(line["bits"], 32);
    }
    assert_eq!(lines.len(), 3);
    assert_eq!(replay(&directory).unwrap(), records);
}
