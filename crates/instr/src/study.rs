//! The study behind `instr`: a survey whose rows are recorded as they are made, and that can be resumed.

use super::plan::InstrPlan;
use super::rows::instr_row::InstrRow;
use super::selection::full_name;
use super::session::{InstrMachineLine, LinkCostsRecord};
use super::survey::{FormSurvey, SurveyEvent, SurveyProgress, SurveyState};
use super::tables::summary::SurveySummary;
use crate::forms::target_form::TargetForm;
use cyclescope_exec::{ExecutorOpener, LockState, failing_opener};
use cyclescope_measure::result::answers::MachineAnswers;
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::result::container::{ContainerError, EvidenceContainer, to_json_value};
use cyclescope_measure::study::StudyInfo;
use cyclescope_measure::study::{
    RecordRole, ResultRecord, StopReason, Study, StudyFollower, StudyProgress, check_stop,
};
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
    generic: None,
};

/// A survey of some forms.
pub struct InstrStudy {
    plan: InstrPlan,
    forms: Vec<TargetForm>,
    /// The machine's facts, as `doctor` prints them.
    machine: Value,
    repro: String,
    open: ExecutorOpener,
    resumed: ResumedSurvey,
    /// The rows that there are, in the order of the selection.
    pub rows: SurveyRows,
    /// What came of it, and the seconds that it took.
    pub summary: Option<(SurveySummary, f64)>,
    lock: Option<LockState>,
}

/// What a result file has of a survey that was interrupted.
#[derive(Default)]
pub struct ResumedSurvey {
    /// The first line, and what links cost as it says.
    pub head: Option<(Value, LinkCostsRecord)>,
    /// The rows.
    pub rows: Vec<InstrRow>,
    /// What passes found of other forms.
    pub parts: Vec<Value>,
}

/// Rows in the order of the forms.
#[derive(Default)]
pub struct SurveyRows {
    rows: Vec<Option<InstrRow>>,
    /// Where each form's row belongs.
    places: HashMap<String, usize>,
    /// How many there are.
    complete: usize,
}

impl SurveyRows {
    fn new(forms: &[TargetForm]) -> SurveyRows {
        let place = |(index, wanted): (usize, &TargetForm)| (full_name(wanted), index);
        let places = forms.iter().enumerate().map(place).collect();
        SurveyRows { rows: vec![None; forms.len()], places, complete: 0 }
    }

    /// Takes a row, and returns its place; none where it is of no form of these.
    fn put_row(&mut self, row: InstrRow) -> Option<usize> {
        let place = *self.places.get(&form_name(&row))?;
        self.complete += usize::from(self.rows[place].replace(row).is_none());
        Some(place)
    }

    /// Those that there are.
    pub fn present_rows(&self) -> impl Iterator<Item = &InstrRow> {
        self.rows.iter().flatten()
    }
}

/// The name of a row's form.
fn form_name(row: &InstrRow) -> String {
    format!("{} {}", row.code, row.operands).trim_end().to_string()
}

/// The last line of JSON, kind `instr.summary`.
#[derive(Serialize)]
struct SummaryRecord<'a> {
    #[serde(flatten)]
    summary: &'a SurveySummary,
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
        forms: Vec<TargetForm>,
        machine: Value,
        repro: String,
        open: ExecutorOpener,
        kept: ResumedSurvey,
    ) -> InstrStudy {
        let rows = SurveyRows::new(&forms);
        InstrStudy { plan, forms, machine, repro, open, resumed: kept, rows, summary: None, lock: None }
    }

    /// The first line: that of the file that is resumed, or a new one.
    fn build_head(&self, survey: Option<&FormSurvey>) -> Option<ResultRecord> {
        if let Some((head, _)) = &self.resumed.head {
            return Some(ResultRecord::from_resumed_line("machine", head));
        }
        let gauge = LinkCostsRecord::new(&survey?.gauge);
        let line = InstrMachineLine { machine: &self.machine, survey: &self.plan.session, gauge };
        Some(ResultRecord::new("machine", &line))
    }

    /// Takes the rows that a file has already, and returns which forms are known by them.
    fn record_resumed(&mut self, follow: &mut dyn StudyFollower) -> Result<Vec<usize>, StopReason> {
        let mut known = Vec::new();
        for row in std::mem::take(&mut self.resumed.rows) {
            let record = ResultRecord { role: RecordRole::Resumed, ..ResultRecord::new(NAME, &row) };
            if let Some(place) = self.rows.put_row(row) {
                check_stop(follow.accept_record(record))?;
                known.push(place);
            }
        }
        Ok(known)
    }

    /// A row with what the survey does not know of itself.
    fn complete_row(&self, row: InstrRow) -> InstrRow {
        let name = form_name(&row);
        let name = shlex::try_quote(&name).unwrap_or_default();
        let repro = format!("cyclescope instr {name} {}", self.plan.repro_options);
        let mut row = InstrRow { repro: repro.trim_end().to_string(), ..row };
        row.caveats.extend(self.plan.emulated.then(Caveat::emulated_machine));
        row
    }

    fn handle_event(
        &mut self,
        event: SurveyEvent,
        standing: SurveyProgress,
        follow: &mut dyn StudyFollower,
    ) -> ControlFlow<()> {
        match event {
            SurveyEvent::Done(done) => {
                follow.save_part(&|| serde_json::to_string(done).expect("readings are plain data"))?;
            }
            SurveyEvent::Row(row) => {
                let row = self.complete_row(*row);
                let record = ResultRecord::new(NAME, &row);
                self.rows.put_row(row);
                follow.accept_record(record)?;
            }
        }
        let (complete, forms) = (self.rows.complete, self.forms.len());
        let passes = self.plan.effort.passes;
        let times = if passes > 1 { format!(", each {passes} times") } else { String::new() };
        let message = format!("{complete} of {forms} forms complete{times}");
        follow.report_progress(StudyProgress { done: standing.done as u64, total: standing.total as u64, message })
    }

    /// Measures what is not known yet, and returns the seconds that it took.
    fn run_survey(&mut self, answers: &MachineAnswers, follow: &mut dyn StudyFollower) -> Result<f64, StopReason> {
        let features = self.plan.features();
        let mut executor = answers.open_executor(|| (self.open)())?;
        let begun = executor.now();
        let mut survey = self.plan.begin_survey(executor.as_mut(), &features, self.forms.clone())?;
        if let Some((_, gauge)) = &self.resumed.head {
            gauge.apply_to(&mut survey.gauge);
        }
        if let Some(head) = self.build_head(Some(&survey)) {
            check_stop(follow.accept_record(head))?;
        }
        let complete = self.record_resumed(follow)?;
        let parts = std::mem::take(&mut self.resumed.parts);
        // One that can't be read is measured again.
        let done = parts.into_iter().filter_map(|part| serde_json::from_value(part).ok());
        let done = done.filter(|done: &super::survey::FormPass| !complete.contains(&done.form)).collect();
        let known = SurveyState { complete, done };
        let SurveyProgress { done, total } = survey.count_progress(&known);
        check_stop(follow.report_progress(StudyProgress {
            done: done as u64,
            total: total as u64,
            message: "links".into(),
        }))?;
        let mut flow = ControlFlow::Continue(());
        let result = survey.run(executor.as_mut(), known, &mut |event, standing| {
            flow = self.handle_event(event, standing, follow);
            flow
        });
        self.lock = executor.lock_state().cloned();
        result?;
        check_stop(flow)?;
        Ok(executor.now().saturating_sub(begun).as_secs_f64())
    }
}

impl Study for InstrStudy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self) -> io::Result<Value> {
        to_json_value(&self.plan)
    }

    fn restore(container: &EvidenceContainer) -> Result<InstrStudy, ContainerError> {
        let plan: InstrPlan = container.facts()?;
        let forms = plan.restore_forms()?;
        let (machine, repro) = (container.machine()?, container.manifest.origin.repro.clone());
        Ok(InstrStudy::new(plan, forms, machine, repro, failing_opener(), ResumedSurvey::default()))
    }

    fn measure(&mut self, answers: &MachineAnswers, follow: &mut dyn StudyFollower) -> Result<(), StopReason> {
        let resumed = self.resumed.rows.len();
        let seconds = match resumed == self.forms.len() {
            true => {
                if let Some(head) = self.build_head(None) {
                    check_stop(follow.accept_record(head))?;
                }
                self.record_resumed(follow)?;
                0.0
            }
            false => self.run_survey(answers, follow)?,
        };
        let summary = SurveySummary::from_rows(self.rows.present_rows());
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
        check_stop(
            follow.accept_record(ResultRecord { role: RecordRole::Sum, ..ResultRecord::new("instr.summary", &record) }),
        )?;
        self.summary = Some((summary, seconds));
        Ok(())
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.lock.as_ref()
    }
}
