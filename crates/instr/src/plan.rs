//! The plan of a survey, and the measurements before its first form: `imul` latency and link costs.

use super::experiments::survey_effort::SurveyEffort;
use super::forms::encoded_constant::EncodedConstant;
use super::forms::instruction_sequence::InstructionSequence;
use super::forms::target_form::TargetForm;
use super::selection::{full_name, list_forms};
use super::session::InstrSession;
use super::survey::FormSurvey;
use super::survey_settings::{SurveySettings, SurveyTiming};
use cyclescope_code::asm::to_hex;
use cyclescope_code::asm::{CodeMode, Listing};
use cyclescope_core::error::RunError;
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::features::{CpuFeatures, SavedFeatures};
use cyclescope_events::CounterRequest;
use cyclescope_exec::Executor;
use cyclescope_measure::result::container::ContainerError;
use cyclescope_measure::{Plan, resolve_ruler_latency};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Upper limit of passes, layouts, rounds and recipes in a plan: 100 times the largest of
/// [`SurveyEffort::FULL`].
const EFFORT_MOST: usize = 600;

/// Everything that decides the course of a survey, except the machine's answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InstrPlan {
    /// Clock, step, latency of `imul`, seed, and confidence level.
    pub plan: Plan,
    /// How thoroughly the survey measures.
    pub effort: SurveyEffort,
    /// Whether the machine is emulated.
    pub emulated: bool,
    /// The mode of the code.
    #[serde(default, skip_serializing_if = "CodeMode::is_default")]
    pub bits: CodeMode,
    /// The session, as the first line of a result file records it.
    pub session: InstrSession,
    /// The brand string of the CPU.
    pub cpu_model: String,
    /// Options that follow the form's name in the command that repeats its measurement.
    pub repro_options: String,
    /// Events to count for each form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<CounterRequest>,
    features: SavedFeatures,
    subjects: Vec<SavedForm>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct SavedForm {
    form: String,
    latency: bool,
    throughput: bool,
    init: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    constant: Option<EncodedConstant>,
    /// Machine code in hexadecimal, if the target is a sequence. `form` is then its first
    /// instruction's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sequence: Option<String>,
}

/// Options of a survey.
#[derive(Debug, Clone)]
pub struct InstrOptions {
    /// See [`InstrPlan::plan`].
    pub plan: Plan,
    /// See [`InstrPlan::effort`].
    pub effort: SurveyEffort,
    /// See [`InstrPlan::repro_options`].
    pub repro_options: String,
    /// See [`InstrPlan::counters`].
    pub counters: Option<CounterRequest>,
}

impl InstrPlan {
    /// Plans a survey of these forms on this machine.
    pub fn new(how: InstrOptions, session: InstrSession, machine: &Machine, forms: &[TargetForm]) -> InstrPlan {
        let saved = |target: &TargetForm| SavedForm {
            form: full_name(&target.form.into()),
            sequence: target.sequence.as_ref().map(|sequence| to_hex(&sequence.bytes())),
            latency: target.latency,
            throughput: target.throughput,
            init: to_hex(&target.init),
            constant: target.constant,
        };
        InstrPlan {
            plan: how.plan,
            effort: how.effort,
            emulated: machine.is_emulated(),
            bits: session.bits,
            session,
            cpu_model: machine.cpu.name(),
            repro_options: how.repro_options,
            counters: how.counters,
            features: (&machine.features).into(),
            subjects: forms.iter().map(saved).collect(),
        }
    }

    /// The CPU's features.
    pub fn features(&self) -> CpuFeatures {
        CpuFeatures::from(&self.features)
    }

    /// Measures the latency of `imul` and the link costs. The returned survey is ready to run.
    ///
    /// # Errors
    ///
    /// Those of the executor.
    pub fn begin_survey<'a>(
        &self,
        executor: &mut dyn Executor,
        features: &'a CpuFeatures,
        forms: Vec<TargetForm>,
    ) -> Result<FormSurvey<'a>, RunError> {
        let InstrPlan { plan, effort, emulated, .. } = self;
        let settings = SurveySettings { effort: *effort, seed: plan.seed, confidence: plan.confidence };
        let mode = self.bits;
        let timing =
            |imul_latency| SurveyTiming { clock: plan.clock, step: plan.step, imul_latency, mode, adders: plan.adders };
        if *emulated {
            return Ok(FormSurvey::new_emulated(timing(f64::NAN), executor.capabilities(), features, forms, settings));
        }
        let imul_latency = resolve_ruler_latency(executor, plan, mode)?;
        FormSurvey::new(timing(imul_latency), executor, features, forms, settings)
    }

    /// Restores the forms to measure. The plan may come from an untrusted file, so every field is
    /// checked.
    pub(super) fn restore_forms(&self) -> Result<Vec<TargetForm>, ContainerError> {
        let SurveyEffort { passes, layouts, rounds, recipes, cycles, .. } = self.effort;
        let counts = [passes as usize, layouts, rounds as usize, recipes];
        if !counts.iter().all(|count| (1..=EFFORT_MOST).contains(count)) || !(1.0..1e9).contains(&cycles) {
            return Err(ContainerError::damaged_fact("effort", "it is out of range"));
        }
        if let Some(field) = self.plan.find_unsound_field() {
            return Err(ContainerError::damaged_fact(&format!("plan.{field}"), "it is out of range"));
        }
        if self.counters.as_ref().is_some_and(|request| !request.is_sound()) {
            return Err(ContainerError::damaged_fact("counters", "a column has no event"));
        }
        let known: HashMap<String, TargetForm> =
            list_forms(self.bits).into_iter().map(|target| (full_name(&target), target)).collect();
        let restored = |(index, saved): (usize, &SavedForm)| {
            let damaged = |how: &str| ContainerError::damaged_fact(&format!("subjects[{index}]"), how);
            let known = known.get(&saved.form).ok_or_else(|| damaged("the form does not exist"))?;
            let init = cyclescope_code::asm::parse_hex(&saved.init)
                .map_err(|_| damaged("its init code is not hexadecimal"))?;
            let SavedForm { latency, throughput, constant, .. } = *saved;
            let subject = match &saved.sequence {
                Some(code) => restore_sequence(code, self.bits).ok_or_else(|| damaged("its sequence is invalid"))?,
                None => known.clone(),
            };
            Ok(TargetForm { init, latency, throughput, constant, ..subject })
        };
        self.subjects.iter().enumerate().map(restored).collect()
    }
}

/// Parses a sequence from hexadecimal machine code.
fn restore_sequence(code: &str, mode: CodeMode) -> Option<TargetForm> {
    let code = cyclescope_code::asm::parse_hex(code).ok()?;
    TargetForm::from_sequence(InstructionSequence::new(Listing::from_code(&code, mode).instructions()).ok()?)
}
