//! Batches for the tests.

use cyclescope::clock::Clock;
use cyclescope::context::Element;
use cyclescope::error::RunError;
use cyclescope::executor::user::{User, UserOptions};
use cyclescope::executor::{Batch, Call, Executor, Layout, Place, Sample};
use cyclescope::program::{Cold, Program, Recipe, World};
use cyclescope::ruler::{ADD_LINKS, IMUL_LINKS, Ruler};
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
    Recipe { clock: clock(), world, init: &[], snippet, copies: 1, looped: false, cold: Cold::default() }
        .build()
}

pub fn layout(programs: &[Program], first: usize) -> Layout {
    let mut at = first;
    let place = |(number, program): (usize, &Program)| {
        let here = at;
        at = (at + program.len()).next_multiple_of(64);
        Place { program: number, offset: here as u32 }
    };
    let code = programs.iter().enumerate().map(place).collect();
    let round = (0..programs.len()).map(|place| Call { place, loop_count: 100 }).collect();
    Layout { code, round, data: [0; 5], seed: first as u64 + 1 }
}

/// One call of each program per round.
pub fn batch(programs: Vec<Program>, rounds: u32, deadline: Duration) -> Batch {
    let layouts = vec![layout(&programs, 4096)];
    Batch { programs, warm_up: 1, rounds, layouts, element: Element::F64, touches_memory: true, deadline }
}

/// Runs a snippet once.
pub fn run_once(user: &mut User, snippet: &[u8], deadline: Duration) -> Result<Vec<Sample>, RunError> {
    let mut batch = batch(vec![once(snippet)], 1, deadline);
    batch.warm_up = 0;
    user.run(&batch)
}

/// The latency of `imul` over that of `add`: three on every core that the tests have met.
pub fn imul_over_add(user: &mut User) -> f64 {
    let ruler = Ruler::new(clock());
    let programs: Vec<_> = ruler.imul.into_iter().chain(ruler.add).collect();
    let batch = batch(programs, 60, Duration::from_secs(20));
    let samples = user.run(&batch).expect("the ruler runs");
    let ticks = |call: usize| {
        let mut ticks: Vec<_> = samples.chunks(4).map(|round| round[call].end - round[call].start).collect();
        ticks.sort();
        ticks[..ticks.len() / 2].iter().sum::<u64>() as f64
    };
    let imul = (ticks(1) - ticks(0)) / (IMUL_LINKS[1] - IMUL_LINKS[0]) as f64;
    let add = (ticks(3) - ticks(2)) / (ADD_LINKS[1] - ADD_LINKS[0]) as f64;
    imul / add
}

/// Asserts that `imul` takes three cycles, give or take 2 %; tries again for a while, since other processes
/// share the machine.
pub fn assert_measures(user: &mut User, after: &str) {
    let start = Instant::now();
    let mut ratios = Vec::new();
    while start.elapsed() < Duration::from_secs(10) {
        let ratio = imul_over_add(user);
        if (ratio / 3.0 - 1.0).abs() < 0.02 {
            return;
        }
        ratios.push(ratio);
    }
    panic!("after {after}: {ratios:?}");
}
