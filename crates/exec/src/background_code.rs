//! Code that runs on another CPU for as long as something is measured.
//!
//! A thread of its own has an executor on that CPU and calls the code round and round, some hundredths of a second at a time. Its
//! readings tell the share of the time in which the code ran, by what a call usually takes: without that a cost beside it would say
//! nothing. Time in which another run of this library uses that CPU counts as none.

use super::offer::OpenOptions;
use super::{Batch, DEFAULT_DELAY, Layout, PlacedProgram, ProgramCall, Sample, remote};
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_code::program::{Program, ProgramRecipe};
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::RunError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Copies of the code in an iteration, so that the loop costs little.
const COPIES_PER_ITERATION: usize = 8;
/// Units of the clock that a call takes at least, some half of a millisecond; and calls of a batch.
const MIN_CALL_UNITS: u64 = 1_000_000;
const MAX_BATCH_ROUNDS: u32 = 48;
/// Time limit of a batch: one iteration of any code that ends soon is far below.
const BATCH_DEADLINE: Duration = Duration::from_secs(2);
/// Iterations of a call at most.
const MAX_ITERATIONS: u64 = 1 << 24;

/// Code that runs on another CPU. It ends when this is dropped.
#[derive(Debug)]
pub struct BackgroundCode {
    /// The CPU that it runs on.
    pub cpu: u32,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<f64, RunError>>>,
}

impl BackgroundCode {
    /// Starts the code on a CPU of this machine, and returns when it has run once.
    ///
    /// # Errors
    ///
    /// If there is no executor for that CPU, or if the code faults, does not end, or can't run in a loop.
    pub fn start(snippet: &Snippet, cpu: u32) -> Result<BackgroundCode, RunError> {
        BackgroundCode::spawn_thread(snippet, None, cpu)
    }

    /// The same with this memory, of which it may have a part in common with other executors.
    ///
    /// # Errors
    ///
    /// Those of [`BackgroundCode::start`].
    pub fn start_with_memory(snippet: &Snippet, memory: ProgramMemory, cpu: u32) -> Result<BackgroundCode, RunError> {
        BackgroundCode::spawn_thread(snippet, Some(memory), cpu)
    }

    fn spawn_thread(snippet: &Snippet, memory: Option<ProgramMemory>, cpu: u32) -> Result<BackgroundCode, RunError> {
        let stop = Arc::new(AtomicBool::new(false));
        let (started, begun) = channel();
        let thread = {
            let (snippet, stop) = (snippet.clone(), stop.clone());
            let work = move || run_until_stopped(&snippet, memory, cpu, &stop, &started);
            std::thread::Builder::new().name(format!("beside on CPU {cpu}")).spawn(work)
        };
        let thread = thread.map_err(|error| RunError::from_io("starting a thread", &error))?;
        let mut companion = BackgroundCode { cpu, stop, thread: Some(thread) };
        companion.wait_for_first_call(&begun)?;
        Ok(companion)
    }

    /// Waits for the first call.
    fn wait_for_first_call(&mut self, begun: &Receiver<()>) -> Result<(), RunError> {
        // The other end is gone where the thread has ended.
        if begun.recv().is_ok() {
            return Ok(());
        }
        self.join_thread().map(|_| ())
    }

    /// Ends the code.
    ///
    /// Returns the share of the time since its first call in which it ran, 0 to 1: the rest is what its executor takes between
    /// batches, and other work on that CPU.
    ///
    /// # Errors
    ///
    /// If the code did not run all the time, since it faulted or its process was ended.
    pub fn stop(mut self) -> Result<f64, RunError> {
        self.join_thread()
    }

    fn join_thread(&mut self) -> Result<f64, RunError> {
        self.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return Ok(0.0) };
        let panicked = |_| RunError::from_harness("running code beside", "its thread panicked", "report this");
        thread.join().map_err(panicked)?
    }
}

impl Drop for BackgroundCode {
    fn drop(&mut self) {
        // Whoever drops it does not want to know.
        let _ = self.join_thread();
    }
}

/// Runs the code until it is to stop. Returns the share of the time in which it ran.
fn run_until_stopped(
    snippet: &Snippet,
    memory: Option<ProgramMemory>,
    cpu: u32,
    stop: &AtomicBool,
    started: &Sender<()>,
) -> Result<f64, RunError> {
    let (mut executor, clock) = remote::open_on_cpu(cpu, &OpenOptions::default())?;
    let outline = snippet.outline(executor.machine().features.has(iced_x86::CpuidFeature::AVX));
    let recipe = ProgramRecipe {
        world: outline.world,
        init: snippet.init(),
        ..ProgramRecipe::with_loop(clock, snippet.code(), COPIES_PER_ITERATION)
    };
    let memory = memory.unwrap_or_else(|| ProgramMemory::standard(outline.world.element, outline.touches_memory));
    let (program, mut count) = (recipe.build(), 1);
    // Longer and longer, until a call takes its time.
    let mut call = 0;
    while call < MIN_CALL_UNITS && count < MAX_ITERATIONS {
        let samples = executor.run(&build_batch(&program, &memory, count, 1))?;
        call = median_duration(&samples);
        if call < MIN_CALL_UNITS {
            count *= 2;
        }
    }
    // A batch takes no longer where an iteration is longer than a call should be.
    let rounds = (u64::from(MAX_BATCH_ROUNDS) * MIN_CALL_UNITS / call.max(MIN_CALL_UNITS)).max(1) as u32;
    let batch = build_batch(&program, &memory, count, rounds);
    let mut told = Some(started);
    let (mut ran, mut first, mut last) = (0, None, 0);
    while !stop.load(Ordering::Acquire) || told.is_some() {
        let samples = executor.run(&batch)?;
        // What else runs on that CPU makes calls longer, and is no work of this.
        if executor.had_exclusive_cpu().known() != Some(&false) {
            ran += median_duration(&samples) * samples.len() as u64;
        }
        first = first.or(samples.first().map(|sample| sample.start));
        last = samples.last().map_or(last, |sample| sample.end);
        // Whoever started it may be gone.
        told.take().map(|started| started.send(()));
    }
    let whole = last.saturating_sub(first.unwrap_or(last));
    Ok(if whole > 0 { (ran as f64 / whole as f64).min(1.0) } else { 0.0 })
}

/// What a call usually takes.
fn median_duration(samples: &[Sample]) -> u64 {
    let mut calls: Vec<u64> = samples.iter().map(|sample| sample.end.saturating_sub(sample.start)).collect();
    calls.sort_unstable();
    calls.get(calls.len() / 2).copied().unwrap_or_default()
}

/// Calls of the program's loop.
fn build_batch(program: &Program, memory: &ProgramMemory, count: u64, rounds: u32) -> Batch {
    let layout = Layout {
        code: vec![PlacedProgram { program: 0, offset: 0 }],
        round: vec![ProgramCall { place: 0, loop_count: count }],
        data: vec![0; memory.areas.len()],
        seed: count,
    };
    Batch {
        programs: vec![program.clone()],
        warm_up: 0,
        rounds,
        layouts: vec![layout],
        memory: memory.clone(),
        delay: DEFAULT_DELAY,
        deadline: BATCH_DEADLINE,
    }
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

    #[test]
    fn a_call_that_something_else_interrupts_counts_as_a_usual_one() {
        let calls = [10, 11, 10, 5000, 10].map(|took| Sample { start: 7, end: 7 + took });
        assert_eq!((median_duration(&calls), median_duration(&[])), (10, 0));
    }

    #[test]
    fn code_runs_until_it_is_stopped() {
        let Some(cpu) = cpu() else { return };
        for text in ["add rax, rbx", "mov rbx, [r14]; mov [r14 + 8], rbx"] {
            let companion = BackgroundCode::start(&Snippet::parse(text).unwrap(), cpu).unwrap();
            let share = companion.stop().unwrap();
            assert!(share > 0.0 && share <= 1.0, "{text}: {share}");
        }
    }

    #[test]
    fn what_can_not_run_is_an_error_at_once() {
        let Some(cpu) = cpu() else { return };
        let start = |text, cpu| BackgroundCode::start(&Snippet::parse(text).unwrap(), cpu).unwrap_err().to_string();
        assert!(start("ud2", cpu).contains("SIGILL"));
        assert!(start("1: jmp 1b", cpu).contains("did not end"));
        assert!(start("nop", 1_000_000).contains("CPU 1000000"));
    }
}
