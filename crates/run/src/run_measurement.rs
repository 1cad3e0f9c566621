//! What a run measures: the orders of a mix, the headline, the figure beside it, and events.

use super::run_plan::{RunPlan, missing_code_error};
use super::subject::{RunSubject, SubjectCosts};
use super::variant_comparison::{further_caveats, rank_variants};
use crate::{RunFacts, RunOutcome, run_question};
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::{Error, RunError};
use cyclescope_core::random::mix_seeds;
use cyclescope_core::unit::Unit;
use cyclescope_events::EventCode;
use cyclescope_exec::Executor;
use cyclescope_measure::result::answers::MachineAnswers;
use cyclescope_measure::result::caveat::CaveatKind;
use cyclescope_measure::result::front_end::check_front_end;
use cyclescope_measure::result::record::{MixRecord, Quantity, RunRecord};
use cyclescope_measure::study::{StudyFollower, StudyProgress};
use cyclescope_measure::{
    Acquisition, CostFormula, CostQuestion, EventPlan, LengthenBy, MeasurementProgress, Plan, count_events,
    require_room, take_raw_readings,
};

/// A call up to this number of core cycles is measured both overlapping and not overlapping.
/// Overlap is limited to the contents of the reorder buffer, some hundred instructions: little of a
/// longer call. The second measurement is separate. If both kinds of calls took turns, each would
/// have half the time to train predictors.
const SHORT_CYCLES: f64 = 4_000.0;

/// Makes the layouts of the pass that chooses an order differ from those of the estimate.
const ORDERS_SEED: u64 = 0x6f72_6465_7273;

/// A run in progress.
pub(crate) struct RunMeasurement<'a> {
    /// What to measure.
    pub plan: &'a RunPlan,
    /// Where.
    pub executor: &'a mut dyn Executor,
    /// What is known about the machine.
    pub answers: &'a MachineAnswers,
    /// Who hears of its progress.
    pub follow: &'a mut dyn StudyFollower,
}

impl RunMeasurement<'_> {
    /// Measures the counterpart calls, which wait for something else, if a call is short.
    fn measure_counterpart(&mut self, run: &RunOutcome) -> Result<Option<Quantity>, Error> {
        let RunPlan { plan, beside: counterpart, versus, .. } = self.plan;
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
        let watch = &mut |standing| report_progress(standing, self.follow);
        let runs = run_question(self.answers, self.executor, &question, &plan, self.plan.asked, watch)?;
        let cost = runs[0].cost().map(|cost| Quantity::new(cost, Unit::CoreCycles).at_least_zero());
        Ok(Some(cost.unwrap_or(Quantity::refused(Unit::CoreCycles))))
    }

    /// Measures all that the plan asks for. Returns the record, and the run of its first cost.
    ///
    /// # Errors
    ///
    /// If the plan has no valid code, if the code fails, or if it needs more room than the executor has.
    pub(crate) fn measure(mut self) -> Result<(RunRecord, RunOutcome), Error> {
        let RunPlan { plan, cpu, cpu_model, .. } = self.plan;
        let executor = self.executor.name();
        let mut subjects = self.plan.subjects().map_err(missing_code_error)?;
        let mut mix = self.plan.mix.clone();
        if let Some(mix) = &mut mix {
            let mut runs = self.measure_orders(mix, &subjects)?;
            let cost = |run: &RunOutcome| run.cost().map(|cost| Quantity::new(cost, Unit::CoreCycles));
            let costs = runs.iter().map(|run| cost(run).unwrap_or(Quantity::refused(Unit::CoreCycles))).collect();
            let Some(fastest) = mix.choose_order(costs) else {
                // Any order may be far slower than the fastest, so its own cost would say nothing.
                let snippet = &subjects[0].instances[0];
                let facts = RunFacts { snippet, plan, executor, cpu: *cpu, cpu_model };
                let record = RunRecord { mix: Some(mix.clone()), ..runs[0].to_record(&facts) };
                return Ok((record, runs.swap_remove(0)));
            };
            subjects = vec![subjects.swap_remove(fastest)];
        }
        let snippets: Vec<Snippet> = subjects.iter().map(|subject| subject.instances[0].clone()).collect();
        let repeats = mix.as_ref().and_then(MixRecord::fastest_order).map(|order| order.repeats);
        let costs = SubjectCosts::from_subjects(subjects).of_equal_parts(repeats);
        let compared = snippets.len() > 1;
        let question = if compared { costs.to_comparison_question() } else { costs.to_question() };
        for instances in question.snippets() {
            require_room(plan, &instances[0], self.executor.arena_len())?;
        }
        let events = self.plan.counters.as_ref();
        let events = events.map(|request| EventPlan::new(request, self.executor, self.answers)).transpose()?;
        let mut headline = self.measure_headline(&question)?;
        let HeadlineRuns { runs, plan, obstacle } = &headline;
        let facts = |run: usize| {
            let snippet = &snippets[run];
            RunFacts { snippet, plan, executor, cpu: *cpu, cpu_model }
        };
        let is_of_function = self.plan.subject.is_function_call();
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
            record.assign_call_costs(self.measure_counterpart(&runs[0])?);
            record.assign_region(self.plan.region.as_ref());
        }
        if !is_of_function && !plan.cold.is_any() {
            let other = match self.wants_other_figure() {
                true => self.measure_other_figure(&headline, &question)?,
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
            let mut count_pass = |codes: &[EventCode]| count_events(self.executor, &question, plan, acquisition, codes);
            record.assign_counts(events.count(question.costs().len(), &mut count_pass)?);
        }
        if !record.caveats.iter().any(|caveat| caveat.code == CaveatKind::RulersDisagree) {
            record.caveats.extend(self.answers.find_caveat());
        }
        if self.plan.counts {
            let acquisition = &runs[0].measurement.acquisition;
            record.counts = Some(take_raw_readings(self.executor, &question, plan, acquisition)?);
        }
        record.mix = mix;
        Ok((record, headline.runs.swap_remove(0)))
    }

    /// Measures all orders of a mix in the same rounds, in the pass that chooses one.
    fn measure_orders(&mut self, mix: &MixRecord, subjects: &[RunSubject]) -> Result<Vec<RunOutcome>, Error> {
        let repeats = mix.orders.iter().map(|order| order.repeats);
        let question = SubjectCosts::from_subjects(subjects.to_vec()).of_equal_parts(repeats).to_question();
        for instances in question.snippets() {
            require_room(&self.plan.plan, &instances[0], self.executor.arena_len())?;
        }
        // The estimate has layouts of its own: the minimum of several costs is too low.
        let seed = mix_seeds(self.plan.plan.seed, ORDERS_SEED);
        let plan = Plan { seed, ..self.plan.plan.clone() };
        let watch = &mut |standing| report_progress(standing, self.follow);
        Ok(run_question(self.answers, self.executor, &question, &plan, self.plan.asked, watch)?)
    }

    /// Whether the cost in a loop and the cost without one are both measured.
    fn wants_other_figure(&self) -> bool {
        let RunPlan { plan, versus, both_figures, .. } = self.plan;
        *both_figures
            && versus.is_empty()
            && !plan.cold.is_any()
            && !self.plan.subject.is_function_call()
            && plan.loop_count.is_none()
    }

    /// Measures what the plan asks for. A snippet that fails in a loop is measured without one.
    fn measure_headline(&mut self, question: &CostQuestion) -> Result<HeadlineRuns, Error> {
        let plan = &self.plan.plan;
        let required = self.plan.asked;
        let watch = &mut |standing| report_progress(standing, self.follow);
        let chosen_loop = plan.lengthen == LengthenBy::LoopedCopies && plan.loop_count.is_none();
        let obstacle = chosen_loop
            .then(|| question.snippets().iter().find_map(|instances| instances[0].loop_plan().err()))
            .flatten();
        match run_question(self.answers, self.executor, question, plan, required, watch) {
            Err(error @ (RunError::Fault { .. } | RunError::Exception { .. } | RunError::DirtyCanary { .. }))
                if chosen_loop && obstacle.is_none() =>
            {
                let plan = Plan { lengthen: LengthenBy::Copies, ..plan.clone() };
                let runs = run_question(self.answers, self.executor, question, &plan, required, watch)?;
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
        &mut self,
        headline: &HeadlineRuns,
        question: &CostQuestion,
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
        let plan = Plan { precision: self.plan.asked, ..plan };
        let watch = &mut |standing| report_progress(standing, self.follow);
        match run_question(self.answers, self.executor, question, &plan, self.plan.asked, watch) {
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
