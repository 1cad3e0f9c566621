//! The cache of instructions.

use crate::study::uarch::test::walk::{LINE, LONG_NOP, Steps, Walk, Walks, jumps, straight};
use crate::study::uarch::test::{Look, Part, Test};
use crate::unit::Unit;

fn no_operations(bytes: usize) -> Steps {
    straight(LONG_NOP.repeat(bytes / LINE * (LINE / LONG_NOP.len())), bytes / LINE)
}

fn a_jump_a_line(bytes: usize) -> Steps {
    straight(jumps(bytes / LINE, LINE), bytes / LINE)
}

pub(in crate::study::uarch) const TEST: Test = Test {
    name: "instruction_cache",
    about: "how large the instruction cache is",
    definition: "bytes of code over which straight code and a jump in each line are fetched as fast as in less code",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::FrontEnd,
    look: Look::Levels(Walks {
        walks: &[
            Walk { name: "no-operations of 8 bytes", program: no_operations, without: None },
            Walk { name: "jmp in each line", program: a_jump_a_line, without: None },
        ],
        beside: None,
        counts: [1 << 10, 1 << 20],
        unit: Unit::Bytes,
        rise: 1.0,
        ratio: 1.3,
        by_chance: false,
        one: false,
        cost: None,
        bytes: 0,
    }),
};
