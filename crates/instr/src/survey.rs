//! A survey: measures all selected forms, in passes of shuffled order.
//!
//! Each form is measured by itself, so its readings can be saved at once. The second pass uses
//! another order and comes some time after the first. A form whose passes disagree gets a further
//! pass. Its row is built after its last pass.

use crate::bodies::counted_body::is_blocker;
use crate::experiments::filler_curves::FillerCurves;
use crate::experiments::form_counter::FormCounter;
use crate::experiments::form_measurement::FormMeasurement;
use crate::experiments::form_plan::FormPlan;
use crate::experiments::link_costs::LinkCosts;
use crate::experiments::ring_0;
use crate::experiments::survey_effort::SurveyEffort;
use crate::experiments::timing::ProgramTimer;
use crate::form_pass::{FormOutcome, FormPass, collect_readings};
use crate::forms::encoded_constant::EncodedConstant;
use crate::forms::form_anatomy::FormAnatomy;
use crate::forms::skip::{explain_undefined, find_skip};
use crate::forms::target_form::TargetForm;
use crate::isa_filter;
use crate::rows::instr_row::{InstrRow, RowStatus};
use crate::rows::row_analysis::RowAnalysis;
use crate::selection::list_forms;
use crate::survey_settings::{SurveySettings, SurveyTiming};
use cyclescope_code::asm::forms::InstructionForm;
use cyclescope_code::asm::to_hex;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::features::CpuFeatures;
use cyclescope_core::random::{Random, mix_seeds};
use cyclescope_exec::{Capabilities, Executor, TimingOrigin};
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::result::caveat::CaveatKind;
use cyclescope_measure::sibling::{SiblingPolicy, SiblingWait};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// The forms to measure, and everything that their measurement needs.
pub struct FormSurvey<'a> {
    /// The timing method, its step, and the ruler's latency.
    pub timer: ProgramTimer<'a>,
    /// Costs of links in chains.
    pub link_costs: LinkCosts,
    /// The scale for dispatch slots.
    pub filler_curves: FillerCurves,
    /// The CPU's features.
    pub features: &'a CpuFeatures,
    /// Capabilities of the executor. On an emulated machine, programs run but are not timed: its
    /// clock is not a core's.
    pub capabilities: Capabilities,
    /// The forms to measure.
    pub forms: Vec<TargetForm>,
    /// How thoroughly the survey measures.
    pub effort: SurveyEffort,
    /// Seed of all orders and layouts.
    pub seed: u64,
    /// Confidence level of the intervals.
    pub confidence: f64,
    /// Counts the events of each measured form, if requested.
    counter: Option<FormCounter>,
}

/// What is known about an interrupted survey.
#[derive(Debug, Clone, Default)]
pub struct SurveyState {
    /// Forms with finished rows.
    pub complete: Vec<usize>,
    /// Passes of the other forms, from their first pass on.
    pub done: Vec<FormPass>,
}

/// What a survey reports while it runs.
pub enum SurveyEvent<'a> {
    /// A form's pass is done and another will follow. Save it to resume after an interruption.
    Done(&'a FormPass),
    /// A form's last pass is done.
    Row(Box<InstrRow>),
}

/// Progress of a survey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurveyProgress {
    /// Finished measurements: each form counts once per pass.
    pub done: usize,
    /// All measurements. The total grows when passes disagree.
    pub total: usize,
}

/// Makes the seed of counted programs differ from those of timed ones.
const COUNTING_SEED: u64 = 0x636f_756e_7400_0000;
/// A form that was disturbed throughout is postponed until after the others, and then waits.
const FORM_RETRY_POLICY: SiblingPolicy = SiblingPolicy { retries: 3, ..SiblingPolicy::USUAL };
/// Upper limit of further passes for forms whose passes disagree.
const FURTHER_PASSES: u32 = 1;

impl<'a> FormSurvey<'a> {
    /// Measures the link costs and the filler curves. The returned survey is ready to run.
    pub fn new(
        timing: SurveyTiming<'a>,
        executor: &mut dyn Executor,
        features: &'a CpuFeatures,
        forms: Vec<TargetForm>,
        settings: SurveySettings,
    ) -> Result<FormSurvey<'a>, RunError> {
        let timer = timing.to_timer();
        let SurveySettings { effort, seed, confidence } = settings;
        let link_costs =
            LinkCosts::measure(&timer, executor, features, effort.regimes, &mut Random::new(mix_seeds(seed, 1)))?;
        let filler_curves = match effort.slots {
            true => FillerCurves::measure(&timer, executor, features, &mut Random::new(mix_seeds(seed, u64::MAX)))?,
            false => FillerCurves::default(),
        };
        let capabilities = executor.capabilities().clone();
        let counter = None;
        Ok(FormSurvey {
            timer,
            link_costs,
            filler_curves,
            features,
            capabilities,
            forms,
            effort,
            seed,
            confidence,
            counter,
        })
    }

    /// A survey on an emulated machine: each program runs, and no row has figures.
    pub(crate) fn new_emulated(
        timing: SurveyTiming<'a>,
        capabilities: &Capabilities,
        features: &'a CpuFeatures,
        forms: Vec<TargetForm>,
        settings: SurveySettings,
    ) -> FormSurvey<'a> {
        let SurveySettings { effort, seed, confidence } = settings;
        let (timer, link_costs, filler_curves) = (timing.to_timer(), LinkCosts::default(), FillerCurves::default());
        let effort = SurveyEffort { passes: 1, layouts: 1, ..effort };
        let capabilities = Capabilities { timing: TimingOrigin::Emulated, ..capabilities.clone() };
        let counter = None;
        FormSurvey {
            timer,
            link_costs,
            filler_curves,
            features,
            capabilities,
            forms,
            effort,
            seed,
            confidence,
            counter,
        }
    }

    /// Also counts events. If they include ports, finds the instructions that block these.
    pub fn with_counter(
        mut self,
        mut counter: FormCounter,
        executor: &mut dyn Executor,
    ) -> Result<FormSurvey<'a>, RunError> {
        if self.capabilities.is_emulated() {
            return Ok(self);
        }
        if counter.counts_ports() {
            let targets = list_forms(self.timer.mode);
            let blocking = targets.iter().filter(|target| target.anatomy().is_some_and(|anatomy| is_blocker(&anatomy)));
            let plans = blocking.filter_map(|target| self.plan_target(target).ok()).collect();
            let random = &mut Random::new(mix_seeds(self.seed, COUNTING_SEED));
            // What the timer learns from them must not change the survey.
            counter.find_blockers(&self.timer.clone(), executor, plans, random)?;
        }
        self.counter = Some(counter);
        Ok(self)
    }

    /// Counts the events of a measured form, and adds them to its row.
    fn count_form(
        &self,
        executor: &mut dyn Executor,
        plan: &Result<FormPlan, FormOutcome>,
        outcomes: &[FormOutcome],
        row: &mut InstrRow,
    ) -> Result<(), RunError> {
        let (Some(counter), Ok(plan), RowStatus::Measured) = (&self.counter, plan, row.status) else { return Ok(()) };
        let rates = collect_readings(outcomes).into_iter().map(|readings| plan.least_rthroughput(&readings));
        let cycles = rates.fold(f64::INFINITY, f64::min);
        let cycles = if cycles.is_finite() { cycles } else { 1.0 };
        executor.begin_subject();
        let seed = mix_seeds(mix_seeds(self.seed, COUNTING_SEED), hash_form(&plan.anatomy.form));
        let counts = counter.count_form(&self.timer, executor, plan, cycles, &mut Random::new(seed))?;
        row.counters = counts.events.counters;
        row.counter_passes = Some(counts.events.passes);
        row.ports = counts.ports;
        Ok(())
    }

    /// Runs all passes that are not known yet and reports each result. `Break` ends the survey.
    pub fn run(
        &self,
        executor: &mut dyn Executor,
        known: SurveyState,
        take: &mut dyn FnMut(SurveyEvent, SurveyProgress) -> ControlFlow<()>,
    ) -> Result<(), RunError> {
        let passes = self.effort.passes;
        let mut outcomes: Vec<Vec<FormOutcome>> = vec![Vec::new(); self.forms.len()];
        let mut complete = vec![false; self.forms.len()];
        known.complete.iter().for_each(|form| complete[*form] = true);
        let mut progress = self.count_progress(&known);
        for done in known.done {
            if outcomes.get(done.form).is_some_and(|outcomes| outcomes.len() == done.pass as usize) {
                outcomes[done.form].push(done.outcome);
            }
        }
        for pass in 0..passes + FURTHER_PASSES {
            let open = |form: &usize| !complete[*form] && outcomes[*form].len() == pass as usize;
            let mut order: Vec<usize> = (0..self.forms.len()).filter(open).collect();
            Random::new(mix_seeds(self.seed, 2 + u64::from(pass))).shuffle(&mut order);
            let mut order = VecDeque::from(order);
            let mut retries = vec![FORM_RETRY_POLICY.start_retries(); self.forms.len()];
            let mut wait = SiblingWait::new(self.effort.wait);
            while let Some(form) = order.pop_front() {
                let plan = self.plan_form(form);
                let outcome = self.measure_pass(executor, &plan, &outcomes[form])?;
                // The sibling may be idle once all other forms are done.
                if outcome.is_disturbed() && !order.is_empty() && retries[form].use_retry()
                    || outcome.is_starved() && wait.pause_before_retry(executor, false)
                {
                    order.push_back(form);
                    continue;
                }
                wait.end_retries();
                progress.done += 1;
                outcomes[form].push(outcome.clone());
                let last = pass + 1 >= passes;
                let row = last.then(|| self.build_row(form, &plan, &outcomes[form]));
                let event = match row {
                    Some(mut row) if !self.needs_further_pass(&plan, &outcomes[form], &row) => {
                        self.count_form(executor, &plan, &outcomes[form], &mut row)?;
                        complete[form] = true;
                        outcomes[form] = Vec::new();
                        SurveyEvent::Row(Box::new(row))
                    }
                    row => {
                        progress.total += usize::from(row.is_some());
                        SurveyEvent::Done(&FormPass { form, pass, outcome })
                    }
                };
                if take(event, progress).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Progress of a survey in this state.
    pub fn count_progress(&self, known: &SurveyState) -> SurveyProgress {
        let passes = self.effort.passes as usize;
        let disputed = known.done.iter().filter(|done| done.pass as usize + 1 >= passes).count();
        SurveyProgress {
            done: known.complete.len() * passes + known.done.len(),
            total: self.forms.len() * passes + disputed,
        }
    }

    /// Whether a form needs a further pass: its passes disagree, or one layout had a better rate than
    /// the proved one.
    fn needs_further_pass(
        &self,
        plan: &Result<FormPlan, FormOutcome>,
        outcomes: &[FormOutcome],
        row: &InstrRow,
    ) -> bool {
        if outcomes.len() as u32 >= self.effort.passes + FURTHER_PASSES || self.effort.passes < 2 {
            return false;
        }
        let disputed = row.caveats.iter().any(|caveat| caveat.code == CaveatKind::NotRepeatable);
        let unproved =
            plan.as_ref().is_ok_and(|plan| self.analyze_plan(plan).has_unproved_rate(&collect_readings(outcomes), row));
        disputed || unproved
    }

    fn analyze_plan<'p>(&'p self, plan: &'p FormPlan) -> RowAnalysis<'p> {
        RowAnalysis {
            plan,
            link_costs: &self.link_costs,
            filler_curves: &self.filler_curves,
            confidence: self.confidence,
            nop_cycles: self.link_costs.nop_cycles(),
        }
    }

    /// Measures one form in as many passes as it needs. Returns its row and the outcome of each
    /// pass.
    pub fn settle_form(
        &self,
        executor: &mut dyn Executor,
        form: usize,
    ) -> Result<(InstrRow, Vec<FormOutcome>), RunError> {
        let plan = self.plan_form(form);
        let mut outcomes = Vec::new();
        for pass in 0.. {
            let outcome = self.measure_pass(executor, &plan, &outcomes)?;
            outcomes.push(outcome);
            if pass + 1 < self.effort.passes {
                continue;
            }
            let row = self.build_row(form, &plan, &outcomes);
            if !self.needs_further_pass(&plan, &outcomes, &row) {
                return Ok((row, outcomes));
            }
        }
        unreachable!("further passes are limited")
    }

    /// Plans the experiments of a form, or says why it has none.
    pub fn plan_form(&self, form: usize) -> Result<FormPlan, FormOutcome> {
        self.plan_target(&self.forms[form])
    }

    fn plan_target(&self, target: &TargetForm) -> Result<FormPlan, FormOutcome> {
        let Some(anatomy) = target.anatomy() else {
            return Err(FormOutcome::Failed("no instance can be encoded".to_string()));
        };
        let is_skipped = |anatomy: &FormAnatomy| find_skip(anatomy, self.features, self.capabilities.ring);
        let skipped = match &target.sequence {
            Some(sequence) => sequence.anatomies().find_map(|part| is_skipped(&part)),
            None => is_skipped(&anatomy),
        };
        if let Some(skip) = skipped {
            return Err(FormOutcome::Skipped(skip.describe()));
        }
        let mut plan = FormPlan::new(anatomy, self.features, target);
        if !self.capabilities.is_privileged() {
            return Ok(plan);
        }
        match ring_0::restrict_plan(&mut plan) {
            Some(skip) => Err(FormOutcome::Skipped(skip.describe())),
            None => Ok(plan),
        }
    }

    /// Measures a form once, given the outcomes of earlier passes.
    pub(crate) fn measure_pass(
        &self,
        executor: &mut dyn Executor,
        plan: &Result<FormPlan, FormOutcome>,
        earlier: &[FormOutcome],
    ) -> Result<FormOutcome, RunError> {
        let plan = match plan {
            Ok(plan) => plan,
            Err(outcome) => return Ok(outcome.clone()),
        };
        if plan.experiments.is_empty() {
            return Ok(FormOutcome::Failed("no program can be written".to_string()));
        }
        // The seed depends on the form's name, not its index: measured alone, a form gets the same
        // layouts as in a larger survey.
        let mut random =
            Random::new(mix_seeds(mix_seeds(self.seed, earlier.len() as u64), hash_form(&plan.anatomy.form)));
        // Init code and sequences of a list are code of others.
        executor.begin_subject();
        // The checks for ring 0 cover the plan's own constant only.
        let constants = self.effort.constants && !self.capabilities.is_privileged();
        let effort = SurveyEffort { constants, ..self.effort };
        let earlier = collect_readings(earlier);
        let filler_curves = &self.filler_curves;
        let measurement = FormMeasurement { timer: &self.timer, effort, plan, earlier: &earlier, filler_curves };
        let result = match self.capabilities.is_emulated() {
            true => measurement.try_out(executor, &mut random).map(|()| Vec::new()),
            false => measurement.run(executor, &mut random),
        };
        match result {
            Ok(readings) => Ok(FormOutcome::Measured(readings)),
            Err(error) if error.is_harness_failure() => Err(error),
            Err(error) => Ok(
                match ring_0::explain_skip(&plan.anatomy, &error).or_else(|| explain_undefined(&plan.anatomy, &error)) {
                    Some(reason) => FormOutcome::Skipped(reason),
                    None => FormOutcome::Failed(error.to_string()),
                },
            ),
        }
    }

    /// Builds a form's row from its passes.
    pub(crate) fn build_row(
        &self,
        form: usize,
        plan: &Result<FormPlan, FormOutcome>,
        outcomes: &[FormOutcome],
    ) -> InstrRow {
        let mut row = self.build_key_row(form);
        let mut passes = Vec::new();
        for outcome in outcomes {
            match outcome {
                FormOutcome::Measured(readings) => passes.push(readings.clone()),
                FormOutcome::Skipped(reason) => {
                    (row.status, row.reason) = (RowStatus::Skipped, Some(reason.clone()));
                    return row;
                }
                FormOutcome::Failed(reason) => row.reason = Some(reason.clone()),
            }
        }
        // If any pass failed, the others are not trusted either.
        if passes.len() < outcomes.len() {
            return row;
        }
        if self.capabilities.is_emulated() {
            row.status = RowStatus::Measured;
            row.caveats.push(Caveat::emulated_machine());
            return row;
        }
        if let Ok(plan) = plan {
            self.analyze_plan(plan).fill_row(&mut row, &passes);
            if !self.forms[form].throughput {
                row.throughput = None;
                row.slots = None;
            }
        }
        row
    }

    /// A row with its key and no figures.
    pub(crate) fn build_key_row(&self, form: usize) -> InstrRow {
        let target = &self.forms[form];
        let anatomy = target.anatomy();
        let bytes = match &target.sequence {
            Some(sequence) => Some(sequence.bytes()),
            None => anatomy.as_ref().and_then(|anatomy| anatomy.encode(&[anatomy.sample])),
        };
        let constant = anatomy.as_ref().and_then(|anatomy| anatomy.constants.first().copied());
        let own = anatomy.filter(|_| target.sequence.is_none());
        InstrRow {
            bits: target.form.mode,
            code: target.code(),
            mnemonic: target.mnemonic(),
            operands: target.operands(),
            encoding: target.encoding().to_string(),
            executor: self.capabilities.executor.to_string(),
            isa: isa_filter::list_features(target).join("+"),
            implicit: own.map(|anatomy| anatomy.implicit).unwrap_or_default(),
            bytes: bytes.map(|bytes| to_hex(&bytes)).unwrap_or_default(),
            immediate: constant.and_then(EncodedConstant::format_immediate),
            tried: Vec::new(),
            status: RowStatus::Failed,
            reason: None,
            latency: Vec::new(),
            throughput: None,
            slots: None,
            counters: Vec::new(),
            counter_passes: None,
            ports: None,
            tags: Vec::new(),
            caveats: Vec::new(),
            repro: String::new(),
        }
    }
}

/// Hashes the name of a form.
fn hash_form(form: &InstructionForm) -> u64 {
    let text = format!("{:?} {}", form.code, form.describe_operands());
    text.bytes().fold(0, |hash, byte| mix_seeds(hash, u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::asm::{CodeMode, forms};
    use cyclescope_code::clock::Clock;
    use cyclescope_core::machine::Machine;
    use cyclescope_sim::{Scenario, SimulatedExecutor};

    #[test]
    fn programs_run_on_an_emulated_machine_without_figures() {
        let machine = Machine::detect();
        let mut executor = SimulatedExecutor::new(Scenario::default(), 1);
        let clock = Clock::find_named("rdtscp-lfence").unwrap();
        let timing = SurveyTiming { clock, step: 1.0, imul_latency: 3.0, mode: CodeMode::default(), adders: None };
        let form = forms::all_forms().find(|form| form.code == iced_x86::Code::Imul_r64_rm64).unwrap();
        let settings = SurveySettings { effort: SurveyEffort::QUICK, seed: 1, confidence: 0.95 };
        let forms = vec![TargetForm::from(form)];
        let survey = FormSurvey::new_emulated(timing, executor.capabilities(), &machine.features, forms, settings);
        let plan = survey.plan_form(0);
        let outcome = survey.measure_pass(&mut executor, &plan, &[]).unwrap();
        let row = survey.build_row(0, &plan, &[outcome]);
        assert_eq!((row.status, row.caveats), (RowStatus::Measured, vec![Caveat::emulated_machine()]));
        assert!(row.latency.is_empty() && row.throughput.is_none());
    }
}
