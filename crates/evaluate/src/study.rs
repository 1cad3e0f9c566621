//! `evaluate` as a study: what it was asked, all that its course takes, and what it has found.

#[cfg(test)]
mod tests;

use super::evaluation::{Asked, Course, Evaluation, Host, offered};
use super::plan::EvaluatePlan;
use super::record::Surroundings;
use super::resolution::READINGS_MOST;
use cyclescope_core::machine::Machine;
use cyclescope_exec::{LockState, Offer, OpenOptions};
use cyclescope_measure::result::answers::Answers;
use cyclescope_measure::result::container::{Container, ContainerError, plain};
use cyclescope_measure::study::StudyInfo;
use cyclescope_measure::study::{Follow, Stop, Study};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;
use std::time::Duration;

/// Its name.
pub const NAME: &str = "evaluate";

/// How it is found.
pub const INFO: StudyInfo = StudyInfo {
    name: NAME,
    about: "how good each timing method is",
    restore: |container| Ok(Box::new(Evaluate::restore(container)?)),
    plain: None,
};

/// How good the timing methods of a machine are.
pub struct Evaluate {
    /// What is asked.
    pub plan: EvaluatePlan,
    /// What records say beside figures.
    pub around: Surroundings,
    /// What was found when it was measured: all of it, or what was complete when that ended early.
    pub found: Option<Evaluation>,
    /// The machine's record.
    machine: Value,
    /// None where the answers are those of evidence.
    host: Option<Host>,
    lock: Option<LockState>,
}

/// What decides the course, as a manifest has it.
#[derive(Serialize, Deserialize)]
struct Saved {
    plan: EvaluatePlan,
    around: Surroundings,
}

impl Evaluate {
    /// On this machine's target CPU, with executors that are opened in this way; `repro` is the command that repeats it.
    ///
    /// # Panics
    ///
    /// If the machine's facts are not plain data.
    pub fn new(machine: Machine, plan: EvaluatePlan, options: OpenOptions, repro: String) -> Evaluate {
        Evaluate {
            around: Surroundings::new(&machine, plan.seed, repro),
            plan,
            found: None,
            machine: plain(&machine).expect("a machine's facts are plain data"),
            host: Some(Host { machine, options, open: offered }),
            lock: None,
        }
    }
}

impl Study for Evaluate {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self) -> io::Result<Value> {
        plain(&Saved { plan: self.plan.clone(), around: self.around.clone() })
    }

    fn restore(container: &Container) -> Result<Evaluate, ContainerError> {
        let Saved { plan, around } = container.facts()?;
        if let Some(field) = unsound(&plan) {
            return Err(ContainerError::fact(&format!("plan.{field}"), "it is out of its range"));
        }
        let machine = container.machine()?;
        Ok(Evaluate { plan, around, found: None, machine, host: None, lock: None })
    }

    fn measure(&mut self, answers: &Answers, follow: &mut dyn Follow) -> Result<(), Stop> {
        self.found = None;
        let asked = Asked { plan: &self.plan, around: &self.around, machine: &self.machine };
        let mut course = Course::begin(asked, self.host.as_ref(), answers, follow)?;
        let ended = course.run(&mut self.found);
        self.lock = course.lock_state();
        ended
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.lock.as_ref()
    }
}

/// A field of a plan that no evaluation has.
fn unsound(plan: &EvaluatePlan) -> Option<&'static str> {
    let on_offer = |executor| Offer::named(executor).is_some();
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
        ("times", times.iter().all(sound)),
    ];
    checks.into_iter().find(|(_, sound)| !sound).map(|(name, _)| name)
}

/// Ensembles of a method at most,
const ENSEMBLES_MOST: u32 = 1_000_000;
/// samples of each at most,
const SAMPLES_MOST: u32 = 3_000_000;
/// and time for an experiment.
const A_YEAR: Duration = Duration::from_secs(366 * 86_400);
