//! Targets of conditional branches, by how many bytes are from one to the next.

use super::branch_targets::{LEVELS, UNKNOWN, near_branches, short_branches, target_levels};
use crate::spec::*;

/// Opcodes of jc by four bytes and by one.
const NEAR: [u8; 2] = [0x0f, 0x82];
const SHORT: [u8; 1] = [0x72];

/// Branches that are always taken.
fn taken_branches(branches: Vec<u8>, number: usize) -> StepLoop {
    straight_loop([assemble("stc"), branches].concat(), number)
}

const COST: &str = "core cycles of a taken conditional branch to the next one";

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "conditional_targets",
        about: "how many conditional branches the core knows before it has decoded them, one in 16 bytes",
        definition: "conditional branches, always taken, one in 16 bytes, of which each is fetched as fast as in a shorter row of them",
        source: "M. Godbolt, The BTB in contemporary Intel chips (2016)",
        answers: &[],
        part: TestedPart::FrontEnd,
        experiment: target_levels(
            &[
                ProgramFamily::new("jc rel32, 16 bytes apart", |number| {
                    taken_branches(near_branches(&NEAR, number, 16), number)
                }),
                ProgramFamily::new("jc rel8, 16 bytes apart", |number| {
                    taken_branches(short_branches(&SHORT, number, 16), number)
                }),
            ],
            &[("instruction_cache", 16)],
            LEVELS,
            COST,
        ),
    },
    TestSpec {
        name: "conditional_targets_32",
        about: "how many conditional branches the core knows before it has decoded them, one in 32 bytes",
        definition: "conditional branches, always taken, one in 32 bytes, of which each is fetched in less than four times as long as in a short row of \
                 them: before it is decoded",
        experiment: target_levels(
            &[
                ProgramFamily::new("jc rel32, 32 bytes apart", |number| {
                    taken_branches(near_branches(&NEAR, number, 32), number)
                }),
                ProgramFamily::new("jc rel8, 32 bytes apart", |number| {
                    taken_branches(short_branches(&SHORT, number, 32), number)
                }),
            ],
            &[("instruction_cache", 32)],
            UNKNOWN,
            COST,
        ),
        source: "M. Godbolt, The BTB in contemporary Intel chips (2016)",
        answers: &[],
        part: TestedPart::FrontEnd,
    },
];
