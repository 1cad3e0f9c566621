//! Branches that are not retired.

use crate::test::chain::{FSQRT, SQRTSD};
use crate::test::{Filler, Look, Part, Test, Window};

const NOT_TAKEN: Filler =
    Filler { before: &["test rsp, rsp"], ..Filler::plain("jz, not taken", &["jz x; x:"], &["rob"]) };
const LONG: Filler = Filler {
    before: &["test rsp, rsp"],
    ..Filler::plain("jc near, not taken", &["jc near x; x:"], &["rob"])
};

pub(crate) const TEST: Test = Test {
    name: "branches_in_flight",
    about: "how many branches that are not taken the core holds until they retire",
    definition: "conditional branches, not taken, that are executed and not retired",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    part: Part::Window,
    look: Look::Overlap(Window {
        beside: 0,
        leads: &[0],
        heads: &[[SQRTSD, FSQRT]],
        fillers: &[NOT_TAKEN, LONG],
        most: 400,
    }),
};
