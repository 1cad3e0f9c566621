//! Complete evaluations on simulated machines, and their replays.

use super::*;
use crate::MethodCandidate;
use crate::claims::DocumentClaim;
use crate::contamination::{Contamination, PromiseVerdict};
use crate::ensemble_reader::SamplingSize;
use crate::plan::{self, ExperimentTimes};
use crate::record::{ContaminationRecord, EvaluateRecord, ResolutionRecord};
use crate::resolution::{Resolution, StaircaseBody};
use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock::Clock;
use cyclescope_core::error::{Error, RunError};
use cyclescope_core::machine::processor::Hypervisor;
use cyclescope_events::{CounterColumn, CounterRequest, EventCode, EventRefusal, NamedEvent};
use cyclescope_exec::{Batch, Capabilities, Executor, OpenResult, Sample, TimingOrigin, kernel, user};
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::result::container::{ContainerWriter, EvidenceOrigin, EvidenceRecorder, StudyEvent};
use cyclescope_measure::study::{ResultRecord, StudyProgress};
use cyclescope_sim::{Scenario, SimulatedEvent, SimulatedExecutor, SimulatedPmu};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;

const USER: &str = "user";
const KERNEL: &str = "kernel";
const CR0: &str = "cpuid-rdtsc-cr0-rdtsc";
/// Overheads of the simulated machines, one for each executor.
const OVERHEADS: [f64; 2] = [60.0, 200.0];

thread_local! {
    static HABIT: RefCell<Scenario> = RefCell::new(Scenario::default());
}

/// A simulated machine with the name of an executor.
struct Named {
    capabilities: Capabilities,
    machine: Machine,
    simulated: SimulatedExecutor,
}

impl Named {
    fn new(executor: &'static str) -> Named {
        let overhead = OVERHEADS[usize::from(executor == KERNEL)];
        Named::with_scenario(executor, Scenario { overhead, ..Scenario::default() })
    }

    fn with_scenario(executor: &'static str, scenario: Scenario) -> Named {
        let event = |number| SimulatedEvent {
            code: EventCode::new(4, number),
            per_call: 40 + number,
            per_instruction: 1,
            per_mnemonic: Vec::new(),
        };
        let pmu = SimulatedPmu { general: 2, events: (0..3).map(event).collect(), ..SimulatedPmu::default() };
        let simulated = SimulatedExecutor::new(scenario, 3).with_pmu(pmu);
        let capabilities = Capabilities { executor, ..simulated.capabilities().clone() };
        Named { capabilities, machine: simulated.machine().clone(), simulated }
    }

    fn open(name: &'static str, _: &Machine, _: &OpenOptions) -> OpenResult {
        Ok(Box::new(Named::new(name)))
    }

    /// The user executor on the scenario of this thread.
    fn open_habit(_: &'static str, _: &Machine, _: &OpenOptions) -> OpenResult {
        Ok(Box::new(Named::with_scenario(USER, HABIT.with_borrow(Scenario::clone))))
    }

    /// The same with timing marked as emulated by QEMU.
    fn open_emulated(name: &'static str, machine: &Machine, _: &OpenOptions) -> OpenResult {
        let mut named = Named::new(name);
        named.capabilities.timing = TimingOrigin::Emulated;
        named.machine = machine.clone();
        Ok(Box::new(named))
    }
}

impl Executor for Named {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        self.simulated.stream(batch, take)
    }

    fn count_fitting(&self, events: &[EventCode]) -> Result<usize, EventRefusal> {
        match self.capabilities.executor {
            KERNEL => Err(EventRefusal::from_mode(KERNEL)),
            _ => self.simulated.count_fitting(events),
        }
    }

    fn now(&self) -> Duration {
        self.simulated.now()
    }

    fn pause(&mut self, time: Duration) {
        self.simulated.pause(time);
    }
}

fn candidate(name: &str, executor: &'static str) -> MethodCandidate {
    MethodCandidate { clock: Clock::find_named(name).unwrap(), executor }
}

fn plan(candidates: &[MethodCandidate]) -> EvaluatePlan {
    let ms = Duration::from_millis;
    let times = ExperimentTimes { contamination: ms(20), resolution: ms(60), watch: ms(5), ..ExperimentTimes::QUICK };
    EvaluatePlan {
        candidates: candidates.to_vec(),
        not_run: Vec::new(),
        mode: CodeMode::default(),
        size: SamplingSize { ensembles: 6, samples: 1000 },
        budget: Duration::from_secs(600),
        slow: None,
        times,
        resolution_samples: None,
        seed: 1,
        series: true,
        counters: None,
    }
}

fn study(plan: EvaluatePlan) -> EvaluateStudy {
    let machine = Named::new(USER).machine;
    let mut study = EvaluateStudy::new(machine, plan, OpenOptions::default(), "cyclescope evaluate".to_string());
    study.host.as_mut().unwrap().open = Named::open;
    study
}

fn measured(study: &mut EvaluateStudy) -> Vec<ResultRecord> {
    let mut records = Vec::new();
    study.measure(&MachineAnswers::live(), &mut records).expect("no fault is simulated");
    records
}

/// The executor and the method of a record.
fn executor_and_method(record: &ResultRecord) -> (String, String) {
    let line: Value = serde_json::from_str(&record.line).unwrap();
    let text = |field: &str| line[field].as_str().unwrap_or_default().to_string();
    (text("executor"), text("clock"))
}

#[test]
fn a_method_of_two_executors_is_measured_with_both() {
    let methods = [("rdtscp-lfence", USER), ("rdtscp-lfence", KERNEL), (CR0, KERNEL)];
    let mut study = study(plan(&methods.map(|(name, executor)| candidate(name, executor))));
    let records = measured(&mut study);
    let kinds: Vec<&str> = records.iter().map(|record| record.kind).collect();
    assert_eq!(kinds[..2], ["machine", "evaluate.tsc"]);
    assert_eq!(kinds[kinds.len() - 2..], ["evaluate.verdict"; 2]);
    for (kind, times) in
        [("evaluate.contamination", 5), ("evaluate.resolution", 1), ("evaluate.ensemble", 6), ("evaluate", 1)]
    {
        let found: Vec<_> = records.iter().filter(|record| record.kind == kind).map(executor_and_method).collect();
        let expected = methods.map(|(name, executor)| (executor.to_string(), name.to_string()));
        assert_eq!(found.len(), 3 * times, "{kind}");
        assert!(found.chunks(times).zip(expected).all(|(found, one)| found.iter().all(|it| *it == one)));
    }
    for (found, executor) in study.found.unwrap().methods.iter().zip([0, 1, 1]) {
        let overhead = found.method.as_ref().unwrap().trimmed.unwrap().overhead;
        assert!((overhead - OVERHEADS[executor]).abs() < 15.0, "{overhead}");
    }
}

/// Step and overhead equal the simulated ones, an addition takes a cycle, and no promise counts as
/// broken.
#[test]
fn an_evaluation_finds_every_simulated_parameter() {
    for (name, habit) in Scenario::machine_variants() {
        HABIT.set(habit.clone());
        let mut study = study(plan(&[candidate("lfence-rdtsc-lfence", USER)]));
        let host = study.host.as_mut().unwrap();
        (host.machine, host.open) = (Named::with_scenario(USER, habit.clone()).machine, Named::open_habit);
        measured(&mut study);
        let found = &study.found.as_ref().unwrap().methods[0];
        let method = found.method.as_ref().unwrap();
        assert_eq!(method.tested.step, habit.step as f64, "{name}");
        let overhead = method.trimmed.unwrap().overhead;
        // The entry and exit of an empty body are part of an empty pair.
        let simulated = habit.overhead + habit.boundary;
        assert!((overhead - simulated).abs() < 1.5, "{name}: {overhead} for {simulated}");
        let broken = found.contamination.iter().filter(|row| row.verdict == PromiseVerdict::Broken);
        assert_eq!(broken.count(), 0, "{name}: {:#?}", found.contamination);
        let adds = found.resolution.staircase(StaircaseBody::Adds).unwrap();
        assert!(adds.slope.is_some_and(|slope| (slope.value - 1.0).abs() < 0.02), "{name}: {:?}", adds.slope);
    }
}

fn nothing_behind(claims: &[DocumentClaim]) -> &DocumentClaim {
    claims.iter().find(|claim| claim.id == "paper-cr0-needs-nothing-behind").unwrap()
}

#[test]
fn a_claim_uses_the_results_of_any_executor() {
    let cr0 = candidate(CR0, KERNEL);
    let machine = Named::new(USER).machine;
    let (_, not_run) =
        plan::split_candidates([cr0.clock], CodeMode::default(), &machine, &[user::user_capabilities(&machine)]);
    assert_eq!(not_run.len(), 1);
    let mut both = study(EvaluatePlan { not_run: not_run.clone(), ..plan(&[cr0]) });
    measured(&mut both);
    let found = both.found.unwrap();
    let claim = nothing_behind(&found.claims);
    assert!(claim.stand_in.is_none() && !claim.why.contains("not run"), "{claim:?}");
    let mut neither = study(EvaluatePlan { not_run, ..plan(&[candidate("rdtscp-lfence", USER)]) });
    measured(&mut neither);
    let found = neither.found.unwrap();
    let claim = nothing_behind(&found.claims);
    assert!(claim.stand_in.is_some() && claim.why.contains("not run"), "{claim:?}");
}

#[test]
fn methods_are_planned_on_executors_that_run_them() {
    let machine = Machine::detect();
    let clocks = || ["clock-gettime", CR0].map(|name| Clock::find_named(name).unwrap());
    let named =
        |found: &[MethodCandidate]| found.iter().map(|found| (found.clock.name, found.executor)).collect::<Vec<_>>();
    let executors = [user::user_capabilities(&machine), kernel::kernel_capabilities(&machine)];
    let (run, not_run) = plan::split_candidates(clocks(), CodeMode::default(), &machine, &executors);
    let refused: Vec<MethodCandidate> = not_run.iter().map(|not| not.candidate).collect();
    assert!(named(&run).contains(&("clock-gettime", USER)));
    assert!(named(&refused).contains(&("clock-gettime", KERNEL)));
    assert!(named(&refused).contains(&(CR0, USER)));
    assert!(!named(&run).contains(&(CR0, USER)));
}

#[test]
fn an_emulated_machine_has_no_figures_in_core_cycles() {
    let (signature, name) = ("TCGTCGTCGTCG".to_string(), "QEMU".to_string());
    let hypervisor = Some(Hypervisor { signature, name });
    let mut study = study(plan(&[candidate("rdtscp-lfence", USER)]));
    let host = study.host.as_mut().unwrap();
    host.machine = Machine { hypervisor, ..host.machine.clone() };
    host.open = Named::open_emulated;
    measured(&mut study);
    let found = study.found.as_ref().unwrap();
    let why = Caveat::emulated_machine().text;
    refused(&found.methods[0].contamination, &found.methods[0].resolution);
    assert!(found.claims.iter().all(|claim| claim.holds.is_none() && claim.why == why), "{:?}", found.claims);
    assert_eq!(found.verdicts[0].caveats, [Caveat::emulated_machine()]);
    let method = found.methods[0].method.as_ref().unwrap();
    assert_eq!(method.tested.step, 1.0);
    let record = EvaluateRecord::new(method, &study.around);
    assert!(record.totals.overhead_min > 0 && record.mean > 0.0 && record.p50 > 0);
    assert_eq!((record.overhead.value, record.overhead_spread, record.rates), (None, None, None));
    assert_eq!((record.ergodic_trimmed, &record.ergodic_trimmed_why), (None, &why));
    assert_eq!((record.reading_deviation, record.shortest_once), (None, None));
    assert_eq!(record.caveats, [Caveat::emulated_machine()]);
}

/// Requires figures in raw units and none in core cycles.
fn refused(contamination: &[Contamination], resolution: &Resolution) {
    let candidate = candidate("rdtscp-lfence", USER);
    for row in contamination {
        let record = ContaminationRecord::new(candidate, row);
        assert_eq!((record.cost.value, record.size, record.why), (None, None, Some(Caveat::emulated_machine().text)));
    }
    assert_eq!(ResolutionRecord::new(USER, resolution).cost.value, None);
    assert_eq!(resolution.caveats, [Caveat::emulated_machine()]);
    assert!(resolution.by_samples.is_empty());
    let stairs = resolution.staircase(StaircaseBody::Adds).unwrap();
    assert!(stairs.totals.smallest_change.is_some() && stairs.points.iter().any(|point| point.raw.minimum > 0));
    assert!(stairs.points.iter().all(|point| point.mean_cycles.or(point.minimum_cycles).is_none()));
    assert!(stairs.slope.is_none() && stairs.slopes.is_empty());
    assert!(stairs.hidden.is_none() && stairs.neighbours.is_none() && stairs.spurious_minima_cycles.is_none());
}

#[test]
fn a_follower_can_stop_the_evaluation() {
    struct Few(usize);
    impl StudyFollower for Few {
        fn accept_record(&mut self, _: ResultRecord) -> ControlFlow<()> {
            self.0 += 1;
            if self.0 == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }

        fn report_progress(&mut self, progress: StudyProgress) -> ControlFlow<()> {
            assert!(progress.done <= progress.total && !progress.message.is_empty());
            ControlFlow::Continue(())
        }
    }
    let (mut study, mut few) = (study(plan(&[candidate("rdtscp-lfence", USER)])), Few(0));
    assert_eq!(study.measure(&MachineAnswers::live(), &mut few), Err(StopReason::Requested));
    assert!(few.0 == 4 && study.found.is_some_and(|found| found.methods.is_empty()));
}

/// A directory that is removed when dropped.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let name = format!("cyclescope-evaluate-{}-{name}", std::process::id());
        Directory(std::env::temp_dir().join(name))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn origin(study: &EvaluateStudy) -> EvidenceOrigin {
    EvidenceOrigin { study: NAME.to_string(), repro: study.around.repro.clone(), machine: study.machine.clone() }
}

/// Measures and records evidence.
fn recorded(directory: &Path) -> (Vec<ResultRecord>, EvidenceContainer) {
    let methods = [("rdtscp-lfence", USER), ("rdpmc", USER), (CR0, KERNEL)];
    let candidates = methods.map(|(name, executor)| candidate(name, executor));
    let machine = Named::new(USER).machine;
    let cr0 = [Clock::find_named(CR0).unwrap()];
    let (_, not_run) = plan::split_candidates(cr0, CodeMode::default(), &machine, &[user::user_capabilities(&machine)]);
    let mut study = study(EvaluatePlan { not_run, ..plan(&candidates) });
    let evidence = Rc::new(EvidenceRecorder::create(directory, origin(&study)).unwrap());
    evidence.write_with(|writer| writer.set_facts(&study.plan()?)).unwrap();
    let mut records = Vec::new();
    study.measure(&MachineAnswers::recording_to(evidence.clone()), &mut records).expect("no fault is simulated");
    evidence.finish().unwrap();
    (records, EvidenceContainer::open(directory).unwrap())
}

/// The lines of a study whose answers come from evidence.
fn replayed(study: &mut EvaluateStudy, container: &EvidenceContainer) -> Result<Vec<ResultRecord>, StopReason> {
    let answers = MachineAnswers::from_container(container).unwrap();
    let mut records = Vec::new();
    study.measure(&answers, &mut records)?;
    assert!(answers.is_exhausted());
    Ok(records)
}

#[test]
fn evidence_replays_to_the_same_records() {
    let directory = Directory::new("same");
    let (records, container) = recorded(&directory.0);
    let mut replay = EvaluateStudy::restore(&container).unwrap();
    let lines = replayed(&mut replay, &container).expect("the same results");
    for (one, other) in records.iter().zip(&lines) {
        assert_eq!(one, other);
    }
    assert_eq!(records.len(), lines.len());
    assert_eq!(replay.found.as_ref().unwrap().methods.len(), 3);
    assert_eq!(replay.plan().unwrap(), container.manifest.facts);
    // No other plan has the same answers.
    replay.plan.seed += 1;
    assert!(matches!(replayed(&mut replay, &container), Err(StopReason::Failed(Error::Run(RunError::Replay { .. })))));
    let live = replay.measure(&MachineAnswers::live(), &mut Vec::new());
    assert!(matches!(live, Err(StopReason::Failed(Error::Run(RunError::Replay { .. })))));
}

#[test]
fn a_changed_reading_changes_the_record() {
    let directory = Directory::new("reading");
    let (records, container) = recorded(&directory.0);
    let changed = Directory::new("changed");
    let mut replay = EvaluateStudy::restore(&container).unwrap();
    let mut writer = ContainerWriter::create(&changed.0, origin(&replay)).unwrap();
    writer.copy_batches(&container).unwrap();
    // One reading of the last ensemble, on which no later request depends.
    let batches = |container: &EvidenceContainer| {
        let mut events = container.events().unwrap();
        std::iter::from_fn(move || events.take_event(usize::MAX).unwrap()).enumerate()
    };
    let last = batches(&container).filter(|(_, (event, _))| matches!(event, StudyEvent::Batch(_))).last().unwrap().0;
    for (number, (event, mut samples)) in batches(&container) {
        if number == last {
            samples[0].end += 1 << 20;
        }
        writer.add_event(&event, &samples).unwrap();
    }
    writer.finish().unwrap();
    let lines = replayed(&mut replay, &EvidenceContainer::open(&changed.0).unwrap()).expect("the same results");
    let differing: Vec<&str> =
        records.iter().zip(&lines).filter(|(one, other)| one != other).map(|(one, _)| one.kind).collect();
    assert!(differing.contains(&"evaluate") && lines.len() == records.len(), "{differing:?}");
}

#[test]
fn a_plan_with_impossible_values_is_rejected() {
    let study = study(plan(&[candidate("rdtscp-lfence", USER)]));
    let restored = |facts: &Value| {
        let directory = Directory::new("plan");
        let mut writer = ContainerWriter::create(&directory.0, origin(&study)).unwrap();
        writer.set_facts(facts).unwrap();
        writer.finish().unwrap();
        EvaluateStudy::restore(&EvidenceContainer::open(&directory.0).unwrap()).map(|_| ())
    };
    let facts = study.plan().unwrap();
    assert!(restored(&facts).is_ok());
    for (field, value) in [
        ("/plan/size/samples", Value::from(0)),
        ("/plan/size/samples", Value::from(u32::MAX)),
        ("/plan/size/ensembles", Value::from(0)),
        ("/plan/budget/secs", Value::from(u64::MAX)),
        ("/plan/times/resolution/secs", Value::from(u64::MAX)),
        ("/plan/candidates/0/executor", Value::from("nowhere")),
        ("/plan/candidates/0/clock", Value::from("sundial")),
    ] {
        let mut changed = facts.clone();
        *changed.pointer_mut(field).unwrap() = value;
        assert!(restored(&changed).is_err(), "{field}");
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
fn events_of_pairs_are_counted_without_a_change_of_the_samples() {
    let methods = [("rdtscp-lfence", USER), ("rdtscp-lfence", KERNEL)];
    let plan = plan(&methods.map(|(name, executor)| candidate(name, executor)));
    let lines = |plan: EvaluatePlan| -> Vec<Value> {
        let records = measured(&mut study(plan));
        let own = records.iter().filter(|record| record.kind == "evaluate");
        own.map(|record| serde_json::from_str(&record.line).unwrap()).collect()
    };
    let counted = lines(EvaluatePlan { counters: Some(counters()), ..plan.clone() });
    for (plain, line) in lines(plan).into_iter().zip(counted) {
        for field in ["total_variance", "mean", "p50", "tsc_step"] {
            assert_eq!(plain[field], line[field], "{field}");
        }
        let events = line["counters"].as_array().unwrap();
        let values: Vec<Option<f64>> = events.iter().map(|event| event["value"].as_f64()).collect();
        if line["executor"] == KERNEL {
            assert_eq!(values, [None; 3]);
            assert!(events[0]["lost"].as_str().unwrap().contains("counts no events"), "{line}");
            continue;
        }
        // An empty pair has no instructions besides its call.
        let expected = [40.0, 41.0, 42.0].map(Some);
        assert_eq!((values, &line["counter_passes"]), (expected.to_vec(), &2.into()));
        let ensembles = line["counter_ensembles"].as_array().unwrap();
        assert!(ensembles.len() == 8 && ensembles.iter().all(|one| *one == serde_json::json!(expected)), "{line}");
    }
}

#[test]
fn an_event_that_is_not_there_ends_the_evaluation_at_once() {
    let mut asked = counters();
    asked.events[1].code = EventCode::new(4, 99);
    let mut study = study(EvaluatePlan { counters: Some(asked), ..plan(&[candidate("rdtscp-lfence", USER)]) });
    let mut records = Vec::<ResultRecord>::new();
    let refused = study.measure(&MachineAnswers::live(), &mut records);
    let Err(StopReason::Failed(Error::Unavailable(error))) = refused else { panic!("{refused:?}") };
    assert_eq!((error.what.as_str(), records.len()), ("the event e1", 0));
}

/// The simulated core runs 32-bit programs at the cost of 64-bit ones.
#[test]
fn methods_in_32_bit_code_have_their_simulated_costs() {
    let clocks = ["lfence-rdtsc-lfence", "rdtscp-lfence"];
    let plan = EvaluatePlan { mode: CodeMode::Bits32, ..plan(&clocks.map(|name| candidate(name, USER))) };
    let mut narrow = study(plan);
    let records = measured(&mut narrow);
    for ResultRecord { kind, line, .. } in records {
        let of_machine = ["machine", "evaluate.tsc"].contains(&kind);
        assert_eq!(line.contains("\"bits\":32"), !of_machine, "{line}");
    }
    for method in &narrow.found.as_ref().unwrap().methods {
        let sampled = method.method.as_ref().unwrap();
        assert_eq!((sampled.tested.mode, sampled.tested.imul_latency), (CodeMode::Bits32, 3.0));
        let overhead = sampled.overhead.unwrap();
        assert!((overhead.value - OVERHEADS[0]).abs() < 15.0, "{overhead:?}");
    }
}
