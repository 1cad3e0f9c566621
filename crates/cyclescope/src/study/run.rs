//! The study behind `run`: one snippet, or a call of a function less a call of an empty one.

use super::contract::{Follow, Record, Stop, Study, going};
use super::info::StudyInfo;
use crate::asm::hex as bytes;
use crate::error::{Error, RunError};
use crate::executor::{Executor, FaultReport, LockState, Open, closed};
use crate::machine::Machine;
use crate::measure::{CODE_MOST, Plan, Precision, counts, require_room};
use crate::record::RunRecord;
use crate::result::answers::Answers;
use crate::result::container::{Container, ContainerError, plain};
use crate::run::{Facts, Run, hex, run_with};
use crate::snippet::Snippet;
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
    /// The measurement of each snippet, and the record of each.
    pub runs: Vec<(Run, RunRecord)>,
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
    /// The snippet, then the empty function, where one is called.
    snippets: Vec<SavedSnippet>,
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
    fn snippet(&self, index: usize) -> Result<Snippet, ContainerError> {
        let decode = |field: &str, text: &str| {
            let field = format!("snippets[{index}].{field}");
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
        let plan =
            RunPlan { plan, asked, snippets: vec![snippet.into()], counts: false, cpu, cpu_model, repro };
        RunStudy::of(plan, open)
    }

    /// The same less the cost of another snippet, that of a call of an empty function.
    pub fn less(mut self, empty: &Snippet) -> RunStudy {
        self.plan.snippets.push(empty.into());
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
        RunStudy { plan, open, runs: Vec::new(), found: None, fault: None, lock: None }
    }

    /// Whether a call of a function is measured, which lives in a library.
    pub fn is_of_function(&self) -> bool {
        self.plan.snippets.len() > 1
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
        self.plan.snippets[0].snippet(0)
    }

    fn one(
        &self,
        executor: &mut dyn Executor,
        snippet: &Snippet,
        answers: &Answers,
    ) -> Result<(Run, RunRecord), Error> {
        let RunPlan { plan, cpu, cpu_model, .. } = &self.plan;
        require_room(plan, snippet, executor.arena_len())?;
        let run = run_with(answers, executor, snippet, plan, self.plan.asked)?;
        let facts = Facts { snippet, plan, executor: executor.name(), cpu: *cpu, cpu_model };
        let mut record = run.record(&facts);
        // Of a function, and not of the empty one.
        if self.plan.counts && self.runs.is_empty() {
            record.counts = Some(counts(executor, snippet, plan, &run.measurement.acquisition)?);
        }
        Ok((run, record))
    }

    fn all(&mut self, executor: &mut dyn Executor, answers: &Answers) -> Result<(), Error> {
        for (index, saved) in self.plan.snippets.iter().enumerate() {
            let no_code = |error: ContainerError| RunError::Replay { how: error.to_string() };
            let found = self.one(executor, &saved.snippet(index).map_err(no_code)?, answers)?;
            self.runs.push(found);
        }
        Ok(())
    }
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
        if !(1..=2).contains(&plan.snippets.len()) {
            return Err(ContainerError::fact("snippets", "there is none, or more than two"));
        }
        if let Some(field) = plan.plan.unsound() {
            return Err(ContainerError::fact(&format!("plan.{field}"), "it is out of its range"));
        }
        for (index, snippet) in plan.snippets.iter().enumerate() {
            let length = snippet.snippet(index)?.code().len();
            if plan.plan.unit.unwrap_or(1).saturating_mul(length) > CODE_MOST {
                return Err(ContainerError::fact("plan.unit", "it is out of its range"));
            }
        }
        Ok(RunStudy::of(plan, closed()))
    }

    fn measure(&mut self, answers: &Answers, follow: &mut dyn Follow) -> Result<(), Stop> {
        let mut executor = answers.executor(|| (self.open)())?;
        let result = self.all(executor.as_mut(), answers);
        self.fault = executor.last_fault().cloned();
        self.lock = executor.lock_state().cloned();
        result?;
        let mut records = self.runs.iter().map(|(_, record)| record);
        let first = records.next().expect("a plan has one snippet at least").clone();
        let record = match records.next() {
            Some(empty) => first.less_call(empty, self.plan.asked),
            None => first,
        };
        let record = RunRecord { repro: self.plan.repro.clone(), ..record };
        going(follow.record(Record::new(NAME, &record)))?;
        self.found = Some(record);
        Ok(())
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.lock.as_ref()
    }
}
