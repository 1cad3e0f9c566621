//! The study behind `run`: one snippet, or a call of a function less a call of an empty one.

use super::contract::{Follow, Progress, Record, Stop, Study, going};
use super::info::StudyInfo;
use crate::asm::hex as bytes;
use crate::error::{Error, RunError};
use crate::executor::{Executor, FaultReport, LockState, Open, closed};
use crate::machine::Machine;
use crate::measure::contrast::Contrast;
use crate::measure::{CODE_MOST, Plan, Precision, Question, Standing, counts, require_room};
use crate::record::{Quantity, RunRecord};
use crate::result::answers::Answers;
use crate::result::container::{Container, ContainerError, plain};
use crate::run::{Facts, Run, hex, run_all};
use crate::snippet::Snippet;
use crate::unit::Unit;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;

/// Its name.
pub const NAME: &str = "run";

/// How it is found.
pub(super) const INFO: StudyInfo = StudyInfo {
    name: NAME,
    about: "what a snippet costs",
    restore: |container| Ok(Box::new(RunStudy::restore(container)?)),
    plain: None,
};

/// A snippet to measure.
pub struct RunStudy {
    plan: RunPlan,
    open: Open,
    /// The measurement.
    pub run: Option<Run>,
    /// The result.
    pub found: Option<RunRecord>,
    /// More about the fault that ended it.
    pub fault: Option<FaultReport>,
    lock: Option<LockState>,
}

/// What decides the course of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct RunPlan {
    /// How each is measured.
    plan: Plan,
    /// The precision without which the result is too noisy.
    asked: Precision,
    /// The snippet, then the call of an empty function, where a function is called: once for each address at which the
    /// function stands.
    instances: Vec<Vec<SavedSnippet>>,
    /// Whether the readings of one more layout are part of the result.
    #[serde(default)]
    counts: bool,
    cpu: u32,
    cpu_model: String,
    repro: String,
}

/// A snippet, as a manifest has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SavedSnippet {
    /// How reports show it.
    text: String,
    /// The machine code of one copy, in hexadecimal.
    code: String,
    /// The init code, in hexadecimal.
    init: String,
}

impl From<&Snippet> for SavedSnippet {
    fn from(snippet: &Snippet) -> SavedSnippet {
        let text = snippet.text().to_string();
        SavedSnippet { text, code: hex(snippet.code()), init: hex(snippet.init()) }
    }
}

impl SavedSnippet {
    fn snippet(&self) -> Result<Snippet, ContainerError> {
        let decode = |field: &str, text: &str| {
            let field = format!("instances.{field}");
            match bytes(text) {
                Ok(code) if code.len() <= CODE_MOST => Ok(code),
                _ => Err(ContainerError::fact(&field, "it is no machine code")),
            }
        };
        Ok(Snippet::new(decode("code", &self.code)?, decode("init", &self.init)?, self.text.clone()))
    }
}

impl RunStudy {
    /// Of a snippet, with an executor of this machine. `repro` is the command that repeats it.
    pub fn new(
        snippet: &Snippet,
        plan: Plan,
        asked: Precision,
        machine: &Machine,
        repro: String,
        open: Open,
    ) -> RunStudy {
        let (cpu, cpu_model) = (machine.target_cpu(), machine.cpu.name());
        let plan = RunPlan {
            plan,
            asked,
            instances: vec![vec![snippet.into()]],
            counts: false,
            cpu,
            cpu_model,
            repro,
        };
        RunStudy::of(plan, open)
    }

    /// Of a call of a function less a call of an empty one, at each address at which the two stand.
    pub fn of_calls<'a>(mut self, calls: impl IntoIterator<Item = [&'a Snippet; 2]>) -> RunStudy {
        self.plan.instances = calls.into_iter().map(|calls| calls.map(SavedSnippet::from).into()).collect();
        self
    }

    /// The same with the readings of one more layout, where they are wanted.
    pub fn with_counts(mut self, wanted: bool) -> RunStudy {
        self.plan.counts = wanted;
        self
    }

    /// Whether the readings of one more layout are wanted.
    pub fn has_counts(&self) -> bool {
        self.plan.counts
    }

    fn of(plan: RunPlan, open: Open) -> RunStudy {
        RunStudy { plan, open, run: None, found: None, fault: None, lock: None }
    }

    /// Whether a call of a function is measured, which lives in a library.
    pub fn is_of_function(&self) -> bool {
        self.plan.instances[0].len() > 1
    }

    /// How it is measured.
    pub fn how(&self) -> &Plan {
        &self.plan.plan
    }

    /// The precision without which the result is too noisy.
    pub fn asked(&self) -> Precision {
        self.plan.asked
    }

    /// What is measured.
    ///
    /// # Errors
    ///
    /// Where a manifest does not hold its code.
    pub fn snippet(&self) -> Result<Snippet, ContainerError> {
        self.plan.instances[0][0].snippet()
    }

    /// What is asked: the cost of the snippet, less that of a call of an empty function.
    fn question(&self) -> Result<Question, ContainerError> {
        let decode = |saved: &Vec<SavedSnippet>| saved.iter().map(SavedSnippet::snippet).collect();
        let instances: Vec<Vec<Snippet>> =
            self.plan.instances.iter().map(decode).collect::<Result<_, _>>()?;
        let mut cost = Contrast::new([(0, 1.0)]);
        if self.is_of_function() {
            cost = cost.less(&empty_call());
        }
        Ok(Question::with_instances(instances, vec![cost]))
    }

    fn all(
        &mut self,
        executor: &mut dyn Executor,
        answers: &Answers,
        follow: &mut dyn Follow,
    ) -> Result<RunRecord, Error> {
        let no_code = |error: ContainerError| RunError::Replay { how: error.to_string() };
        let question = self.question().map_err(no_code)?;
        let RunPlan { plan, cpu, cpu_model, .. } = &self.plan;
        for snippet in question.snippets() {
            require_room(plan, snippet, executor.arena_len())?;
        }
        let watch = &mut |standing| tell(standing, follow);
        let run = run_all(answers, executor, &question, plan, self.plan.asked, watch)?.remove(0);
        let facts =
            Facts { snippet: &question.snippets()[0], plan, executor: executor.name(), cpu: *cpu, cpu_model };
        let mut record = run.record(&facts);
        if self.is_of_function() {
            let empty = run.measurement.estimate_of(&empty_call(), plan.confidence);
            record.empty_call = empty.map(|empty| Quantity::new(empty.cost, Unit::CoreCycles));
            // No function takes less than an empty one.
            let modes = record.modes.iter_mut().map(|mode| &mut mode.cost);
            for quantity in [&mut record.cost, &mut record.ticks, &mut record.time].into_iter().chain(modes) {
                *quantity = quantity.at_least_zero();
            }
        }
        if self.plan.counts {
            record.counts = Some(counts(executor, &question, plan, &run.measurement.acquisition)?);
        }
        self.run = Some(run);
        Ok(record)
    }
}

/// Seconds after which someone who waits wonders.
const LONG_S: f64 = 2.0;

/// Tells how far a measurement has come that takes long. It has no part to end after.
fn tell(standing: Standing, follow: &mut dyn Follow) {
    if standing.seconds() >= LONG_S {
        let Standing { done, total, .. } = standing;
        let message = format!("{total} layouts, about {:.0} s", standing.seconds());
        let _ = follow.progress(Progress { done: done as u64, total: total as u64, message });
    }
}

/// The cost of a call of an empty function: the second snippet.
fn empty_call() -> Contrast {
    Contrast::new([(1, 1.0)])
}

impl Study for RunStudy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self) -> io::Result<Value> {
        plain(&self.plan)
    }

    fn restore(container: &Container) -> Result<RunStudy, ContainerError> {
        container.require_finished()?;
        let plan: RunPlan = container.facts()?;
        let count = plan.instances.first().map_or(0, Vec::len);
        if !(1..=2).contains(&count) || plan.instances.iter().any(|snippets| snippets.len() != count) {
            return Err(ContainerError::fact(
                "instances",
                "there are none, or not one or two snippets in each",
            ));
        }
        if let Some(field) = plan.plan.unsound() {
            return Err(ContainerError::fact(&format!("plan.{field}"), "it is out of its range"));
        }
        for saved in plan.instances.iter().flatten() {
            let length = saved.snippet()?.code().len();
            if plan.plan.unit.unwrap_or(1).saturating_mul(length) > CODE_MOST {
                return Err(ContainerError::fact("plan.unit", "it is out of its range"));
            }
        }
        Ok(RunStudy::of(plan, closed()))
    }

    fn measure(&mut self, answers: &Answers, follow: &mut dyn Follow) -> Result<(), Stop> {
        let mut executor = answers.executor(|| (self.open)())?;
        let result = self.all(executor.as_mut(), answers, follow);
        self.fault = executor.last_fault().cloned();
        self.lock = executor.lock_state().cloned();
        let record = result?;
        let record = RunRecord { repro: self.plan.repro.clone(), ..record };
        going(follow.record(Record::new(NAME, &record)))?;
        self.found = Some(record);
        Ok(())
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.lock.as_ref()
    }
}
