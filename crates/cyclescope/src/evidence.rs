//! Evidence of a run: what it needs, beside the recorded readings, to take its course again.
//!
//! A run, and where a function is called a second one of an empty function, goes over
//! [`Recording`](crate::result::recording::Recording) into a container; replayed, each plan measures its snippet again
//! over [`Replaying`].

use crate::asm::hex as bytes;
use crate::error::RunError;
use crate::machine::Machine;
use crate::measure::{Plan, Precision, measure};
use crate::record::RunRecord;
use crate::result::container::{Container, ContainerError, MANIFEST, plain};
use crate::result::recording::ExecutorFacts;
use crate::result::replaying::Replaying;
use crate::run::{Around, Facts, Run, hex};
use crate::snippet::Snippet;
use crate::unit::Hertz;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// The study's name in manifests.
pub const STUDY: &str = "run";

/// A measurement, as a manifest has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Measured {
    /// How reports show the snippet.
    text: String,
    /// The machine code of one copy, in hexadecimal.
    code: String,
    /// The init code, in hexadecimal.
    init: String,
    /// How it was measured.
    plan: Plan,
    /// The TSC's rate meanwhile in hertz: low, value, high.
    tsc: Option<[f64; 3]>,
}

/// The facts of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunFacts {
    executor: ExecutorFacts,
    asked: Precision,
    emulated: bool,
    cpu: u32,
    cpu_model: String,
    /// The snippet, then the empty function, where one was called.
    measured: Vec<Measured>,
}

impl RunFacts {
    /// Before anything is measured.
    pub fn new(machine: &Machine, executor: ExecutorFacts, asked: Precision) -> RunFacts {
        RunFacts {
            executor,
            asked,
            emulated: machine.is_emulated(),
            cpu: machine.target.as_ref().map_or(0, |target| target.cpu),
            cpu_model: machine.cpu.name(),
            measured: Vec::new(),
        }
    }

    /// Adds a measurement.
    pub fn add(&mut self, snippet: &Snippet, plan: &Plan, run: &Run) {
        self.measured.push(Measured {
            text: snippet.text().to_string(),
            code: hex(snippet.code()),
            init: hex(snippet.init()),
            plan: plan.clone(),
            tsc: run.tsc.map(|rates| rates.map(|rate| rate.0)),
        });
    }

    /// Fails where a number is one that no run has: what a plan promises may not hold in a forged file.
    fn check(&self) -> Result<(), ContainerError> {
        let field = |index: usize, name: &str| format!("measured[{index}].{name}");
        if !(1..=2).contains(&self.measured.len()) {
            return Err(ContainerError::fact("measured", "there is no measurement, or more than two"));
        }
        for (index, Measured { plan, code, init, .. }) in self.measured.iter().enumerate() {
            let copies = plan.unit.unwrap_or(1).saturating_mul(code.len() + 1);
            let code = copies <= CODE_MOST && init.len() <= CODE_MOST;
            let unsound = unsound(plan).map(|name| field(index, &format!("plan.{name}")));
            if let Some(field) = unsound.or((!code).then(|| field(index, "code"))) {
                return Err(ContainerError::fact(&field, "it is out of its range"));
            }
        }
        Ok(())
    }
}

/// A field of a plan that no measurement has.
pub(crate) fn unsound(plan: &Plan) -> Option<&'static str> {
    let positive = |value: f64| value > 0.0 && value < 1e9;
    let checks = [
        ("confidence", (1e-6..1.0).contains(&plan.confidence)),
        ("loop_count", plan.loop_count.is_none_or(|count| (1..=MOST).contains(&count))),
        ("unit", plan.unit.is_none_or(|copies| (1..=CODE_MOST).contains(&copies))),
        ("imul_latency", plan.imul_latency.is_none_or(positive)),
        ("step", positive(plan.step)),
        ("adders", plan.adders.is_none_or(|adders| (1..=64).contains(&adders))),
        ("rounds", (1..=rounds_most(plan)).contains(&plan.rounds)),
        ("warm_up", plan.warm_up.is_none_or(|rounds| rounds <= ROUNDS_MOST)),
        ("layouts", (1..=LAYOUTS_MOST).contains(&plan.layouts)),
        ("layouts_most", plan.layouts_most <= LAYOUTS_MOST),
        ("budget", plan.budget.as_secs() < A_YEAR),
    ];
    checks.into_iter().find(|(_, sound)| !sound).map(|(name, _)| name)
}

/// No count of iterations is higher.
const MOST: u64 = 1 << 40;
/// Bytes of code, and their digits, at most: bodies have to fit an arena of some megabytes.
const CODE_MOST: usize = 64 << 20;
/// Rounds of a layout at most,
const ROUNDS_MOST: u32 = 1 << 16;
/// and where each has programs of its own.
const COLD_ROUNDS_MOST: u32 = 1 << 12;
/// Layouts at most.
const LAYOUTS_MOST: usize = 1 << 14;

fn rounds_most(plan: &Plan) -> u32 {
    if plan.cold.branches { COLD_ROUNDS_MOST } else { ROUNDS_MOST }
}

/// Seconds.
const A_YEAR: u64 = 366 * 86_400;

/// A run in its container.
#[derive(Debug)]
pub struct Replay {
    container: Container,
    facts: RunFacts,
    /// The result as it was printed.
    pub written: Value,
}

impl Replay {
    /// Of an opened container.
    pub fn new(container: Container) -> Result<Replay, ContainerError> {
        container.require_finished()?;
        let facts: RunFacts = container.facts()?;
        facts.check()?;
        let mut records = container.records()?;
        let written = records
            .next()
            .unwrap_or_else(|| Err(ContainerError::damaged(MANIFEST, "files", "there is no result")))?;
        drop(records);
        Ok(Replay { container, facts, written })
    }

    /// Opens the container in a directory.
    pub fn open(directory: &Path) -> Result<Replay, ContainerError> {
        let container = Container::open(directory)?;
        if container.manifest.origin.study != STUDY {
            return Err(ContainerError::damaged(MANIFEST, "study", "it is not a run"));
        }
        Replay::new(container)
    }

    /// Whether a call of a function was measured, which lived in a library.
    pub fn is_of_function(&self) -> bool {
        self.facts.measured.len() > 1
    }

    /// How it was measured.
    pub fn plan(&self) -> &Plan {
        &self.facts.measured[0].plan
    }

    /// The precision without which it is too noisy.
    pub fn asked(&self) -> Precision {
        self.facts.asked
    }

    /// What was measured.
    pub fn snippet(&self) -> Result<Snippet, ContainerError> {
        self.snippet_of(0)
    }

    fn snippet_of(&self, index: usize) -> Result<Snippet, ContainerError> {
        let Measured { text, code, init, .. } = &self.facts.measured[index];
        let decode = |field: &str, text: &str| {
            let none =
                || ContainerError::fact(&format!("measured[{index}].{field}"), "it is no machine code");
            bytes(text).map_err(|_| none())
        };
        Ok(Snippet::new(decode("code", code)?, decode("init", init)?, text.clone()))
    }

    /// Computes the runs again, with the record of each.
    pub fn runs(&self) -> Result<Vec<(Run, RunRecord)>, ReplayError> {
        let mut executor = Replaying::of(&self.container, self.facts.executor.clone())?;
        let mut runs = Vec::new();
        for (index, measured) in self.facts.measured.iter().enumerate() {
            let (snippet, plan) = (self.snippet_of(index)?, &measured.plan);
            let measurement = measure(&mut executor, &snippet, plan)?;
            let tsc = measured.tsc.map(|rates| rates.map(Hertz));
            let around = Around { asked: self.facts.asked, emulated: self.facts.emulated, tsc };
            let run = Run::judge(measurement, &executor, plan, &around);
            let record = run.record(&Facts {
                snippet: &snippet,
                clock: plan.clock,
                confidence: plan.confidence,
                loop_count: plan.loop_count,
                cold: plan.cold,
                seed: plan.seed,
                executor: &self.facts.executor.name,
                cpu: self.facts.cpu,
                cpu_model: &self.facts.cpu_model,
            });
            runs.push((run, record));
        }
        Ok(runs)
    }

    /// The result, as a command prints it. An error where it is not what was printed then.
    pub fn record(&self) -> Result<RunRecord, ReplayError> {
        let mut records = self.runs()?.into_iter().map(|(_, record)| record);
        let first = records.next().expect("facts have one measurement at least");
        let mut record = match records.next() {
            Some(empty) => first.less_call(&empty, self.facts.asked),
            None => first,
        };
        record.repro = self.container.manifest.origin.repro.clone();
        Ok(record)
    }

    /// The first field in which a record is not what was printed.
    pub fn difference(&self, record: &RunRecord) -> Option<String> {
        let now = plain(record).expect("records are plain data");
        let fields = now.as_object().expect("a record is an object");
        fields
            .iter()
            .find(|(name, value)| self.written.get(name.as_str()) != Some(value))
            .map(|(name, _)| name.clone())
    }
}

/// Why a result can't be computed again.
#[derive(Debug)]
pub enum ReplayError {
    /// The evidence can't be read.
    Container(ContainerError),
    /// The readings do not answer what the study asks.
    Run(RunError),
}

impl From<ContainerError> for ReplayError {
    fn from(error: ContainerError) -> ReplayError {
        ReplayError::Container(error)
    }
}

impl From<RunError> for ReplayError {
    fn from(error: RunError) -> ReplayError {
        ReplayError::Run(error)
    }
}
