//! Tests every state in a worker, with relocated compiled functions: counts by the counting
//! listeners.

use crate::compiled_design::{CompiledDesign, CompiledFunction};
use crate::copy_region::{CopyRegion, copy_bytes};
use crate::marker_programs::REGISTER_READER;
use crate::source::context::{self, LoopContext, MemoryFootprint};
use crate::source::design::Enabling;
use crate::source::design::definition::LibraryState;
use crate::working_set::{WorkingSet, loop_memory};
use cyclescope_code::program::ProgramRecipe;
use cyclescope_core::error::RunError;
use cyclescope_exec::user::{UserExecutor, UserOptions};
use cyclescope_exec::{Batch, DEFAULT_DELAY, Executor, Layout, PlacedProgram, ProgramCall};
use cyclescope_marker_designs::listener;
use std::time::Duration;

const LOOPS: u32 = 2000;
const ROUNDS: u32 = 3;

/// `mov rax, address; call rax`
fn call(address: u64) -> Vec<u8> {
    [&[0x48, 0xb8][..], &address.to_le_bytes(), &[0xff, 0xd0]].concat()
}

/// `mov rax, [hits]; mov rdx, rax; shr rdx, 32`
fn read_hits() -> Vec<u8> {
    let (load, split) = ([0x48, 0xa1], [0x48, 0x89, 0xc2, 0x48, 0xc1, 0xea, 0x20]);
    [&load[..], &listener::hits_address().to_le_bytes(), &split].concat()
}

/// Hits in each round of one call of a function in a state.
fn hits(
    user: &mut UserExecutor,
    switch: u64,
    state: usize,
    context: &LoopContext,
    function: u64,
) -> Result<Vec<u64>, RunError> {
    // mov rbx, rsi; mov edi, state
    let init = [&[0x48, 0x89, 0xf3, 0xbf][..], &(state as u32).to_le_bytes(), &call(switch)];
    // mov edi, loops; mov rsi, rbx
    let body = [&[0xbf][..], &LOOPS.to_le_bytes(), &[0x48, 0x89, 0xde], &call(function)];
    let program = ProgramRecipe {
        init: &[init.concat(), read_hits()].concat(),
        snippet: &[body.concat(), read_hits()].concat(),
        copies: 1,
        ..ProgramRecipe::empty(&REGISTER_READER)
    };
    let set = match context.memory {
        MemoryFootprint::Beyond(level) => Some(WorkingSet::beyond_cache(level, &[])),
        _ => None,
    };
    let batch = Batch {
        programs: vec![program.build()],
        warm_up: 0,
        rounds: ROUNDS,
        layouts: vec![Layout {
            code: vec![PlacedProgram { program: 0, offset: 0 }],
            round: vec![ProgramCall { place: 0, loop_count: 1 }],
            data: vec![0; 5],
            seed: 1,
        }],
        memory: loop_memory(context.memory, set, &[]).0,
        delay: DEFAULT_DELAY,
        events: Vec::new(),
        deadline: Duration::from_secs(10),
    };
    let samples = user.run(&batch)?;
    Ok(samples.iter().map(|sample| sample.end - sample.start).collect())
}

fn switched() -> impl Iterator<Item = (CompiledDesign, u64, &'static [LibraryState])> {
    CompiledDesign::list_built().into_iter().filter_map(|compiled| match compiled.design.enabling {
        Enabling::Switch(states) => compiled.switch.map(|switch| (compiled, switch, states)),
        _ => None,
    })
}

/// A relocated copy of a function.
fn copy(code: &CompiledFunction, enabling: Enabling) -> u64 {
    let mut region = CopyRegion::map_near(code.start, 1 << 14).expect("memory near the function");
    let at = region.next_address(32);
    let copied = copy_bytes(code, at, enabling, false).expect("the function can be moved");
    region.write_copy(at, &copied).expect("there is memory");
    at + code.entry as u64
}

fn spawn() -> UserExecutor {
    let allowed = rustix::thread::sched_getaffinity(None).expect("the affinity of this thread");
    let cpu = (0..1024).rev().find(|cpu| allowed.is_set(*cpu)).expect("some CPU");
    UserExecutor::spawn(&UserOptions { cpu, functions: true, own_code: true, ..UserOptions::default() })
        .expect("a worker")
}

#[test]
fn listeners_count_every_loop_of_enabled_markers_and_none_of_dormant_ones() {
    listener::prepare_listeners();
    for (compiled, switch, states) in switched() {
        for context in context::ALL {
            let enabling = compiled.design.enabling;
            let copies = [None, Some("none")].map(|guard| {
                let code = compiled.find_function(context.name, guard).expect("it was compiled");
                copy(code, enabling)
            });
            let worlds = states.iter().map(|state| state.world).max().unwrap_or(0);
            for world in 0..=worlds {
                let mut user = spawn();
                let of_world = states.iter().enumerate().filter(|(_, state)| state.world == world);
                // In both orders: a state must not depend on the previous one.
                for (number, state) in of_world.clone().chain(of_world.rev()) {
                    let place = format!("{} {} {}", compiled.design.name, state.name, context.name);
                    let none = hits(&mut user, switch, number, context, copies[0]);
                    assert_eq!(none, Ok(vec![0; ROUNDS as usize]), "{place}, without the marker");
                    let expected = state.hits.unwrap_or(0) * u64::from(LOOPS);
                    let found = hits(&mut user, switch, number, context, copies[1]);
                    assert_eq!(found, Ok(vec![expected; ROUNDS as usize]), "{place}");
                }
            }
        }
    }
}

#[test]
fn a_worker_stays_in_its_world() {
    listener::prepare_listeners();
    let empty = &context::ALL[0];
    for (compiled, switch, states) in switched() {
        let code = compiled.find_function("empty", Some("none")).expect("it was compiled");
        let at = copy(code, compiled.design.enabling);
        let mut user = spawn();
        assert!(hits(&mut user, switch, 0, empty, at).is_ok());
        let other = states.iter().position(|state| state.world != states[0].world).expect("another world");
        for wrong in [other, states.len()] {
            let result = hits(&mut user, switch, wrong, empty, at);
            assert!(matches!(result, Err(RunError::Fault { signal: "SIGILL", .. })), "{result:?}");
            // The fault ended the worker. Its successor is in no world yet.
            assert!(hits(&mut user, switch, 0, empty, at).is_ok());
        }
    }
}

#[test]
fn every_switched_design_proves_its_dormant_and_its_enabled_state() {
    for (compiled, _, states) in switched() {
        let name = compiled.design.name;
        let counted = |passes| {
            let mut states = states.iter().filter(move |state| !state.measured && state.passes == passes);
            states.next().and_then(|state| state.hits.map(|hits| (state.world, hits)))
        };
        let (Some((enabled, 1)), Some((dormant, 0))) = (counted(true), counted(false)) else {
            panic!("{name} has no counting states");
        };
        assert_eq!(enabled, dormant, "{name}: dormant is proved with the listener that counts");
        for state in states {
            let over = |over: &str| states.iter().any(|state| state.name == over && state.measured);
            assert!(state.over.is_none_or(over), "{name} {}", state.name);
            assert_eq!(state.world == 0, state.measured && !state.passes, "{name} {}", state.name);
        }
    }
}
