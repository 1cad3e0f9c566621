//! Evidence of a survey: what it needs, beside the recorded readings, to take its course again.
//!
//! No decision of a survey goes by time, so that it takes the same course over
//! [`Replaying`](crate::result::replaying::Replaying) as it did when it was recorded.

use super::experiments::effort::Effort;
use super::forms::subject::Subject;
use super::selection::{all, full_name};
use super::survey::Survey;
use crate::error::RunError;
use crate::evidence::unsound;
use crate::executor::Executor;
use crate::machine::features::{Features, SavedFeatures};
use crate::measure::{Plan, imul_latency};
use crate::result::container::ContainerError;
use crate::result::recording::ExecutorFacts;
use crate::run::hex;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The study's name in manifests.
pub const STUDY: &str = "instr";

/// Passes, layouts, rounds and programs at most: a hundred times the largest of [`Effort::FULL`].
const EFFORT_MOST: usize = 600;

/// The facts of a survey.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SurveyFacts {
    /// The executor.
    pub executor: ExecutorFacts,
    /// Whether the machine was emulated.
    pub emulated: bool,
    /// Clock, step, latency of `imul`, seed and level of the intervals.
    pub plan: Plan,
    /// How much was measured.
    pub effort: Effort,
    features: SavedFeatures,
    subjects: Vec<SavedSubject>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct SavedSubject {
    form: String,
    latency: bool,
    throughput: bool,
    init: String,
}

/// Measures what a survey builds on, the latency of `imul` and the links, and is ready to run.
pub fn begin<'a>(
    executor: &mut dyn Executor,
    facts: &'a SurveyFacts,
    features: &'a Features,
    subjects: Vec<Subject>,
) -> Result<Survey<'a>, RunError> {
    let SurveyFacts { plan, effort, emulated, .. } = facts;
    let much = (*effort, plan.seed, plan.confidence);
    if *emulated {
        let method = (plan.clock, plan.step, f64::NAN);
        return Ok(Survey::emulated(method, executor.capabilities(), features, subjects, much));
    }
    let imul_latency = imul_latency(executor, plan)?;
    Survey::new((plan.clock, plan.step, imul_latency), executor, features, subjects, much)
}

impl SurveyFacts {
    /// Those of a survey that is to begin.
    pub fn new(
        executor: ExecutorFacts,
        (plan, effort): (Plan, Effort),
        (features, emulated): (&Features, bool),
        subjects: &[Subject],
    ) -> SurveyFacts {
        let saved = |subject: &Subject| SavedSubject {
            form: full_name(subject),
            latency: subject.latency,
            throughput: subject.throughput,
            init: hex(&subject.init),
        };
        SurveyFacts {
            executor,
            emulated,
            plan,
            effort,
            features: features.into(),
            subjects: subjects.iter().map(saved).collect(),
        }
    }

    /// What the CPU had.
    pub fn features(&self) -> Features {
        Features::from(&self.features)
    }

    /// The forms, and what was to be found out about each.
    pub fn subjects(&self) -> Result<Vec<Subject>, ContainerError> {
        let Effort { passes, layouts, rounds, recipes, cycles, .. } = self.effort;
        let counts = [passes as usize, layouts, rounds as usize, recipes];
        if !counts.iter().all(|count| (1..=EFFORT_MOST).contains(count)) || !(1.0..1e9).contains(&cycles) {
            return Err(ContainerError::fact("effort", "it is out of its range"));
        }
        if let Some(field) = unsound(&self.plan) {
            return Err(ContainerError::fact(&format!("plan.{field}"), "it is out of its range"));
        }
        let known: HashMap<String, Subject> =
            all().into_iter().map(|subject| (full_name(&subject), subject)).collect();
        let subject = |(index, saved): (usize, &SavedSubject)| {
            let damaged = |how: &str| ContainerError::fact(&format!("subjects[{index}]"), how);
            let known = known.get(&saved.form).ok_or_else(|| damaged("there is no such form"))?;
            let init = crate::asm::hex(&saved.init).map_err(|_| damaged("it has no machine code"))?;
            let SavedSubject { latency, throughput, .. } = *saved;
            Ok(Subject { init, latency, throughput, ..known.clone() })
        };
        self.subjects.iter().enumerate().map(subject).collect()
    }
}
