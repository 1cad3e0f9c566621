//! Targets of direct jumps.

use crate::study::uarch::test::walk::{Steps, Walk, Walks, jumps, straight};
use crate::study::uarch::test::{Look, Part, Test};
use crate::unit::Unit;

fn each_16(number: usize) -> Steps {
    straight(jumps(number, 16), number)
}

fn each_32(number: usize) -> Steps {
    straight(jumps(number, 32), number)
}

pub(in crate::study::uarch) const TEST: Test = Test {
    name: "branch_targets",
    about: "how many direct jumps the core knows before it has decoded them",
    definition: "taken jumps of which each is fetched as fast as in a shorter row of them",
    source: "M. Godbolt, The BTB in contemporary Intel chips (2016)",
    part: Part::FrontEnd,
    look: Look::Levels(Walks {
        walks: &[
            Walk { name: "jmp, 16 bytes apart", program: each_16, without: None },
            Walk { name: "jmp, 32 bytes apart", program: each_32, without: None },
        ],
        beside: None,
        counts: [16, 32768],
        unit: Unit::Count,
        rise: 0.5,
        ratio: 1.3,
        by_chance: false,
        one: false,
        cost: Some("core cycles of a taken jump to the next one"),
        bytes: 0,
    }),
};
