//! A simulated core that reads machine code: it tests studies that build programs and measure
//! instructions.
//!
//! Unlike [`Simulated`](super::SimulatedExecutor), whose scenario contains the costs, it decodes
//! programs and computes their durations on a simulated machine, a [`CoreModel`]. Its µops issue in
//! order, some per cycle, wait for their inputs, compete for ports, and have a latency from each
//! input to each output. Every measured value can be compared with the true one.
//!
//! Its limits: there are dependencies and timing, but no values. The only taken branches are the
//! loop's own and unconditional ones. Loads hit the cache. Values that depend on data, such as
//! repeat counts, are constants. Code placement and alignment have no effect, and there are no
//! faults. Registers of MMX and x87 are separate. Fetch, decoding, retirement and mispredictions
//! cost nothing, nor does a change between legacy and VEX code.

mod address;
mod body;
mod body_durations;
mod counted_iteration;
mod dispatch;
mod form;
mod form_key;
mod model;
mod operands;
mod pipeline;
mod port_assigner;
mod port_map;
mod port_mask;
mod ports;
mod quick_hash;
mod regime;
mod rename_treatment;
mod store_buffer;
#[cfg(test)]
mod tests;
mod truth;

pub use dispatch::SimulatedDispatch;
pub use model::CoreModel;
pub use port_map::{PortAssignment, SimulatedPortClass, SimulatedPortMap};
pub use port_mask::PortMask;
pub use regime::{RegimeClass, SimulatedRegime};

use super::instrument::{SimulatedCounter, SimulatedInstrument};
use super::scenario::{Scenario, SimulatedLayoutEffects, SimulatedMode};
use super::simulated_pmu::{CoreCount, RunningPmu, SimulatedPmu};
use super::timeline::SimulatedWorkKind;
use super::{LazyMachine, check_program_places, cost, memory};
use body::SimulatedForms;
use body_durations::BodyDurations;
use counted_iteration::CountedIteration;
use cyclescope_code::program::Program;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::Machine;
use cyclescope_core::random::{Random, mix_seeds};
use cyclescope_events::{EventCode, EventRefusal};
use cyclescope_exec::{Batch, Capabilities, Executor, Layout, PlacedArea, ProgramCall, Sample};
use pipeline::Pipeline;
use quick_hash::QuickMap;
use std::time::Duration;

/// Number of programs whose durations are cached across batches: the ruler runs in each.
const MAX_CACHED: usize = 256;

/// A simulated core as an executor: it decodes programs and computes their durations on a
/// [`CoreModel`].
///
/// It knows dependencies and timing, but no values. Loads hit the cache, conditional branches are
/// not taken, repeat counts are constant. Two addresses are equal if their base and index registers
/// come from the same ones by copies and added constants. Every other write is assumed to leave a
/// register's value unchanged.
#[derive(Debug)]
pub struct SimulatedCore {
    forms: SimulatedForms,
    pipeline: Pipeline,
    instrument: SimulatedInstrument,
    seed: u64,
    known: QuickMap<Vec<u8>, BodyDurations>,
    counted: QuickMap<Vec<u8>, CountedIteration>,
    capabilities: Capabilities,
    machine: LazyMachine,
    areas: Vec<PlacedArea>,
    pmu: RunningPmu,
}

/// A call of a program in a layout.
#[derive(Debug, Clone, Copy)]
struct SimulatedCall {
    /// Core cycles of its body at the best rate.
    cycles: f64,
    kind: SimulatedWorkKind,
    /// Whether its loop begins at a good place of a dispatch group.
    at_good_place: bool,
}

impl SimulatedCore {
    /// This machine, undisturbed, with a TSC that counts in steps of two.
    pub fn new(model: CoreModel, seed: u64) -> SimulatedCore {
        SimulatedCore::with_scenario(model, Scenario { step: 2, ..Scenario::default() }, seed)
    }

    /// The same machine in a scenario. The scenario sets the clock, its frequency, interrupts,
    /// steal, a sibling, hits of rulers, noise, the costs of the empty pair and of entry and exit,
    /// the relative effect of layouts, and scheduling modes. Its other fields about a snippet's cost have no effect.
    pub fn with_scenario(model: CoreModel, scenario: Scenario, seed: u64) -> SimulatedCore {
        let pipeline = Pipeline::new(&model);
        let instrument = SimulatedInstrument::new(scenario, seed);
        SimulatedCore {
            forms: SimulatedForms::new(model),
            pipeline,
            instrument,
            seed,
            known: QuickMap::default(),
            counted: QuickMap::default(),
            capabilities: super::simulated_capabilities(),
            machine: LazyMachine::default(),
            areas: Vec::new(),
            pmu: RunningPmu::default(),
        }
    }

    /// The same core with counters.
    pub fn with_pmu(self, pmu: SimulatedPmu) -> SimulatedCore {
        SimulatedCore { pmu: RunningPmu::new(pmu), ..self }
    }

    /// The simulated machine.
    pub fn model(&self) -> &CoreModel {
        &self.forms.model
    }

    /// Number of µops simulated since the core was made.
    pub fn simulated_uops(&self) -> u64 {
        self.pipeline.count
    }

    /// Core cycles of a program's body, without readings.
    ///
    /// # Panics
    ///
    /// If the code cannot be decoded.
    pub fn body_cycles(&mut self, program: &Program, loop_count: u64) -> f64 {
        self.find_durations(program).iteration_cycles(program, loop_count)
    }

    fn find_durations(&mut self, program: &Program) -> BodyDurations {
        if let Some(pace) = self.known.get(program.code()) {
            return pace.clone();
        }
        let pace = BodyDurations::simulate_program(program, &mut self.forms, &mut self.pipeline);
        if self.known.len() >= MAX_CACHED {
            self.known.clear();
        }
        self.known.insert(program.code().to_vec(), pace.clone());
        pace
    }

    /// What the core's own counters count in a call of a program's body.
    fn count_body(&mut self, program: &Program, loop_count: u64, what: CoreCount) -> f64 {
        if self.counted.len() >= MAX_CACHED {
            self.counted.clear();
        }
        let (forms, pipeline) = (&mut self.forms, &mut self.pipeline);
        let counted = match self.counted.get(program.code()) {
            Some(counted) => counted.clone(),
            None => CountedIteration::count_program(program, forms, pipeline),
        };
        self.counted.insert(program.code().to_vec(), counted.clone());
        let iterations = if program.is_looped() { loop_count as f64 } else { 1.0 };
        match counted.count_of(what) {
            Some(count) => count * iterations,
            None => self.body_cycles(program, loop_count),
        }
    }

    /// Factor by which a program is slower in a layout.
    fn layout_factor(&self, program: &Program, layout: &Layout) -> f64 {
        let SimulatedLayoutEffects { mode, relative, .. } = self.instrument.scenario().layout;
        if cost::classify_snippet(program.snippet()) != SimulatedWorkKind::Snippet {
            return 1.0;
        }
        let place = cost::layout_fingerprint(self.seed, layout);
        let by_snippet = program.snippet().iter().fold(place, |hash, byte| mix_seeds(hash, u64::from(*byte)));
        let spread = if relative > 0.0 { 1.0 + relative * Random::new(by_snippet).normal() } else { 1.0 };
        let Some(SimulatedMode { probability, factor, by_program }) = mode else { return spread };
        let die = if by_program { mix_seeds(by_snippet, program.copies() as u64) } else { by_snippet };
        spread * if Random::new(die).happens(probability) { factor } else { 1.0 }
    }

    fn run_layout(
        &mut self,
        batch: &Batch,
        layout: &Layout,
        calls: &[SimulatedCall],
        samples: &mut Vec<Sample>,
        deadline: f64,
    ) -> bool {
        let scenario = self.instrument.scenario();
        let fixed = scenario.overhead + scenario.boundary;
        let mut delays = Random::new(layout.seed);
        for round in 0..batch.warm_up + batch.rounds {
            for SimulatedCall { cycles, kind, at_good_place } in calls {
                let factor = match self.forms.model.dispatch.filter(|_| *kind == SimulatedWorkKind::Snippet) {
                    Some(dispatch) => dispatch.factor_in_round(*at_good_place, round),
                    None => 1.0,
                };
                let sample =
                    self.instrument.sample_call(fixed, *cycles * factor, *kind, SimulatedCounter::Tsc, &mut delays);
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

impl Executor for SimulatedCore {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn machine(&self) -> &Machine {
        self.machine.machine_for(self.instrument.scenario(), self.forms.model.imul_latency)
    }

    /// # Panics
    ///
    /// If a layout's programs overlap or leave the arena, or code cannot be decoded.
    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        if !batch.events.is_empty() {
            let mut pmu = std::mem::take(&mut self.pmu);
            let counted =
                pmu.count_batch(batch, take, &mut |program, loops, what| self.count_body(program, loops, what));
            self.pmu = pmu;
            return counted;
        }
        self.areas = memory::place_areas(&batch.memory).map_err(RunError::BadBatch)?;
        let hertz = self.instrument.scenario().hertz;
        let deadline = self.instrument.ticks_now() + batch.deadline.as_secs_f64() * hertz;
        let paces: Vec<BodyDurations> = batch.programs.iter().map(|program| self.find_durations(program)).collect();
        let mut samples = Vec::with_capacity(batch.rounds as usize * batch.calls());
        for layout in &batch.layouts {
            check_program_places(batch, layout);
            samples.clear();
            let body = |call: &ProgramCall| {
                let number = layout.code[call.place].program;
                let program = &batch.programs[number];
                let slower = self.layout_factor(program, layout);
                SimulatedCall {
                    cycles: paces[number].iteration_cycles(program, call.loop_count) * slower,
                    kind: cost::classify_snippet(program.snippet()),
                    at_good_place: self
                        .forms
                        .model
                        .dispatch
                        .is_some_and(|dispatch| dispatch.is_at_good_place(program, self.seed)),
                }
            };
            let calls: Vec<SimulatedCall> = layout.round.iter().map(body).collect();
            if !self.run_layout(batch, layout, &calls, &mut samples, deadline) {
                return Err(RunError::Hung { deadline_ms: batch.deadline.as_millis() as u64 });
            }
            take(&samples);
        }
        Ok(())
    }

    fn count_fitting(&self, events: &[EventCode]) -> Result<usize, EventRefusal> {
        self.pmu.count_fitting(events)
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
