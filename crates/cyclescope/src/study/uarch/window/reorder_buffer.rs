//! The reorder buffer: all that is fetched and not retired.

use crate::study::uarch::test::chain::{FSQRT, SQRTSD};
use crate::study::uarch::test::{Filler, Look, Part, Test, Window};

/// A no-operation takes nothing else, but Zen 4 and 5 hold several of them in an entry.
pub(in crate::study::uarch) const NOP: Filler = Filler { packs: true, ..Filler::plain("nop", &["nop"], &[]) };
const LONG_NOP: Filler = Filler { packs: true, ..Filler::plain("long nop", &["nop dword ptr [rax]"], &[]) };

/// A result of zero is known at once and takes no register.
const ZEROS: Filler = Filler::plain(
    "zeros",
    &[
        "xor ebx, ebx",
        "pxor xmm2, xmm2",
        "xor r8d, r8d",
        "pxor xmm3, xmm3",
        "xor r9d, r9d",
        "pxor xmm4, xmm4",
    ],
    &[],
);

/// A part of each class, so that none of their structures is full first. Were zeros to take registers, these would be full at
/// another number of fillers than of zeros, for other parts of both take them.
const MIXED: Filler = Filler::plain(
    "mixed",
    &[
        "lea rbx, [rcx + rdx]",
        "paddd xmm2, xmm3",
        "xor r8d, r8d",
        "pxor xmm6, xmm6",
        "mov [r14], rcx",
        "lea r10, [rcx + rdx]",
        "paddd xmm4, xmm5",
        "xor r9d, r9d",
        "movups xmm7, [r14 + 64]",
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
        heads: &[[SQRTSD, FSQRT]],
        fillers: &[ZEROS, MIXED, NOP, LONG_NOP],
        most: 900,
    }),
};
