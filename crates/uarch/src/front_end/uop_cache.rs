//! The cache of decoded instructions.
//!
//! Straight code runs slower from the count on that has no room, where decoders are slower than the rest of the core. Where they are as fast,
//! the rate of instructions tells nothing. But after a mispredicted branch the core has nothing to do until instructions come, and from the
//! decoders they come later. So there a loop with mispredicted branches is slower from that count on.

use super::misprediction::{GENERATE, random_loop};
use crate::spec::*;

/// Instructions of a step of straight code: so many that it becomes dearer by more than the noise of a mispredicted branch.
const STEP: usize = 32;
/// Bytes of its instructions.
const LENGTH: usize = 3;

/// As many instructions as are whole steps.
fn straight_steps(instructions: usize, one: fn(usize, usize) -> Vec<u8>) -> StepLoop {
    let steps = instructions / STEP;
    straight_loop((0..STEP * steps).flat_map(|place| one(LENGTH, place)).collect(), steps)
}

fn zeroing_steps(instructions: usize) -> StepLoop {
    straight_steps(instructions, zeroing_of_length)
}

fn mov_steps(instructions: usize) -> StepLoop {
    straight_steps(instructions, mov_reg_of_length)
}

/// Branches that are executed by the shorter call, and its least number of iterations.
const EXECUTED: usize = 2400;
const ITERATIONS_LEAST: usize = 2;
/// The instructions before each branch, and the branch.
const BESIDE: usize = 4;

/// So many instructions: a branch by a random bit after others of three bytes, and again. Taken or not it goes to the next one, so that
/// all of the code is executed in either case.
fn random_branches(instructions: usize, each: usize, period: &[&str]) -> StepLoop {
    let period: Vec<Vec<u8>> = period.iter().map(|instruction| assemble(instruction)).collect();
    let mut one: Vec<u8> = period.iter().cycle().take(each - BESIDE).flatten().copied().collect();
    one.extend(assemble(&format!("{GENERATE}; bt rbp, 60")));
    // jc to what follows
    one.extend([0x72, 0]);
    let number = instructions / each;
    let iterations = (EXECUTED / number).max(ITERATIONS_LEAST) as u64;
    StepLoop { steps_per_iteration: number, ..random_loop(one.repeat(number), iterations) }
}

fn lea_and_branches(instructions: usize) -> StepLoop {
    let period = ["lea eax, [rcx + rdx]", "lea ebx, [rcx + rdx]", "lea esi, [rcx + rdx]", "lea edi, [rcx + rdx]"];
    random_branches(instructions, 20, &period)
}

fn test_and_branches(instructions: usize) -> StepLoop {
    random_branches(instructions, 12, &["test rdx, rax", "test rdx, rbx", "test rdx, rsi", "test rdx, rdi"])
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "uop_cache",
    about: "how many instructions the core has at hand decoded",
    definition: "instructions of three bytes that run as fast as in a shorter loop; where decoders are as fast as the core, of a loop in which \
                 mispredicted branches delay what follows no longer than in a shorter one: entries of that cache that end where a line of \
                 code does are full in part",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &["loop_size", "ucache_size"],
    part: TestedPart::FrontEnd,
    experiment: Experiment::Levels(LevelsSpec {
        programs: &[ProgramFamily::new("xor r32, same", zeroing_steps), ProgramFamily::new("mov r32, r32", mov_steps)],
        fallback_programs: &[
            ProgramFamily::new("lea, every 20th a branch", lea_and_branches),
            ProgramFamily::new("test, every 12th a branch", test_and_branches),
        ],
        // So many have room in an instruction cache of 32 KiB.
        count_range: [320, 9600],
        min_rise: 1.0,
        min_ratio: 1.08,
        // Windows of code fall into its sets by address, and fill their entries by how their instructions lie in them.
        fills_randomly: true,
        ..LevelsSpec::COUNTS
    }),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, FlowControl};

    #[test]
    fn a_program_has_as_many_instructions_as_are_counted_and_fits_an_instruction_cache() {
        for (program, each) in [(lea_and_branches as fn(usize) -> StepLoop, 20), (test_and_branches, 12)] {
            let steps = program(9600);
            let all: Vec<_> = Decoder::new(64, &steps.body, DecoderOptions::NONE).iter().collect();
            let branches: Vec<_> =
                all.iter().filter(|one| one.flow_control() == FlowControl::ConditionalBranch).collect();
            assert_eq!((all.len(), branches.len(), steps.steps_per_iteration), (9600, 9600 / each, 9600 / each));
            assert!(branches.iter().all(|branch| branch.near_branch_target() == branch.next_ip()));
            assert!(steps.body.len() < 32 << 10, "{}", steps.body.len());
        }
    }
}
