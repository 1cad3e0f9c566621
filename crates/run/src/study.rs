//! The study of `run`: one snippet, or a function call minus an empty call.

use super::setup_advice::{adapt_advice, adapt_advice_of_error};
use super::subject::{SavedSubject, SubjectCosts};
use super::variant_comparison::{further_caveats, rank_variants};
use crate::{RunFacts, RunOutcome, run_question};
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::{Error, RunError};
use cyclescope_core::machine::Machine;
use cyclescope_core::random::mix_seeds;
use cyclescope_core::unit::Unit;
use cyclescope_events::{CounterRequest, EventCode};
use cyclescope_exec::{Executor, ExecutorOpener, FaultReport, LockState, failing_opener};
use cyclescope_measure::result::answers::MachineAnswers;
use cyclescope_measure::result::caveat::CaveatKind;
use cyclescope_measure::result::container::{ContainerError, EvidenceContainer, to_json_value};
use cyclescope_measure::result::front_end::check_front_end;
use cyclescope_measure::result::record::{CallRecord, MixRecord, Quantity, RegionRecord, RunRecord, SerializedBy};
use cyclescope_measure::study::StudyInfo;
use cyclescope_measure::study::{ResultRecord, StopReason, Study, StudyFollower, StudyProgress, check_stop};
use cyclescope_measure::{
    Acquisition, CODE_MOST, CostFormula, CostQuestion, EventPlan, LengthenBy, MeasurementProgress, Plan, Precision,
    count_events, require_room, take_raw_readings,
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::io;

pub use super::setup_advice::AdviceTexts;
pub use super::subject::RunSubject;

/// Name of the study in manifests.
pub const NAME: &str = "run";

/// Entry in the list of studies.
pub const INFO: StudyInfo = StudyInfo {
    name: NAME,
    about: "what a snippet costs",
    restore: |container| Ok(Box::new(RunStudy::restore(container)?)),
    generic: None,
};

/// A call up to this number of core cycles is measured both overlapping and not overlapping.
/// Overlap is limited to the contents of the reorder buffer, some hundred instructions: little of a
/// longer call. The second measurement is separate. If both kinds of calls took turns, each would
/// have half the time to train predictors.
const SHORT_CYCLES: f64 = 4_000.0;

/// A snippet to measure.
pub struct RunStudy {
    plan: RunPlan,
    open: ExecutorOpener,
    /// The measurement.
    pub run: Option<RunOutcome>,
    /// The result.
    pub record: Option<RunRecord>,
    /// Details of the fault that ended the measurement.
    pub fault: Option<FaultReport>,
    lock: Option<LockState>,
}

/// All inputs of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RunPlan {
    /// The plan of each measurement, with the precision at which it stops.
    plan: Plan,
    /// The precision that the result must reach, or it is too noisy:
    /// [`RunStudy::required_precision`].
    asked: Precision,
    /// The measured subject.
    subject: SavedSubject,
    /// The other subjects, compared in the same rounds.
    #[serde(default, deserialize_with = "read_subjects")]
    versus: Vec<SavedSubject>,
    /// The names of all subjects; empty if their code distinguishes them.
    #[serde(default)]
    names: Vec<String>,
    /// Whether the result includes the readings of one more layout.
    #[serde(default)]
    counts: bool,
    /// Events to count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counters: Option<CounterRequest>,
    /// What each call of a function waits for.
    #[serde(default)]
    serialized: Option<SerializedBy>,
    /// Calls that wait for [`SerializedBy::counterpart_of`] instead. They are measured
    /// too if a call is short and nothing is compared.
    #[serde(default)]
    beside: Option<SavedSubject>,
    /// The name of the function that runs before each call.
    #[serde(default)]
    setup: Option<String>,
    /// The call of the function.
    #[serde(default)]
    call: Option<CallRecord>,
    /// Whether the snippet is measured both in a loop and as copies without one.
    #[serde(default)]
    both_figures: bool,
    /// The region of an executable that the subject runs.
    #[serde(default)]
    region: Option<RegionRecord>,
    /// The mix whose orders the subjects are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mix: Option<MixRecord>,
    /// The texts of the command that advice repeats.
    #[serde(default)]
    advice: Option<AdviceTexts>,
    cpu: u32,
    cpu_model: String,
    repro: String,
}

/// Reads other subjects. Evidence of earlier versions has one or none.
fn read_subjects<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<SavedSubject>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum SavedSubjects {
        Several(Vec<SavedSubject>),
        One(Option<SavedSubject>),
    }
    Ok(match SavedSubjects::deserialize(from)? {
        SavedSubjects::Several(all) => all,
        SavedSubjects::One(one) => one.into_iter().collect(),
    })
}

/// Makes the layouts of the pass that chooses an order differ from those of the estimate.
const ORDERS_SEED: u64 = 0x6f72_6465_7273;
/// Most subjects compared in the same rounds. Each of their pairs is a comparison: 120 of 16.
pub const VARIANTS_MOST: usize = 16;

impl RunStudy {
    /// Creates the study of a snippet, with an executor of this machine. `repro` is the command
    /// that repeats it.
    pub fn new(
        subject: &RunSubject,
        plan: Plan,
        required: Precision,
        machine: &Machine,
        repro: String,
        open: ExecutorOpener,
    ) -> RunStudy {
        let (cpu, cpu_model) = (machine.target_cpu(), machine.cpu.name());
        let plan = RunPlan {
            plan,
            asked: required,
            subject: subject.into(),
            versus: Vec::new(),
            names: Vec::new(),
            counts: false,
            counters: None,
            serialized: None,
            beside: None,
            setup: None,
            call: None,
            both_figures: false,
            region: None,
            mix: None,
            advice: None,
            cpu,
            cpu_model,
            repro,
        };
        RunStudy::from_plan(plan, open)
    }

    /// Compares with other subjects in the same rounds: at most [`VARIANTS_MOST`] in all.
    pub fn with_other_variants(mut self, others: &[RunSubject]) -> RunStudy {
        self.plan.versus = others.iter().map(SavedSubject::from).collect();
        self
    }

    /// Says that the subjects are the orders of a mix. They are not compared: a first pass chooses the
    /// fastest, and the result is its cost in another pass, per repetition of the mix.
    pub fn with_mix(mut self, mix: Option<MixRecord>) -> RunStudy {
        self.plan.mix = mix;
        self
    }

    /// The mix whose orders the subjects are.
    pub fn mix(&self) -> Option<&MixRecord> {
        self.plan.mix.as_ref()
    }

    /// Names the variants, the first included. Without names, their code distinguishes them.
    pub fn with_variant_names(mut self, names: Vec<String>) -> RunStudy {
        self.plan.names = names;
        self
    }

    /// Adds the readings of one more layout, if `wanted`.
    pub fn with_raw_readings(mut self, wanted: bool) -> RunStudy {
        self.plan.counts = wanted;
        self
    }

    /// Counts events beside the cost.
    pub fn with_counters(mut self, request: Option<CounterRequest>) -> RunStudy {
        self.plan.counters = request;
        self
    }

    /// The events that are counted beside the cost.
    pub fn counters(&self) -> Option<&CounterRequest> {
        self.plan.counters.as_ref()
    }

    /// Sets what each call of the function waits for, as in its snippets. If a call is short, also
    /// measures `counterpart`, whose calls wait for [`SerializedBy::counterpart_of`].
    pub fn with_serialized(mut self, serialized: Option<SerializedBy>, counterpart: Option<&RunSubject>) -> RunStudy {
        self.plan.serialized = serialized;
        self.plan.beside = counterpart.map(SavedSubject::from);
        self
    }

    /// The same study with half the budget, for one of two passes (from 0). Each pass has its own
    /// layouts. For a function it also begins with other addresses.
    pub(super) fn half_for_pass(&self, pass: usize) -> RunStudy {
        let mut saved = self.plan.clone();
        let Plan { budget, layouts, layouts_most, seed, .. } = &mut saved.plan;
        *budget /= 2;
        *layouts = layouts.div_ceil(2);
        *layouts_most = layouts_most.div_ceil(2).max(*layouts);
        if pass > 0 {
            *seed = mix_seeds(*seed, pass as u64);
            let subjects = [&mut saved.subject].into_iter().chain(&mut saved.versus).chain(&mut saved.beside);
            subjects.for_each(SavedSubject::rotate_addresses);
        }
        RunStudy::from_plan(saved, failing_opener())
    }

    /// Measures a snippet both in a loop and as copies without one, if `wanted`. The plan says which
    /// of the two is the cost.
    pub fn with_both_figures(mut self, wanted: bool) -> RunStudy {
        self.plan.both_figures = wanted;
        self
    }

    /// Whether a snippet is measured both in a loop and as copies without one.
    pub fn wants_both_figures(&self) -> bool {
        self.plan.both_figures
    }

    /// Sets the texts of the command that advice repeats.
    pub fn with_advice_texts(mut self, texts: AdviceTexts) -> RunStudy {
        self.plan.advice = Some(texts);
        self
    }

    /// Names the function that runs before each call, as in its snippets.
    pub fn with_setup(mut self, name: Option<String>) -> RunStudy {
        self.plan.setup = name;
        self
    }

    /// Describes the call of the function, as in its snippets.
    pub fn with_call(mut self, call: Option<CallRecord>) -> RunStudy {
        self.plan.call = call;
        self
    }

    /// Sets the region of an executable that the subject's calls run.
    pub fn with_region(mut self, region: Option<RegionRecord>) -> RunStudy {
        self.plan.region = region;
        self
    }

    /// The region of an executable that is measured.
    pub fn region(&self) -> Option<&RegionRecord> {
        self.plan.region.as_ref()
    }

    /// Whether the result includes the readings of one more layout.
    pub fn wants_raw_readings(&self) -> bool {
        self.plan.counts
    }

    fn from_plan(plan: RunPlan, open: ExecutorOpener) -> RunStudy {
        RunStudy { plan, open, run: None, record: None, fault: None, lock: None }
    }

    /// All inputs of the study.
    pub(super) fn saved_plan(&self) -> &RunPlan {
        &self.plan
    }

    /// Restores a run from a plan that may be invalid.
    pub(super) fn from_saved_plan(plan: RunPlan) -> Result<RunStudy, ContainerError> {
        if let Some(field) = plan.plan.find_unsound_field() {
            return Err(ContainerError::damaged_fact(&format!("plan.{field}"), "it is out of its range"));
        }
        plan.beside.as_ref().map(SavedSubject::to_subject).transpose()?;
        let variants = 1 + plan.versus.len();
        if variants > VARIANTS_MOST || !(plan.names.is_empty() || plan.names.len() == variants) {
            return Err(ContainerError::damaged_fact("versus", "it has too many variants, or other names"));
        }
        if plan.mix.as_ref().is_some_and(|mix| !mix.is_sound(variants)) {
            return Err(ContainerError::damaged_fact("mix", "it has no form, or other orders"));
        }
        if plan.counters.as_ref().is_some_and(|request| !request.is_sound()) {
            return Err(ContainerError::damaged_fact("counters", "a column has no event"));
        }
        let study = RunStudy::from_plan(plan, failing_opener());
        let subjects = study.subjects()?;
        for snippet in subjects.iter().flat_map(|subject| &subject.instances) {
            let plan = study.measurement_plan();
            if plan.unit.unwrap_or(1).saturating_mul(snippet.code().len()) > CODE_MOST {
                return Err(ContainerError::damaged_fact("plan.unit", "it is out of its range"));
            }
            // Earlier versions put any snippet into the loop that was asked for.
            let in_loop = plan.loop_count.is_some() && plan.lengthen != LengthenBy::Iterations;
            if let Err(obstacle) = snippet.loop_plan_with_moves()
                && in_loop
            {
                return Err(ContainerError::Outdated { why: format!("{obstacle}, so it has no loop") });
            }
        }
        Ok(study)
    }

    /// Measures with an open executor.
    pub(super) fn measure_with(
        &mut self,
        executor: &mut dyn Executor,
        answers: &MachineAnswers,
        follow: &mut dyn StudyFollower,
    ) -> Result<RunRecord, Error> {
        let result = self.measure_subjects(executor, answers, follow);
        self.fault = result.as_ref().err().and(executor.last_fault().cloned());
        let subjects = self.subjects().map_err(missing_code_error)?;
        let (snippet, texts) = (&subjects[0].instances[0], self.plan.advice.as_ref());
        let mut record = result.map_err(|error| adapt_advice_of_error(error, snippet, texts))?;
        let states = self.run.as_ref().map_or(&[][..], |run| &run.measurement.unsteady);
        for caveat in record.caveats.iter_mut().filter(|caveat| caveat.code == CaveatKind::NotSteady) {
            // A mix has no setup that restores a state.
            let state = states.iter().find_map(|state| caveat.text.strip_suffix(state.remedy.as_str()));
            caveat.text = match state.filter(|_| self.plan.mix.is_some()) {
                Some(state) => format!("{state}leave this form out of the mix"),
                None => adapt_advice(&caveat.text, snippet, texts),
            };
        }
        Ok(RunRecord { repro: self.plan.repro.clone(), ..record })
    }

    /// Whether it measures a call of a function, which resides in a library.
    pub fn is_function_call(&self) -> bool {
        self.plan.subject.is_function_call()
    }

    /// The plan of the measurement.
    pub fn measurement_plan(&self) -> &Plan {
        &self.plan.plan
    }

    /// The CPU that it measures on.
    pub fn cpu(&self) -> u32 {
        self.plan.cpu
    }

    /// The precision that the result must reach, or it is too noisy.
    pub fn required_precision(&self) -> Precision {
        self.plan.asked
    }

    /// The measured subject, and those that it is compared with.
    ///
    /// # Errors
    ///
    /// If a manifest does not contain valid code for them.
    pub fn subjects(&self) -> Result<Vec<RunSubject>, ContainerError> {
        [&self.plan.subject].into_iter().chain(&self.plan.versus).map(SavedSubject::to_subject).collect()
    }

    /// The names of the variants; empty if they have none.
    pub fn variant_names(&self) -> &[String] {
        &self.plan.names
    }

    /// Measures the counterpart calls, which wait for something else, if a call is short.
    fn measure_counterpart(
        &self,
        run: &RunOutcome,
        executor: &mut dyn Executor,
        answers: &MachineAnswers,
        follow: &mut dyn StudyFollower,
    ) -> Result<Option<Quantity>, Error> {
        let RunPlan { plan, beside: counterpart, versus, .. } = &self.plan;
        let one_cost = !versus.is_empty() || plan.cold.is_any();
        let Some(counterpart) = counterpart.as_ref().filter(|_| !one_cost) else { return Ok(None) };
        if run.cost().is_none_or(|cost| cost.value > SHORT_CYCLES) {
            return Ok(None);
        }
        let question =
            SubjectCosts::from_subjects([counterpart.to_subject().map_err(missing_code_error)?]).to_question();
        let Acquisition { training, warm_up, .. } = &*run.measurement.acquisition;
        // Training without effect need not be tried again.
        let warm_up = if training.is_some() { plan.warm_up } else { Some(*warm_up) };
        let plan = Plan { warm_up, ..plan.clone() };
        let watch = &mut |standing| report_progress(standing, follow);
        let runs = run_question(answers, executor, &question, &plan, self.required_precision(), watch)?;
        let cost = runs[0].cost().map(|cost| Quantity::new(cost, Unit::CoreCycles).at_least_zero());
        Ok(Some(cost.unwrap_or(Quantity::refused(Unit::CoreCycles))))
    }

    fn measure_subjects(
        &mut self,
        executor: &mut dyn Executor,
        answers: &MachineAnswers,
        follow: &mut dyn StudyFollower,
    ) -> Result<RunRecord, Error> {
        let RunPlan { plan, cpu, cpu_model, .. } = &self.plan;
        let mut subjects = self.subjects().map_err(missing_code_error)?;
        let mut mix = self.plan.mix.clone();
        if let Some(mix) = &mut mix {
            let mut runs = self.measure_orders(mix, &subjects, executor, answers, follow)?;
            let cost = |run: &RunOutcome| run.cost().map(|cost| Quantity::new(cost, Unit::CoreCycles));
            let costs = runs.iter().map(|run| cost(run).unwrap_or(Quantity::refused(Unit::CoreCycles))).collect();
            let Some(fastest) = mix.choose_order(costs) else {
                // Any order may be far slower than the fastest, so its own cost would say nothing.
                let snippet = &subjects[0].instances[0];
                let facts = RunFacts { snippet, plan, executor: executor.name(), cpu: *cpu, cpu_model };
                let record = RunRecord { mix: Some(mix.clone()), ..runs[0].to_record(&facts) };
                self.run = Some(runs.swap_remove(0));
                return Ok(record);
            };
            subjects = vec![subjects.swap_remove(fastest)];
        }
        let snippets: Vec<Snippet> = subjects.iter().map(|subject| subject.instances[0].clone()).collect();
        let repeats = mix.as_ref().and_then(MixRecord::fastest_order).map(|order| order.repeats);
        let costs = SubjectCosts::from_subjects(subjects).of_equal_parts(repeats);
        let compared = snippets.len() > 1;
        let question = if compared { costs.to_comparison_question() } else { costs.to_question() };
        for instances in question.snippets() {
            require_room(plan, &instances[0], executor.arena_len())?;
        }
        let events = self.plan.counters.as_ref();
        let events = events.map(|request| EventPlan::new(request, executor, answers)).transpose()?;
        let headline = self.measure_headline(&question, executor, answers, follow)?;
        let HeadlineRuns { runs, plan, obstacle } = &headline;
        let facts = |run: usize| {
            let snippet = &snippets[run];
            RunFacts { snippet, plan, executor: executor.name(), cpu: *cpu, cpu_model }
        };
        let is_of_function = self.is_function_call();
        let record_of = |run: usize| {
            let mut record = runs[run].to_record(&facts(run));
            if is_of_function {
                record.clamp_costs_to_zero();
            }
            record
        };
        let mut record = record_of(0);
        record.addresses = is_of_function.then(|| question.snippets()[0].len());
        let cost_of_snippet = |number| {
            let estimate = runs[0].measurement.estimate_of(&CostFormula::from_snippet(number), plan.confidence)?;
            Some(Quantity::new(estimate.cost, Unit::CoreCycles))
        };
        record.empty_call = costs.empty_call.and_then(cost_of_snippet);
        record.setup_cost = costs.setup.and_then(cost_of_snippet);
        if compared {
            let (variants, names) = (costs.subjects.len(), &self.plan.names);
            let records: Vec<RunRecord> = (0..variants).map(record_of).collect();
            let ranked = rank_variants(runs, &records, names);
            record.caveats.extend(further_caveats(&record.caveats, &runs[1..variants], names));
            record.versus = (variants == 2).then(|| ranked[1].to_comparison());
            record.variants = if variants > 2 || !names.is_empty() { ranked } else { Vec::new() };
        }
        record.serialized = self.plan.serialized;
        record.setup = self.plan.setup.clone().or(record.setup);
        record.call = self.plan.call.clone();
        record.caveats.extend(record.call.as_ref().and_then(|call| call.find_caveat(&record.cost)));
        if is_of_function {
            record.assign_call_costs(self.measure_counterpart(&runs[0], executor, answers, follow)?);
            record.assign_region(self.plan.region.as_ref());
        }
        if !is_of_function && !plan.cold.is_any() {
            let other = match self.wants_other_figure() {
                true => self.measure_other_figure(&headline, &question, executor, answers, follow)?,
                false => None,
            };
            record.assign_loop_figures(runs[0].is_looped(), other);
            record.loop_obstacle = obstacle.clone();
            if record.setup_cost.is_none() && mix.is_none() {
                record.caveats.extend(check_front_end(&record, snippets[0].outline(false).instructions));
            }
        }
        if let Some(events) = events {
            let acquisition = &runs[0].measurement.acquisition;
            let mut count_pass = |codes: &[EventCode]| count_events(executor, &question, plan, acquisition, codes);
            record.assign_counts(events.count(question.costs().len(), &mut count_pass)?);
        }
        if !record.caveats.iter().any(|caveat| caveat.code == CaveatKind::RulersDisagree) {
            record.caveats.extend(answers.find_caveat());
        }
        if self.plan.counts {
            let acquisition = &runs[0].measurement.acquisition;
            record.counts = Some(take_raw_readings(executor, &question, plan, acquisition)?);
        }
        record.mix = mix;
        self.run = headline.runs.into_iter().next();
        Ok(record)
    }

    /// Measures all orders of a mix in the same rounds, in the pass that chooses one.
    fn measure_orders(
        &self,
        mix: &MixRecord,
        subjects: &[RunSubject],
        executor: &mut dyn Executor,
        answers: &MachineAnswers,
        follow: &mut dyn StudyFollower,
    ) -> Result<Vec<RunOutcome>, Error> {
        let repeats = mix.orders.iter().map(|order| order.repeats);
        let question = SubjectCosts::from_subjects(subjects.to_vec()).of_equal_parts(repeats).to_question();
        for instances in question.snippets() {
            require_room(self.measurement_plan(), &instances[0], executor.arena_len())?;
        }
        // The estimate has layouts of its own: the minimum of several costs is too low.
        let seed = mix_seeds(self.measurement_plan().seed, ORDERS_SEED);
        let plan = Plan { seed, ..self.measurement_plan().clone() };
        let watch = &mut |standing| report_progress(standing, follow);
        Ok(run_question(answers, executor, &question, &plan, self.required_precision(), watch)?)
    }

    /// Whether the cost in a loop and the cost without one are both measured.
    fn wants_other_figure(&self) -> bool {
        let RunPlan { plan, versus, both_figures, .. } = &self.plan;
        *both_figures
            && versus.is_empty()
            && !plan.cold.is_any()
            && !self.is_function_call()
            && plan.loop_count.is_none()
    }

    /// Measures what the plan asks for. A snippet that fails in a loop is measured without one.
    fn measure_headline(
        &self,
        question: &CostQuestion,
        executor: &mut dyn Executor,
        answers: &MachineAnswers,
        follow: &mut dyn StudyFollower,
    ) -> Result<HeadlineRuns, Error> {
        let plan = self.measurement_plan();
        let required = self.required_precision();
        let watch = &mut |standing| report_progress(standing, follow);
        let chosen_loop = plan.lengthen == LengthenBy::LoopedCopies && plan.loop_count.is_none();
        let obstacle = chosen_loop
            .then(|| question.snippets().iter().find_map(|instances| instances[0].loop_plan().err()))
            .flatten();
        match run_question(answers, executor, question, plan, required, watch) {
            Err(error @ (RunError::Fault { .. } | RunError::Exception { .. } | RunError::DirtyCanary { .. }))
                if chosen_loop && obstacle.is_none() =>
            {
                let plan = Plan { lengthen: LengthenBy::Copies, ..plan.clone() };
                let runs = run_question(answers, executor, question, &plan, required, watch)?;
                Ok(HeadlineRuns { runs, plan, obstacle: Some(format!("in a loop the snippet fails: {error}")) })
            }
            runs => {
                let runs = runs?;
                let is_long = chosen_loop && obstacle.is_none() && !runs[0].is_looped();
                let too_long =
                    is_long.then(|| "a copy takes so long that a loop would not change its cost".to_string());
                let obstacle = obstacle.map(|obstacle| obstacle.to_string()).or(too_long);
                Ok(HeadlineRuns { runs, plan: plan.clone(), obstacle })
            }
        }
    }

    /// Measures the cost without a loop if the headline is in one, and the other way round. `None`
    /// if there is no other figure: the snippet has no loop, or needs one, or the copies are not
    /// alike.
    fn measure_other_figure(
        &self,
        headline: &HeadlineRuns,
        question: &CostQuestion,
        executor: &mut dyn Executor,
        answers: &MachineAnswers,
        follow: &mut dyn StudyFollower,
    ) -> Result<Option<Quantity>, Error> {
        let HeadlineRuns { runs, plan, obstacle } = headline;
        let is_looped = runs[0].is_looped();
        if runs[0].measurement.is_refused_as_unsteady() {
            return Ok(None);
        }
        let lacks_loop = || obstacle.is_some() || question.snippets()[0][0].loop_plan().is_err();
        if !is_looped && lacks_loop() {
            return Ok(None);
        }
        let lengthen = if is_looped { LengthenBy::Copies } else { LengthenBy::LoopedCopies };
        let Plan { layouts, budget, .. } = *plan;
        let plan = Plan { lengthen, unit: None, layouts: layouts.div_ceil(2), budget: budget / 2, ..plan.clone() };
        let plan = Plan { precision: self.required_precision(), ..plan };
        let watch = &mut |standing| report_progress(standing, follow);
        match run_question(answers, executor, question, &plan, self.required_precision(), watch) {
            Ok(others) if others[0].is_looped() == is_looped => Ok(None),
            Ok(others) => {
                let cost = others[0].cost().map(|cost| Quantity::new(cost, Unit::CoreCycles));
                Ok(Some(cost.unwrap_or(Quantity::refused(Unit::CoreCycles))))
            }
            Err(error) if error.is_harness_failure() => Err(error.into()),
            // The headline stands without it.
            Err(_) => Ok(Some(Quantity::refused(Unit::CoreCycles))),
        }
    }
}

/// The runs of the headline, with the plan that they follow.
struct HeadlineRuns {
    runs: Vec<RunOutcome>,
    plan: Plan,
    /// Why the snippet was not measured in a loop.
    obstacle: Option<String>,
}

fn missing_code_error(error: ContainerError) -> RunError {
    RunError::Replay { how: error.to_string() }
}

/// A measurement longer than this number of seconds reports progress.
const LONG_S: f64 = 2.0;

/// Reports the progress of a long measurement. It has no parts after which it could stop.
fn report_progress(standing: MeasurementProgress, follow: &mut dyn StudyFollower) {
    if standing.total_seconds() >= LONG_S {
        let MeasurementProgress { done, total, .. } = standing;
        let message = format!("{total} layouts, about {:.0} s", standing.total_seconds());
        let _ = follow.report_progress(StudyProgress { done: done as u64, total: total as u64, message });
    }
}

impl Study for RunStudy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self) -> io::Result<Value> {
        to_json_value(&self.plan)
    }

    fn restore(container: &EvidenceContainer) -> Result<RunStudy, ContainerError> {
        container.require_finished()?;
        RunStudy::from_saved_plan(container.facts()?)
    }

    fn measure(&mut self, answers: &MachineAnswers, follow: &mut dyn StudyFollower) -> Result<(), StopReason> {
        let mut executor = answers.open_executor(|| (self.open)())?;
        let result = self.measure_with(executor.as_mut(), answers, follow);
        self.lock = executor.lock_state().cloned();
        let record = result?;
        check_stop(follow.accept_record(ResultRecord::new(NAME, &record)))?;
        self.record = Some(record);
        Ok(())
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.lock.as_ref()
    }
}
