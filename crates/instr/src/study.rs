//! The study behind `instr`: a survey whose rows are recorded as they are made, and that can be resumed.

use super::plan::InstrPlan;
use super::rows::row::Row;
use super::selection::full_name;
use super::session::{GaugeRecord, MachineLine};
use super::survey::{Event, Known, Survey, SurveyProgress};
use super::tables::summary::Summary;
use crate::forms::wanted::WantedForm;
use cyclescope_exec::{LockState, Open, closed};
use cyclescope_measure::result::answers::Answers;
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::result::container::{Container, ContainerError, plain};
use cyclescope_measure::study::StudyInfo;
use cyclescope_measure::study::{Follow, Progress, Record, Role, Stop, Study, going};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;

/// Its name.
pub const NAME: &str = "instr";

/// How it is found.
pub const INFO: StudyInfo = StudyInfo {
    name: NAME,
    about: "latency and reciprocal throughput of instructions",
    restore: |container| Ok(Box::new(InstrStudy::restore(container)?)),
    plain: None,
};

/// A survey of some forms.
pub struct InstrStudy {
    plan: InstrPlan,
    forms: Vec<WantedForm>,
    /// The machine's facts, as `doctor` prints them.
    machine: Value,
    repro: String,
    open: Open,
    kept: Kept,
    /// The rows that there are, in the order of the selection.
    pub rows: Rows,
    /// What came of it, and the seconds that it took.
    pub found: Option<(Summary, f64)>,
    lock: Option<LockState>,
}

/// What a result file has of a survey that was interrupted.
#[derive(Default)]
pub struct Kept {
    /// The first line, and what links cost as it says.
    pub head: Option<(Value, GaugeRecord)>,
    /// The rows.
    pub rows: Vec<Row>,
    /// What passes found of other forms.
    pub parts: Vec<Value>,
}

/// Rows in the order of the forms.
#[derive(Default)]
pub struct Rows {
    rows: Vec<Option<Row>>,
    /// Where each form's row belongs.
    places: HashMap<String, usize>,
    /// How many there are.
    complete: usize,
}

impl Rows {
    fn new(forms: &[WantedForm]) -> Rows {
        let place = |(index, wanted): (usize, &WantedForm)| (full_name(wanted), index);
        let places = forms.iter().enumerate().map(place).collect();
        Rows { rows: vec![None; forms.len()], places, complete: 0 }
    }

    /// Takes a row, and returns its place; none where it is of no form of these.
    fn put(&mut self, row: Row) -> Option<usize> {
        let place = *self.places.get(&form_name(&row))?;
        self.complete += usize::from(self.rows[place].replace(row).is_none());
        Some(place)
    }

    /// Those that there are.
    pub fn all(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().flatten()
    }
}

/// The name of a row's form.
fn form_name(row: &Row) -> String {
    format!("{} {}", row.code, row.operands).trim_end().to_string()
}

/// The last line of JSON, kind `instr.summary`.
#[derive(Serialize)]
struct SummaryRecord<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    /// Forms whose rows a file had already.
    resumed: usize,
    seconds: f64,
    cpu: u32,
    cpu_model: &'a str,
    clock: &'a str,
    executor: &'a str,
    seed: u64,
    repro: &'a str,
}

impl InstrStudy {
    /// A survey of these forms, with an executor of the machine whose facts these are. `repro` is the command that
    /// repeats it, `kept` what a file has of it already.
    pub fn new(
        plan: InstrPlan,
        forms: Vec<WantedForm>,
        machine: Value,
        repro: String,
        open: Open,
        kept: Kept,
    ) -> InstrStudy {
        let rows = Rows::new(&forms);
        InstrStudy { plan, forms, machine, repro, open, kept, rows, found: None, lock: None }
    }

    /// The first line: that of the file that is resumed, or a new one.
    fn head(&self, survey: Option<&Survey>) -> Option<Record> {
        if let Some((head, _)) = &self.kept.head {
            return Some(Record::resumed("machine", head));
        }
        let gauge = GaugeRecord::new(&survey?.gauge);
        let line = MachineLine { machine: &self.machine, survey: &self.plan.session, gauge };
        Some(Record::new("machine", &line))
    }

    /// Takes the rows that a file has already, and returns which forms are known by them.
    fn known(&mut self, follow: &mut dyn Follow) -> Result<Vec<usize>, Stop> {
        let mut known = Vec::new();
        for row in std::mem::take(&mut self.kept.rows) {
            let record = Record { role: Role::Resumed, ..Record::new(NAME, &row) };
            if let Some(place) = self.rows.put(row) {
                going(follow.record(record))?;
                known.push(place);
            }
        }
        Ok(known)
    }

    /// A row with what the survey does not know of itself.
    fn told(&self, row: Row) -> Row {
        let name = form_name(&row);
        let name = shlex::try_quote(&name).unwrap_or_default();
        let repro = format!("cyclescope instr {name} {}", self.plan.repro_options);
        let mut row = Row { repro: repro.trim_end().to_string(), ..row };
        row.caveats.extend(self.plan.emulated.then(Caveat::emulated));
        row
    }

    fn take(&mut self, event: Event, standing: SurveyProgress, follow: &mut dyn Follow) -> ControlFlow<()> {
        match event {
            Event::Done(done) => {
                follow.part(&|| serde_json::to_string(done).expect("readings are plain data"))?;
            }
            Event::Row(row) => {
                let row = self.told(*row);
                let record = Record::new(NAME, &row);
                self.rows.put(row);
                follow.record(record)?;
            }
        }
        let (complete, forms) = (self.rows.complete, self.forms.len());
        let passes = self.plan.effort.passes;
        let times = if passes > 1 { format!(", each {passes} times") } else { String::new() };
        let message = format!("{complete} of {forms} forms complete{times}");
        follow.progress(Progress { done: standing.done as u64, total: standing.total as u64, message })
    }

    /// Measures what is not known yet, and returns the seconds that it took.
    fn survey(&mut self, answers: &Answers, follow: &mut dyn Follow) -> Result<f64, Stop> {
        let features = self.plan.features();
        let mut executor = answers.executor(|| (self.open)())?;
        let begun = executor.now();
        let mut survey = self.plan.begin(executor.as_mut(), &features, self.forms.clone())?;
        if let Some((_, gauge)) = &self.kept.head {
            gauge.adopt_by(&mut survey.gauge);
        }
        if let Some(head) = self.head(Some(&survey)) {
            going(follow.record(head))?;
        }
        let complete = self.known(follow)?;
        let parts = std::mem::take(&mut self.kept.parts);
        // One that can't be read is measured again.
        let done = parts.into_iter().filter_map(|part| serde_json::from_value(part).ok());
        let done = done.filter(|done: &super::survey::Done| !complete.contains(&done.form)).collect();
        let known = Known { complete, done };
        let SurveyProgress { done, total } = survey.standing(&known);
        going(follow.progress(Progress { done: done as u64, total: total as u64, message: "links".into() }))?;
        let mut flow = ControlFlow::Continue(());
        let result = survey.run(executor.as_mut(), known, &mut |event, standing| {
            flow = self.take(event, standing, follow);
            flow
        });
        self.lock = executor.lock_state().cloned();
        result?;
        going(flow)?;
        Ok(executor.now().saturating_sub(begun).as_secs_f64())
    }
}

impl Study for InstrStudy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self) -> io::Result<Value> {
        plain(&self.plan)
    }

    fn restore(container: &Container) -> Result<InstrStudy, ContainerError> {
        let plan: InstrPlan = container.facts()?;
        let forms = plan.forms()?;
        let (machine, repro) = (container.machine()?, container.manifest.origin.repro.clone());
        Ok(InstrStudy::new(plan, forms, machine, repro, closed(), Kept::default()))
    }

    fn measure(&mut self, answers: &Answers, follow: &mut dyn Follow) -> Result<(), Stop> {
        let resumed = self.kept.rows.len();
        let seconds = match resumed == self.forms.len() {
            true => {
                if let Some(head) = self.head(None) {
                    going(follow.record(head))?;
                }
                self.known(follow)?;
                0.0
            }
            false => self.survey(answers, follow)?,
        };
        let summary = Summary::of(self.rows.all());
        let InstrPlan { session, cpu_model, .. } = &self.plan;
        let record = SummaryRecord {
            summary: &summary,
            resumed,
            seconds,
            cpu: session.cpu,
            cpu_model,
            clock: &session.clock,
            executor: &session.executor,
            seed: session.seed,
            repro: &self.repro,
        };
        going(follow.record(Record { role: Role::Sum, ..Record::new("instr.summary", &record) }))?;
        self.found = Some((summary, seconds));
        Ok(())
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.lock.as_ref()
    }
}
