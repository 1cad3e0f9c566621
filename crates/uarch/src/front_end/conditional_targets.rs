//! Targets of conditional branches, by how many bytes are from one to the next.

use super::branch_targets::{LEVELS, UNKNOWN, near, rows, short};
use crate::test::walk::{Steps, Walk, code, straight};
use crate::test::{Part, Test};

/// Opcodes of jc by four bytes and by one.
const NEAR: [u8; 2] = [0x0f, 0x82];
const SHORT: [u8; 1] = [0x72];

/// Branches that are always taken.
fn taken(branches: Vec<u8>, number: usize) -> Steps {
    straight([code("stc"), branches].concat(), number)
}

/// Two programs of branches so many bytes apart.
macro_rules! both {
    ($near:literal, $short:literal, $apart:literal) => {
        &[
            Walk { name: $near, program: |number| taken(near(&NEAR, number, $apart), number), without: None },
            Walk {
                name: $short,
                program: |number| taken(short(&SHORT, number, $apart), number),
                without: None,
            },
        ]
    };
}

const COST: &str = "core cycles of a taken conditional branch to the next one";

pub(crate) const TEST: Test = Test {
    name: "conditional_targets",
    about: "how many conditional branches the core knows before it has decoded them, one in 16 bytes",
    definition: "conditional branches, always taken, one in 16 bytes, of which each is fetched as fast as in a shorter row of them",
    source: "M. Godbolt, The BTB in contemporary Intel chips (2016)",
    part: Part::FrontEnd,
    look: rows(
        both!("jc rel32, 16 bytes apart", "jc rel8, 16 bytes apart", 16),
        &[("instruction_cache", 16)],
        LEVELS,
        COST,
    ),
};

pub(crate) const APART_32: Test = Test {
    name: "conditional_targets_32",
    about: "how many conditional branches the core knows before it has decoded them, one in 32 bytes",
    definition: "conditional branches, always taken, one in 32 bytes, of which each is fetched in less than four times as long as in a short row of \
                 them: before it is decoded",
    look: rows(
        both!("jc rel32, 32 bytes apart", "jc rel8, 32 bytes apart", 32),
        &[("instruction_cache", 32)],
        UNKNOWN,
        COST,
    ),
    ..TEST
};
