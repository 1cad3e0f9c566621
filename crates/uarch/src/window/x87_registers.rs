//! x87 registers for results that are not retired.

use crate::test::chain::{DIV, Head, IDIV};
use crate::test::{Filler, Look, Part, Test, Window};

/// Results on the x87 stack, which is empty before and behind them, are where vector registers are, as on Zen 4, or where mask and MMX
/// registers are. What pops one writes a register too. A part of a period leaves a result on the stack, and eight iterations fill it.
const fn x87(name: &'static str, code: &'static [&'static str]) -> Filler {
    Filler {
        shares: &["vector_registers_xmm", "mask_registers", "mmx_registers"],
        ..Filler::plain(name, code, &["rob"])
    }
}

const ONES: Filler = x87("fld1, fstp", &["fld1", "fstp st(0)"]);
const SIGNS: Filler = x87("fldz, fchs, fstp", &["fldz", "fchs", "fstp st(0)"]);

/// Results of a first chain of vector instructions would take registers of the same file.
const HEADS: &[[Head; 2]] = &[[DIV, IDIV]];

pub(crate) const TEST: Test = Test {
    name: "x87_registers",
    about: "how many results on the x87 stack the core holds until they retire",
    definition: "spare x87 registers: those beside the architectural ones and those that the core keeps for itself",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    part: Part::Window,
    look: Look::Overlap(Window { beside: 0, leads: &[0], heads: HEADS, fillers: &[ONES, SIGNS], most: 500 }),
};
