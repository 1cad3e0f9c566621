//! `evaluate` as a study: its plan, its inputs and its results.

#[cfg(test)]
mod tests;

use super::evaluation::{Evaluation, EvaluationRequest, EvaluationRun, ExecutorHost, open_offered};
use super::plan::EvaluatePlan;
use super::record::EvaluateOrigin;
use super::resolution::READINGS_MOST;
use cyclescope_core::machine::Machine;
use cyclescope_events::CounterRequest;
use cyclescope_exec::{ExecutorOffer, LockState, OpenOptions};
use cyclescope_measure::result::answers::MachineAnswers;
use cyclescope_measure::result::container::{ContainerError, EvidenceContainer, to_json_value};
use cyclescope_measure::study::StudyInfo;
use cyclescope_measure::study::{StopReason, Study, StudyFollower};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;
use std::time::Duration;

/// Name of the study.
pub const NAME: &str = "evaluate";

/// Registers the study.
pub const INFO: StudyInfo = StudyInfo {
    name: NAME,
    about: "how good each timing method is",
    restore: |container| Ok(Box::new(EvaluateStudy::restore(container)?)),
    generic: None,
};

/// Evaluates the timing methods of a machine.
pub struct EvaluateStudy {
    /// The parameters.
    pub plan: EvaluatePlan,
    /// The origin written to records.
    pub around: EvaluateOrigin,
    /// The results of a measurement. If it ended early, the completed part.
    pub found: Option<Evaluation>,
    /// The machine's record.
    machine: Value,
    /// `None` if answers come from evidence.
    host: Option<ExecutorHost>,
    lock: Option<LockState>,
}

/// The part of the evaluation that a manifest stores.
#[derive(Serialize, Deserialize)]
struct SavedEvaluation {
    plan: EvaluatePlan,
    around: EvaluateOrigin,
}

impl EvaluateStudy {
    /// An evaluation on this machine's target CPU, with executors opened with `options`. `repro` is
    /// the command that repeats it.
    ///
    /// # Panics
    ///
    /// If the machine's facts are not plain data.
    pub fn new(machine: Machine, plan: EvaluatePlan, options: OpenOptions, repro: String) -> EvaluateStudy {
        EvaluateStudy {
            around: EvaluateOrigin::new(&machine, plan.seed, repro),
            plan,
            found: None,
            machine: to_json_value(&machine).expect("a machine's facts are plain data"),
            host: Some(ExecutorHost { machine, options, open: open_offered }),
            lock: None,
        }
    }
}

impl Study for EvaluateStudy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self) -> io::Result<Value> {
        to_json_value(&SavedEvaluation { plan: self.plan.clone(), around: self.around.clone() })
    }

    fn restore(container: &EvidenceContainer) -> Result<EvaluateStudy, ContainerError> {
        let SavedEvaluation { plan, around } = container.facts()?;
        if let Some(field) = find_unsound_field(&plan) {
            return Err(ContainerError::damaged_fact(&format!("plan.{field}"), "the value is out of range"));
        }
        let machine = container.machine()?;
        Ok(EvaluateStudy { plan, around, found: None, machine, host: None, lock: None })
    }

    fn measure(&mut self, answers: &MachineAnswers, follow: &mut dyn StudyFollower) -> Result<(), StopReason> {
        self.found = None;
        let asked = EvaluationRequest { plan: &self.plan, around: &self.around, machine: &self.machine };
        let mut course = EvaluationRun::open_executors(asked, self.host.as_ref(), answers, follow)?;
        let ended = course.run(&mut self.found);
        self.lock = course.lock_state();
        ended
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.lock.as_ref()
    }
}

/// A field of a plan with an impossible value.
fn find_unsound_field(plan: &EvaluatePlan) -> Option<&'static str> {
    let on_offer = |executor| ExecutorOffer::find_by_name(executor).is_some();
    let times = [plan.times.contamination, plan.times.resolution, plan.times.watch, plan.times.synchrony];
    let sound = |time: &Duration| *time <= A_YEAR;
    let checks = [
        ("candidates", plan.candidates.iter().all(|candidate| on_offer(candidate.executor))),
        ("not_run", plan.not_run.iter().all(|not| on_offer(not.candidate.executor))),
        ("size.ensembles", (1..=ENSEMBLES_MOST).contains(&plan.size.ensembles)),
        ("size.samples", (1..=SAMPLES_MOST).contains(&plan.size.samples)),
        ("budget", sound(&plan.budget)),
        ("resolution_samples", plan.resolution_samples.is_none_or(|n| (1..=READINGS_MOST).contains(&n))),
        ("slow", plan.slow.iter().all(sound)),
        ("counters", plan.counters.as_ref().is_none_or(CounterRequest::is_sound)),
        ("times", times.iter().all(sound)),
    ];
    checks.into_iter().find(|(_, sound)| !sound).map(|(name, _)| name)
}

/// Most ensembles of a method.
const ENSEMBLES_MOST: u32 = 1_000_000;
/// Most samples in an ensemble.
const SAMPLES_MOST: u32 = 3_000_000;
/// Most time for an experiment.
const A_YEAR: Duration = Duration::from_secs(366 * 86_400);
