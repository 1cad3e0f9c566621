//! Runs an evaluation: facts of the machine, then contamination and resolution of each method. The
//! samples come last and take the remaining time.

mod evaluation_basis;
mod executor_set;

pub(crate) use executor_set::{ExecutorHost, open_offered};

use crate::claims::{self, ClaimEvidence, DocumentClaim};
use crate::contamination::{self, Contamination, measure_contamination};
use crate::counted_pairs::CountedPairs;
pub use crate::method_evaluation::MethodEvaluation;
use crate::pair_breakdown::{PairBreakdown, break_down_pair};
use crate::plan::{EvaluatePlan, WaitingMethod, share_budget};
use crate::published_comparison;
use crate::record::{
    ContaminationRecord, EnsembleRecord, EvaluateOrigin, EvaluateRecord, PairBreakdownRecord, ResolutionRecord,
    TimingFactsRecord,
};
use crate::resolution::{Resolution, ResolutionEffort, StaircaseProgress, measure_resolution};
use crate::sampled_method::{SampledMethod, SamplingRequest};
use crate::sampling::{CompletedEnsemble, PairSampler, SamplingSpan};
use crate::timing_facts::TimingFacts;
use crate::trimmed_ensemble;
use crate::verdict::EvaluationVerdict;
use crate::{MethodCandidate, TestedClock};
use cyclescope_code::asm::CodeMode;
use cyclescope_core::error::Error;
use cyclescope_core::random::{Random, mix_seeds};
use cyclescope_exec::LockState;
use cyclescope_measure::EventPlan;
use cyclescope_measure::result::answers::MachineAnswers;
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::ruler::UnsharedWidth;
use cyclescope_measure::sibling::SiblingPolicy;
use cyclescope_measure::study::{ResultRecord, StopReason, StudyFollower, StudyProgress, check_stop};
use evaluation_basis::{EvaluationBasis, ExperimentSeeds};
use executor_set::ExecutorSet;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

/// The results of an evaluation. If it ended early, the completed part.
pub struct Evaluation {
    /// Results about the machine.
    pub facts: TimingFacts,
    /// Results for each method with complete samples, in the order of the plan.
    pub methods: Vec<MethodEvaluation>,
    /// The documents' claims and their results.
    pub claims: Vec<DocumentClaim>,
    /// The conclusions for each executor.
    pub verdicts: Vec<EvaluationVerdict>,
    /// Whether the evaluation finished.
    pub complete: bool,
}

/// A row that leaves a claim open is measured again: a temporary background load widens its
/// interval.
const OPEN_ROW_RETRY_POLICY: SiblingPolicy = SiblingPolicy { retries: 3, ..SiblingPolicy::USUAL };

/// Progress of the evaluation, by the default executor's clock.
#[derive(Clone, Copy)]
struct EvaluationPace {
    started: Duration,
    /// Expected total duration in seconds.
    expected: f64,
}

impl EvaluationPace {
    fn elapsed_seconds(&self, now: Duration) -> f64 {
        now.saturating_sub(self.started).as_secs_f64()
    }

    fn progress_at(&self, now: Duration, message: &str) -> StudyProgress {
        StudyProgress::from_share(self.elapsed_seconds(now) / self.expected, message)
    }
}

/// The request for an evaluation.
#[derive(Clone, Copy)]
pub(super) struct EvaluationRequest<'a> {
    pub(super) plan: &'a EvaluatePlan,
    pub(super) around: &'a EvaluateOrigin,
    /// The machine's record.
    pub(super) machine: &'a Value,
}

/// A record with the mode of the methods.
#[derive(Serialize)]
struct MethodRecord<'a, T> {
    #[serde(flatten)]
    content: &'a T,
    /// The mode that the methods run in; absent for 64-bit mode.
    #[serde(skip_serializing_if = "CodeMode::is_default")]
    bits: CodeMode,
}

/// The measurements of a method that precede its samples.
struct MethodExamination {
    contamination: Vec<Contamination>,
    resolution: Resolution,
    parts: Option<PairBreakdown>,
}

/// A running evaluation.
pub(super) struct EvaluationRun<'a> {
    asked: EvaluationRequest<'a>,
    executors: ExecutorSet<'a>,
    answers: &'a MachineAnswers,
    pace: EvaluationPace,
    random: Random,
    /// Events to count for each method, in passes of the default executor.
    events: Option<EventPlan>,
    follow: &'a mut dyn StudyFollower,
}

/// Makes the seed of counted ensembles differ from those of timed ones.
const COUNTING_SEED: u64 = 0x636f_756e_7400_0001;

impl<'a> EvaluationRun<'a> {
    /// Opens its executors.
    pub(super) fn open_executors(
        asked: EvaluationRequest<'a>,
        host: Option<&'a ExecutorHost>,
        answers: &'a MachineAnswers,
        follow: &'a mut dyn StudyFollower,
    ) -> Result<EvaluationRun<'a>, Error> {
        let plan = asked.plan;
        let mut executors = ExecutorSet::open(host, answers, &plan.candidates)?;
        let pace = EvaluationPace {
            started: executors.default_executor().now(),
            expected: plan.expected_time().as_secs_f64(),
        };
        let request = plan.counters.as_ref();
        let events =
            request.map(|request| EventPlan::new(request, executors.default_executor(), answers)).transpose()?;
        Ok(EvaluationRun { asked, executors, answers, pace, random: Random::new(plan.seed), events, follow })
    }

    /// State of the CPU's lock.
    pub(super) fn lock_state(&self) -> Option<LockState> {
        self.executors.lock_state()
    }

    /// Runs the evaluation to its end. If it ends early, `complete` holds the completed part.
    pub(super) fn run(&mut self, complete: &mut Option<Evaluation>) -> Result<(), StopReason> {
        let found = self.measure_basis()?;
        let facts = found.facts.clone();
        let empty =
            Evaluation { facts, methods: Vec::new(), claims: Vec::new(), verdicts: Vec::new(), complete: false };
        let complete = complete.insert(empty);
        let tested_clocks = found.tested_clocks(self.asked.plan);
        let mut examined = Vec::new();
        for tested in &tested_clocks {
            examined.push(self.examine_method(tested, &found.facts)?);
        }
        let stand_in = self.measure_stand_in(&found)?;
        self.write_refused()?;
        self.sample_methods(&tested_clocks, examined, complete)?;
        self.write_published(&complete.methods)?;
        complete.claims = self.judge_claims(complete, stand_in.as_deref())?;
        complete.verdicts = self.decide_verdicts(complete)?;
        complete.complete = true;
        Ok(())
    }

    /// Writes a record about the machine.
    fn write_machine_record<T: Serialize>(&mut self, kind: &'static str, content: &T) -> Result<(), StopReason> {
        check_stop(self.follow.accept_record(ResultRecord::new(kind, content)))
    }

    /// Writes a record about the methods.
    fn write_record<T: Serialize>(&mut self, kind: &'static str, content: &T) -> Result<(), StopReason> {
        let record = MethodRecord { content, bits: self.asked.plan.mode };
        check_stop(self.follow.accept_record(ResultRecord::new(kind, &record)))
    }

    fn report_progress(&mut self, message: &str) -> Result<(), StopReason> {
        let now = self.executors.default_executor().now();
        check_stop(self.follow.report_progress(self.pace.progress_at(now, message)))
    }

    fn measure_basis(&mut self) -> Result<EvaluationBasis, StopReason> {
        self.report_progress("examining the machine")?;
        let plan = self.asked.plan;
        let seeds = ExperimentSeeds { examination: self.random.next_bits(), watch: self.random.next_bits() };
        let found = self.answers.ask_machine(|| {
            let host = self.executors.require_host()?;
            Ok::<_, Error>(EvaluationBasis::measure(host, self.executors.default_executor(), plan, seeds))
        })?;
        if !found.is_sound(plan) {
            return Err(self.answers.damage_error("a machine parameter is out of range").into());
        }
        self.write_machine_record("machine", self.asked.machine)?;
        self.write_machine_record("evaluate.tsc", &TimingFactsRecord::new(&found.facts))?;
        Ok(found)
    }

    /// Measures contamination and resolution of a method.
    fn examine_method(
        &mut self,
        tested: &TestedClock<'static>,
        facts: &TimingFacts,
    ) -> Result<MethodExamination, StopReason> {
        let candidate = tested.candidate();
        let contamination = match tested.emulated {
            true => contamination::list_rows_not_run(&tested.clock.promises, &Caveat::emulated_machine().text),
            false => {
                let rows = self.measure_contamination(tested)?;
                self.remeasure_open_rows(tested, facts, rows)?
            }
        };
        self.write_contamination(candidate, &contamination)?;
        let resolution = self.measure_resolution(tested)?;
        self.write_record("evaluate.resolution", &ResolutionRecord::new(candidate.executor, &resolution))?;
        let parts = match tested.emulated {
            true => None,
            false => self.measure_breakdown(tested)?,
        };
        Ok(MethodExamination { contamination, resolution, parts })
    }

    fn measure_contamination(&mut self, tested: &TestedClock<'static>) -> Result<Vec<Contamination>, StopReason> {
        self.report_progress(&format!("measuring contamination: {}", tested.candidate()))?;
        let executor = self.executors.for_clock(tested)?;
        let time = self.asked.plan.times.contamination;
        Ok(measure_contamination(executor, tested, time, &mut self.random)?)
    }

    /// Measures rows again, in more time, if a claim depends on them and their interval leaves it
    /// open.
    ///
    /// The new interval replaces the old one, which was selected for its width. A temporary
    /// background load widens an interval, so there are several attempts. One wrong verdict in two
    /// thousand attempts remains one in several hundred rows.
    fn remeasure_open_rows(
        &mut self,
        tested: &TestedClock<'static>,
        facts: &TimingFacts,
        rows: Vec<Contamination>,
    ) -> Result<Vec<Contamination>, StopReason> {
        let time = self.asked.plan.times.contamination;
        let bound = claims::clock_detection_bound(tested.step, facts);
        let remeasure = |course: &mut Self, mut row: Contamination| {
            let mut retries = OPEN_ROW_RETRY_POLICY.start_retries();
            while claims::leaves_claim_open(tested.clock.name, &row, bound) && retries.use_retry() {
                course.report_progress(&format!("measuring contamination again: {}", tested.candidate()))?;
                let (executor, random) = (course.executors.for_clock(tested)?, &mut course.random);
                row = contamination::measure_fault(executor, tested, row.fault, time, random)?;
            }
            Ok(row)
        };
        rows.into_iter().map(|row| remeasure(self, row)).collect()
    }

    fn write_contamination(&mut self, candidate: MethodCandidate, rows: &[Contamination]) -> Result<(), StopReason> {
        let mut rows = rows.iter();
        rows.try_for_each(|row| self.write_record("evaluate.contamination", &ContaminationRecord::new(candidate, row)))
    }

    /// Measures the resolution of a method. A requested number of readings may take minutes, so it
    /// reports progress.
    fn measure_resolution(&mut self, tested: &TestedClock<'static>) -> Result<Resolution, StopReason> {
        let plan = self.asked.plan;
        let message = format!("measuring the staircase: {}", tested.candidate());
        self.report_progress(&message)?;
        let (pace, follow) = (self.pace, &mut *self.follow);
        let effort = ResolutionEffort { time: plan.times.resolution, readings: plan.resolution_samples };
        let readings = plan.resolution_samples.unwrap_or_default();
        let mut follower = |climbed: &StaircaseProgress| {
            let left = climbed.left.as_secs_f64();
            let message = format!("{message}, {readings} readings of each length, {left:.0} s left");
            check_stop(follow.report_progress(pace.progress_at(climbed.now, &message)))
        };
        measure_resolution(self.executors.for_clock(tested)?, tested, effort, &mut self.random, &mut follower)
    }

    /// Measures the cost of each step of a method's pair.
    fn measure_breakdown(&mut self, tested: &TestedClock<'static>) -> Result<Option<PairBreakdown>, StopReason> {
        let candidate = tested.candidate();
        self.report_progress(&format!("measuring the steps of the pair: {candidate}"))?;
        let parts = break_down_pair(self.executors.for_clock(tested)?, tested, &mut self.random)?;
        self.write_record("evaluate.parts", &PairBreakdownRecord::new(candidate, tested.mode, parts.as_ref()))?;
        Ok(parts)
    }

    /// The rows of the stand-in for a method that cannot run here.
    fn measure_stand_in(&mut self, found: &EvaluationBasis) -> Result<Option<Vec<Contamination>>, StopReason> {
        let default = self.executors.default_executor().name();
        match found.stand_in(default, self.asked.plan.mode).filter(|_| !found.facts.emulated) {
            Some(stand_in) => Ok(Some(self.measure_contamination(&stand_in)?)),
            None => Ok(None),
        }
    }

    /// Writes the rows of methods that were not run.
    fn write_refused(&mut self) -> Result<(), StopReason> {
        let plan = self.asked.plan;
        plan.not_run.iter().try_for_each(|not| {
            let rows = contamination::list_rows_not_run(&not.candidate.clock.promises, &not.why.why);
            self.write_contamination(not.candidate, &rows)
        })
    }

    /// Writes the published evaluations compared with ours.
    fn write_published(&mut self, methods: &[MethodEvaluation]) -> Result<(), StopReason> {
        let (pairs, stairs) =
            (published_comparison::compare_pairs(methods), published_comparison::compare_stairs(methods));
        pairs.iter().try_for_each(|row| self.write_record("evaluate.published", row))?;
        stairs.iter().try_for_each(|row| self.write_record("evaluate.published_stairs", row))
    }

    /// Judges the documents' claims by all measurements.
    fn judge_claims(
        &mut self,
        found: &Evaluation,
        stand_in: Option<&[Contamination]>,
    ) -> Result<Vec<DocumentClaim>, StopReason> {
        let Evaluation { facts, methods, .. } = found;
        let claims = match facts.emulated {
            true => claims::undecided_claims(&Caveat::emulated_machine().text),
            false => {
                claims::judge_claims(&ClaimEvidence { methods, not_run: &self.asked.plan.not_run, stand_in, facts })
            }
        };
        claims.iter().try_for_each(|claim| self.write_record("evaluate.claim", claim))?;
        Ok(claims)
    }

    /// Samples all methods in the remaining time.
    fn sample_methods(
        &mut self,
        tested_clocks: &[TestedClock<'static>],
        examined: Vec<MethodExamination>,
        complete: &mut Evaluation,
    ) -> Result<(), StopReason> {
        let plan = self.asked.plan;
        let mut waiting = Vec::new();
        for tested in tested_clocks {
            let executor = self.executors.for_clock(tested)?;
            let cost = PairSampler::new(tested).run_pilot(executor, &mut self.random)?;
            waiting.push(WaitingMethod::new(tested.clock, cost, complete.facts.tsc_hertz()));
        }
        let budget = plan.budget.as_secs_f64();
        let needed: f64 = waiting.iter().map(|method| method.needed_seconds(plan)).sum();
        self.pace.expected = (self.pace.elapsed_seconds(self.executors.default_executor().now()) + needed).min(budget);
        let mut quiet = Vec::new();
        for (at, (tested, examined)) in tested_clocks.iter().zip(examined).enumerate() {
            let from = self.executors.for_clock(tested)?.now();
            let left = (budget - self.pace.elapsed_seconds(from)).max(0.0);
            let (size, seconds) = share_budget(&waiting[at..], left, plan);
            // The core's width is the same for all methods with the same ruler, step and executor.
            let has_same_width = |(other, _): &&(&TestedClock, UnsharedWidth)| {
                let same = other.ruler.name == tested.ruler.name && other.step == tested.step;
                same && other.executor == tested.executor
            };
            let earlier = quiet.iter().filter(has_same_width).map(|(_, quiet)| *quiet);
            let earlier = earlier.fold(UnsharedWidth::default(), UnsharedWidth::or_earlier);
            let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
            let span = SamplingSpan { from, until: from.saturating_add(time) };
            let shape = waiting[at].sampling_shape(tested, size);
            let method = self.sample_method(tested, &SamplingRequest { asked: plan.size, shape, span, earlier })?;
            quiet.extend(method.iter().map(|method| (tested, trimmed_ensemble::find_quiet(&method.sampled.trimmed))));
            let candidate = tested.candidate();
            let MethodExamination { contamination, resolution, parts } = examined;
            complete.methods.push(MethodEvaluation { candidate, method, contamination, resolution, parts });
        }
        Ok(())
    }

    fn sample_method(
        &mut self,
        tested: &TestedClock<'static>,
        samples: &SamplingRequest,
    ) -> Result<Option<SampledMethod<'static>>, StopReason> {
        let candidate = tested.candidate();
        let message = format!("taking samples: {candidate}");
        let (pace, series, follow) = (self.pace, self.asked.plan.series, &mut *self.follow);
        check_stop(follow.report_progress(pace.progress_at(samples.span.from, &message)))?;
        let mut take = |taken: &CompletedEnsemble| {
            if series {
                let content = &EnsembleRecord::new(candidate, taken.number, &taken.ensemble);
                let record = MethodRecord { content, bits: tested.mode };
                check_stop(follow.accept_record(ResultRecord::new("evaluate.ensemble", &record)))?;
            }
            check_stop(follow.report_progress(pace.progress_at(taken.now, &message)))
        };
        let executor = self.executors.for_clock(tested)?;
        let mut method = SampledMethod::measure(executor, tested, samples, &mut self.random, &mut take)?;
        if let Some(method) = &mut method {
            method.counted = self.count_pairs(tested)?;
            self.write_record("evaluate", &EvaluateRecord::new(method, self.asked.around))?;
        }
        Ok(method)
    }

    /// Counts the events of a method's samples, if requested. An executor without counters counts none.
    fn count_pairs(&mut self, tested: &TestedClock<'static>) -> Result<Option<CountedPairs>, Error> {
        let (Some(events), Some(request)) = (&self.events, &self.asked.plan.counters) else { return Ok(None) };
        let executor = self.executors.for_clock(tested)?;
        match EventPlan::new(request, executor, self.answers) {
            Err(Error::Unavailable(refused)) => Ok(Some(CountedPairs::lost(events, &refused.why))),
            planned => {
                let seed = mix_seeds(self.asked.plan.seed, COUNTING_SEED);
                let sampler = PairSampler::new(tested);
                Ok(Some(CountedPairs::count(&sampler, executor, &planned?, &mut Random::new(seed))?))
            }
        }
    }

    /// Writes the conclusions for each executor that ran a method.
    fn decide_verdicts(&mut self, found: &Evaluation) -> Result<Vec<EvaluationVerdict>, StopReason> {
        let Evaluation { facts, methods, .. } = found;
        let measured = |executor: &&'static str| methods.iter().any(|found| found.candidate.executor == *executor);
        let verdict = |executor| match facts.emulated {
            true => EvaluationVerdict::for_emulated(executor),
            false => EvaluationVerdict::from_methods(methods, executor),
        };
        let verdicts: Vec<EvaluationVerdict> =
            self.executors.names().into_iter().filter(measured).map(verdict).collect();
        verdicts.iter().try_for_each(|verdict| self.write_record("evaluate.verdict", verdict))?;
        Ok(verdicts)
    }
}
