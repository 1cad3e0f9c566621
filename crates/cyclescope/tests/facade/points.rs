//! Many points with one executor, on a simulated machine that drifts or faults.

use cyclescope::caveat::CaveatKind;
use cyclescope::error::{Error, FaultCause, RunError};
use cyclescope::executor::{Batch, Capabilities, Executor, ExecutorOpener, Sample};
use cyclescope::machine::Machine;
use cyclescope::measure::{Plan, Precision};
use cyclescope::record::ErrorRecord;
use cyclescope::result::answers::MachineAnswers;
use cyclescope::snippet::Snippet;
use cyclescope::study::points::{PointLabel, PointRow, PointsSession, PointsStudy, ResumedPoints};
use cyclescope::study::run::RunStudy;
use cyclescope::study::{RecordRole, ResultRecord, StopReason, Study};
use cyclescope_sim::{Scenario, SimulatedExecutor};
use std::time::Duration;

const PRECISION: Precision = Precision { cycles: 0.01, share: 0.02, cap: None };
/// The snippet of faulting points, and that of all others.
const FAULTING: [u8; 2] = [0x0f, 0x0b];
const OTHER: [u8; 3] = [0x48, 0xff, 0xc0];

fn plan() -> Plan {
    Plan {
        imul_latency: Some(3.0),
        warm_up: Some(1),
        rounds: 4,
        layouts: 4,
        layouts_most: 4,
        precision: PRECISION,
        ..Plan::simulated()
    }
}

/// A machine that slows all code by a share with each batch. One snippet faults, or breaks the
/// harness.
struct Drifting {
    core: SimulatedExecutor,
    drift: f64,
    batches: u32,
    /// Time on the machines of earlier batches.
    earlier: Duration,
    is_broken: bool,
}

impl Executor for Drifting {
    fn capabilities(&self) -> &Capabilities {
        self.core.capabilities()
    }

    fn machine(&self) -> &Machine {
        self.core.machine()
    }

    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        let faults = |code: &[u8]| code.windows(FAULTING.len()).any(|bytes| bytes == FAULTING);
        if batch.programs.iter().any(|program| faults(&program.code()[program.body_range()])) {
            return Err(match self.is_broken {
                true => RunError::System { doing: "measuring", errno: 5 },
                false => RunError::Fault { signal: "SIGILL", address: 1, instruction: None, cause: FaultCause::Other },
            });
        }
        self.batches += 1;
        let cost = 10.0 * (1.0 + self.drift * f64::from(self.batches));
        self.earlier += self.core.now();
        self.core = SimulatedExecutor::new(Scenario { cost, ..Scenario::default() }, 11 + u64::from(self.batches));
        self.core.stream(batch, take)
    }

    fn now(&self) -> Duration {
        self.earlier + self.core.now()
    }

    fn pause(&mut self, time: Duration) {
        self.core.pause(time);
    }
}

fn open(is_broken: bool, drift: f64) -> ExecutorOpener {
    Box::new(move || {
        let core = SimulatedExecutor::new(Scenario::default(), 11);
        Ok(Box::new(Drifting { core, drift, batches: 0, earlier: Duration::ZERO, is_broken }) as Box<dyn Executor>)
    })
}

const POINTS: u64 = 24;

/// A study in which the points with these numbers fault.
fn study(faulting: &[u64], is_broken: bool, drift: f64, kept: ResumedPoints) -> PointsStudy {
    let point = |value: u64| {
        let code = if faulting.contains(&value) { FAULTING.to_vec() } else { OTHER.to_vec() };
        let snippet = Snippet::new(code, Vec::new(), "simulated");
        let machine = Machine::detect();
        let run = RunStudy::new(&snippet.into(), plan(), PRECISION, &machine, "x".to_string(), open(false, 0.0));
        (PointLabel::Value { variable: "N".to_string(), value }, Ok(Box::new(run)))
    };
    let session = PointsSession {
        version: String::new(),
        command: Vec::new(),
        seed: 3,
        points: POINTS as usize,
        identity: String::new(),
        method: PointsSession::METHOD,
    };
    let explain = |_: &RunStudy, error: Error| ErrorRecord::from(&error);
    PointsStudy::new(session, (0..POINTS).map(point).collect(), "machine".into(), open(is_broken, drift), explain, kept)
}

fn measured(study: &mut PointsStudy) -> (Vec<ResultRecord>, Result<(), StopReason>) {
    let mut records = Vec::new();
    let ended = study.measure(&MachineAnswers::live(), &mut records);
    (records, ended)
}

/// The numbers of points in measured order.
fn order(records: &[ResultRecord]) -> Vec<usize> {
    let line = |record: &ResultRecord| serde_json::from_str::<serde_json::Value>(&record.line).unwrap();
    let numbers = records.iter().filter_map(|record| line(record)["point"]["number"].as_u64());
    numbers.map(|number| number as usize).collect()
}

/// The ends of each point's interval, and whether its two passes disagree.
fn found(drift: f64) -> Vec<([f64; 2], bool)> {
    let mut study = study(&[], false, drift, ResumedPoints::default());
    let (_, ended) = measured(&mut study);
    assert_eq!(ended, Ok(()));
    let ends_and_disagreement = |row: &PointRow| {
        let cost = row.measured_cost().expect("a number");
        let ends = [cost.low, cost.high].map(|end| end.expect("a bound"));
        (ends, row.caveats.iter().any(|caveat| caveat.code == CaveatKind::PassesDisagree))
    };
    study.rows().map(ends_and_disagreement).collect()
}

/// The machine slows down by a half during the measurement. All points cost the same.
#[test]
fn disagreeing_passes_give_a_caveat_and_an_interval_with_both() {
    let drifting = found(0.001);
    assert_eq!(drifting.len(), POINTS as usize);
    let disagreeing = drifting.iter().filter(|(_, disagrees)| *disagrees).count();
    assert!(2 * disagreeing > drifting.len(), "{drifting:?}");
    let overlap = |one: [f64; 2], other: [f64; 2]| one[0] <= other[1] && other[0] <= one[1];
    let pairs = |all: &[([f64; 2], bool)]| -> usize {
        all.iter().map(|(one, _)| all.iter().filter(|(other, _)| overlap(*one, *other)).count()).sum()
    };
    assert!(10 * pairs(&drifting) > 9 * drifting.len().pow(2), "{drifting:?}");
    let steady = found(0.0);
    assert!(steady.iter().filter(|(_, disagrees)| *disagrees).count() <= 4, "{steady:?}");
    assert!(steady.iter().all(|(ends, _)| overlap(*ends, [10.0, 10.0]) && ends[1] - ends[0] < 0.3), "{steady:?}");
}

#[test]
fn a_fault_becomes_a_row_and_a_harness_failure_ends_the_study() {
    let mut faulting = study(&[3, 8], false, 0.0, ResumedPoints::default());
    let (records, ended) = measured(&mut faulting);
    assert_eq!(ended, Ok(()));
    let failed: Vec<usize> =
        faulting.rows().filter(|row| row.status() == "failed").map(|row| row.point.number).collect();
    assert_eq!((failed, faulting.rows().count()), (vec![3, 8], POINTS as usize));
    assert!(faulting.rows().filter_map(|row: &PointRow| row.exit).all(|exit| exit == 4));
    assert_eq!(records.iter().filter(|record| record.kind == "error").count(), 2);
    let mut broken = study(&[3], true, 0.0, ResumedPoints::default());
    let (records, ended) = measured(&mut broken);
    let at_most = records.len() <= POINTS as usize;
    assert!(matches!(ended, Err(StopReason::Failed(Error::Run(RunError::System { .. })))) && at_most, "{ended:?}");
}

#[test]
fn recorded_points_are_not_measured_again() {
    let (records, _) = measured(&mut study(&[3], false, 0.0, ResumedPoints::default()));
    let line = |record: &ResultRecord| serde_json::from_str::<serde_json::Value>(&record.line).unwrap();
    let lines: Vec<serde_json::Value> = records.iter().map(line).collect();
    for whole in [1, 2, 9, lines.len()] {
        let kept = ResumedPoints { head: Some(lines[0].clone()), lines: lines[1..whole].to_vec() };
        let (again, ended) = measured(&mut study(&[3], false, 0.0, kept));
        assert_eq!((ended, again.len()), (Ok(()), records.len()));
        let resumed = again.iter().filter(|record| record.role == RecordRole::Resumed).count();
        assert_eq!(resumed, whole);
        assert_eq!(again[..whole].iter().map(line).collect::<Vec<_>>(), lines[..whole]);
        assert_eq!(order(&again), order(&records));
    }
    // The line of another sweep is ignored.
    let mut foreign = lines[1].clone();
    foreign["point"]["value"] = 99.into();
    let kept = ResumedPoints { head: Some(lines[0].clone()), lines: vec![foreign] };
    assert_eq!(measured(&mut study(&[3], false, 0.0, kept)).0.len(), records.len());
}
