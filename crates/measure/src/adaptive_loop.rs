//! The loop that adapts the length of bodies, the warm-up and the number of layouts, and decides
//! when to stop.

use super::acquisition::{Acquisition, CostMeasurement};
use super::cost_judgement::{CostJudgement, holds_for_any_pair};
use super::estimate::{LayoutData, RoundShape, call};
use super::layouts::SECONDS_A_CYCLE;
use super::measurement_progress::MeasurementProgress;
use super::measurement_session::{CYCLES_PER_NS, LoopLength, MeasurementSession};
use super::plan::Plan;
use super::question::CostFormula;
use super::sibling::SiblingPolicy;
use super::steadiness::{SteadinessReport, UnsteadyState, explain_fault, find_unsteady_calls, find_unsteady_states};
use super::training::{
    MORE_CALLS, TRAINED_BUDGETS, TRAINED_LAYOUTS, TRAINED_SHARE, TRIAL_BUDGETS, TRIAL_LAYOUTS, TRIAL_SHARE,
    all_more_certain, learnt_early, training_may_save, training_saves,
};
use crate::ruler::{IMUL_SPAN, least_unshared_width};
use cyclescope_core::error::RunError;
use std::mem::replace;
use std::rc::Rc;
use std::time::Duration;

/// Layouts of a function whose cost grows with each call: the fewest that have an estimate.
const FEW_CALLS_LAYOUTS: usize = 2;
/// Initial untimed rounds: two runs fill the caches and, on some cores, wake the wide vector units.
const WARM_UP: u32 = 3;
/// Most untimed rounds. Store-forwarding predictors took some fifteen runs of each load to settle.
const WARM_UP_MOST: u32 = 96;
/// With these the ratio of the rulers is accurate to 0.1 % with a clock that steps by 38 ticks.
const LATENCY_LOOPS: u64 = 400;
const LATENCY_LAYOUTS: usize = 4;
const LATENCY_ROUNDS: u32 = 24;
/// Assumed core cycles of a cold start before it is measured.
const COLD_GUESS: f64 = 1000.0;
/// Iterations of the ruler's loops.
const RULER_LOOPS: std::ops::RangeInclusive<f64> = 16.0..=4000.0;
/// If most layouts had a busy sibling, all are measured again after a pause, until this number of
/// budgets is spent. A sibling was busy for tens of milliseconds to seconds at a time. Costs
/// measured meanwhile were wrong by up to a third. Layouts without any number get this time, too:
/// beside two other programs on its CPU, eight layouts of a quick run often had no undisturbed rounds.
const ALL_LAYOUTS_RETRY_POLICY: SiblingPolicy =
    SiblingPolicy { retries: 150, pause: Duration::from_millis(10), ..SiblingPolicy::USUAL };
const BUDGETS_FOR_RETRIES: u32 = 12;
/// If layouts take long, none begins after this number of budgets and this number of layouts.
const BUDGETS_AT_LONGEST: u32 = 4;
const LAYOUTS_LEAST: usize = 6;
/// Standard deviation of a function's cost between starts of the program, as a share of the cost.
/// Sixteen addresses and new processes in each measurement do not remove it. Of 31 functions, each
/// measured eight times, 28 had a root mean square 0.3 % above what their intervals covered. Of all
/// pairs of intervals 79 % overlapped, and 94 % with this share added (Zen 5). For slow learning of
/// predictors see `training.rs`.
const BETWEEN_SHARE: f64 = 0.003;
/// The same in core cycles, for a function and for the empty one. Functions of 7, 21 and 26 cycles
/// had standard deviations of 0.35, 0.32 and 0.34 between starts (Zen 5).
const BETWEEN_CYCLES: f64 = 0.24;
/// A function's mode with a smaller share of the layouts is left out. Causes: a loop exit that one
/// layout in sixteen predicts, or a layout that another program disturbed.
const FREQUENT_SHARE: f64 = 0.1;
/// Most untimed rounds per timed round.
const WARM_UP_PER_TIMED: u32 = 4;
/// Rounds of the pilot, and how often it is tried, with twice as many rounds each time.
const PILOT_ROUNDS: u32 = 2;
const PILOT_ATTEMPTS: u32 = 5;
/// Assumed core cycles of a snippet whose calls other programs always interrupt.
const INTERRUPTED_GUESS: f64 = 1e8;
/// Most iterations of the loop around the copies in the pilot.
const PILOT_ITERATIONS_MOST: u64 = 1000;
/// Core cycles of a round's copies in the pilot of a loop whose length the measurement chooses:
/// enough to know a cost within some percent.
const PILOT_CYCLES: f64 = 20_000.0;
/// Repeats of a snippet in its three bodies together, in units: u + 2u + 4u.
const UNITS_PER_ROUND: f64 = 7.0;
/// Upper bound on the bodies of a round, as a multiple of the span from u to 4u repeats: 7/3, and
/// up to a quarter of u more in each body.
const SPANS_PER_ROUND: f64 = 2.5;
/// Upper bound on the ruler of a round, as a multiple of the difference of its `imul` chains: an
/// iteration of all four chains takes 86 cycles, the difference is 30, and a layout may draw a
/// quarter more iterations.
const RULER_SPANS_PER_ROUND: f64 = 4.0;

/// The result before training, kept until trained layouts show whether training helps.
struct UntrainedResult {
    judgements: Vec<CostJudgement>,
    acquisition: Acquisition,
}

impl MeasurementSession<'_> {
    /// Checks whether copies do the same work, and measures.
    pub(super) fn run(mut self) -> Result<Vec<CostMeasurement>, RunError> {
        self.steadiness = self.check_steadiness()?;
        let grows = self.steadiness.iter().any(SteadinessReport::grows);
        let measured = if grows { self.measure_few_calls() } else { self.measure() };
        measured.or_else(|error| Err(self.explain_error(error)?))
    }

    /// Adds to an error of the snippet which state its first copy uses up, if that is the cause.
    fn explain_error(&mut self, error: RunError) -> Result<RunError, RunError> {
        // What a function's fault means depends on its library.
        if error.is_harness_failure() || self.is_cold() || self.uses_iterations() {
            return Ok(error);
        }
        let mut cause =
            self.steadiness.iter().flat_map(|report| &report.states).find(|state| state.is_refused).cloned();
        if matches!(error, RunError::Fault { .. }) {
            for part in &self.parts {
                if cause.is_some() {
                    break;
                }
                let (world, clock) = (part.outline.world, self.plan.clock);
                cause = explain_fault(self.executor, part.snippet, clock, world, &self.memory)?;
            }
        }
        Ok(match cause {
            Some(UnsteadyState { text, remedy, .. }) => {
                RunError::Unsteady { error: Box::new(error), state: text, remedy }
            }
            None => error,
        })
    }

    /// Whether the copies of each snippet do the same work. A cold run has one copy, so only calls are compared.
    fn check_steadiness(&mut self) -> Result<Vec<SteadinessReport>, RunError> {
        let find = if self.is_cold() { find_unsteady_calls } else { find_unsteady_states };
        let is_called_function = |number: usize| {
            let mut weights = self.question.costs().iter().flat_map(CostFormula::weights);
            weights.any(|(snippet, weight)| snippet == number && weight > 0.0)
        };
        let iterates = self.uses_iterations() || self.is_cold();
        let states = self.parts.iter().enumerate().map(|(number, part)| {
            if iterates && !is_called_function(number) {
                // An empty function.
                return Ok(SteadinessReport::default());
            }
            let (world, clock) = (part.outline.world, self.plan.clock);
            find(self.executor, part.snippet, clock, world, &self.memory)
        });
        states.collect()
    }

    /// Measures few calls, if their cost grows with each. Their number would decide about the cost
    /// and about the time, so nothing is adapted.
    fn measure_few_calls(&mut self) -> Result<Vec<CostMeasurement>, RunError> {
        let mut acquisition = self.plan_acquisition(vec![1; self.parts.len()], 1);
        acquisition.rounds = acquisition.rounds.min(self.plan.rounds_least);
        (0..FEW_CALLS_LAYOUTS).try_for_each(|_| self.measure_layout(&mut acquisition))?;
        let found = self.question.costs().iter().map(|cost| self.judge_cost(&acquisition, cost)).collect();
        Ok(self.finish_measurements(found, acquisition, None))
    }

    fn measure(&mut self) -> Result<Vec<CostMeasurement>, RunError> {
        if self.known_latency().is_none() {
            self.imul_latency = self.find_imul_latency()?;
        }
        self.run_pilot()?;
        let units: Vec<usize> = self.parts.iter().map(|part| self.choose_first_unit(part)).collect();
        self.choose_iterations(&units);
        let mut acquisition = self.plan_acquisition(units, self.plan.warm_up.unwrap_or(WARM_UP));
        // The first batch may have waited for another run on this CPU. That wait does not count as
        // time spent.
        self.started = self.executor.now();
        let mut retries = ALL_LAYOUTS_RETRY_POLICY.start_retries();
        let until = self.started.saturating_add(self.plan.budget.saturating_mul(BUDGETS_FOR_RETRIES));
        let mut untrained: Option<UntrainedResult> = None;
        loop {
            let more = acquisition.layouts.len().max(self.initial_layouts());
            if let Err(error) = self.measure_layouts(&mut acquisition, more) {
                let Some(UntrainedResult { judgements, acquisition }) = untrained else { return Err(error) };
                self.continue_untrained(error)?;
                return Ok(self.finish_measurements(judgements, acquisition, None));
            }
            let found: Vec<CostJudgement> =
                self.question.costs().iter().map(|cost| self.judge_cost(&acquisition, cost)).collect();
            let any = |holds: fn(&CostJudgement) -> bool| found.iter().any(holds);
            let Acquisition { units, warm_up, .. } = &acquisition;
            // With a retry and time left, this pauses, and all layouts are measured again.
            if any(CostJudgement::is_shared) && retries.pause_before_retry(self.executor, until) {
                acquisition = self.plan_acquisition(units.clone(), *warm_up);
                continue;
            }
            let unknown = any(|found| found.estimate.is_none());
            let has_time = self.has_time() || unknown && self.executor.now() < until;
            let full = acquisition.layouts.len() >= self.plan.layouts_most || !has_time;
            let unfit = any(|found| !found.linear || found.hidden);
            let longer_bodies = self.lengthen_bodies(units, !unfit);
            let more_warm_up = self.plan.warm_up.is_none() && *warm_up < WARM_UP_MOST;
            if any(|found| !found.settled) && more_warm_up && self.has_time() {
                acquisition = self.plan_acquisition(units.clone(), (4 * warm_up).min(WARM_UP_MOST));
            } else if (unfit || found.iter().any(|found| self.is_blurred(found)))
                && longer_bodies.is_some()
                && self.has_time()
            {
                let warm_up = *warm_up;
                let (units, length) = longer_bodies.unwrap_or_default();
                self.loop_length = length;
                acquisition = self.plan_acquisition(units, warm_up);
            } else if let Some(trained) = self.try_training(&acquisition, &found)? {
                let before = replace(&mut acquisition, trained);
                untrained = Some(UntrainedResult { judgements: found, acquisition: before });
            } else if full || found.iter().all(|found| self.has_reached_precision(found)) {
                match untrained.take() {
                    Some(UntrainedResult { judgements: before, acquisition: untrained })
                        if !holds_for_any_pair(&before, &found, training_saves)
                            || all_more_certain(&before, &found) =>
                    {
                        self.training = None;
                        if before.iter().all(|found| self.has_reached_precision(found)) {
                            return Ok(self.finish_measurements(before, untrained, None));
                        }
                        // Further layouts run without training. They get the time that a failed
                        // trial gets too.
                        let spent = self.elapsed().as_secs_f64() / self.plan.budget.as_secs_f64();
                        self.budgets = (spent as u32).saturating_add(TRIAL_BUDGETS);
                        acquisition = untrained;
                    }
                    untrained => {
                        let before = untrained.map(|untrained| untrained.judgements);
                        return Ok(self.finish_measurements(found, acquisition, before));
                    }
                }
            }
        }
    }

    /// Measures `more` further layouts. Stops early if they take many times the budget.
    fn measure_layouts(&mut self, acquisition: &mut Acquisition, more: usize) -> Result<(), RunError> {
        for left in (1..=more).rev() {
            let standing = self.estimate_progress(acquisition, left);
            (self.watch)(standing);
            self.measure_layout(acquisition)?;
            let enough = acquisition.layouts.len() >= LAYOUTS_LEAST;
            if enough && self.elapsed() > BUDGETS_AT_LONGEST * self.plan.budget {
                break;
            }
        }
        Ok(())
    }

    /// Counts finished and foreseen layouts, with `left` more to come.
    fn estimate_progress(&self, acquisition: &Acquisition, left: usize) -> MeasurementProgress {
        let rounds = f64::from(acquisition.warm_up + acquisition.rounds);
        let training_s = acquisition.training.map_or(0.0, |calls| self.seconds_of(calls));
        let layout_s = training_s + rounds * acquisition.round_s / CYCLES_PER_NS;
        let in_budgets = f64::from(BUDGETS_AT_LONGEST) * self.plan.budget.as_secs_f64() / layout_s;
        let done = acquisition.layouts.len();
        let total = (done + left).min(LAYOUTS_LEAST.max(in_budgets as usize)).max(done + 1);
        MeasurementProgress { done, total, layout_s }
    }

    /// Continues without training after the code fails in it. For example, a function may never
    /// free what it allocates.
    fn continue_untrained(&mut self, error: RunError) -> Result<(), RunError> {
        self.training = None;
        if error.is_harness_failure() {
            return Err(error);
        }
        self.untrainable = Some(error);
        Ok(())
    }

    /// Measures some trained layouts, once, as a trial. If training may change a cost, returns an
    /// acquisition without samples, whose layouts are all trained.
    fn try_training(
        &mut self,
        acquisition: &Acquisition,
        found: &[CostJudgement],
    ) -> Result<Option<Acquisition>, RunError> {
        if !self.uses_iterations() || self.plan.warm_up.is_some() || self.training_tried {
            return Ok(None);
        }
        let budget = self.plan.budget.as_secs_f64();
        let trial_calls = self.calls_in(TRIAL_SHARE * budget);
        let rounds = f64::from(acquisition.warm_up + acquisition.rounds);
        let untrained_calls =
            acquisition.units.iter().min().map_or(0.0, |unit| UNITS_PER_ROUND * *unit as f64 * rounds);
        if (trial_calls as f64) < MORE_CALLS * untrained_calls {
            return Ok(None);
        }
        self.training = Some(trial_calls);
        let mut trial = self.plan_acquisition(acquisition.units.clone(), acquisition.warm_up);
        let run = self.measure_layouts(&mut trial, TRIAL_LAYOUTS);
        self.training_tried = true;
        if let Err(error) = run {
            self.continue_untrained(error)?;
            return Ok(None);
        }
        let trained: Vec<CostJudgement> =
            self.question.costs().iter().map(|cost| self.judge_cost(&trial, cost)).collect();
        let trial_learnt = holds_for_any_pair(found, &trained, training_may_save);
        let may_help = trial_learnt || holds_for_any_pair(found, &trained, learnt_early);
        if !trial_learnt {
            // No training has reached the cost of a learnt function. With 0, no later training ends
            // early for being as fast.
            self.fastest = 0.0;
        }
        self.budgets += if may_help { TRAINED_BUDGETS } else { TRIAL_BUDGETS };
        self.training = may_help.then(|| self.calls_in(TRAINED_SHARE * budget));
        Ok(may_help.then(|| self.plan_acquisition(trial.units, trial.warm_up)))
    }

    fn finish_measurements(
        &self,
        found: Vec<CostJudgement>,
        acquisition: Acquisition,
        untrained: Option<Vec<CostJudgement>>,
    ) -> Vec<CostMeasurement> {
        let (acquisition, elapsed) = (Rc::new(acquisition), self.elapsed());
        let mut untrained = untrained.into_iter().flatten().map(|found| found.estimate);
        let grows = self.steadiness.iter().any(SteadinessReport::grows);
        let measurement = |(found, cost): (CostJudgement, &CostFormula)| {
            let CostJudgement { estimate, linear, settled, .. } = found;
            let (cost, acquisition) = (cost.clone(), acquisition.clone());
            let (untrained, untrainable) = (untrained.next().flatten(), self.untrainable.clone());
            let reports = cost.weights().map(|(snippet, _)| self.steadiness[snippet].clone());
            let (states, reasons): (Vec<_>, Vec<_>) = reports.map(|one| (one.states, one.unchecked)).unzip();
            let mut unsteady = states.concat();
            if grows && !unsteady.iter().any(|state| state.grows) {
                unsteady.push(UnsteadyState::compared_with_growth());
            }
            let unchecked = reasons.into_iter().flatten().next();
            CostMeasurement {
                cost,
                estimate,
                linear,
                settled,
                acquisition,
                untrained,
                untrainable,
                unsteady,
                unchecked,
                elapsed,
            }
        };
        found.into_iter().zip(self.question.costs()).map(measurement).collect()
    }

    /// See [`RoundShape::pooled`].
    fn pooled_share(&self) -> Option<f64> {
        match self.is_cold() || self.question.is_summed() {
            true => Some(0.0),
            false => self.uses_iterations().then_some(FREQUENT_SHARE),
        }
    }

    fn initial_layouts(&self) -> usize {
        if self.training.is_some() { TRAINED_LAYOUTS } else { self.plan.layouts }
    }

    fn has_time(&self) -> bool {
        self.elapsed() < self.budgets * self.plan.budget
    }

    /// The whole number next to the ratio of the two rulers. If the ratio is not a whole number,
    /// the estimate shows that the rulers disagree.
    fn find_imul_latency(&mut self) -> Result<f64, RunError> {
        let mut acquisition = self.plan_acquisition(vec![1; self.parts.len()], WARM_UP);
        acquisition.ruler_loops = LATENCY_LOOPS;
        acquisition.rounds = LATENCY_ROUNDS;
        acquisition.shape.imul_latency = 1.0;
        (0..LATENCY_LAYOUTS).try_for_each(|_| self.measure_layout(&mut acquisition))?;
        let found = self.judge_cost(&acquisition, &self.question.costs()[0]);
        let ratio = found.estimate.map(|estimate| 1.0 / estimate.add_link.value);
        Ok(ratio.map_or(1.0, |ratio| ratio.round().max(1.0)))
    }

    /// Finds a rough cost of each snippet in core cycles from a few copies.
    fn run_pilot(&mut self) -> Result<(), RunError> {
        if self.is_cold() {
            self.parts.iter_mut().for_each(|part| part.guess = COLD_GUESS);
            return Ok(());
        }
        self.guess_costs()?;
        if self.loop_length.is_chosen() {
            // One iteration shows only what is slow. What is not gets more.
            let slowest = self.parts.iter().map(|part| part.guess).fold(0.0, f64::max);
            let iterations = PILOT_CYCLES / (UNITS_PER_ROUND * slowest);
            if iterations >= 2.0 {
                self.loop_length = LoopLength::Chosen(iterations as u64);
                self.guess_costs()?;
            }
        }
        Ok(())
    }

    /// Finds a rough cost of each snippet from a single layout with 1, 2 and 4 repeats. If other programs
    /// interrupt all calls of a length, more rounds follow.
    fn guess_costs(&mut self) -> Result<(), RunError> {
        for attempt in 0..PILOT_ATTEMPTS {
            if self.guess_from_rounds(PILOT_ROUNDS << attempt)? {
                break;
            }
        }
        Ok(())
    }

    /// Guesses from this number of rounds. Whether each snippet has a guess.
    fn guess_from_rounds(&mut self, rounds: u32) -> Result<bool, RunError> {
        let mut acquisition = self.plan_acquisition(vec![1; self.parts.len()], 1);
        acquisition.rounds = rounds;
        acquisition.shape.loop_count = acquisition.shape.loop_count.min(PILOT_ITERATIONS_MOST);
        self.measure_layout(&mut acquisition)?;
        let LayoutData { samples, copies, .. } = &acquisition.layouts[0];
        let least = |call: usize| samples.column(call).fold(f64::INFINITY, f64::min);
        let shortest: Vec<f64> = (0..self.calls_per_round()).map(least).collect();
        let scale = acquisition.layouts[0].gauge(&acquisition.shape).read(&shortest);
        for (number, part) in self.parts.iter_mut().enumerate() {
            let ([one, _, four], [short, _, long]) = (call::snippet_calls(number), copies[number]);
            let copies = (long - short) as f64 * acquisition.shape.loop_count as f64;
            let guess = (shortest[four] - shortest[one]) / copies / scale.rate;
            part.guess = match scale.is_sane() && guess.is_finite() {
                true => guess.max(0.05),
                // Calls that are always interrupted are long, so bodies must be short.
                false if shortest[four].is_infinite() => INTERRUPTED_GUESS,
                false => 1.0,
            };
        }
        Ok(shortest.iter().all(|reading| reading.is_finite()))
    }

    /// Difference of the ruler's two lengths in core cycles per iteration.
    fn ruler_span(&self) -> f64 {
        IMUL_SPAN * self.imul_latency
    }

    /// Plans an acquisition for these units, without samples.
    fn plan_acquisition(&self, units: Vec<usize>, warm_up: u32) -> Acquisition {
        let iterations = self.loop_length.iterations();
        let spans: Vec<f64> = (self.parts.iter().zip(&units))
            .map(|(part, unit)| 3.0 * *unit as f64 * iterations as f64 * part.guess)
            .collect();
        let span = spans.iter().copied().fold(0.0, f64::max);
        let ruler_loops = (span / self.ruler_span()).clamp(*RULER_LOOPS.start(), *RULER_LOOPS.end()) as u64;
        let width = self.plan.adders.map(least_unshared_width);
        let shape = RoundShape {
            loop_count: iterations,
            imul_latency: self.imul_latency,
            step: self.plan.step,
            width,
            pooled: self.pooled_share(),
            trained: self.training.is_some(),
            between: if self.uses_iterations() { BETWEEN_SHARE } else { 0.0 },
            between_cycles: if self.uses_iterations() { BETWEEN_CYCLES } else { 0.0 },
        };
        let round_s = SECONDS_A_CYCLE
            * (SPANS_PER_ROUND * spans.iter().sum::<f64>()
                + RULER_SPANS_PER_ROUND * self.ruler_span() * ruler_loops as f64)
            + self.calls_per_round() as f64 * self.call_overhead_s();
        Acquisition {
            units,
            warm_up,
            ruler_loops,
            loop_is_chosen: self.loop_length.is_chosen(),
            shape,
            rounds: self.choose_rounds(round_s, warm_up),
            placements: 1,
            layouts: Vec::new(),
            progress: None,
            round_s,
            training: self.training,
        }
    }

    /// Timed rounds of a layout: fewer than planned if they would use up the budget.
    fn choose_rounds(&self, round_s: f64, warm_up: u32) -> u32 {
        if self.is_cold() {
            return self.plan.rounds;
        }
        let Plan { rounds_least: least, rounds, .. } = *self.plan;
        // After many untimed rounds a few more timed ones cost little.
        let most = if least < rounds { rounds.max(warm_up / WARM_UP_PER_TIMED) } else { rounds };
        let in_budget = CYCLES_PER_NS * self.plan.budget.as_secs_f64() / round_s - f64::from(warm_up);
        (in_budget as u32).clamp(least.min(rounds), most)
    }
}
