//! The cache of decoded instructions.
//!
//! Straight code runs slower from the count on that has no room, where decoders are slower than the rest of the core. Where they are as fast,
//! the rate of instructions tells nothing. But after a mispredicted branch the core has nothing to do until instructions come, and from the
//! decoders they come later. So there a loop with mispredicted branches is slower from that count on.

use super::misprediction::{GENERATE, generator};
use crate::test::lengths::{copy_of, zero_of};
use crate::test::walk::{Steps, Walk, Walks, code, straight};
use crate::test::{Look, Part, Test};
use cyclescope_core::unit::Unit;

/// Instructions of a step of straight code: so many that it becomes dearer by more than the noise of a mispredicted branch.
const STEP: usize = 32;
/// Bytes of its instructions.
const LENGTH: usize = 3;

/// As many instructions as are whole steps.
fn in_steps(instructions: usize, one: fn(usize, usize) -> Vec<u8>) -> Steps {
    let steps = instructions / STEP;
    straight((0..STEP * steps).flat_map(|place| one(LENGTH, place)).collect(), steps)
}

fn zeros(instructions: usize) -> Steps {
    in_steps(instructions, zero_of)
}

fn copies(instructions: usize) -> Steps {
    in_steps(instructions, copy_of)
}

/// Branches that are executed by the shorter call, and its least number of iterations.
const EXECUTED: usize = 2400;
const ITERATIONS_LEAST: usize = 2;
/// The instructions before each branch, and the branch.
const BESIDE: usize = 4;

/// So many instructions: a branch by a random bit after others of three bytes, and again. Taken or not it goes to the next one, so that
/// all of the code is executed in either case.
fn branches(instructions: usize, each: usize, period: &[&str]) -> Steps {
    let period: Vec<Vec<u8>> = period.iter().map(|instruction| code(instruction)).collect();
    let mut one: Vec<u8> = period.iter().cycle().take(each - BESIDE).flatten().copied().collect();
    one.extend(code(&format!("{GENERATE}; bt rbp, 60")));
    // jc to what follows
    one.extend([0x72, 0]);
    let number = instructions / each;
    let iterations = (EXECUTED / number).max(ITERATIONS_LEAST) as u64;
    Steps { steps: number, ..generator(one.repeat(number), iterations) }
}

fn addresses(instructions: usize) -> Steps {
    let period =
        ["lea eax, [rcx + rdx]", "lea ebx, [rcx + rdx]", "lea esi, [rcx + rdx]", "lea edi, [rcx + rdx]"];
    branches(instructions, 20, &period)
}

fn comparisons(instructions: usize) -> Steps {
    branches(instructions, 12, &["test rdx, rax", "test rdx, rbx", "test rdx, rsi", "test rdx, rdi"])
}

pub(crate) const TEST: Test = Test {
    name: "uop_cache",
    about: "how many instructions the core has at hand decoded",
    definition: "instructions of three bytes that run as fast as in a shorter loop; where decoders are as fast as the core, of a loop in which \
                 mispredicted branches delay what follows no longer than in a shorter one: entries of that cache that end where a line of \
                 code does are full in part",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::FrontEnd,
    look: Look::Levels(Walks {
        walks: &[
            Walk { name: "xor r32, same", program: zeros, without: None },
            Walk { name: "mov r32, r32", program: copies, without: None },
        ],
        others: &[
            Walk { name: "lea, every 20th a branch", program: addresses, without: None },
            Walk { name: "test, every 12th a branch", program: comparisons, without: None },
        ],
        takes: &[],
        beside: None,
        // So many have room in an instruction cache of 32 KiB.
        counts: [320, 9600],
        unit: Unit::Count,
        rise: 1.0,
        ratio: 1.08,
        // Windows of code fall into its sets by address, and fill their entries by how their instructions lie in them.
        by_chance: true,
        one: false,
        always: false,
        cost: None,
        bytes: 0,
    }),
};

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, FlowControl};

    #[test]
    fn a_program_has_as_many_instructions_as_are_counted_and_fits_an_instruction_cache() {
        for (program, each) in [(addresses as fn(usize) -> Steps, 20), (comparisons, 12)] {
            let steps = program(9600);
            let all: Vec<_> = Decoder::new(64, &steps.body, DecoderOptions::NONE).iter().collect();
            let branches: Vec<_> =
                all.iter().filter(|one| one.flow_control() == FlowControl::ConditionalBranch).collect();
            assert_eq!((all.len(), branches.len(), steps.steps), (9600, 9600 / each, 9600 / each));
            assert!(branches.iter().all(|branch| branch.near_branch_target() == branch.next_ip()));
            assert!(steps.body.len() < 32 << 10, "{}", steps.body.len());
        }
    }
}
