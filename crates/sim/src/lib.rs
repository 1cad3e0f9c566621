//! Simulated machines with known true costs: they test estimators and studies, and the handling of
//! failures.
//!
//! [`SimulatedExecutor`] runs no code. The cost of a call in core cycles follows from the program's
//! snippet, copies and loop count and from a [`Scenario`]. Simulated time passes accordingly, and
//! the readings are those of a TSC that counts in steps. Everything is reproducible from the
//! scenario and one seed.
//!
//! Its limits: every disturbance is independent of the others, a buffer has drained by the next
//! call, and only the snippet under test has layout effects, never the ruler. [`SimulatedCore`]
//! decodes the code and computes its cost on a simulated [`CoreModel`].

#![warn(unreachable_pub)]

mod altered_machine;
mod cost;
mod instrument;
mod memory;
mod memory_hierarchy;
mod presets;
mod scenario;
mod simulated_core;
mod simulated_pmu;
#[cfg(test)]
mod tests;
mod timeline;

pub use self::altered_machine::AlteredMachine;
pub use self::memory_hierarchy::{CacheSibling, HeldShares, MemoryHierarchy, SimulatedCache, SimulatedTranslations};
pub use self::simulated_core::{
    CoreModel, PortAssignment, PortMask, RegimeClass, SimulatedCore, SimulatedDispatch, SimulatedPortClass,
    SimulatedPortMap, SimulatedRegime,
};
pub use scenario::{
    Scenario, SimulatedBuffer, SimulatedFault, SimulatedFrequency, SimulatedGaps, SimulatedHits,
    SimulatedLayoutEffects, SimulatedLearning, SimulatedMode, SimulatedNoise, SimulatedSibling, SimulatedTraining,
};

pub use simulated_pmu::{CoreCount, SimulatedEvent, SimulatedPmu};

use cost::PlacedBody;
use cyclescope_code::context::AREA_REGISTERS;
use cyclescope_code::program::Program;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::fact::Fact;
use cyclescope_core::machine::machine_parameters::MachineParameters;
use cyclescope_core::machine::tsc::TscParameters;
use cyclescope_core::random::{Random, mix_seeds};
use cyclescope_core::unit::{Hertz, Unit};
use cyclescope_events::{EventCode, EventRefusal};
use cyclescope_exec::{
    Batch, Capabilities, CounterAvailability, Executor, ExecutorMemory, Layout, PlacedArea, PrivilegeRing, Sample,
    TimingOrigin,
};
use instrument::{SimulatedCounter, SimulatedInstrument};
use simulated_pmu::RunningPmu;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;
use timeline::SimulatedWorkKind;

/// Bytes of the simulated code arena.
const ARENA_BYTES: usize = 1 << 20;
/// Bytes of each simulated memory area: the size of the user executor's areas. Only addresses are
/// used.
const AREA_BYTES: usize = 1 << 20;

/// Capabilities of a simulated executor: each timing method reads the simulated TSC, without its
/// real requirements.
fn simulated_capabilities() -> Capabilities {
    Capabilities {
        executor: "simulated",
        ring: PrivilegeRing::Three,
        timing: TimingOrigin::Simulated,
        library: Ok(()),
        narrow_code: Ok(()),
        control_registers: Ok(()),
        cycle_counter: CounterAvailability::Offered,
        aperf: Fact::Known(false),
        room: Fact::Known(ExecutorMemory { arena: ARENA_BYTES, areas: vec![AREA_BYTES; AREA_REGISTERS.len()] }),
    }
}

/// The machine of a scenario, made on first use: a test makes executors by the thousand.
#[derive(Debug, Clone, Default)]
struct LazyMachine(OnceLock<Machine>);

impl LazyMachine {
    fn machine_for(&self, scenario: &Scenario, imul_latency: u32) -> &Machine {
        let tsc = TscParameters { rate: Hertz(scenario.hertz), step: scenario.step as f64 };
        self.0.get_or_init(|| MachineParameters { tsc, imul_latency: Some(imul_latency) }.into())
    }
}

/// A simulated machine as an executor.
#[derive(Debug, Clone)]
pub struct SimulatedExecutor {
    instrument: SimulatedInstrument,
    seed: u64,
    batches: u32,
    capabilities: Capabilities,
    machine: LazyMachine,
    areas: Vec<PlacedArea>,
    pmu: RunningPmu,
    /// Repeats of each snippet until the worker's predictors have learnt it.
    unlearnt: BTreeMap<u64, f64>,
    workers: Random,
    /// The factor on the snippet's cost.
    factor: f64,
}

impl SimulatedExecutor {
    /// The machine of a scenario. The seed decides on everything random, including layout effects.
    pub fn new(scenario: Scenario, seed: u64) -> SimulatedExecutor {
        let mut workers = Random::new(mix_seeds(seed, 3));
        let factor = 1.0 + scenario.machine_spread * workers.normal();
        SimulatedExecutor {
            instrument: SimulatedInstrument::new(scenario, seed),
            seed,
            batches: 0,
            capabilities: simulated_capabilities(),
            machine: LazyMachine::default(),
            areas: Vec::new(),
            pmu: RunningPmu::default(),
            unlearnt: BTreeMap::new(),
            workers,
            factor,
        }
    }

    /// The same machine with counters.
    pub fn with_pmu(self, pmu: SimulatedPmu) -> SimulatedExecutor {
        SimulatedExecutor { pmu: RunningPmu::new(pmu), ..self }
    }

    /// The scenario, with its true costs.
    pub fn scenario(&self) -> &Scenario {
        self.instrument.scenario()
    }

    /// What a program's timing method reads: the counter of core cycles if it asks for it and the
    /// machine has one.
    fn counter_of(&self, program: &Program) -> SimulatedCounter {
        match program.counts() {
            Unit::CoreCycles if self.pmu.counts_cycles() => SimulatedCounter::CoreCycles,
            _ => SimulatedCounter::Tsc,
        }
    }

    fn call_body(
        &mut self,
        body: &mut PlacedBody,
        loop_count: u64,
        counter: SimulatedCounter,
        delays: &mut Random,
    ) -> Sample {
        let scenario = self.instrument.scenario();
        let mut fixed = scenario.overhead + body.boundary;
        if body.calls < scenario.training.calls {
            let left = f64::from(scenario.training.calls - body.calls);
            fixed += scenario.training.extra * left / f64::from(scenario.training.calls);
            body.calls += 1;
        }
        let cycles = body.body_cycles(scenario, loop_count) * self.cost_factor(body, loop_count);
        self.instrument.sample_call(fixed, cycles, body.kind, counter, delays)
    }

    /// The share of its usual cost that a body has in this worker on this machine.
    fn cost_factor(&mut self, body: &PlacedBody, loop_count: u64) -> f64 {
        if body.kind != SimulatedWorkKind::Snippet {
            return 1.0;
        }
        let Some(learning) = self.instrument.scenario().learning else { return self.factor };
        let workers = &mut self.workers;
        let draw = || -learning.repeats * (1.0 - workers.uniform()).ln();
        let left = self.unlearnt.entry(body.snippet).or_insert_with(draw);
        *left -= body.snippet_repeats(loop_count);
        self.factor * if *left < 0.0 { 1.0 - learning.saving } else { 1.0 }
    }

    fn run_layout(&mut self, batch: &Batch, layout: &Layout, samples: &mut Vec<Sample>, deadline: f64) -> bool {
        let mut bodies = cost::place_bodies(self.instrument.scenario(), batch, layout, self.seed);
        let mut delays = Random::new(layout.seed);
        for round in 0..batch.warm_up + batch.rounds {
            for call in &layout.round {
                let counter = self.counter_of(&batch.programs[layout.code[call.place].program]);
                let sample = self.call_body(&mut bodies[call.place], call.loop_count, counter, &mut delays);
                if round >= batch.warm_up {
                    samples.push(sample);
                }
            }
            if self.instrument.ticks_now() > deadline {
                return false;
            }
        }
        true
    }
}

/// Most repeats of a snippet in a call of the batch.
fn most_repeats(batch: &Batch) -> f64 {
    let repeats = batch.layouts.iter().flat_map(|layout| {
        layout.round.iter().map(|call| {
            let program = &batch.programs[layout.code[call.place].program];
            let snippet = cost::classify_snippet(program.snippet()) == SimulatedWorkKind::Snippet;
            let iterations = if program.is_looped() { call.loop_count } else { 1 };
            if snippet { program.copies() as f64 * iterations as f64 } else { 0.0 }
        })
    });
    repeats.fold(0.0, f64::max)
}

impl Executor for SimulatedExecutor {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn machine(&self) -> &Machine {
        self.machine.machine_for(self.scenario(), self.scenario().imul_latency)
    }

    /// # Panics
    ///
    /// If a layout's programs overlap or leave the arena: the batch is wrong, and another executor
    /// would overwrite code.
    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        if !batch.events.is_empty() {
            // A scenario knows costs and no instructions.
            return self.pmu.count_batch(batch, take, &mut |_, _, _| 0.0);
        }
        let scenario = self.instrument.scenario();
        let fails = |fault: &&SimulatedFault| {
            self.batches >= fault.after && (fault.beyond_repeats == 0.0 || most_repeats(batch) > fault.beyond_repeats)
        };
        if let Some(fault) = scenario.fault.as_ref().filter(fails) {
            return Err(fault.error.clone());
        }
        self.batches += 1;
        self.areas = memory::place_areas(&batch.memory).map_err(RunError::BadBatch)?;
        let deadline = self.instrument.ticks_now() + batch.deadline.as_secs_f64() * scenario.hertz;
        let mut samples = Vec::with_capacity(batch.rounds as usize * batch.calls());
        for layout in &batch.layouts {
            check_program_places(batch, layout);
            samples.clear();
            if !self.run_layout(batch, layout, &mut samples, deadline) {
                return Err(RunError::Hung { deadline_ms: batch.deadline.as_millis() as u64 });
            }
            take(&samples);
        }
        Ok(())
    }

    fn count_fitting(&self, events: &[EventCode]) -> Result<usize, EventRefusal> {
        self.pmu.count_fitting(events)
    }

    fn renew_process(&mut self) {
        self.unlearnt.clear();
    }

    fn placed_areas(&self) -> Vec<PlacedArea> {
        self.areas.clone()
    }

    fn now(&self) -> Duration {
        self.instrument.time()
    }

    fn pause(&mut self, time: Duration) {
        self.instrument.pause(time);
    }
}

fn check_program_places(batch: &Batch, layout: &Layout) {
    let mut places: Vec<_> = layout
        .code
        .iter()
        .map(|place| (place.offset as usize, place.offset as usize + batch.programs[place.program].len()))
        .collect();
    places.sort_unstable();
    let apart = places.windows(2).all(|pair| pair[0].1 <= pair[1].0);
    let inside = places.last().is_none_or(|last| last.1 <= ARENA_BYTES);
    assert!(apart && inside, "programs overlap or leave the arena: {places:?}");
}
