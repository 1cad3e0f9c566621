//! What a survey says, as JSON: one line of kind `marker` for each design, state and context.

use super::anatomy::{AssemblyLine, CacheLines, MarkerAnatomy};
use super::bench::{MarkerBench, MarkerCase};
use super::caveats::list_caveats;
use super::custom_loop::CUSTOM_LOOP_NAME;
pub use super::placement_cost::LoopTimes;
use super::placement_cost::PlacementCost;
use super::source::design::Enabling;
use super::speeds::{OtherSpeed, find_other_speeds};
use super::survey::{PROOF_LOOPS, VisitPlan, prove_calls, survey_cases};
use super::visit_ledger::CaseFinding;
use super::working_set::WorkingSet;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::result::record::{ModeRecord, Quantity};
use cyclescope_measure::study::{StopReason, StudyFollower};
use serde::Serialize;

/// One marker in one state and loop.
#[derive(Debug, Clone, Serialize)]
pub struct MarkerRecord {
    /// The design's name.
    pub design: &'static str,
    /// The state's name.
    pub state: String,
    /// The guard around the call of its probe.
    pub guard: String,
    /// The loop's name.
    pub context: String,
    /// Core cycles that the marker adds to once around the loop: the median over placements. Signed.
    pub cost: Quantity,
    /// What its state adds to the one that it is over.
    pub step: StateStep,
    /// Core cycles of once around the loop without the marker.
    pub base: Quantity,
    /// Core cycles of once around the loop with it.
    pub site: Quantity,
    /// Where the loop runs at another speed with the marker than without: then the cost is not the marker's, and the step
    /// is refused; null where it doesn't.
    pub other_speed: Option<OtherSpeed>,
    /// How often the two loops went around in the visits that costs are means of, over all placements, and how long that took.
    pub timed: LoopTimes,
    /// The working set of its loop; null where it has no particular one.
    pub working_set: Option<WorkingSet>,
    /// The cost at the placement where it is least; null where none is known.
    pub best: Option<f64>,
    /// The cost at the placement where it is most.
    pub worst: Option<f64>,
    /// Each placement's cost.
    pub placements: Vec<PlacementRecord>,
    /// Bytes, lines of the cache and instructions.
    #[serde(flatten)]
    pub code: CodeRecord,
    /// How often the marker's probe was called in a run of the same bytes, at a placement drawn at random, with a probe that
    /// counts; null where it calls none.
    pub calls: Option<CallProof>,
    /// The compiler that made the functions.
    pub compiler: String,
    /// Where it ran: `user` or `kernel`.
    pub executor: &'static str,
    /// The timing method.
    pub clock: &'static str,
    /// The level of confidence of all intervals.
    pub confidence: f64,
    /// Visits that were used, over all placements.
    pub visits: usize,
    /// Core cycles of one link of the `add` chain, which is 1 where the rulers agree.
    pub add_link: Option<f64>,
    /// The CPU's number.
    pub cpu: u32,
    /// The CPU's model.
    pub cpu_model: String,
    /// The seed of everything random.
    pub seed: u64,
    /// What to know before believing the numbers.
    pub caveats: Vec<Caveat>,
    /// The command that repeats it.
    pub repro: String,
}

/// The price of one thing more.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StateStep {
    /// The state that has all but that; null is the loop without the marker.
    pub over: Option<&'static str>,
    /// Core cycles.
    pub cost: Quantity,
}

/// The cost at one placement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlacementRecord {
    /// Bytes from the start of a cache line to the functions.
    pub offset: usize,
    /// Core cycles; where there are modes, in the one that most visits are in.
    pub cost: Quantity,
    /// Core cycles of once around the loop without the marker.
    pub base: Option<f64>,
    /// The modes, where visits do not agree.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<ModeRecord>,
    /// Visits used.
    pub visits: usize,
}

/// What the marker adds to the code.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CodeRecord {
    /// Bytes of the marker's own instructions on the likely path.
    pub likely_bytes: usize,
    /// Bytes of the unlikely path.
    pub unlikely_bytes: usize,
    /// Bytes of the whole function on the likely path, less those of the function without the marker.
    pub function_likely_bytes: i64,
    /// The same on the unlikely path.
    pub function_unlikely_bytes: i64,
    /// Lines of the cache that the functions lie in where they start with one; the kernel's as they lie.
    pub cache_lines: CacheLines,
    /// The function with the marker.
    pub assembly: Vec<AssemblyLine>,
    /// The function without it.
    pub base_assembly: Vec<AssemblyLine>,
}

impl From<MarkerAnatomy> for CodeRecord {
    fn from(anatomy: MarkerAnatomy) -> CodeRecord {
        CodeRecord {
            likely_bytes: anatomy.likely_bytes,
            unlikely_bytes: anatomy.unlikely_bytes,
            function_likely_bytes: anatomy.function_likely_bytes,
            function_unlikely_bytes: anatomy.function_unlikely_bytes,
            cache_lines: anatomy.cache_lines(0),
            assembly: anatomy.assembly,
            base_assembly: anatomy.base_assembly,
        }
    }
}

/// A proof that a marker calls, or does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CallProof {
    /// How often the loop went around.
    pub loops: u64,
    /// How often the probe was called.
    pub counted: u64,
    /// Expected number of calls: 0 while the marker is dormant, unless its design calls an empty probe then; null in the
    /// user's own loop, which may run the marker any number of times.
    pub expected: Option<u64>,
}

impl CallProof {
    /// The proof of a case, from how often its probe was called in [`PROOF_LOOPS`] loops.
    fn from_count(case: &MarkerCase, counted: u64) -> CallProof {
        let MarkerCase { design, state, context } = case;
        let each = state.library.and_then(|library| library.hits).unwrap_or(1);
        let calls = state.enabled || design.enabling == Enabling::Probe;
        let expected = match calls {
            true if context == CUSTOM_LOOP_NAME => None,
            true => Some(each * PROOF_LOOPS),
            false => Some(0),
        };
        CallProof { loops: PROOF_LOOPS, counted, expected }
    }

    /// Whether the marker is what its state says.
    pub fn holds(&self) -> bool {
        self.expected.is_none_or(|expected| self.counted == expected)
    }
}

/// What all records of a survey share.
#[derive(Debug, Clone)]
pub struct MarkerOrigin {
    /// See [`MarkerRecord::executor`].
    pub executor: &'static str,
    /// See [`MarkerRecord::clock`].
    pub clock: &'static str,
    /// See [`MarkerRecord::confidence`].
    pub confidence: f64,
    /// See [`MarkerRecord::cpu`].
    pub cpu: u32,
    /// See [`MarkerRecord::cpu_model`].
    pub cpu_model: String,
    /// See [`MarkerRecord::seed`].
    pub seed: u64,
    /// See [`MarkerRecord::repro`].
    pub repro: String,
    /// Whether the machine is emulated, so that it has no cycles.
    pub emulated: bool,
}

/// An interval in core cycles as records have it; refused where there is none.
pub(super) fn to_quantity(interval: Option<Interval>) -> Quantity {
    let cycles = Unit::CoreCycles;
    interval.map_or(Quantity::refused(cycles), |interval| Quantity::new(interval, cycles))
}

impl MarkerRecord {
    /// The record of a finding.
    pub(crate) fn new(
        finding: &CaseFinding,
        speeds: CaseSpeeds,
        bench: &dyn MarkerBench,
        code: CodeRecord,
        around: &MarkerOrigin,
    ) -> MarkerRecord {
        let CaseSpeeds { case, own, over } = speeds;
        let (compiler, offsets) = (bench.compiler_name(case), bench.placement_offsets());
        let step = finding.step.filter(|_| own.is_none() && over.is_none());
        let state = &finding.case.state;
        let costs = || finding.placements.iter().flatten().map(|placement| placement.cost.value);
        let placements =
            finding.placements.iter().zip(offsets).map(|(found, offset)| placement_record(found.as_ref(), *offset));
        MarkerRecord {
            design: finding.case.design.name,
            state: state.name.to_string(),
            guard: state.guard.to_string(),
            context: finding.case.context.clone(),
            cost: to_quantity(finding.cost),
            step: StateStep { over: state.over, cost: to_quantity(step) },
            base: to_quantity(finding.base),
            site: to_quantity(finding.site),
            other_speed: own.cloned(),
            timed: LoopTimes::sum_times(finding.placements.iter().flatten().map(|placement| placement.timed)),
            working_set: bench.working_set(case),
            best: costs().min_by(f64::total_cmp),
            worst: costs().max_by(f64::total_cmp),
            placements: placements.collect(),
            code,
            calls: finding.hits.map(|counted| CallProof::from_count(&finding.case, counted)),
            compiler: compiler.to_string(),
            executor: around.executor,
            clock: around.clock,
            confidence: around.confidence,
            visits: finding.visits,
            add_link: finding.add_link.is_finite().then_some(finding.add_link),
            cpu: around.cpu,
            cpu_model: around.cpu_model.clone(),
            seed: around.seed,
            caveats: match around.emulated {
                true => vec![Caveat::emulated_machine()],
                false => list_caveats(finding, own, over),
            },
            repro: around.repro.clone(),
        }
    }
}

/// A case, and what is known of the speeds of its loop.
#[derive(Clone, Copy)]
pub(crate) struct CaseSpeeds<'a> {
    /// Its number.
    case: usize,
    /// Its own other speed.
    own: Option<&'a OtherSpeed>,
    /// That of the state that its step is over.
    over: Option<&'a OtherSpeed>,
}

impl<'a> CaseSpeeds<'a> {
    fn new(case: usize, findings: &[CaseFinding], all: &'a [Option<OtherSpeed>]) -> CaseSpeeds<'a> {
        let own = &findings[case].case;
        let is_over = |other: &CaseFinding| {
            let other = &other.case;
            (other.design, &other.context, Some(other.state.name)) == (own.design, &own.context, own.state.over)
        };
        let over = findings.iter().position(is_over).and_then(|over| all[over].as_ref());
        CaseSpeeds { case, own: all[case].as_ref(), over }
    }
}

/// Surveys all cases of a bench, or on an emulated machine only counts calls.
///
/// # Errors
///
/// Those of the bench, and [`StopReason::Requested`] where whoever follows has ended it.
pub fn measure_records(
    bench: &mut dyn MarkerBench,
    plan: &VisitPlan,
    around: &MarkerOrigin,
    follow: &mut dyn StudyFollower,
) -> Result<Vec<MarkerRecord>, StopReason> {
    let findings = if around.emulated { prove_calls(bench, plan)? } else { survey_cases(bench, plan, follow)? };
    let speeds = find_other_speeds(&findings, plan.confidence);
    let record = |(case, finding): (usize, &CaseFinding)| {
        let anatomy = bench.anatomy(case)?;
        let cache_lines = anatomy.cache_lines(bench.line_offset(case));
        let code = CodeRecord { cache_lines, ..CodeRecord::from(anatomy) };
        Ok(MarkerRecord::new(finding, CaseSpeeds::new(case, &findings, &speeds), bench, code, around))
    };
    findings.iter().enumerate().map(record).collect()
}

fn placement_record(placement: Option<&PlacementCost>, offset: usize) -> PlacementRecord {
    let mode = |mode: &cyclescope_measure::modes::CostMode| ModeRecord {
        cost: Quantity::new(mode.cost, Unit::CoreCycles),
        share: mode.share,
    };
    PlacementRecord {
        offset,
        cost: to_quantity(placement.map(|placement| placement.cost)),
        base: placement.map(|placement| placement.base),
        modes: placement.iter().flat_map(|placement| placement.modes.iter().map(mode)).collect(),
        visits: placement.map_or(0, |placement| placement.visits),
    }
}
