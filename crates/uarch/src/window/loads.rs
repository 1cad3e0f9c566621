//! Loads that are not retired.

use crate::test::chain::{FSQRT, SQRTSD};
use crate::test::{Filler, Look, Part, Test, Window};

const TO_INTEGER: Filler = Filler::plain(
    "mov r64, m64",
    &[
        "mov rbx, [r14]",
        "mov r8, [r14 + 64]",
        "mov r9, [r14 + 128]",
        "mov r10, [r14 + 192]",
        "mov r11, [r14 + 256]",
    ],
    &["rob", "int_registers"],
);
const TO_VECTOR: Filler = Filler::plain(
    "movups xmm, m128",
    &[
        "movups xmm2, [r14]",
        "movups xmm3, [r14 + 64]",
        "movups xmm4, [r14 + 128]",
        "movups xmm5, [r14 + 192]",
        "movups xmm6, [r14 + 256]",
    ],
    &["rob", "vector_registers_xmm"],
);
const COMPARED: Filler = Filler {
    shares: &["int_registers", "flags"],
    ..Filler::plain(
        "cmp m64, r64",
        &["cmp [r14], rbx", "cmp [r14 + 64], r8", "cmp [r14 + 128], r9", "cmp [r14 + 192], r10"],
        &["rob"],
    )
};

pub(crate) const TEST: Test = Test {
    name: "loads_in_flight",
    about: "how many loads that hit the first cache the core holds until they retire",
    definition: "loads that are executed and not retired",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    part: Part::Window,
    look: Look::Overlap(Window {
        beside: 0,
        leads: &[0],
        heads: &[[SQRTSD, FSQRT]],
        fillers: &[TO_INTEGER, TO_VECTOR, COMPARED],
        most: 600,
    }),
};
