//! The study of markers: a survey of a bench's cases, and its findings.

use super::answered_bench::AnsweredBench;
use super::bench::MarkerBench;
use super::catalog::MarkerCatalog;
use super::marker_findings::{MarkerFindings, SkippedRecord};
use super::record::{MarkerOrigin, MarkerRecord, measure_records};
use super::survey;
use cyclescope_code::asm::CodeMode;
use cyclescope_events::{CounterRequest, EventCode, EventRefusal};
use cyclescope_exec::{ExecutorOpener, LockState, failing_opener};
use cyclescope_measure::result::answers::MachineAnswers;
use cyclescope_measure::result::container::{ContainerError, EvidenceContainer, to_json_value};
use cyclescope_measure::study::StudyInfo;
use cyclescope_measure::study::{
    RecordRole, ResultRecord, StopReason, Study, StudyFollower, StudyProgress, check_stop,
};
use cyclescope_measure::{EventPlan, Plan, resolve_ruler_latency};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;

/// Name of the study.
pub const NAME: &str = "marker";

/// Registers the study.
pub const INFO: StudyInfo = StudyInfo {
    name: NAME,
    about: "what instrumentation costs",
    restore: |container| Ok(Box::new(MarkerStudy::restore(container)?)),
    generic: None,
};

/// Most contexts. There are about a dozen.
const CONTEXTS_MOST: usize = 1 << 10;

/// A survey of markers.
pub struct MarkerStudy {
    plan: MarkerPlan,
    /// The machine's facts, as printed by `doctor`.
    machine: Value,
    repro: String,
    /// `None` in a replay.
    bench: Option<Box<dyn MarkerBench>>,
    open: ExecutorOpener,
    /// The findings, once measured.
    pub found: Option<MarkerFindings>,
}

/// The parameters of a survey.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MarkerPlan {
    /// Name of the executor of the markers.
    pub executor: String,
    /// The mode of the markers' code.
    #[serde(rename = "bits", default, skip_serializing_if = "CodeMode::is_default")]
    pub mode: CodeMode,
    /// Clock, step and seed, and the method for measuring the latency of `imul` if it is unknown.
    pub plan: Plan,
    /// Whether to make fewer visits.
    pub quick: bool,
    /// Number of loops with markers. More loops take more time.
    pub contexts: usize,
    /// Whether the machine is emulated. Only calls are counted then.
    pub emulated: bool,
    /// Number of the CPU.
    pub cpu: u32,
    /// Model of the CPU.
    pub cpu_model: String,
    /// Requested markers that cannot be measured.
    pub skipped: Vec<SkippedRecord>,
    /// Events to count for each marker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<CounterRequest>,
}

impl MarkerPlan {
    /// The survey's plan for this latency of `imul`, in core cycles.
    fn to_visit_plan(&self, imul_latency: f64) -> survey::VisitPlan {
        match self.quick {
            true => survey::VisitPlan::quick(imul_latency, self.plan.seed),
            false => survey::VisitPlan::new(imul_latency, self.plan.seed).for_contexts(self.contexts),
        }
    }
}

impl MarkerStudy {
    /// A study of a bench's cases on the machine with these facts. `repro` is the command that
    /// repeats it. `open` opens an executor to measure the latency of `imul` if needed.
    pub fn new(
        plan: MarkerPlan,
        machine: Value,
        repro: String,
        bench: Box<dyn MarkerBench>,
        open: ExecutorOpener,
    ) -> MarkerStudy {
        MarkerStudy { plan, machine, repro, bench: Some(bench), open, found: None }
    }

    /// Latency of `imul` in core cycles; 0 on an emulated machine.
    fn imul_latency(&self, answers: &MachineAnswers) -> Result<f64, StopReason> {
        let MarkerPlan { plan, mode, emulated, .. } = &self.plan;
        if *emulated {
            return Ok(0.0);
        }
        if let Some(latency) = plan.imul_latency.filter(|_| mode.is_default()) {
            return Ok(latency);
        }
        let mut executor = answers.open_executor(|| (self.open)())?;
        Ok(resolve_ruler_latency(executor.as_mut(), plan, *mode)?)
    }

    fn survey_markers(
        &mut self,
        answers: &MachineAnswers,
        follow: &mut dyn StudyFollower,
    ) -> Result<Vec<MarkerRecord>, StopReason> {
        let bench = self.bench.as_deref();
        let count_fitting = |codes: &[EventCode]| match bench {
            Some(bench) => bench.count_fitting(codes),
            // A replay has the answers.
            None => Err(EventRefusal::from_mode("replay")),
        };
        let request = self.plan.counters.as_ref();
        let events = request.map(|request| EventPlan::by_trying(request, &count_fitting, answers)).transpose()?;
        let survey = survey::VisitPlan { events, ..self.plan.to_visit_plan(self.imul_latency(answers)?) };
        let MarkerPlan { executor, mode, plan, emulated, cpu, cpu_model, .. } = &self.plan;
        let catalog = MarkerCatalog::for_executor(executor)?;
        let surroundings = MarkerOrigin {
            executor: catalog.executor,
            mode: *mode,
            clock: plan.clock.name,
            confidence: survey.confidence,
            cpu: *cpu,
            cpu_model: cpu_model.clone(),
            seed: plan.seed,
            repro: self.repro.clone(),
            emulated: *emulated,
        };
        let bench = self.bench.as_mut().map(|bench| bench.as_mut() as &mut dyn MarkerBench);
        let mut bench = AnsweredBench::new(bench, answers, catalog)?;
        measure_records(&mut bench, &survey, &surroundings, follow)
    }
}

impl Study for MarkerStudy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self) -> io::Result<Value> {
        to_json_value(&self.plan)
    }

    fn restore(container: &EvidenceContainer) -> Result<MarkerStudy, ContainerError> {
        container.require_finished()?;
        let plan: MarkerPlan = container.facts()?;
        let out_of_range = |field: &str| Err(ContainerError::damaged_fact(field, "the value is out of range"));
        if let Some(field) = plan.plan.find_unsound_field() {
            return out_of_range(&format!("plan.{field}"));
        }
        if plan.counters.as_ref().is_some_and(|request| !request.is_sound()) {
            return out_of_range("counters");
        }
        if plan.contexts > CONTEXTS_MOST {
            return out_of_range("contexts");
        }
        if let Err(refused) = MarkerCatalog::for_executor(&plan.executor) {
            return Err(ContainerError::damaged_fact("executor", refused.to_string()));
        }
        let (machine, repro) = (container.machine()?, container.manifest.origin.repro.clone());
        Ok(MarkerStudy { plan, machine, repro, bench: None, open: failing_opener(), found: None })
    }

    fn measure(&mut self, answers: &MachineAnswers, follow: &mut dyn StudyFollower) -> Result<(), StopReason> {
        check_stop(follow.report_progress(StudyProgress::from_share(0.0, "counting calls")))?;
        let found = MarkerFindings::new(self.survey_markers(answers, follow)?, &self.plan.skipped);
        let markers = found.records.iter().map(|record| ResultRecord::new("marker", record));
        let skipped = found.skipped.iter().map(|skipped| ResultRecord::new("marker.skipped", skipped));
        let first = std::iter::once_with(|| ResultRecord::new("machine", &self.machine));
        let sum =
            || ResultRecord { role: RecordRole::Sum, ..ResultRecord::new("marker.conclusions", &found.published) };
        for record in first.chain(markers).chain(skipped).chain(std::iter::once_with(sum)) {
            check_stop(follow.accept_record(record))?;
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
