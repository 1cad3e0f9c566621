//! The study of `run`: one snippet, or a function call minus an empty call.

use super::run_measurement::RunMeasurement;
use super::run_plan::{RunPlan, missing_code_error};
use super::setup_advice::{adapt_advice, adapt_advice_of_error};
use super::subject::SavedSubject;
use crate::RunOutcome;
use cyclescope_core::error::Error;
use cyclescope_core::machine::Machine;
use cyclescope_core::random::mix_seeds;
use cyclescope_events::CounterRequest;
use cyclescope_exec::{Executor, ExecutorOpener, FaultReport, LockState, failing_opener};
use cyclescope_measure::result::answers::MachineAnswers;
use cyclescope_measure::result::caveat::CaveatKind;
use cyclescope_measure::result::container::{ContainerError, EvidenceContainer, to_json_value};
use cyclescope_measure::result::record::{CallRecord, MixRecord, RegionRecord, RunRecord, SerializedBy};
use cyclescope_measure::study::StudyInfo;
use cyclescope_measure::study::{ResultRecord, StopReason, Study, StudyFollower, check_stop};
use cyclescope_measure::{CODE_MOST, LengthenBy, Plan, Precision};
use serde_json::Value;
use std::io;

pub use super::setup_advice::AdviceTexts;
pub use super::subject::RunSubject;

/// Name of the study in manifests.
pub const NAME: &str = "run";

/// Entry in the list of studies.
pub const INFO: StudyInfo = StudyInfo {
    name: NAME,
    about: "what a snippet costs",
    restore: |container| Ok(Box::new(RunStudy::restore(container)?)),
    generic: None,
};

/// A snippet to measure.
pub struct RunStudy {
    plan: RunPlan,
    open: ExecutorOpener,
    /// The measurement.
    pub run: Option<RunOutcome>,
    /// The result.
    pub record: Option<RunRecord>,
    /// Details of the fault that ended the measurement.
    pub fault: Option<FaultReport>,
    lock: Option<LockState>,
}

/// Most subjects compared in the same rounds. Each of their pairs is a comparison: 120 of 16.
pub const VARIANTS_MOST: usize = 16;

impl RunStudy {
    /// Creates the study of a snippet, with an executor of this machine. `repro` is the command
    /// that repeats it.
    pub fn new(
        subject: &RunSubject,
        plan: Plan,
        required: Precision,
        machine: &Machine,
        repro: String,
        open: ExecutorOpener,
    ) -> RunStudy {
        let (cpu, cpu_model) = (machine.target_cpu(), machine.cpu.name());
        let plan = RunPlan {
            plan,
            asked: required,
            subject: subject.into(),
            versus: Vec::new(),
            names: Vec::new(),
            counts: false,
            counters: None,
            serialized: None,
            beside: None,
            setup: None,
            call: None,
            both_figures: false,
            region: None,
            mix: None,
            advice: None,
            cpu,
            cpu_model,
            repro,
        };
        RunStudy::from_plan(plan, open)
    }

    /// Compares with other subjects in the same rounds: at most [`VARIANTS_MOST`] in all.
    pub fn with_other_variants(mut self, others: &[RunSubject]) -> RunStudy {
        self.plan.versus = others.iter().map(SavedSubject::from).collect();
        self
    }

    /// Says that the subjects are the orders of a mix. They are not compared: a first pass chooses the
    /// fastest, and the result is its cost in another pass, per repetition of the mix.
    pub fn with_mix(mut self, mix: Option<MixRecord>) -> RunStudy {
        self.plan.mix = mix;
        self
    }

    /// The mix whose orders the subjects are.
    pub fn mix(&self) -> Option<&MixRecord> {
        self.plan.mix.as_ref()
    }

    /// Names the variants, the first included. Without names, their code distinguishes them.
    pub fn with_variant_names(mut self, names: Vec<String>) -> RunStudy {
        self.plan.names = names;
        self
    }

    /// Adds the readings of one more layout, if `wanted`.
    pub fn with_raw_readings(mut self, wanted: bool) -> RunStudy {
        self.plan.counts = wanted;
        self
    }

    /// Counts events beside the cost.
    pub fn with_counters(mut self, request: Option<CounterRequest>) -> RunStudy {
        self.plan.counters = request;
        self
    }

    /// The events that are counted beside the cost.
    pub fn counters(&self) -> Option<&CounterRequest> {
        self.plan.counters.as_ref()
    }

    /// Sets what each call of the function waits for, as in its snippets. If a call is short, also
    /// measures `counterpart`, whose calls wait for [`SerializedBy::counterpart_of`].
    pub fn with_serialized(mut self, serialized: Option<SerializedBy>, counterpart: Option<&RunSubject>) -> RunStudy {
        self.plan.serialized = serialized;
        self.plan.beside = counterpart.map(SavedSubject::from);
        self
    }

    /// The same study with half the budget, for one of two passes (from 0). Each pass has its own
    /// layouts. For a function it also begins with other addresses.
    pub(super) fn half_for_pass(&self, pass: usize) -> RunStudy {
        let mut saved = self.plan.clone();
        let Plan { budget, layouts, layouts_most, seed, .. } = &mut saved.plan;
        *budget /= 2;
        *layouts = layouts.div_ceil(2);
        *layouts_most = layouts_most.div_ceil(2).max(*layouts);
        if pass > 0 {
            *seed = mix_seeds(*seed, pass as u64);
            let subjects = [&mut saved.subject].into_iter().chain(&mut saved.versus).chain(&mut saved.beside);
            subjects.for_each(SavedSubject::rotate_addresses);
        }
        RunStudy::from_plan(saved, failing_opener())
    }

    /// Measures a snippet both in a loop and as copies without one, if `wanted`. The plan says which
    /// of the two is the cost.
    pub fn with_both_figures(mut self, wanted: bool) -> RunStudy {
        self.plan.both_figures = wanted;
        self
    }

    /// Whether a snippet is measured both in a loop and as copies without one.
    pub fn wants_both_figures(&self) -> bool {
        self.plan.both_figures
    }

    /// Sets the texts of the command that advice repeats.
    pub fn with_advice_texts(mut self, texts: AdviceTexts) -> RunStudy {
        self.plan.advice = Some(texts);
        self
    }

    /// Names the function that runs before each call, as in its snippets.
    pub fn with_setup(mut self, name: Option<String>) -> RunStudy {
        self.plan.setup = name;
        self
    }

    /// Describes the call of the function, as in its snippets.
    pub fn with_call(mut self, call: Option<CallRecord>) -> RunStudy {
        self.plan.call = call;
        self
    }

    /// Sets the region of an executable that the subject's calls run.
    pub fn with_region(mut self, region: Option<RegionRecord>) -> RunStudy {
        self.plan.region = region;
        self
    }

    /// The region of an executable that is measured.
    pub fn region(&self) -> Option<&RegionRecord> {
        self.plan.region.as_ref()
    }

    /// Whether the result includes the readings of one more layout.
    pub fn wants_raw_readings(&self) -> bool {
        self.plan.counts
    }

    fn from_plan(plan: RunPlan, open: ExecutorOpener) -> RunStudy {
        RunStudy { plan, open, run: None, record: None, fault: None, lock: None }
    }

    /// All inputs of the study.
    pub(super) fn saved_plan(&self) -> &RunPlan {
        &self.plan
    }

    /// Restores a run from a plan that may be invalid.
    pub(super) fn from_saved_plan(plan: RunPlan) -> Result<RunStudy, ContainerError> {
        if let Some(field) = plan.plan.find_unsound_field() {
            return Err(ContainerError::damaged_fact(&format!("plan.{field}"), "it is out of its range"));
        }
        plan.beside.as_ref().map(SavedSubject::to_subject).transpose()?;
        let variants = 1 + plan.versus.len();
        if variants > VARIANTS_MOST || !(plan.names.is_empty() || plan.names.len() == variants) {
            return Err(ContainerError::damaged_fact("versus", "it has too many variants, or other names"));
        }
        if plan.mix.as_ref().is_some_and(|mix| !mix.is_sound(variants)) {
            return Err(ContainerError::damaged_fact("mix", "it has no form, or other orders"));
        }
        if plan.counters.as_ref().is_some_and(|request| !request.is_sound()) {
            return Err(ContainerError::damaged_fact("counters", "a column has no event"));
        }
        let study = RunStudy::from_plan(plan, failing_opener());
        let subjects = study.subjects()?;
        for snippet in subjects.iter().flat_map(|subject| &subject.instances) {
            let plan = study.measurement_plan();
            if plan.unit.unwrap_or(1).saturating_mul(snippet.code().len()) > CODE_MOST {
                return Err(ContainerError::damaged_fact("plan.unit", "it is out of its range"));
            }
            // Earlier versions put any snippet into the loop that was asked for.
            let in_loop = plan.loop_count.is_some() && plan.lengthen != LengthenBy::Iterations;
            if let Err(obstacle) = snippet.loop_plan_with_moves()
                && in_loop
            {
                return Err(ContainerError::Outdated { why: format!("{obstacle}, so it has no loop") });
            }
        }
        Ok(study)
    }

    /// Measures with an open executor.
    pub(super) fn measure_with(
        &mut self,
        executor: &mut dyn Executor,
        answers: &MachineAnswers,
        follow: &mut dyn StudyFollower,
    ) -> Result<RunRecord, Error> {
        let run = RunMeasurement { plan: &self.plan, executor: &mut *executor, answers, follow };
        let result = run.measure();
        self.fault = result.as_ref().err().and(executor.last_fault().cloned());
        let subjects = self.subjects().map_err(missing_code_error)?;
        let (snippet, texts) = (&subjects[0].instances[0], self.plan.advice.as_ref());
        let (mut record, run) = result.map_err(|error| adapt_advice_of_error(error, snippet, texts))?;
        let states = &run.measurement.unsteady;
        for caveat in record.caveats.iter_mut().filter(|caveat| caveat.code == CaveatKind::NotSteady) {
            // A mix has no setup that restores a state.
            let state = states.iter().find_map(|state| caveat.text.strip_suffix(state.remedy.as_str()));
            caveat.text = match state.filter(|_| self.plan.mix.is_some()) {
                Some(state) => format!("{state}leave this form out of the mix"),
                None => adapt_advice(&caveat.text, snippet, texts),
            };
        }
        self.run = Some(run);
        Ok(RunRecord { repro: self.plan.repro.clone(), ..record })
    }

    /// Whether it measures a call of a function, which resides in a library.
    pub fn is_function_call(&self) -> bool {
        self.plan.subject.is_function_call()
    }

    /// The plan of the measurement.
    pub fn measurement_plan(&self) -> &Plan {
        &self.plan.plan
    }

    /// The CPU that it measures on.
    pub fn cpu(&self) -> u32 {
        self.plan.cpu
    }

    /// The precision that the result must reach, or it is too noisy.
    pub fn required_precision(&self) -> Precision {
        self.plan.asked
    }

    /// The measured subject, and those that it is compared with.
    ///
    /// # Errors
    ///
    /// If a manifest does not contain valid code for them.
    pub fn subjects(&self) -> Result<Vec<RunSubject>, ContainerError> {
        self.plan.subjects()
    }

    /// The names of the variants; empty if they have none.
    pub fn variant_names(&self) -> &[String] {
        &self.plan.names
    }
}

impl Study for RunStudy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self) -> io::Result<Value> {
        to_json_value(&self.plan)
    }

    fn restore(container: &EvidenceContainer) -> Result<RunStudy, ContainerError> {
        container.require_finished()?;
        RunStudy::from_saved_plan(container.facts()?)
    }

    fn measure(&mut self, answers: &MachineAnswers, follow: &mut dyn StudyFollower) -> Result<(), StopReason> {
        let mut executor = answers.open_executor(|| (self.open)())?;
        let result = self.measure_with(executor.as_mut(), answers, follow);
        self.lock = executor.lock_state().cloned();
        let record = result?;
        check_stop(follow.accept_record(ResultRecord::new(NAME, &record)))?;
        self.record = Some(record);
        Ok(())
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.lock.as_ref()
    }
}
