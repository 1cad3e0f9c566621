//! Raw ticks on a processor with one tick per instruction: every figure is a whole number, and
//! always the same.

use crate::command_result::CommandResult;
use crate::ring0::{build_program, open_kernel, run_program};
use cyclescope::asm::CodeMode;
use cyclescope::clock::Clock;
use cyclescope::executor::Executor;
use cyclescope::executor::kernel::{KernelExecutor, KernelOptions};
use cyclescope::unit::Unit;
use std::error::Error;

const ROUNDS: u32 = 50;
/// Offsets in the arena: at a line's start, across a page's end, far away.
const OFFSETS: [u32; 3] = [0, 4090, 0x30_0001];
const CODES: [(&str, &[u8]); 3] = [
    ("add rax, rax", &[0x48, 0x01, 0xc0]),
    ("imul rax, rax", &[0x48, 0x0f, 0xaf, 0xc0]),
    ("mov rax, [r14]", &[0x49, 0x8b, 0x06]),
];
const COPIES: [u64; 3] = [100, 200, 400];

/// Prints a line for each figure, `WHAT TICKS`. Fails if a figure is not exact.
pub fn check_exact_ticks() -> CommandResult {
    let mut kernel = open_kernel(KernelOptions::default().deadline)?;
    let mut clocks = 0;
    let runs = |(clock, works): &(&Clock, Result<_, _>)| clock.counts == Unit::TscTicks && works.is_ok();
    let known = kernel.capabilities().check_clocks(CodeMode::default(), kernel.machine());
    for (clock, _) in known.into_iter().filter(runs) {
        clocks += 1;
        let empty = measure_ticks(&mut kernel, clock, &[], 0)?;
        println!("{} empty {empty}", clock.name);
        for (name, code) in CODES {
            for copies in COPIES {
                let taken = measure_ticks(&mut kernel, clock, code, copies)?;
                if taken != empty + copies {
                    return Err(
                        format!("{}: {copies} times {name} take {taken} ticks, empty {empty}", clock.name).into()
                    );
                }
            }
        }
    }
    println!("clocks {clocks}");
    Ok(())
}

/// The ticks of a call, equal for all calls and places of the code.
fn measure_ticks(kernel: &mut KernelExecutor, clock: &Clock, code: &[u8], copies: u64) -> Result<u64, Box<dyn Error>> {
    let mut all = Vec::new();
    for offset in OFFSETS {
        let samples = run_program(kernel, build_program(clock, code, copies as usize), ROUNDS, offset)?;
        all.extend(samples.iter().map(|sample| sample.end.wrapping_sub(sample.start)));
    }
    match all.iter().all(|ticks| *ticks == all[0]) {
        true => Ok(all[0]),
        false => Err(format!("{}: {copies} copies take {all:?} ticks", clock.name).into()),
    }
}
