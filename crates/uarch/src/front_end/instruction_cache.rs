//! The instruction cache.
//!
//! Straight code shows no end on some cores: their cache of decoded instructions holds more bytes
//! than the instruction cache, or the second cache delivers lines as fast as the decoders use them.
//! So each step jumps to a random line, which no predictor knows, and its latency is visible.

use super::misprediction::{GENERATE, random_loop};
use crate::spec::*;

/// Jumps per iteration.
const JUMPS: usize = 4800;
/// The least number of lines.
const MIN_LINES: usize = 4;
/// jz to a distance of four bytes.
const JZ: [u8; 2] = [0x0f, 0x84];

/// Lines of code that jump to each other in random order. R11 points to the first one; R12 counts
/// the jumps that are left. Instructions fill the rest of each line: a cache of decoded
/// instructions then holds fewer lines than the instruction cache.
fn jump_between_lines(bytes: usize, filler: fn(usize, usize) -> Vec<u8>) -> StepLoop {
    let lines = (bytes / LINE).max(MIN_LINES);
    let mut body = assemble(&format!("mov r12d, {JUMPS}; lea r11, [rip + {}]", 2 * LINE));
    let first_line = body.len().next_multiple_of(LINE);
    let displacement = body.len() - size_of::<i32>();
    let distance = (first_line - body.len()) as i32;
    body.splice(displacement.., distance.to_le_bytes());
    while body.len() < first_line {
        body.extend(nop_of_length((first_line - body.len()).min(9)));
    }
    let mut random_line = assemble(&format!("{GENERATE}; mov r8, rbp; shr r8, 32"));
    // imul r8, r8, imm32: as long for few lines as for many
    random_line.extend([0x4d, 0x69, 0xc0]);
    random_line.extend((lines as u32).to_le_bytes());
    random_line.extend(assemble(&format!("shr r8, 32; shl r8d, {}; add r8, r11; dec r12d", LINE.ilog2())));
    let jump = assemble("jmp r8");
    let end_of_all = first_line + lines * LINE;
    for line in 1..=lines {
        let end = first_line + line * LINE - jump.len();
        body.extend(&random_line);
        body.extend(JZ);
        let distance = (end_of_all - body.len() - size_of::<i32>()) as i32;
        body.extend(distance.to_le_bytes());
        for place in 0.. {
            let room = end - body.len();
            if room == 0 {
                break;
            }
            body.extend(filler(room, place));
        }
        body.extend(&jump);
    }
    StepLoop { steps_per_iteration: JUMPS, ..random_loop(body, 1) }
}

/// Random jumps to lines of no-operations.
pub(crate) fn jump_to_nops(bytes: usize) -> StepLoop {
    jump_between_lines(bytes, |room, _| nop_of_length(room.min(9)))
}

/// Random jumps to lines of instructions that zero a register.
pub(crate) fn jump_to_zeroing(bytes: usize) -> StepLoop {
    jump_between_lines(bytes, |room, place| match room {
        1 => nop_of_length(1),
        _ => zeroing_of_length(2, place),
    })
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "instruction_cache",
    about: "how large the instruction cache is",
    definition: "bytes of code whose lines a jump to a random one of them finds in the nearest cache",
    source: FOG,
    answers: &[],
    part: TestedPart::FrontEnd,
    experiment: Experiment::RandomVisits(RandomVisitsSpec {
        // Caches of decoded instructions hold the lines of the second program in more entries.
        programs: &[
            ProgramFamily::new("jumps to lines with no-operations", jump_to_nops),
            ProgramFamily::new("jumps to lines with xor r32, same", jump_to_zeroing),
        ],
        // The largest code has fewer pages than any first-level TLB has entries: 40 of 48 or more
        // (Fog, chapters on Intel and AMD cores).
        count_range: [4 << 10, 160 << 10],
        unit: Unit::Bytes,
        min_miss_cost: 5.0,
    }),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, FlowControl, Register};

    #[test]
    fn each_line_is_full_and_jumps_to_a_random_line() {
        let Experiment::RandomVisits(spec) = &TESTS[0].experiment else { unreachable!("it is one of random visits") };
        for (family, least) in spec.programs.iter().zip([13, 19]) {
            for bytes in [4 << 10, 40_000, 160 << 10] {
                let steps = family.program(bytes);
                let code = &steps.body[steps.body.len() - bytes / LINE * LINE..];
                for line in code.chunks(LINE) {
                    let all: Vec<_> = Decoder::new(64, line, DecoderOptions::NONE).iter().collect();
                    let last = all[all.len() - 1];
                    assert_eq!(last.flow_control(), FlowControl::IndirectBranch);
                    assert!(all.len() >= least && last.next_ip() == LINE as u64, "{}", all.len());
                    let fillers = all.iter().rev().skip(1).take_while(|filler| !filler.is_jcc_short_or_near());
                    assert!(fillers.clone().count() >= 3);
                    assert!(fillers.clone().all(|filler| filler.op0_register() != Register::R8));
                }
            }
        }
    }
}
