//! Vector operations that wait for an operand.

use crate::test::chain::{DIVSD, SQRTSD};
use crate::test::{Filler, Look, Part, Test, Window};

pub(super) const PADDD: Filler = Filler::plain(
    "paddd",
    &["paddd xmm2, xmm0", "paddd xmm3, xmm0", "paddd xmm4, xmm0", "paddd xmm5, xmm0", "paddd xmm6, xmm0"],
    &["rob", "vector_registers_xmm"],
);
pub(super) const ADDPS: Filler = Filler::plain(
    "addps",
    &["addps xmm2, xmm0", "addps xmm3, xmm0", "addps xmm4, xmm0", "addps xmm5, xmm0", "addps xmm6, xmm0"],
    &["rob", "vector_registers_xmm"],
);

pub(crate) const TEST: Test = Test {
    name: "vector_scheduler",
    about: "how many vector operations can wait for an operand",
    definition: "vector operations that wait for one result, the chains' links beside them included",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    part: Part::Window,
    look: Look::Overlap(Window {
        beside: 1,
        leads: &[0],
        heads: &[[SQRTSD, DIVSD]],
        fillers: &[PADDD, ADDPS],
        most: 400,
    }),
};
