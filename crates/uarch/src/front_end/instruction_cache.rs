//! The cache of instructions.

use crate::test::lengths::{nop_of, zero_of};
use crate::test::walk::{LINE, Steps, Walk, Walks, straight};
use crate::test::{Look, Part, Test};
use cyclescope_core::unit::Unit;

/// Bytes of an instruction: long ones fill a cache of decoded instructions later than lines.
const LENGTH: usize = 8;

fn lines(bytes: usize, one: fn(usize) -> Vec<u8>) -> Steps {
    let number = bytes / LINE * (LINE / LENGTH);
    straight((0..number).flat_map(one).collect(), bytes / LINE)
}

fn no_operations(bytes: usize) -> Steps {
    lines(bytes, |_| nop_of(LENGTH))
}

fn zeros(bytes: usize) -> Steps {
    lines(bytes, |place| zero_of(LENGTH, place))
}

pub(crate) const TEST: Test = Test {
    name: "instruction_cache",
    about: "how large the instruction cache is",
    definition: "bytes of straight code, in instructions of 8 bytes, that are fetched as fast as less of it",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::FrontEnd,
    look: Look::Levels(Walks {
        walks: &[
            Walk { name: "no-operations of 8 bytes", program: no_operations, without: None },
            // Jumps are no use: a core that knows them all fetches lines ahead, and hides that they come from the second cache.
            Walk { name: "xor r32, same, of 8 bytes", program: zeros, without: None },
        ],
        others: &[],
        takes: &[],
        beside: None,
        counts: [1 << 10, 1 << 20],
        unit: Unit::Bytes,
        rise: 1.0,
        ratio: 1.3,
        by_chance: false,
        one: false,
        always: false,
        cost: None,
        bytes: 0,
    }),
};
