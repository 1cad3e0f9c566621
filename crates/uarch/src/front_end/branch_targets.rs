//! Targets of direct jumps, by how many bytes are from one to the next.

use crate::spec::*;

/// Opcodes of a jump by four bytes and by one.
const NEAR: [u8; 1] = [0xe9];
const SHORT: [u8; 1] = [0xeb];

/// int3, which is never reached.
const TRAP: u8 = 0xcc;

/// Jumps in a row, each to the next one, this many bytes apart; the distance is encoded in four bytes.
pub(super) fn near_branches(opcode: &[u8], number: usize, apart: usize) -> Vec<u8> {
    let distance = (apart - opcode.len() - 4) as i32;
    pad_branches([opcode, &distance.to_le_bytes()].concat(), number, apart)
}

/// The same with the distance in one byte.
pub(super) fn short_branches(opcode: &[u8], number: usize, apart: usize) -> Vec<u8> {
    pad_branches([opcode, &[(apart - opcode.len() - 1) as u8]].concat(), number, apart)
}

fn pad_branches(mut one: Vec<u8>, number: usize, apart: usize) -> Vec<u8> {
    one.resize(apart, TRAP);
    one.repeat(number)
}

const COST: &str = "core cycles of a taken jump to the next one";
const SOURCE: &str = "M. Godbolt, The BTB in contemporary Intel chips (2016)";

/// The least rise from one level to the next, in core cycles and as a ratio. Jumps that are known cost more where there are more
/// (on Zen 4 1.0, 1.55 and 2.05 cycles of 16 bytes; of 32 bytes 1.0 to 3.1, in no clear steps).
pub(super) const LEVELS: [f64; 2] = [0.3, 1.45];
/// The same of those that are not known at all.
pub(super) const UNKNOWN: [f64; 2] = [2.0, 4.0];

/// What rows of branches show; `cost` says what a step costs.
pub(super) const fn target_levels(
    walks: &'static [ProgramFamily],
    takes: &'static [(&'static str, usize)],
    [rise, ratio]: [f64; 2],
    cost: &'static str,
) -> Experiment {
    Experiment::Levels(LevelsSpec {
        programs: walks,
        also_occupies: takes,
        count_range: [64, 24576],
        min_rise: rise,
        min_ratio: ratio,
        cost_definition: Some(cost),
        ..LevelsSpec::COUNTS
    })
}

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "branch_targets",
        about: "how many direct jumps the core knows before it has decoded them, one in 16 bytes",
        definition: "taken jumps, one in 16 bytes, of which each is fetched as fast as in a shorter row of them",
        source: SOURCE,
        answers: &["jmp"],
        part: TestedPart::FrontEnd,
        experiment: target_levels(
            &[
                ProgramFamily::new("jmp rel32, 16 bytes apart", |number| {
                    straight_loop(near_branches(&NEAR, number, 16), number)
                }),
                ProgramFamily::new("jmp rel8, 16 bytes apart", |number| {
                    straight_loop(short_branches(&SHORT, number, 16), number)
                }),
            ],
            &[("instruction_cache", 16)],
            LEVELS,
            COST,
        ),
    },
    TestSpec {
        name: "branch_targets_32",
        about: "how many direct jumps the core knows before it has decoded them, one in 32 bytes",
        definition: "taken jumps, one in 32 bytes, of which each is fetched in less than four times as long as in a short row of them: before it is decoded",
        experiment: target_levels(
            &[
                ProgramFamily::new("jmp rel32, 32 bytes apart", |number| {
                    straight_loop(near_branches(&NEAR, number, 32), number)
                }),
                ProgramFamily::new("jmp rel8, 32 bytes apart", |number| {
                    straight_loop(short_branches(&SHORT, number, 32), number)
                }),
            ],
            &[("instruction_cache", 32)],
            UNKNOWN,
            COST,
        ),
        source: SOURCE,
        answers: &[],
        part: TestedPart::FrontEnd,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    #[test]
    fn each_jump_goes_to_the_next_one() {
        for apart in [16, 32] {
            for body in [near_branches(&NEAR, 9, apart), short_branches(&SHORT, 9, apart)] {
                for (number, one) in body.chunks(apart).enumerate() {
                    let ip = (number * apart) as u64;
                    let jump = Decoder::with_ip(64, one, ip, DecoderOptions::NONE).decode();
                    assert!(jump.is_jmp_short_or_near() && jump.near_branch_target() == ip + apart as u64);
                }
            }
        }
    }
}
