//! A simulated machine with markers of known cost.

use super::anatomy::{AssemblyLine, CodePath, MarkerAnatomy};
use super::bench::{CaseVisit, MarkerBench, MarkerCase, call};
use super::record::{MarkerOrigin, MarkerRecord, measure_records};
use super::source::design;
use super::state::{MarkerState, list_states};
use super::survey::VisitPlan;
use cyclescope_code::asm::CodeMode;
use cyclescope_code::program::chains::IMUL_LINKS;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_events::{EventCode, EventRefusal, RefusalCause};
use cyclescope_exec::Sample;
use cyclescope_measure::ruler::LayoutSamples;
use cyclescope_measure::ruler::{ADD_LINKS, ADD_SPAN, IMUL_SPAN, sentinel_adds, sentinel_loops};
use cyclescope_measure::study::ResultRecord;
use cyclescope_sim::Scenario;
use std::time::Duration;

/// Latency of `imul` on the usual core, in core cycles.
pub(super) const IMUL_LATENCY: f64 = 3.0;

/// The simulated machine.
pub(super) struct SimulatedBench {
    /// See [`MarkerBench::cases`].
    pub(super) cases: Vec<MarkerCase>,
    /// See [`MarkerBench::placement_offsets`].
    pub(super) offsets: Vec<usize>,
    /// Source of random costs and interrupts.
    pub(super) random: Random,
    /// Core cycles per iteration at a placement, without the marker and with it.
    pub(super) loops: fn(&MarkerCase, usize) -> [f64; 2],
    /// Random addition of a visit to the marker's cost.
    pub(super) luck: fn(&mut Random) -> f64,
    /// Probability that a call is interrupted.
    pub(super) interrupts: f64,
    /// Properties of its core and clock. The only disturbances are the interrupts above.
    pub(super) core: Scenario,
    /// Whether dormant markers call their probes.
    pub(super) broken: bool,
    /// Elapsed ticks.
    pub(super) ticks: f64,
    /// Events that a marker causes in an iteration; `None` without counters.
    pub(super) events: Option<fn(&MarkerCase, EventCode) -> f64>,
}

impl SimulatedBench {
    /// A machine without disturbances.
    pub(super) fn new(loops: fn(&MarkerCase, usize) -> [f64; 2]) -> SimulatedBench {
        let case = |design: &'static design::SiteDesign, state: MarkerState, context: &str| MarkerCase {
            design,
            state,
            context: context.to_string(),
        };
        let flag = design::ALL.iter().find(|design| design.name == "flag").unwrap();
        let cases = ["empty", "memcpy"]
            .iter()
            .flat_map(|context| list_states(flag).into_iter().map(|state| case(flag, state, context)));
        SimulatedBench {
            cases: cases.collect(),
            offsets: (0..16).map(|placement| 4 * placement).collect(),
            random: Random::new(1),
            loops,
            luck: |_| 0.0,
            interrupts: 0.0,
            core: Scenario::default(),
            broken: false,
            ticks: 0.0,
            events: None,
        }
    }

    /// The records of a survey of it.
    pub(super) fn measure_all(&mut self, plan: &VisitPlan) -> Vec<MarkerRecord> {
        let around = MarkerOrigin {
            executor: "user",
            mode: CodeMode::default(),
            clock: "rdtscp",
            confidence: plan.confidence,
            cpu: 1,
            cpu_model: String::new(),
            seed: plan.seed,
            repro: String::new(),
            emulated: false,
        };
        measure_records(self, plan, &around, &mut Vec::<ResultRecord>::new()).expect("nothing fails there")
    }

    /// A reading of a call whose body takes `cycles` core cycles. Some of them overlap with the
    /// fences.
    fn simulate_call(&mut self, rate: f64, cycles: f64) -> Sample {
        let interrupted = if self.random.happens(self.interrupts) { 20_000.0 } else { 0.0 };
        let start = self.random.uniform() * 1e6;
        let body = (cycles - self.core.slack).max(0.0);
        let duration = (body + self.core.overhead + interrupted) * rate;
        let end = start + duration;
        self.ticks += duration;
        let stepped = |at: f64| at as u64 / self.core.step * self.core.step;
        Sample { start: stepped(start), end: stepped(end) }
    }
}

/// Events that count at the same time.
const MOST_EVENTS: usize = 2;

impl MarkerBench for SimulatedBench {
    fn cases(&self) -> &[MarkerCase] {
        &self.cases
    }

    fn anatomy(&self, _: usize) -> Result<MarkerAnatomy, RunError> {
        Ok(nop_anatomy())
    }

    fn compiler_name(&self, _: usize) -> &str {
        "a compiler"
    }

    fn placement_offsets(&self) -> &[usize] {
        &self.offsets
    }

    fn clock_step(&self) -> f64 {
        self.core.step as f64
    }

    fn run_visits(&mut self, case: usize, visits: &[CaseVisit]) -> Result<Vec<LayoutSamples>, RunError> {
        let order: Vec<usize> = (0..call::COUNT).collect();
        let run = |visit: &CaseVisit| {
            let [base, site] = (self.loops)(&self.cases[case], visit.placement);
            let site = site + (self.luck)(&mut self.random);
            // The core's frequency varies.
            let rate = (1.0 + 0.03 * self.random.uniform()) / self.core.ratio;
            let [few, many] = visit.loops.map(|loops| loops as f64);
            let ruler = visit.ruler_loops as f64;
            let chain = |links: f64, latency: f64| links * latency * ruler;
            let short = ADD_LINKS[0] as f64;
            let (imul, latency) = (IMUL_LINKS[0] as f64, f64::from(self.core.imul_latency));
            let cycles = [
                chain(imul, latency),
                chain(imul + IMUL_SPAN, latency),
                chain(short, 1.0),
                chain(short + ADD_SPAN, 1.0),
                sentinel_adds(sentinel_loops(self.clock_step())) / self.core.adds_per_cycle,
                base * few,
                base * many,
                site * few,
                site * many,
            ];
            let samples: Vec<Sample> = cycles.iter().map(|cycles| self.simulate_call(rate, *cycles)).collect();
            LayoutSamples::new(&samples, &order)
        };
        Ok(visits.iter().map(run).collect())
    }

    fn count_fitting(&self, codes: &[EventCode]) -> Result<usize, EventRefusal> {
        match self.events {
            Some(_) => Ok(codes.len().min(MOST_EVENTS)),
            None => Err(EventRefusal::new(RefusalCause::NoPmu, "the bench has no counters", "give it some")),
        }
    }

    fn count_visits(
        &mut self,
        case: usize,
        visits: &[CaseVisit],
        codes: &[EventCode],
    ) -> Result<Vec<Vec<Vec<f64>>>, RunError> {
        let events = self.events.expect("events were planned");
        let count = |code: &EventCode, visit: &CaseVisit| {
            let [few, many] = visit.loops.map(|loops| loops as f64);
            let [base, site] = [2.0, 2.0 + events(&self.cases[case], *code)].map(|each| [each * few, each * many]);
            let calls = std::iter::repeat_n(0.0, call::BASE_FEW).chain(base).chain(site);
            calls.map(|count| 17.0 + count).collect()
        };
        Ok(codes.iter().map(|code| visits.iter().map(|visit| count(code, visit)).collect()).collect())
    }

    fn count_hits(&mut self, case: usize, _: usize, loops: u64) -> Result<Option<u64>, RunError> {
        let enabled = self.cases[case].state.enabled;
        Ok(Some(if enabled || self.broken { loops } else { 0 }))
    }

    /// Time passes only during calls.
    fn now(&self) -> Result<Duration, RunError> {
        Ok(Duration::from_secs_f64(self.ticks / self.core.hertz))
    }
}

/// A NOP before a return.
fn nop_anatomy() -> MarkerAnatomy {
    let line = |offset: usize, bytes: &str, text: &str, site| AssemblyLine {
        offset,
        bytes: bytes.to_string(),
        text: text.to_string(),
        path: CodePath::Likely,
        site,
        aligning: false,
    };
    MarkerAnatomy {
        likely_bytes: 1,
        unlikely_bytes: 0,
        function_likely_bytes: 1,
        function_unlikely_bytes: 0,
        gates: Vec::new(),
        assembly: vec![line(0, "90", "nop", true), line(1, "c3", "ret", false)],
        base_assembly: vec![line(0, "c3", "ret", false)],
    }
}

/// Costs of states: a cycle per step, and half a cycle more at some placements.
pub(super) fn stair_costs(case: &MarkerCase, placement: usize) -> [f64; 2] {
    let base = if case.context == "empty" { 1.0 } else { 75.0 };
    let states = list_states(case.design);
    let index = states.iter().position(|state| state.name == case.state.name).unwrap();
    [base, base + index as f64 + if placement % 4 == 3 { 0.5 } else { 0.0 }]
}
