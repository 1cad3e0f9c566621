//! The machine parameters needed before timing methods are evaluated.
//!
//! The experiments run in this process and on several CPUs, so a replay cannot repeat them. Their
//! results form a single answer of the machine.

use super::executor_set::ExecutorHost;
use crate::contamination::STAND_IN;
use crate::plan::EvaluatePlan;
use crate::timing_facts::TimingFacts;
use crate::{MethodCandidate, TestedClock};
use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock::Clock;
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::core_study::CoreStudy;
use cyclescope_core::machine::fact::Fact;
use cyclescope_core::machine::synchrony::{self, TscSynchrony};
use cyclescope_core::machine::tsc_study::TscStudy;
use cyclescope_core::random::Random;
use cyclescope_core::unit::Unit;
use cyclescope_doctor::{
    ClockWatch, Diagnosis, ExaminationInputs, WatchFacts, clock_step, examine, measure_imul_latency, watch_core_clock,
};
use cyclescope_exec::Executor;
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::rounds::RulerRounds;
use cyclescope_measure::ruler::LeastWidth;
use serde::{Deserialize, Serialize};

/// Parameters of the core.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct CoreParameters {
    /// See [`TestedClock::imul_latency`].
    pub(super) imul_latency: f64,
    /// See [`TestedClock::width`].
    pub(super) width: Option<LeastWidth>,
    /// See [`TestedClock::emulated`].
    pub(super) emulated: bool,
}

/// Latency of `imul` on most cores, for a core without data or experiment.
const USUAL_IMUL_LATENCY: u32 = 3;

/// Latency of `imul` in 32-bit code, measured because data of micro-architectures have that of 64
/// bits; `None` if it is not a whole number.
#[derive(Debug, Clone, Copy)]
pub(super) struct NarrowLatency(Option<u32>);

impl NarrowLatency {
    fn measure(executor: &mut dyn Executor, clock: &Clock, step: f64, seed: u64) -> NarrowLatency {
        let rounds = RulerRounds::for_mode(clock, step, CodeMode::Bits32);
        let found = measure_imul_latency(executor, &rounds, &mut Random::new(seed));
        NarrowLatency(found.ok().flatten())
    }
}

impl CoreParameters {
    /// From published data if available, otherwise from the experiment. `narrow` is the measured
    /// latency of 32-bit code, in which the methods then run.
    pub(super) fn from_machine(
        machine: &Machine,
        study: Option<&CoreStudy>,
        narrow: Option<NarrowLatency>,
    ) -> CoreParameters {
        let found = || study.and_then(|study| study.imul_used);
        let wide = || machine.cpu.imul_latency().or_else(found);
        let latency = narrow.map_or_else(wide, |NarrowLatency(latency)| latency).unwrap_or(USUAL_IMUL_LATENCY);
        let adders = machine.cpu.microarchitecture.known().and_then(|core| core.adders());
        CoreParameters {
            imul_latency: f64::from(latency),
            width: adders.map(cyclescope_measure::ruler::least_unshared_width),
            emulated: machine.is_emulated(),
        }
    }

    /// The method with these parameters and its ruler.
    pub(super) fn tested_clock(
        &self,
        candidate: MethodCandidate,
        mode: CodeMode,
        ruled: RulerChoice,
    ) -> TestedClock<'static> {
        let MethodCandidate { clock, executor } = candidate;
        let RulerChoice { ruler, step } = ruled;
        let CoreParameters { imul_latency, width, emulated } = *self;
        TestedClock { clock, executor, mode, ruler, step, imul_latency, width, emulated }
    }
}

/// The ruler and the step of a method.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct RulerChoice {
    /// See [`TestedClock::ruler`].
    #[serde(with = "cyclescope_code::clock::by_name")]
    ruler: &'static Clock,
    /// See [`TestedClock::step`].
    step: f64,
}

impl RulerChoice {
    /// The ruler of a method on this machine. Prefers the machine's default method, if known.
    pub(super) fn for_clock(clock: &'static Clock, default: Option<&'static Clock>, known: WatchFacts) -> RulerChoice {
        let ruler = default.filter(|_| clock.counts == Unit::TscTicks).unwrap_or(clock);
        RulerChoice { ruler, step: clock_step(clock, known.tsc, known.study) }
    }
}

/// The parameters that the rest of the evaluation depends on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct EvaluationBasis {
    pub(super) facts: TimingFacts,
    pub(super) core: CoreParameters,
    /// One entry per candidate.
    ruled: Vec<RulerChoice>,
    /// For [`STAND_IN`], if needed and supported.
    stand_in: Option<RulerChoice>,
}

/// Seeds of the experiments.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExperimentSeeds {
    pub(super) examination: u64,
    pub(super) watch: u64,
}

impl EvaluationBasis {
    /// Runs the experiments with an executor on the target CPU.
    pub(super) fn measure(
        host: &ExecutorHost,
        executor: &mut dyn Executor,
        plan: &EvaluatePlan,
        seeds: ExperimentSeeds,
    ) -> EvaluationBasis {
        let (machine, capabilities) = (&executor.machine().clone(), &executor.capabilities().clone());
        let means = ExaminationInputs {
            executor: Ok(&mut *executor),
            capabilities,
            others: &|cpu| host.open_on_cpu(cpu),
            clock: None,
            effort: plan.times.facts,
            seed: seeds.examination,
        };
        let Diagnosis { tsc, phases, core, .. } = examine(machine, means);
        let known = WatchFacts { tsc: &machine.tsc, study: tsc.known(), core: core.known() };
        let default = capabilities.default_clock(machine);
        let series = match &default {
            _ if capabilities.is_emulated() => Fact::unknown(Caveat::emulated_machine().text),
            Err(refused) => Fact::unknown(refused.why.clone()),
            Ok(clock) => {
                Fact::from(watch_core_clock(executor, &ClockWatch::new(clock, known, plan.times.watch, seeds.watch)))
            }
        };
        let default = default.ok();
        let ruled = |candidate: &MethodCandidate| RulerChoice::for_clock(candidate.clock, default, known);
        let can_stand_in = || capabilities.require_clock_for(&STAND_IN, plan.mode, machine).is_ok();
        let stand_in = default.filter(|_| plan.needs_stand_in() && can_stand_in());
        let narrow = default.filter(|_| plan.mode == CodeMode::Bits32 && !capabilities.is_emulated());
        let narrow = narrow.map(|clock| {
            NarrowLatency::measure(executor, clock, clock_step(clock, known.tsc, known.study), seeds.watch)
        });
        EvaluationBasis {
            core: CoreParameters::from_machine(machine, core.known(), narrow),
            ruled: plan.candidates.iter().map(ruled).collect(),
            stand_in: stand_in.map(|ruler| RulerChoice { ruler, step: STAND_IN.reading_step(&machine.tsc) }),
            facts: TimingFacts {
                told: machine.tsc.clone(),
                lfence: machine.features.lfence_order().clone(),
                series,
                synchrony: measure_synchrony(machine, known.study, plan),
                emulated: capabilities.is_emulated(),
                phases,
                tsc,
            },
        }
    }

    /// Whether each number is possible for a machine: evidence may be forged.
    pub(super) fn is_sound(&self, plan: &EvaluatePlan) -> bool {
        let plausible = |value: f64| value > 0.0 && value < 1e6;
        let ruled = self.ruled.iter().chain(&self.stand_in);
        self.ruled.len() == plan.candidates.len()
            && ruled.into_iter().all(|ruled| plausible(ruled.step))
            && plausible(self.core.imul_latency)
            && self.core.width.is_none_or(|width| plausible(width.least))
    }

    /// The methods under evaluation.
    pub(super) fn tested_clocks(&self, plan: &EvaluatePlan) -> Vec<TestedClock<'static>> {
        let candidates = plan.candidates.iter().zip(&self.ruled);
        candidates.map(|(candidate, ruled)| self.core.tested_clock(*candidate, plan.mode, *ruled)).collect()
    }

    /// The stand-in for a method that cannot run here, on this executor.
    pub(super) fn stand_in(&self, executor: &'static str, mode: CodeMode) -> Option<TestedClock<'static>> {
        let candidate = MethodCandidate { clock: &STAND_IN, executor };
        self.stand_in.map(|ruled| self.core.tested_clock(candidate, mode, ruled))
    }
}

fn measure_synchrony(machine: &Machine, study: Option<&TscStudy>, plan: &EvaluatePlan) -> Fact<TscSynchrony> {
    let reading = synchrony::choose_reading(machine);
    let step = reading.known().and_then(|reading| study?.find_step(*reading)).map(|step| step.ticks);
    synchrony::measure_synchrony(machine, step, plan.times.synchrony)
}
