//! Code in ring 0, one call at a time.

use crate::outcome::Outcome;
use cyclescope::clock::Clock;
use cyclescope::context::Element;
use cyclescope::error::RunError;
use cyclescope::executor::kernel::{Kernel, KernelOptions};
use cyclescope::executor::{Batch, Call, Executor, Layout, Placed, Sample};
use cyclescope::program::memory::Memory;
use cyclescope::program::{Program, Recipe};
use std::error::Error;
use std::time::Duration;

/// The last CPU: where there are two, the first one takes the devices' interrupts.
pub fn open(deadline: Duration) -> Result<Kernel, Box<dyn Error>> {
    let cpu = std::thread::available_parallelism()?.get() - 1;
    let options = KernelOptions { cpu, deadline, ..KernelOptions::default() };
    Kernel::open(&options).map_err(|error| error.to_string().into())
}

/// A program around some copies of a snippet.
pub fn program(clock: &Clock, snippet: &[u8], copies: usize) -> Program {
    Recipe { snippet, copies, ..Recipe::empty(clock) }.build()
}

/// Some rounds of one program, at some place in the arena.
pub fn call(
    kernel: &mut Kernel,
    program: Program,
    rounds: u32,
    offset: u32,
) -> Result<Vec<Sample>, RunError> {
    let layout = Layout {
        code: vec![Placed { program: 0, offset }],
        round: vec![Call { place: 0, loop_count: 1 }],
        data: vec![0; 5],
        seed: 1,
    };
    kernel.run(&Batch {
        programs: vec![program],
        warm_up: 0,
        rounds,
        layouts: vec![layout],
        memory: Memory::standard(Element::default(), false),
        delay: 1,
        deadline: Duration::from_secs(10),
    })
}

fn clock() -> &'static Clock {
    Clock::named("lfence-rdtsc-lfence").expect("the library has this clock")
}

/// The clock of code that is not timed.
pub fn around(snippet: &[u8]) -> Program {
    program(clock(), snippet, 1)
}

/// `xor esp, esp; push rax`
const BAD_STACK: [u8; 3] = [0x31, 0xe4, 0x50];

/// Bad stacks one after another: each comes back as a page fault below address 0.
pub fn row(count: u64) -> Outcome {
    let mut kernel = open(KernelOptions::default().deadline)?;
    for number in 0..count {
        match call(&mut kernel, around(&BAD_STACK), 1, 0) {
            Err(RunError::Exception { vector: 14, error_code: 2, address, .. })
                if address == 8u64.wrapping_neg() => {}
            other => return Err(format!("number {number} ended with {other:?}").into()),
        }
    }
    println!("{count} bad stacks");
    Ok(())
}

/// Runs of ordinary code, then devices that are opened, used once and closed.
pub fn runs(count: u64, opens: u64) -> Outcome {
    let deadline = KernelOptions::default().deadline;
    let mut kernel = open(deadline)?;
    for _ in 0..count {
        call(&mut kernel, around(&[0x90]), 1, 0)?;
    }
    drop(kernel);
    for _ in 0..opens {
        call(&mut open(deadline)?, around(&[0x90]), 1, 0)?;
    }
    println!("{count} runs, {opens} opens");
    Ok(())
}
