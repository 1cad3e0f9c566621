//! A survey: all forms that were asked for, measured in passes of shuffled order.
//!
//! Each form is measured by itself, so that what was measured can be kept at once. A second pass in another order comes
//! after the first, some time later. A form whose passes disagree gets a further one; a row is made when a form's last
//! pass is done.

use crate::experiments::effort::Effort;
use crate::experiments::form_plan::FormPlan;
use crate::experiments::gauge::Gauge;
use crate::experiments::measurement::Measurement;
use crate::experiments::program_reading::ProgramReading;
use crate::experiments::ring_0;
use crate::experiments::timing::Timer;
use crate::forms::constants::Constant;
use crate::forms::operands::{Anatomy, encode};
use crate::forms::skip::{skip, undefined};
use crate::forms::wanted::WantedForm;
use crate::isa;
use crate::rows::analysis::Analysis;
use crate::rows::row::{Row, Status};
use crate::survey_settings::{SurveySettings, SurveyTiming};
use cyclescope_code::asm::forms::Form;
use cyclescope_code::asm::to_hex;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::features::Features;
use cyclescope_core::random::{Random, mix};
use cyclescope_exec::{Capabilities, Executor, Timing};
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::result::caveat::Code;
use cyclescope_measure::sibling::SiblingPolicy;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// What a survey is about.
pub struct Survey<'a> {
    /// The timing method, its step, and the ruler's latency.
    pub timer: Timer<'a>,
    /// What links cost.
    pub gauge: Gauge,
    /// What the CPU has.
    pub features: &'a Features,
    /// What the executor can do. Where that is emulated, programs only show that they run, for no time is a core's.
    pub capabilities: Capabilities,
    /// The forms.
    pub forms: Vec<WantedForm>,
    /// How much to measure.
    pub effort: Effort,
    /// Seed of orders and layouts.
    pub seed: u64,
    /// Level of the intervals.
    pub confidence: f64,
}

/// How a form's measurement in one pass ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The readings of each experiment.
    Measured(Vec<ProgramReading>),
    /// It was not tried.
    Skipped(String),
    /// It faulted, hung or gave no number.
    Failed(String),
}

impl Outcome {
    /// Whether some of it was never measured on a core of its own, or none of it at all.
    fn is_disturbed(&self) -> bool {
        let Outcome::Measured(readings) = self else { return false };
        let nothing = |reading: &ProgramReading| reading.cycles.is_empty();
        let shared = |reading: &ProgramReading| nothing(reading) && !reading.shared.is_empty();
        readings.iter().any(shared) || readings.iter().all(nothing)
    }
}

/// One form in one pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Which of the survey's forms.
    pub form: usize,
    /// The pass, from 0.
    pub pass: u32,
    /// What came of it.
    pub outcome: Outcome,
}

/// What is known of a survey that was interrupted.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The forms whose rows are made.
    pub complete: Vec<usize>,
    /// Of others, what passes found, from the first pass on.
    pub done: Vec<Done>,
}

/// What a survey hands over while it runs.
pub enum Event<'a> {
    /// A form was measured in a pass, and another will follow; keep it to be able to go on after an interruption.
    Done(&'a Done),
    /// A form's last pass is over.
    Row(Box<Row>),
}

/// How far the survey has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurveyProgress {
    /// Forms measured, each counted once a pass.
    pub done: usize,
    /// All of that. It grows when passes disagree.
    pub total: usize,
}

/// A form that was disturbed throughout is put off until after the others.
const BESIDE_SIBLING: SiblingPolicy = SiblingPolicy { retries: 3, ..SiblingPolicy::USUAL };
/// Further passes for forms whose passes disagree, at most.
const FURTHER: u32 = 1;

impl<'a> Survey<'a> {
    /// Measures the links, and is ready to run.
    pub fn new(
        timing: SurveyTiming<'a>,
        executor: &mut dyn Executor,
        features: &'a Features,
        forms: Vec<WantedForm>,
        settings: SurveySettings,
    ) -> Result<Survey<'a>, RunError> {
        let timer = timing.timer();
        let SurveySettings { effort, seed, confidence } = settings;
        let gauge =
            Gauge::measure(&timer, executor, features, effort.regimes, &mut Random::new(mix(seed, 1)))?;
        let capabilities = executor.capabilities().clone();
        Ok(Survey { timer, gauge, features, capabilities, forms, effort, seed, confidence })
    }

    /// A survey of an emulated machine: each program runs, and no row has a number.
    pub(crate) fn emulated(
        timing: SurveyTiming<'a>,
        capabilities: &Capabilities,
        features: &'a Features,
        forms: Vec<WantedForm>,
        settings: SurveySettings,
    ) -> Survey<'a> {
        let SurveySettings { effort, seed, confidence } = settings;
        let (timer, gauge) = (timing.timer(), Gauge::default());
        let effort = Effort { passes: 1, layouts: 1, ..effort };
        let capabilities = Capabilities { timing: Timing::Emulated, ..capabilities.clone() };
        Survey { timer, gauge, features, capabilities, forms, effort, seed, confidence }
    }

    /// Runs all passes but for what is known already, and hands over what it finds. `Break` ends it.
    pub fn run(
        &self,
        executor: &mut dyn Executor,
        known: Known,
        take: &mut dyn FnMut(Event, SurveyProgress) -> ControlFlow<()>,
    ) -> Result<(), RunError> {
        let passes = self.effort.passes;
        let mut outcomes: Vec<Vec<Outcome>> = vec![Vec::new(); self.forms.len()];
        let mut complete = vec![false; self.forms.len()];
        known.complete.iter().for_each(|form| complete[*form] = true);
        let mut progress = self.standing(&known);
        for done in known.done {
            if outcomes.get(done.form).is_some_and(|outcomes| outcomes.len() == done.pass as usize) {
                outcomes[done.form].push(done.outcome);
            }
        }
        for pass in 0..passes + FURTHER {
            let open = |form: &usize| !complete[*form] && outcomes[*form].len() == pass as usize;
            let mut order: Vec<usize> = (0..self.forms.len()).filter(open).collect();
            Random::new(mix(self.seed, 2 + u64::from(pass))).shuffle(&mut order);
            let mut order = VecDeque::from(order);
            let mut retries = vec![BESIDE_SIBLING.start(); self.forms.len()];
            while let Some(form) = order.pop_front() {
                let plan = self.plan(form);
                let outcome = self.measure(executor, &plan, &outcomes[form])?;
                // A neighbour may be gone when all others are done.
                if outcome.is_disturbed() && !order.is_empty() && retries[form].retry() {
                    order.push_back(form);
                    continue;
                }
                progress.done += 1;
                outcomes[form].push(outcome.clone());
                let last = pass + 1 >= passes;
                let row = last.then(|| self.row(form, &plan, &outcomes[form]));
                let event = match row {
                    Some(row) if !self.is_open(&row, pass) => {
                        complete[form] = true;
                        outcomes[form] = Vec::new();
                        Event::Row(Box::new(row))
                    }
                    row => {
                        progress.total += usize::from(row.is_some());
                        Event::Done(&Done { form, pass, outcome })
                    }
                };
                if take(event, progress).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// How far the survey has come with what is known.
    pub fn standing(&self, known: &Known) -> SurveyProgress {
        let passes = self.effort.passes as usize;
        let disputed = known.done.iter().filter(|done| done.pass as usize + 1 >= passes).count();
        SurveyProgress {
            done: known.complete.len() * passes + known.done.len(),
            total: self.forms.len() * passes + disputed,
        }
    }

    /// Whether a row needs a further pass: its passes disagree.
    fn is_open(&self, row: &Row, pass: u32) -> bool {
        let disputed = row.caveats.iter().any(|caveat| caveat.code == Code::NotRepeatable);
        disputed && pass + 1 < self.effort.passes + FURTHER
    }

    /// Measures one form in as many passes as it takes. Returns its row and what each pass found.
    pub fn settle(&self, executor: &mut dyn Executor, form: usize) -> Result<(Row, Vec<Outcome>), RunError> {
        let plan = self.plan(form);
        let mut outcomes = Vec::new();
        for pass in 0.. {
            let outcome = self.measure(executor, &plan, &outcomes)?;
            outcomes.push(outcome);
            if pass + 1 < self.effort.passes {
                continue;
            }
            let row = self.row(form, &plan, &outcomes);
            if !self.is_open(&row, pass) {
                return Ok((row, outcomes));
            }
        }
        unreachable!("further passes are limited")
    }

    /// The experiments of a form, or why there are none.
    pub fn plan(&self, form: usize) -> Result<FormPlan, Outcome> {
        let wanted = &self.forms[form];
        let Some(anatomy) = wanted.anatomy() else {
            return Err(Outcome::Failed("no instance can be encoded".to_string()));
        };
        let is_skipped = |anatomy: &Anatomy| skip(anatomy, self.features, self.capabilities.ring);
        let skipped = match &wanted.sequence {
            Some(sequence) => sequence.parts().find_map(|part| is_skipped(&part)),
            None => is_skipped(&anatomy),
        };
        if let Some(skip) = skipped {
            return Err(Outcome::Skipped(skip.reason()));
        }
        let mut plan = FormPlan::new(anatomy, self.features, wanted);
        if !self.capabilities.is_privileged() {
            return Ok(plan);
        }
        match ring_0::restrict(&mut plan) {
            Some(skip) => Err(Outcome::Skipped(skip.reason())),
            None => Ok(plan),
        }
    }

    /// Measures a form once, after the passes that are known already.
    pub(crate) fn measure(
        &self,
        executor: &mut dyn Executor,
        plan: &Result<FormPlan, Outcome>,
        earlier: &[Outcome],
    ) -> Result<Outcome, RunError> {
        let plan = match plan {
            Ok(plan) => plan,
            Err(outcome) => return Ok(outcome.clone()),
        };
        if plan.experiments.is_empty() {
            return Ok(Outcome::Failed("no program can be written".to_string()));
        }
        // By its name, not its place among others: alone, a form gets the layouts that it has in a larger survey.
        let mut random = Random::new(mix(mix(self.seed, earlier.len() as u64), name(&plan.anatomy.form)));
        // What ring 0 may run was checked with the plan's own constant.
        let constants = self.effort.constants && !self.capabilities.is_privileged();
        let effort = Effort { constants, ..self.effort };
        let measured = |outcome: &Outcome| match outcome {
            Outcome::Measured(readings) => Some(readings.clone()),
            Outcome::Skipped(_) | Outcome::Failed(_) => None,
        };
        let earlier: Vec<Vec<ProgramReading>> = earlier.iter().filter_map(measured).collect();
        let measurement = Measurement { timer: &self.timer, effort, plan, earlier: &earlier };
        let result = match self.capabilities.is_emulated() {
            true => measurement.try_out(executor, &mut random).map(|()| Vec::new()),
            false => measurement.run(executor, &mut random),
        };
        match result {
            Ok(readings) => Ok(Outcome::Measured(readings)),
            Err(error) if error.is_of_the_harness() => Err(error),
            Err(error) => Ok(
                match ring_0::skipped(&plan.anatomy, &error).or_else(|| undefined(&plan.anatomy, &error)) {
                    Some(reason) => Outcome::Skipped(reason),
                    None => Outcome::Failed(error.to_string()),
                },
            ),
        }
    }

    /// The row of a form from its passes.
    pub(crate) fn row(&self, form: usize, plan: &Result<FormPlan, Outcome>, outcomes: &[Outcome]) -> Row {
        let mut row = self.key(form);
        let mut passes = Vec::new();
        for outcome in outcomes {
            match outcome {
                Outcome::Measured(readings) => passes.push(readings.clone()),
                Outcome::Skipped(reason) => {
                    (row.status, row.reason) = (Status::Skipped, Some(reason.clone()));
                    return row;
                }
                Outcome::Failed(reason) => row.reason = Some(reason.clone()),
            }
        }
        // What failed once is not believed.
        if passes.len() < outcomes.len() {
            return row;
        }
        if self.capabilities.is_emulated() {
            row.status = Status::Measured;
            row.caveats.push(Caveat::emulated());
            return row;
        }
        if let Ok(plan) = plan {
            let analysis =
                Analysis { plan, gauge: &self.gauge, confidence: self.confidence, slot: self.gauge.slot() };
            analysis.fill(&mut row, &passes);
            if !self.forms[form].throughput {
                row.throughput = None;
            }
        }
        row
    }

    /// A row with its key and nothing measured.
    pub(crate) fn key(&self, form: usize) -> Row {
        let wanted = &self.forms[form];
        let anatomy = wanted.anatomy();
        let bytes = match &wanted.sequence {
            Some(sequence) => Some(sequence.bytes()),
            None => anatomy.as_ref().and_then(|anatomy| encode(&[anatomy.sample])),
        };
        let constant = anatomy.as_ref().and_then(|anatomy| anatomy.constants.first().copied());
        let own = anatomy.filter(|_| wanted.sequence.is_none());
        Row {
            code: wanted.code(),
            mnemonic: wanted.mnemonic(),
            operands: wanted.operands(),
            encoding: wanted.encoding().to_string(),
            executor: self.capabilities.executor.to_string(),
            isa: isa::of(wanted).join("+"),
            implicit: own.map(|anatomy| anatomy.implicit).unwrap_or_default(),
            bytes: bytes.map(|bytes| to_hex(&bytes)).unwrap_or_default(),
            immediate: constant.and_then(Constant::immediate),
            tried: Vec::new(),
            status: Status::Failed,
            reason: None,
            latency: Vec::new(),
            throughput: None,
            tags: Vec::new(),
            caveats: Vec::new(),
            repro: String::new(),
        }
    }
}

/// A number for a form.
fn name(form: &Form) -> u64 {
    let text = format!("{:?} {}", form.code, form.operands());
    text.bytes().fold(0, |hash, byte| mix(hash, u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::asm::forms;
    use cyclescope_code::clock::Clock;
    use cyclescope_core::machine::Machine;
    use cyclescope_sim::{Scenario, Simulated};

    #[test]
    fn programs_run_on_an_emulated_machine_and_give_no_numbers() {
        let machine = Machine::detect();
        let mut executor = Simulated::new(Scenario::default(), 1);
        let clock = Clock::named("rdtscp-lfence").unwrap();
        let timing = SurveyTiming { clock, step: 1.0, imul_latency: 3.0 };
        let form = forms::all().find(|form| form.code == iced_x86::Code::Imul_r64_rm64).unwrap();
        let settings = SurveySettings { effort: Effort::QUICK, seed: 1, confidence: 0.95 };
        let forms = vec![WantedForm::from(form)];
        let survey = Survey::emulated(timing, executor.capabilities(), &machine.features, forms, settings);
        let plan = survey.plan(0);
        let outcome = survey.measure(&mut executor, &plan, &[]).unwrap();
        let row = survey.row(0, &plan, &[outcome]);
        assert_eq!((row.status, row.caveats), (Status::Measured, vec![Caveat::emulated()]));
        assert!(row.latency.is_empty() && row.throughput.is_none());
    }

    #[test]
    fn a_form_without_a_figure_of_its_own_is_disturbed() {
        let alone = ProgramReading { cycles: vec![1.0], ..ProgramReading::default() };
        let shared = ProgramReading { shared: vec![2.0], ..ProgramReading::default() };
        let both = ProgramReading { shared: vec![2.0], ..alone.clone() };
        let disturbed = |readings: &[&ProgramReading]| {
            Outcome::Measured(readings.iter().map(|reading| (*reading).clone()).collect()).is_disturbed()
        };
        assert!(disturbed(&[&alone, &shared]) && disturbed(&[&ProgramReading::default()]));
        assert!(!disturbed(&[&both, &alone]) && !disturbed(&[&alone, &ProgramReading::default()]));
    }
}
