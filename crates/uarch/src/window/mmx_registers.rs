//! MMX registers for results that are not retired.

use crate::test::chain::{DIV, Head, IDIV};
use crate::test::{Filler, Look, Part, Test, Window};

/// MMX registers are where vector registers are, as on Zen 4, or where mask registers are, as on Golden Cove.
const fn mmx(name: &'static str, code: &'static [&'static str]) -> Filler {
    Filler { shares: &["vector_registers_xmm", "mask_registers"], ..Filler::plain(name, code, &["rob"]) }
}

const ADD: Filler = mmx(
    "paddd mm",
    &["paddd mm2, mm7", "paddd mm3, mm7", "paddd mm4, mm7", "paddd mm5, mm7", "paddd mm6, mm7"],
);
const OR: Filler =
    mmx("por mm", &["por mm2, mm7", "por mm3, mm7", "por mm4, mm7", "por mm5, mm7", "por mm6, mm7"]);

/// Results of a first chain of vector instructions would take registers of the same file.
const HEADS: &[[Head; 2]] = &[[DIV, IDIV]];

pub(crate) const TEST: Test = Test {
    name: "mmx_registers",
    about: "how many results in MMX registers the core holds until they retire",
    definition: "spare MMX registers: those beside the architectural ones and those that the core keeps for itself",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    part: Part::Window,
    look: Look::Overlap(Window { beside: 0, leads: &[0], heads: HEADS, fillers: &[ADD, OR], most: 500 }),
};
