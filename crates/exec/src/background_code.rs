//! Background load: code that runs on another CPU during a measurement.
//!
//! A thread with its own executor on that CPU calls the code in a loop, some hundredths of a second
//! per batch. Its readings and the usual duration of a call give the share of the time in which the
//! code ran. A cost measured under background load means nothing without that share. Time in which
//! another run of this library uses that CPU does not count.
//!
//! A ruler, if the caller has one, is read in each round before the code, so that the code's own time
//! can be converted to core cycles of its CPU.

use super::offer::OpenOptions;
use super::thread_end::join_within;
use super::{Batch, DEFAULT_DELAY, Executor, Layout, PlacedProgram, ProgramCall, Sample, remote};
use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock::Clock;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_code::program::{LoopPlan, Program, ProgramRecipe};
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::RunError;
use cyclescope_core::unit::Unit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Copies of the code per iteration, so that the loop's own cost is small.
const COPIES_PER_ITERATION: usize = 8;
/// Smallest duration of a call in units of the clock, about half a millisecond.
const MIN_CALL_UNITS: u64 = 1_000_000;
/// Calls of the code in a round, some milliseconds, and the rounds of a batch.
const CALLS_PER_ROUND: usize = 12;
const ROUNDS_PER_BATCH: u32 = 4;
/// The largest number of rounds whose readings are kept. A longer run keeps every second one, then
/// every fourth, and so on.
const KEPT_ROUNDS_MOST: usize = 8192;
/// Time limit of a batch, far above one iteration of any code that ends soon.
const BATCH_DEADLINE: Duration = Duration::from_secs(2);
/// Time until the first call, and from the request to the end: another run may hold the CPU for half
/// a minute, and then a batch runs.
const FIRST_CALL_TIMEOUT: Duration = Duration::from_secs(120);
const END_TIMEOUT: Duration = Duration::from_secs(60);
/// Largest number of iterations of a call.
const MAX_ITERATIONS: u64 = 1 << 24;
const PAGE: usize = 4096;

/// Background load on another CPU. It ends when this is dropped.
#[derive(Debug)]
pub struct BackgroundCode {
    /// The CPU that the code runs on.
    pub cpu: u32,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<LoadOutcome, RunError>>>,
}

/// Code to run as background load.
#[derive(Debug, Clone)]
pub struct LoadPlan {
    /// The code.
    pub snippet: Snippet,
    /// Its memory, which may share parts with other executors; `None` for the standard memory.
    pub memory: Option<ProgramMemory>,
    /// Options of its executor.
    pub options: OpenOptions,
    /// Builds what is read in each round besides, for code of the snippet's mode.
    pub ruler: Option<fn(&Clock, CodeMode) -> LoadRuler>,
}

/// Programs that are read once a round, before the code, and their places.
#[derive(Debug, Clone, Default)]
pub struct LoadRuler {
    /// The programs.
    pub programs: Vec<Program>,
    /// Their places, and the end of the last one.
    pub code: Vec<PlacedProgram>,
    /// The first byte behind them.
    pub end: usize,
    /// Their calls.
    pub calls: Vec<ProgramCall>,
}

/// Readings of a round.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadRound {
    /// Durations of the ruler's calls, in raw units of the clock.
    pub ruler: Vec<f64>,
    /// The usual time of a copy of the code, with its share of the loop, in raw units.
    pub copy: f64,
}

/// What background load did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LoadOutcome {
    /// The share of the time since its first call in which it ran, 0 to 1. The rest is the
    /// executor's time between batches, and other programs on its CPU.
    pub share: f64,
    /// The usual time of a copy in TSC ticks, with its share of the loop; `None` if its clock counts
    /// something else.
    pub ticks: Option<f64>,
    /// Copies of the code in a call.
    pub copies: f64,
    /// The rounds, or an even selection of them.
    pub rounds: Vec<LoadRound>,
}

impl From<Snippet> for LoadPlan {
    fn from(snippet: Snippet) -> LoadPlan {
        LoadPlan { snippet, memory: None, options: OpenOptions::default(), ruler: None }
    }
}

impl BackgroundCode {
    /// Starts the code on a CPU of this machine, and returns when it has run once.
    ///
    /// # Errors
    ///
    /// If there is no executor for that CPU, or if the code faults, does not end, or can't run in a
    /// loop.
    pub fn start(plan: LoadPlan, cpu: u32) -> Result<BackgroundCode, RunError> {
        let stop = Arc::new(AtomicBool::new(false));
        let (started, begun) = channel();
        let thread = {
            let stop = stop.clone();
            let work = move || run_until_stopped(plan, cpu, &stop, &started);
            std::thread::Builder::new().name(format!("load on CPU {cpu}")).spawn(work)
        };
        let thread = thread.map_err(|error| RunError::from_io("starting a thread", &error))?;
        let mut background = BackgroundCode { cpu, stop, thread: Some(thread) };
        background.wait_for_first_call(&begun, FIRST_CALL_TIMEOUT)?;
        Ok(background)
    }

    /// Waits for the first call.
    fn wait_for_first_call(&mut self, begun: &Receiver<()>, time: Duration) -> Result<(), RunError> {
        match begun.recv_timeout(time) {
            Ok(()) => Ok(()),
            // The thread has ended.
            Err(RecvTimeoutError::Disconnected) => self.join_thread(END_TIMEOUT).map(|_| ()),
            Err(RecvTimeoutError::Timeout) => {
                // It ends when it gets its CPU.
                self.stop.store(true, Ordering::Release);
                self.thread = None;
                Err(late_error("its code did not run", time))
            }
        }
    }

    /// Ends the code.
    ///
    /// # Errors
    ///
    /// If the code stopped early: it faulted, or its process was ended.
    pub fn stop(mut self) -> Result<LoadOutcome, RunError> {
        self.join_thread(END_TIMEOUT)
    }

    fn join_thread(&mut self, time: Duration) -> Result<LoadOutcome, RunError> {
        self.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return Ok(LoadOutcome::default()) };
        let panicked = |_| RunError::from_harness(RUNNING, "its thread panicked", "report this");
        join_within(thread, time).ok_or_else(|| late_error("it did not end", time))?.map_err(panicked)?
    }
}

const RUNNING: &str = "running a background load";

/// The error for a thread that did not do something within a time.
fn late_error(what: &str, time: Duration) -> RunError {
    let why = format!("{what} within {} s", time.as_secs());
    RunError::from_harness(RUNNING, why, "end other programs on its CPU, or choose another one")
}

impl Drop for BackgroundCode {
    fn drop(&mut self) {
        // Nobody reads the share.
        let _ = self.join_thread(END_TIMEOUT);
    }
}

/// The programs of a load, and its calls.
struct LoadBatches {
    programs: Vec<Program>,
    layout: Layout,
    memory: ProgramMemory,
    /// Calls of the ruler in a round.
    ruler_calls: usize,
    /// Iterations of the code's loop in a call.
    count: u64,
}

impl LoadBatches {
    fn new(plan: LoadPlan, clock: &'static Clock, avx: bool) -> LoadBatches {
        let LoadPlan { snippet, memory, options, ruler } = plan;
        let outline = snippet.outline(avx);
        // The load has no cost that flags from the loop's counter, or moving addresses, could change.
        // A function keeps the register that counts.
        let looped = snippet.loop_plan_with_moves().ok().filter(|_| !options.functions).unwrap_or(LoopPlan::PLAIN);
        let recipe = ProgramRecipe {
            world: outline.world,
            init: snippet.init(),
            looped: Some(looped),
            ..ProgramRecipe::with_loop(clock, snippet.code(), COPIES_PER_ITERATION)
        };
        let standard = || ProgramMemory::standard(outline.world.element, outline.touches_memory);
        let memory = memory.unwrap_or_else(standard);
        let ruler = ruler.map_or_else(LoadRuler::default, |new| new(clock, snippet.mode()));
        let LoadRuler { mut programs, mut code, end, calls } = ruler;
        code.push(PlacedProgram { program: programs.len(), offset: end.next_multiple_of(PAGE) as u32 });
        programs.push(recipe.build());
        let (ruler_calls, data) = (calls.len(), vec![0; memory.areas.len()]);
        let layout = Layout { code, round: calls, data, seed: 0 };
        LoadBatches { programs, layout, memory, ruler_calls, count: 1 }
    }

    /// A batch of rounds with this number of calls of the code.
    fn build_batch(&self, calls: usize, rounds: u32) -> Batch {
        let mut layout = Layout { seed: self.count, ..self.layout.clone() };
        let call = ProgramCall { place: layout.code.len() - 1, loop_count: self.count };
        layout.round.extend(vec![call; calls]);
        Batch {
            programs: self.programs.clone(),
            warm_up: 0,
            rounds,
            layouts: vec![layout],
            memory: self.memory.clone(),
            delay: DEFAULT_DELAY,
            events: Vec::new(),
            deadline: BATCH_DEADLINE,
        }
    }

    /// Doubles the iterations until a call takes long enough, and returns its duration.
    fn lengthen_calls(&mut self, executor: &mut dyn Executor) -> Result<u64, RunError> {
        let mut call = 0;
        while call < MIN_CALL_UNITS && self.count < MAX_ITERATIONS {
            let samples = executor.run(&self.build_batch(1, 1))?;
            call = median_duration(&samples[self.ruler_calls..]);
            if call < MIN_CALL_UNITS {
                self.count *= 2;
            }
        }
        Ok(call)
    }
}

/// Runs the code until `stop` is set.
fn run_until_stopped(
    plan: LoadPlan,
    cpu: u32,
    stop: &AtomicBool,
    started: &Sender<()>,
) -> Result<LoadOutcome, RunError> {
    let (mut executor, clock) = remote::open_on_cpu(cpu, &plan.options)?;
    let mut load = LoadBatches::new(plan, clock, executor.machine().features.has(iced_x86::CpuidFeature::AVX));
    let call = load.lengthen_calls(executor.as_mut())?;
    // Fewer calls where one iteration is longer than a call should be, so that batches stay equally
    // long.
    let most = CALLS_PER_ROUND as u64 * u64::from(ROUNDS_PER_BATCH);
    let all = (most * MIN_CALL_UNITS / call.max(MIN_CALL_UNITS)).max(1) as usize;
    let calls = all.min(CALLS_PER_ROUND);
    let batch = load.build_batch(calls, (all / calls) as u32);
    let copies = (load.count as usize * COPIES_PER_ITERATION) as f64;
    let mut unreported = Some(started);
    let (mut ran, mut first, mut last) = (0, None, 0);
    let mut kept = KeptRounds { rounds: Vec::new(), stride: 1, seen: 0 };
    while !stop.load(Ordering::Acquire) || unreported.is_some() {
        let samples = executor.run(&batch)?;
        // Other programs on that CPU lengthen calls, which is not this code's time.
        if executor.had_exclusive_cpu().known() != Some(&false) {
            for round in samples.chunks_exact(load.ruler_calls + calls) {
                let (ruler, code) = round.split_at(load.ruler_calls);
                let usual = median_duration(code);
                ran += usual * code.len() as u64;
                let ruler = ruler.iter().map(|sample| sample.end.saturating_sub(sample.start) as f64).collect();
                kept.push(LoadRound { ruler, copy: usual as f64 / copies });
            }
        }
        first = first.or(samples.first().map(|sample| sample.moments()[0]));
        last = samples.last().map_or(last, |sample| sample.moments()[1]);
        // The starter may be gone.
        unreported.take().map(|started| started.send(()));
    }
    let whole = last.saturating_sub(first.unwrap_or(last));
    let share = if whole > 0 { (ran as f64 / whole as f64).min(1.0) } else { 0.0 };
    let mut times: Vec<f64> = kept.rounds.iter().map(|round| round.copy).collect();
    times.sort_unstable_by(f64::total_cmp);
    let ticks = times.get(times.len() / 2).copied().filter(|_| clock.counts == Unit::TscTicks);
    Ok(LoadOutcome { share, ticks, copies, rounds: kept.rounds })
}

/// An even selection of rounds: every round, or every `stride`-th.
struct KeptRounds {
    rounds: Vec<LoadRound>,
    stride: usize,
    seen: usize,
}

impl KeptRounds {
    fn push(&mut self, round: LoadRound) {
        if self.seen.is_multiple_of(self.stride) {
            self.rounds.push(round);
        }
        self.seen += 1;
        if self.rounds.len() > KEPT_ROUNDS_MOST {
            self.stride *= 2;
            let mut number = 0;
            self.rounds.retain(|_| {
                number += 1;
                number % 2 == 1
            });
        }
    }
}

/// The usual duration of a call.
fn median_duration(samples: &[Sample]) -> u64 {
    let mut calls: Vec<u64> = samples.iter().map(Sample::whole_duration).collect();
    calls.sort_unstable();
    calls.get(calls.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor_list;
    use cyclescope_core::machine::Machine;

    /// A CPU that this process may use.
    fn cpu() -> Option<u32> {
        let machine = Machine::detect();
        let usable = (executor_list::DEFAULT_OFFER.check)(&machine).is_ok();
        machine.target.filter(|_| usable).map(|target| target.cpu)
    }

    fn plan(text: &str) -> LoadPlan {
        Snippet::parse(text).unwrap().into()
    }

    #[test]
    fn kept_rounds_cover_a_run_of_any_length() {
        let mut kept = KeptRounds { rounds: Vec::new(), stride: 1, seen: 0 };
        let all = 5 * KEPT_ROUNDS_MOST;
        for number in 0..all {
            kept.push(LoadRound { ruler: Vec::new(), copy: number as f64 });
        }
        let numbers: Vec<usize> = kept.rounds.iter().map(|round| round.copy as usize).collect();
        assert_eq!(numbers, (0..all).step_by(8).collect::<Vec<_>>());
    }

    #[test]
    fn an_interrupted_call_counts_with_the_usual_duration() {
        let calls = [10, 11, 10, 5000, 10].map(|took| Sample { start: 7, end: 7 + took });
        assert_eq!((median_duration(&calls), median_duration(&[])), (10, 0));
    }

    /// Runs of which one has the CPU to itself.
    const RUNS_MOST: usize = 10;

    #[test]
    fn code_runs_until_it_is_stopped() {
        let Some(cpu) = cpu() else { return };
        for text in ["add rax, rbx", "mov rbx, [r14]; mov [r14 + 8], rbx"] {
            let run = || BackgroundCode::start(plan(text), cpu).unwrap().stop().unwrap().share;
            // Time in which another run uses that CPU does not count.
            let share = (0..RUNS_MOST).map(|_| run()).find(|share| *share != 0.0);
            assert!(share.is_some_and(|share| share > 0.0 && share <= 1.0), "{text}: {share:?}");
        }
    }

    #[test]
    fn code_of_32_bits_runs_where_the_system_has_a_segment_for_it() {
        let Some(cpu) = cpu() else { return };
        if let Err(lack) = crate::user::find_narrow_segment() {
            return cyclescope_skipped::report_skipped(lack);
        }
        // pusha; popa
        let plan = Snippet::new(vec![0x60, 0x61], Vec::new(), "pusha; popa").with_mode(CodeMode::Bits32).into();
        let outcome = BackgroundCode::start(plan, cpu).unwrap().stop().unwrap();
        assert!(outcome.ticks.is_none_or(|ticks| ticks > 1.0), "{outcome:?}");
    }

    #[test]
    fn code_that_cannot_run_is_an_error_at_once() {
        let Some(cpu) = cpu() else { return };
        let start = |text, cpu| BackgroundCode::start(plan(text), cpu).unwrap_err().to_string();
        assert!(start("ud2", cpu).contains("SIGILL"));
        assert!(start("1: jmp 1b", cpu).contains("did not end"));
        assert!(start("nop", 1_000_000).contains("CPU 1000000"));
    }

    #[test]
    fn code_that_never_runs_or_never_ends_is_given_up() {
        let stuck = || {
            let (end, ends) = channel::<()>();
            let work = move || {
                let _ = ends.recv();
                Ok(LoadOutcome::default())
            };
            let stop = Arc::new(AtomicBool::new(false));
            (BackgroundCode { cpu: 0, stop, thread: Some(std::thread::spawn(work)) }, end)
        };
        let short = Duration::from_millis(5);
        let (mut background, _end) = stuck();
        let (_started, begun) = channel();
        let late = background.wait_for_first_call(&begun, short).unwrap_err().to_string();
        assert!(late.contains("its code did not run") && background.stop.load(Ordering::Acquire), "{late}");
        let (mut background, _end) = stuck();
        let late = background.join_thread(short).unwrap_err().to_string();
        assert!(late.contains("it did not end"), "{late}");
        assert_eq!(background.stop(), Ok(LoadOutcome::default()), "nothing is left to wait for");
    }
}
