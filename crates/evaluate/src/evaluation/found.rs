//! What must be known of the machine before its timing methods are evaluated.
//!
//! Its experiments run in this process and on several CPUs, so that a replay can't make them again: what they find is
//! one answer of the machine.

use super::executors::Host;
use crate::contamination::STAND_IN;
use crate::facts::Facts;
use crate::plan::EvaluatePlan;
use crate::{Candidate, TestedClock};
use cyclescope_code::clock::Clock;
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::core_study::CoreStudy;
use cyclescope_core::machine::fact::Fact;
use cyclescope_core::machine::synchrony::{self, Synchrony};
use cyclescope_core::machine::tsc_study::TscStudy;
use cyclescope_core::unit::Unit;
use cyclescope_doctor::{Diagnosis, Known, Means, Watch, clock_step, examine, watch};
use cyclescope_exec::Executor;
use cyclescope_measure::result::caveat::Caveat;
use serde::{Deserialize, Serialize};

/// What is known of the core.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Core {
    /// See [`TestedClock::imul_latency`].
    pub(super) imul_latency: f64,
    /// See [`TestedClock::width`].
    pub(super) width: Option<f64>,
    /// See [`TestedClock::emulated`].
    pub(super) emulated: bool,
}

/// The latency of `imul r64, r64` on most cores, for one of which neither data nor experiment tell it.
const IMUL_USUAL: u32 = 3;

impl Core {
    /// By data where there are some, else by experiment.
    pub(super) fn of(machine: &Machine, study: Option<&CoreStudy>) -> Core {
        let found = study.and_then(|study| study.imul_used);
        let latency = machine.cpu.imul_latency().or(found).unwrap_or(IMUL_USUAL);
        let adders = machine.cpu.microarchitecture.known().and_then(|core| core.adders());
        Core {
            imul_latency: f64::from(latency),
            width: adders.map(cyclescope_measure::ruler::sentinel_width),
            emulated: machine.is_emulated(),
        }
    }

    /// A method on it.
    pub(super) fn tested_clock(&self, candidate: Candidate, ruled: Ruled) -> TestedClock<'static> {
        let Candidate { clock, executor } = candidate;
        let Ruled { ruler, step } = ruled;
        let Core { imul_latency, width, emulated } = *self;
        TestedClock { clock, executor, ruler, step, imul_latency, width, emulated }
    }
}

/// What the readings of a method are compared with.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Ruled {
    /// See [`TestedClock::ruler`].
    #[serde(with = "cyclescope_code::clock::by_name")]
    ruler: &'static Clock,
    /// See [`TestedClock::step`].
    step: f64,
}

impl Ruled {
    /// Of a method on a machine whose default method is known, where it has one.
    pub(super) fn of(clock: &'static Clock, default: Option<&'static Clock>, known: Known) -> Ruled {
        let ruler = default.filter(|_| clock.counts == Unit::TscTicks).unwrap_or(clock);
        Ruled { ruler, step: clock_step(clock, known.tsc, known.study) }
    }
}

/// What the course goes by.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) facts: Facts,
    pub(super) core: Core,
    /// Of each candidate.
    ruled: Vec<Ruled>,
    /// Of [`STAND_IN`], where it is needed and can run.
    stand_in: Option<Ruled>,
}

/// Seeds of the experiments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seeds {
    pub(super) examination: u64,
    pub(super) watch: u64,
}

impl Found {
    /// Makes the experiments, with an executor on the target CPU.
    pub(super) fn find(host: &Host, executor: &mut dyn Executor, plan: &EvaluatePlan, seeds: Seeds) -> Found {
        let (machine, capabilities) = (&executor.machine().clone(), &executor.capabilities().clone());
        let means = Means {
            executor: Ok(&mut *executor),
            capabilities,
            others: &|cpu| host.on_another(cpu),
            clock: None,
            effort: plan.times.facts,
            seed: seeds.examination,
        };
        let Diagnosis { tsc, phases, core, .. } = examine(machine, means);
        let known = Known { tsc: &machine.tsc, study: tsc.known(), core: core.known() };
        let default = capabilities.default_clock(machine);
        let series = match &default {
            _ if capabilities.is_emulated() => Fact::unknown(Caveat::emulated().text),
            Err(refused) => Fact::unknown(refused.why.clone()),
            Ok(clock) => {
                Fact::from(watch(executor, &Watch::new(clock, known, plan.times.watch, seeds.watch)))
            }
        };
        let default = default.ok();
        let ruled = |of: &Candidate| Ruled::of(of.clock, default, known);
        let can_stand_in = || capabilities.require(&STAND_IN, machine).is_ok();
        let stand_in = default.filter(|_| plan.needs_stand_in() && can_stand_in());
        Found {
            core: Core::of(machine, core.known()),
            ruled: plan.candidates.iter().map(ruled).collect(),
            stand_in: stand_in.map(|ruler| Ruled { ruler, step: STAND_IN.step(&machine.tsc) }),
            facts: Facts {
                told: machine.tsc.clone(),
                lfence: machine.features.lfence().clone(),
                series,
                synchrony: synchronous(machine, known.study, plan),
                emulated: capabilities.is_emulated(),
                phases,
                tsc,
            },
        }
    }

    /// Whether each number is one that a machine can have: evidence may be forged.
    pub(super) fn is_sound(&self, plan: &EvaluatePlan) -> bool {
        let plausible = |value: f64| value > 0.0 && value < 1e6;
        let ruled = self.ruled.iter().chain(&self.stand_in);
        self.ruled.len() == plan.candidates.len()
            && ruled.into_iter().all(|ruled| plausible(ruled.step))
            && plausible(self.core.imul_latency)
            && self.core.width.is_none_or(plausible)
    }

    /// The methods under evaluation.
    pub(super) fn tested_clocks(&self, plan: &EvaluatePlan) -> Vec<TestedClock<'static>> {
        let candidates = plan.candidates.iter().zip(&self.ruled);
        candidates.map(|(candidate, ruled)| self.core.tested_clock(*candidate, *ruled)).collect()
    }

    /// The replacement of a method that can't run here, on this executor.
    pub(super) fn stand_in(&self, executor: &'static str) -> Option<TestedClock<'static>> {
        let candidate = Candidate { clock: &STAND_IN, executor };
        self.stand_in.map(|ruled| self.core.tested_clock(candidate, ruled))
    }
}

fn synchronous(machine: &Machine, study: Option<&TscStudy>, plan: &EvaluatePlan) -> Fact<Synchrony> {
    let reading = synchrony::reading(machine);
    let step = reading.known().and_then(|reading| study?.step(*reading)).map(|step| step.ticks);
    synchrony::measure(machine, step, plan.times.synchrony)
}
