//! The plan of a survey, and what it builds on before its first form: the latency of `imul`, the links.

use super::experiments::effort::Effort;
use super::forms::constants::Constant;
use super::forms::sequence::Sequence;
use super::forms::wanted::WantedForm;
use super::selection::{all, full_name};
use super::session::InstrSession;
use super::survey::Survey;
use super::survey_settings::{SurveySettings, SurveyTiming};
use cyclescope_code::asm::Listing;
use cyclescope_code::asm::to_hex;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::features::{Features, SavedFeatures};
use cyclescope_exec::Executor;
use cyclescope_measure::result::container::ContainerError;
use cyclescope_measure::{Plan, imul_latency};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Passes, layouts, rounds and programs at most: a hundred times the largest of [`Effort::FULL`].
const EFFORT_MOST: usize = 600;

/// All that decides the course of a survey beside the answers of the machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InstrPlan {
    /// Clock, step, latency of `imul`, seed and level of the intervals.
    pub plan: Plan,
    /// How much is measured.
    pub effort: Effort,
    /// Whether the machine is emulated.
    pub emulated: bool,
    /// What a result file has of it.
    pub session: InstrSession,
    /// The processor's name.
    pub cpu_model: String,
    /// What follows the name of a form in the command that measures it alone.
    pub repro_options: String,
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
    constant: Option<Constant>,
    /// The machine code of a sequence that begins with the form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sequence: Option<String>,
}

/// How forms are measured.
#[derive(Debug, Clone)]
pub struct How {
    /// See [`InstrPlan::plan`].
    pub plan: Plan,
    /// See [`InstrPlan::effort`].
    pub effort: Effort,
    /// See [`InstrPlan::repro_options`].
    pub repro_options: String,
}

impl InstrPlan {
    /// A plan for these forms on this machine.
    pub fn new(how: How, session: InstrSession, machine: &Machine, forms: &[WantedForm]) -> InstrPlan {
        let saved = |wanted: &WantedForm| SavedForm {
            form: full_name(&wanted.form.into()),
            sequence: wanted.sequence.as_ref().map(|sequence| to_hex(&sequence.bytes())),
            latency: wanted.latency,
            throughput: wanted.throughput,
            init: to_hex(&wanted.init),
            constant: wanted.constant,
        };
        InstrPlan {
            plan: how.plan,
            effort: how.effort,
            emulated: machine.is_emulated(),
            session,
            cpu_model: machine.cpu.name(),
            repro_options: how.repro_options,
            features: (&machine.features).into(),
            subjects: forms.iter().map(saved).collect(),
        }
    }

    /// What the CPU has.
    pub fn features(&self) -> Features {
        Features::from(&self.features)
    }

    /// Measures what a survey builds on, the latency of `imul` and the links, and is ready to run.
    ///
    /// # Errors
    ///
    /// Those of the executor.
    pub fn begin<'a>(
        &self,
        executor: &mut dyn Executor,
        features: &'a Features,
        forms: Vec<WantedForm>,
    ) -> Result<Survey<'a>, RunError> {
        let InstrPlan { plan, effort, emulated, .. } = self;
        let settings = SurveySettings { effort: *effort, seed: plan.seed, confidence: plan.confidence };
        let timing = |imul_latency| SurveyTiming { clock: plan.clock, step: plan.step, imul_latency };
        if *emulated {
            return Ok(Survey::emulated(
                timing(f64::NAN),
                executor.capabilities(),
                features,
                forms,
                settings,
            ));
        }
        let imul_latency = imul_latency(executor, plan)?;
        Survey::new(timing(imul_latency), executor, features, forms, settings)
    }

    /// The forms, and what was to be found out about each, of a plan that may come from anywhere.
    pub(super) fn forms(&self) -> Result<Vec<WantedForm>, ContainerError> {
        let Effort { passes, layouts, rounds, recipes, cycles, .. } = self.effort;
        let counts = [passes as usize, layouts, rounds as usize, recipes];
        if !counts.iter().all(|count| (1..=EFFORT_MOST).contains(count)) || !(1.0..1e9).contains(&cycles) {
            return Err(ContainerError::fact("effort", "it is out of its range"));
        }
        if let Some(field) = self.plan.unsound() {
            return Err(ContainerError::fact(&format!("plan.{field}"), "it is out of its range"));
        }
        let known: HashMap<String, WantedForm> =
            all().into_iter().map(|wanted| (full_name(&wanted), wanted)).collect();
        let restored = |(index, saved): (usize, &SavedForm)| {
            let damaged = |how: &str| ContainerError::fact(&format!("subjects[{index}]"), how);
            let known = known.get(&saved.form).ok_or_else(|| damaged("there is no such form"))?;
            let init =
                cyclescope_code::asm::hex(&saved.init).map_err(|_| damaged("it has no machine code"))?;
            let SavedForm { latency, throughput, constant, .. } = *saved;
            let subject = match &saved.sequence {
                Some(code) => sequence(code).ok_or_else(|| damaged("it has no sequence"))?,
                None => known.clone(),
            };
            Ok(WantedForm { init, latency, throughput, constant, ..subject })
        };
        self.subjects.iter().enumerate().map(restored).collect()
    }
}

/// A sequence from its machine code in hexadecimal.
fn sequence(code: &str) -> Option<WantedForm> {
    let code = cyclescope_code::asm::hex(code).ok()?;
    WantedForm::of_sequence(Sequence::new(Listing::from_bytes(&code).instructions()).ok()?)
}
