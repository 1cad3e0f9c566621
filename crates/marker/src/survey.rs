//! Visits all cases at all placements in passes, until the interval of each difference is as narrow
//! as requested.
//!
//! Every pass has a new order of cases, so that slow changes (the clock, background load) affect
//! all of them. Later passes only visit placements that need more.

use super::bench::{CaseVisit, MarkerBench, call};
use super::placement_cost::{VisitReading, read_visit};
use super::visit_ledger::{CaseFinding, VisitLedger};
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::median;
use cyclescope_measure::contrast::Contrast;
use cyclescope_measure::result::counter_record::CountedEvents;
use cyclescope_measure::ruler::LayoutSamples;
use cyclescope_measure::study::{StopReason, StudyFollower, StudyProgress, check_stop};
use cyclescope_measure::{EventPlan, estimate_contrasts};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The number of visits in a survey.
#[derive(Debug, Clone, PartialEq)]
pub struct VisitPlan {
    /// Confidence level of all intervals.
    pub confidence: f64,
    /// Visits in a pass, at each placement.
    pub visits: usize,
    /// Fewest and most visits of each placement.
    pub each: RangeInclusive<usize>,
    /// Time after which passes end even if intervals are too wide.
    pub budget: Duration,
    /// Latency of `imul` in core cycles.
    pub imul_latency: f64,
    /// Seed of all random choices.
    pub seed: u64,
    /// Events to count once all times are known.
    pub events: Option<EventPlan>,
}

impl VisitPlan {
    /// The usual plan.
    pub fn new(imul_latency: f64, seed: u64) -> VisitPlan {
        VisitPlan {
            confidence: 0.95,
            visits: 32,
            each: 96..=6000,
            budget: Duration::from_secs(46),
            imul_latency,
            seed,
            events: None,
        }
    }

    /// The plan with a budget for this number of contexts. The usual budget covers two.
    pub fn for_contexts(self, contexts: usize) -> VisitPlan {
        let factor = (contexts as f64 / USUAL_CONTEXTS).max(1.0);
        VisitPlan { budget: self.budget.mul_f64(factor), ..self }
    }

    /// A plan with fewer visits.
    pub fn quick(imul_latency: f64, seed: u64) -> VisitPlan {
        VisitPlan { each: 32..=32, ..VisitPlan::new(imul_latency, seed) }
    }
}

/// Number of contexts in the usual budget.
const USUAL_CONTEXTS: f64 = 2.0;

/// Loop iterations in the run that proves whether a marker calls its probe.
pub const PROOF_LOOPS: u64 = 1000;

/// Cycles of the iterations by which the two lengths differ, within bounds, and fewer for very slow
/// loops.
///
/// A visit's cost depends more on the predictors' state than on its length. For a memcpy of 4096
/// bytes, 100 iterations took half the time of 300 and needed the same number of visits.
const SPAN_CYCLES: f64 = 4000.0;
const SPAN: RangeInclusive<f64> = 100.0..=1000.0;
const SPAN_MOST_CYCLES: f64 = 200_000.0;
const SPAN_LEAST: f64 = 16.0;
/// Fewest iterations of the shorter loop, for predictors and caches to settle. (With 12, costs were
/// off by up to half a cycle.)
const SETTLING_LOOPS: usize = 60;
/// Iterations of the ruler's loops.
const RULER_LOOPS: RangeInclusive<usize> = 100..=130;
/// Visits that run together. Slow loops must stay well below the time limit of a batch.
const BATCH_VISITS: usize = 64;
/// A placement whose estimated need exceeds the most visits by this factor gets only the fewest.
const HOPELESS_FACTOR: f64 = 1.2;

/// Counts the calls of all cases of a bench without measuring time, for emulated machines.
pub(crate) fn prove_calls(bench: &mut dyn MarkerBench, plan: &VisitPlan) -> Result<Vec<CaseFinding>, RunError> {
    let mut survey = CaseSurvey::new(bench, plan);
    survey.count_calls()?;
    Ok(survey.ledger.into_findings(plan.confidence))
}

/// Surveys all cases of a bench.
///
/// # Errors
///
/// Errors of the bench, and [`StopReason::Requested`] if the follower stops the survey.
pub fn survey_cases(
    bench: &mut dyn MarkerBench,
    plan: &VisitPlan,
    follow: &mut dyn StudyFollower,
) -> Result<Vec<CaseFinding>, StopReason> {
    let began = bench.now()?;
    let mut survey = CaseSurvey::new(bench, plan);
    survey.count_calls()?;
    survey.run_pilot()?;
    survey.visit_all(began, follow)?;
    let counted = plan.events.as_ref().map(|events| survey.count_events(events)).transpose()?;
    let mut findings = survey.ledger.into_findings(plan.confidence);
    for (finding, counted) in findings.iter_mut().zip(counted.into_iter().flatten()) {
        finding.counted = Some(counted);
    }
    Ok(findings)
}

/// The longest span that a bench supports in addition to the longest shorter loop.
fn longest_span(bench: &dyn MarkerBench, case: usize) -> usize {
    let most = usize::try_from(bench.most_loops(case)).unwrap_or(usize::MAX);
    most.saturating_sub(2 * SETTLING_LOOPS).max(1)
}

/// The results so far.
struct CaseSurvey<'a> {
    bench: &'a mut dyn MarkerBench,
    plan: &'a VisitPlan,
    ledger: VisitLedger,
    /// Difference of the iteration counts, for each case.
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

    /// Visits all cases until each interval is narrow enough, or time is up.
    fn visit_all(&mut self, began: Duration, follow: &mut dyn StudyFollower) -> Result<(), StopReason> {
        for pass in 1.. {
            let wanting = self.list_wanting_cases();
            if wanting.is_empty() {
                break;
            }
            let count = wanting.len();
            for (index, case) in wanting.into_iter().enumerate() {
                if pass > 1 && self.bench.now()?.saturating_sub(began) > self.plan.budget {
                    return Ok(());
                }
                self.visit_case(case)?;
                let least = (*self.plan.each.start() as f64 / self.plan.visits as f64).ceil();
                let done = ((pass - 1) as f64 + (index + 1) as f64 / count as f64) / least;
                let cases = self.ledger.cases().len();
                let message = format!("{} of {cases} markers converged", cases - count);
                check_stop(follow.report_progress(StudyProgress::from_share(done, message)))?;
            }
        }
        Ok(())
    }

    /// Counts events in a visit to each placement of each case: those that the marker causes in an
    /// iteration.
    fn count_events(&mut self, events: &EventPlan) -> Result<Vec<CountedEvents>, RunError> {
        let mut all = Vec::new();
        for case in 0..self.ledger.cases().len() {
            let placements = 0..self.bench.placement_offsets().len();
            let visits: Vec<CaseVisit> = placements.map(|placement| self.draw_visit(case, placement)).collect();
            let per_loop = |visit: usize| {
                let [few, many] = visits[visit].loops;
                let each = 1.0 / (many - few) as f64;
                let site = [(call::SITE_MANY, each), (call::SITE_FEW, -each)];
                vec![Contrast::new(site.into_iter().chain([(call::BASE_MANY, -each), (call::BASE_FEW, each)]))]
            };
            let (bench, confidence) = (&mut *self.bench, self.plan.confidence);
            let counted = events.count(1, &mut |codes| {
                Ok(estimate_contrasts(&bench.count_visits(case, &visits, codes)?, &per_loop, confidence))
            });
            all.push(counted?.swap_remove(0));
        }
        Ok(all)
    }

    /// Counts the probe calls of each case.
    fn count_calls(&mut self) -> Result<(), RunError> {
        for case in 0..self.ledger.cases().len() {
            let placement = self.random.below(self.bench.placement_offsets().len());
            self.ledger.hits[case] = self.bench.count_hits(case, placement, PROOF_LOOPS)?;
        }
        Ok(())
    }

    /// Estimates the time of each case's loops.
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
                // Intervals narrow with the square root of the number of visits. Hopeless
                // placements are skipped.
                share > 1.0 && attempts as f64 * share.powi(2) <= HOPELESS_FACTOR * *self.plan.each.end() as f64
            })
        };
        (0..self.bench.placement_offsets().len()).filter(wants).collect()
    }

    /// Visits the placements of a case that need it.
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
