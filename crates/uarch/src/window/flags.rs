//! Flags of results that are not retired.

use crate::test::chain::{FSQRT, SQRTSD};
use crate::test::{Filler, Look, Part, Test, Window};

/// Flags are in an integer register, as on Golden Cove, or in registers of their own, as on Zen 4.
const fn flags(name: &'static str, code: &'static [&'static str]) -> Filler {
    Filler { shares: &["int_registers"], ..Filler::plain(name, code, &["rob"]) }
}

// A comparison of a register with itself could be known without being executed.
const TEST_REGISTERS: Filler =
    flags("test", &["test rbx, rcx", "test rdx, r8", "test r9, r10", "test r11, r12"]);
const COMPARE: Filler = flags("cmp", &["cmp rbx, rcx", "cmp rdx, r8", "cmp r9, r10", "cmp r11, r12"]);

pub(crate) const TEST: Test = Test {
    name: "flags",
    about: "how many results in the flags alone the core holds until they retire",
    definition: "spare registers of flags: those beside the architectural one and those that the core keeps for itself",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    part: Part::Window,
    look: Look::Overlap(Window {
        beside: 0,
        leads: &[0],
        heads: &[[SQRTSD, FSQRT]],
        fillers: &[TEST_REGISTERS, COMPARE],
        most: 700,
    }),
};
