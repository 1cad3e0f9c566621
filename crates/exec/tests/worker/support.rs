//! Batches for the tests.

use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock::Clock;
use cyclescope_code::context::FloatElement;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_code::program::{EntryState, Program, ProgramRecipe};
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::RunError;
use cyclescope_exec::user::{UserExecutor, UserOptions};
use cyclescope_exec::{Batch, DEFAULT_DELAY, Executor, Layout, PlacedProgram, ProgramCall, Sample};
use cyclescope_measure::ruler::IMUL;
use cyclescope_measure::{Precision, measure_cost};
use cyclescope_run::RunRequest;
use std::time::Duration;

/// The default: the last allowed CPU.
pub fn cpu() -> usize {
    let allowed = rustix::thread::sched_getaffinity(None).expect("the affinity of this thread");
    (0..rustix::thread::CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu)).expect("some CPU")
}

pub fn spawn() -> UserExecutor {
    UserExecutor::spawn(&UserOptions { cpu: cpu(), ..UserOptions::default() }).expect("a worker")
}

/// A method that needs nothing but x86-64: LFENCE is part of SSE2.
pub fn clock() -> &'static Clock {
    Clock::find_named("lfence-rdtsc-lfence").expect("the clock exists")
}

/// A snippet once, not looped.
pub fn once(snippet: &[u8]) -> Program {
    once_in(CodeMode::Bits64, snippet)
}

/// A snippet of a mode once, not looped.
pub fn once_in(mode: CodeMode, snippet: &[u8]) -> Program {
    let world = EntryState { mode, x87: true, avx: std::is_x86_feature_detected!("avx"), ..EntryState::default() };
    ProgramRecipe { world, snippet, copies: 1, ..ProgramRecipe::empty(clock()) }.build()
}

pub fn layout(programs: &[Program], first: usize) -> Layout {
    let mut at = first;
    let place = |(number, program): (usize, &Program)| {
        let here = at;
        at = (at + program.len()).next_multiple_of(64);
        PlacedProgram { program: number, offset: here as u32 }
    };
    let code = programs.iter().enumerate().map(place).collect();
    let round = (0..programs.len()).map(|place| ProgramCall { place, loop_count: 100 }).collect();
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
        memory: ProgramMemory::standard(FloatElement::F64, true),
        delay: DEFAULT_DELAY,
        events: Vec::new(),
        deadline,
    }
}

/// Runs a snippet once.
pub fn run_once(user: &mut UserExecutor, snippet: &[u8], deadline: Duration) -> Result<Vec<Sample>, RunError> {
    run_program_once(user, once(snippet), deadline)
}

/// Runs a program once.
pub fn run_program_once(
    user: &mut UserExecutor,
    program: Program,
    deadline: Duration,
) -> Result<Vec<Sample>, RunError> {
    let mut batch = batch(vec![program], 1, deadline);
    batch.warm_up = 0;
    user.run(&batch)
}

/// Number of attempts without a narrow interval before the test is left out.
const ATTEMPTS: u64 = 40;
/// Largest useful half width of an interval, in core cycles: it excludes a latency that is wrong by
/// a twentieth.
const NARROW: f64 = 0.03;
/// Time in which a measurement adds layouts to narrow its interval.
const BUDGET: Duration = Duration::from_millis(60);

/// Asserts that an `imul` takes as long as the ruler's. The first number with a narrow interval
/// must be right. If background load prevents such a number, the check is left out.
#[track_caller]
pub fn assert_measures(user: &mut UserExecutor, after: &str) {
    assert_measures_latency(user, &Snippet::new(IMUL.to_vec(), Vec::new(), "imul rax, rax"), after);
}

/// The same with a snippet that takes as long as the ruler's `imul`.
#[track_caller]
pub fn assert_measures_latency(user: &mut UserExecutor, snippet: &Snippet, after: &str) {
    for seed in 0..ATTEMPTS {
        let aim = Some(Precision { cycles: NARROW, share: 0.0, cap: None });
        let request = RunRequest { quick: true, aim, budget: Some(BUDGET), seed, ..RunRequest::default() };
        let plan = request.make_plan(user.capabilities(), user.machine()).expect("a plan");
        let measured = measure_cost(user, snippet, &plan).expect("imul runs");
        let latency = measured.acquisition.shape.imul_latency;
        let number = measured.estimate.filter(|found| measured.linear && measured.settled && !found.shared);
        let Some(cost) = number.map(|found| found.cost).filter(|cost| cost.half_width() <= NARROW) else {
            continue;
        };
        // 0.02 core cycles are allowed for the ruler's own error. At 95 %, fewer than one case in a
        // thousand misses by more than three half widths.
        let margin = 0.02 + 3.0 * cost.half_width();
        assert!((cost.value - latency).abs() <= margin, "after {after}: {cost:?}, and the latency is {latency}");
        return;
    }
    cyclescope_skipped::report_left_out(format_args!("no narrow number in {ATTEMPTS} measurements after {after}"));
}
