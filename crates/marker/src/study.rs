//! The study of markers: a survey of a bench's cases, and what it comes to.

use super::answered::AnsweredBench;
use super::bench::Bench;
use super::catalog::Catalog;
use super::found::{Found, SkippedRecord};
use super::record::{MarkerRecord, Surroundings, records};
use super::survey;
use cyclescope_exec::{LockState, Open, closed};
use cyclescope_measure::result::answers::Answers;
use cyclescope_measure::result::container::{Container, ContainerError, plain};
use cyclescope_measure::study::StudyInfo;
use cyclescope_measure::study::{Follow, Progress, Record, Role, Stop, Study, going};
use cyclescope_measure::{Plan, imul_latency};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;

/// Its name.
pub const NAME: &str = "marker";

/// How it is found.
pub const INFO: StudyInfo = StudyInfo {
    name: NAME,
    about: "what instrumentation costs",
    restore: |container| Ok(Box::new(MarkerStudy::restore(container)?)),
    plain: None,
};

/// Contexts at most; there are a dozen.
const CONTEXTS_MOST: usize = 1 << 10;

/// A survey of markers.
pub struct MarkerStudy {
    plan: MarkerPlan,
    /// The machine's facts, as `doctor` prints them.
    machine: Value,
    repro: String,
    /// None over evidence.
    bench: Option<Box<dyn Bench>>,
    open: Open,
    /// What it comes to, once it is measured.
    pub found: Option<Found>,
}

/// What decides the course of a survey.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MarkerPlan {
    /// The executor that has the markers, by its name.
    pub executor: String,
    /// Clock, step, seed, and how the latency of `imul` is measured where it is not known.
    pub plan: Plan,
    /// Whether few visits are enough.
    pub quick: bool,
    /// In how many loops the markers are; more take more time.
    pub contexts: usize,
    /// Whether the machine is emulated, so that calls are counted and nothing else.
    pub emulated: bool,
    /// The CPU's number.
    pub cpu: u32,
    /// The CPU's model.
    pub cpu_model: String,
    /// The markers that were asked for and can't be measured.
    pub skipped: Vec<SkippedRecord>,
}

impl MarkerPlan {
    /// How to survey, where `imul` takes this number of core cycles.
    fn survey(&self, imul_latency: f64) -> survey::VisitPlan {
        match self.quick {
            true => survey::VisitPlan::quick(imul_latency, self.plan.seed),
            false => survey::VisitPlan::new(imul_latency, self.plan.seed).over(self.contexts),
        }
    }
}

impl MarkerStudy {
    /// Of a bench's cases, on the machine whose facts these are. `repro` is the command that repeats it; `open` opens
    /// an executor where the latency of `imul` has to be measured.
    pub fn new(
        plan: MarkerPlan,
        machine: Value,
        repro: String,
        bench: Box<dyn Bench>,
        open: Open,
    ) -> MarkerStudy {
        MarkerStudy { plan, machine, repro, bench: Some(bench), open, found: None }
    }

    /// Core cycles; 0 on an emulated machine, which has none.
    fn imul_latency(&self, answers: &Answers) -> Result<f64, Stop> {
        let MarkerPlan { plan, emulated, .. } = &self.plan;
        if *emulated {
            return Ok(0.0);
        }
        if let Some(latency) = plan.imul_latency {
            return Ok(latency);
        }
        let mut executor = answers.executor(|| (self.open)())?;
        Ok(imul_latency(executor.as_mut(), plan)?)
    }

    fn survey(&mut self, answers: &Answers, follow: &mut dyn Follow) -> Result<Vec<MarkerRecord>, Stop> {
        let survey = self.plan.survey(self.imul_latency(answers)?);
        let MarkerPlan { executor, plan, emulated, cpu, cpu_model, .. } = &self.plan;
        let catalog = Catalog::of(executor)?;
        let surroundings = Surroundings {
            executor: catalog.executor,
            clock: plan.clock.name,
            confidence: survey.confidence,
            cpu: *cpu,
            cpu_model: cpu_model.clone(),
            seed: plan.seed,
            repro: self.repro.clone(),
            emulated: *emulated,
        };
        let bench = self.bench.as_mut().map(|bench| bench.as_mut() as &mut dyn Bench);
        let mut bench = AnsweredBench::new(bench, answers, catalog)?;
        records(&mut bench, &survey, &surroundings, follow)
    }
}

impl Study for MarkerStudy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self) -> io::Result<Value> {
        plain(&self.plan)
    }

    fn restore(container: &Container) -> Result<MarkerStudy, ContainerError> {
        container.require_finished()?;
        let plan: MarkerPlan = container.facts()?;
        let out_of_range = |field: &str| Err(ContainerError::fact(field, "it is out of its range"));
        if let Some(field) = plan.plan.unsound() {
            return out_of_range(&format!("plan.{field}"));
        }
        if plan.contexts > CONTEXTS_MOST {
            return out_of_range("contexts");
        }
        if let Err(refused) = Catalog::of(&plan.executor) {
            return Err(ContainerError::fact("executor", refused.to_string()));
        }
        let (machine, repro) = (container.machine()?, container.manifest.origin.repro.clone());
        Ok(MarkerStudy { plan, machine, repro, bench: None, open: closed(), found: None })
    }

    fn measure(&mut self, answers: &Answers, follow: &mut dyn Follow) -> Result<(), Stop> {
        going(follow.progress(Progress::share(0.0, "calls are counted")))?;
        let found = Found::new(self.survey(answers, follow)?, &self.plan.skipped);
        let markers = found.records.iter().map(|record| Record::new("marker", record));
        let skipped = found.skipped.iter().map(|skipped| Record::new("marker.skipped", skipped));
        let first = std::iter::once_with(|| Record::new("machine", &self.machine));
        let sum = || Record { role: Role::Sum, ..Record::new("marker.conclusions", &found.published) };
        for record in first.chain(markers).chain(skipped).chain(std::iter::once_with(sum)) {
            going(follow.record(record))?;
        }
        self.found = Some(found);
        Ok(())
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.bench.as_deref()?.lock_state()
    }
}

#[cfg(test)]
mod tests;
