//! Targets of conditional branches, by how many bytes are from one to the next.

use super::branch_targets::{LEVELS, UNKNOWN, near_branches, short_branches, target_levels};
use crate::spec::program_family::{ProgramFamily, StepLoop, assemble, straight_loop};
use crate::spec::{TestSpec, TestedPart};

/// Opcodes of jc by four bytes and by one.
const NEAR: [u8; 2] = [0x0f, 0x82];
const SHORT: [u8; 1] = [0x72];

/// Branches that are always taken.
fn taken_branches(branches: Vec<u8>, number: usize) -> StepLoop {
    straight_loop([assemble("stc"), branches].concat(), number)
}

/// Two programs of branches so many bytes apart.
macro_rules! both {
    ($near:literal, $short:literal, $apart:literal) => {
        &[
            ProgramFamily {
                name: $near,
                program: |number| taken_branches(near_branches(&NEAR, number, $apart), number),
                control: None,
            },
            ProgramFamily {
                name: $short,
                program: |number| taken_branches(short_branches(&SHORT, number, $apart), number),
                control: None,
            },
        ]
    };
}

const COST: &str = "core cycles of a taken conditional branch to the next one";

pub(crate) const TEST: TestSpec = TestSpec {
    name: "conditional_targets",
    about: "how many conditional branches the core knows before it has decoded them, one in 16 bytes",
    definition: "conditional branches, always taken, one in 16 bytes, of which each is fetched as fast as in a shorter row of them",
    source: "M. Godbolt, The BTB in contemporary Intel chips (2016)",
    part: TestedPart::FrontEnd,
    experiment: target_levels(
        both!("jc rel32, 16 bytes apart", "jc rel8, 16 bytes apart", 16),
        &[("instruction_cache", 16)],
        LEVELS,
        COST,
    ),
};

pub(crate) const EACH_32_BYTES: TestSpec = TestSpec {
    name: "conditional_targets_32",
    about: "how many conditional branches the core knows before it has decoded them, one in 32 bytes",
    definition: "conditional branches, always taken, one in 32 bytes, of which each is fetched in less than four times as long as in a short row of \
                 them: before it is decoded",
    experiment: target_levels(
        both!("jc rel32, 32 bytes apart", "jc rel8, 32 bytes apart", 32),
        &[("instruction_cache", 32)],
        UNKNOWN,
        COST,
    ),
    ..TEST
};
