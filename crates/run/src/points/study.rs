//! The study: runs that share an executor, each recorded when it is complete.

use super::passes::{Orders, blocks, both};
use super::point::{Label, Point, Row};
use super::session::PointsSession;
use crate::study::{self, RunPlan, RunStudy};
use cyclescope_core::error::{Error, RunError};
use cyclescope_exec::{Executor, LockState, Open, closed};
use cyclescope_measure::result::answers::Answers;
use cyclescope_measure::result::container::{Container, ContainerError, plain};
use cyclescope_measure::result::record::{ErrorRecord, RunRecord};
use cyclescope_measure::study::StudyInfo;
use cyclescope_measure::study::{Follow, Progress, Record, Stop, Study, going};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io;
use std::ops::ControlFlow;

/// Its name.
pub const NAME: &str = "points";

/// How it is found.
pub const INFO: StudyInfo = StudyInfo {
    name: NAME,
    about: "what a snippet costs at each value of a sweep, or each snippet of a list",
    restore: |container| Ok(Box::new(PointsStudy::restore(container)?)),
    plain: None,
};

/// Makes the record of a failure that ended the run of a point.
pub type Explain = fn(&RunStudy, Error) -> ErrorRecord;

/// Runs that are measured with one executor.
pub struct PointsStudy {
    session: PointsSession,
    points: Vec<(Point, Course)>,
    /// The machine's facts, as `doctor` prints them.
    machine: Map<String, Value>,
    open: Open,
    explain: Explain,
    kept: Kept,
    /// The rows that there are, in the order of the points.
    rows: Vec<Option<Row>>,
    lock: Option<LockState>,
}

/// The run of a point, or the record of the failure for which there can be none here, such as an instruction that the CPU does
/// not have.
pub type Course = Result<Box<RunStudy>, Map<String, Value>>;

/// What one pass says of a point: its result, or the record of a failure.
type Half = Result<RunRecord, Map<String, Value>>;

/// What a result file has of points that were interrupted.
#[derive(Default)]
pub struct Kept {
    /// The first line.
    pub head: Option<Value>,
    /// The lines of points.
    pub lines: Vec<Value>,
}

/// What decides the course, as a manifest has it.
#[derive(Serialize, Deserialize)]
struct Saved {
    session: PointsSession,
    points: Vec<SavedPoint>,
}

#[derive(Serialize, Deserialize)]
struct SavedPoint {
    point: Point,
    course: SavedCourse,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SavedCourse {
    Run(Box<RunPlan>),
    Refused(Map<String, Value>),
}

/// The first line, kind `machine`.
#[derive(Serialize)]
struct MachineLine<'a> {
    #[serde(flatten)]
    machine: &'a Map<String, Value>,
    points: &'a PointsSession,
}

/// The line of a point: a result of kind `run`, or a failure of kind `error`.
#[derive(Serialize)]
struct PointLine<'a, T> {
    point: &'a Point,
    #[serde(flatten)]
    result: &'a T,
}

impl PointsStudy {
    /// Of these runs, with an executor of the machine whose facts these are. `explain` makes the record of a failure, and
    /// `kept` is what a file has already.
    pub fn new(
        session: PointsSession,
        points: Vec<(Label, Course)>,
        machine: Value,
        open: Open,
        explain: Explain,
        kept: Kept,
    ) -> PointsStudy {
        let numbered = |(number, (label, course))| (Point { number, label }, course);
        let points = points.into_iter().enumerate().map(numbered).collect();
        PointsStudy::of(session, points, machine, open, explain, kept)
    }

    fn of(
        session: PointsSession,
        points: Vec<(Point, Course)>,
        machine: Value,
        open: Open,
        explain: Explain,
        kept: Kept,
    ) -> PointsStudy {
        let rows = vec![None; points.len()];
        let machine = machine.as_object().cloned().unwrap_or_default();
        PointsStudy { session, points, machine, open, explain, kept, rows, lock: None }
    }

    /// The rows that there are, in the order of the points.
    pub fn rows(&self) -> impl Iterator<Item = &Row> + Clone {
        self.rows.iter().flatten()
    }

    /// The runs of the points that have one.
    pub fn runs(&self) -> impl Iterator<Item = &RunStudy> {
        self.points.iter().filter_map(|(_, course)| course.as_deref().ok())
    }

    /// How many points there are, and the seed of everything that is random.
    pub fn session(&self) -> &PointsSession {
        &self.session
    }

    /// Takes the lines that a file has already.
    fn known(&mut self, follow: &mut dyn Follow) -> Result<(), Stop> {
        for line in std::mem::take(&mut self.kept.lines) {
            let kind = if line["kind"] == study::NAME { study::NAME } else { ERROR };
            let record = Record::resumed(kind, &line);
            if self.put(&record) {
                going(follow.record(record))?;
            }
        }
        Ok(())
    }

    /// Takes the row of a line; false where it is none of these points'.
    fn put(&mut self, record: &Record) -> bool {
        let Ok(row) = Row::read(&record.line) else { return false };
        let own = self.points.get(row.point.number).is_some_and(|(point, _)| *point == row.point);
        if own {
            let number = row.point.number;
            self.rows[number] = Some(row);
        }
        own
    }

    /// The points that have no row yet, in the orders of both passes.
    fn open_points(&self) -> Vec<Orders> {
        let mut blocks = blocks(self.points.len(), self.session.seed);
        blocks.iter_mut().flatten().for_each(|order| order.retain(|number| self.rows[*number].is_none()));
        blocks.retain(|[first, _]| !first.is_empty());
        blocks
    }

    /// Measures points in both passes, and takes and tells their lines.
    fn block(
        &mut self,
        [first, second]: &Orders,
        mut executor: Option<&mut Box<dyn Executor>>,
        answers: &Answers,
        follow: &mut dyn Follow,
    ) -> Result<(), Stop> {
        let mut halves: Vec<Option<Half>> = self.points.iter().map(|_| None).collect();
        for number in first {
            self.tell(*number, "first", follow)?;
            halves[*number] = Some(self.pass(0, *number, executor.as_deref_mut(), answers)?);
        }
        for number in second {
            self.tell(*number, "second", follow)?;
            let record = match halves[*number].take().expect("the first pass has measured it") {
                Ok(first) => match self.pass(1, *number, executor.as_deref_mut(), answers)? {
                    Ok(second) => Ok(both([first, second])),
                    failed => failed,
                },
                failed => failed,
            };
            let point = &self.points[*number].0;
            let record = match record {
                Ok(result) => Record::new(study::NAME, &PointLine { point, result: &result }),
                Err(failed) => Record::new(ERROR, &PointLine { point, result: &failed }),
            };
            self.put(&record);
            going(follow.record(record))?;
        }
        Ok(())
    }

    /// Tells which point is measured now.
    fn tell(&self, number: usize, pass: &str, follow: &mut dyn Follow) -> Result<(), Stop> {
        let (done, total) = (self.rows().count(), self.points.len());
        let label = self.points[number].0.label.text();
        let message = format!("{done} of {total} points, {label}, {pass} pass");
        going(follow.progress(Progress { done: done as u64, total: total as u64, message }))
    }

    /// Measures a point in one of the passes.
    fn pass(
        &mut self,
        pass: usize,
        number: usize,
        executor: Option<&mut Box<dyn Executor>>,
        answers: &Answers,
    ) -> Result<Half, Stop> {
        let (study, executor) = match (&self.points[number].1, executor) {
            (Ok(study), Some(executor)) => (study, executor.as_mut()),
            (Err(refused), _) => return Ok(Err(refused.clone())),
            (Ok(_), None) => unreachable!("an executor is open where a point has a run"),
        };
        let mut half = study.half(pass);
        let result = half.measured(executor, answers, &mut Quiet);
        self.lock = executor.lock_state().cloned();
        let error = match result {
            Ok(record) => return Ok(Ok(record)),
            Err(error) if is_of_the_point(&error) => error,
            Err(error) => return Err(error.into()),
        };
        // It may name a function of a library, which only this process knows.
        Ok(Err(answers.get(|| {
            let record = (self.explain)(&half, error);
            fields(&record).map_err(|error| RunError::io("keeping a failure", &error))
        })?))
    }
}

/// The fields of a record, as a line has them beside its kind.
///
/// # Errors
///
/// Where it can't be written as JSON.
pub fn fields(record: &ErrorRecord) -> io::Result<Map<String, Value>> {
    Ok(plain(record)?.as_object().cloned().unwrap_or_default())
}

/// The kind of a failure's line.
const ERROR: &str = "error";

/// Whether a failure is of this point, so that others may be measured.
fn is_of_the_point(error: &Error) -> bool {
    match error {
        Error::Run(RunError::BadBatch(bad)) => bad.part == "snippet",
        Error::Run(error) => !error.is_of_the_harness(),
        Error::BadSnippet(_) => true,
        Error::Unavailable(_) => false,
    }
}

/// Follows the run of a point, which tells nothing of its own.
struct Quiet;

impl Follow for Quiet {
    fn record(&mut self, _: Record) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl Study for PointsStudy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self) -> io::Result<Value> {
        let saved = |(point, course): &(Point, Course)| {
            let course = match course {
                Ok(run) => SavedCourse::Run(Box::new(run.saved().clone())),
                Err(refused) => SavedCourse::Refused(refused.clone()),
            };
            SavedPoint { point: point.clone(), course }
        };
        plain(&Saved { session: self.session.clone(), points: self.points.iter().map(saved).collect() })
    }

    fn restore(container: &Container) -> Result<PointsStudy, ContainerError> {
        let Saved { session, points } = container.facts()?;
        let restored = |(number, SavedPoint { point, course }): (usize, SavedPoint)| {
            if point.number != number {
                return Err(ContainerError::fact(&format!("points[{number}]"), "it has another number"));
            }
            let course = match course {
                SavedCourse::Run(run) => Ok(Box::new(RunStudy::restored(*run)?)),
                SavedCourse::Refused(refused) => Err(refused),
            };
            Ok((point, course))
        };
        let points = points.into_iter().enumerate().map(restored).collect::<Result<_, _>>()?;
        let explain = |_: &RunStudy, error: Error| ErrorRecord::from(&error);
        Ok(PointsStudy::of(session, points, container.machine()?, closed(), explain, Kept::default()))
    }

    fn measure(&mut self, answers: &Answers, follow: &mut dyn Follow) -> Result<(), Stop> {
        if let Some(head) = &self.kept.head {
            going(follow.record(Record::resumed("machine", head)))?;
        }
        self.known(follow)?;
        let blocks = self.open_points();
        if blocks.is_empty() {
            return Ok(());
        }
        let mut open = blocks.iter().flat_map(|[first, _]| first);
        let runs = open.any(|number| self.points[*number].1.is_ok());
        let mut executor = runs.then(|| answers.executor(|| (self.open)())).transpose()?;
        if self.kept.head.is_none() {
            let head = MachineLine { machine: &self.machine, points: &self.session };
            going(follow.record(Record::new("machine", &head)))?;
        }
        blocks.iter().try_for_each(|orders| self.block(orders, executor.as_mut(), answers, follow))
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.lock.as_ref()
    }
}
