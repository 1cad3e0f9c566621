//! The reorder buffer: all that is fetched and not retired.

use crate::study::uarch::test::chain::{FSQRT, SQRTSD};
use crate::study::uarch::test::{Filler, Look, Part, Test, Window};

/// A no-operation takes nothing else.
pub(in crate::study::uarch) const NOP: Filler = Filler::plain("nop", &["nop"], &[]);

/// A part of each class, so that none of their structures is full first.
const MIXED: Filler = Filler::plain(
    "mixed",
    &[
        "nop",
        "lea rbx, [rcx + rdx]",
        "paddd xmm2, xmm3",
        "nop dword ptr [rax]",
        "test r8, r9",
        "lea r10, [rcx + rdx]",
        "paddd xmm4, xmm5",
        "mov r11, [r14]",
    ],
    &[],
);

pub(in crate::study::uarch) const TEST: Test = Test {
    name: "rob",
    about: "how many instructions the core holds until they retire",
    definition: "instructions between the oldest one that has not retired and the youngest one, both included",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    part: Part::Window,
    look: Look::Overlap(Window {
        beside: 2,
        leads: &[0, 1, 2, 3, 4, 5, 6, 7],
        heads: [SQRTSD, FSQRT],
        fillers: &[NOP, Filler::plain("long nop", &["nop dword ptr [rax]"], &[]), MIXED],
        most: 900,
    }),
};
