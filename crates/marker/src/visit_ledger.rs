//! The results of all visits so far, and the findings derived from them.

use super::bench::MarkerCase;
use super::placement_cost::{PlacementCost, VisitReading, estimate_placement, median_over_placements};
use super::source::context;
use cyclescope_core::statistics::{Interval, median};
use cyclescope_measure::result::counter_record::CountedEvents;
use cyclescope_measure::ruler::UnsharedWidth;
use cyclescope_measure::sibling::SiblingPolicy;

/// The results of one case.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseFinding {
    /// The case.
    pub case: MarkerCase,
    /// Cost of the marker per iteration in core cycles: the median over placements.
    pub cost: Option<Interval>,
    /// Cost of the state beyond the state below it.
    pub step: Option<Interval>,
    /// Core cycles per iteration without the marker.
    pub base: Option<Interval>,
    /// Core cycles per iteration with the marker.
    pub site: Option<Interval>,
    /// Cost at each placement, in order.
    pub placements: Vec<Option<PlacementCost>>,
    /// Number of visits used.
    pub visits: usize,
    /// Number of visits excluded because a busy sibling shared the core.
    pub shared: usize,
    /// Core cycles of one link of the `add` chain: the median of all visits.
    pub add_link: f64,
    /// Probe calls by the marker in [`PROOF_LOOPS`](super::survey::PROOF_LOOPS) loops; `None` if it
    /// calls none.
    pub hits: Option<u64>,
    /// The events that the marker causes in an iteration, if they were counted.
    pub counted: Option<CountedEvents>,
}

/// Visits with a busy sibling never count. Passes continue until there are enough others.
const SHARED_VISITS_POLICY: SiblingPolicy = SiblingPolicy { least: 0, least_share: 0.0, ..SiblingPolicy::USUAL };

/// Target half width of high costs, as a share of the cost.
const AIM_SHARE: f64 = 0.002;

/// The readings of all cases at all placements.
#[derive(Debug, Clone)]
pub(crate) struct VisitLedger {
    cases: Vec<MarkerCase>,
    /// Readings by case and placement.
    readings: Vec<Vec<Vec<VisitReading>>>,
    attempts: Vec<Vec<usize>>,
    /// See [`CaseFinding::hits`].
    pub hits: Vec<Option<u64>>,
    /// Width of an unshared core, as observed so far.
    quiet: UnsharedWidth,
}

impl VisitLedger {
    /// An empty ledger.
    pub(crate) fn new(cases: Vec<MarkerCase>, placements: usize) -> VisitLedger {
        let count = cases.len();
        VisitLedger {
            cases,
            readings: vec![vec![Vec::new(); placements]; count],
            attempts: vec![vec![0; placements]; count],
            hits: vec![None; count],
            quiet: UnsharedWidth::default(),
        }
    }

    /// The cases.
    pub(crate) fn cases(&self) -> &[MarkerCase] {
        &self.cases
    }

    /// Records a visit, possibly without a result.
    pub(crate) fn note_visit(&mut self, case: usize, placement: usize, reading: Option<VisitReading>) {
        self.attempts[case][placement] += 1;
        self.readings[case][placement].extend(reading);
    }

    /// Number of visits to a placement.
    pub(crate) fn count_attempts(&self, case: usize, placement: usize) -> usize {
        self.attempts[case][placement]
    }

    /// Half width of the cost at a placement, relative to its target; `None` without a cost.
    pub(crate) fn relative_half_width(&self, case: usize, placement: usize, confidence: f64) -> Option<f64> {
        let cost = self::estimate_placement(&self.unshared_readings(case, placement), confidence)?.cost;
        Some(cost.half_width() / case_aim(&self.cases[case], &cost))
    }

    /// The readings of a placement without a busy sibling.
    fn unshared_readings(&self, case: usize, placement: usize) -> Vec<VisitReading> {
        let readings = self.readings[case][placement].clone();
        SHARED_VISITS_POLICY.keep_unshared(readings, self.quiet, |reading| (reading.width, reading.width_error)).used
    }

    /// Updates the number of additions per cycle on an unshared core.
    pub(crate) fn find_quiet_width(&mut self) {
        let all = self.readings.iter().flatten().flatten();
        self.quiet = UnsharedWidth::from_widths(all.map(|reading| (reading.width, reading.width_error)), None);
    }

    /// The findings, at a confidence level such as 0.95.
    pub(crate) fn into_findings(mut self, confidence: f64) -> Vec<CaseFinding> {
        self.find_quiet_width();
        let mut findings: Vec<CaseFinding> =
            (0..self.cases.len()).map(|case| self.case_finding(case, confidence)).collect();
        for index in 0..findings.len() {
            findings[index].step = state_step(&findings[index], &findings, confidence);
        }
        findings
    }

    fn case_finding(&self, case: usize, confidence: f64) -> CaseFinding {
        let placements = 0..self.readings[case].len();
        let all: Vec<Vec<VisitReading>> = placements.map(|placement| self.unshared_readings(case, placement)).collect();
        let used = all.iter().map(Vec::len).sum::<usize>();
        let visits = self.readings[case].iter().map(Vec::len).sum::<usize>();
        let mut links: Vec<f64> = all.iter().flatten().map(|reading| reading.add_link).collect();
        let placements: Vec<_> = all.iter().map(|readings| estimate_placement(readings, confidence)).collect();
        let median_of = |figure: fn(&PlacementCost) -> f64| {
            let values: Vec<f64> = placements.iter().flatten().map(figure).collect();
            median_over_placements(&values, confidence)
        };
        CaseFinding {
            case: self.cases[case].clone(),
            cost: median_of(|placement| placement.cost.value),
            step: None,
            base: median_of(|placement| placement.base),
            site: median_of(|placement| placement.site),
            visits: used,
            shared: visits - used,
            add_link: if links.is_empty() { f64::NAN } else { median(&mut links) },
            hits: self.hits[case],
            counted: None,
            placements,
        }
    }
}

/// Target half width of a cost at one placement.
pub fn case_aim(case: &MarkerCase, cost: &Interval) -> f64 {
    let named = context::ALL.iter().find(|context| context.name == case.context);
    named.map_or(context::CUSTOM_LOOP_AIM, |context| context.aim).max(AIM_SHARE * cost.value.abs())
}

/// Cost of a finding's state beyond the state below it, placement by placement.
fn state_step(finding: &CaseFinding, all: &[CaseFinding], confidence: f64) -> Option<Interval> {
    let Some(over) = finding.case.state.over else { return finding.cost };
    let before = all.iter().find(|other| {
        let (own, others) = (&finding.case, &other.case);
        others.design == own.design && others.context == own.context && others.state.name == over
    })?;
    let pairs = finding.placements.iter().zip(&before.placements);
    let differences: Vec<f64> =
        pairs.filter_map(|(own, before)| Some(own.as_ref()?.cost.value - before.as_ref()?.cost.value)).collect();
    median_over_placements(&differences, confidence)
}
