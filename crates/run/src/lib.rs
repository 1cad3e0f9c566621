//! The command `run`: the cost of a snippet on this machine.

#![warn(unreachable_pub)]

pub mod points;
mod run_measurement;
mod run_plan;
mod setup_advice;
pub mod study;
mod subject;
mod variant_comparison;

use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock::Clock;
use cyclescope_code::program::ColdStart;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::fact::Fact;
use cyclescope_core::machine::tsc_calibration::TscStopwatch;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Hertz;
use cyclescope_core::unit::Unit;
use cyclescope_exec::{Capabilities, Executor};
use cyclescope_measure::estimate::CostEstimate;
use cyclescope_measure::result::answers::MachineAnswers;
use cyclescope_measure::result::aperf::AperfComparison;
use cyclescope_measure::result::caveat::{Caveat, CaveatKind, fall_short, find_caveats, has_ruler_conflict};
use cyclescope_measure::result::record::{ModeRecord, Quantity, RulerRecord, RunRecord, TrainingRecord};
use cyclescope_measure::{
    COPIES_PRECISION, CostMeasurement, CostQuestion, LengthenBy, MeasurementProgress, Plan, Precision,
    measure_with_progress,
};
use std::time::Duration;

/// Options of a run. `None` lets the program choose, from the machine and the snippet.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    /// The timing method.
    pub clock: Option<&'static Clock>,
    /// The mode of the code.
    pub mode: CodeMode,
    /// Copies in the shortest body.
    pub unroll: Option<usize>,
    /// Iterations of a loop around the copies.
    pub loop_count: Option<u64>,
    /// How the three bodies differ, if neither copies nor iterations are given: copies in a loop by
    /// default.
    pub lengthen: Option<LengthenBy>,
    /// The memory of the programs.
    pub memory: Option<ProgramMemory>,
    /// What is cold when the snippet begins.
    pub cold: ColdStart,
    /// Untimed rounds at the start of each layout.
    pub warm_up: Option<u32>,
    /// Timed rounds in each layout.
    pub samples: Option<u32>,
    /// Initial layouts.
    pub layouts: Option<usize>,
    /// Precision that a result must reach, or it counts as too noisy. Also where the run stops,
    /// unless `aim` is given.
    pub required: Option<Precision>,
    /// Precision at which the run stops: [`Plan::precision`].
    pub aim: Option<Precision>,
    /// Confidence level of the intervals.
    pub confidence: Option<f64>,
    /// No batch begins after this time.
    pub budget: Option<Duration>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Fewer layouts and rounds, and a short budget.
    pub quick: bool,
}

/// Precision at which the run of a function call stops. Calls vary more between addresses and take
/// longer than copies. The half width includes the variation between measurements, 0.6 % and 0.67
/// cycles.
const AIM_CALL: Precision = Precision { cycles: 0.7, share: 0.0065, cap: None };
const BUDGETS_CALL: u32 = 4;
/// Precision that a result must reach unless the user requests another. Otherwise it is too noisy.
const REQUIRED_COPIES: Precision = Precision { cycles: 0.01, share: 0.02, cap: None };
/// The same for a function call minus an empty call. Addresses alone change the difference by a
/// cycle.
const REQUIRED_CALL: Precision = Precision { cycles: 1.0, share: 0.02, cap: None };
/// The same for a cold run: the state of caches and predictors varies between runs.
const REQUIRED_COLD: Precision = Precision { cycles: 5.0, share: 0.05, cap: None };
const CONFIDENCE: f64 = 0.95;
const ROUNDS: u32 = 12;
const ROUNDS_QUICK: u32 = 8;
/// Fewest rounds that show whether one of them was disturbed.
const ROUNDS_LEAST: u32 = 4;
const LAYOUTS: usize = 16;
const LAYOUTS_QUICK: usize = 8;
/// If each round has its own placement, the memory for programs limits the number of layouts.
const LAYOUTS_MOST_COLD: usize = 64;
/// Largest number of layouts. More layouts do not narrow the interval noticeably.
const LAYOUTS_MOST: usize = 1024;
const BUDGET: Duration = Duration::from_millis(160);
const BUDGET_QUICK: Duration = Duration::from_millis(20);

impl RunRequest {
    /// The precision that a result must reach, or it counts as too noisy.
    pub fn required_precision(&self) -> Precision {
        self.required.unwrap_or(match (self.cold.is_any(), self.chosen_lengthening()) {
            (true, _) => REQUIRED_COLD,
            (false, LengthenBy::Copies | LengthenBy::LoopedCopies) => REQUIRED_COPIES,
            (false, LengthenBy::Iterations) => REQUIRED_CALL,
        })
    }

    /// How the three bodies differ. Copies are looped unless only their number is given.
    fn chosen_lengthening(&self) -> LengthenBy {
        match (self.unroll, self.loop_count) {
            _ if self.cold.is_any() => LengthenBy::Copies,
            (_, Some(_)) => LengthenBy::LoopedCopies,
            (Some(_), None) => LengthenBy::Copies,
            (None, None) => self.lengthen.unwrap_or(LengthenBy::LoopedCopies),
        }
    }

    /// Turns the request into a plan for an executor with these capabilities and its machine. Takes
    /// about a millisecond if the step of the machine's TSC has to be measured.
    pub fn make_plan(&self, capabilities: &Capabilities, machine: &Machine) -> Result<Plan, Unavailable> {
        let clock = match self.clock {
            Some(clock) => clock,
            None => capabilities.default_clock(machine)?,
        };
        capabilities.require_clock(clock, machine)?;
        clock.check_mode(self.mode)?;
        let (layouts, rounds, budget) = match self.quick {
            true => (LAYOUTS_QUICK, ROUNDS_QUICK, BUDGET_QUICK),
            false => (LAYOUTS, ROUNDS, BUDGET),
        };
        let lengthen = self.chosen_lengthening();
        Ok(Plan {
            clock,
            step: clock.reading_step(&machine.tsc),
            imul_latency: machine.cpu.imul_latency().map(f64::from),
            adders: machine.cpu.microarchitecture.known().and_then(|core| core.adders()),
            avx: machine.features.has(iced_x86::CpuidFeature::AVX),
            unit: self.unroll,
            loop_count: self.loop_count,
            lengthen,
            memory: self.memory.clone(),
            cold: self.cold,
            warm_up: self.warm_up,
            rounds: self.samples.unwrap_or(rounds),
            rounds_least: self.samples.unwrap_or(ROUNDS_LEAST),
            layouts: self.layouts.unwrap_or(layouts),
            layouts_most: if self.cold.branches { LAYOUTS_MOST_COLD } else { LAYOUTS_MOST },
            precision: self.aim.or(self.required).unwrap_or(match (self.cold.is_any(), lengthen) {
                (true, _) => REQUIRED_COLD,
                (false, LengthenBy::Copies | LengthenBy::LoopedCopies) => COPIES_PRECISION,
                (false, LengthenBy::Iterations) => AIM_CALL,
            }),
            confidence: self.confidence.unwrap_or(CONFIDENCE),
            budget: self.budget.unwrap_or(match self.lengthen {
                Some(LengthenBy::Iterations) => BUDGETS_CALL * budget,
                _ => budget,
            }),
            seed: self.seed,
        })
    }
}

/// A run's outcome.
#[derive(Debug, Clone)]
pub struct RunOutcome {
    /// The measurement.
    pub measurement: CostMeasurement,
    /// Caveats of the result.
    pub caveats: Vec<Caveat>,
    /// The TSC's rate during the measurement: low, value, high. `None` if the clock does not count
    /// TSC ticks.
    pub tsc: Option<[Hertz; 3]>,
    /// Parts of the processor's state that the code changed and the executor restored.
    pub changed: Vec<String>,
}

/// Measures a snippet.
pub fn run_snippet(
    executor: &mut dyn Executor,
    snippet: &Snippet,
    plan: &Plan,
    required: Precision,
) -> Result<RunOutcome, RunError> {
    let question = CostQuestion::from_snippet(snippet.clone());
    let mut runs = run_question(&MachineAnswers::live(), executor, &question, plan, required, &mut |_| ())?;
    Ok(runs.remove(0))
}

/// Measures the costs of a question, with all inputs from [`MachineAnswers`], including the TSC's
/// rate.
pub(crate) fn run_question(
    answers: &MachineAnswers,
    executor: &mut dyn Executor,
    question: &CostQuestion,
    plan: &Plan,
    required: Precision,
    watch: &mut dyn FnMut(MeasurementProgress),
) -> Result<Vec<RunOutcome>, RunError> {
    let stopwatch = TscStopwatch::start(&executor.machine().tsc).ok();
    let measurements = measure_with_progress(executor, question, plan, watch)?;
    let ticks = plan.clock.counts == Unit::TscTicks;
    let rate =
        || Ok::<_, RunError>(stopwatch.filter(|_| ticks).map(|stopwatch| stopwatch.rate_bounds().map(|rate| rate.0)));
    let tsc = answers.ask_machine(rate)?.map(|rates| rates.map(Hertz));
    let judge = |measurement| RunOutcome::from_measurement(measurement, executor, required, plan.clock, tsc);
    Ok(measurements.into_iter().map(judge).collect())
}

/// Fields of a record besides the measurement itself.
#[derive(Debug, Clone, Copy)]
pub struct RunFacts<'a> {
    /// The snippet.
    pub snippet: &'a Snippet,
    /// The plan of the measurement.
    pub plan: &'a Plan,
    /// The executor.
    pub executor: &'a str,
    /// The CPU.
    pub cpu: u32,
    /// The CPU's model.
    pub cpu_model: &'a str,
}

impl RunOutcome {
    /// Creates the outcome of a measurement, with its caveats.
    fn from_measurement(
        measurement: CostMeasurement,
        executor: &dyn Executor,
        required: Precision,
        clock: &Clock,
        tsc: Option<[Hertz; 3]>,
    ) -> RunOutcome {
        let mut caveats = find_caveats(&measurement, required);
        caveats.extend(AperfComparison::from_measurement(&measurement, clock).and_then(|aperf| aperf.find_caveat()));
        if executor.capabilities().is_emulated() {
            caveats.insert(0, Caveat::emulated_machine());
        }
        if executor.had_exclusive_cpu() == Fact::Known(false) {
            let text = "another run measured on this CPU at the same time".to_string();
            caveats.push(Caveat { code: CaveatKind::Noisy, text });
        }
        let changed = executor.restored_state().into_iter().map(str::to_string).collect();
        RunOutcome { measurement, caveats, tsc, changed }
    }

    /// Whether the copies ran in a loop.
    pub fn is_looped(&self) -> bool {
        self.measurement.acquisition.shape.loop_count > 1
    }

    /// Whether the result has no number.
    fn is_refused(&self) -> bool {
        let refusing = [CaveatKind::Nonlinear, CaveatKind::UpperBound, CaveatKind::Emulated];
        self.caveats.iter().any(|caveat| refusing.contains(&caveat.code))
            || self.measurement.is_refused_as_unsteady()
            || self.measurement.estimate.as_ref().is_some_and(has_ruler_conflict)
    }

    /// Whether the result falls short of the request, as exit code 5 reports. Then it has no
    /// estimate, or one of the caveats in [`fall_short`], which `noisy` is not.
    pub fn falls_short(&self) -> bool {
        self.measurement.estimate.is_none() || fall_short(&self.caveats)
    }

    /// The estimate, unless its number is refused.
    pub fn estimate(&self) -> Option<&CostEstimate> {
        self.measurement.estimate.as_ref().filter(|_| !self.is_refused())
    }

    /// The cost of one copy in core cycles with its interval, unless its number is refused.
    pub fn cost(&self) -> Option<Interval> {
        self.estimate().map(|estimate| estimate.cost)
    }

    /// Raw clock units and time per copy.
    fn ticks_and_time(&self, clock: &Clock) -> [Quantity; 2] {
        let refused = [Quantity::refused(Unit::TscTicks), Quantity::refused(Unit::Nanos)];
        let Some(estimate) = self.estimate() else { return refused };
        let raw = estimate.raw;
        match (clock.counts, self.tsc) {
            (Unit::TscTicks, Some([low, rate, high])) => {
                // The shortest time combines the low cost with the high rate.
                let time = Interval {
                    value: raw.value / rate.0 * 1e9,
                    low: raw.low / high.0 * 1e9,
                    high: raw.high / low.0 * 1e9,
                };
                [Quantity::new(raw, Unit::TscTicks), Quantity::new(time, Unit::Nanos)]
            }
            (Unit::TscTicks, None) => [Quantity::new(raw, Unit::TscTicks), Quantity::refused(Unit::Nanos)],
            (Unit::Nanos, _) => [Quantity::refused(Unit::TscTicks), Quantity::new(raw, Unit::Nanos)],
            _ => refused,
        }
    }

    /// Converts the result to a record.
    pub fn to_record(&self, facts: &RunFacts) -> RunRecord {
        let CostMeasurement { acquisition, estimate, elapsed, .. } = &self.measurement;
        let [ticks, time] = self.ticks_and_time(facts.plan.clock);
        let cost = self.estimate().map(|estimate| Quantity::new(estimate.cost, Unit::CoreCycles));
        let mode = |mode: &cyclescope_measure::modes::CostMode| ModeRecord {
            cost: Quantity::new(mode.cost, Unit::CoreCycles),
            share: mode.share,
        };
        let (unit, iterates) = (acquisition.units[0], facts.plan.lengthen == LengthenBy::Iterations);
        let chosen = Some(acquisition.shape.loop_count).filter(|count| *count > 1);
        RunRecord {
            cost: cost.unwrap_or(Quantity::refused(Unit::CoreCycles)),
            ticks,
            time,
            confidence: facts.plan.confidence,
            snippet: facts.snippet.text().to_string(),
            bits: facts.snippet.mode(),
            bytes: cyclescope_code::asm::to_hex(facts.snippet.code()),
            init: cyclescope_code::asm::to_hex(facts.snippet.init()),
            clock: facts.plan.clock.name.to_string(),
            executor: facts.executor.to_string(),
            unroll: if iterates { 1 } else { unit },
            loop_count: if iterates { Some(unit as u64) } else { facts.plan.loop_count.or(chosen) },
            cold: facts.plan.cold,
            warm_up: acquisition.warm_up,
            layouts: estimate.as_ref().map_or(0, |estimate| estimate.layouts.len()),
            samples: estimate.as_ref().map_or(0, |estimate| estimate.kept),
            dropped: estimate.as_ref().map_or(0, |estimate| estimate.dropped),
            interrupted: self.measurement.acquisition.interrupted_rounds(),
            ruler: estimate.as_ref().map(|estimate| self.ruler_record(estimate, acquisition.shape.imul_latency)),
            aperf: AperfComparison::from_measurement(&self.measurement, facts.plan.clock)
                .map(|aperf| aperf.to_record(self.tsc.map(|[_, rate, _]| rate))),
            cpu: facts.cpu,
            cpu_model: facts.cpu_model.to_string(),
            seed: facts.plan.seed,
            modes: self.estimate().map_or(Vec::new(), |estimate| estimate.modes.iter().map(mode).collect()),
            caveats: self.caveats.clone(),
            changed: self.changed.clone(),
            empty_call: None,
            setup: facts.snippet.setup().map(|setup| setup.text.clone()),
            setup_cost: None,
            call: None,
            addresses: None,
            region: None,
            mix: None,
            trained: self.training_record(),
            versus: None,
            variants: Vec::new(),
            serialized: None,
            throughput: None,
            latency: None,
            latency_by: None,
            counters: Vec::new(),
            counter_passes: None,
            counted_cycles: None,
            counts: None,
            looped: None,
            unrolled: None,
            loop_obstacle: None,
            unchecked: self.measurement.unchecked.clone(),
            elapsed_s: elapsed.as_secs_f64(),
            repro: String::new(),
        }
    }

    fn training_record(&self) -> Option<TrainingRecord> {
        let CostMeasurement { acquisition, untrained, .. } = &self.measurement;
        let untrained = Quantity::new(untrained.as_ref()?.cost, Unit::CoreCycles);
        Some(TrainingRecord { calls: acquisition.training?, untrained })
    }

    fn ruler_record(&self, estimate: &CostEstimate, imul_latency: f64) -> RulerRecord {
        RulerRecord {
            imul_latency,
            add_link: Quantity::new(estimate.add_link, Unit::CoreCycles),
            width: estimate.width,
            core_mhz: self.tsc.map(|[_, rate, _]| {
                let [low, mean, high] = estimate.rate.map(|ticks| rate.to_megahertz() / ticks);
                // The largest number of ticks per cycle belongs to the slowest core.
                [high, mean, low]
            }),
        }
    }
}
