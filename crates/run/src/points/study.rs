//! The study of many points: runs that share an executor, each recorded when complete.

use super::passes::{PassOrders, combine_passes, draw_blocks};
use super::point::{PointLabel, PointRow, RunPoint};
use super::points_session::PointsSession;
use crate::run_plan::RunPlan;
use crate::study::{self, RunStudy};
use cyclescope_core::error::{Error, RunError};
use cyclescope_exec::{Executor, ExecutorOpener, LockState, failing_opener};
use cyclescope_measure::result::answers::MachineAnswers;
use cyclescope_measure::result::container::{ContainerError, EvidenceContainer, to_json_value};
use cyclescope_measure::result::record::{ErrorRecord, RunRecord};
use cyclescope_measure::study::StudyInfo;
use cyclescope_measure::study::{ResultRecord, StopReason, Study, StudyFollower, StudyProgress, check_stop};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io;
use std::ops::ControlFlow;

/// Name of the study in manifests.
pub const NAME: &str = "points";

/// Entry in the list of studies.
pub const INFO: StudyInfo = StudyInfo {
    name: NAME,
    about: "what a snippet costs at each value of a sweep, or each snippet of a list",
    restore: |container| Ok(Box::new(PointsStudy::restore(container)?)),
    generic: None,
};

/// Makes the record of a failure that ended the run of a point.
pub type ExplainFailure = fn(&RunStudy, Error) -> ErrorRecord;

/// Runs measured with one executor.
pub struct PointsStudy {
    session: PointsSession,
    points: Vec<(RunPoint, PointRun)>,
    /// The machine's facts, as `doctor` prints them.
    machine: Map<String, Value>,
    open: ExecutorOpener,
    explain: ExplainFailure,
    resumed: ResumedPoints,
    /// The rows so far, in the order of the points.
    rows: Vec<Option<PointRow>>,
    lock: Option<LockState>,
}

/// The run of a point; or the record of the failure that prevents it on this machine, such as an
/// instruction that the CPU lacks.
pub type PointRun = Result<Box<RunStudy>, Map<String, Value>>;

/// The result of one pass over a point, or the record of a failure.
type PassResult = Result<RunRecord, Map<String, Value>>;

/// Lines of an interrupted result file.
#[derive(Default)]
pub struct ResumedPoints {
    /// The first line.
    pub head: Option<Value>,
    /// The lines of points.
    pub lines: Vec<Value>,
}

/// All inputs of the study, as written in a manifest.
#[derive(Serialize, Deserialize)]
struct SavedPoints {
    session: PointsSession,
    points: Vec<SavedPoint>,
}

#[derive(Serialize, Deserialize)]
struct SavedPoint {
    point: RunPoint,
    course: SavedPointRun,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SavedPointRun {
    Run(Box<RunPlan>),
    Refused(Map<String, Value>),
}

/// The first line, kind `machine`.
#[derive(Serialize)]
struct PointsHead<'a> {
    #[serde(flatten)]
    machine: &'a Map<String, Value>,
    points: &'a PointsSession,
}

/// The line of a point: a result of kind `run`, or a failure of kind `error`.
#[derive(Serialize)]
struct PointLine<'a, T> {
    point: &'a RunPoint,
    #[serde(flatten)]
    result: &'a T,
}

impl PointsStudy {
    /// Creates the study of these runs, on an executor of the machine with these facts. `explain`
    /// makes the record of a failure; `kept` contains the lines of a result file.
    pub fn new(
        session: PointsSession,
        points: Vec<(PointLabel, PointRun)>,
        machine: Value,
        open: ExecutorOpener,
        explain: ExplainFailure,
        kept: ResumedPoints,
    ) -> PointsStudy {
        let numbered = |(number, (label, course))| (RunPoint { number, label }, course);
        let points = points.into_iter().enumerate().map(numbered).collect();
        PointsStudy::from_points(session, points, machine, open, explain, kept)
    }

    fn from_points(
        session: PointsSession,
        points: Vec<(RunPoint, PointRun)>,
        machine: Value,
        open: ExecutorOpener,
        explain: ExplainFailure,
        kept: ResumedPoints,
    ) -> PointsStudy {
        let rows = vec![None; points.len()];
        let machine = machine.as_object().cloned().unwrap_or_default();
        PointsStudy { session, points, machine, open, explain, resumed: kept, rows, lock: None }
    }

    /// The rows so far, in the order of the points.
    pub fn rows(&self) -> impl Iterator<Item = &PointRow> + Clone {
        self.rows.iter().flatten()
    }

    /// The runs of the points that have one.
    pub fn runs(&self) -> impl Iterator<Item = &RunStudy> {
        self.points.iter().filter_map(|(_, course)| course.as_deref().ok())
    }

    /// The session, including the number of points and the seed.
    pub fn session(&self) -> &PointsSession {
        &self.session
    }

    /// Reads and reports the lines that the result file already has.
    fn take_resumed_lines(&mut self, follow: &mut dyn StudyFollower) -> Result<(), StopReason> {
        for line in std::mem::take(&mut self.resumed.lines) {
            let kind = if line["kind"] == study::NAME { study::NAME } else { ERROR_KIND };
            let record = ResultRecord::from_resumed_line(kind, &line);
            if self.put_row(&record) {
                check_stop(follow.accept_record(record))?;
            }
        }
        Ok(())
    }

    /// Stores the row of a line; false if the line is not of one of these points.
    fn put_row(&mut self, record: &ResultRecord) -> bool {
        let Some(row) = PointRow::from_line(&record.line) else { return false };
        let own = self.points.get(row.point.number).is_some_and(|(point, course)| {
            *point == row.point && (row.text.is_some() || course.as_ref().is_ok_and(|run| has_snippet(run, &row)))
        });
        if own {
            let number = row.point.number;
            self.rows[number] = Some(row);
        }
        own
    }

    /// The points without a row, in the orders of both passes.
    fn unmeasured_points(&self) -> Vec<PassOrders> {
        let mut blocks = draw_blocks(self.points.len(), self.session.seed);
        blocks.iter_mut().flatten().for_each(|order| order.retain(|number| self.rows[*number].is_none()));
        blocks.retain(|[first, _]| !first.is_empty());
        blocks
    }

    /// Measures points in both passes, and reports their lines.
    fn measure_block(
        &mut self,
        [first, second]: &PassOrders,
        mut executor: Option<&mut Box<dyn Executor>>,
        answers: &MachineAnswers,
        follow: &mut dyn StudyFollower,
    ) -> Result<(), StopReason> {
        let mut halves: Vec<Option<PassResult>> = self.points.iter().map(|_| None).collect();
        for number in first {
            self.report_point(*number, "first", follow)?;
            halves[*number] = Some(self.measure_pass(0, *number, executor.as_deref_mut(), answers)?);
        }
        for number in second {
            self.report_point(*number, "second", follow)?;
            let record = match halves[*number].take().expect("the first pass has measured it") {
                Ok(first) => match self.measure_pass(1, *number, executor.as_deref_mut(), answers)? {
                    Ok(second) => Ok(combine_passes([first, second])),
                    failed => failed,
                },
                failed => failed,
            };
            let point = &self.points[*number].0;
            let record = match record {
                Ok(result) => ResultRecord::new(study::NAME, &PointLine { point, result: &result }),
                Err(failed) => ResultRecord::new(ERROR_KIND, &PointLine { point, result: &failed }),
            };
            self.put_row(&record);
            check_stop(follow.accept_record(record))?;
        }
        Ok(())
    }

    /// Reports the point being measured.
    fn report_point(&self, number: usize, pass: &str, follow: &mut dyn StudyFollower) -> Result<(), StopReason> {
        let (done, total) = (self.rows().count(), self.points.len());
        let label = self.points[number].0.label.to_text();
        let message = format!("{done} of {total} points, {label}, {pass} pass");
        check_stop(follow.report_progress(StudyProgress { done: done as u64, total: total as u64, message }))
    }

    /// Measures a point in one of the passes.
    fn measure_pass(
        &mut self,
        pass: usize,
        number: usize,
        executor: Option<&mut Box<dyn Executor>>,
        answers: &MachineAnswers,
    ) -> Result<PassResult, StopReason> {
        let (study, executor) = match (&self.points[number].1, executor) {
            (Ok(study), Some(executor)) => (study, executor.as_mut()),
            (Err(refused), _) => return Ok(Err(refused.clone())),
            (Ok(_), None) => unreachable!("an executor is open where a point has a run"),
        };
        let mut half = study.half_for_pass(pass);
        let result = half.measure_with(executor, answers, &mut SilentFollower);
        self.lock = executor.lock_state().cloned();
        let error = match result {
            Ok(record) => return Ok(Ok(record)),
            Err(error) if is_point_failure(&error) => error,
            Err(error) => return Err(error.into()),
        };
        // The record may name a function of a library, which only this process knows.
        Ok(Err(answers.ask_machine(|| {
            let record = (self.explain)(&half, error);
            failure_fields(&record).map_err(|error| RunError::from_io("keeping a failure", &error))
        })?))
    }
}

/// Whether the row's snippet is that of the run.
fn has_snippet(run: &RunStudy, row: &PointRow) -> bool {
    let own = run.subjects().ok().and_then(|subjects| Some(subjects.first()?.instances.first()?.text().to_string()));
    own == row.snippet
}

/// The fields of a record, as a line contains them besides its kind.
///
/// # Errors
///
/// If it can't be written as JSON.
pub fn failure_fields(record: &ErrorRecord) -> io::Result<Map<String, Value>> {
    Ok(to_json_value(record)?.as_object().cloned().unwrap_or_default())
}

/// The kind of a failure's line.
const ERROR_KIND: &str = "error";

/// Whether a failure concerns only this point, so that others may be measured.
fn is_point_failure(error: &Error) -> bool {
    match error {
        Error::Run(RunError::BadBatch(bad)) => bad.part == "snippet",
        Error::Run(error) => !error.is_harness_failure(),
        Error::BadSnippet(_) => true,
        Error::Unavailable(_) => false,
    }
}

/// Follower for the run of a point; reports nothing.
struct SilentFollower;

impl StudyFollower for SilentFollower {
    fn accept_record(&mut self, _: ResultRecord) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl Study for PointsStudy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self) -> io::Result<Value> {
        let saved = |(point, course): &(RunPoint, PointRun)| {
            let course = match course {
                Ok(run) => SavedPointRun::Run(Box::new(run.saved_plan().clone())),
                Err(refused) => SavedPointRun::Refused(refused.clone()),
            };
            SavedPoint { point: point.clone(), course }
        };
        to_json_value(&SavedPoints { session: self.session.clone(), points: self.points.iter().map(saved).collect() })
    }

    fn restore(container: &EvidenceContainer) -> Result<PointsStudy, ContainerError> {
        let SavedPoints { session, points } = container.facts()?;
        let restored = |(number, SavedPoint { point, course }): (usize, SavedPoint)| {
            if point.number != number {
                return Err(ContainerError::damaged_fact(&format!("points[{number}]"), "it has another number"));
            }
            let course = match course {
                SavedPointRun::Run(run) => Ok(Box::new(RunStudy::from_saved_plan(*run)?)),
                SavedPointRun::Refused(refused) => Err(refused),
            };
            Ok((point, course))
        };
        let points = points.into_iter().enumerate().map(restored).collect::<Result<_, _>>()?;
        let explain = |_: &RunStudy, error: Error| ErrorRecord::from(&error);
        Ok(PointsStudy::from_points(
            session,
            points,
            container.machine()?,
            failing_opener(),
            explain,
            ResumedPoints::default(),
        ))
    }

    fn measure(&mut self, answers: &MachineAnswers, follow: &mut dyn StudyFollower) -> Result<(), StopReason> {
        if let Some(head) = &self.resumed.head {
            check_stop(follow.accept_record(ResultRecord::from_resumed_line("machine", head)))?;
        }
        self.take_resumed_lines(follow)?;
        let blocks = self.unmeasured_points();
        if blocks.is_empty() {
            return Ok(());
        }
        let mut open = blocks.iter().flat_map(|[first, _]| first);
        let runs = open.any(|number| self.points[*number].1.is_ok());
        let mut executor = runs.then(|| answers.open_executor(|| (self.open)())).transpose()?;
        if self.resumed.head.is_none() {
            let head = PointsHead { machine: &self.machine, points: &self.session };
            check_stop(follow.accept_record(ResultRecord::new("machine", &head)))?;
        }
        blocks.iter().try_for_each(|orders| self.measure_block(orders, executor.as_mut(), answers, follow))
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.lock.as_ref()
    }
}
