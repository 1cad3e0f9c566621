//! A survey: visits all cases at all placements in passes, until each difference has converged: its interval is as
//! narrow as asked for.
//!
//! Every pass goes through the cases in another order, so that what changes slowly (the clock, neighbours) is spread
//! over all of them; later passes go to placements that need more.

use super::bench::{CaseVisit, MarkerBench};
use super::placement_cost::{VisitReading, read_visit};
use super::visit_ledger::{CaseFinding, VisitLedger};
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::median;
use cyclescope_measure::ruler::LayoutSamples;
use cyclescope_measure::study::{StopReason, StudyFollower, StudyProgress, check_stop};
use std::ops::RangeInclusive;
use std::time::Duration;

/// How many visits a survey makes.
#[derive(Debug, Clone, PartialEq)]
pub struct VisitPlan {
    /// Level of confidence of all intervals.
    pub confidence: f64,
    /// Visits in a pass, at each placement.
    pub visits: usize,
    /// Visits that each placement gets at least, and at most.
    pub each: RangeInclusive<usize>,
    /// When passes end although more would be needed.
    pub budget: Duration,
    /// The latency of `imul` in core cycles.
    pub imul_latency: f64,
    /// Seeds all that is random.
    pub seed: u64,
}

impl VisitPlan {
    /// The usual plan.
    pub fn new(imul_latency: f64, seed: u64) -> VisitPlan {
        VisitPlan { confidence: 0.95, visits: 32, each: 96..=6000, budget: Duration::from_secs(46), imul_latency, seed }
    }

    /// The same with the time that this number of contexts takes, where two are usual.
    pub fn for_contexts(self, contexts: usize) -> VisitPlan {
        let factor = (contexts as f64 / USUAL_CONTEXTS).max(1.0);
        VisitPlan { budget: self.budget.mul_f64(factor), ..self }
    }

    /// Fewer visits.
    pub fn quick(imul_latency: f64, seed: u64) -> VisitPlan {
        VisitPlan { each: 32..=32, ..VisitPlan::new(imul_latency, seed) }
    }
}

/// Contexts that the usual budget is for.
const USUAL_CONTEXTS: f64 = 2.0;

/// How often a loop goes around in the run that proves whether its marker calls.
pub const PROOF_LOOPS: u64 = 1000;

/// Times around by which the two lengths differ: as many as take this number of cycles, within bounds, and fewer in
/// loops that take very long. A visit's cost depends on what predictors have learnt more than on its length: with 100
/// times around a memcpy of 4096 bytes a visit took half the time that it took with 300, and as many were needed.
const SPAN_CYCLES: f64 = 4000.0;
const SPAN: RangeInclusive<f64> = 100.0..=1000.0;
const SPAN_MOST_CYCLES: f64 = 200_000.0;
const SPAN_LEAST: f64 = 16.0;
/// Times around of the shorter, at least: predictors and caches have settled. (With 12 the costs were up to half a cycle
/// off.)
const SETTLING_LOOPS: usize = 60;
/// Iterations of the ruler's loops.
const RULER_LOOPS: RangeInclusive<usize> = 100..=130;
/// Visits that run together: slow loops shall not come near the time that a batch may take.
const BATCH_VISITS: usize = 64;
/// Placements that seem to need this many times the most visits get none beyond the least.
const HOPELESS_FACTOR: f64 = 1.2;

/// Counts the calls of all cases of a bench, and measures nothing: what an emulated machine is good for.
pub(crate) fn prove_calls(bench: &mut dyn MarkerBench, plan: &VisitPlan) -> Result<Vec<CaseFinding>, RunError> {
    let mut survey = CaseSurvey::new(bench, plan);
    survey.count_calls()?;
    Ok(survey.ledger.into_findings(plan.confidence))
}

/// Surveys all cases of a bench.
///
/// # Errors
///
/// Those of the bench, and [`StopReason::Requested`] where whoever follows has ended it.
pub fn survey_cases(
    bench: &mut dyn MarkerBench,
    plan: &VisitPlan,
    follow: &mut dyn StudyFollower,
) -> Result<Vec<CaseFinding>, StopReason> {
    let began = bench.now()?;
    let mut survey = CaseSurvey::new(bench, plan);
    survey.count_calls()?;
    survey.run_pilot()?;
    for pass in 1.. {
        let wanting = survey.list_wanting_cases();
        if wanting.is_empty() {
            break;
        }
        let count = wanting.len();
        for (index, case) in wanting.into_iter().enumerate() {
            if pass > 1 && survey.bench.now()?.saturating_sub(began) > plan.budget {
                return Ok(survey.ledger.into_findings(plan.confidence));
            }
            survey.visit_case(case)?;
            let least = (*plan.each.start() as f64 / plan.visits as f64).ceil();
            let done = ((pass - 1) as f64 + (index + 1) as f64 / count as f64) / least;
            let cases = survey.ledger.cases().len();
            let message = format!("{} of {cases} markers converged", cases - count);
            check_stop(follow.report_progress(StudyProgress::from_share(done, message)))?;
        }
    }
    Ok(survey.ledger.into_findings(plan.confidence))
}

/// The longest span that a bench can go around, behind as many times as the shorter loop may.
fn longest_span(bench: &dyn MarkerBench, case: usize) -> usize {
    let most = usize::try_from(bench.most_loops(case)).unwrap_or(usize::MAX);
    most.saturating_sub(2 * SETTLING_LOOPS).max(1)
}

/// What is known so far.
struct CaseSurvey<'a> {
    bench: &'a mut dyn MarkerBench,
    plan: &'a VisitPlan,
    ledger: VisitLedger,
    /// Times around by which the lengths differ, of each case.
    spans: Vec<usize>,
    random: Random,
}

impl CaseSurvey<'_> {
    fn new<'a>(bench: &'a mut dyn MarkerBench, plan: &'a VisitPlan) -> CaseSurvey<'a> {
        let cases = bench.cases().to_vec();
        let (count, placements) = (cases.len(), bench.placement_offsets().len());
        CaseSurvey {
            plan,
            spans: (0..count).map(|case| longest_span(bench, case).min(*SPAN.start() as usize)).collect(),
            random: Random::new(plan.seed),
            ledger: VisitLedger::new(cases, placements),
            bench,
        }
    }

    /// Counts the calls of each case's probe.
    fn count_calls(&mut self) -> Result<(), RunError> {
        for case in 0..self.ledger.cases().len() {
            let placement = self.random.below(self.bench.placement_offsets().len());
            self.ledger.hits[case] = self.bench.count_hits(case, placement, PROOF_LOOPS)?;
        }
        Ok(())
    }

    /// Finds out about how long each case's loops take.
    fn run_pilot(&mut self) -> Result<(), RunError> {
        for case in 0..self.ledger.cases().len() {
            let placements = self.bench.placement_offsets().len();
            let visits: Vec<CaseVisit> = (0..2).map(|_| self.draw_visit(case, case % placements)).collect();
            let all = self.bench.run_visits(case, &visits)?;
            let mut loops: Vec<f64> = all
                .iter()
                .zip(&visits)
                .filter_map(|(samples, visit)| self.read_visit(samples, visit))
                .map(|reading| reading.base.max(reading.site))
                .collect();
            if !loops.is_empty() {
                let cycles = median(&mut loops).max(0.5);
                let span = (SPAN_CYCLES / cycles).clamp(*SPAN.start(), *SPAN.end());
                let span = span.min(SPAN_MOST_CYCLES / cycles).max(SPAN_LEAST) as usize;
                self.spans[case] = span.min(longest_span(self.bench, case));
            }
        }
        Ok(())
    }

    fn read_visit(&self, samples: &LayoutSamples, visit: &CaseVisit) -> Option<VisitReading> {
        read_visit(samples, visit, self.plan.imul_latency, self.bench.clock_step())
    }

    fn draw_visit(&mut self, case: usize, placement: usize) -> CaseVisit {
        let span = self.spans[case];
        let settling = SETTLING_LOOPS.min(span);
        let few = settling + self.random.below(settling);
        let ruler = RULER_LOOPS.start() + self.random.below(RULER_LOOPS.end() - RULER_LOOPS.start());
        CaseVisit { placement, loops: [few as u64, (few + span) as u64], ruler_loops: ruler as u64 }
    }

    /// The cases with a placement that needs more visits, in random order.
    fn list_wanting_cases(&mut self) -> Vec<usize> {
        self.ledger.find_quiet_width();
        let mut wanting: Vec<usize> =
            (0..self.ledger.cases().len()).filter(|case| !self.list_wanting_placements(*case).is_empty()).collect();
        self.random.shuffle(&mut wanting);
        wanting
    }

    fn list_wanting_placements(&self, case: usize) -> Vec<usize> {
        let wants = |placement: &usize| {
            let attempts = self.ledger.count_attempts(case, *placement);
            if attempts >= *self.plan.each.end() || attempts < *self.plan.each.start() {
                return attempts < *self.plan.each.start();
            }
            self.ledger.relative_half_width(case, *placement, self.plan.confidence).is_none_or(|share| {
                // Intervals narrow with the root of the number of visits: where that doesn't help, it isn't tried.
                share > 1.0 && attempts as f64 * share.powi(2) <= HOPELESS_FACTOR * *self.plan.each.end() as f64
            })
        };
        (0..self.bench.placement_offsets().len()).filter(wants).collect()
    }

    /// Visits a case's placements that need it.
    fn visit_case(&mut self, case: usize) -> Result<(), RunError> {
        let mut visits = Vec::new();
        for placement in self.list_wanting_placements(case) {
            for _ in 0..self.plan.visits {
                visits.push(self.draw_visit(case, placement));
            }
        }
        self.random.shuffle(&mut visits);
        for visits in visits.chunks(BATCH_VISITS) {
            self.run_batch(case, visits)?;
        }
        Ok(())
    }

    fn run_batch(&mut self, case: usize, visits: &[CaseVisit]) -> Result<(), RunError> {
        let all = self.bench.run_visits(case, visits)?;
        for (samples, visit) in all.iter().zip(visits) {
            let reading = self.read_visit(samples, visit);
            self.ledger.note_visit(case, visit.placement, reading);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
