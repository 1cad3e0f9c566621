//! Tests that the simulated core has the costs worked out by hand, and those of its model.

mod by_hand;
mod by_model;
mod measured;
mod modes;
mod port_maps;

use super::*;
use cyclescope_code::asm::parse_assembly;
use cyclescope_code::clock;
use cyclescope_code::program::{LoopPlan, ProgramRecipe};
use iced_x86::Instruction;

/// A machine with all properties that matter to the tests.
fn model() -> CoreModel {
    CoreModel {
        width: 6,
        window: 512,
        integer_ports: 4,
        vector_ports: 2,
        load_ports: 2,
        store_ports: 1,
        imul_latency: 3,
        load_latency: 4,
        vector_load_extra: 2,
        store_latency: 1,
        forward_latency: 3,
        blocked_latency: 12,
        renamed_latency: None,
        stack_engine: true,
        shifts_merge_flags: false,
        eliminates_32: true,
        eliminates_64: true,
        eliminates_vectors: [true; 3],
        serialize_latency: 20,
        ..CoreModel::from_seed(1)
    }
}

fn program(init: &str, snippet: &str, copies: usize) -> Program {
    let bytes = |text: &str| match text {
        "" => Vec::new(),
        text => parse_assembly(text).expect("the test's own code").bytes().to_vec(),
    };
    let (init, snippet) = (bytes(init), bytes(snippet));
    let clock = &clock::ALL_CLOCKS[0];
    ProgramRecipe {
        init: &init,
        snippet: &snippet,
        copies,
        looped: Some(LoopPlan::PLAIN),
        ..ProgramRecipe::empty(clock)
    }
    .build()
}

/// Core cycles of one copy in a long body.
fn cost_after(model: &CoreModel, init: &str, snippet: &str) -> f64 {
    let mut core = SimulatedCore::new(model.clone(), 1);
    let program = program(init, snippet, 24);
    (core.body_cycles(&program, 1200) - core.body_cycles(&program, 360)) / 840.0 / 24.0
}

fn cost(model: &CoreModel, snippet: &str) -> f64 {
    cost_after(model, "", snippet)
}

fn one(text: &str) -> Instruction {
    parse_assembly(text).expect("the test's own code").instructions()[0]
}
