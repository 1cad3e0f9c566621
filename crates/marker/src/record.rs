//! The records of a survey: one JSON line of kind `marker` for each design, state and context.

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
use cyclescope_code::asm::CodeMode;
use cyclescope_core::error::RunError;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::result::counter_record::CounterRecord;
use cyclescope_measure::result::record::{ModeRecord, Quantity};
use cyclescope_measure::study::{StopReason, StudyFollower};
use serde::Serialize;

/// One marker in one state and loop.
#[derive(Debug, Clone, Serialize)]
pub struct MarkerRecord {
    /// Name of the design.
    pub design: &'static str,
    /// Name of the state.
    pub state: String,
    /// Guard around the probe call.
    pub guard: String,
    /// Name of the loop.
    pub context: String,
    /// The mode of the code; absent for 64-bit mode.
    #[serde(skip_serializing_if = "CodeMode::is_default")]
    pub bits: CodeMode,
    /// Cost of the marker per iteration in core cycles, signed: the median over placements.
    pub cost: Quantity,
    /// Cost of the state beyond the state below it.
    pub step: StateStep,
    /// Core cycles per iteration without the marker.
    pub base: Quantity,
    /// Core cycles per iteration with the marker.
    pub site: Quantity,
    /// Set if the loop runs at another speed with the marker than without, otherwise null. The cost
    /// is then not the marker's, and the step is refused.
    pub other_speed: Option<OtherSpeed>,
    /// Iterations and times of both loops in the visits behind the mean costs, over all placements.
    pub timed: LoopTimes,
    /// Working set of its loop; null if it has no particular one.
    pub working_set: Option<WorkingSet>,
    /// Lowest cost over the placements; null if none is known.
    pub best: Option<f64>,
    /// Highest cost over the placements.
    pub worst: Option<f64>,
    /// Cost at each placement.
    pub placements: Vec<PlacementRecord>,
    /// Bytes, cache lines and instructions.
    #[serde(flatten)]
    pub code: CodeRecord,
    /// Number of probe calls in a run of the same bytes with a counting probe, at a random
    /// placement; null if the marker calls none.
    pub calls: Option<CallProof>,
    /// The events that the marker causes in an iteration, as requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterRecord>,
    /// Number of passes that counted them; missing without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter_passes: Option<usize>,
    /// The compiler of the functions.
    pub compiler: String,
    /// Executor: `user` or `kernel`.
    pub executor: &'static str,
    /// Name of the timing method.
    pub clock: &'static str,
    /// Confidence level of all intervals.
    pub confidence: f64,
    /// Number of visits used, over all placements.
    pub visits: usize,
    /// Core cycles of one link of the `add` chain; 1 if the rulers agree.
    pub add_link: Option<f64>,
    /// Number of the CPU.
    pub cpu: u32,
    /// Model of the CPU.
    pub cpu_model: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Reasons to distrust the numbers.
    pub caveats: Vec<Caveat>,
    /// The command that repeats the survey.
    pub repro: String,
}

/// The cost of one additional step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StateStep {
    /// The state without this step; null for the loop without the marker.
    pub over: Option<&'static str>,
    /// Cost in core cycles.
    pub cost: Quantity,
}

/// The cost at one placement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlacementRecord {
    /// Bytes from the start of a cache line to the functions.
    pub offset: usize,
    /// Cost in core cycles; with modes, that of the most frequent one.
    pub cost: Quantity,
    /// Core cycles per iteration without the marker.
    pub base: Option<f64>,
    /// The modes, if visits do not agree.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<ModeRecord>,
    /// Number of visits used.
    pub visits: usize,
}

/// The code that the marker adds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CodeRecord {
    /// Bytes of the marker's own instructions on the likely path.
    pub likely_bytes: usize,
    /// Bytes of the unlikely path.
    pub unlikely_bytes: usize,
    /// Bytes of the whole function on the likely path, minus those without the marker.
    pub function_likely_bytes: i64,
    /// The same on the unlikely path.
    pub function_unlikely_bytes: i64,
    /// Cache lines of the functions if they start at one; for the kernel, at their actual
    /// addresses.
    pub cache_lines: CacheLines,
    /// Instructions of the function with the marker.
    pub assembly: Vec<AssemblyLine>,
    /// Instructions of the function without the marker.
    pub base_assembly: Vec<AssemblyLine>,
}

impl CodeRecord {
    fn from_case(bench: &dyn MarkerBench, case: usize) -> Result<CodeRecord, RunError> {
        let anatomy = bench.anatomy(case)?;
        let cache_lines = anatomy.cache_lines(bench.line_offset(case));
        Ok(CodeRecord { cache_lines, ..CodeRecord::from(anatomy) })
    }
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

/// The proof that a marker calls its probe, or does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CallProof {
    /// Iterations of the loop.
    pub loops: u64,
    /// Counted calls of the probe.
    pub counted: u64,
    /// Expected calls. 0 for a dormant marker, unless its design then calls an empty probe. Null in
    /// a custom loop, which may run the marker any number of times.
    pub expected: Option<u64>,
}

impl CallProof {
    /// The proof of a case. `counted` is the number of calls in [`PROOF_LOOPS`] loops.
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

    /// Whether the marker behaves as its state says.
    pub fn holds(&self) -> bool {
        self.expected.is_none_or(|expected| self.counted == expected)
    }
}

/// The fields common to all records of a survey.
#[derive(Debug, Clone)]
pub struct MarkerOrigin {
    /// See [`MarkerRecord::executor`].
    pub executor: &'static str,
    /// See [`MarkerRecord::bits`].
    pub mode: CodeMode,
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
    /// Whether the machine is emulated. No figure in core cycles is possible then.
    pub emulated: bool,
}

/// An interval in core cycles as a quantity; refused without an interval.
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
            bits: around.mode,
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
            counters: finding.counted.as_ref().map_or(Vec::new(), |counted| counted.counters.clone()),
            counter_passes: finding.counted.as_ref().map(|counted| counted.passes),
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

/// A case, and the speeds of its loop.
#[derive(Clone, Copy)]
pub(crate) struct CaseSpeeds<'a> {
    /// Index of the case.
    case: usize,
    /// Its own other speed.
    own: Option<&'a OtherSpeed>,
    /// The other speed of the state below it.
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

/// The code of a marker in one state and loop.
#[derive(Debug, Clone, Serialize)]
pub struct CaseCode {
    /// Name of the design.
    pub design: &'static str,
    /// Name of the state.
    pub state: String,
    /// Guard around the probe call.
    pub guard: String,
    /// Name of the loop.
    pub context: String,
    /// The mode of the code; absent for 64-bit mode.
    #[serde(skip_serializing_if = "CodeMode::is_default")]
    pub bits: CodeMode,
    /// The compiler of the functions.
    pub compiler: String,
    /// Bytes, cache lines and instructions.
    #[serde(flatten)]
    pub code: CodeRecord,
}

/// The code of all cases of a bench, which has this mode, without running it.
///
/// # Errors
///
/// Errors of the bench.
pub fn read_codes(bench: &dyn MarkerBench, mode: CodeMode) -> Result<Vec<CaseCode>, RunError> {
    let read = |(number, case): (usize, &MarkerCase)| {
        let MarkerCase { design, state, context } = case;
        Ok(CaseCode {
            design: design.name,
            state: state.name.to_string(),
            guard: state.guard.to_string(),
            context: context.clone(),
            bits: mode,
            compiler: bench.compiler_name(number).to_string(),
            code: CodeRecord::from_case(bench, number)?,
        })
    };
    bench.cases().iter().enumerate().map(read).collect()
}

/// Surveys all cases of a bench. On an emulated machine it only counts calls.
///
/// # Errors
///
/// Errors of the bench, and [`StopReason::Requested`] if the follower stops the survey.
pub fn measure_records(
    bench: &mut dyn MarkerBench,
    plan: &VisitPlan,
    around: &MarkerOrigin,
    follow: &mut dyn StudyFollower,
) -> Result<Vec<MarkerRecord>, StopReason> {
    let findings = if around.emulated { prove_calls(bench, plan)? } else { survey_cases(bench, plan, follow)? };
    let speeds = find_other_speeds(&findings, plan.confidence);
    let record = |(case, finding): (usize, &CaseFinding)| {
        let code = CodeRecord::from_case(bench, case)?;
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
