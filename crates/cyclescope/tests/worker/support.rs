//! Batches for the tests.

use cyclescope::clock::Clock;
use cyclescope::context::Element;
use cyclescope::error::RunError;
use cyclescope::executor::user::{User, UserOptions};
use cyclescope::executor::{Batch, Call, DELAY, Executor, Layout, Placed, Sample};
use cyclescope::measure::measure;
use cyclescope::program::memory::Memory;
use cyclescope::program::{Program, Recipe, World};
use cyclescope::ruler::IMUL;
use cyclescope::run::Request;
use cyclescope::snippet::Snippet;
use std::time::{Duration, Instant};

/// The default: the last allowed CPU.
pub fn cpu() -> usize {
    let allowed = rustix::thread::sched_getaffinity(None).expect("the affinity of this thread");
    (0..rustix::thread::CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu)).expect("some CPU")
}

pub fn spawn() -> User {
    User::spawn(&UserOptions { cpu: cpu(), ..UserOptions::default() }).expect("a worker")
}

pub fn clock() -> &'static Clock {
    Clock::named("rdtscp-lfence").expect("the clock exists")
}

/// A snippet once, not looped.
pub fn once(snippet: &[u8]) -> Program {
    let world = World { x87: true, avx: std::is_x86_feature_detected!("avx"), ..World::default() };
    Recipe { world, snippet, copies: 1, ..Recipe::empty(clock()) }.build()
}

pub fn layout(programs: &[Program], first: usize) -> Layout {
    let mut at = first;
    let place = |(number, program): (usize, &Program)| {
        let here = at;
        at = (at + program.len()).next_multiple_of(64);
        Placed { program: number, offset: here as u32 }
    };
    let code = programs.iter().enumerate().map(place).collect();
    let round = (0..programs.len()).map(|place| Call { place, loop_count: 100 }).collect();
    Layout { code, round, data: vec![0; 5], seed: first as u64 + 1 }
}

/// One call of each program per round.
pub fn batch(programs: Vec<Program>, rounds: u32, deadline: Duration) -> Batch {
    let layouts = vec![layout(&programs, 4096)];
    Batch {
        programs,
        warm_up: 1,
        rounds,
        layouts,
        memory: Memory::standard(Element::F64, true),
        delay: DELAY,
        deadline,
    }
}

/// Runs a snippet once.
pub fn run_once(user: &mut User, snippet: &[u8], deadline: Duration) -> Result<Vec<Sample>, RunError> {
    let mut batch = batch(vec![once(snippet)], 1, deadline);
    batch.warm_up = 0;
    user.run(&batch)
}

/// Asserts that an `imul` takes as long as it should, give or take 0.02 core cycles; tries again for a while,
/// since other processes share the machine.
pub fn assert_measures(user: &mut User, after: &str) {
    let snippet = Snippet::new(IMUL.to_vec(), Vec::new(), "imul rax, rax");
    let start = Instant::now();
    let mut costs = Vec::new();
    while start.elapsed() < Duration::from_secs(10) {
        let request = Request { quick: true, ..Request::default() };
        let plan = request.plan(user.capabilities(), user.machine()).expect("a plan");
        let measured = measure(user, &snippet, &plan).expect("imul runs");
        let latency = measured.acquisition.shape.imul_latency;
        let cost = measured.estimate.map_or(f64::NAN, |estimate| estimate.cost.value);
        if (cost - latency).abs() <= 0.02 {
            return;
        }
        costs.push(cost);
    }
    panic!("after {after}: {costs:?}");
}
