//! A simulated core on which no event has a cost. It executes the code of each program and its
//! control, and finds no difference that belongs to the event.

use crate::contrast::run_contrast;
use crate::cost::{CostPoint, MeasureCosts};
use crate::cpu_resources::CpuResources;
use crate::spec::{Experiment, ProgramFamily, StepLoop};
use crate::test_list::TESTS;
use crate::verdict::VerdictKind;
use cyclescope_core::error::RunError;
use cyclescope_measure::Plan;
use cyclescope_sim::{CoreModel, SimulatedCore};

/// The core.
struct CostlessCore {
    core: SimulatedCore,
    plan: Plan,
}

impl CostlessCore {
    /// A core whose loads take the same time behind any store. It executes all moves, and has no
    /// stack engine.
    fn new(seed: u64) -> CostlessCore {
        let model = CoreModel::from_seed(seed);
        let model = CoreModel {
            blocked_latency: model.forward_latency,
            renamed_latency: None,
            stack_engine: false,
            eliminates_32: false,
            eliminates_64: false,
            eliminates_vectors: [false; 3],
            ..model
        };
        CostlessCore { core: SimulatedCore::new(model, seed), plan: Plan::simulated() }
    }

    fn step(&mut self, steps: &StepLoop) -> f64 {
        let program = steps.build_program(&self.plan);
        let [short, long] = [1, 2].map(|times| self.core.body_cycles(&program, times * steps.iterations));
        (long - short) / steps.extra_steps()
    }
}

impl MeasureCosts for CostlessCore {
    fn measure_cost(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
        let without = family.control(n).map_or(0.0, |control| self.step(&control));
        let cost = self.step(&family.program(n)) - without;
        Ok(Some(CostPoint { n, cost, low: cost, high: cost }))
    }
}

/// Rows, by the beginning of their keys, whose programs take time on this core for another reason,
/// and that reason.
const TAKE_TIME: [(&str, &str); 8] = [
    ("copies_in_flight.", "moves, which it executes"),
    ("partial_registers.low_8_bits_moved", "the rest of the register, for which it waits"),
    ("partial_registers.high_8_bits_moved", "the rest of the register, for which it waits"),
    ("partial_registers.16_bits_moved", "the rest of the register, for which it waits"),
    ("partial_registers.carry_changed", "bt for cmp, whose latencies differ"),
    ("bypass_delay.general_and_", "moves from register to register"),
    ("bypass_delay.mask_and_", "moves from register to register"),
    ("failed_forwarding.of_two_stores", "the second of two stores, to which alone it looks"),
];

#[test]
fn no_event_is_found_on_a_core_without_event_costs() {
    let takes = |key: &str| TAKE_TIME.iter().any(|(begin, _)| key.starts_with(begin));
    for seed in 0..3 {
        let mut core = CostlessCore::new(seed);
        for test in TESTS {
            let Experiment::Contrast(events) = &test.experiment else { continue };
            let cpu = CpuResources { has: &|_| true, memory: 0, shared: None };
            let records = run_contrast(&mut core, test, events, &cpu).expect("all is simulated");
            for record in records.iter().filter(|record| !takes(&record.what)) {
                assert_eq!(record.verdict, VerdictKind::None, "{seed} {}: {}", record.what, record.why);
            }
        }
    }
}
