//! Taken branches that are not retired.

use crate::test::chain::{FSQRT, SQRTSD};
use crate::test::{Filler, Look, Part, Test, Window};

const JMP: Filler = Filler::plain(
    "jmp, 16 bytes apart",
    &["jmp x; int3; int3; int3; int3; int3; int3; int3; int3; int3; int3; int3; int3; int3; int3; x:"],
    &["rob", "branches_in_flight"],
);
const JNZ: Filler = Filler {
    before: &["test rsp, rsp"],
    ..Filler::plain(
        "jnz, taken, 16 bytes apart",
        &["jnz x; int3; int3; int3; int3; int3; int3; int3; int3; int3; int3; int3; int3; int3; int3; x:"],
        &["rob", "branches_in_flight"],
    )
};
const NEARER: Filler = Filler::plain(
    "jmp, 8 bytes apart",
    &["jmp x; int3; int3; int3; int3; int3; int3; x:"],
    &["rob", "branches_in_flight"],
);

pub(crate) const TEST: Test = Test {
    name: "taken_branches_in_flight",
    about: "how many taken branches the core holds until they retire",
    definition: "taken branches that are executed and not retired",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    part: Part::Window,
    look: Look::Overlap(Window {
        beside: 0,
        leads: &[0],
        heads: &[[SQRTSD, FSQRT]],
        fillers: &[JMP, JNZ, NEARER],
        most: 400,
    }),
};
