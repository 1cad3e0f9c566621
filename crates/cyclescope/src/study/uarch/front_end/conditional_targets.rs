//! Targets of conditional branches.

use crate::study::uarch::test::walk::{Steps, Walk, Walks, code, straight};
use crate::study::uarch::test::{Look, Part, Test};
use crate::unit::Unit;

/// This many branches that are always taken, each to the next, this many bytes apart.
fn taken(number: usize, apart: usize) -> Steps {
    const JC: [u8; 2] = [0x0f, 0x82];
    const BYTES: usize = 6;
    let distance = (apart - BYTES) as i32;
    let one = [&JC[..], &distance.to_le_bytes(), &vec![0xcc; apart - BYTES]].concat();
    straight([code("stc"), one.repeat(number)].concat(), number)
}

fn each_16(number: usize) -> Steps {
    taken(number, 16)
}

fn each_32(number: usize) -> Steps {
    taken(number, 32)
}

pub(in crate::study::uarch) const TEST: Test = Test {
    name: "conditional_targets",
    about: "how many conditional branches the core knows before it has decoded them",
    definition: "conditional branches, always taken, of which each is fetched as fast as in a shorter row of them",
    source: "M. Godbolt, The BTB in contemporary Intel chips (2016)",
    part: Part::FrontEnd,
    look: Look::Levels(Walks {
        walks: &[
            Walk { name: "jc, 16 bytes apart", program: each_16, without: None },
            Walk { name: "jc, 32 bytes apart", program: each_32, without: None },
        ],
        beside: None,
        counts: [16, 8192],
        unit: Unit::Count,
        rise: 0.5,
        ratio: 1.3,
        by_chance: false,
        one: false,
        cost: Some("core cycles of a taken conditional branch to the next one"),
        bytes: 0,
    }),
};
