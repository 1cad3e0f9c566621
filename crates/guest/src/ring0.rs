//! Runs code in ring 0, one call at a time.

use crate::command_result::CommandResult;
use cyclescope::clock::Clock;
use cyclescope::context::FloatElement;
use cyclescope::error::RunError;
use cyclescope::executor::kernel::{KernelExecutor, KernelOptions};
use cyclescope::executor::{Batch, Executor, Layout, PlacedProgram, ProgramCall, Sample};
use cyclescope::program::memory::ProgramMemory;
use cyclescope::program::{Program, ProgramRecipe};
use std::error::Error;
use std::time::Duration;

/// Opens the executor on the last CPU: if there are two, the first one takes the devices'
/// interrupts.
pub fn open_kernel(deadline: Duration) -> Result<KernelExecutor, Box<dyn Error>> {
    let cpu = std::thread::available_parallelism()?.get() - 1;
    let options = KernelOptions { cpu, deadline, ..KernelOptions::default() };
    KernelExecutor::open(&options).map_err(|error| error.to_string().into())
}

/// A program around some copies of a snippet.
pub fn build_program(clock: &Clock, snippet: &[u8], copies: usize) -> Program {
    ProgramRecipe { snippet, copies, ..ProgramRecipe::empty(clock) }.build()
}

/// Runs some rounds of one program at an offset in the arena.
pub fn run_program(
    kernel: &mut KernelExecutor,
    program: Program,
    rounds: u32,
    offset: u32,
) -> Result<Vec<Sample>, RunError> {
    let layout = Layout {
        code: vec![PlacedProgram { program: 0, offset }],
        round: vec![ProgramCall { place: 0, loop_count: 1 }],
        data: vec![0; 5],
        seed: 1,
    };
    kernel.run(&Batch {
        programs: vec![program],
        warm_up: 0,
        rounds,
        layouts: vec![layout],
        memory: ProgramMemory::standard(FloatElement::default(), false),
        delay: 1,
        events: Vec::new(),
        deadline: Duration::from_secs(10),
    })
}

fn default_clock() -> &'static Clock {
    Clock::find_named("lfence-rdtsc-lfence").expect("the library has this clock")
}

/// A program whose timing is ignored.
pub fn wrap_snippet(snippet: &[u8]) -> Program {
    build_program(default_clock(), snippet, 1)
}

/// `xor esp, esp; push rax`
const BAD_STACK: [u8; 3] = [0x31, 0xe4, 0x50];

/// Runs a series of bad stacks: each comes back as a page fault below address 0.
pub fn check_bad_stacks(count: u64) -> CommandResult {
    let mut kernel = open_kernel(KernelOptions::default().deadline)?;
    for number in 0..count {
        match run_program(&mut kernel, wrap_snippet(&BAD_STACK), 1, 0) {
            Err(RunError::Exception { vector: 14, error_code: 2, address, .. }) if address == 8u64.wrapping_neg() => {}
            other => return Err(format!("number {number} ended with {other:?}").into()),
        }
    }
    println!("{count} bad stacks");
    Ok(())
}

/// Runs ordinary code, then opens devices, each used once and closed.
pub fn run_and_reopen(count: u64, opens: u64) -> CommandResult {
    let deadline = KernelOptions::default().deadline;
    let mut kernel = open_kernel(deadline)?;
    for _ in 0..count {
        run_program(&mut kernel, wrap_snippet(&[0x90]), 1, 0)?;
    }
    drop(kernel);
    for _ in 0..opens {
        run_program(&mut open_kernel(deadline)?, wrap_snippet(&[0x90]), 1, 0)?;
    }
    println!("{count} runs, {opens} opens");
    Ok(())
}
