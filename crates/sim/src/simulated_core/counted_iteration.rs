//! What an iteration of a program makes a simulated core's own counters count, once its rate is
//! steady.

use super::body::{DecodedBody, SimulatedForms};
use super::pipeline::Pipeline;
use super::port_mask::PORTS_MOST;
use crate::simulated_pmu::CoreCount;
use cyclescope_code::program::Program;

/// Windows of µops to run before iterations are counted: the first one fills the window.
const WINDOWS_BEFORE: u64 = 2;
/// Iterations that are counted. The shares of ports repeat with short periods.
const COUNTED_ITERATIONS: u32 = 16;

/// Counts of one iteration: the mean of several.
#[derive(Debug, Clone)]
pub(super) struct CountedIteration {
    instructions: f64,
    slots: f64,
    ports: [f64; PORTS_MOST],
}

impl CountedIteration {
    pub(super) fn count_program(
        program: &Program,
        forms: &mut SimulatedForms,
        pipeline: &mut Pipeline,
    ) -> CountedIteration {
        let body = DecodedBody::decode_program(program, forms);
        pipeline.start_body(&body, forms);
        let first = pipeline.count;
        let filling = if program.is_looped() { WINDOWS_BEFORE * u64::from(forms.model.window) } else { 0 };
        while pipeline.count - first < filling {
            pipeline.run_iteration(&body, forms);
        }
        let iterations = if program.is_looped() { COUNTED_ITERATIONS } else { 1 };
        let (slots, ports) = (pipeline.count, pipeline.port_uses());
        for _ in 0..iterations {
            pipeline.run_iteration(&body, forms);
        }
        let mean = |before: u64, after: u64| (after - before) as f64 / f64::from(iterations);
        let mut uses = [0.0; PORTS_MOST];
        let counted = ports.into_iter().zip(pipeline.port_uses());
        uses.iter_mut().zip(counted).for_each(|(mean_uses, (before, after))| *mean_uses = mean(before, after));
        CountedIteration { instructions: body.operations.len() as f64, slots: mean(slots, pipeline.count), ports: uses }
    }

    /// The count of one iteration; `None` for core cycles, which follow from durations.
    pub(super) fn count_of(&self, what: CoreCount) -> Option<f64> {
        match what {
            CoreCount::Instructions => Some(self.instructions),
            CoreCount::Slots => Some(self.slots),
            CoreCount::Port(port) => Some(self.ports[port as usize]),
            CoreCount::Cycles => None,
        }
    }
}
