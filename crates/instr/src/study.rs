//! The study `instr`: a survey that records each row at once and can be resumed.

use super::experiments::form_counter::FormCounter;
use super::form_pass::FormPass;
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

/// The study's name on the command line and in result files.
pub const NAME: &str = "instr";

/// The study's entry in the list of studies.
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
    /// Facts about the machine, as `doctor` prints them.
    machine: Value,
    repro: String,
    open: ExecutorOpener,
    resumed: ResumedSurvey,
    /// Rows known so far, in the order of the selection.
    pub rows: SurveyRows,
    /// The summary and the seconds that the survey took.
    pub summary: Option<(SurveySummary, f64)>,
    lock: Option<LockState>,
}

/// What a result file contains of an interrupted survey.
#[derive(Default)]
pub struct ResumedSurvey {
    /// The first line, and the link costs recorded in it.
    pub head: Option<(Value, LinkCostsRecord)>,
    /// Rows of complete forms.
    pub rows: Vec<InstrRow>,
    /// Passes of forms that are not complete.
    pub parts: Vec<Value>,
}

/// Rows in the order of the forms.
#[derive(Default)]
pub struct SurveyRows {
    rows: Vec<Option<InstrRow>>,
    /// Index of each form's row, by full name.
    places: HashMap<String, usize>,
    /// Number of rows present.
    complete: usize,
}

impl SurveyRows {
    fn new(forms: &[TargetForm]) -> SurveyRows {
        let place = |(index, target): (usize, &TargetForm)| (full_name(target), index);
        let places = forms.iter().enumerate().map(place).collect();
        SurveyRows { rows: vec![None; forms.len()], places, complete: 0 }
    }

    /// Stores a row and returns its index. `None` if its form is not part of this survey.
    fn put_row(&mut self, row: InstrRow) -> Option<usize> {
        let place = *self.places.get(&form_name(&row))?;
        self.complete += usize::from(self.rows[place].replace(row).is_none());
        Some(place)
    }

    /// The rows present.
    pub fn present_rows(&self) -> impl Iterator<Item = &InstrRow> {
        self.rows.iter().flatten()
    }
}

/// The full name of a row's form.
fn form_name(row: &InstrRow) -> String {
    format!("{} {}", row.code, row.operands).trim_end().to_string()
}

/// The last JSON line, of kind `instr.summary`.
#[derive(Serialize)]
struct SummaryRecord<'a> {
    #[serde(flatten)]
    summary: &'a SurveySummary,
    /// Forms whose rows were already in the file.
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
    /// A survey of these forms on the machine with these facts. `repro` is the command that repeats
    /// it, `kept` what a file already contains of it.
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

    /// The first line: from the resumed file, or a new one.
    fn build_head(&self, survey: Option<&FormSurvey>) -> Option<ResultRecord> {
        if let Some((head, _)) = &self.resumed.head {
            return Some(ResultRecord::from_resumed_line("machine", head));
        }
        let gauge = LinkCostsRecord::new(&survey?.link_costs, &survey?.filler_curves);
        let line = InstrMachineLine { machine: &self.machine, survey: &self.plan.session, gauge };
        Some(ResultRecord::new("machine", &line))
    }

    /// Whether a row of a resumed file has the name, the mnemonic and the encoding of a form of this
    /// survey, and ran where this survey runs.
    fn is_own_row(&self, row: &InstrRow) -> bool {
        let target = self.rows.places.get(&form_name(row)).map(|place| &self.forms[*place]);
        target.is_some_and(|target| {
            row.mnemonic == target.mnemonic()
                && row.bits == target.form.mode
                && row.encoding == target.encoding()
                && row.executor == self.plan.session.executor
        })
    }

    /// Records the rows of a resumed file and returns the indices of their forms.
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

    /// Completes a row with its repro command and, on an emulated machine, a caveat.
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

    /// Measures the remaining forms and returns the seconds that it took.
    fn run_survey(&mut self, answers: &MachineAnswers, follow: &mut dyn StudyFollower) -> Result<f64, StopReason> {
        let features = self.plan.features();
        let mut executor = answers.open_executor(|| (self.open)())?;
        let begun = executor.now();
        let request = self.plan.counters.as_ref();
        let confidence = self.plan.plan.confidence;
        let counter = request.map(|request| FormCounter::new(request, executor.as_ref(), answers, confidence));
        let counter = counter.transpose()?;
        let mut survey = self.plan.begin_survey(executor.as_mut(), &features, self.forms.clone())?;
        if let Some(counter) = counter {
            survey = survey.with_counter(counter, executor.as_mut())?;
        }
        if let Some((_, measured)) = &self.resumed.head {
            measured.apply_to(&mut survey.link_costs, &mut survey.filler_curves);
        }
        if let Some(head) = self.build_head(Some(&survey)) {
            check_stop(follow.accept_record(head))?;
        }
        let complete = self.record_resumed(follow)?;
        let parts = std::mem::take(&mut self.resumed.parts);
        // A part that no survey wrote is measured again.
        let done = parts.into_iter().filter_map(|part| serde_json::from_value::<FormPass>(part).ok());
        let done = done.filter(|done| !complete.contains(&done.form) && done.is_possible()).collect();
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
        let rows = std::mem::take(&mut self.resumed.rows);
        self.resumed.rows = rows.into_iter().filter(|row| self.is_own_row(row)).collect();
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
