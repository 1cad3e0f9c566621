//! A replay of recorded answers gives the recorded result, on simulated machines.

use cyclescope::asm::to_hex;
use cyclescope::error::{Error, FaultCause, RunError};
use cyclescope::executor::{Batch, Capabilities, Executor, Sample};
use cyclescope::machine::Machine;
use cyclescope::machine::fact::Fact;
use cyclescope::measure::{LengthenBy, Plan, Precision, measure_cost};
use cyclescope::result::answers::MachineAnswers;
use cyclescope::result::container::{
    ContainerError, ContainerPart, ContainerWriter, EvidenceContainer, EvidenceOrigin, EvidenceRecorder,
};
use cyclescope::snippet::Snippet;
use cyclescope::study::run::{NAME, RunStudy};
use cyclescope::study::{ResultRecord, StopReason, Study, replay_evidence};
use cyclescope_sim::{Scenario, SimulatedExecutor};
use std::io::Read;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

const PRECISION: Precision = Precision { cycles: 0.0, share: 1e-9, cap: None };

fn plan(budget: Duration) -> Plan {
    Plan { rounds: 6, rounds_least: 6, layouts: 4, layouts_most: 64, precision: PRECISION, budget, ..Plan::simulated() }
}

/// Never executed: the simulated machine has costs but no instructions.
fn snippet() -> Snippet {
    Snippet::new(vec![0x0f, 0x0b], Vec::new(), "simulated")
}

/// A simulated machine whose time advances by 7 ms per query. If `fails`, its third batch fails.
struct Timed {
    core: SimulatedExecutor,
    asked: std::cell::Cell<u32>,
    batches: u32,
    fails: bool,
}

impl Timed {
    fn new(fails: bool) -> Timed {
        let core = SimulatedExecutor::new(Scenario::default(), 11);
        Timed { core, asked: Default::default(), batches: 0, fails }
    }
}

impl Executor for Timed {
    fn capabilities(&self) -> &Capabilities {
        self.core.capabilities()
    }

    fn machine(&self) -> &Machine {
        self.core.machine()
    }

    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        self.batches += 1;
        self.core.stream(batch, take)?;
        match self.fails && self.batches == 3 {
            true => {
                Err(RunError::Fault { signal: "SIGILL", address: 1 << 40, instruction: None, cause: FaultCause::Other })
            }
            false => Ok(()),
        }
    }

    fn had_exclusive_cpu(&self) -> Fact<bool> {
        Fact::Known(self.batches < 3)
    }

    fn restored_state(&self) -> Vec<&'static str> {
        vec!["CR8"]
    }

    fn now(&self) -> Duration {
        self.asked.set(self.asked.get() + 1);
        Duration::from_millis(7) * self.asked.get()
    }

    fn pause(&mut self, _time: Duration) {}
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        Folder(std::env::temp_dir().join(format!("cyclescope-replay-{}-{name}", std::process::id())))
    }

    /// Measures, and keeps the evidence in this folder.
    fn keep(&self, study: &mut RunStudy) -> (Vec<ResultRecord>, Result<(), StopReason>) {
        let machine = serde_json::Value::Null;
        let origin = EvidenceOrigin { study: NAME.to_string(), repro: "cyclescope run x".to_string(), machine };
        let evidence = Rc::new(EvidenceRecorder::create(&self.0, origin).unwrap());
        evidence.write_with(|writer| writer.set_facts(&study.plan()?));
        let mut records = Vec::new();
        let ended = study.measure(&MachineAnswers::recording_to(evidence.clone()), &mut records);
        records.iter().for_each(|record| {
            evidence.write_with(|writer| writer.add_result_line(&record.line)).unwrap();
        });
        evidence.finish().unwrap();
        (records, ended)
    }

    fn container(&self) -> EvidenceContainer {
        EvidenceContainer::open(&self.0).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A run on a machine whose third batch fails if `fails`.
fn study(plan: Plan, fails: bool) -> RunStudy {
    let open = Box::new(move || Ok(Box::new(Timed::new(fails)) as Box<dyn Executor>));
    RunStudy::new(&snippet().into(), plan, PRECISION, &Machine::detect(), "cyclescope run x".to_string(), open)
}

/// Replays a study over evidence.
fn again(container: &EvidenceContainer, study: &mut RunStudy) -> (Vec<ResultRecord>, Result<(), StopReason>, bool) {
    let answers = MachineAnswers::from_container(container).unwrap();
    let mut records = Vec::new();
    let ended = study.measure(&answers, &mut records);
    (records, ended, answers.is_exhausted())
}

#[test]
fn a_loop_that_only_earlier_versions_made_is_refused_with_its_reason() {
    let folder = Folder::new("outdated");
    let plan = Plan { loop_count: Some(10), lengthen: LengthenBy::LoopedCopies, ..plan(Duration::from_millis(1)) };
    let (_, ended) = folder.keep(&mut study(plan, false));
    assert_eq!(ended, Ok(()));
    let mut container = folder.container();
    assert!(RunStudy::restore(&container).is_ok());
    let carried = Snippet::parse("cmovz rax, rbx; test rcx, rdx").unwrap();
    container.manifest.facts["subject"]["instances"][0]["code"] = to_hex(carried.code()).into();
    let refused = RunStudy::restore(&container).map(drop).unwrap_err();
    assert!(matches!(refused, ContainerError::Outdated { .. }), "{refused}");
    assert!(refused.to_string().contains("has no loop"), "{refused}");
}

#[test]
fn evidence_of_earlier_versions_has_one_other_variant_or_none() {
    let folder = Folder::new("variants");
    let (_, ended) = folder.keep(&mut study(plan(Duration::from_millis(1)), false));
    assert_eq!(ended, Ok(()));
    let mut container = folder.container();
    let subject = container.manifest.facts["subject"].clone();
    let mut variants = |versus: serde_json::Value| {
        container.manifest.facts["versus"] = versus;
        RunStudy::restore(&container).map(|study| study.subjects().unwrap().len())
    };
    assert_eq!(variants(serde_json::Value::Null).unwrap(), 1);
    assert_eq!(variants(subject.clone()).unwrap(), 2);
    assert_eq!(variants(vec![subject.clone(); 3].into()).unwrap(), 4);
    assert!(matches!(variants(vec![subject; 16].into()), Err(ContainerError::Damaged { .. })));
}

#[test]
fn a_replay_repeats_a_run_with_all_its_decisions() {
    let folder = Folder::new("same");
    // Time for some batches beyond the first.
    let plan = plan(Duration::from_millis(60));
    let (records, ended) = folder.keep(&mut study(plan.clone(), false));
    assert_eq!(ended, Ok(()));
    let container = folder.container();
    let mut restored = RunStudy::restore(&container).unwrap();
    assert_eq!(again(&container, &mut restored), (records.clone(), Ok(()), true));
    let record = restored.record.unwrap();
    // It continued until the budget was spent.
    assert!(record.elapsed_s >= plan.budget.as_secs_f64(), "{} s", record.elapsed_s);
    // The executor's report of its surroundings is replayed too.
    assert!(record.caveats.iter().any(|caveat| caveat.text.contains("another run")), "{:?}", record.caveats);
    assert_eq!(record.changed, ["CR8"]);
    assert_eq!(replay_evidence(&container), Ok(records.clone()));
    let line = container.records().unwrap().next().unwrap().unwrap();
    assert_eq!(line, serde_json::from_str::<serde_json::Value>(&records[0].line).unwrap());
}

#[test]
fn an_error_is_replayed_with_all_its_details() {
    let folder = Folder::new("error");
    let (_, ended) = folder.keep(&mut study(plan(Duration::from_secs(1)), true));
    let container = folder.container();
    let again = again(&container, &mut RunStudy::restore(&container).unwrap());
    assert_eq!(again, (Vec::new(), ended.clone(), true));
    assert!(matches!(ended, Err(StopReason::Failed(Error::Run(RunError::Fault { signal: "SIGILL", .. })))));
}

#[test]
fn a_different_course_is_an_error_without_a_number() {
    let folder = Folder::new("other");
    let plan = plan(Duration::from_millis(60));
    folder.keep(&mut study(plan.clone(), false)).1.unwrap();
    let container = folder.container();
    for plan in [Plan { seed: 4, ..plan.clone() }, Plan { rounds: 7, ..plan.clone() }] {
        let (records, ended, exhausted) = again(&container, &mut study(plan, false));
        let Err(StopReason::Failed(Error::Run(RunError::Replay { how }))) = ended else { panic!("{ended:?}") };
        assert!(how.contains("another batch") && records.is_empty() && !exhausted, "{how}");
    }
    // More than recorded.
    let answers = MachineAnswers::from_container(&container).unwrap();
    let ends = (0..2).map(|_| study(plan.clone(), false).measure(&answers, &mut Vec::new()));
    let ends: Vec<Result<(), StopReason>> = ends.collect();
    let Err(StopReason::Failed(Error::Run(error))) = &ends[1] else { panic!("{ends:?}") };
    assert!(ends[0].is_ok() && error.to_string().contains("ends here"), "{error}");
}

#[test]
fn an_impossible_plan_is_refused() {
    let folder = Folder::new("forged");
    folder.keep(&mut study(plan(Duration::from_millis(1)), false)).1.unwrap();
    let manifest = folder.container().manifest;
    for (field, value) in [("/plan/rounds", 0.into()), ("/subject/instances", serde_json::json!([])), ("", ().into())] {
        let mut facts = manifest.facts.clone();
        *facts.pointer_mut(field).unwrap() = value;
        let changed = Folder::new("impossible");
        let mut writer = ContainerWriter::create(&changed.0, manifest.origin.clone()).unwrap();
        writer.set_facts(&facts).unwrap();
        writer.finish().unwrap();
        let Err(error) = RunStudy::restore(&changed.container()) else { panic!("{field}") };
        assert!(error.to_string().contains("facts"), "{error}");
    }
}

/// The questions of a small study, and their answers.
fn ask(answers: &MachineAnswers) -> Result<(u32, String, Vec<Sample>), Error> {
    let plan = plan(Duration::from_millis(1));
    let mut executor = answers.open_executor(|| Ok(Box::new(Timed::new(false))))?;
    let number = answers.ask_machine(|| {
        // Readings taken inside the question are not recorded as answers.
        measure_cost(executor.as_mut(), &snippet(), &plan)?;
        Ok::<u32, Error>(7)
    })?;
    let measured = format!("{:?}", measure_cost(executor.as_mut(), &snippet(), &plan)?.estimate);
    let others = || Ok(vec![Sample { start: 1, end: 9 }; 2]);
    Ok((number, measured, answers.take_readings(serde_json::json!("others"), 2, others)?))
}

#[test]
fn recorded_answers_are_replayed() {
    let folder = Folder::new("answers");
    let origin = EvidenceOrigin { study: "test".to_string(), repro: String::new(), machine: ().into() };
    let evidence = Rc::new(EvidenceRecorder::create(&folder.0, origin).unwrap());
    let answered = ask(&MachineAnswers::recording_to(evidence.clone())).unwrap();
    evidence.finish().unwrap();
    let container = folder.container();
    let answers = MachineAnswers::from_container(&container).unwrap();
    assert!(!answers.is_exhausted());
    assert_eq!(ask(&answers), Ok(answered));
    assert!(answers.is_exhausted() && ask(&answers).is_err());
    // After an answer to another question no further answer is given.
    let answers = MachineAnswers::from_container(&container).unwrap();
    assert!(answers.take_readings(serde_json::json!("others"), 2, || Ok(Vec::new())).is_err());
    assert!(ask(&answers).is_err() && !answers.is_exhausted());
}

const PARTS: [(ContainerPart, &str); 2] =
    [(ContainerPart::Programs, "programs.jsonl.gz"), (ContainerPart::Layouts, "layouts.jsonl.gz")];

impl Folder {
    /// The lines of a file.
    fn lines(&self, file: &str) -> Vec<String> {
        let mut text = String::new();
        let packed = std::fs::File::open(self.0.join(file)).unwrap();
        flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
        text.lines().map(str::to_string).collect()
    }

    /// Writes this evidence anew after a change of its programs and layouts, and replays it.
    fn replay_changed(&self, change: impl FnOnce(&mut [Vec<String>; 2])) -> Result<Vec<ResultRecord>, StopReason> {
        let (other, container) = (Folder::new("changed"), self.container());
        let mut writer = ContainerWriter::create(&other.0, container.manifest.origin.clone()).unwrap();
        writer.set_facts(&container.manifest.facts).unwrap();
        let mut lines = PARTS.map(|(_, file)| self.lines(file));
        change(&mut lines);
        for ((part, _), lines) in PARTS.into_iter().zip(lines) {
            lines.iter().for_each(|line| writer.add_item(part, format!("{line}\n").as_bytes()).unwrap());
        }
        let mut events = container.events().unwrap();
        while let Some((event, samples)) = events.take_event(usize::MAX).unwrap() {
            writer.add_event(&event, &samples).unwrap();
        }
        writer.finish().unwrap();
        replay_evidence(&other.container())
    }
}

/// Lines of a file that a test changes, one after the other.
const LINES_TRIED: usize = 8;

#[test]
fn programs_and_layouts_that_the_study_does_not_build_are_detected() {
    let folder = Folder::new("rebuilt");
    let (records, _) = folder.keep(&mut study(plan(Duration::from_millis(1)), false));
    assert_eq!(folder.replay_changed(|_| ()), Ok(records));
    for (at, (_, file)) in PARTS.into_iter().enumerate() {
        let count = folder.lines(file).len();
        for number in (0..count).step_by(count.div_ceil(LINES_TRIED)) {
            let changed = folder.replay_changed(|lines| {
                let line = &mut lines[at][number];
                let digit = line.rfind(|digit: char| digit.is_ascii_digit() && digit != '9').unwrap();
                line.replace_range(digit..=digit, "9");
            });
            let error = changed.expect_err("another part");
            assert!(matches!(error, StopReason::Failed(Error::Run(RunError::Replay { .. }))), "{file} {number}");
        }
        let shorter = folder.replay_changed(|lines| drop(lines[at].pop()));
        assert!(shorter.is_err(), "{file} without its last line");
        let longer = folder.replay_changed(|lines| lines[at].push("{}".to_string()));
        assert!(longer.is_err(), "{file} with a line more");
    }
}
